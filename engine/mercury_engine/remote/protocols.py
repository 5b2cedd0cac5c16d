"""How each kind of server is asked for a completion, as data, and the one reader of all their answers."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Literal

import msgspec
from msgspec import Struct

from mercury_engine.api import EngineError, Snippet
from mercury_engine.redaction import ForeignText, Secrets

Shape = Literal["raw", "gap", "chat"]
"""A prompt with special tokens in it; the texts before and after the gap; or a message."""

LONGEST_LINE = 1 << 20
LENGTH = frozenset({"length", "limit", "max_tokens", "model_length"})
SHOWN = 120
MOST_MODELS = 1000
LONGEST_NAME = 500
LEAST_LOG_PROB = -1e6
"""Far below that of any token; an integer can be too large for a float."""
ALTERNATIVE_TEMPERATURE = 0.6


class WrongAnswerError(Exception):
    """What arrived is no completion: why, after what is `quoted` of it."""

    def __init__(self, why: str, quoted: ForeignText | None = None) -> None:
        super().__init__(why)
        self.quoted = quoted

    def told(self, secrets: Secrets) -> str:
        return f"{secrets.shown(self.quoted, SHOWN)!r} {self}" if self.quoted else str(self)


class ServerProtocol(Struct, frozen=True, kw_only=True):
    """Where to send a request, and what its fields are called; a dot leads into an object, and "" is not sent.

    `sampling` goes before `temperature` and `seed`; None where a server decides on both. `fixed` is sent always,
    `extras` and `log_probs` unless a server refuses them.
    `files`: how other files are written before the prompt, if it takes any there.
    `warms`: the tokens to ask for when only the prompt matters; None where reading ahead is of no use, or costs money.
    `one_model`: it answers with the model that it has, whatever the request says.
    """

    name: str
    path: str
    shape: Shape
    prompt: str = "prompt"
    suffix: str = "suffix"
    snippets: str = ""
    files: str = ""
    file: str = ""
    language: str = ""
    model: str = "model"
    tokens: str = "max_tokens"
    stops: str = "stop"
    most_stops: int = 4
    log_probs: str = ""
    log_probs_value: int | bool = 1
    context: str = ""
    sampling: str | None = ""
    streams: bool = True
    fixed: Mapping[str, Any] = {}
    extras: Mapping[str, Any] = {}
    models: str = "/v1/models"
    warms: int | None = None
    one_model: bool = False


# Code repeats itself: Ollama, LM Studio and llama-cpp-python punish that unless they are told not to.

LLAMA = ServerProtocol(
    name="llama",
    path="/completion",
    shape="raw",
    tokens="n_predict",
    most_stops=16,
    log_probs="n_probs",
    fixed={"cache_prompt": True},
    warms=0,
    one_model=True,
)
"""llama-server. It chooses the slot whose cache has most of the prompt, so none is asked for."""

PROTOCOLS = (
    LLAMA,
    msgspec.structs.replace(
        LLAMA,
        name="llama-infill",
        path="/infill",
        shape="gap",
        prompt="input_prefix",
        suffix="input_suffix",
        snippets="input_extra",
        fixed={"cache_prompt": True, "prompt": ""},
    ),
    ServerProtocol(
        name="ollama",
        path="/api/generate",
        shape="raw",
        tokens="options.num_predict",
        stops="options.stop",
        most_stops=16,
        log_probs="logprobs",
        log_probs_value=True,
        context="options.num_ctx",
        sampling="options.",
        fixed={"raw": True, "think": False, "keep_alive": "30m", "options.repeat_penalty": 1.0},
        models="/api/tags",
        warms=1,
    ),
    ServerProtocol(
        name="openai",
        path="/v1/completions",
        shape="raw",
        log_probs="logprobs",
        extras={"repeat_penalty": 1.0},
        warms=1,
    ),
    ServerProtocol(name="mistral", path="/v1/fim/completions", shape="gap", files="+++++ {path}\n{text}\n\n"),
    ServerProtocol(
        name="deepseek", path="/beta/completions", shape="gap", most_stops=16, log_probs="logprobs", models=""
    ),
    ServerProtocol(name="inception", path="/v1/fim/completions", shape="gap", sampling=None),
    ServerProtocol(
        name="inception-edit", path="/v1/edit/completions", shape="chat", stops="", sampling=None, streams=False
    ),
    ServerProtocol(name="chat", path="/v1/chat/completions", shape="chat"),
    ServerProtocol(
        name="tabby",
        path="/v1/completions",
        shape="gap",
        prompt="segments.prefix",
        suffix="segments.suffix",
        file="segments.filepath",
        language="language",
        model="",
        tokens="",
        stops="",
        sampling=None,
        streams=False,
        models="",
    ),
)


def protocol_named(name: str) -> ServerProtocol:
    for protocol in PROTOCOLS:
        if protocol.name == name:
            return protocol
    names = ", ".join(protocol.name for protocol in PROTOCOLS)
    raise EngineError(f"protocol: nothing speaks {name!r}; use one of {names}")


class Ask(Struct, frozen=True, kw_only=True):
    """One question. `prompt` is all of it, or the text before the gap."""

    prompt: str
    suffix: str = ""
    snippets: tuple[Snippet, ...] = ()
    file: str = ""
    language: str = ""
    model: str = ""
    tokens: int = 64
    stops: tuple[str, ...] = ()
    context: int = 0
    seed: int = 0


def body(protocol: ServerProtocol, ask: Ask, *, plain: bool = False) -> bytes:
    """The request; `plain` without what not every server knows."""
    chat = protocol.shape == "chat"
    fields: dict[str, Any] = {
        **({"stream": True} if protocol.streams else {}),
        **protocol.fixed,
        **({} if plain else {**protocol.extras, protocol.log_probs: protocol.log_probs_value}),
        "messages" if chat else protocol.prompt: [{"role": "user", "content": ask.prompt}] if chat else ask.prompt,
        protocol.model: ask.model,
        protocol.tokens: ask.tokens,
        protocol.context: ask.context,
        protocol.file: ask.file,
        protocol.language: ask.language,
        protocol.stops: list(dict.fromkeys(ask.stops))[: protocol.most_stops],
    }
    if protocol.shape == "gap":
        fields[protocol.suffix] = ask.suffix
        fields[protocol.snippets] = [{"filename": snippet.path, "text": snippet.text} for snippet in ask.snippets]
    if protocol.sampling is not None:
        fields[f"{protocol.sampling}temperature"] = ALTERNATIVE_TEMPERATURE if ask.seed else 0
        if ask.seed:
            fields[f"{protocol.sampling}seed"] = ask.seed
    optional = {protocol.model, protocol.stops, protocol.file, protocol.language}
    sent = {path: value for path, value in fields.items() if path and (value or path not in optional)}
    return msgspec.json.encode(_nested(sent))


def _nested(fields: Mapping[str, Any]) -> dict[str, Any]:
    """`{"options.stop": …}` as `{"options": {"stop": …}}`."""
    options: dict[str, Any] = {}
    for path, value in fields.items():
        *groups, name = path.split(".")
        inside = options
        for group in groups:
            inside = inside.setdefault(group, {})
        inside[name] = value
    return options


class Event(Struct, frozen=True):
    """What one message says: more text, with the log probabilities of its tokens, and why the answer ends here."""

    text: str = ""
    log_probs: tuple[float, ...] = ()
    end: Literal["", "stop", "length"] = ""
    error: ForeignText = ForeignText()


class Events:
    """Takes an answer apart as it arrives: server-sent events, JSON in lines, or one JSON document."""

    def __init__(self, content_type: str) -> None:
        self.ended = False
        self._is_document = content_type.partition(";")[0].strip() == "application/json"
        self._rest = b""
        self._understood = False

    @property
    def tells(self) -> bool:
        """Whether it has said that it ends, or holds what only the end completes."""
        return self.ended or bool(self._rest.strip())

    def feed(self, data: bytes) -> Iterator[Event]:
        self._rest += data
        if self._is_document:
            return
        *lines, self._rest = self._rest.split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            raise WrongAnswerError(f"a line of more than {LONGEST_LINE} bytes")
        for line in lines:
            yield from self._line(line)

    def finish(self) -> Iterator[Event]:
        """What the end of the answer says: a document ends with it, a stream must have said that it ends."""
        tail, self._rest = self._rest.strip(), b""
        if self._is_document:
            event = self._event(tail)
            yield event if event.end or event.error else msgspec.structs.replace(event, end="stop")
            self.ended = True
        elif tail:
            yield from self._line(tail)
        if not self._understood:
            raise WrongAnswerError("nothing in it is a completion")

    def _line(self, line: bytes) -> Iterator[Event]:
        line = line.strip()
        field, _, value = line.partition(b":")
        if field in (b"data", b"error"):
            line = value.strip()
        elif not line or line.startswith(b":") or field in (b"event", b"id", b"retry"):
            return
        if line == b"[DONE]":
            self.ended = self._understood = True
            return
        event = self._event(line)
        self.ended = self.ended or bool(event.end)
        yield event

    def _event(self, line: bytes) -> Event:
        event = read(decoded(line))
        self._understood = self._understood or event is not None
        return event or Event()


def decoded(data: bytes) -> dict[str, Any]:
    """The JSON object that the data is. What is in it may have any type."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise WrongAnswerError("is not JSON", ForeignText.of(data)) from None
    if not isinstance(value, dict):
        raise WrongAnswerError("is no completion", ForeignText.of(data))
    return value


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in what should be a list of them."""
    return [value for value in value if isinstance(value, dict)] if isinstance(value, list) else []


def text_at(value: Any, *names: str) -> str:
    """The first text under one of the names in what should be an object."""
    values = (value.get(name) for name in names) if isinstance(value, dict) else ()
    return next((value for value in values if isinstance(value, str) and value), "")


def read(message: Mapping[str, Any]) -> Event | None:
    """None for a message that is neither text, nor an end, nor an error."""
    if error := message.get("error"):
        text = error if isinstance(error, str) else text_at(error, "message", "detail", "type")
        return Event(error=ForeignText(text or "an error without a message"))
    choice = next(iter(objects(message.get("choices"))), {})
    text, end = _text_of(message, choice), _end_of(message, choice)
    if text is None and not end and "choices" not in message:
        return None
    return Event(text or "", tuple(_log_probs_of(message, choice)), end)


def _text_of(message: Mapping[str, Any], choice: Mapping[str, Any]) -> str | None:
    for holder, name in (
        (message, "content"),
        (message, "response"),
        (choice, "text"),
        (choice.get("delta"), "content"),
        (choice.get("message"), "content"),
        (message.get("message"), "content"),
    ):
        if isinstance(holder, Mapping) and isinstance(text := holder.get(name), str | list):
            return text if isinstance(text, str) else "".join(text_at(part, "text") for part in text)
    return None


def _end_of(message: Mapping[str, Any], choice: Mapping[str, Any]) -> Literal["", "stop", "length"]:
    if message.get("stopped_limit"):
        return "length"
    reasons = choice.get("finish_reason"), message.get("done_reason"), message.get("stop_type")
    reason = next(filter(None, reasons), "")
    if isinstance(reason, str) and reason not in ("", "none"):
        return "length" if reason in LENGTH else "stop"
    return "stop" if any(message.get(name) is True for name in ("done", "stop")) else ""


def _log_probs_of(message: Mapping[str, Any], choice: Mapping[str, Any]) -> Iterator[float]:
    """Of the tokens that were chosen, in whichever of five shapes."""
    logprobs = choice.get("logprobs") or {}
    if isinstance(logprobs, dict):
        logprobs = logprobs.get("token_logprobs") or logprobs.get("content")
    shapes = logprobs, message.get("completion_probabilities"), message.get("logprobs")
    tokens = next(filter(None, shapes), ())
    for token in tokens if isinstance(tokens, list) else ():
        value = token.get("logprob") if isinstance(token, dict) else token
        if isinstance(value, int | float) and LEAST_LOG_PROB <= value <= 0:
            yield float(value)


def model_names(listed: Any) -> list[str]:
    """What a server calls its models, from `/v1/models` or `/api/tags`."""
    if not isinstance(listed, dict):
        return []
    names = (text_at(entry, "id", "model", "name") for entry in objects(listed.get("data") or listed.get("models")))
    return list(islice((name for name in names if 0 < len(name) <= LONGEST_NAME), MOST_MODELS))


def is_name(text: str, secrets: Secrets, own: str) -> bool:
    """Whether a server may call a model so: names are shown and kept. `own` is the one that the user gave."""
    return text == own or secrets.is_harmless(ForeignText(text))
