"""Lists of the same names: where one was put into one of them, others may lack it: cases, keys, fields, a text."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from mercury_engine.api import Edit
from mercury_ls.code import scopes
from mercury_ls.code.differences import TokenChange, changed_lines, token_changes
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import CONSTANTS, KEYWORDS, QUOTES, indentation, shape_of, tokens_of
from mercury_ls.next_edit.rule import in_label
from mercury_ls.next_edit.undone.gone import Place, is_of_imports

NEAR = 12
"""Lines above and below in which something else stands in the place of what came."""
FEWEST_SIBLINGS, SHORTEST = 2, 3
SHARE = 0.75
"""Of the siblings that a list has to have, to lack another."""
GAP = 3
"""Lines between two entries of a list."""
MOST_LISTS = 4
DELIMITERS = frozenset({",", "|", "||"})


class _NewName(Struct, frozen=True):
    """`siblings` are in its place in other lines or items, all of them in these `lines`."""

    name: str
    siblings: tuple[str, ...]
    lines: range

    @property
    def is_telling(self) -> bool:
        all_names = (self.name, *self.siblings)
        return len({*all_names}) == len(all_names) > FEWEST_SIBLINGS and all(map(_is_telling, all_names))


def lacking(edit: Edit, home: Snapshot, files: Iterable[Snapshot]) -> Iterator[tuple[str, list[Place]]]:
    if is_of_imports(edit, home):
        return
    came = {new.name: new for new in _names_put_in(edit, home) if new.is_telling}
    for new in came.values():
        places = [
            (file, at) for file in files for at in _lists_without(new, file, new.lines if file is home else range(0))
        ]
        if 0 < len(places) <= MOST_LISTS:
            siblings = " and ".join(map(in_label, new.siblings[:2]))
            yield f"{in_label(new.name)} may be missing beside {siblings}", places


def _names_put_in(edit: Edit, home: Snapshot) -> Iterator[_NewName]:
    for number, old, new in changed_lines(edit.before, edit.after):
        first = edit.line + number
        if len(old) == len(new) == 1:
            items = (_item_put_in(new[0], touch, first) for touch in token_changes(old[0], new[0]))
            yield from filter(None, items)
        elif not old:
            for at, line in enumerate(new):
                yield from _names_in_line(line, first + at, range(first, first + len(new)), home)


def _names_in_line(line: str, number: int, new_lines: range, home: Snapshot) -> Iterator[_NewName]:
    around = {*range(max(number - NEAR, 0), min(number + NEAR, home.line_count))} - {*new_lines}
    alike = sorted(n for n in around if _looks_like(home.line(n), line))
    rows = [tokens_of(home.line(n)) for n in alike]
    lines = range(min((*alike, new_lines.start)), max((*alike, new_lines.stop - 1)) + 1)
    for at, name in enumerate(tokens_of(line)):
        yield _NewName(name, tuple(dict.fromkeys(row[at] for row in rows)), lines)


def _looks_like(first: str, second: str) -> bool:
    return indentation(first) == indentation(second) and shape_of(first.strip()) == shape_of(second.strip())


def _item_put_in(line: str, touch: TokenChange, number: int) -> _NewName | None:
    """The name that came with a delimiter, if nothing else did."""
    came = _unmarked(line[touch.new_start : touch.new_end])
    names, delimiters = [*filter(_is_telling, came)], DELIMITERS.intersection(came)
    if touch.start < touch.end or (len(names), len(delimiters), len(came)) != (1, 1, 2):
        return None
    tokens = _unmarked(line)
    siblings = _items_beside(tokens, tokens.index(names[0]), delimiters)
    return _NewName(names[0], tuple(dict.fromkeys(siblings)), range(number, number + 1))


def _unmarked(text: str) -> list[str]:
    return [token for token in tokens_of(text) if token not in QUOTES]


def _items_beside(tokens: Sequence[str], at: int, delimiters: frozenset[str]) -> Iterator[str]:
    """The other items of the list, as far as each is one word."""
    for items in (tokens[at::-1], tokens[at:]):
        for delimiter, item in zip(items[1::2], items[2::2], strict=False):
            if delimiter not in delimiters or not _is_telling(item):
                break
            yield item


def _is_telling(word: str) -> bool:
    return len(word) >= SHORTEST and word.isidentifier() and word not in KEYWORDS | CONSTANTS


def _lists_without(new: _NewName, file: Snapshot, own: range) -> Iterator[int]:
    """Where the last of the siblings comes in each run of lines that has enough of them, and not the name."""
    lines_of_name = {file.line_of(at) for at in scopes.mentions(file, new.name)}.difference(own)
    for run in _runs(new.siblings, file, own):
        first, last = file.line_of(min(run.values())), file.line_of(max(run.values()))
        is_list = len(run) >= max(FEWEST_SIBLINGS, SHARE * len(new.siblings))
        if is_list and lines_of_name.isdisjoint(range(first - GAP, last + GAP + 1)):
            yield max(run.values())


def _runs(names: Iterable[str], file: Snapshot, own: range) -> list[dict[str, int]]:
    """Where each of these names comes first in lines that hardly anything parts."""
    sites = sorted((at, name) for name in names for at in scopes.mentions(file, name) if file.line_of(at) not in own)
    runs: list[dict[str, int]] = []
    before = -GAP - 1
    for at, name in sites:
        if file.line_of(at) > before + GAP:
            runs.append({})
        runs[-1].setdefault(name, at)
        before = file.line_of(at)
    return runs
