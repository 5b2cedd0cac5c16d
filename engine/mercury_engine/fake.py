"""An engine without a model: copies what followed the same text elsewhere, and reveals it as diffusion would.

After a dot it copies only a name that exists, and writes the first of these if there is none to copy.
"""

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile

from msgspec.structs import replace

from mercury_engine.api import (
    ChatReply,
    ChatRequest,
    Draft,
    Effort,
    Engine,
    EngineInfo,
    Gap,
    Region,
    Regions,
    Rewrites,
    Rewritten,
    Slot,
)
from mercury_engine.fake_chat import Says, conversation

MASK = "░"
PASSES: dict[Effort, int] = {"instant": 1, "low": 3, "medium": 4, "high": 6}

TOKEN = re.compile(r"\w+|\n[ \t]*|[ \t]+|[^\w\s]|\s")
WORD = re.compile(r"\w+")
BEGINNING, ENDING = re.compile(r"\w*"), re.compile(r"(?<!\w)\w*+\Z")
LONGEST_MATCH = 240
SHORTEST_MATCH = 3
"""In visible characters: two match everywhere."""
CANDIDATES = 64
BLOCK_LINES = 8

Answers = Callable[[str], str | None] | Mapping[str, str]

INFO = EngineInfo(
    engine="fake",
    model="copies what is already written",
    device="cpu",
    context_tokens=2048,
    chats=True,
)


class FakeEngine(Engine):
    """Deterministic. Without a script it copies from the text and snippets of the question.

    >>> FakeEngine(answers={"def area": "return width * height"}, passes=2)

    `answers` is called with the text before a gap, or maps a marker in that text to the answer; for a region it maps
    pieces to what they become, or is called with all of it. `says` is called with a
    conversation, or maps a marker in its last message to a text or to tool calls; else a schema gets JSON of its
    shape, a tool that must be called or that the last message names is called, and anything else is echoed. `passes`
    replaces the number of drafts of every effort but *instant*. `pause` is called before each forward, so that a
    test can count them or hold one open. `info` is what the engine reports about itself.
    """

    def __init__(
        self,
        answers: Answers | None = None,
        *,
        says: Says | None = None,
        passes: int | None = None,
        pause: Callable[[int], None] = lambda step: None,
        info: EngineInfo = INFO,
    ) -> None:
        self.answers = answers
        self.says = says
        self._info = info
        self.passes = passes
        self.pause = pause
        self.fills = 0
        self.rewrites = 0
        self.chats = 0
        self.warms = 0
        self.forwards = 0
        self.open = 0

    def fill(self, gap: Gap) -> Generator[Draft]:
        self.fills += 1
        with self._running():
            answer = _copied(gap) if self.answers is None else _scripted(self.answers, gap)
            passes = self._passes(gap.effort)
            for step in range(1, passes + 1):
                self._forward(step)
                draft = _draw(answer, step, passes, gap)
                yield replace(draft, step=step, final=step == passes, sent=self._sent(gap.path))

    def rewrite(self, regions: Regions) -> Generator[Rewrites]:
        self.rewrites += 1
        with self._running():
            texts = tuple(self._rewritten(region) for region in regions.regions)
            passes = self._passes("low")
            for step in range(1, passes + 1):
                self._forward(step)
                is_final = step == passes
                shown = texts if is_final else tuple(Rewritten(region.old) for region in regions.regions)
                yield Rewrites(step, shown, final=is_final, sent=self._sent(regions.regions[0].path))

    def chat(self, request: ChatRequest) -> Generator[ChatReply]:
        self.chats += 1
        with self._running():
            drafts = conversation(request, self.says, passes := self._passes(request.effort))
            for step in range(1, passes + 1):
                self._forward(step)
                yield next(drafts)

    def warm(self, question: Gap | Regions) -> Generator[None]:
        self.warms += 1
        with self._running():
            for step in range(1, self._passes("low") + 1):
                self._forward(step)
                yield

    def info(self) -> EngineInfo:
        return self._info

    @contextmanager
    def _running(self) -> Generator[None]:
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1

    def _forward(self, step: int) -> None:
        self.pause(step)
        self.forwards += 1

    def _passes(self, effort: Effort) -> int:
        return PASSES[effort] if self.passes is None or effort == "instant" else self.passes

    def _sent(self, path: str) -> str:
        return f"{path} to {self._info.address}" if self._info.address else ""

    def _rewritten(self, region: Region) -> Rewritten:
        if callable(self.answers):
            new = self.answers(region.old) or region.old
        else:
            new = region.old
            for before, after in (self.answers or {}).items():
                new = new.replace(before, after)
        return Rewritten(new, _confidence(new), 0.02 if new == region.old else 0.9, complete=True)


def _scripted(answers: Answers, gap: Gap) -> Draft:
    if callable(answers):
        text = answers(gap.before)
    else:
        marker = max((marker for marker in answers if marker in gap.before), key=gap.before.rfind, default=None)
        text = None if marker is None else answers[marker]
    return NOTHING if text is None else _answered(text, 0.9)


def _copied(gap: Gap) -> Draft:
    """The text behind the longest match of the text before the gap; the seed selects a runner-up."""
    continuations = _existing(gap, _continuations(gap))
    if not continuations:
        return NOTHING
    text, length = continuations[gap.seed % len(continuations)]
    tokens = TOKEN.findall(text)
    fitting = "".join(tokens[: gap.most_tokens])
    return _answered(fitting, round(length / (length + 0.8), 3), complete=len(tokens) <= gap.most_tokens)


def _answered(text: str, p_accept: float, *, complete: bool = True) -> Draft:
    return Draft(0, text, _confidence(text), p_accept, complete)


def _confidence(text: str) -> tuple[float, ...]:
    return (0.98,) * len(TOKEN.findall(text))


NOTHING = _answered("", 0.02)
"""Too unlikely to be shown."""


def _continuations(gap: Gap) -> list[tuple[str, int]]:
    """Distinct continuations with the length of their match, the longest first, then the nearest."""
    before = gap.before[-LONGEST_MATCH:]
    tail = gap.after.partition("\n")[0]
    seed = _shortest_suffix(before)
    if not seed:
        return []
    ranked = []
    texts = [gap.before, gap.after, *(snippet.text for snippet in gap.snippets)]
    for distance, (source, end) in enumerate(_occurrences(texts, seed)):
        text = _block(source, end, before) if gap.block else source[end:].partition("\n")[0].removesuffix(tail)
        if text.strip():
            ranked.append((-_match_length(source, end, before), distance, text))
    best: dict[str, int] = {}
    for length, _, text in sorted(ranked):
        best.setdefault(text, -length)
    return list(best.items())


def _existing(gap: Gap, continuations: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """The continuations, each with its length, that continue with a member at the cursor, if any are known."""
    names = next((members.names for members in gap.members if members.receiver == ""), ())
    if not names:
        return continuations
    typed = ENDING.search(gap.before)[0]  # pyright: ignore[reportOptionalSubscript]
    real = [
        continuation
        for continuation in continuations
        if BEGINNING.match(typed + continuation[0])[0] in names  # pyright: ignore[reportOptionalSubscript]
    ]
    return real or [(names[0].removeprefix(typed), SHORTEST_MATCH)]


def _shortest_suffix(before: str) -> str:
    """The end of `before` with SHORTEST_MATCH visible characters, or nothing."""
    visible = [index for index, character in enumerate(before) if not character.isspace()]
    return before[visible[-SHORTEST_MATCH] :] if len(visible) >= SHORTEST_MATCH else ""


def _occurrences(texts: list[str], seed: str) -> Iterator[tuple[str, int]]:
    """Where `seed` ends in the texts, each searched backwards; at most CANDIDATES."""
    remaining = CANDIDATES
    for text in texts:
        start = text.rfind(seed)
        while start >= 0 and remaining:
            remaining -= 1
            yield text, start + len(seed)
            start = text.rfind(seed, 0, start + len(seed) - 1)


def _match_length(source: str, end: int, before: str) -> int:
    """The number of equal visible characters before `end` and before the end of `before`."""
    pairs = zip(reversed(source[max(0, end - len(before)) : end]), reversed(before), strict=False)
    return sum(not pair_left.isspace() for pair_left, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _block(source: str, end: int, before: str) -> str:
    line = before.rpartition("\n")[2]
    margin = len(line) - len(line.lstrip())
    floor = margin if line.isspace() or not line else margin + 1
    first, *following = source[end:].split("\n")[:BLOCK_LINES]
    block = takewhile(lambda text: not text.strip() or len(text) - len(text.lstrip()) >= floor, following)
    return "\n".join([first, *block]).rstrip()


def _draw(answer: Draft, step: int, passes: int, gap: Gap) -> Draft:
    """The answer after `step` of `passes`: some tokens masked, some wrong and revised later."""
    slots = tuple(_slots(answer.text, step, passes, gap.seed))
    if step == passes:
        return replace(answer, slots=slots) if gap.slots else answer
    text = "".join(slot.text or MASK for slot in slots)
    confidence = tuple(slot.probability for slot in slots)
    return Draft(0, text, confidence, answer.p_accept * step / passes, slots=slots if gap.slots else ())


def _slots(text: str, step: int, passes: int, seed: int) -> Iterator[Slot]:
    """Each token of a text after `step` of `passes`. White space appears at once; in the last pass all is settled."""
    words = WORD.findall(text)
    for index, token in enumerate(TOKEN.findall(text)):
        age = step - 1 - (index * 7 + seed) % passes
        wrong = words[(index + 1) % len(words)] if index % 4 == 0 and WORD.match(token) else token
        if token.isspace():
            yield Slot(token, 0.9, settled=True)
        elif step == passes:
            yield Slot(token, 0.98, True, wrong != token and age > 0)
        elif age < 0:
            yield Slot("")
        elif age == 0 and wrong != token:
            yield Slot(wrong, 0.3)
        else:
            yield Slot(token, min(0.98, 0.6 + 0.12 * age), age > 0, wrong != token and age > 0)
