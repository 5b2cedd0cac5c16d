"""Filling a gap: /v1/completions and /v1/fim/completions, in the format of a model with tokens of its own if the prompt
has them."""

import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from msgspec.structs import replace

from mercury_engine.prompts.received import Region, received
from mercury_ls.completion.offers import Answer
from mercury_ls.web.endpoints import Call
from mercury_ls.web.schemas import Choice, CompletionRequest, CompletionResponse, Detail, Usage
from mercury_ls.web.service import Wish, inserted_text
from mercury_ls.web.text import Text, near

__all__ = ["MOST_TOKENS", "complete", "cut", "new_id", "text_of", "usage"]

MOST_TOKENS = 64
"""As in an editor: nobody reads more while typing."""


async def complete(call: Call) -> CompletionResponse | AsyncGenerator[CompletionResponse]:
    body: CompletionRequest = call.body
    asked = None if body.suffix else received(body.prompt)
    if isinstance(asked, Region):
        done = await rewriting(call, asked, body)
        return one(done) if body.stream else done
    text = Text(body.path, body.prompt + (body.suffix or ""), len(body.prompt), body.language)
    if asked is not None:
        text = Text(asked.path, asked.prefix + asked.suffix, len(asked.prefix), body.language, asked.snippets)
    text = near(text)
    return chunks(call, text, body) if body.stream else await completion(call, text, body)


def text_of(region: Region) -> Text:
    return Text(region.path, region.text, region.cursor, "", region.snippets, region.edits)


async def rewriting(call: Call, region: Region, body: CompletionRequest) -> CompletionResponse:
    """The whole region in the format that it came in, changed or not."""
    text, wish = text_of(region), wish_of(body)
    answer, new = await call.service.rewrite(text, (region.start, region.end), wish, call.client)
    choice = Choice(index=0, text=region.answer(new), finish_reason="stop", mercury=detail_of(answer))
    return response(call, wish.id, text, answer, [choice])


async def one(response: CompletionResponse) -> AsyncGenerator[CompletionResponse]:
    yield response


def wish_of(body: CompletionRequest) -> Wish:
    return Wish(
        id=new_id(),
        invoked=body.invoked,
        alternatives=int(body.n or 1),
        effort=body.reasoning_effort,
        deadline_ms=body.deadline_ms,
        most_tokens=int(min(body.max_tokens or MOST_TOKENS, MOST_TOKENS)),
        slots=bool(body.stream and body.diffusing),
    )


def new_id() -> str:
    return uuid.uuid4().hex[:16]


async def completion(call: Call, text: Text, body: CompletionRequest) -> CompletionResponse:
    answer, wish = Answer(silence="no answer", final=True), wish_of(body)
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
                frame = Choice(index=0, text=answer.draft, mercury=Detail(step=answer.step, slots=answer.slots))
                yield replace(response(call, wish.id, text, answer, [frame]), usage=None)


def choices(text: Text, answer: Answer, body: CompletionRequest) -> list[Choice]:
    """One for each offer; a client that is offered nothing inserts nothing."""
    if not answer.offers:
        return [Choice(index=0, text="", finish_reason="stop", mercury=detail_of(answer))]
    stops = [body.stop] if isinstance(body.stop, str) else body.stop or []
    return [
        Choice(
            index=index,
            text=cut(inserted_text(offer, text), stops),
            finish_reason="stop",
            mercury=replace(detail_of(answer), p_accept=round(offer.p_accept, 4)),
        )
        for index, offer in enumerate(answer.offers[: int(body.n or 1)])
    ]


def detail_of(answer: Answer) -> Detail:
    p_accept = round(answer.offer.p_accept, 4) if answer.offer else 0.0
    return Detail(p_accept, "" if answer.offer else answer.silence, answer.step, answer.slots)


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
