"""Training examples: completions, edits and running text, each laid out as the engine does when serving.

    example = left_to_right(tokenizer, path, language, tokens, room)
    example = completion(tokenizer, Site(...), budget, draw)
    example = next_edit(tokenizer, edit_row, budget, draw)

An example is a `Stream`, a row with its answers. Completions freeze an older state of the
document than the one that they complete, as happens in an editor.
"""

import re
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Edit, Gap, Snippet
from mercury_engine.tokens.layout import JUMP_LINES, Budget, LayoutError, freeze, lay_out
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import BLOCK, LINE, PRE, REGION, SUF
from mercury_training.corpus.shards import EditRow, Replacement
from mercury_training.corpus.synthetic import lines_of
from mercury_training.rows.blocks import Block
from mercury_training.rows.holes import HOLE_STRIDE, AnchoredRow, Hole, answer_ids, lay_out_holes
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
    """A part of a document, an offset in it to complete near, and related code."""

    path: str
    language: str
    text: str
    offset: int
    snippets: tuple[Snippet, ...] = ()


class Removal(Struct, frozen=True):
    """A range of a text that is removed for the model to fill in."""

    start: int
    stop: int
    block: bool


def left_to_right(
    tokenizer: Tokenizer, path: str, language: str, tokens: np.ndarray, room: int
) -> TrainingExample | None:
    """Running text of `room` tokens, or all there is; None if the header alone fills the room."""
    bare = Gap(session="", path=path, language=language, before="")
    header = [*freeze(tokenizer, bare, Budget(path=8)).preamble, SUF, PRE]
    if room <= len(header):
        return None
    ids = np.concatenate([np.array(header, np.int32), tokens[: room - len(header)].astype(np.int32)])
    size = len(ids)
    positions = np.arange(size, dtype=np.int32)
    return TrainingExample(Stream(ids, positions, (Block(size),), ()), size)


def completion(tokenizer: Tokenizer, place: Site, budget: Budget, draw: np.random.Generator) -> TrainingExample | None:
    """Text removed near the site's offset; None if nothing there is suitable or the example does not fit."""
    kind = draw.choice(list(KINDS), p=list(KINDS.values()))
    text = place.text
    cuts = _several(text, place.offset, draw) if kind == "holes" else [CUTTERS[kind](text, place.offset, draw)]
    cuts = [cut for cut in cuts if cut is not None and cut.start < cut.stop]
    if not cuts:
        return None
    pieces, holes, at, removed = [], [], 0, 0
    for cut in cuts:
        pieces.append(text[at : cut.start])
        holes.append(Hole(cut.start - removed, cut.start - removed, BLOCK if cut.block else LINE))
        at, removed = cut.stop, removed + cut.stop - cut.start
    remaining, cursor = "".join([*pieces, text[at:]]), holes[0].start
    gap = Gap(
        session="",
        path=place.path,
        language=place.language,
        before=remaining[:cursor],
        after=remaining[cursor:],
        block=cuts[0].block,
        snippets=place.snippets,
        edits=_recent(place.path, remaining[:cursor], draw),
    )
    return _example(tokenizer, gap, holes, [text[cut.start : cut.stop] for cut in cuts], budget, draw)


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
    holes, answers, floor = [], [], 0
    for number, change in enumerate(expected):
        ceiling = expected[number + 1].first if number + 1 < len(expected) else len(lines)
        first = max(floor, change.first - int(draw.integers(3)))
        stop = min(ceiling, change.stop + int(draw.integers(3)))
        holes.append(Hole(sum(map(len, lines[:first])), sum(map(len, lines[:stop])), REGION))
        answers.append("".join([*lines[first : change.first], change.text, *lines[change.stop : stop]]))
        floor = stop
    text, cursor = "".join(lines), holes[0].start
    gap = Gap(
        session="",
        path=row.path,
        language=row.language,
        before=text[:cursor],
        after=text[cursor:],
        edits=row.edits,
    )
    return _example(tokenizer, gap, holes, answers, budget, draw)


def _example(
    tokenizer: Tokenizer,
    gap: Gap,
    holes: Sequence[Hole],
    texts: Sequence[str],
    budget: Budget,
    draw: np.random.Generator,
) -> TrainingExample | None:
    """The gap, or the holes in its text, of which the first is there."""
    try:
        frozen = freeze(tokenizer, _older(gap, draw), budget)
        if len(holes) == 1 and holes[0].start == holes[0].end:
            row = AnchoredRow.of(lay_out(tokenizer, gap, frozen, budget))
        else:
            row = lay_out_holes(tokenizer, gap.before + gap.after, holes, frozen, budget)
    except LayoutError:
        return None
    if draw.random() < NO_MODE:
        row = without_modes(row)
    pairs = zip(row.anchors, texts, strict=True)
    answers = tuple(tuple(answer_ids(tokenizer, anchor.part, text)) for anchor, text in pairs)
    longest = budget.answer if len(answers) == 1 else HOLE_STRIDE - 1
    if max(map(len, answers)) > longest or len(row.ids) + sum(map(len, answers)) > budget.context:
        return None
    return answered(row, answers)


def answered(row: AnchoredRow, answers: tuple[tuple[int, ...], ...]) -> TrainingExample:
    """A row with its answers, one for each hole."""
    return TrainingExample(
        with_answers(row, answers),
        len(row.ids),
        tuple(anchor.at for anchor in row.anchors),
        answers,
        tuple(anchor.old for anchor in row.anchors),
    )


def _older(gap: Gap, draw: np.random.Generator) -> Gap:
    """The older state that was frozen: the cursor up to a jump away, the newest edits missing."""
    if draw.random() >= STALE:
        return gap
    text = gap.before + gap.after
    moved = _moved(text, len(gap.before), int(draw.integers(-JUMP_LINES, JUMP_LINES + 1)))
    edits = gap.edits[: max(0, len(gap.edits) - int(draw.integers(3)))]
    return replace(gap, before=text[:moved], after=text[moved:], edits=edits)


def _moved(text: str, cursor: int, lines: int) -> int:
    """The beginning of the line this many lines further down, or up."""
    at = text.rfind("\n", 0, cursor) + 1
    for _ in range(abs(lines)):
        at = text.rfind("\n", 0, max(0, at - 1)) + 1 if lines < 0 else text.find("\n", at) + 1 or at
    return at


def _recent(path: str, before: str, draw: np.random.Generator) -> tuple[Edit, ...]:
    """Lines above the cursor, presented as recent edits."""
    if draw.random() >= RECENT:
        return ()
    above = [line for line in before.splitlines()[:-1][-40:] if line.strip()]
    if not above:
        return ()
    chosen = sorted(draw.integers(len(above), size=int(draw.integers(1, 5))).tolist())
    edits = []
    for number in dict.fromkeys(chosen):
        line = above[number]
        shorter = line[: int(draw.integers(len(line) + 1))]
        old = f"{shorter}\n" if draw.random() < 0.3 and shorter.strip() else ""
        edits.append(Edit(path, number, old, f"{line}\n"))
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


def _tail(text: str, offset: int, draw: np.random.Generator) -> Removal | None:
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
    return Removal(start + cut, start + end, block=False)


def _whole_line(text: str, offset: int, draw: np.random.Generator) -> Removal | None:
    start, stop = _line_at(text, offset)
    indented = draw.random() < 0.6
    line_end = not indented and stop < len(text) and draw.random() < 0.3
    return Removal(start + indented * _indentation(text[start:stop]), stop + line_end, block=False)


def _block(text: str, offset: int, draw: np.random.Generator) -> Removal | None:
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
    return Removal(begin, stops[-1] + line_end, block=True)


def _characters(text: str, offset: int, draw: np.random.Generator) -> Removal | None:
    """Any range of characters; short ones are more frequent."""
    length = int(np.exp(draw.uniform(0, np.log(LONGEST_CHARACTERS))))
    start = max(0, offset - int(draw.integers(8)))
    stop = min(len(text), start + length)
    return Removal(start, stop, block="\n" in text[start:stop])


CUTTERS = {"tail": _tail, "line": _whole_line, "block": _block, "characters": _characters}


def _several(text: str, offset: int, draw: np.random.Generator) -> list[Removal]:
    """Two to four cuts in neighbouring lines, from the top down."""
    cuts: list[Removal] = []
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
