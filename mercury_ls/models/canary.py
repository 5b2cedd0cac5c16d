"""Whether a model understands its prompts: questions whose answers every model knows that was trained for them."""

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Draft, Edit, Engine, EngineError, EngineInfo, Gap, Region, Regions, Rewrites, Rewritten

CURSOR = "‸"
SECONDS = 10.0
OWN_SECONDS = 6.0
"""Of these for its own format."""
DEADLINE_MS = 5000.0
QUESTIONS = 10
GAP_TOKENS = 16
SAMPLE = 3
"""Questions after which it is clear that another format is no better."""


class KnownGap(Struct, frozen=True):
    """`right_lines` are the answers that are right; more may follow them."""

    path: str
    language: str
    text: str
    right_lines: tuple[str, ...]

    def asked(self, engine: Engine, typed: str = "", deadline_ms: float | None = None) -> Generator[Draft]:
        before, _, after = self.text.partition(CURSOR)
        gap = Gap(
            session="canary",
            path=self.path,
            language=self.language,
            before=before + typed,
            after=after,
            most_tokens=GAP_TOKENS,
            deadline_ms=deadline_ms,
        )
        return engine.fill(gap)

    def is_right(self, answer: str) -> bool:
        line = answer.strip().split("\n")[0]
        return any(_bare(line) == _bare(right_line) for right_line in self.right_lines)


class Rewrite(Struct, frozen=True):
    """A line was edited from `before` to `after`. In the text that this left, `due` is what the line below it should
    become; nothing else may change. No edit is due if that is empty."""

    path: str
    language: str
    above: str
    before: str
    after: str
    below: str
    due: str = ""

    def asked(self, engine: Engine, typed: str = "", deadline_ms: float | None = None) -> Generator[Rewrites]:
        edited = self.above + self.after[:-1] + typed
        edit = Edit(self.path, self.above.count("\n"), self.before, self.after, self.above, self.below)
        regions = Regions(
            session="canary",
            regions=(Region(self.path, self.language, f"{edited}\n{self.below}"),),
            cursor=len(edited),
            edits=(edit,),
            deadline_ms=deadline_ms,
        )
        return engine.rewrite(regions)

    def is_right(self, answer: str) -> bool:
        first, feed, tail = self.below.partition("\n")
        expected = self.above + self.after + (self.due or first) + feed + tail
        return answer.rstrip() == expected.rstrip()


Question = KnownGap | Rewrite


class _Questions(Struct, frozen=True):
    gaps: tuple[KnownGap, ...]
    rewrites: tuple[Rewrite, ...]


_KNOWN = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=_Questions)
GAPS, REWRITES = _KNOWN.gaps, _KNOWN.rewrites


class Verdict(Struct, frozen=True):
    """Of `asked` questions `right` got the right answer, not those about the `failed` files. In the format `better`, if
    there is one, the model does better than in its own."""

    right: int
    asked: int
    better: str = ""
    failed: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        return 2 * self.right > self.asked

    def __str__(self) -> str:
        if self.fits:
            return f"answers in its format: {self.right} of {self._questions}"
        if self.better:
            return f"answers, but not in this format ({self.right} of {self.asked} right): try --prompt {self.better}"
        if not self.asked:
            return "was too slow to be examined"
        return f"is weak: {self.right} of {self._questions}"

    @property
    def _questions(self) -> str:
        failed = f" (wrong in {', '.join(self.failed)})" if self.failed else ""
        return f"{self.asked} questions with a known answer are right{failed}"


Open = Callable[[str], AbstractContextManager[Engine]]
"""The model, asked in the format of that name."""


def judged(
    engine: Engine, formats: Iterable[str], open_model: Open, clock: Callable[[], float] = time.monotonic
) -> Verdict:
    """How a model does in the format that it is asked in, and if it does not answer in that, in which of the others it
    does better. `EngineError` says why it answers nothing at all."""
    began, problem = clock(), None
    try:
        verdict = examined(engine, began + OWN_SECONDS, clock)
    except EngineError as error:
        verdict, problem = Verdict(0, 0), error
    if verdict.fits:
        return verdict
    until, best, better = began + SECONDS, max(verdict.right / max(verdict.asked, 1), 1 / SAMPLE), ""
    for other in formats:
        if clock() >= until or best == 1.0:
            break
        try:
            with open_model(other) as engine:
                sample = examined(engine, until, clock, SAMPLE, int(best * SAMPLE) + 1)
        except EngineError:
            continue
        if sample.right > best * SAMPLE:
            best, better = sample.right / SAMPLE, other
    if problem and not better:
        raise problem
    return replace(verdict, better=better)


def examined(
    engine: Engine,
    until: float,
    clock: Callable[[], float] = time.monotonic,
    limit: int = QUESTIONS,
    needed: int = QUESTIONS // 2 + 1,
) -> Verdict:
    """Asks questions about all that the model answers, until it is decided whether as many as are needed are right, or
    there is no time left. `EngineError` if it could answer none."""
    right, asked, problem = 0, 0, None
    failed: list[str] = []
    for question in _questions_for(engine.info())[:limit]:
        if (now := clock()) >= until or right >= needed or right + limit - asked < needed:
            break
        asked += 1
        deadline_ms = min(DEADLINE_MS, 1000 * (until - now))
        try:
            is_right = question.is_right(_answer(question.asked(engine, deadline_ms=deadline_ms)))
        except EngineError as error:
            problem = error if problem or asked == 1 else None
        else:
            problem = None
            right += is_right
            failed += [] if is_right else [question.path]
    if problem:
        raise problem
    return Verdict(right, asked, failed=tuple(failed))


def _questions_for(info: EngineInfo) -> Sequence[Question]:
    if not info.rewrites:
        return GAPS
    return [*chain.from_iterable(zip(GAPS, REWRITES, strict=True))] if info.fills else REWRITES


def told(answer: Draft | Rewrites) -> Draft | Rewritten:
    return answer.regions[0] if isinstance(answer, Rewrites) else answer


def _answer(answers: Iterable[Draft | Rewrites]) -> str:
    *_, last = answers
    return told(last).text


def _bare(line: str) -> str:
    return "".join(line.split()).rstrip(";")
