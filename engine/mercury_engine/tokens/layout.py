"""How a request becomes a row of tokens: the contract that the engine and training share.

A completion is laid out as

    <bos> <lang:x> <path> p {<snip> path text}* <edits> edits <suf> far suffix
    <pre> lines before <near> rest of the line and 48 tokens <mode> <cur> head of the line <part> bytes ▸

and anything else (a span to rewrite, several spans) as

    <bos> <lang:x> <path> p {<snip> path text}* <edits> edits
    <pre> text <hole0> <mode> <part> bytes <old> text </old> text <hole1> … {<path> p <pre> text …}*
    <hole0> ▸ <hole1> ▸

Everything before `<pre>` is frozen (`Frozen`) until the cursor jumps or the user pauses, so that its keys and values
stay cached. Row i predicts token i + 1 everywhere. `<part>` spells the partial word before the cursor byte by byte, and
the answer spells it again with whole tokens (token healing). Serving and training call the same functions on an
`InfillRequest`; training freezes an older state of the document and lays out a newer one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace

from mercury_engine.api import Edit, EngineError, InfillRequest, Snippet, Span, Window
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import (
    BOS,
    CUR,
    EDITS,
    EOM,
    HOLE_STRIDE,
    HOLES,
    LANGUAGE_ALIASES,
    LANGUAGES,
    MAXIMUM_PART,
    MODE_OF,
    NEAR,
    OLD,
    OLD_END,
    PAD,
    PART,
    PATH,
    PRE,
    SNIP,
    SPECIALS,
    SUF,
)

JUMP_LINES = 8
"""Moving the cursor further than this many lines is a jump."""

BEGINNING = 16
"""Tokens by which the text after the cursor is recognised."""

SHORTEST_SNIPPET = 32
"""In tokens: a snippet with less room than this is left out."""

LINES_ALONE = 512
"""A row of so many tokens has neither related code nor edits, nor a far suffix."""

MAXIMUM_UNREAD = 4096
"""Tokens beyond the row from which drafts are copied."""


PIECES = {
    SUF: "far suffix",
    PRE: "lines before",
    NEAR: "near suffix",
    CUR: "head",
    **dict.fromkeys(HOLES, "lines before"),
    **dict.fromkeys(MODE_OF.values(), "head"),
}
"""The marker with which a piece of a row begins; before the first of them stands the preamble."""


class LayoutError(EngineError):
    """The request cannot be laid out as a row of tokens."""


class Budget(Struct, frozen=True):
    """The number of tokens for each piece of a row; the lines before the cursor get what the others leave.

    The lines before are cut at multiples of `quantum` tokens, counted from the start of the window, so that the row
    keeps its prefix while the user types. A window should therefore start at a place that rarely moves.
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
    """The part of a row that stays while the user types, as of the last jump or pause.

    `unread` are the snippets that did not fit. `lines_after` the cursor, and the text with which the far suffix
    `begins`, say whether it still follows a cursor.
    """

    path: str
    preamble: tuple[int, ...]
    suffix: tuple[int, ...]
    lines_after: int
    begins: bytes = b""
    unread: tuple[int, ...] = ()


class Hole(Struct, frozen=True):
    """The place of one answer: the row at index `anchor` predicts its first token.

    The answer starts by spelling `part` again. `old` is the text to replace, empty for an insertion.
    """

    anchor: int
    part: str
    old: tuple[int, ...]


class LayoutRow(Struct, frozen=True, eq=False):
    """A request as clean tokens with their positions, and its holes in the order of the request's spans.

    `unread` holds what did not fit into the row, as texts separated by PAD, the nearest last: the model does not see
    them, but drafts are copied from them.
    """

    ids: np.ndarray
    positions: np.ndarray
    holes: tuple[Hole, ...]
    unread: tuple[int, ...] = ()


def budget_for(context: int) -> Budget:
    """The default shares, scaled to the size of the context."""
    default = Budget()
    shares = {name: share * context // default.context for name, share in asdict(default).items()}
    capped = {name: min(shares[name], getattr(default, name)) for name in ("rest", "near", "quantum")}
    return Budget(**shares | capped)


def shorter_budget(context: int, tokens: int) -> Budget:
    """The shares of a row of about so many tokens in a larger context: what changes while typing keeps its room, and a
    short row has nothing but the nearest lines."""
    budget = budget_for(context)
    if tokens >= context:
        return budget
    volatile = budget.rest + budget.near + budget.head + budget.answer
    part = 0 if tokens <= LINES_ALONE else tokens / context
    return replace(
        budget,
        context=min(tokens + volatile, context),
        snippets=int(budget.snippets * part),
        edits=int(budget.edits * part),
        suffix=int(budget.suffix * part),
        quantum=min(budget.quantum, tokens // 4),
    )


def freeze(tokenizer: Tokenizer, request: InfillRequest, budget: Budget) -> Frozen:
    """Encode what stays while the user types: path, related code, recent edits and the far suffix.

    The far suffix starts where `<near>` ends, and may use the room that the lines before do not need.
    """
    window, cursor = _target(request)
    preamble = (
        *(BOS, language_id(window.language), PATH),
        *_path(tokenizer, window.path, budget),
        *_snippets(tokenizer, _related(request), budget),
        EDITS,
        *_edits(tokenizer, request.edits, window.path, budget),
    )
    before, _, _, following = _around(window.text, cursor)
    spare = _room_before(budget, len(preamble)) - len(tokenizer.encode(before)) - budget.quantum
    far = tokenizer.encode(following)[budget.near :]
    suffix = tuple(far[: max(budget.suffix, spare)])
    remaining = [tokenizer.encode(snippet.text) for snippet in _related(request)[preamble.count(SNIP) :]]
    unread, begins = _separated(reversed(remaining)), tokenizer.decode_bytes(suffix[:BEGINNING])
    return Frozen(window.path, preamble, suffix, window.text.count("\n", cursor), begins, unread)


def is_stale(frozen: Frozen, request: InfillRequest) -> bool:
    """True if the cursor has jumped to another file, across more than a few lines, or into what followed it.

    It counts the lines after the cursor because typing new lines does not change their number. Edits elsewhere never
    make the frozen part stale: the caller freezes again when the user pauses.
    """
    window, cursor = _target(request)
    moved = abs(window.text.count("\n", cursor) - frozen.lines_after)
    follows = frozen.begins in window.text[cursor:].encode("utf-8", "replace")
    return window.path != frozen.path or moved > JUMP_LINES or not follows


def lay_out(tokenizer: Tokenizer, request: InfillRequest, frozen: Frozen, budget: Budget) -> LayoutRow:
    """The row of a request: a single insertion ends at the cursor, all other spans become holes in the text."""
    window, _ = _target(request)
    assert frozen.path == window.path, "the frozen part belongs to another file: freeze again"
    if len(request.spans) == 1 and request.spans[0].start == request.spans[0].end:
        return _at_cursor(tokenizer, request, frozen, budget)
    return _with_holes(tokenizer, request, frozen, budget)


def pieces(ids: Sequence[int] | np.ndarray, start: int, stop: int) -> Counter[str]:
    """How many of a row's tokens from `start` to `stop` stand in which of its pieces."""
    piece, counts = "preamble", Counter[str]()
    for at, token in enumerate(map(int, ids[:stop])):
        piece = PIECES.get(token, piece)
        counts[piece] += at >= start
    return +counts


def answer_ids(tokenizer: Tokenizer, hole: Hole, text: str) -> list[int]:
    """The tokens of an answer in `hole`: the partial word spelled again, the text, the end."""
    return [*tokenizer.encode(hole.part + text), EOM]


def filled_text(tokenizer: Tokenizer, hole: Hole, ids: Iterable[int]) -> str:
    """The text of an answer's tokens, without the partial word that is already there."""
    typed = len(hole.part.encode("utf-8", "replace"))
    return tokenizer.decode_bytes(ids)[typed:].decode("utf-8", "replace")


def until_end(ids: Sequence[int] | np.ndarray) -> tuple[list[int], bool]:
    """The tokens before the first `<eom>`, and whether there was one."""
    ids = list(ids)
    return (ids[: ids.index(EOM)], True) if EOM in ids else (ids, False)


def _at_cursor(tokenizer: Tokenizer, request: InfillRequest, frozen: Frozen, budget: Budget) -> LayoutRow:
    window, cursor = _target(request)
    before, head, tail, following = _around(window.text, cursor)
    stable, part = tokenizer.split_part(head)
    room = _room_before(budget, len(frozen.preamble) + len(frozen.suffix))
    lines_before, lines_after = tokenizer.encode(before), tokenizer.encode(following)
    lines = _keep_end(lines_before, room, budget.quantum)
    ids = [
        *(*frozen.preamble, SUF, *frozen.suffix),
        *(PRE, *lines),
        *(NEAR, *tokenizer.encode(tail)[: budget.rest], *lines_after[: budget.near]),
        *(MODE_OF[request.spans[0].mode], CUR, *_keep_end(stable, budget.head, budget.head // 2)),
        *_part(tokenizer, part),
    ]
    cut = lines_after[budget.near + len(frozen.suffix) :], lines_before[: len(lines_before) - len(lines)]
    unread = (*frozen.unread, *_separated(cut))
    return replace(_row(ids, (Hole(len(ids) - 1, part, ()),)), unread=unread[-MAXIMUM_UNREAD:])


def _separated(texts: Iterable[Sequence[int]]) -> tuple[int, ...]:
    return tuple(token for text in texts if text for token in (*text, PAD))


def _with_holes(tokenizer: Tokenizer, request: InfillRequest, frozen: Frozen, budget: Budget) -> LayoutRow:
    count = len(request.spans)
    windows = [_holed(tokenizer, request, index, frozen, budget) for index in _edited(request)]
    fixed = len(frozen.preamble) + sum(len(window.header) + len(window.middle) for window in windows)
    room = budget.context - max(budget.answer, HOLE_STRIDE * count) - fixed
    if room < 0:
        raise LayoutError(
            f"spans of {request.windows[0].path}: {budget.context - room} tokens do not fit the model's "
            f"{budget.context}; send fewer spans, or shorter ones that are closer together"
        )
    ids = [*frozen.preamble]
    for window in windows:
        ids += _trimmed(window, room // len(windows), budget.quantum)
    drafts = {number: draft for window in windows for number, draft in window.drafts}
    return _row([*ids, *HOLES[:count]], tuple(Hole(len(ids) + i, *drafts[i]) for i in range(count)))


def _row(ids: list[int], holes: tuple[Hole, ...]) -> LayoutRow:
    """Positions count up to the first anchor; each further anchor is one stride behind the previous one."""
    positions = np.arange(len(ids), dtype=np.int32)
    for number, hole in enumerate(holes):
        positions[hole.anchor] = holes[0].anchor + HOLE_STRIDE * number
    return LayoutRow(np.array(ids, np.int32), positions, holes)


class _Holed(Struct, frozen=True):
    """A window with its spans marked: only the text before the first and after the last one may be trimmed."""

    header: list[int]
    before: list[int]
    middle: list[int]
    after: list[int]
    drafts: list[tuple[int, tuple[str, tuple[int, ...]]]]


def _holed(tokenizer: Tokenizer, request: InfillRequest, index: int, frozen: Frozen, budget: Budget) -> _Holed:
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
    """The text around the holes: a third of the room is for the text after the last one, and either side may use the
    room that the other leaves."""
    before_room = max(room * 2 // 3, room - len(window.after))
    before = _keep_end(window.before, before_room, max(1, min(quantum, before_room // 4)))
    return [*window.header, *before, *window.middle, *window.after[: room - len(before)]]


def _keep_end(ids: list[int], room: int, quantum: int) -> list[int]:
    """The end of `ids`; its start is dropped in whole quanta, so that it rarely moves."""
    excess = max(0, len(ids) - room)
    return ids[-(-excess // quantum) * quantum :]


def _room_before(budget: Budget, frozen: int) -> int:
    """The room for the lines before if everything that changes while typing takes its full share."""
    markers = len(("<suf>", "<pre>", "<near>", "<mode>", "<cur>", "<part>"))
    volatile = budget.rest + budget.near + budget.head + MAXIMUM_PART + markers
    room = budget.context - budget.answer - volatile - frozen
    if room < 0:
        raise LayoutError(
            f"a context of {budget.context} tokens is {-room} too short for this budget: lower the shares"
        )
    return room


def _around(text: str, cursor: int) -> tuple[str, str, str, str]:
    """The lines before, the cursor's line up to the cursor and from there to its end, and the lines after."""
    start = text.rfind("\n", 0, cursor) + 1
    stop = text.find("\n", cursor) + 1 or len(text)
    return text[:start], text[start:cursor], text[cursor:stop], text[stop:]


def language_id(name: str) -> int:
    name = LANGUAGE_ALIASES.get(name, name)
    return SPECIALS.index(f"<lang:{name if name in LANGUAGES else 'text'}>")


def _path(tokenizer: Tokenizer, path: str, budget: Budget) -> list[int]:
    return tokenizer.encode(path)[-budget.path :]


def _part(tokenizer: Tokenizer, part: str) -> list[int]:
    return [PART, *tokenizer.spell(part)] if part else []


def _old(ids: Sequence[int]) -> list[int]:
    return [OLD, *ids, OLD_END] if ids else []


def _snippets(tokenizer: Tokenizer, snippets: Sequence[Snippet], budget: Budget) -> list[int]:
    """The best snippets, until their share is used up; the last may lose its end."""
    ids: list[int] = []
    for snippet in snippets:
        room = budget.snippets - len(ids)
        if room < SHORTEST_SNIPPET:
            break
        ids += [SNIP, *tokenizer.encode(f"{snippet.path}\n{snippet.text}")][:room]
    return ids


def _related(request: InfillRequest) -> list[Snippet]:
    """Windows without a span, laid out like snippets and before them."""
    edited = _edited(request)
    unedited = [window for index, window in enumerate(request.windows) if index not in edited]
    return [*(Snippet(window.path, window.text) for window in unedited), *request.snippets]


def _edits(tokenizer: Tokenizer, edits: Sequence[Edit], here: str, budget: Budget) -> list[int]:
    """The newest edits that fit, oldest first: `<path>` (and the path, unless it is this file), the removed text
    between `<old>` and `</old>`, the added text."""
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
    """The window of the first span, and the start of that span: the cursor of a completion."""
    _check(request)
    span = request.spans[0]
    return request.windows[span.window], span.start


def _edited(request: InfillRequest) -> list[int]:
    """The windows with spans, in the order of the spans."""
    return list(dict.fromkeys(span.window for span in request.spans))


def _spans_of(request: InfillRequest, window: int) -> list[tuple[int, Span]]:
    """The window's spans with their numbers, in the order of the text."""
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
                raise LayoutError(f"{earlier} and {later} overlap; send one span for both")
