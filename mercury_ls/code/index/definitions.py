"""Where a name is declared: in scope, or in the file from which an import brings it, by any re-exports."""

from collections.abc import Iterable, Iterator
from itertools import islice
from os.path import dirname, join
from pathlib import PurePath

from msgspec import Struct
from tree_sitter import Node

from mercury_ls.code import scopes, symbols, traits
from mercury_ls.code.documents import Snapshot, cached
from mercury_ls.code.modules import Imported, Project, default_exports, family, hands_out, in_import, package_of
from mercury_ls.code.parts import part_of
from mercury_ls.code.syntax import innermost, outward

MOST = 4096
"""Mentions of a name in a file: of a name with more, nothing is certain."""
PRIVATE_TO_FILES = frozenset(
    {"class_declaration", "function_declaration", "object_declaration", "property_declaration", "type_alias"}
)
MOST_STEPS = 12
"""Names, imports and bases that one question follows."""


class Declaration(Struct, frozen=True):
    """`name` is the node that declares it."""

    file: Snapshot
    name: Node

    @classmethod
    def of(cls, file: Snapshot, around: Node) -> "Declaration | None":
        """That of a type."""
        named = part_of(around, "name") if around.type in scopes.TYPES else None
        return cls(file, named) if named is not None else None

    @property
    def item(self) -> Node | None:
        """The function or type that it names."""
        parent = self.name.parent
        is_item = parent is not None and (parent.type in scopes.TYPES or parent.type in scopes.FUNCTIONS)
        return parent if is_item and parent is not None and scopes.names_it(self.name, parent) else None

    @property
    def type(self) -> Node | None:
        item = self.item
        return item if item is not None and item.type in scopes.TYPES else None

    @property
    def offset(self) -> int:
        return self.file.offset_of_byte(self.name.start_byte)

    @property
    def place(self) -> tuple[str, int]:
        return self.file.path, self.name.start_byte


@cached
def declared(file: Snapshot, name: str) -> dict[tuple[int, int] | None, list[Node]]:
    """What declares a name that is no member, by scopes; None is the file."""
    bindings, by_reach = scopes.bindings(file, (name,), MOST), dict[tuple[int, int] | None, list[Node]]()
    for at in islice(scopes.mentions(file, name), MOST):
        node = scopes.node_at(file, at)
        if node is None or scopes.is_member(node) or not (scopes.declares(node) or scopes.binding(file, node)):
            continue
        owner, local = symbols.owner_of(node), scopes.binding_at(file, at, bindings)
        if owner is None or symbols.type_name(owner) != name:  # else it is a constructor
            by_reach.setdefault(local and local.reach, []).append(node)
    return by_reach


def declared_at(file: Snapshot, name: str, offset: int) -> list[Node]:
    """What may declare what the name stands for at this place of its file."""
    local = scopes.binding_at(file, offset, scopes.bindings(file, (name,), MOST))
    nodes = declared(file, name).get(local and local.reach, [])
    is_scoped = family(file.path) in traits.IMPLICIT_RECEIVERS
    if local is not None or (symbols.allows_bare_members(file) and not is_scoped):
        return nodes
    inside = [*outward(scopes.node_at(file, offset))]
    if is_scoped:
        for owner in (*(node.parent for node in inside if _is_body_of_type(node)), None):
            if in_type := [node for node in nodes if symbols.owner_of(node) == owner]:
                return in_type
        return []
    around = [node for node in inside if node.type in scopes.FUNCTIONS or _is_body_of_type(node)][:1]
    before = [node for node in nodes if (node.parent or node).end_byte <= file.byte(offset)]
    in_type = [node for node in before for body in around if (owner := symbols.owner_of(node)) and owner == body.parent]
    return in_type or [node for node in nodes if symbols.owner_of(node) is None]


def _is_body_of_type(node: Node) -> bool:
    parent = node.parent
    return parent is not None and parent.type in scopes.TYPES and part_of(parent, "body") == node


class Renamed(Struct, frozen=True):
    """What a file declared by this `name` until now."""

    name: str
    definition: Declaration


class Meaning(Struct, frozen=True):
    """What a path of names may stand for: one of `definitions`, or something else unless `is_known`."""

    definitions: tuple[Declaration, ...] = ()
    is_known: bool = True

    @classmethod
    def joined(cls, meanings: "Iterable[Meaning]") -> "Meaning":
        all_meanings = [*meanings]
        declared = (definition for meaning in all_meanings for definition in meaning.definitions)
        return cls(tuple(dict.fromkeys(declared)), all(meaning.is_known for meaning in all_meanings))


NOTHING = Meaning()
UNKNOWN = Meaning(is_known=False)


def definitions(
    project: Project, file: Snapshot, path: str, offset: int, steps: int = MOST_STEPS
) -> tuple[Declaration, ...] | None:
    """The declarations of what a path of names stands for there; None if it may be something else."""
    meaning = meaning_of(project, file, path, offset, steps=steps)
    return meaning.definitions or None if meaning.is_known else None


def meaning_of(
    project: Project,
    file: Snapshot,
    path: str,
    offset: int,
    renamed: Renamed | None = None,
    steps: int = MOST_STEPS,
) -> Meaning:
    mark = "::" if family(file.path) == "rust" else "."
    *qualifier, name = path.split(mark)
    if not steps or not name:
        return UNKNOWN
    if not qualifier:
        return _of_name(project, file, name, offset, renamed, steps)
    modules = [*spelled(project.imports(file), qualifier, mark)]
    at_head = declared_at(file, qualifier[0], offset) if mark == "." else []
    if modules and all(_is_imported(project, file, node) for node in at_head):
        return Meaning.joined(in_module(project, file, module, name, renamed, steps) for module in modules)
    if family(file.path) in traits.SCATTERED_PACKAGES and not at_head:
        in_package = _in_scattered_package(project, file, mark.join(qualifier), name, renamed, steps)
        if in_package.definitions:
            return in_package
    outer = meaning_of(project, file, mark.join(qualifier), offset, renamed, steps - 1)
    types = [(definition.file, definition.type) for definition in outer.definitions]
    members = Meaning.joined(_in_type(source, around, name) for source, around in types)
    return members if outer.is_known and types else UNKNOWN


def _of_name(project: Project, file: Snapshot, name: str, offset: int, renamed: Renamed | None, steps: int) -> Meaning:
    named = [imported for imported in project.imports(file) if imported.alias == name]
    within = [imported for imported in named if _is_of_function(file, imported, offset)]
    nodes = declared_at(file, name, offset)
    if within and not any(scopes.binding(file, node) for node in nodes):
        nodes = []
    if renamed is not None:
        nodes = [node for node in nodes if _may_be(renamed.definition, file, node)]
    own = [Declaration(file, node) for node in nodes if not _is_imported(project, file, node)]
    if len(own) < len(nodes):
        offsets = (
            file.offset_of_byte(node.start_byte)
            for node in nodes
            if node not in [declaration.name for declaration in own]
        )
        named = [imported for at in offsets for imported in _last_before(at, named)]
    else:
        named = (
            []
            if nodes
            else within or [imported for imported in named if scopes.enclosing_range(file, imported.start) is None]
        )
    if own or named:
        answers = (_imported(project, file, imported, name, renamed, steps - 1) for imported in named)
        return Meaning.joined([Meaning(tuple(own)), *answers])
    is_beside = renamed is not None and renamed.name == name and _is_beside(project, file, renamed.definition)
    if is_beside and renamed is not None and family(file.path) not in traits.SCATTERED_PACKAGES:
        return Meaning((renamed.definition,))
    beside = _in_package(project, file, name, renamed)
    if beside.definitions or not beside.is_known:
        return beside
    stars = [imported for imported in project.imports(file) if imported.name == "*"]
    if stars:
        return Meaning.joined(_imported(project, file, star, name, renamed, steps - 1) for star in stars)
    return beside


def _is_beside(project: Project, file: Snapshot, definition: Declaration) -> bool:
    """Whether a file sees the name without an import."""
    return file.path == definition.file.path or project.share_a_package(file, definition.file)


def _may_be(definition: Declaration, file: Snapshot, node: Node) -> bool:
    """Whether a name stands for a thing of the same kind, and for no member."""
    is_alike = symbols.category(node, file) == symbols.category(definition.name, definition.file)
    return is_alike and not (symbols.allows_bare_members(file) and symbols.owner_of(node) is not None)


def _is_imported(project: Project, file: Snapshot, node: Node) -> bool:
    return in_import(node) or file.offset_of_byte(node.start_byte) in {
        imported.start for imported in project.imports(file)
    }


def _is_of_function(file: Snapshot, imported: Imported, offset: int) -> bool:
    reach = scopes.enclosing_range(file, imported.start)
    return reach is not None and reach[0] <= offset < reach[1]


def _last_before(offset: int, imports: Iterable[Imported]) -> list[Imported]:
    """The import whose alias stands there: its name comes before."""
    return sorted((imported for imported in imports if imported.start <= offset), key=lambda i: i.start)[-1:]


def _imported(
    project: Project, file: Snapshot, imported: Imported, name: str, renamed: Renamed | None, steps: int
) -> Meaning:
    is_other = renamed is not None and imported.name not in (renamed.name, "*")
    if not imported.name or is_other:
        return UNKNOWN
    return in_module(project, file, imported.module, name if imported.name == "*" else imported.name, renamed, steps)


def in_module(
    project: Project, file: Snapshot, module: str, name: str, renamed: Renamed | None, steps: int = MOST_STEPS
) -> Meaning:
    language = family(file.path)
    if language in traits.SCATTERED_PACKAGES:
        return _in_scattered_package(project, file, module, name, renamed, steps)
    path = project.module(file, module)
    if path is None or not steps:
        return UNKNOWN
    if language == "go":
        is_here = renamed is not None and renamed.name == name and dirname(renamed.definition.file.path) == path
        own = Meaning((renamed.definition,)) if renamed is not None and is_here else NOTHING
        return Meaning.joined([own, _among(project.within(path, name, file.path), name)])
    source = project.file(join(path, f"{name}.java") if language == "java" and not path.endswith(".java") else path)
    if source is None or not hands_out(source, name):
        return UNKNOWN
    exported = default_exports(source) if name == "default" else ()
    name = exported[0] if len(exported) == 1 else name
    return _of_name(project, source, name, len(source.text), renamed, steps)


def _in_scattered_package(
    project: Project, file: Snapshot, package: str, name: str, renamed: Renamed | None, steps: int
) -> Meaning:
    """What the files of a package of Kotlin declare, or the type that the path leads to."""
    files = project.in_package(package, name, file.path)
    if files is None or not steps:
        return UNKNOWN
    declared = _among(files, name).definitions
    if renamed is not None and renamed.name == name and package_of(renamed.definition.file) == package:
        declared = (*declared, renamed.definition)
    if seen := tuple(each for each in declared if each.file.path == file.path or not _is_private(each)):
        return Meaning(seen)
    outer, _, type_named = package.rpartition(".")
    around = _in_scattered_package(project, file, outer, type_named, None, steps - 1) if type_named else NOTHING
    types = [(each.file, each.type) for each in around.definitions if each.type is not None]
    return Meaning.joined(_in_type(source, type_node, name) for source, type_node in types)


def _is_private(definition: Declaration) -> bool:
    """Whether only its own file sees it in Kotlin."""
    item = innermost(definition.name, PRIVATE_TO_FILES)
    return item is not None and b"private" in (item.named_children[0].text or b"").split()


def _in_package(project: Project, file: Snapshot, name: str, renamed: Renamed | None) -> Meaning:
    """What other files of the package declare, which need no import in Go, Java and Kotlin."""
    if family(file.path) in traits.SCATTERED_PACKAGES:
        return _in_scattered_package(project, file, package_of(file), name, renamed, 1)
    if family(file.path) == "go":
        files = project.beside(file.path, name)
        return _among(files and [other for other in files if project.share_a_package(other, file)], name)
    if family(file.path) != "java" or PurePath(file.path).stem == name:
        return NOTHING
    beside = str(PurePath(file.path).with_name(f"{name}.java"))
    paths = (beside, *(path for path in project.near if PurePath(path).name == f"{name}.java"))
    sources = (project.file(path) for path in paths if project.exists(path))
    in_package = (source for source in sources if source is not None and project.share_a_package(source, file))
    return _among([*islice(in_package, 1)], name)


def _among(files: Iterable[Snapshot] | None, name: str) -> Meaning:
    """What files declare by a name, as far as all of them are known."""
    if files is None:
        return UNKNOWN
    nodes = [(file, node) for file in files for node in declared(file, name).get(None, ())]
    top_level = [(file, node) for file, node in nodes if symbols.owner_of(node) is None and not in_import(node)]
    return Meaning(tuple(Declaration(file, node) for file, node in top_level))


def _in_type(file: Snapshot, around: Node | None, name: str) -> Meaning:
    nodes = [scopes.node_at(file, at) for at in scopes.mentions(file, name)[: MOST if around is not None else 0]]
    declaring = [node for node in nodes if node is not None and scopes.declares(node)]
    members = tuple(Declaration(file, node) for node in declaring if symbols.owner_of(node) == around)
    return Meaning(members, is_known=bool(members))


def spelled(imports: Iterable[Imported], parts: list[str], mark: str) -> Iterator[str]:
    """The modules that the imports give for the path."""
    named_imports = [imported for imported in imports if imported.name != "*" and not imported.is_passed_on]
    if mark == "::":
        matching = [imported for imported in named_imports if imported.alias == parts[0]]
        yield from (mark.join([imported.module, imported.name, *parts[1:]]).removeprefix(mark) for imported in matching)
        if not matching:
            yield mark.join(parts)
        return
    for imported in named_imports:
        words = imported.alias.split(".")
        begins = parts[: len(words)] == words
        if begins and (imported.name or len(words) == 1):
            whole = imported.module if imported.module.endswith(".") or not imported.name else imported.module + "."
            yield ".".join([whole + imported.name, *parts[1:]])
        elif begins:
            yield ".".join([imported.module, *parts[len(words) :]])
        elif not imported.name and words[0] == parts[0] and len(words) > 1:
            # `import a.b` of Python makes `a` known, and what else of it has been imported by anybody.
            yield ".".join(parts)
