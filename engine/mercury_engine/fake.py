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
    Edit,
    Effort,
    EngineInfo,
    Filled,
    InfillRequest,
    Slot,
    Span,
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

INFO = EngineInfo(engine="fake", model="copies what is already written", device="cpu", context_tokens=2048, chats=True)


class FakeEngine:
    """Deterministic. Without a script it copies from the windows and snippets of the request.

    >>> FakeEngine(answers={"def area": "return width * height"}, passes=2)

    `answers` is called with the text before the span, or maps a marker in that text to the answer; for a region,
    which is a whole window, it maps pieces to what they become, or is called with all of it. `says` is called with a
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
        self.infills = 0
        self.chats = 0
        self.warms = 0
        self.forwards = 0
        self.open = 0

    def infill(self, request: InfillRequest) -> Generator[Draft]:
        self.infills += 1
        sent = f"{request.windows[0].path} to {self._info.address}" if self._info.address else ""
        with self._running():
            answers = [self._answer(request, span) for span in request.spans]
            passes = self._passes(request.effort)
            for step in range(1, passes + 1):
                self._forward(step)
                spans = tuple(_draw(filled, step, passes, request) for filled in answers)
                yield Draft(step, spans, final=step == passes, sent=sent)

    def chat(self, request: ChatRequest) -> Generator[ChatReply]:
        self.chats += 1
        with self._running():
            drafts = conversation(request, self.says, passes := self._passes(request.effort))
            for step in range(1, passes + 1):
                self._forward(step)
                yield next(drafts)

    def warm(self, request: InfillRequest) -> Generator[None]:
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

    def _answer(self, request: InfillRequest, span: Span) -> Filled:
        if self.answers is not None:
            scripted = _rewritten if span.mode == "region" else _scripted
            return scripted(self.answers, request, span)
        return _copied(request, span) if span.mode in ("line", "block") else _propagated(request, span)


def _scripted(answers: Answers, request: InfillRequest, span: Span) -> Filled:
    window = request.windows[span.window].text
    before = window[: span.start]
    if callable(answers):
        text = answers(before)
    else:
        marker = max((marker for marker in answers if marker in before), key=before.rfind, default=None)
        text = None if marker is None else answers[marker]
    if text is None:
        return _unchanged(window, span)
    return _answered(text, 0.9)


def _rewritten(answers: Answers, request: InfillRequest, span: Span) -> Filled:
    window = request.windows[span.window].text
    old = new = window[span.start : span.end]
    if callable(answers):
        new = answers(old) or old
    else:
        for before, after in answers.items():
            new = new.replace(before, after)
    return _answered(new, 0.9) if new != old else _unchanged(window, span)


def _copied(request: InfillRequest, span: Span) -> Filled:
    """The text behind the longest match of the text before the span; the seed selects a runner-up."""
    window = request.windows[span.window].text
    continuations = _existing(request, span, _continuations(request, span))
    if not continuations:
        return _unchanged(window, span)
    text, length = continuations[request.seed % len(continuations)]
    tokens = TOKEN.findall(text)
    fitting = "".join(tokens[: span.budget])
    return _answered(fitting, round(length / (length + 0.8), 3), complete=len(tokens) <= span.budget)


def _propagated(request: InfillRequest, span: Span) -> Filled:
    """The user's latest edit, applied wherever the span still has the old words."""
    window = request.windows[span.window].text
    old = window[span.start : span.end]
    if not request.edits:
        return _unchanged(window, span)
    before, after = _changed_words(request.edits[-1])
    if not WORD.search(before):
        return _unchanged(window, span)
    new = re.sub(rf"(?<!\w){re.escape(before)}(?!\w)", lambda _: after, old)
    return _answered(new, 0.8) if new != old else _unchanged(window, span)


def _unchanged(window: str, span: Span) -> Filled:
    """The old text, too unlikely to be shown."""
    return _answered(window[span.start : span.end], 0.02)


def _answered(text: str, p_accept: float, *, complete: bool = True) -> Filled:
    return Filled(text, (0.98,) * len(TOKEN.findall(text)), p_accept, complete)


def _continuations(request: InfillRequest, span: Span) -> list[tuple[str, int]]:
    """Distinct continuations with the length of their match, the longest first, then the nearest."""
    window = request.windows[span.window].text
    before = window[max(0, span.start - LONGEST_MATCH) : span.start]
    tail = window[span.end :].partition("\n")[0]
    seed = _shortest_suffix(before)
    if not seed:
        return []
    ranked = []
    for distance, (source, end) in enumerate(_occurrences(_sources(request, span), seed)):
        text = _continuation(source, end, before, span)
        text = text.removesuffix(tail) if span.mode == "line" else text
        if text.strip():
            ranked.append((-_match_length(source, end, before), distance, text))
    best: dict[str, int] = {}
    for length, _, text in sorted(ranked):
        best.setdefault(text, -length)
    return list(best.items())


def _existing(request: InfillRequest, span: Span, continuations: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """The continuations, each with its length, that continue with a member at the cursor, if any are known."""
    names = next((m.names for m in request.members if m.role == "member" and m.receiver == ""), ())
    if not names:
        return continuations
    typed = ENDING.search(request.windows[span.window].text[: span.start])[0]  # pyright: ignore[reportOptionalSubscript]
    real = [
        continuation
        for continuation in continuations
        if BEGINNING.match(typed + continuation[0])[0] in names  # pyright: ignore[reportOptionalSubscript]
    ]
    return real or [(names[0].removeprefix(typed), SHORTEST_MATCH)]


def _sources(request: InfillRequest, span: Span) -> list[str]:
    """Texts to copy from, nearest first. No match spans two of them."""
    window = request.windows[span.window].text
    other_texts = [other.text for index, other in enumerate(request.windows) if index != span.window]
    return [
        window[: span.start],
        window[span.end :],
        *other_texts,
        *(snippet.text for snippet in request.snippets),
    ]


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


def _continuation(source: str, end: int, before: str, span: Span) -> str:
    if span.mode == "line":
        return source[end:].partition("\n")[0]
    line = before.rpartition("\n")[2]
    margin = len(line) - len(line.lstrip())
    floor = margin if line.isspace() or not line else margin + 1
    first, *following = source[end:].split("\n")[:BLOCK_LINES]
    block = takewhile(lambda text: not text.strip() or len(text) - len(text.lstrip()) >= floor, following)
    return "\n".join([first, *block]).rstrip()


def _changed_words(edit: Edit) -> tuple[str, str]:
    """What the edit changed, widened to whole words."""
    before, after = TOKEN.findall(edit.before), TOKEN.findall(edit.after)
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    tail = zip(reversed(before[start:]), reversed(after[start:]), strict=False)
    end = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], tail))
    return "".join(before[start : len(before) - end]), "".join(after[start : len(after) - end])


def _draw(answer: Filled, step: int, passes: int, request: InfillRequest) -> Filled:
    """The answer after `step` of `passes`: some tokens masked, some wrong and revised later."""
    slots = tuple(_slots(answer.text, step, passes, request.seed))
    if step == passes:
        return replace(answer, slots=slots) if request.slots else answer
    text = "".join(slot.text or MASK for slot in slots)
    confidence = tuple(slot.probability for slot in slots)
    return Filled(text, confidence, answer.p_accept * step / passes, slots=slots if request.slots else ())


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
