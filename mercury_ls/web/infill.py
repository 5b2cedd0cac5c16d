"""Filling a gap in llama.cpp's dialect: /infill, for llama.vim and llama.vscode."""

import time
from contextlib import aclosing
from typing import Any

from msgspec.structs import asdict

from mercury_engine.api import Snippet
from mercury_ls.completion.offers import Answer, Offer
from mercury_ls.web.completions import MOST_TOKENS, cut, new_id, usage
from mercury_ls.web.endpoints import EndpointCall
from mercury_ls.web.schemas import InfillBody, InfillResponse
from mercury_ls.web.service import Wish, inserted_text
from mercury_ls.web.text import Text, near

InfillAnswer = InfillResponse | dict[str, Any]


async def infill(call: EndpointCall) -> InfillAnswer | list[InfillAnswer]:
    """With `n_predict` 0, only read ahead. Several choices are a list, as in llama.cpp. An empty request asks for
    nothing."""
    body: InfillBody = call.body
    before = body.input_prefix + body.prompt
    snippets = tuple(Snippet(extra.filename, extra.text) for extra in body.input_extra)
    text = near(Text(body.path, before + body.input_suffix, len(before), body.language, snippets))
    wish = Wish(
        id=new_id(),
        alternatives=int(body.n_cmpl),
        deadline_ms=body.t_max_predict_ms or None,
        most_tokens=int(min(body.n_predict, MOST_TOKENS)) if body.n_predict > 0 else MOST_TOKENS,
    )
    began, answer = time.monotonic(), Answer()
    if body.n_predict and (text.text or snippets):
        async with aclosing(call.service.complete(text, wish, call.client)) as answers:
            async for latest in answers:
                answer = latest
    elif text.text:
        await call.service.warm(text, wish, call.client)
    spent = (time.monotonic() - began) * 1000
    if body.n_cmpl == 1:
        return _answered(call, body, text, answer, answer.offer, spent)
    return [_answered(call, body, text, answer, offer, spent) for offer in answer.offers or (None,)]


def _answered(
    call: EndpointCall, body: InfillBody, text: Text, answer: Answer, offer: Offer | None, milliseconds: float
) -> InfillAnswer:
    used = usage(call, text, answer)
    response = InfillResponse(
        content=cut(inserted_text(offer, text), body.stop) if offer else "",
        id=offer.id if offer else "",
        model=call.service.model,
        tokens_evaluated=used.prompt_tokens,
        tokens_predicted=used.completion_tokens,
        timings=_timings(used.prompt_tokens, used.completion_tokens, milliseconds),
    )
    return response if body.response_fields is None else _chosen(response, body.response_fields)


def _timings(read: int, generated: int, milliseconds: float) -> dict[str, float]:
    """All of the time counts as writing: a draft is read and written at once."""
    seconds = max(milliseconds, 0.001) / 1000
    return {
        "prompt_n": read,
        "prompt_ms": 0.0,
        "prompt_per_token_ms": 0.0,
        "prompt_per_second": 0.0,
        "predicted_n": generated,
        "predicted_ms": round(milliseconds, 3),
        "predicted_per_token_ms": round(milliseconds / max(generated, 1), 3),
        "predicted_per_second": round(generated / seconds, 3),
    }


def _chosen(response: InfillResponse, fields: list[str]) -> dict[str, Any]:
    """The requested fields, under the names by which they were requested: `timings/prompt_n`."""
    flat = asdict(response) | {f"timings/{name}": value for name, value in response.timings.items()}
    return {name: flat[name] for name in fields if name in flat}
