"""Whether a new name already means something else where the renamed one is declared or used."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from tree_sitter import Node

from mercury_engine.api import Edit
from mercury_ls.code import scopes, symbols, syntax, traits
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.index import facts
from mercury_ls.code.modules import Project, family, in_import, package_of
from mercury_ls.code.parts import kind_of
from mercury_ls.code.scopes import Binding, whole
from mercury_ls.code.symbols import text_of, type_name
from mercury_ls.code.syntax import innermost, outward
from mercury_ls.next_edit.kinds.rename.declared import renamed_symbol
from mercury_ls.next_edit.kinds.rename.rule import Rename
from mercury_ls.next_edit.kinds.rename.uses import uses_in_family
from mercury_ls.next_edit.places import named_from
from mercury_ls.next_edit.rule import in_label
from mercury_ls.next_edit.situation import typed_ranges

MOST_FILES = 48
ALTERNATIVES = re.compile("else|elif|except|catch|case|_arm")
IMPORTS = frozenset({"import_clause", "import_require_clause", "namespace_import"})
"""What binds a whole module, or its default export, to a name."""
NESTED = frozenset({"interface_type", "object_type", "struct_type"})
"""Types without a name, in which a member may have the name of one around them."""
VALUES_TOO = re.compile("class|enum|import")
"""What is a value and a type in TypeScript."""

Taken = Iterator[tuple[Snapshot, int]]


def clash(rule: Rename, home: Snapshot, project: Project, accepted: Sequence[Edit] = ()) -> str:
    """Why the rename would mix up two things; empty if it would not. `accepted` are the edits that offers made."""

    def reason() -> str:
        node = scopes.node_at(home, rule.offset(home))
        if node is None or syntax.inside(home, rule.offset(home)) is not None:
            return ""
        taken_here, taken_beside = _taken_here(rule, home, node, accepted), _taken_beside(rule, home, node, project)
        for file, at in chain(taken_here, taken_beside, _taken_below(rule, home, project, accepted)):
            place = named_from(home, file, at)
            before, after = in_label(rule.before), in_label(rule.after)
            return f"the name {after} is taken at {place}: {before} cannot be told from it any more"
        return ""

    return project.once(("clash", rule, home.path), reason)


def _taken_here(rule: Rename, home: Snapshot, renamed: Node, accepted: Sequence[Edit]) -> Taken:
    own = None if scopes.is_member(renamed) else scopes.binding(home, renamed)
    for at, node in _had_before(rule, home, accepted):
        if not node.type.endswith("identifier"):
            continue
        is_of_locals = not scopes.is_member(renamed) and not scopes.is_member(node)
        if is_of_locals and (own is not None or scopes.binding(home, node) is not None):
            if _mixes(rule, home, own, at, node):
                yield home, at
        elif _is_declared_beside(renamed, home, node, home):
            yield home, at


def _had_before(rule: Rename, file: Snapshot, accepted: Sequence[Edit]) -> Iterator[tuple[int, Node]]:
    """Where the file has the new name, and had it before the rename."""
    offered = [reach for _, reach in typed_ranges(file, accepted)]
    for at, node in scopes.nodes_of(file, rule.after):
        is_offered = any(start <= at < end for start, end in offered)
        if not is_offered and not _is_made_by_user(rule, file, at):
            yield at, node


def _taken_beside(rule: Rename, home: Snapshot, renamed: Node, project: Project) -> Taken:
    """Where other files of the package have it: in Go all that is not local, in Java a class,
    in Kotlin what is no member."""
    language = family(home.path)
    is_member = language in traits.NESTING and symbols.owner_of(renamed) is not None
    if language not in traits.PACKAGED - {"rust"} or is_member or _scope_of(home, renamed) is None:
        return
    if language in traits.SCATTERED_PACKAGES:
        files = project.in_package(package_of(home), rule.after, home.path)
    else:
        files = project.beside(home.path, rule.after)
    beside = [file for file in files or () if file.path != home.path and project.share_a_package(home, file)]
    for file in beside:
        for at, node in scopes.nodes_of(file, rule.after):
            if _is_declared_beside(renamed, home, node, file):
                yield file, at


def _taken_below(rule: Rename, home: Snapshot, project: Project, accepted: Sequence[Edit]) -> Taken:
    """Where classes have it that derive from the one whose member it is."""
    symbol = renamed_symbol(rule, home)
    if symbol.owner is None or symbol.node is None or family(home.path) not in traits.CLASSES:
        return
    for path in dict.fromkeys((home.path, *islice(project.mentioning(rule.after, home.path), MOST_FILES))):
        file = home if path == home.path else project.file(path)
        if file is None or not facts.classes(file):
            continue
        kin = uses_in_family(rule.before, rule.after, symbol, home, file, project).kin
        for at, node in _had_before(rule, file, accepted):
            if kin is not None and kin.overrides(file, node):
                yield file, at


def _mixes(rule: Rename, home: Snapshot, own: Binding | None, at: int, node: Node) -> bool:
    """Whether the new name at `at` is another declaration that has uses of the old name in its reach, or is another's
    use in the reach of the renamed one."""
    declared = scopes.binding(home, node)
    if declared is None:
        return own is not None and own.start <= at < own.end and not scopes.declares(node)
    start, end = declared.reach
    if own is not None:
        if declared.reach == own.reach:
            return True
        start, end = max(start, own.reach[0]), min(end, own.reach[1])
    uses = (use for use in scopes.mentions(home, rule.before) if start <= use < end)
    return any(_is_use(rule, home, use) for use in uses)


def _is_declared_beside(renamed: Node, home: Snapshot, node: Node, file: Snapshot) -> bool:
    """Whether both are declared in one scope that cannot hold them by one name."""
    scope = _scope_of(home, renamed)
    if scope is None or scope != _scope_of(file, node):
        return False
    if symbols.category(renamed, home) != symbols.category(node, file):
        return False
    if _spaces(renamed, home).isdisjoint(_spaces(node, file)):
        return False
    return not _may_share_a_name(renamed, home, node)


def _may_share_a_name(renamed: Node, home: Snapshot, node: Node) -> bool:
    """Whether two of one scope may: imports, overloads, and what is declared in the branches of a condition."""
    if in_import(renamed) and in_import(node):
        return True
    return _are_alternatives(renamed, node) or _are_overloads(renamed, node, home)


def _scope_of(file: Snapshot, node: Node) -> tuple[str, str, int] | None:
    """The type with its trait, or the namespace, in which it is declared, and where a nested type begins; None if it is
    local, or declares nothing."""
    if (around := symbols.class_of_field(node)) is not None:
        return type_name(around), "", -1
    is_local = not scopes.is_member(node) and scopes.binding(file, node) is not None
    if is_local or not (scopes.declares(node) or kind_of(node.parent) in IMPORTS):
        return None
    owner = symbols.owner_of(node)
    if owner is None:
        return None if scopes.is_member(node) else ("", symbols.namespace_of(node), -1)
    nested = innermost(node, NESTED)
    is_nested = nested is not None and nested.parent != owner and owner.start_byte <= nested.start_byte
    trait = text_of(owner.child_by_field_name("trait"))
    return type_name(owner), trait, nested.start_byte if nested is not None and is_nested else -1


def _are_alternatives(first: Node, second: Node) -> bool:
    """Whether only one of the two is there in the end: they stand in branches of one statement."""
    around = {node.id: node for node in outward(first)}
    inner = [node for node in outward(second) if node.id not in around]
    if not inner:
        return False
    branch = inner[-1]
    other = next((node for node in around.values() if node.parent == branch.parent), None)
    return any(ALTERNATIVES.search(kind_of(node)) for node in (other, branch))


def _spaces(node: Node, file: Snapshot) -> set[str]:
    """The kinds of things with which it cannot share its name."""
    parent, language = node.parent, family(file.path)
    if parent is None or language not in traits.TYPES_APART:
        return {""}
    if language == "rust" and parent.type == "field_declaration":
        return {"field"}
    if parent.type in scopes.IMPORTED:
        return {"type", "value"}
    if language == "javascript" and VALUES_TOO.search(parent.type):
        return {"type", "value"}
    is_type = parent.type in scopes.TYPES | {"mod_item", "type_item"}
    return {"type" if is_type and scopes.names_it(node, parent) else "value"}


def _are_overloads(first: Node, second: Node, home: Snapshot) -> bool:
    """Whether they are functions with other parameters in a language that tells them apart by these."""
    parameters = [symbols.nameless_parameters(node) for node in (first, second)]
    return family(home.path) in traits.OVERLOADING and None not in parameters and parameters[0] != parameters[1]


def _is_made_by_user(rule: Rename, home: Snapshot, at: int) -> bool:
    """Whether the name came with the rename itself: on a line of it that did not have the name before."""
    if home.path == rule.path and at == rule.offset(home):
        return True
    number = home.line_of(at)
    edited = any(path == home.path and first <= number < first + rule.lines for path, first in rule.places)
    return edited and not re.search(whole(rule.after), rule.lines_before)


def _is_use(rule: Rename, home: Snapshot, at: int) -> bool:
    """Whether the old name there can be what was renamed: no member, and no other parameter or local."""
    node = scopes.node_at(home, at)
    return node is not None and not scopes.is_member(node) and scopes.local_at(home, at, (rule.before,)) is None
