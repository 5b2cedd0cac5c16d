"""Delete: lines were removed; others of the same shape may go, too."""

from collections.abc import Hashable, Iterator, Sequence

from mercury_engine.api import Edit
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import shape
from mercury_ls.code.modules import Project
from mercury_ls.next_edit.examples import Example
from mercury_ls.next_edit.kinds.templates import matches
from mercury_ls.next_edit.places import Place
from mercury_ls.next_edit.rule import Rule


class Delete(Rule, frozen=True, kw_only=True):
    kind = "delete"
    is_of_lines = True

    @property
    def key(self) -> Hashable:
        return self.kind, shape(self.lines_before)

    def is_taken_back(self, later: Sequence[Edit]) -> bool:
        """Whether the lines were added again."""
        lines = self.lines_before.strip()
        return any(lines in edit.after and lines not in edit.before for edit in later)


def learn(example: Example) -> Iterator[Delete]:
    for line, text in example.removed:
        yield Delete(lines_before=text, line=line)


def find(rule: Delete, snapshot: Snapshot, home: Snapshot | None, project: Project) -> Iterator[Place]:
    for start, end, _, likeness in matches(rule.lines_before, rule.lines_before, snapshot):
        first, stop = snapshot.line_start(snapshot.line_of(start)), snapshot.line_stop(snapshot.line_of(end))
        yield Place(first, stop, "", likeness)


def suppress(rule: Delete, place: Place, snapshot: Snapshot) -> bool:
    """One removed line says nothing about lines with other names."""
    return rule.count == 1 and rule.lines == 1 and place.likeness < 1.0


def label(rule: Delete) -> str:
    return "delete these lines too"
