"""Training examples: completions, edits and running text, each laid out as the engine does when serving.

    example = left_to_right(tokenizer, window, tokens, room)
    example = completion(tokenizer, Site(...), budget, draw)
    example = next_edit(tokenizer, edit_row, budget, draw)

An example is a `Stream`, a row with its answers. Completions freeze an older state of the
document than the one that they complete, as happens in an editor.
"""

import re
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.api import Edit, InfillRequest, Snippet, Span, SpanMode, Window
from mercury_engine.tokens.blocks import Block
from mercury_engine.tokens.layout import JUMP_LINES, Budget, LayoutError, LayoutRow, answer_ids, freeze, lay_out
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import HOLE_STRIDE, PRE, SUF
from mercury_training.corpus.shards import EditRow, Replacement
from mercury_training.corpus.synthetic import lines_of
from mercury_training.rows.streams import Stream, with_answers, without_modes

KINDS = {"tail": 0.35, "line": 0.2, "block": 0.2, "characters": 0.15, "holes": 0.1}
"""The kinds of completions and their probabilities."""

NO_MODE = 0.2
STALE = 0.5
RECENT = 0.5
LONGEST_CHARACTERS = 240
LONGEST_BLOCK = 12
"""In lines."""

CLOSERS = re.compile(r"[)\]}>\"'`;:,]+$")
WORD = re.compile(r"\w+|[^\w\s]+")


class TrainingExample(Struct, frozen=True, eq=False):
    """A stream, the number of its rows before the answers, and per hole its anchor there, its answer with `<eom>`, and
    its first draft (the old text; empty for an insertion)."""

    stream: Stream
    base: int
    anchors: tuple[int, ...] = ()
    answers: tuple[tuple[int, ...], ...] = ()
    drafts: tuple[tuple[int, ...], ...] = ()


class Site(Struct, frozen=True):
    """A window of a document, an offset in it to complete near, and related code."""

    window: Window
    offset: int
    snippets: tuple[Snippet, ...] = ()


class Gap(Struct, frozen=True):
    """A range of a text that is removed for the model to fill in."""

    start: int
    stop: int
    mode: SpanMode


def left_to_right(tokenizer: Tokenizer, window: Window, tokens: np.ndarray, room: int) -> TrainingExample | None:
    """Running text of `room` tokens, or all there is; None if the header alone fills the room."""
    bare = Window(window.path, window.language, "")
    request = InfillRequest(session="", windows=(bare,), spans=(Span(0, 0, 0, "line"),))
    header = [*freeze(tokenizer, request, Budget(path=8)).preamble, SUF, PRE]
    if room <= len(header):
        return None
    ids = np.concatenate([np.array(header, np.int32), tokens[: room - len(header)].astype(np.int32)])
    size = len(ids)
    positions = np.arange(size, dtype=np.int32)
    return TrainingExample(Stream(ids, positions, (Block(size),), ()), size)


def completion(tokenizer: Tokenizer, place: Site, budget: Budget, draw: np.random.Generator) -> TrainingExample | None:
    """Text removed near the site's offset; None if nothing there is suitable or the example does not fit."""
    kind = draw.choice(list(KINDS), p=list(KINDS.values()))
    text = place.window.text
    cuts = _several(text, place.offset, draw) if kind == "holes" else [CUTTERS[kind](text, place.offset, draw)]
    cuts = [cut for cut in cuts if cut is not None and cut.start < cut.stop]
    if not cuts:
        return None
    pieces, spans, at, removed = [], [], 0, 0
    for cut in cuts:
        pieces.append(text[at : cut.start])
        spans.append(Span(0, cut.start - removed, cut.start - removed, cut.mode))
        at, removed = cut.stop, removed + cut.stop - cut.start
    window = Window(place.window.path, place.window.language, "".join([*pieces, text[at:]]))
    edits = _recent(window, spans[0].start, draw)
    request = InfillRequest(session="", windows=(window,), spans=tuple(spans), snippets=place.snippets, edits=edits)
    return _example(tokenizer, request, [text[cut.start : cut.stop] for cut in cuts], budget, draw)


def next_edit(tokenizer: Tokenizer, row: EditRow, budget: Budget, draw: np.random.Generator) -> TrainingExample | None:
    """A rewrite of a few lines with the next change, or with several at once; if none is due, the lines stay as they
    are."""
    lines = lines_of(row.window) or [""]
    several = len(row.expected) > 1 and draw.random() < 0.3
    expected = _together(row.expected, draw) if several else row.expected[row.next : row.next + 1]
    if not expected:
        near = row.cursor if row.cursor >= 0 else int(draw.integers(len(lines)))
        first = int(np.clip(near + draw.integers(-4, 5), 0, len(lines) - 1))
        expected = (Replacement(first, first, ""),)
    regions, answers, floor = [], [], 0
    for number, change in enumerate(expected):
        ceiling = expected[number + 1].first if number + 1 < len(expected) else len(lines)
        first = max(floor, change.first - int(draw.integers(3)))
        stop = min(ceiling, change.stop + int(draw.integers(3)))
        regions.append((sum(map(len, lines[:first])), sum(map(len, lines[:stop]))))
        answers.append("".join([*lines[first : change.first], change.text, *lines[change.stop : stop]]))
        floor = stop
    window = Window(row.path, row.language, "".join(lines))
    request = InfillRequest(
        session="",
        windows=(window,),
        spans=tuple(Span(0, start, stop, "edit") for start, stop in regions),
        edits=row.edits,
    )
    return _example(tokenizer, request, answers, budget, draw)


def _example(
    tokenizer: Tokenizer,
    request: InfillRequest,
    texts: Sequence[str],
    budget: Budget,
    draw: np.random.Generator,
) -> TrainingExample | None:
    try:
        row = lay_out(tokenizer, request, freeze(tokenizer, _older(request, draw), budget), budget)
    except LayoutError:
        return None
    if draw.random() < NO_MODE:
        row = without_modes(row)
    answers = tuple(tuple(answer_ids(tokenizer, hole, text)) for hole, text in zip(row.holes, texts, strict=True))
    longest = budget.answer if len(answers) == 1 else HOLE_STRIDE - 1
    if max(map(len, answers)) > longest or len(row.ids) + sum(map(len, answers)) > budget.context:
        return None
    return answered(row, answers)


def answered(row: LayoutRow, answers: tuple[tuple[int, ...], ...]) -> TrainingExample:
    """A row with its answers, one for each hole."""
    return TrainingExample(
        with_answers(row, answers),
        len(row.ids),
        tuple(hole.anchor for hole in row.holes),
        answers,
        tuple(hole.old for hole in row.holes),
    )


def _older(request: InfillRequest, draw: np.random.Generator) -> InfillRequest:
    """The older state that was frozen: the cursor up to a jump away, the newest edits missing."""
    if draw.random() >= STALE:
        return request
    text, cursor = request.windows[0].text, request.spans[0].start
    moved = _moved(text, cursor, int(draw.integers(-JUMP_LINES, JUMP_LINES + 1)))
    edits = request.edits[: max(0, len(request.edits) - int(draw.integers(3)))]
    return InfillRequest(
        session="",
        windows=request.windows,
        spans=(Span(0, moved, moved, request.spans[0].mode),),
        snippets=request.snippets,
        edits=edits,
    )


def _moved(text: str, cursor: int, lines: int) -> int:
    """The beginning of the line this many lines further down, or up."""
    at = text.rfind("\n", 0, cursor) + 1
    for _ in range(abs(lines)):
        at = text.rfind("\n", 0, max(0, at - 1)) + 1 if lines < 0 else text.find("\n", at) + 1 or at
    return at


def _recent(window: Window, cursor: int, draw: np.random.Generator) -> tuple[Edit, ...]:
    """Lines above the cursor, presented as recent edits."""
    if draw.random() >= RECENT:
        return ()
    above = [line for line in window.text[:cursor].splitlines()[:-1][-40:] if line.strip()]
    if not above:
        return ()
    chosen = sorted(draw.integers(len(above), size=int(draw.integers(1, 5))).tolist())
    edits = []
    for number in dict.fromkeys(chosen):
        line = above[number]
        shorter = line[: int(draw.integers(len(line) + 1))]
        before = f"{shorter}\n" if draw.random() < 0.3 and shorter.strip() else ""
        edits.append(Edit(window.path, number, before, f"{line}\n"))
    return tuple(edits)


def _together(expected: Sequence[Replacement], draw: np.random.Generator) -> tuple[Replacement, ...]:
    """Two to four neighbouring changes."""
    count = min(len(expected), int(draw.integers(2, 5)))
    first = int(draw.integers(len(expected) - count + 1))
    return tuple(expected[first : first + count])


def _line_at(text: str, offset: int) -> tuple[int, int]:
    """The line around an offset, without its end; if it is blank, the next one that is not."""
    start = text.rfind("\n", 0, offset) + 1
    while True:
        stop = text.find("\n", start)
        stop = len(text) if stop < 0 else stop
        if text[start:stop].strip() or stop == len(text):
            return start, stop
        start = stop + 1


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _tail(text: str, offset: int, draw: np.random.Generator) -> Gap | None:
    """From somewhere in a line to its end, sometimes only up to the closing brackets that are already there."""
    start, stop = _line_at(text, offset)
    line = text[start:stop]
    indentation = _indentation(line)
    boundaries = [match.start() for match in WORD.finditer(line)]
    if draw.random() < 0.5 and boundaries:
        cut = int(draw.choice(boundaries))
    else:
        cut = int(draw.integers(indentation, len(line) + 1))
    end = len(line)
    closers = CLOSERS.search(line)
    if closers and closers.start() > cut and draw.random() < 0.25:
        end = int(draw.integers(closers.start(), len(line)))
    return Gap(start + cut, start + end, "line")


def _whole_line(text: str, offset: int, draw: np.random.Generator) -> Gap | None:
    start, stop = _line_at(text, offset)
    indented = draw.random() < 0.6
    line_end = not indented and stop < len(text) and draw.random() < 0.3
    return Gap(start + indented * _indentation(text[start:stop]), stop + line_end, "line")


def _block(text: str, offset: int, draw: np.random.Generator) -> Gap | None:
    """The rest of an indented block from some line on, or the last lines of a long one."""
    start, stop = _line_at(text, offset)
    depth = _indentation(text[start:stop])
    starts, stops = [start], [stop]
    while stop < len(text):
        following = stop + 1
        stop = text.find("\n", following)
        stop = len(text) if stop < 0 else stop
        line = text[following:stop]
        if line.strip():
            if _indentation(line) < depth or (depth == 0 and len(starts) > 1 and not line[0].isspace()):
                break
            starts.append(following)
            stops.append(stop)
        if len(starts) > 4 * LONGEST_BLOCK:
            break
    first = max(0, len(starts) - int(draw.integers(2, LONGEST_BLOCK + 1)))
    begin = starts[first]
    where = draw.random()
    if where < 0.6:
        begin += _indentation(text[begin : stops[first]])
    elif where < 0.8:
        begin = max(0, begin - 1)
    line_end = where >= 0.8 and stops[-1] < len(text) and draw.random() < 0.5
    return Gap(begin, stops[-1] + line_end, "block")


def _characters(text: str, offset: int, draw: np.random.Generator) -> Gap | None:
    """Any range of characters; short ones are more frequent."""
    length = int(np.exp(draw.uniform(0, np.log(LONGEST_CHARACTERS))))
    start = max(0, offset - int(draw.integers(8)))
    stop = min(len(text), start + length)
    return Gap(start, stop, "block" if "\n" in text[start:stop] else "line")


CUTTERS = {"tail": _tail, "line": _whole_line, "block": _block, "characters": _characters}


def _several(text: str, offset: int, draw: np.random.Generator) -> list[Gap]:
    """Two to four cuts in neighbouring lines, from the top down."""
    cuts: list[Gap] = []
    for _ in range(int(draw.integers(2, 5))):
        kind = ("tail", "line", "characters")[int(draw.integers(3))]
        cut = CUTTERS[kind](text, offset, draw)
        if cut and (not cuts or cut.start > cuts[-1].stop):
            cuts.append(cut)
        for _ in range(int(draw.integers(1, 6))):
            offset = text.find("\n", offset) + 1 or len(text)
        if offset >= len(text):
            break
    return cuts
