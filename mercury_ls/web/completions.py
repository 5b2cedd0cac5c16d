"""Filling a gap: /v1/completions and /v1/fim/completions. A prompt in the tokens of another model is answered in that
model's format."""

import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from itertools import zip_longest

from msgspec.structs import replace

from mercury_engine.prompts.received import ReceivedRegion, received
from mercury_ls.completion.offers import Answer, Offer
from mercury_ls.web.endpoints import EndpointCall
from mercury_ls.web.errors import ApiError
from mercury_ls.web.schemas import MOST_CHOICES, Choice, CompletionRequest, CompletionResponse, Detail, Usage
from mercury_ls.web.service import Wish, inserted_text
from mercury_ls.web.text import Text, near

MOST_TOKENS = 64
"""As in an editor: no one reads more while typing."""
NO_OTHER = "there is no other suggestion"


async def complete(call: EndpointCall) -> CompletionResponse | AsyncGenerator[CompletionResponse]:
    body: CompletionRequest = call.body
    prompts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
    if len(prompts) * _most_choices(body) > MOST_CHOICES:
        message = (
            f"{len(prompts)} prompts with {_most_choices(body)} choices each: at most {MOST_CHOICES} choices together"
        )
        raise ApiError(400, message, "prompt", "invalid_request")
    responses = _every(call, [replace(body, prompt=prompt) for prompt in prompts])
    return responses if body.stream else _together([response async for response in responses])


def _most_choices(body: CompletionRequest) -> int:
    return int(body.n or 1)


async def _every(call: EndpointCall, bodies: Sequence[CompletionRequest]) -> AsyncGenerator[CompletionResponse]:
    """Answer prompts one after the other; the choices of each have their own indices."""
    id = new_id()
    for number, body in enumerate(bodies):
        first = number * _most_choices(body)
        async with aclosing(_answers(call, body, f"{id}-{first}" if first else id)) as responses:
            async for response in responses:
                numbered = [replace(choice, index=first + choice.index) for choice in response.choices]
                yield replace(response, id=id, choices=numbered)


def _together(responses: Sequence[CompletionResponse]) -> CompletionResponse:
    used = [response.usage for response in responses if response.usage]
    prompt, completion = sum(usage.prompt_tokens for usage in used), sum(usage.completion_tokens for usage in used)
    choices = [choice for response in responses for choice in response.choices]
    return replace(responses[0], choices=choices, usage=Usage(prompt, completion, prompt + completion))


async def _answers(call: EndpointCall, body: CompletionRequest, id: str) -> AsyncGenerator[CompletionResponse]:
    """The whole text at once, since any part of a draft may still change; `diffusing` shows each draft as it is."""
    assert isinstance(body.prompt, str), "each prompt has a body of its own"
    wish, gap = _wish_of(body, id), None if body.suffix else received(body.prompt)
    if isinstance(gap, ReceivedRegion):
        yield await _rewriting(call, gap, wish)
        return
    text = Text(body.path, body.prompt + (body.suffix or ""), len(body.prompt), body.language)
    if gap is not None:
        text = Text(gap.path, gap.prefix + gap.suffix, len(gap.prefix), body.language, gap.snippets)
    text = near(text)
    async with aclosing(call.service.complete(text, wish, call.client)) as replies:
        async for answer in replies:
            if answer.final:
                yield _response(call, wish.id, text, answer, _choices(text, answer, body))
            elif wish.slots:
                frame = Choice(index=0, text=answer.draft, mercury=Detail(step=answer.step, slots=answer.slots))
                yield replace(_response(call, wish.id, text, answer, [frame]), usage=None)


def text_of(region: ReceivedRegion) -> Text:
    return Text(region.path, region.text, region.cursor, "", region.snippets, region.edits)


async def _rewriting(call: EndpointCall, region: ReceivedRegion, wish: Wish) -> CompletionResponse:
    """The whole region, changed or not, in the format of the request."""
    text = text_of(region)
    answer, new = await call.service.rewrite(text, (region.start, region.end), wish, call.client)
    choice = Choice(index=0, text=region.answer(new), finish_reason="stop", mercury=_detail_of(answer))
    return _response(call, wish.id, text, answer, [choice])


def _wish_of(body: CompletionRequest, id: str) -> Wish:
    return Wish(
        id=id,
        invoked=body.invoked,
        alternatives=_most_choices(body),
        effort=body.reasoning_effort,
        deadline_ms=body.deadline_ms,
        most_tokens=_most_tokens(body),
        slots=bool(body.stream and body.diffusing),
    )


def _most_tokens(body: CompletionRequest) -> int:
    return int(min(body.max_tokens or MOST_TOKENS, MOST_TOKENS))


def new_id() -> str:
    return uuid.uuid4().hex[:16]


def _choices(text: Text, answer: Answer, body: CompletionRequest) -> list[Choice]:
    """As many choices as requested; unused ones are empty, and a client inserts nothing."""
    stops = [body.stop] if isinstance(body.stop, str) else body.stop or []
    nothing = _detail_of(answer) if not answer.offers else Detail(silence=NO_OTHER)
    offers = zip_longest(range(_most_choices(body)), answer.offers[: _most_choices(body)])
    return [
        _said(index, inserted_text(offer, text), stops, offer, answer, _most_tokens(body))
        if offer
        else Choice(index=index, text="", finish_reason="stop", mercury=nothing)
        for index, offer in offers
    ]


def _said(index: int, text: str, stops: Sequence[str], offer: Offer, answer: Answer, limit: int) -> Choice:
    """It was cut short by its length if it has as many tokens as allowed, and no stop string."""
    visible = cut(text, stops)
    return Choice(
        index=index,
        text=visible,
        finish_reason="length" if offer.tokens >= limit and visible == text else "stop",
        mercury=replace(_detail_of(answer), p_accept=round(offer.p_accept, 4)),
    )


def _detail_of(answer: Answer) -> Detail:
    p_accept = round(answer.offer.p_accept, 4) if answer.offer else 0.0
    return Detail(p_accept, "" if answer.offer else answer.silence, answer.step, answer.slots)


def cut(text: str, stops: Sequence[str]) -> str:
    """The text before the first of the stop strings."""
    return text[: min((at for stop in stops if stop and (at := text.find(stop)) >= 0), default=len(text))]


def _response(call: EndpointCall, id: str, text: Text, answer: Answer, choices: list[Choice]) -> CompletionResponse:
    return CompletionResponse(
        id=id,
        created=int(time.time()),
        model=call.service.model,
        choices=choices,
        usage=usage(call, text, answer),
    )


def usage(call: EndpointCall, text: Text, answer: Answer) -> Usage:
    read = len(text.text) + sum(len(other.text) for other in text.others)
    info = call.service.engine.status.info
    prompt = round(read / info.characters_per_token) if info else 0
    return Usage(prompt, answer.tokens, prompt + answer.tokens)
