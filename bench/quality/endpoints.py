"""Completion services behind the engine's API: OpenAI's completions and Inception's FIM.

Nothing is sent unless an address is given on the command line; the code of the rows goes there.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import urlsplit

from mercury_engine.addresses import is_loopback
from mercury_engine.api import Draft, EngineError, EngineInfo, Filled, InfillRequest

__all__ = ["DIALECTS", "CompletionService"]

Dialect = Literal["openai", "inception"]

DIALECTS: dict[str, str] = {"openai": "/v1/completions", "inception": "/v1/fim/completions"}
SECONDS = 60
CONTEXT_TOKENS = 8192


class CompletionService:
    """Answers in one piece. Services report no confidence, so their answers always pass the bar."""

    def __init__(self, dialect: Dialect, address: str, model: str, key: str = "") -> None:
        parts = urlsplit(address)
        if parts.scheme != "https" and (parts.scheme != "http" or not is_loopback(parts.hostname or "")):
            raise EngineError(f"{address}: would send code in the clear; write https://HOST")
        self._url = address.rstrip("/") + DIALECTS[dialect]
        self._dialect = dialect
        self._model = model
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})

    def infill(self, request: InfillRequest) -> Iterator[Draft]:
        span = request.spans[0]
        if len(request.spans) != 1 or span.start != span.end:
            raise EngineError(f"{self._url} continues one place; it has no next edits")
        text = request.windows[span.window].text
        body = {
            "model": self._model,
            "prompt": text[: span.start],
            "suffix": text[span.end :],
            "max_tokens": span.budget,
            **({"temperature": 0} if self._dialect == "openai" else {}),
            **({"stop": ["\n"]} if span.mode == "line" else {}),
        }
        said = self._post(body)
        yield Draft(1, (Filled(said, (), float(bool(said)), True),), final=True)

    def warm(self, request: InfillRequest) -> Iterator[None]:
        return iter(())

    def info(self) -> EngineInfo:
        return EngineInfo(self._dialect, self._model, self._url, CONTEXT_TOKENS)

    def _post(self, body: dict[str, Any]) -> str:
        asked = urllib.request.Request(self._url, json.dumps(body).encode(), self._headers, method="POST")
        try:
            with urllib.request.urlopen(asked, timeout=SECONDS) as response:
                return json.load(response)["choices"][0]["text"]
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(200).decode(errors="replace")
            raise EngineError(f"{self._url}: {error.code} {said}; look at the address, model and key") from error
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise EngineError(f"{self._url}: no completion came back ({error!r}); is it such a service?") from error
