"""Filling a gap: /v1/completions and /v1/fim/completions."""

import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from msgspec.structs import replace

from mercury_ls.completion.offers import Answer
from mercury_ls.web.endpoints import Call
from mercury_ls.web.schemas import Choice, CompletionRequest, CompletionResponse, Detail, Usage
from mercury_ls.web.service import Wish, inserted_text
from mercury_ls.web.text import Text

__all__ = ["complete", "cut", "new_id", "usage"]

USUAL_TOKENS = 64


async def complete(call: Call) -> CompletionResponse | AsyncGenerator[CompletionResponse]:
    body: CompletionRequest = call.body
    text = Text(body.path, body.prompt + (body.suffix or ""), len(body.prompt), body.language)
    return chunks(call, text, body) if body.stream else await completion(call, text, body)


def wish_of(body: CompletionRequest) -> Wish:
    return Wish(
        id=new_id(),
        invoked=body.invoked,
        alternatives=body.n or 1,
        effort=body.reasoning_effort,
        deadline_ms=body.deadline_ms,
        most_tokens=min(body.max_tokens or USUAL_TOKENS, USUAL_TOKENS),
    )


def new_id() -> str:
    return uuid.uuid4().hex[:16]


async def completion(call: Call, text: Text, body: CompletionRequest) -> CompletionResponse:
    answer = Answer(silence="no answer", final=True)
    wish = wish_of(body)
    async with aclosing(call.service.complete(text, wish, call.client)) as answers:
        async for latest in answers:
            answer = latest
    return response(call, wish.id, text, answer, choices(text, answer, body))


async def chunks(call: Call, text: Text, body: CompletionRequest) -> AsyncGenerator[CompletionResponse]:
    """The whole text at once, since any of a draft may still change; `diffusing` shows each draft as it is."""
    wish = wish_of(body)
    async with aclosing(call.service.complete(text, wish, call.client)) as answers:
        async for answer in answers:
            if answer.final:
                yield response(call, wish.id, text, answer, choices(text, answer, body))
            elif body.diffusing:
                frame = Choice(index=0, text=answer.draft, mercury=Detail(step=answer.step))
                yield replace(response(call, wish.id, text, answer, [frame]), usage=None)


def choices(text: Text, answer: Answer, body: CompletionRequest) -> list[Choice]:
    """One for each offer; a client that is offered nothing inserts nothing."""
    if not answer.offers:
        return [Choice(index=0, text="", finish_reason="stop", mercury=Detail(silence=answer.silence))]
    stops = [body.stop] if isinstance(body.stop, str) else body.stop or []
    return [
        Choice(
            index=index,
            text=cut(inserted_text(offer, text), stops),
            finish_reason="stop",
            mercury=Detail(p_accept=round(offer.p_accept, 4), step=answer.step),
        )
        for index, offer in enumerate(answer.offers[: body.n or 1])
    ]


def cut(text: str, stops: Sequence[str]) -> str:
    """The text before the first of the stops."""
    return text[: min((at for stop in stops if stop and (at := text.find(stop)) >= 0), default=len(text))]


def response(call: Call, id: str, text: Text, answer: Answer, found: list[Choice]) -> CompletionResponse:
    return CompletionResponse(
        id=id,
        created=int(time.time()),
        model=call.service.model,
        choices=found,
        usage=usage(call, text, answer),
    )


def usage(call: Call, text: Text, answer: Answer) -> Usage:
    read = len(text.text) + sum(len(other.text) for other in text.others)
    info = call.service.engine.status.info
    prompt = round(read / info.characters_per_token) if info else 0
    return Usage(prompt, answer.tokens, prompt + answer.tokens)
