"""What the last edits gave another name where it is declared: where it may be used, and what else has that name.

Whatever proposes an edit (a phrase, a line changed alike, a model): where it makes the new name of the old one, there
has to be a use of the same thing. Pure.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from mercury_engine.api import Edit
from mercury_ls.code.differences import pieces, tokens, touches_of
from mercury_ls.code.documents import Snapshot
from mercury_ls.next_edit import occurrences
from mercury_ls.next_edit.modules import Project
from mercury_ls.next_edit.propagation import KEYWORDS, Rule, rules
from mercury_ls.next_edit.referents import type_name

__all__ = ["Renames", "may_use", "sought"]

LATEST = 3
LONGEST_NAME = 64
IMPORTING = re.compile(
    r"^[ \t]*(?:const|export|from|import|let|pub|use|var)\b.*|^[ \t]*[\w.]*[ \t]*\"[^\"]+\"$", re.MULTILINE
)
TAKEN = re.compile(r"(\w+)[ \t]*(?:\.|::)\Z")


class Renames(Struct, frozen=True):
    """The old and the new names."""

    names: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, learned: Iterable[Rule], files: Iterable[Snapshot], project: Project) -> "Renames":
        homes = {each.path: each for each in files}
        return cls(frozenset((rule.before, rule.after) for rule in declared(learned, homes, project)))

    def made_by(self, snapshot: Snapshot, start: int, end: int, text: str) -> Iterator[int]:
        """Where an edit would make the new name of the old one."""
        if not self.names:
            return
        first, last = snapshot.line_start(snapshot.line_of(start)), snapshot.line_end(snapshot.line_of(end))
        before = snapshot.text[first:last]
        after = snapshot.text[first:start] + text + snapshot.text[end:last]
        for touch in touches_of(before, after):
            went, came = (words_of(piece) for piece in pieces(before, after, touch))
            gone = {old for old, new in self.names if old in went and new in came}
            at = first + touch.start
            yield from (at + each.start for each in tokens(snapshot.text[at : first + touch.end]) if each.text in gone)


def declared(learned: Iterable[Rule], homes: Mapping[str, Snapshot], project: Project) -> Iterator[Rule]:
    for each in learned:
        rule = occurrences.where_declared(each, homes, project)
        if rule.kind == "rename" and rule.path in homes and occurrences.declared(rule, homes[rule.path], project):
            yield rule


def sought(edits: Sequence[Edit], homes: Mapping[str, Snapshot]) -> list[frozenset[str]]:
    """The names that all stand in a file which uses what the latest edit renamed: its own, and those of its type, or
    of the function whose parameter it is."""
    learned = [rule for rule in rules(edits[-LATEST:]) if rule.age == 0]
    return [names for rule in declared(learned, homes, Project()) if (names := names_of_use(rule, homes[rule.path]))]


def names_of_use(rule: Rule, home: Snapshot) -> frozenset[str]:
    meant = occurrences.declared_there(rule, home)
    if rule.before in KEYWORDS or (meant.local is not None and not meant.function):
        return frozenset()
    whose = type_name(meant.owner) if meant.owner is not None else meant.function
    return frozenset(filter(None, (rule.before, whose)))


def may_use(text: str, names: frozenset[str]) -> bool:
    """Whether a file can use what has the only name of these: bare, or taken from what an import speaks of. Roughly,
    without a parser."""
    if len(names) != 1:
        return all(name in text for name in names)
    taken: set[str] = set()
    for match in re.finditer(rf"(?<![\w$]){re.escape(next(iter(names)))}\b", text):
        whose = TAKEN.search(text, max(match.start() - LONGEST_NAME, 0), match.start())
        if whose is None:
            return True
        taken.add(whose[1])
    return any(not taken.isdisjoint(re.findall(r"\w+", line)) for line in IMPORTING.findall(text) if taken)


def words_of(text: str) -> list[str]:
    return [each.text for each in tokens(text)]
