"""An edit taken apart into what rules are learned from: changed and removed lines, and changed pieces."""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, Self

from msgspec import Struct
from msgspec.structs import replace

from mercury_ls.code.differences import (
    TOKEN,
    WORD,
    TokenChange,
    changed_lines,
    pair_lines,
    similar,
    texts_of,
    token_changes,
    tokens,
)
from mercury_ls.code.lexemes import KEYWORDS, indentation, openness
from mercury_ls.next_edit.rule import Rule

NEIGHBOURS = 4
JOINTS = frozenset({".", "?.", "::", "->"})


class Piece(Struct, frozen=True):
    """`before` became `after` between the tokens `left` and `right` of the old lines; the rest is as in a rule, with
    `line` counted from the first line of the edit.

    `is_glued` says that no blank follows the new text, `is_cut` that what was written goes on in a new line.
    """

    before: str
    after: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    lines_before: str
    lines_after: str
    line: int
    column: int
    changed: float
    is_glued: bool
    is_cut: bool


class PieceRule(Rule, frozen=True, kw_only=True):
    """A rule about a piece of a line, between the tokens `left` (nearest last) and `right` (nearest first)."""

    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()

    @classmethod
    def of(cls, piece: Piece) -> Self:
        return cls(
            before=piece.before,
            after=piece.after,
            lines_before=piece.lines_before,
            lines_after=piece.lines_after,
            line=piece.line,
            column=piece.column,
            changed=piece.changed,
            left=piece.left[-NEIGHBOURS:],
            right=piece.right[:NEIGHBOURS],
        )


class ExampleHunk(Struct, frozen=True):
    """Changed lines; `line` is the number of the first, counted from the first of the edit.

    `touches` are where they differ, `changed` is the share of tokens that differ. Lines with nothing in common
    (`is_rewritten`) have no pieces; nor has a block that has been taken apart line by line already. A line that
    `goes_on` in a new line below is only a part of what was written.
    """

    before: str
    after: str
    line: int
    touches: tuple[TokenChange, ...] = ()
    pieces: tuple[Piece, ...] = ()
    changed: float = 1.0
    is_rewritten: bool = False
    goes_on: bool = False


class Example(Struct, frozen=True):
    """`removed` are whole lines, each with the number of the first; `blanks` says which blanks changed where nothing
    else did."""

    before: str
    after: str
    hunks: tuple[ExampleHunk, ...] = ()
    removed: tuple[tuple[int, str], ...] = ()
    blanks: Literal["", "trailing", "inner"] = ""

    @property
    def pieces(self) -> Iterator[Piece]:
        return (piece for hunk in self.hunks for piece in hunk.pieces)


def example(before: str, after: str) -> Example:
    if blanks := _changed_blanks(before, after):
        return Example(before, after, blanks=blanks)
    if not before.strip():
        return Example(before, after)
    if not after.strip():
        return Example(before, after, removed=((0, before),))
    if moves_a_block(before, after):
        # Line by line it would leave code that is broken.
        return Example(before, after, (_hunk(before, after, 0, is_block=True),))
    hunks: list[ExampleHunk] = []
    removed: list[tuple[int, str]] = []
    for line, old, new in changed_lines(before, after):
        if old and new and "".join((*old, *new)).strip():
            pairs = pair_lines(old, new) if len(old) + len(new) > 2 else []
            hunks += _hunks_of(old, new, pairs, line)
        elif "".join(old).strip():
            removed.append((line, "".join(old)))
    return Example(before, after, tuple(hunks), tuple(removed))


def moves_a_block(before: str, after: str) -> bool:
    """Whether lines went into a block or came out of one, so that what is around them changed with them."""
    for _, old, new in changed_lines(before, after):
        margins = {line.strip(): indentation(line) for line in old if WORD.search(line)}
        if any(margins.get(line.strip(), indentation(line)) != indentation(line) for line in new):
            return True
    return False


def _changed_blanks(before: str, after: str) -> Literal["", "trailing", "inner"]:
    """Which blanks changed, if nothing else did: at the ends of lines, or between words."""
    old, new = before.split("\n"), after.split("\n")
    if old == new:
        return ""
    if [line.rstrip() for line in old] == new:
        return "trailing"
    if [*map(indentation, old)] != [*map(indentation, new)]:
        return ""
    return "inner" if [*map(TOKEN.findall, old)] == [*map(TOKEN.findall, new)] else ""


def _hunks_of(old: list[str], new: list[str], pairs: list[tuple[int, int]], line: int) -> Iterator[ExampleHunk]:
    """Line by line where the lines can be paired, and all of it as one block."""
    before, after = "".join(old), "".join(new)
    if not pairs:
        yield _hunk(before, after, line)
        return
    own = [number for _, number in pairs]
    for at, number in pairs:
        goes_on = number + 1 < len(new) and number + 1 not in own
        yield _hunk(old[at], new[number], line + number, goes_on=goes_on)
    yield _hunk(before, after, line, is_block=True)


def _hunk(before: str, after: str, line: int, *, goes_on: bool = False, is_block: bool = False) -> ExampleHunk:
    if not similar(before, after):
        return ExampleHunk(before, after, line, is_rewritten=True, goes_on=goes_on)
    touches = token_changes(before, after)
    differing = sum(len(tokens(text)) for touch in touches for text in texts_of(before, after, touch))
    share = differing / max(len(tokens(before)) + len(tokens(after)), 1)
    example = ExampleHunk(before, after, line, touches, (), share, False, goes_on)
    return example if is_block else replace(example, pieces=tuple(_pieces_of(example)))


def _pieces_of(hunk: ExampleHunk) -> Iterator[Piece]:
    before, after, old = hunk.before, hunk.after, tokens(hunk.before)
    for touch in balanced(before, after, _joined_paths(before, after, hunk.touches)):
        if not _moved(before, after, touch, hunk.touches):
            went, came = texts_of(before, after, touch)
            right = tuple(token.text for token in old if token.start >= touch.end)
            yield Piece(
                before=went,
                after=came,
                left=tuple(token.text for token in old if token.end <= touch.start),
                right=right,
                lines_before=before,
                lines_after=after,
                line=hunk.line + after.count("\n", 0, touch.new_start),
                column=touch.new_end - (after.rfind("\n", 0, touch.new_end) + 1),
                changed=hunk.changed,
                is_glued=bool(after[touch.new_end : touch.new_end + 1].strip()),
                is_cut=hunk.goes_on and not right,
            )


def _joined_paths(before: str, after: str, touches: Iterable[TokenChange]) -> Iterator[TokenChange]:
    """The names of one path as one piece if both sides of what joins them changed: `time.time` became `self.clock`."""
    whole: TokenChange | None = None
    for touch in touches:
        if whole is not None:
            between = before[whole.end : touch.start]
            if between in JOINTS and between == after[whole.new_end : touch.new_start]:
                whole = TokenChange(whole.start, touch.end, whole.new_start, touch.new_end)
                continue
            yield whole
        whole = touch
    if whole is not None:
        yield whole


def _moved(before: str, after: str, touch: TokenChange, touches: Iterable[TokenChange]) -> bool:
    """Whether the piece was moved within these lines, which teaches nothing by itself. A difference may begin it with
    another token where it came than where it went."""
    went, came = (_bag(text) for text in texts_of(before, after, touch))
    other_bags = [[_bag(text) for text in texts_of(before, after, other)] for other in touches if other != touch]
    return any((went and went == came_there) or (came and came == went_there) for went_there, came_there in other_bags)


def _bag(text: str) -> list[str]:
    return sorted(token for token in TOKEN.findall(text) if token not in ",.")


def balanced(before: str, after: str, touches: Iterable[TokenChange]) -> Iterator[TokenChange]:
    """Merges pieces whose brackets or quotes only balance together: `x` became `wrap(x)`."""
    owed, quoted, start = 0, False, None
    for touch in touches:
        start = start or touch
        went, came = texts_of(before, after, touch)
        owed += openness(came) - openness(went)
        quoted ^= bool(len(re.findall('["`]', went + came)) % 2)
        if owed == 0 and not quoted:
            yield TokenChange(start.start, touch.end, start.new_start, touch.new_end)
            start = None


def is_rename(before: str, after: str) -> bool:
    return bool(WORD.fullmatch(before) and WORD.fullmatch(after)) and before not in KEYWORDS
