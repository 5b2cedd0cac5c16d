"""Answers that are made of one another: each is worked out once, in turns of a few milliseconds, within a budget.

Functions that need each other's answers give each a key:

    def depth(name: str) -> int:
        return answers.once(("depth", name), lambda: 1 + max(map(depth, bases[name]), default=0))

    asking = answers.in_turns(lambda: depth("Job"))

A class from which many derive is looked into once. As soon as a turn is over, the answer just worked out is kept and
`TurnOverError` drops the rest: `asking` yields, and then asks for `depth("Job")` anew, which gets further each time.
So what computes an answer may run several times, and must change nothing. Where bases may form a circle, `followed`
takes so many steps at most.
"""

import math
import time
from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Item = TypeVar("Item")

TURN_SECONDS = 0.01
MOST_ANSWERS = 20_000
"""Of which the answer to one question is made. A rename in a project of thousands of files takes hundreds."""


class TurnOverError(Exception):
    """A question has to go on in the next turn, with what it has worked out so far."""


class Answers:
    """A question is what is asked `once`, with all that is asked on the way: of an answer that takes more than `budget`
    others, the rest is not known."""

    def __init__(self, budget: int = MOST_ANSWERS, clock: Callable[[], float] = time.thread_time) -> None:
        self._answers: dict[Hashable, Any] = {}
        self._followed: dict[Hashable, tuple[int, Any]] = {}
        self._budget, self._clock = budget, clock
        self._asked: list[Hashable] = []
        self._question: Hashable = None
        self._left = budget
        self._turn_ends, self._latest_end = math.inf, -math.inf

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Computed for whoever asks first, then cached."""
        if key in self._answers:
            return self._answers[key]
        return self._work_out(key, make, lambda answer: self._answers.update({key: answer}))

    def followed(
        self, key: Hashable, steps: int, make: Callable[[], T], unknown: T, is_known: Callable[[T], bool]
    ) -> T:
        """The same for a question that follows at most so many steps. One whose answer is not known is asked again only
        with more of them; without any, or at the end of the budget, nothing is known."""
        before = self._followed.get(key)
        if before is not None and (before[0] >= steps or is_known(before[1])):
            return before[1]
        if steps <= 0 or (self._asked and self._left <= 0):
            return unknown
        return self._work_out(key, make, lambda answer: self._followed.update({key: (steps, answer)}))

    def _work_out(self, key: Hashable, make: Callable[[], T], keep: Callable[[T], None]) -> T:
        if not self._asked and key != self._question:
            self._question, self._left = key, self._budget
        self._asked.append(key)
        self._left -= 1
        try:
            answer = make()
        finally:
            self._asked.pop()
        if self._left > 0 or not self._asked:
            keep(answer)
        if self._clock() > self._turn_ends:
            raise TurnOverError
        return answer

    def each(self, key: Hashable, items: Sequence[Item], ask: Callable[[Item], T]) -> Sequence[T]:
        """The answers for these items: each turn goes on where the last one ended."""
        answers: list[T] = self._answers.setdefault(("each", key), [])
        for item in items[len(answers) :]:
            answers.append(ask(item))
            if self._clock() > self._turn_ends:
                raise TurnOverError
        return answers

    def in_turns(self, ask: Callable[[], T]) -> Generator[None, None, T]:
        """The answer to something that may take long. Many short questions in a row share a turn."""
        while True:
            if self._clock() > self._latest_end:
                yield
                self._latest_end = self._clock() + TURN_SECONDS
            self._turn_ends = self._latest_end
            try:
                return ask()
            except TurnOverError:
                pass
            finally:
                self._turn_ends = math.inf
