"""What a rename leaves undone: places that may refer to the renamed symbol, where nothing says so for certain."""

from collections.abc import Iterable, Iterator, Set
from itertools import islice
from pathlib import PurePath

from mercury_ls.code import scopes, symbols, syntax
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.modules import Project
from mercury_ls.code.symbols import Symbol
from mercury_ls.code.syntax import outward
from mercury_ls.next_edit.kinds.rename.declared import renamed_symbol
from mercury_ls.next_edit.kinds.rename.rule import Rename
from mercury_ls.wording import counted

__all__ = ["note_of"]

MOST_MENTIONS = 1024
MOST_LISTED = 5
ANNOTATIONS = frozenset({"type"})
STRINGS = frozenset({"string", "string_content"})


def note_of(
    rule: Rename, home: Snapshot, files: Iterable[Snapshot], project: Project, places_offered: Set[tuple[str, int]]
) -> str:
    """Names the places beside the `places_offered`, each a file and an offset; empty if there are none."""
    symbol = renamed_symbol(rule, home)
    unjudged_places = [
        place for file in files for place in unjudged(symbol, rule.before, home, file, project, places_offered)
    ]
    if not unjudged_places:
        return ""
    named = [f"{PurePath(file.path).name}:{file.line_of(at) + 1}" for file, at in unjudged_places]
    listed = ", ".join(dict.fromkeys(named[:MOST_LISTED])) + (" …" if len(named) > MOST_LISTED else "")
    return f"{counted(len(unjudged_places), 'more place')} cannot be judged: {listed}"


def unjudged(
    symbol: Symbol, name: str, home: Snapshot, file: Snapshot, project: Project, places_offered: Set[tuple[str, int]]
) -> Iterator[tuple[Snapshot, int]]:
    declared = symbol.node
    if declared is None or symbol.local is not None or not sees(file, home, project):
        return
    if not (scopes.declares(declared) or symbols.is_of_self(declared)):
        return  # a use got another name
    is_field = scopes.is_member(declared) or symbols.owner_of(declared) is not None
    modules = {imported.alias for imported in project.imports(file) if not imported.name}
    for at in islice(scopes.mentions(file, name), MOST_MENTIONS):
        node = scopes.node_at(file, at)
        if node is None or (file.uri, at) in places_offered or syntax.inside(file, at) == "comment":
            continue
        if is_field:
            is_other = scopes.declares(node) or symbols.is_of_another_self(declared, node)
            is_open = scopes.is_member(node) and not is_other and symbols.qualifier_of(node) not in modules
        else:
            is_open = node.type in STRINGS and any(around.type in ANNOTATIONS for around in outward(node))
        if is_open:
            yield file, at


def sees(file: Snapshot, home: Snapshot, project: Project) -> bool:
    """Whether the file is the one that declares it, or imports something from there."""
    if file.path == home.path:
        return True
    return any(project.module(file, imported.module, file.path) == home.path for imported in project.imports(file))
