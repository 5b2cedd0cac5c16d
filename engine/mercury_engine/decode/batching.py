"""Batches the forwards of several requests: the one that is resumed takes paused ones along.

This is iteration-level batching (Orca, Yu et al. 2022) for generators that are resumed one at a time.
"""

import logging
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Any, Generic, TypeVar, cast

from msgspec import Struct

from mercury_engine.decode.sessions import EngineSession
from mercury_engine.model.runtime import Forward, Pass, Passes, Runtime

Output = TypeVar("Output")
Result = TypeVar("Result")

Steps = Generator[Pass | Output, Forward, None]
"""Like `Passes`, but with an output at each pause."""

log = logging.getLogger(__name__)


class ForwardBatcher:
    """Runs requests that take turns, and computes their passes in batches.

    A request that is resumed takes along those that paused last, up to the runtime's batch size and one per session.
    When these are resumed, their next output is ready. Callers simply resume one request after another, and a request
    is at most one pass ahead of its caller. Requests do not affect each other: an error is raised in the request that
    caused it, and a closed one is just missing from the next batch.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._paused: list[_Turn[Any]] = []

    def run(self, steps: Steps[Output], session: EngineSession) -> Iterator[Output]:
        """The outputs of the steps."""
        turn = _Turn(steps, session)
        try:
            while (output := self._outcome(turn)) is not None:
                self._paused.append(turn)
                try:
                    yield output
                finally:
                    self._paused.remove(turn)
        finally:
            steps.close()

    def _outcome(self, turn: "_Turn[Output]") -> Output | None:
        """The request's next output, None at the end."""
        if turn.outcome is None:
            self._advance([turn, *self._companions(turn)])
        outcome, turn.outcome = turn.outcome, None
        if isinstance(outcome, StopIteration):
            return None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _companions(self, turn: "_Turn[Output]") -> "list[_Turn[Any]]":
        sessions, chosen = [turn.session], []
        for paused in reversed(self._paused):
            if len(sessions) == self._runtime.batch:
                break
            if paused.outcome is None and not any(paused.session is session for session in sessions):
                sessions.append(paused.session)
                chosen.append(paused)
        return chosen

    def _advance(self, turns: "list[_Turn[Any]]") -> None:
        """Run each to its next output, its end or its error."""
        waiting = [(turn, forward_pass) for turn in turns if (forward_pass := turn.resume()) is not None]
        while waiting:
            forwards = self._forwards([forward_pass for _, forward_pass in waiting])
            computed = zip(waiting, forwards, strict=True)
            waiting = [
                (turn, forward_pass)
                for (turn, _), forward in computed
                if (forward_pass := turn.resume(forward)) is not None
            ]

    def _forwards(self, passes: list[Pass]) -> list[Forward | Exception]:
        if len(passes) > 1:
            try:
                return [*self._runtime.forwards(passes)]
            except Exception:
                log.warning("a batch of %d passes failed; each is run on its own", len(passes), exc_info=True)
        return [self._forward(forward_pass) for forward_pass in passes]

    def _forward(self, forward_pass: Pass) -> Forward | Exception:
        try:
            return self._runtime.forward(forward_pass.rows, forward_pass.cache)
        except Exception as error:
            return error


class _Turn(Struct, Generic[Output], eq=False):
    """One request, and the outcome of its last pass until the caller fetches it."""

    steps: Steps[Output]
    session: EngineSession
    outcome: Output | Exception | None = None

    def resume(self, forward: Forward | Exception | None = None) -> Pass | None:
        """The next pass that it needs, None once it has an outcome."""
        try:
            if isinstance(forward, Exception):
                yielded = self.steps.throw(forward)
            else:
                yielded = self.steps.send(cast("Forward", forward))  # None begins it
        except Exception as error:
            self.outcome = error
            return None
        if isinstance(yielded, Pass):
            return yielded
        self.outcome = yielded
        return None


def run_unbatched(runtime: Runtime, passes: Passes[Result]) -> Generator[None]:
    """Compute each pass on its own; yields at each pause."""
    forward = None
    with suppress(StopIteration):
        while True:
            forward_pass = passes.send(cast("Forward", forward))
            forward = None if forward_pass is None else runtime.forward(forward_pass.rows, forward_pass.cache)
            if forward_pass is None:
                yield


def until_output(steps: Steps[Output]) -> Generator[Pass, Forward, Output]:
    """Run the work up to its next output."""
    yielded = next(steps)
    while isinstance(yielded, Pass):
        yielded = steps.send((yield yielded))
    return yielded


def until_pause(passes: Passes[Result]) -> Generator[Pass, Forward, bool]:
    """Run the work up to its next pause; return False if it ended instead."""
    forward = None
    while True:
        try:
            forward_pass = passes.send(cast("Forward", forward))
        except StopIteration:
            return False
        if forward_pass is None:
            return True
        forward = yield forward_pass
