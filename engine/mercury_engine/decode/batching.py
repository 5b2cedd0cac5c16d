"""Forwards of several requests as one: when one request goes on, those that pause go on with it."""

import logging
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Generic, TypeVar

from mercury_engine.decode.cache import Session
from mercury_engine.model.runtime import Forward, Pass, Passes, Runtime

__all__ = ["Steps", "Together", "alone", "until_pause"]

Said = TypeVar("Said")
Result = TypeVar("Result")

Steps = Generator[Pass | Said, Forward, None]
"""Like `Passes`, but with something to say at each pause."""

log = logging.getLogger(__name__)


class Together(Generic[Said]):
    """Runs requests that take turns, and computes the passes of all of them in one batch.

    Whoever goes on takes along those that paused last, as many as the runtime computes together, each from a
    session of its own; they find done what they would have waited for. So it is enough to ask one after the
    other, and who is not asked is at most one pass ahead. Nobody notices the others: an error is raised where it
    belongs, and a request that is closed is merely missing from the next batch.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._paused: list[Turn[Said]] = []

    def run(self, steps: Steps[Said], session: Session) -> Iterator[Said]:
        """What the steps say, until they end."""
        turn = Turn(steps, session)
        try:
            while (said := self._outcome(turn)) is not None:
                self._paused.append(turn)
                try:
                    yield said
                finally:
                    self._paused.remove(turn)
        finally:
            steps.close()

    def _outcome(self, turn: "Turn[Said]") -> Said | None:
        """What it says next, None at the end."""
        if turn.outcome is None:
            self._advance([turn, *self._companions(turn)])
        outcome, turn.outcome = turn.outcome, None
        if isinstance(outcome, StopIteration):
            return None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _companions(self, turn: "Turn[Said]") -> "list[Turn[Said]]":
        sessions, chosen = [turn.session], []
        for paused in reversed(self._paused):
            if len(sessions) == self._runtime.batch:
                break
            if paused.outcome is None and not any(paused.session is session for session in sessions):
                sessions.append(paused.session)
                chosen.append(paused)
        return chosen

    def _advance(self, turns: "list[Turn[Said]]") -> None:
        """Each to its next pause, its end or its error."""
        waiting = [(turn, wanted) for turn in turns if (wanted := turn.go_on()) is not None]
        while waiting:
            forwards = self._forwards([wanted for _, wanted in waiting])
            met = zip(waiting, forwards, strict=True)
            waiting = [(turn, wanted) for (turn, _), got in met if (wanted := turn.go_on(got)) is not None]

    def _forwards(self, passes: list[Pass]) -> list[Forward | Exception]:
        if len(passes) > 1:
            try:
                return [*self._runtime.forwards(passes)]
            except Exception:
                log.warning("%d passes failed together: each is tried alone", len(passes), exc_info=True)
        return [self._forward(wanted) for wanted in passes]

    def _forward(self, wanted: Pass) -> Forward | Exception:
        try:
            return self._runtime.forward(wanted.rows, wanted.cache)
        except Exception as error:
            return error


class Turn(Generic[Said]):
    """One request, and what came of its last pass as long as nobody has asked for it."""

    def __init__(self, steps: Steps[Said], session: Session) -> None:
        self.session = session
        self.outcome: Said | Exception | None = None
        self._steps = steps

    def go_on(self, forward: Forward | Exception | None = None) -> Pass | None:
        """The pass that it needs next, None if it has an outcome instead."""
        try:
            failed = isinstance(forward, Exception)
            said = self._steps.throw(forward) if failed else self._steps.send(forward)
        except Exception as error:
            self.outcome = error
            return None
        if isinstance(said, Pass):
            return said
        self.outcome = said
        return None


def alone(runtime: Runtime, passes: Passes[Result]) -> Iterator[None]:
    """Work that shares its passes with nobody, to be left at each pause."""
    forward = None
    with suppress(StopIteration):
        while True:
            wanted = passes.send(forward)
            forward = None if wanted is None else runtime.forward(wanted.rows, wanted.cache)
            if wanted is None:
                yield


def until_pause(passes: Passes[Result]) -> Generator[Pass, Forward, bool]:
    """Work up to its next pause; whether there was one before the end."""
    forward = None
    while True:
        try:
            wanted = passes.send(forward)
        except StopIteration:
            return False
        if wanted is None:
            return True
        forward = yield wanted
