"""A server and a model of this process, asked at once: the first answer that is good enough wins."""

from collections.abc import Generator
from contextlib import closing
from itertools import count, zip_longest
from typing import cast

from msgspec.structs import replace

from mercury_engine.api import (
    ChatEngine,
    ChatReply,
    ChatRequest,
    Draft,
    Engine,
    EngineError,
    EngineInfo,
    InfillRequest,
    SpanMode,
)
from mercury_engine.remote.engine import SLICE_SECONDS, RemoteEngine

BAR = 0.25
"""What ends the race if nobody asks for more, or the answer does not tell its probabilities."""


class RaceEngine:
    """The server's answer is preferred if it is there before the model's is final. While the server does not answer,
    the model does, and the notes say why. Without a `remote`, `why` says why there is none.

    Questions that only one of them can answer go to that one alone.
    """

    def __init__(self, name: str, local: Engine, remote: RemoteEngine | None, why: str = "") -> None:
        self._name = name
        self._local = local
        self._remote = remote
        self._why = why

    def infill(self, request: InfillRequest) -> Generator[Draft, None, None]:
        remote = self._remote
        if remote is None or not _answers(remote, request):
            return self._local.infill(request)
        if not _answers(self._local, request):
            return remote.infill(request)
        return self._race(request, remote)

    def chat(self, request: ChatRequest) -> Generator[ChatReply]:
        """The model's alone: the server was added to complete."""
        return cast("ChatEngine", self._local).chat(request)

    def warm(self, request: InfillRequest) -> Generator[None, None, None]:
        remote_steps = iter(()) if self._remote is None else self._remote.warm(request)
        for _ in zip_longest(remote_steps, self._local.warm(request)):
            yield

    def info(self) -> EngineInfo:
        local = self._local.info()
        if self._remote is None:
            return replace(local, model=self._name, notes=(self._why, *local.notes))
        remote = self._remote.info()
        return replace(
            local,
            engine="race",
            model=self._name,
            device=f"{remote.device}; {local.device}",
            context_tokens=max(local.context_tokens, remote.context_tokens),
            reads_per_second=0.0,
            first_line_ms=0.0,
            notes=(*remote.notes, *local.notes),
            answers=_union(local.answers, remote.answers),
            calibrated=False,
            address=remote.address,
        )

    def close(self) -> None:
        if self._remote is not None:
            self._remote.close()

    def _race(self, request: InfillRequest, remote: RemoteEngine) -> Generator[Draft, None, None]:
        local_runner = _Runner(self._local.infill(request), request.bar)
        remote_drafts = remote.infill(request, wait=lambda: 0.0 if local_runner.runs else SLICE_SECONDS)
        remote_runner = _Runner(remote_drafts, request.bar)
        steps, draft, source = count(1), Draft(0, ()), None
        with closing(local_runner), closing(remote_runner):
            while local_runner.runs or remote_runner.runs:
                if remote_runner.step().wins or local_runner.step().wins:
                    break
                if (best := _better(remote_runner, local_runner)) is not None:
                    if best is not source:
                        step = next(steps) if best.step or draft.step else 0
                        draft, source = replace(best, step=step, final=False, sent=remote_runner.sent), best
                    yield draft
            best = _better(remote_runner, local_runner)
            if best is None:
                raise (
                    local_runner.error
                    or remote_runner.error
                    or EngineError("neither the server nor the model answered")
                )
            step = next(steps) if best.step or draft.step else 0
            yield replace(best, step=step, final=True, sent=remote_runner.sent)


class _Runner:
    """One of the two, with the latest that it said; nothing once it has failed."""

    def __init__(self, drafts: Generator[Draft, None, None], bar: float) -> None:
        self.runs = True
        self._bar = max(bar, BAR)
        self.latest: Draft | None = None
        self.sent = ""
        self.error: EngineError | None = None
        self._drafts = drafts

    def step(self) -> "_Runner":
        if self.runs:
            try:
                self.latest = next(self._drafts)
            except EngineError as error:
                self.latest, self.error, self.runs = None, error, False
            else:
                self.runs, self.sent = not self.latest.final, self.latest.sent or self.sent
        return self

    @property
    def wins(self) -> bool:
        return self.latest is not None and self.latest.final and self.is_shown

    @property
    def is_shown(self) -> bool:
        tells = self.latest is not None and bool(self.latest.spans[0].confidence)
        return self.chance >= (self._bar if tells else BAR)

    @property
    def chance(self) -> float:
        return -1.0 if self.latest is None else self.latest.spans[0].p_accept

    def close(self) -> None:
        self._drafts.close()


def _better(first: _Runner, second: _Runner) -> Draft | None:
    """What the one says that is shown, or the likelier one; the first one's if both are as likely."""
    ranks = ((runner.is_shown, runner.chance) for runner in (first, second))
    return first.latest if first.wins or next(ranks) >= next(ranks) else second.latest


def _answers(engine: Engine, request: InfillRequest) -> bool:
    can = engine.info().answers
    return all(span.mode in can for span in request.spans)


def _union(first: tuple[SpanMode, ...], second: tuple[SpanMode, ...]) -> tuple[SpanMode, ...]:
    return (*first, *(mode for mode in second if mode not in first))
