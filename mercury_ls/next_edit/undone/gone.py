"""Names whose declaration or import the last edit took away, and that are used nevertheless."""

from collections.abc import Callable, Generator, Iterator
from itertools import islice
from os.path import dirname

from msgspec import Struct

from mercury_engine.api import Edit
from mercury_ls.code import scopes
from mercury_ls.code.differences import WORD
from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.code.index.definitions import declared, declared_at
from mercury_ls.code.lexemes import KEYWORDS, indentation
from mercury_ls.code.modules import Imported, Project, family, imports_of, in_import
from mercury_ls.code.parts import kind_of
from mercury_ls.next_edit.kinds.imports import is_bare_use

MOST_NAMES, MOST_FILES = 16, 16

Place = tuple[Snapshot, int]


def uses(edit: Edit, home: Snapshot, project: Project) -> Generator[None, None, list[tuple[str, list[Place]]]]:
    new_words = {*WORD.findall(edit.after), *KEYWORDS}
    names = [name for name in dict.fromkeys(WORD.findall(edit.before)) if name not in new_words][:MOST_NAMES]
    bound_now = {*map(_bound, project.imports(home))}
    if "*" in bound_now or not (names or is_of_imports(edit, home)):
        return []
    start = home.line_start(edit.line)
    text = home.text[:start] + edit.before + home.text[start + len(edit.after) :]
    document = Document(home.uri, home.path, home.language, home.version, text)
    yield from document.parsing()
    removal = _Gone.by(edit, home, document.snapshot(), bound_now)
    places_by_name: list[tuple[str, list[Place]]] = []
    for name in dict.fromkeys((*names, *sorted(removal.imported))):
        if places := [*removal.uses_of(name, project)]:
            places_by_name.append((name, places))
        yield
    return places_by_name


def is_of_imports(edit: Edit, home: Snapshot) -> bool:
    node = scopes.node_at(home, home.line_start(edit.line) + len(indentation(home.line(edit.line))))
    return node is not None and in_import(node)


def _bound(imported: Imported) -> str:
    return imported.alias.partition(".")[0]


class _Gone(Struct, frozen=True):
    """`lines` of the file as it was `earlier`, of whose imports `imported` are there no more. `is_deleted`:
    nothing stands in their place."""

    home: Snapshot
    earlier: Snapshot
    lines: range
    is_deleted: bool
    imported: frozenset[str]

    @classmethod
    def by(cls, edit: Edit, home: Snapshot, earlier: Snapshot, bound_now: set[str]) -> "_Gone":
        lines = range(edit.line, edit.line + edit.before.count("\n") + 1)
        own = (imported for imported in imports_of(earlier) if earlier.line_of(imported.start) in lines)
        return cls(home, earlier, lines, not edit.after.strip(), frozenset(map(_bound, own)) - bound_now)

    def uses_of(self, name: str, project: Project) -> Iterator[Place]:
        declared_before = next(filter(self._is_in_lines, _declarations(name, self.earlier)), None)
        if declared_before is None and name not in self.imported:
            return
        binding = None if declared_before is None else scopes.local_at(self.earlier, declared_before, (name,))
        if binding is not None and self.is_deleted and {*map(self._is_in_lines, binding.reach)} == {True}:
            return  # its function went as well
        around = scopes.function_range(self.home, self.home.line_start(self.lines[0]))
        first, last = around if binding else (0, len(self.home.text))
        for at in _bare_uses(name, self.home, lambda at: not declared_at(self.home, name, at)):
            if first <= at < last:
                yield self.home, at
        if declared_before is not None and binding is None and not declared(self.home, name):
            yield from self._elsewhere(name, project)

    def _is_in_lines(self, offset: int) -> bool:
        return self.earlier.line_of(offset) in self.lines

    def _elsewhere(self, name: str, project: Project) -> Iterator[Place]:
        """Where other files import what was declared at the top, or in Go use it."""
        paths = islice(project.mentioning(name, self.home.path), MOST_FILES)
        for file in filter(None, map(project.file, paths)):
            if family(file.path) != "go":
                yield from ((file, at) for at in self._imports_in(file, name, project))
            elif dirname(file.path) == dirname(self.home.path) and not declared(file, name):
                yield from ((file, at) for at in _bare_uses(name, file))

    def _imports_in(self, file: Snapshot, name: str, project: Project) -> Iterator[int]:
        for imported in project.imports(file):
            if imported.name == name and project.module(file, imported.module) == self.home.path:
                yield imported.start


def _declarations(name: str, file: Snapshot) -> Iterator[int]:
    for at, node in scopes.nodes_of(file, name):
        if scopes.declares(node) and not scopes.is_member(node) and "type_parameter" not in kind_of(node.parent):
            yield at


def _bare_uses(name: str, file: Snapshot, fits: Callable[[int], bool] = lambda offset: True) -> Iterator[int]:
    return (at for at, node in scopes.nodes_of(file, name) if is_bare_use(node, file, at) and fits(at))
