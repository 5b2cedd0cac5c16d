"""The requests of the page at `/`: a draft to watch, pass by pass, and this machine's statistics."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Annotated

from msgspec import Meta, Struct

from mercury_engine.api import Edit, Effort, EngineInfo, Gap, Slot, Snippet
from mercury_ls.completion.offers import Answer
from mercury_ls.link import local
from mercury_ls.session.stats import Row
from mercury_ls.web.completions import new_id
from mercury_ls.web.endpoints import EndpointCall
from mercury_ls.web.service import Wish, inserted_text
from mercury_ls.web.text import Text

PERCENTILES = (50, 90, 99)
MOST_OTHERS = 16


class _MadeEdit(Struct, frozen=True):
    """Lines of the file, from `line` on, that the user has replaced."""

    line: Annotated[float, Meta(multiple_of=1, ge=0, le=1 << 24)]
    before: str
    after: str


class WatchRequest(Struct, frozen=True, kw_only=True):
    """A file with the cursor at an offset in code points, and other open files."""

    text: str
    cursor: Annotated[float, Meta(multiple_of=1, ge=0)]
    path: Annotated[str, Meta(max_length=4096)] = ""
    language: Annotated[str, Meta(max_length=64)] = ""
    others: Annotated[tuple[Snippet, ...], Meta(max_length=MOST_OTHERS)] = ()
    edits: Annotated[tuple[_MadeEdit, ...], Meta(max_length=MOST_OTHERS)] = ()
    effort: Effort = "medium"
    deadline_ms: Annotated[float, Meta(ge=1, le=60_000)] | None = None


class _Context(Struct, frozen=True):
    """The engine's input besides the cursor: the text around it, related code, the last edits."""

    path: str
    before: str
    after: str
    snippets: tuple[Snippet, ...] = ()
    edits: tuple[Edit, ...] = ()

    @classmethod
    def of(cls, gap: Gap) -> "_Context":
        return cls(gap.path, gap.before, gap.after, gap.snippets, gap.edits)


class Frame(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The draft after one pass. The first frame has the context and no slots; the last is `final`, with the text to
    insert and its id for /feedback, or the reason why there is none."""

    ms: float
    id: str = ""
    step: int = 0
    slots: tuple[Slot, ...] = ()
    draft: str = ""
    tokens: int = 0
    p_accept: float = 0.0
    text: str = ""
    silence: str = ""
    final: bool = False
    sent: str = ""
    context: _Context | None = None


class Statistics(Struct, frozen=True, kw_only=True):
    """`rows`: what happened to suggestions, by day, language and kind, in all editors on this machine. `latency_ms`:
    from a request to its final draft, for the last `answers` of this server. Memory in bytes: of this process, and of
    the engine within it."""

    where: str
    rows: list[Row]
    answers: int
    latency_ms: dict[str, float]
    engine: EngineInfo | None
    resident_bytes: int
    uptime_s: float


async def watch(call: EndpointCall) -> AsyncGenerator[Frame]:
    body: WatchRequest = call.body
    cursor = min(int(body.cursor), len(body.text))
    edits = tuple(Edit(body.path, int(edit.line), edit.before, edit.after) for edit in body.edits)
    return _frames(call, Text(body.path, body.text, cursor, body.language, body.others, edits), body)


async def _frames(call: EndpointCall, text: Text, body: WatchRequest) -> AsyncGenerator[Frame]:
    wish = Wish(
        id=new_id(),
        invoked=True,
        effort=body.effort,
        deadline_ms=body.deadline_ms or float("inf"),
        slots=True,
    )
    gap = await call.service.context(text, wish, call.client)
    yield Frame(ms=0.0, context=gap and _Context.of(gap))
    began = time.perf_counter()
    async with aclosing(call.service.complete(text, wish, call.client)) as answers:
        async for answer in answers:
            yield _frame_of(answer, text, (time.perf_counter() - began) * 1000)


def _frame_of(answer: Answer, text: Text, ms: float) -> Frame:
    offer = answer.offer
    return Frame(
        ms=round(ms, 2),
        id=offer.id if offer and answer.final else "",
        step=answer.step,
        slots=answer.slots,
        draft=answer.draft,
        tokens=answer.tokens,
        p_accept=round(offer.p_accept, 4) if offer else 0.0,
        text=inserted_text(offer, text) if offer else "",
        silence=answer.silence,
        final=answer.final,
        sent=answer.sent,
    )


async def statistics(call: EndpointCall) -> Statistics:
    service = call.service
    latencies = sorted(service.engine.latencies_ms)
    return Statistics(
        where=service.stats.where,
        rows=await asyncio.to_thread(service.stats.rows),
        answers=len(latencies),
        latency_ms={f"p{percent}": round(percentile(latencies, percent), 2) for percent in PERCENTILES if latencies},
        engine=service.engine.status.info,
        resident_bytes=local.resident_memory(),
        uptime_s=round(service.clock() - service.began, 1),
    )


def percentile(ordered: Sequence[float], share: int) -> float:
    """The smallest value not exceeded by this percentage of all."""
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)]
