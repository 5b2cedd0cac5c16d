"""A server and a model of this process, asked at once: the first answer that is good enough wins."""

from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from itertools import zip_longest
from typing import Generic, cast

from msgspec.structs import replace

from mercury_engine.api import (
    ChatEngine,
    ChatReply,
    ChatRequest,
    Draft,
    Engine,
    EngineError,
    EngineInfo,
    Gap,
    Opinions,
    Proposals,
    Regions,
    Rewrites,
    Rewritten,
)
from mercury_engine.remote.asking import Answer
from mercury_engine.remote.engine import SLICE_SECONDS, RemoteEngine

BAR = 0.25
"""What ends the race if nobody asks for more, or the answer does not tell its probabilities."""


class RaceEngine(Engine):
    """The server's answer is preferred if it is there before the model's is final. While the server does not answer,
    the model does, and the notes say why. Without a `remote`, `why` says why there is none.

    Questions that only one of them can answer go to that one alone.
    """

    def __init__(self, name: str, local: Engine, remote: RemoteEngine | None, why: str = "") -> None:
        self._name = name
        self._local = local
        self._remote = remote
        self._why = why

    def fill(self, gap: Gap) -> Generator[Draft]:
        remote = self._remote
        if remote is None or not remote.info().fills:
            return self._local.fill(gap)
        if not self._local.info().fills:
            return remote.fill(gap)
        return _race(partial(remote.fill, gap), self._local.fill(gap), gap.bar)

    def rewrite(self, regions: Regions) -> Generator[Rewrites]:
        remote = self._remote
        if remote is None or not remote.info().rewrites:
            return self._local.rewrite(regions)
        if not self._local.info().rewrites:
            return remote.rewrite(regions)
        return _race(partial(remote.rewrite, regions), self._local.rewrite(regions))

    def judge(self, proposals: Proposals) -> Generator[Opinions]:
        return self._local.judge(proposals)

    def chat(self, request: ChatRequest) -> Generator[ChatReply]:
        """The model's alone: the server was added to complete."""
        return cast("ChatEngine", self._local).chat(request)

    def warm(self, question: Gap | Regions) -> Generator[None]:
        remote_steps = iter(()) if self._remote is None else self._remote.warm(question)
        for _ in zip_longest(remote_steps, self._local.warm(question)):
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
            fills=local.fills or remote.fills,
            rewrites=local.rewrites or remote.rewrites,
            calibrated=False,
            address=remote.address,
        )

    def close(self) -> None:
        if self._remote is not None:
            self._remote.close()


def _race(
    ask_remote: Callable[..., Generator[Answer]], local: Generator[Answer], bar: float = 0.0
) -> Generator[Answer]:
    local_runner = _Runner(local, bar)
    remote_runner = _Runner(ask_remote(wait=lambda: 0.0 if local_runner.runs else SLICE_SECONDS), bar)
    step, source, shown = 0, None, None
    with closing(local_runner), closing(remote_runner):
        while local_runner.runs or remote_runner.runs:
            if remote_runner.step().wins or local_runner.step().wins:
                break
            if (best := _better(remote_runner, local_runner)) is not None:
                if shown is None or best is not source:
                    step += bool(best.step or step)
                    shown, source = replace(best, step=step, final=False, sent=remote_runner.sent), best
                yield shown
        best = _better(remote_runner, local_runner)
        if best is None:
            raise (
                local_runner.error or remote_runner.error or EngineError("neither the server nor the model answered")
            )
        step += bool(best.step or step)
        yield replace(best, step=step, final=True, sent=remote_runner.sent)


class _Runner(Generic[Answer]):
    """One of the two, with the latest that it said; nothing once it has failed."""

    def __init__(self, drafts: Generator[Answer], bar: float) -> None:
        self.runs = True
        self._bar = max(bar, BAR)
        self.latest: Answer | None = None
        self.sent = ""
        self.error: EngineError | None = None
        self._drafts = drafts

    def step(self) -> "_Runner[Answer]":
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
        tells = self._told is not None and bool(self._told.confidence)
        return self.chance >= (self._bar if tells else BAR)

    @property
    def chance(self) -> float:
        return -1.0 if self._told is None else self._told.p_accept

    @property
    def _told(self) -> Draft | Rewritten | None:
        return self.latest.regions[0] if isinstance(self.latest, Rewrites) else self.latest

    def close(self) -> None:
        self._drafts.close()


def _better(first: _Runner[Answer], second: _Runner[Answer]) -> Answer | None:
    """What the one says that is shown, or the likelier one; the first one's if both are as likely."""
    ranks = ((runner.is_shown, runner.chance) for runner in (first, second))
    return first.latest if first.wins or next(ranks) >= next(ranks) else second.latest
