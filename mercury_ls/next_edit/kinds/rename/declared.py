"""Where a renamed name is declared, and whether the edits renamed it there."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace
from tree_sitter import Node

from mercury_engine.api import Edit
from mercury_ls.code import scopes, syntax, traits
from mercury_ls.code.documents import Snapshot, cached
from mercury_ls.code.index.symbol import Symbol, symbol_at
from mercury_ls.code.lexemes import tokens_of
from mercury_ls.code.modules import Project, family
from mercury_ls.code.parts import kind_of, part_of
from mercury_ls.code.symbols import called_with_keyword, is_qualified, namespace_of
from mercury_ls.next_edit.kinds.rename.rule import Rename
from mercury_ls.next_edit.kinds.rename.uses import Uses
from mercury_ls.next_edit.places import defines
from mercury_ls.next_edit.rule import Rule


def is_declared(rule: Rename, home: Snapshot, project: Project) -> bool:
    """Whether the edits renamed the first declaration, so that nothing has the old name by now."""
    return project.once(("declared", rule, home.path), lambda: _is_declared_anew(rule, home, project))


def where_declared(rule: Rule, homes: Mapping[str, Snapshot], project: Project, edits: Sequence[Edit] = ()) -> Rule:
    """The rule as learned at the declaration, if one of its edits was made there, or another edit renamed it there:
    going on to a use first changes nothing."""
    home = homes.get(rule.path)
    if not isinstance(rule, Rename) or (home is not None and is_declared(rule, home, project)):
        return rule
    edited = [(path, first, rule.lines) for path, first in rule.places]
    edited += [(edit.path, edit.line, edit.after.count("\n")) for edit in edits if _gives(rule, edit)]
    for path, first, lines in edited:
        if path not in homes:
            continue
        for moved in _at_declarations(rule, homes[path], first, lines):
            if is_declared(moved, homes[path], project):
                return moved
    return rule


def _gives(rule: Rename, edit: Edit) -> bool:
    """Whether the edit replaced the old name by the new one, leaving none."""
    went, came = ({*tokens_of(text)} for text in (edit.before, edit.after))
    return rule.before in went - came and rule.after in came - went


def _at_declarations(rule: Rename, file: Snapshot, first: int, lines: int) -> Iterator[Rename]:
    for at, node in scopes.nodes_of(file, rule.after):
        number = file.line_of(at)
        if first <= number < first + lines and scopes.declares(node):
            column = at - file.line_start(number) + len(rule.after)
            places = tuple(dict.fromkeys((*rule.places, (file.path, number))))
            yield replace(rule, path=file.path, line=number, column=column, places=places)


def renamed_symbol(rule: Rename, home: Snapshot | None) -> Symbol:
    """What was renamed, regardless of where it may be used."""
    return symbol_at(rule.before, rule.after, home, rule.offset(home)) if home else Symbol()


def _old_and_new(rule: Rename, home: Snapshot, project: Project) -> tuple[list[Node], list[Node]]:
    """Where the file still declares it by its old name, and by the new one."""

    def nodes() -> tuple[list[Node], list[Node]]:
        symbol = renamed_symbol(rule, home)
        return symbol.declarations(rule.before, home), symbol.declarations(rule.after, home)

    return project.once(("declarations", rule, home.path), nodes)


def assigned_by_its_old_name(rule: Rename, home: Snapshot, project: Project) -> list[int]:
    """Where a local is still declared by its old name, of which only one assignment or use got a new one."""
    if syntax.inside(home, rule.offset(home)) is not None:
        return []
    old, new = _old_and_new(rule, home, project)
    if renamed_symbol(rule, home).local is None or any(_line_of(node, home) != rule.line for node in new):
        return []
    return [home.offset_of_byte(node.start_byte) for node in old]


def is_one_of_several(rule: Rename, home: Snapshot, project: Project) -> bool:
    """Whether one of several functions of the name was renamed: nobody can tell which of them a use refers to. An
    interface of TypeScript that is left extends the class that was renamed."""
    old, new = _old_and_new(rule, home, project)
    if not any(map(_is_interface, new)):
        old = [node for node in old if not _is_interface(node)]
    if family(home.path) not in traits.IMPLICIT_RECEIVERS:
        old, new = [*filter(_has_body, old)], [*filter(_has_body, new)]
    return not {*map(namespace_of, old)}.isdisjoint(map(namespace_of, new))


def _is_interface(node: Node) -> bool:
    return kind_of(node.parent) == "interface_declaration"


def is_of_a_use(rule: Rename, home: Snapshot, project: Project) -> bool:
    """Whether only a use got another name, and no target of an assignment that may declare it: the file still declares
    by the old name what it referred to, or never did, as with names that the language itself has."""
    return project.once(("use", rule, home.path), lambda: _refers_to_declared(rule, home, project))


def _refers_to_declared(rule: Rename, home: Snapshot, project: Project) -> bool:
    use, language = rule.offset(home), home.written_in.id
    edited, is_given = scopes.node_at(home, use), defines(rule.left, rule.right)
    if edited is None or scopes.declares(edited):
        return False
    if is_given and (language not in traits.ASSIGNMENTS_DECLARE_NOTHING or is_qualified(edited)):
        return False
    declared = _places_of_declarations(home, rule.before)
    if not declared and not is_given and language in traits.EXPLICIT_NAMES:
        is_bare = not is_qualified(edited) and not called_with_keyword(edited)
        return is_bare and edited.type.endswith("identifier")

    def may_refer(at: int) -> bool:
        symbol = symbol_at(rule.before, rule.after, home, at)
        return Uses(rule.before, rule.after, symbol, home, home, project).may_refer(use)

    return any(project.each(("refers", rule, home.path), declared, may_refer))


@cached
def _places_of_declarations(home: Snapshot, name: str) -> list[int]:
    return [at for at, node in scopes.nodes_of(home, name) if scopes.declares(node)]


def _is_declared_anew(rule: Rename, home: Snapshot, project: Project) -> bool:
    old, new = _old_and_new(rule, home, project)
    if not new or any(node.start_byte < new[0].start_byte for node in old):
        return False
    number = _line_of(new[0], home)
    return any(path == home.path and first <= number < first + rule.lines for path, first in rule.places)


def _line_of(node: Node, home: Snapshot) -> int:
    return home.line_of(home.offset_of_byte(node.start_byte))


def _has_body(node: Node) -> bool:
    """Whether it names a function or a type with a body; the accessors of a property do not count."""
    around = node.parent
    if around is None or not scopes.names_it(node, around):
        return False
    is_decorated = kind_of(around.parent) == "decorated_definition"
    is_accessor = is_decorated or any(child.type in ("get", "set") for child in around.children)
    return part_of(around, "body") is not None and not is_accessor
