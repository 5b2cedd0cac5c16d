"""Where a rule applies: ranges of a text, what they would become, and how similar they are to the edited place."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.prompts.lines import shared_ends
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import tokens_of
from mercury_ls.code.scopes import whole
from mercury_ls.next_edit.rule import Rule

MOST_PLACES = 64
NEIGHBOURS = 4
DECLARING = frozenset(
    {"def", "class", "func", "fn", "function", "let", "const", "var", "mut", "type", "struct", "import", "enum"}
    | {"interface", "trait", "as"}
)


class Place(Struct, frozen=True):
    """`[start, end)` would become `text`; None where no rule knows what.

    `likeness` is the share of neighbouring tokens that are as at the edited place; `same_role` says whether both are
    used alike (called, a member, bare), `declaration_gone` whether the edit was of a declaration and none is left.
    Places of one rule that are `bound` change together or not at all; a `certain` one stands for the very thing that
    was renamed; at one that `is_gap` something is missing, whoever wrote what is beside it. `reach` are all lines that
    a template matched.
    """

    start: int
    end: int
    text: str | None
    likeness: float = 0.0
    same_role: bool = True
    declaration_gone: bool = False
    bound: bool = False
    certain: bool = False
    is_gap: bool = False
    reach: tuple[int, int] | None = None


def with_likeness(place: Place, left: Sequence[str], right: Sequence[str], snapshot: Snapshot) -> Place:
    """The place with how it compares to the edited one, between the tokens `left` and `right`."""
    before, after = sides(snapshot, place.start, place.end)
    return replace(
        place,
        likeness=(_agreeing(left[::-1], before[::-1]) + _agreeing(right, after)) / _compared(left, right),
        same_role=_role(left, right) == _role(before, after),
    )


def like_the_edited(place: Place, before: str, left: Sequence[str], right: Sequence[str], snapshot: Snapshot) -> Place:
    """The same; where text goes, it counts as much whether it is the same `before`."""
    likened = with_likeness(place, left, right, snapshot)
    if not before.strip():
        return likened
    is_unchanged = snapshot.text[place.start : place.end].strip(" ,") == before.strip(" ,")
    return replace(likened, likeness=(likened.likeness + is_unchanged) / 2)


def sides(snapshot: Snapshot, start: int, end: int) -> tuple[list[str], list[str]]:
    """The tokens before and behind, as far as the lines go."""
    first, last = snapshot.line_start(snapshot.line_of(start)), snapshot.line_end(snapshot.line_of(end))
    return tokens_of(snapshot.text[first:start]), tokens_of(snapshot.text[end:last])


def _agreeing(old: Sequence[str], new: Sequence[str]) -> int:
    """How many of the nearest tokens agree; the end of the line counts as one."""
    return shared_ends([*old[:NEIGHBOURS], ""][:NEIGHBOURS], [*new[:NEIGHBOURS], ""])[0]


def _compared(*sides: Sequence[str]) -> int:
    return sum(min(len(side) + 1, NEIGHBOURS) for side in sides)


def _role(left: Sequence[str], right: Sequence[str]) -> tuple[bool, bool, bool]:
    """Whether it is a member, is called, and names an argument."""
    member = bool(left) and left[-1] in (".", "->", "::", "?.")
    named = tuple(right[:1]) == ("=",) and bool(left) and left[-1] in ("(", ",")
    return member, tuple(right[:1]) == ("(",), named


def defines(left: Sequence[str], right: Sequence[str]) -> bool:
    bare = not left or tuple(left[-2:]) in (("self", "."), ("this", "."))
    return (bool(left) and left[-1] in DECLARING) or (bare and tuple(right[:1]) in (("=",), (":=",)))


class Left(Struct, frozen=True):
    """What an edit leaves undone: a `note` for the user, and places worth going to, each a file and an offset."""

    note: str
    places: tuple[tuple[Snapshot, int], ...] = ()


def named_from(home: Snapshot, file: Snapshot, offset: int) -> str:
    """How messages about an edit of `home` name a place."""
    return f"{path_from(home, file.path)}:{file.line_of(offset) + 1}"


def path_from(home: Snapshot, path: str) -> str:
    """The path from the folder that both files are in, with that folder too if the two would have the same name."""
    parts = PurePath(path).parts
    shared, _ = shared_ends(PurePath(home.path).parent.parts, parts[:-1])
    if path != home.path and parts[shared:] == (PurePath(home.path).name,):
        shared = max(shared - 1, 0)
    return "/".join(parts[shared:])


def nearest(
    spans: list[tuple[int, int]], snapshot: Snapshot, rule: Rule, limit: int = MOST_PLACES
) -> list[tuple[int, int]]:
    """At most so many, those nearest to the edit, in the order of the text; in another file the first ones."""
    if len(spans) > limit:
        at = rule.offset(snapshot) if rule.path == snapshot.path else 0
        spans = sorted(sorted(spans, key=lambda span: abs(span[0] - at))[:limit])
    return spans


def matching(pattern: re.Pattern[str], text: str, starts: Iterable[int]) -> Iterator[re.Match[str]]:
    """The matches, as `finditer` has them, that begin at one of these offsets."""
    end = 0
    for at in starts:
        if at >= end and (match := pattern.match(text, at)):
            yield match
            end = match.end()


def sequence(words: Sequence[str]) -> str:
    """A pattern for these tokens, however they are spaced."""
    pieces = [whole(text) if text[0].isalnum() or text[0] == "_" else re.escape(text) for text in words]
    return r"[ \t]*+".join(pieces)
