"""How a gap becomes a row of tokens: the contract that the engine and training share. It is laid out as

    <bos> <lang:x> <path> p {<snip> path text}* <edits> edits <suf> far suffix
    <pre> lines before <near> rest of the line and 48 tokens <mode> <cur> head of the line <part> bytes ▸

Everything before `<pre>` is frozen (`Frozen`) until the cursor jumps or the user pauses, so that its keys and values
stay cached. Row i predicts token i + 1 everywhere. `<part>` spells the partial word before the cursor byte by byte, and
the answer spells it again with whole tokens (token healing). Serving and training call the same functions on a
`Gap`; training freezes an older state of the document and lays out a newer one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace

from mercury_engine.api import Edit, EngineError, Gap, Snippet
from mercury_engine.prompts.languages import language_sign
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import (
    BLOCK,
    BOS,
    CUR,
    EDITS,
    EOM,
    LINE,
    MAXIMUM_PART,
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
    LINE: "head",
    BLOCK: "head",
}
"""The marker with which a piece of a row begins; before the first of them stands the preamble."""


class LayoutError(EngineError):
    """There is no room for a gap in a row of tokens."""


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


class LayoutRow(Struct, frozen=True, eq=False):
    """A gap as tokens, of which the last one predicts the first of the answer, which starts by spelling `part` again.

    `unread` holds what did not fit into the row, as texts separated by PAD, the nearest last: the model does not see
    them, but drafts are copied from them.
    """

    ids: np.ndarray
    part: str = ""
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


def freeze(tokenizer: Tokenizer, gap: Gap, budget: Budget) -> Frozen:
    """Encode what stays while the user types: path, related code, recent edits and the far suffix.

    The far suffix starts where `<near>` ends. It never takes more than its share, since more of it does not improve
    completions.
    """
    preamble = (
        *(BOS, language_id(gap.language), PATH),
        *_path_ids(tokenizer, gap.path, budget),
        *_snippets(tokenizer, gap.snippets, budget),
        EDITS,
        *_edits(tokenizer, gap.edits, gap.path, budget),
    )
    following = _around(gap)[-1]
    suffix = tuple(tokenizer.encode(following)[budget.near :][: budget.suffix])
    remaining = [tokenizer.encode(snippet.text) for snippet in gap.snippets[preamble.count(SNIP) :]]
    unread, begins = _separated(reversed(remaining)), tokenizer.decode_bytes(suffix[:BEGINNING])
    return Frozen(gap.path, preamble, suffix, gap.after.count("\n"), begins, unread)


def is_stale(frozen: Frozen, gap: Gap) -> bool:
    """True if the cursor has jumped to another file, across more than a few lines, or into what followed it.

    It counts the lines after the cursor because typing new lines does not change their number. Edits elsewhere never
    make the frozen part stale: the caller freezes again when the user pauses.
    """
    moved = abs(gap.after.count("\n") - frozen.lines_after)
    follows = frozen.begins in gap.after.encode("utf-8", "replace")
    return gap.path != frozen.path or moved > JUMP_LINES or not follows


def lay_out(tokenizer: Tokenizer, gap: Gap, frozen: Frozen, budget: Budget) -> LayoutRow:
    """The row of a gap, which ends at the cursor."""
    assert frozen.path == gap.path, "the frozen part belongs to another file: freeze again"
    before, head, tail, following = _around(gap)
    stable, part = tokenizer.split_part(head)
    room = _room_before(budget, len(frozen.preamble) + len(frozen.suffix))
    lines_before, lines_after = tokenizer.encode(before), tokenizer.encode(following)
    lines = keep_end(lines_before, room, budget.quantum)
    ids = [
        *(*frozen.preamble, SUF, *frozen.suffix),
        *(PRE, *lines),
        *(NEAR, *tokenizer.encode(tail)[: budget.rest], *lines_after[: budget.near]),
        *(BLOCK if gap.block else LINE, CUR, *keep_end(stable, budget.head, budget.head // 2)),
        *part_ids(tokenizer, part),
    ]
    cut = lines_after[budget.near + len(frozen.suffix) :], lines_before[: len(lines_before) - len(lines)]
    unread = (*frozen.unread, *_separated(cut))
    return LayoutRow(np.array(ids, np.int32), part, unread[-MAXIMUM_UNREAD:])


def pieces(ids: Sequence[int] | np.ndarray, start: int, stop: int) -> Counter[str]:
    """How many of a row's tokens from `start` to `stop` stand in which of its pieces."""
    piece, counts = "preamble", Counter[str]()
    for at, token in enumerate(map(int, ids[:stop])):
        piece = PIECES.get(token, piece)
        counts[piece] += at >= start
    return +counts


def filled_text(tokenizer: Tokenizer, part: str, ids: Iterable[int]) -> str:
    """The text of an answer's tokens, without the partial word that is already there."""
    typed = len(part.encode("utf-8", "replace"))
    return tokenizer.decode_bytes(ids)[typed:].decode("utf-8", "replace")


def until_end(ids: Sequence[int] | np.ndarray) -> tuple[list[int], bool]:
    """The tokens before the first `<eom>`, and whether there was one."""
    ids = list(ids)
    return (ids[: ids.index(EOM)], True) if EOM in ids else (ids, False)


def _separated(texts: Iterable[Sequence[int]]) -> tuple[int, ...]:
    return tuple(token for text in texts if text for token in (*text, PAD))


def keep_end(ids: list[int], room: int, quantum: int) -> list[int]:
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


def _around(gap: Gap) -> tuple[str, str, str, str]:
    """The lines before, the cursor's line up to the cursor and from there to its end, and the lines after."""
    start, stop = gap.before.rfind("\n") + 1, gap.after.find("\n") + 1 or len(gap.after)
    return gap.before[:start], gap.before[start:], gap.after[:stop], gap.after[stop:]


def language_id(name: str) -> int:
    return SPECIALS.index(language_sign(name))


def _path_ids(tokenizer: Tokenizer, path: str, budget: Budget) -> list[int]:
    return tokenizer.encode(path)[-budget.path :]


def part_ids(tokenizer: Tokenizer, part: str) -> list[int]:
    return [PART, *tokenizer.spell(part)] if part else []


def _snippets(tokenizer: Tokenizer, snippets: Sequence[Snippet], budget: Budget) -> list[int]:
    """The best snippets, until their share is used up; the last may lose its end."""
    ids: list[int] = []
    for snippet in snippets:
        room = budget.snippets - len(ids)
        if room < SHORTEST_SNIPPET:
            break
        ids += [SNIP, *tokenizer.encode(f"{snippet.path}\n{snippet.text}")][:room]
    return ids


def _edits(tokenizer: Tokenizer, edits: Sequence[Edit], here: str, budget: Budget) -> list[int]:
    """The newest edits that fit, oldest first: `<path>` (and the path, unless it is this file), the removed text
    between `<old>` and `</old>`, the added text."""
    ids: list[int] = []
    for edit in reversed(edits):
        path = [] if edit.path == here else _path_ids(tokenizer, edit.path, budget)
        removed = tokenizer.encode(edit.before)[: budget.edit]
        added = tokenizer.encode(edit.after)[: budget.edit]
        rendered = [PATH, *path, OLD, *removed, OLD_END, *added]
        if len(rendered) + len(ids) > budget.edits:
            break
        ids = rendered + ids
    return ids
