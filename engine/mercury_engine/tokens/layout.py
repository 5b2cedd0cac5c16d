"""The token contract between engine and training: which ids stand where, at which positions, who sees whom.

A completion is laid out as

    <bos> <lang:x> <path> p {<snip> path text}* <edits> edits <suf> far suffix
    <pre> lines before <near> rest of the line and 48 tokens <mode> <cur> head of the line <part> bytes ▸

and anything else (a span to rewrite, several spans) as

    <bos> <lang:x> <path> p {<snip> path text}* <edits> edits
    <pre> text <hole0> <mode> <part> bytes <old> text </old> text <hole1> … {<path> p <pre> text …}*
    <hole0> ▸ <hole1> ▸

Everything that stands before `<pre>` is frozen (`Frozen`) until the cursor jumps or the user pauses. Row i
predicts token i + 1 everywhere. Serving and training call the same functions on an `InfillRequest`; training
freezes an older state of the document and lays out a newer one. A change of meaning needs a new
`LAYOUT_VERSION`.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace

from mercury_engine.api import Edit, EngineError, InfillRequest, Snippet, Span, Window

if TYPE_CHECKING:
    from mercury_engine.tokens.tokenizer import Tokenizer

__all__ = [
    "BOS",
    "CANVASES",
    "EOM",
    "HOLES",
    "HOLE_STRIDE",
    "LANGUAGES",
    "LAYOUT_VERSION",
    "MASK",
    "MAXIMUM_PART",
    "PAD",
    "SPECIALS",
    "Block",
    "Budget",
    "Frozen",
    "Hole",
    "LayoutError",
    "Row",
    "Stream",
    "answer_ids",
    "budget_for",
    "canvas_mask",
    "canvas_slots",
    "draft_blocks",
    "filled_text",
    "freeze",
    "is_stale",
    "lay_out",
    "show",
    "slot_positions",
    "until_end",
    "visible_ranges",
    "with_answers",
    "without_modes",
]

LAYOUT_VERSION = 1

CANVASES = (8, 16, 32, 64)
"""How many slots a canvas may have."""

HOLE_STRIDE = 65
"""Anchors stand this far apart: one position for the anchor and 64 for its slots, whatever the canvas' size.
Among several holes, an answer that needs more is continued by laying out again with the accepted text in the
window."""

MAXIMUM_PART = 32
"""Bytes of a begun word that the canvas spells again."""

JUMP_LINES = 8
"""Moving the cursor further than this many lines is a jump."""

SHORTEST_SNIPPET = 32
"""Tokens; a snippet that would have to be shorter is left out."""

BEYOND = 4096
"""Tokens that are heard without being read."""

LANGUAGES = (
    *("python", "javascript", "typescript", "tsx", "rust", "go", "c", "cpp", "java", "csharp", "ruby", "php"),
    *(
        "bash",
        "lua",
        "json",
        "html",
        "css",
        "markdown",
        "text",
        "yaml",
        "toml",
        "xml",
        "sql",
        "kotlin",
        "swift",
    ),
)

SPECIALS = (
    *("<bos>", "<pad>", "<mask>", "<eom>"),
    *("<suf>", "<pre>", "<near>", "<cur>", "<snip>", "<path>", "<edits>"),
    *("<line>", "<block>", "<region>"),
    "<part>",
    *(f"<hole{i}>" for i in range(8)),
    *("<old>", "</old>", "<del>", "<ins>", "<keep>"),
    *("<tool>", "</tool>", "<result>", "</result>", "<json>", "</json>"),
    *(f"<lang:{language}>" for language in LANGUAGES),
    *(f"<reserved{i}>" for i in range(5)),
)
"""The reserved ids 0 to 63. The byte tokens that follow `<part>` are the tokenizer's own: a byte-level
vocabulary holds a symbol for each of the 256 bytes."""

BOS, PAD, MASK, EOM = range(4)
SUF, PRE, NEAR, CUR, SNIP, PATH, EDITS = range(4, 11)
LINE, BLOCK, REGION = MODES = range(11, 14)
PART = 14
HOLES = range(15, 23)
OLD, OLD_END = 23, 24

MODE_OF = {"line": LINE, "block": BLOCK, "edit": REGION}
LANGUAGE_ALIASES = {
    "javascriptreact": "javascript",
    "jsonc": "json",
    "sh": "bash",
    "shellscript": "bash",
    "typescriptreact": "tsx",
    "zsh": "bash",
}
"""Other names that editors give to languages; an unknown language is `text`."""


class LayoutError(EngineError):
    """The request cannot be written as a row of tokens."""


class Budget(Struct, frozen=True):
    """How many tokens each piece of a row may take; the lines before the cursor get what the others leave.

    `quantum`: the beginning of the lines before is dropped in steps of this many tokens, counted from the
    window's first token, so that typing keeps the row's beginning as it is. A window should therefore begin
    at a place that moves rarely.
    """

    context: int = 2048
    answer: int = 128
    path: int = 32
    snippets: int = 384
    edits: int = 160
    edit: int = 48
    suffix: int = 192
    rest: int = 64
    near: int = 48
    head: int = 128
    quantum: int = 256


class Frozen(Struct, frozen=True):
    """What stands before the lines before the cursor, as it was at the last jump or idle moment; `unread` are the
    snippets for which there is no room."""

    path: str
    preamble: tuple[int, ...]
    suffix: tuple[int, ...]
    lines_after: int
    unread: tuple[int, ...] = ()


class Hole(Struct, frozen=True):
    """Where one answer goes: the row at index `anchor` predicts its first token.

    The answer spells `part` again before anything new, and `old` is its first draft (empty where text is
    inserted).
    """

    anchor: int
    part: str
    old: tuple[int, ...]


class Row(Struct, frozen=True, eq=False):
    """A request as clean tokens with their positions, and its holes in the order of the request's spans.

    `beyond` is what the request told that the row has no room for, in texts that PAD divides, the nearest last: it is
    not read, but heard (`hints.py`).
    """

    ids: np.ndarray
    positions: np.ndarray
    holes: tuple[Hole, ...]
    beyond: tuple[int, ...] = ()


class Stream(Struct, frozen=True, eq=False):
    """A row with its answers written in, for training; row `starts[i]` predicts answer i's first token."""

    ids: np.ndarray
    positions: np.ndarray
    blocks: tuple["Block", ...]
    starts: tuple[int, ...]


class Block(Struct, frozen=True):
    """Rows that see what row `parent` sees, and it, and each other: causally, or both ways.

    A tree of blocks describes every forward. Clean tokens are a causal root, a verified draft hangs causally
    on the last clean row, a canvas hangs on its anchor both ways, and several documents are several roots.
    Adjacent canvases of one `group` are denoised together and see each other.
    """

    size: int
    parent: int = -1
    causal: bool = True
    group: int = -1


def budget_for(context: int) -> Budget:
    """The default shares, scaled to another context."""
    default = Budget()
    shares = {name: share * context // default.context for name, share in asdict(default).items()}
    capped = {name: min(shares[name], getattr(default, name)) for name in ("rest", "near", "quantum")}
    return Budget(**shares | capped)


def freeze(tokenizer: "Tokenizer", request: InfillRequest, budget: Budget) -> Frozen:
    """Encode what stays while the user types: path, related code, recent edits and the far suffix.

    The far suffix begins where `<near>` ends, and may take the room that the lines before do not need.
    """
    window, cursor = _target(request)
    preamble = (
        *(BOS, _language(window.language), PATH),
        *_path(tokenizer, window.path, budget),
        *_snippets(tokenizer, _related(request), budget),
        EDITS,
        *_edits(tokenizer, request.edits, window.path, budget),
    )
    before, _, _, following = _around(window.text, cursor)
    spare = _room_before(budget, len(preamble)) - len(tokenizer.encode(before)) - budget.quantum
    far = tokenizer.encode(following)[budget.near :]
    suffix = tuple(far[: max(budget.suffix, spare)])
    left = [tokenizer.encode(snippet.text) for snippet in _related(request)[preamble.count(SNIP) :]]
    return Frozen(window.path, preamble, suffix, window.text.count("\n", cursor), _apart(reversed(left)))


def is_stale(frozen: Frozen, request: InfillRequest) -> bool:
    """Whether the cursor has jumped: to another file, or over more than a few lines.

    Lines after the cursor are counted because new lines, typed at the cursor, do not change them. Edits alone
    never make a snapshot stale: the caller freezes again when the user pauses.
    """
    window, cursor = _target(request)
    moved = abs(window.text.count("\n", cursor) - frozen.lines_after)
    return window.path != frozen.path or moved > JUMP_LINES


def lay_out(tokenizer: "Tokenizer", request: InfillRequest, frozen: Frozen, budget: Budget) -> Row:
    """A single insertion ends at its cursor; other spans, and several, become holes in the text."""
    window, _ = _target(request)
    assert frozen.path == window.path, "a snapshot of another file is stale: freeze again"
    if len(request.spans) == 1 and request.spans[0].start == request.spans[0].end:
        return _at_cursor(tokenizer, request, frozen, budget)
    return _with_holes(tokenizer, request, frozen, budget)


def answer_ids(tokenizer: "Tokenizer", hole: Hole, text: str) -> list[int]:
    """The tokens of an answer that belongs in `hole`: the begun word spelled again, the rest, the end."""
    return [*tokenizer.encode(hole.part + text), EOM]


def filled_text(tokenizer: "Tokenizer", hole: Hole, ids: Iterable[int]) -> str:
    """The text that an answer's tokens add, without the begun word that stands there already."""
    typed = len(hole.part.encode("utf-8", "replace"))
    return tokenizer.decode_bytes(ids)[typed:].decode("utf-8", "replace")


def until_end(ids: Sequence[int]) -> tuple[list[int], bool]:
    """The tokens before the first `<eom>`, and whether there was one."""
    ids = list(ids)
    return (ids[: ids.index(EOM)], True) if EOM in ids else (ids, False)


def canvas_slots(answer: Sequence[int], size: int) -> tuple[np.ndarray, np.ndarray]:
    """What the slots of a canvas should hold, and what each weighs in the loss.

    `answer` is what is still to come, with its `<eom>`. After it every slot is `<eom>`, and all those ends
    together weigh as much as one token. An answer that does not fit has no end here; the next canvas
    continues it.
    """
    ids = np.full(size, EOM, np.int32)
    ids[: len(answer)] = answer[:size]
    ends = ids == EOM
    return ids, np.where(ends, 1 / max(1, ends.sum()), 1).astype(np.float32)


def slot_positions(anchor_position: int, size: int) -> np.ndarray:
    return np.arange(anchor_position + 1, anchor_position + 1 + size, dtype=np.int32)


def draft_blocks(row: Row, sizes: Sequence[int]) -> tuple[Block, ...]:
    """The first draft of a row: clean rows, and a canvas on each anchor, all denoised together."""
    canvases = (Block(size, hole.anchor, causal=False, group=0) for hole, size in zip(row.holes, sizes, strict=True))
    return Block(len(row.ids)), *canvases


def with_answers(row: Row, answers: Sequence[Sequence[int]]) -> Stream:
    """The row as plain autoregression writes it: each anchor followed by its answer, hole after hole.

    Behind a single hole the answer continues the row. With several, the row's last rows are all the anchors,
    which drafting needs side by side; the answers branch off at the first anchor, and the later anchors stand
    in the branch once more, where they see the answers before them. Slots keep their positions in both.
    """
    base, first = len(row.ids), row.holes[0].anchor
    ids, positions, starts = [*answers[0]], [*_following(row, first, answers[0])], [first]
    for hole, answer in zip(row.holes[1:], answers[1:], strict=True):
        starts.append(base + len(ids))
        ids += [int(row.ids[hole.anchor]), *answer]
        positions += [int(row.positions[hole.anchor]), *_following(row, hole.anchor, answer)]
    blocks = (Block(base), Block(len(ids), parent=first))
    return Stream(
        np.concatenate([row.ids, np.array(ids, np.int32)]),
        np.concatenate([row.positions, np.array(positions, np.int32)]),
        blocks,
        tuple(starts),
    )


def without_modes(row: Row) -> Row:
    """The row with its mode tokens taken out, as a fifth of the training rows are."""
    kept = ~np.isin(row.ids, MODES)
    moved = np.cumsum(~kept)
    holes = tuple(Hole(hole.anchor - int(moved[hole.anchor]), hole.part, hole.old) for hole in row.holes)
    return Row(row.ids[kept], row.positions[kept] - moved[kept].astype(np.int32), holes, row.beyond)


def visible_ranges(blocks: Sequence[Block]) -> np.ndarray:
    """The half-open column ranges that each row sees, int32 of shape (rows, ranges, 2), unused ones empty.

    This is the attention mask in the form that a block-sparse kernel can evaluate.
    """
    starts = np.concatenate([[0], np.cumsum([block.size for block in blocks])]).astype(np.int32)
    owner = np.repeat(np.arange(len(blocks)), [block.size for block in blocks])
    depths: list[int] = []
    for block, start in zip(blocks, starts, strict=False):
        assert block.parent < start, "a block hangs on an earlier row"
        depths.append(0 if block.parent < 0 else depths[owner[block.parent]] + 1)
    ranges = np.zeros((starts[-1], max(depths) + 1, 2), np.int32)
    for index, (block, depth) in enumerate(zip(blocks, depths, strict=True)):
        start, stop = starts[index], starts[index + 1]
        if block.parent >= 0:
            ranges[start:stop] = ranges[block.parent]
        first, last = _siblings(blocks, index)
        ranges[start:stop, depth, 0] = starts[first]
        ranges[start:stop, depth, 1] = np.arange(start + 1, stop + 1) if block.causal else starts[last + 1]
    return ranges


def canvas_mask(blocks: Sequence[Block], first_row: int = 0) -> np.ndarray:
    """True where a row (from `first_row` on, the earlier ones being cached) sees a column."""
    columns = np.arange(sum(block.size for block in blocks), dtype=np.int32)
    ranges = visible_ranges(blocks)[first_row:, :, :, None]
    return ((columns >= ranges[:, :, 0]) & (columns < ranges[:, :, 1])).any(1)


def show(tokenizer: "Tokenizer", row: Row) -> str:
    """The row as text, a line for each marker, for golden files and for looking at."""
    breaks = {SUF, PRE, NEAR, CUR, SNIP, PATH, EDITS, *HOLES}
    words = [("\n" if token in breaks else " ") + tokenizer.symbol(token) for token in row.ids.tolist()]
    holes = [
        f"\n▸ row {hole.anchor} position {row.positions[hole.anchor]} part {hole.part!r}"
        + "".join(f" {tokenizer.symbol(token)}" for token in hole.old)
        for hole in row.holes
    ]
    return "".join([*words, *holes]).strip()


def _at_cursor(tokenizer: "Tokenizer", request: InfillRequest, frozen: Frozen, budget: Budget) -> Row:
    window, cursor = _target(request)
    before, head, rest, following = _around(window.text, cursor)
    stable, part = tokenizer.split_part(head)
    room = _room_before(budget, len(frozen.preamble) + len(frozen.suffix))
    lines_before, lines_after = tokenizer.encode(before), tokenizer.encode(following)
    kept = _keep_end(lines_before, room, budget.quantum)
    ids = [
        *(*frozen.preamble, SUF, *frozen.suffix),
        *(PRE, *kept),
        *(NEAR, *tokenizer.encode(rest)[: budget.rest], *lines_after[: budget.near]),
        *(MODE_OF[request.spans[0].mode], CUR, *_keep_end(stable, budget.head, budget.head // 2)),
        *_part(tokenizer, part),
    ]
    unread = lines_after[budget.near + len(frozen.suffix) :], lines_before[: len(lines_before) - len(kept)]
    beyond = (*frozen.unread, *_apart(unread))
    return replace(_row(ids, (Hole(len(ids) - 1, part, ()),)), beyond=beyond[-BEYOND:])


def _apart(texts: Iterable[Sequence[int]]) -> tuple[int, ...]:
    return tuple(token for text in texts if text for token in (*text, PAD))


def _with_holes(tokenizer: "Tokenizer", request: InfillRequest, frozen: Frozen, budget: Budget) -> Row:
    count = len(request.spans)
    windows = [_holed(tokenizer, request, index, frozen, budget) for index in _edited(request)]
    fixed = len(frozen.preamble) + sum(len(window.header) + len(window.middle) for window in windows)
    room = budget.context - max(budget.answer, HOLE_STRIDE * count) - fixed
    if room < 0:
        raise LayoutError(
            f"spans of {request.windows[0].path}: {budget.context - room} tokens do not fit the model's "
            f"{budget.context}; send fewer spans, or shorter ones that stand closer together"
        )
    ids = [*frozen.preamble]
    for window in windows:
        ids += _trimmed(window, room // len(windows), budget.quantum)
    drafts = {number: draft for window in windows for number, draft in window.drafts}
    return _row([*ids, *HOLES[:count]], tuple(Hole(len(ids) + i, *drafts[i]) for i in range(count)))


def _row(ids: list[int], holes: tuple[Hole, ...]) -> Row:
    """Positions count up to the first anchor; every further anchor stands a stride after the one before."""
    positions = np.arange(len(ids), dtype=np.int32)
    for number, hole in enumerate(holes):
        positions[hole.anchor] = holes[0].anchor + HOLE_STRIDE * number
    return Row(np.array(ids, np.int32), positions, holes)


class _Holed(Struct, frozen=True):
    """A window with its spans marked: only what stands before the first and after the last may be trimmed."""

    header: list[int]
    before: list[int]
    middle: list[int]
    after: list[int]
    drafts: list[tuple[int, tuple[str, tuple[int, ...]]]]


def _holed(tokenizer: "Tokenizer", request: InfillRequest, index: int, frozen: Frozen, budget: Budget) -> _Holed:
    window = request.windows[index]
    header = [] if window.path == frozen.path else [PATH, *_path(tokenizer, window.path, budget)]
    pieces: list[list[int]] = []
    drafts = []
    at = 0
    for number, span in _spans_of(request, index):
        line = max(at, window.text.rfind("\n", 0, span.start) + 1)
        stable, part = tokenizer.split_part(window.text[line : span.start])
        replaced = window.text[span.start : span.end]
        old = tuple(tokenizer.encode(part + replaced)) if replaced else ()
        pieces.append([*tokenizer.encode(window.text[at:line]), *stable])
        pieces.append([HOLES[number], MODE_OF[span.mode], *_part(tokenizer, part), *_old(old)])
        drafts.append((number, (part, old)))
        at = span.end
    middle = [token for piece in pieces[1:] for token in piece]
    return _Holed([*header, PRE], pieces[0], middle, tokenizer.encode(window.text[at:]), drafts)


def _trimmed(window: _Holed, room: int, quantum: int) -> list[int]:
    """A third of the room is for what follows the last hole; either side may use what the other leaves."""
    before_room = max(room * 2 // 3, room - len(window.after))
    before = _keep_end(window.before, before_room, max(1, min(quantum, before_room // 4)))
    return [*window.header, *before, *window.middle, *window.after[: room - len(before)]]


def _keep_end(ids: list[int], room: int, quantum: int) -> list[int]:
    """The end of `ids`, its beginning dropped in whole quanta, so that it moves rarely."""
    excess = max(0, len(ids) - room)
    return ids[-(-excess // quantum) * quantum :]


def _room_before(budget: Budget, frozen: int) -> int:
    """What is left for the lines before when everything that changes while typing takes its full share."""
    markers = len(("<suf>", "<pre>", "<near>", "<mode>", "<cur>", "<part>"))
    volatile = budget.rest + budget.near + budget.head + MAXIMUM_PART + markers
    room = budget.context - budget.answer - volatile - frozen
    if room < 0:
        raise LayoutError(
            f"a context of {budget.context} tokens is {-room} too short for this budget: lower its shares"
        )
    return room


def _following(row: Row, anchor: int, answer: Sequence[int]) -> list[int]:
    assert len(row.holes) == 1 or len(answer) < HOLE_STRIDE, "an answer among several fits between two anchors"
    return slot_positions(int(row.positions[anchor]), len(answer)).tolist()


def _siblings(blocks: Sequence[Block], index: int) -> tuple[int, int]:
    """The first and the last block of a canvas' group, itself where it has none."""
    first = last = index
    group = blocks[index].group
    while group >= 0 and first > 0 and blocks[first - 1].group == group:
        first -= 1
    while group >= 0 and last + 1 < len(blocks) and blocks[last + 1].group == group:
        last += 1
    return first, last


def _around(text: str, cursor: int) -> tuple[str, str, str, str]:
    """The lines before, the head of the cursor's line, its rest with the line's end, and the lines after."""
    start = text.rfind("\n", 0, cursor) + 1
    stop = text.find("\n", cursor) + 1 or len(text)
    return text[:start], text[start:cursor], text[cursor:stop], text[stop:]


def _language(name: str) -> int:
    name = LANGUAGE_ALIASES.get(name, name)
    return SPECIALS.index(f"<lang:{name if name in LANGUAGES else 'text'}>")


def _path(tokenizer: "Tokenizer", path: str, budget: Budget) -> list[int]:
    return tokenizer.encode(path)[-budget.path :]


def _part(tokenizer: "Tokenizer", part: str) -> list[int]:
    return [PART, *tokenizer.spell(part)] if part else []


def _old(ids: Sequence[int]) -> list[int]:
    return [OLD, *ids, OLD_END] if ids else []


def _snippets(tokenizer: "Tokenizer", snippets: Sequence[Snippet], budget: Budget) -> list[int]:
    """Best first, until the share is used up; the last one may lose its end."""
    ids: list[int] = []
    for snippet in snippets:
        room = budget.snippets - len(ids)
        if room < SHORTEST_SNIPPET:
            break
        ids += [SNIP, *tokenizer.encode(f"{snippet.path}\n{snippet.text}")][:room]
    return ids


def _related(request: InfillRequest) -> list[Snippet]:
    """Windows that no span touches are read like snippets, before these."""
    edited = _edited(request)
    unedited = [window for index, window in enumerate(request.windows) if index not in edited]
    return [*(Snippet(window.path, window.text) for window in unedited), *request.snippets]


def _edits(tokenizer: "Tokenizer", edits: Sequence[Edit], here: str, budget: Budget) -> list[int]:
    """The newest edits that fit, oldest first: `<path>` (and a path, unless it is the document's own),
    removed text between `<old>` and `</old>`, added text."""
    ids: list[int] = []
    for edit in reversed(edits):
        path = [] if edit.path == here else _path(tokenizer, edit.path, budget)
        removed = tokenizer.encode(edit.before)[: budget.edit]
        added = tokenizer.encode(edit.after)[: budget.edit]
        rendered = [PATH, *path, OLD, *removed, OLD_END, *added]
        if len(rendered) + len(ids) > budget.edits:
            break
        ids = rendered + ids
    return ids


def _target(request: InfillRequest) -> tuple[Window, int]:
    """The window of the first span, and where that begins: the cursor of a completion."""
    _check(request)
    span = request.spans[0]
    return request.windows[span.window], span.start


def _edited(request: InfillRequest) -> list[int]:
    """The windows with spans, in the order in which the spans name them."""
    return list(dict.fromkeys(span.window for span in request.spans))


def _spans_of(request: InfillRequest, window: int) -> list[tuple[int, Span]]:
    """The window's spans with their numbers, from its beginning to its end."""
    spans = [(number, span) for number, span in enumerate(request.spans) if span.window == window]
    return sorted(spans, key=lambda numbered: (numbered[1].start, numbered[1].end))


def _check(request: InfillRequest) -> None:
    if not 1 <= len(request.spans) <= len(HOLES):
        raise LayoutError(f"{len(request.spans)} spans: send 1 to {len(HOLES)}")
    for span in request.spans:
        if not 0 <= span.window < len(request.windows):
            raise LayoutError(f"{span}: the request has {len(request.windows)} windows; name one of them")
        if not 0 <= span.start <= span.end <= len(request.windows[span.window].text):
            raise LayoutError(f"{span}: not a range of its window's text; send code point offsets into it")
    for window in _edited(request):
        spans = [span for _, span in _spans_of(request, window)]
        for earlier, later in pairwise(spans):
            if later.start < earlier.end:
                raise LayoutError(f"{earlier} and {later} overlap: send one span for both")
