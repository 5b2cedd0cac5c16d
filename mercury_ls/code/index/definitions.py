"""Where a name is declared: in scope, or in the file from which an import brings it, by any re-exports."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise, takewhile
from os.path import dirname, join
from pathlib import PurePath

from msgspec import Struct
from tree_sitter import Node

from mercury_ls.code import scopes, symbols, traits
from mercury_ls.code.documents import Snapshot, cached
from mercury_ls.code.index import facts
from mercury_ls.code.modules import Imported, Project, default_exports, family, hands_out, in_import, package_of
from mercury_ls.code.parts import kind_of, part_of
from mercury_ls.code.syntax import innermost, range_of, upward

MOST_STEPS = 12
"""Names, imports and bases that one question follows."""


class Declaration(Struct, frozen=True):
    """`name` is the node that declares it."""

    file: Snapshot
    name: Node

    @classmethod
    def of(cls, file: Snapshot, around: Node | None) -> "Declaration | None":
        """That of a type."""
        named = part_of(around, "name") if kind_of(around) in scopes.TYPES else None
        return cls(file, named) if named is not None else None

    @property
    def item(self) -> Node | None:
        """The function or type that it names."""
        parent = self.name.parent
        if parent is None or parent.type not in scopes.TYPES | scopes.FUNCTIONS:
            return None
        return parent if scopes.names_it(self.name, parent) else None

    @property
    def type(self) -> Node | None:
        return self.item if kind_of(self.item) in scopes.TYPES else None

    @property
    def offset(self) -> int:
        return self.file.offset_of_byte(self.name.start_byte)

    @property
    def place(self) -> tuple[str, int]:
        return self.file.path, self.name.start_byte


@cached
def declared(file: Snapshot, name: str) -> dict[tuple[int, int] | None, list[Node]]:
    """What declares a name that is no member, by the scopes that see it; None is the file."""
    by_scope = dict[tuple[int, int] | None, list[Node]]()
    for at, node in scopes.nodes_of(file, name):
        if scopes.is_member(node) or not (scopes.declares(node) or scopes.binding(file, node)):
            continue
        owner, local = symbols.owner_of(node), scopes.local_at(file, at, (name,))
        is_of_object = owner is not None and family(file.path) in traits.IMPLICIT_RECEIVERS  # see `types.of_receivers`
        if is_of_object and Declaration(file, node).type is None:
            continue
        if owner is None or symbols.type_name(owner) != name:  # else it is a constructor
            by_scope.setdefault(local.reach if local is not None else _space_of(file, node), []).append(node)
    return by_scope


def _space_of(file: Snapshot, declared: Node) -> tuple[int, int] | None:
    """The namespace in whose body something is declared, of a class in Java and Kotlin the class around; None is the
    file."""
    if symbols.category(declared, file):
        return None
    if family(file.path) == "java" and Declaration(file, declared).type is None:
        return None
    item = declared.parent
    around = innermost(item and item.parent, _spaces(file))
    if around is None or scopes.names_it(declared, around):
        return None
    return range_of(file, around)


def _spaces(file: Snapshot) -> frozenset[str]:
    return symbols.NAMESPACES | scopes.TYPES if family(file.path) in traits.NESTING else symbols.NAMESPACES


def declares_at_top(project: Project, file: Snapshot, name: str) -> bool:
    """Whether a file declares a name at its top, apart from imports."""
    nodes = declared(file, name).get(None, ())
    return any(symbols.owner_of(node) is None and not _is_imported(project, file, node) for node in nodes)


def declared_at(file: Snapshot, name: str, offset: int) -> list[Node]:
    """What may declare what the name stands for at this place of its file."""
    local = scopes.binding_at(file, offset, (name,))
    if local is not None:
        return declared(file, name).get(local.reach, [])
    node = scopes.node_at(file, offset)
    path = upward(file, node)
    nodes = _in_innermost_space(file, name, path)
    if node is not None and node in nodes:
        return [node]
    if symbols.allows_bare_members(file):
        return nodes
    body = _body_around(_evaluated(path)) if family(file.path) == "python" else None
    before = [node for node in nodes if (node.parent or node).end_byte <= file.byte(offset)]
    members = _owned(before, body.parent) if body is not None else []
    return members or _owned(nodes, None)


def _in_innermost_space(file: Snapshot, name: str, path: Iterable[Node]) -> list[Node]:
    """What declares the name in the innermost namespace on the path that declares it, else in the file."""
    by_scope, kinds = declared(file, name), _spaces(file)
    spaces = (range_of(file, outer) for outer in path if outer.type in kinds)
    return by_scope.get(next((space for space in spaces if space in by_scope), None), [])


def _body_around(path: Sequence[Node]) -> Node | None:
    """The innermost function or body of a type on the path, which goes upwards."""
    pairs = pairwise(path)
    return next((inner for inner, outer in pairs if inner.type in scopes.FUNCTIONS or _has_body(outer, inner)), None)


def _has_body(node: Node, body: Node) -> bool:
    return node.type in scopes.TYPES and part_of(node, "body") == body


def _owned(nodes: Iterable[Node], owner: Node | None) -> list[Node]:
    """Those that a type declares: the body of one in Python sees what it has declared by the bare name."""
    return [node for node in nodes if symbols.owner_of(node) == owner]


def _evaluated(path: Sequence[Node]) -> Sequence[Node]:
    """Decorators, defaults and annotations of a Python function are evaluated where it is declared."""
    at = next((at for at, outer in enumerate(path) if at and outer.type in scopes.FUNCTIONS), 0)
    return path if not at or path[at - 1] == part_of(path[at], "body") else path[at + 1 :]


def _is_out_of_sight(file: Snapshot, name: str, offset: int) -> bool:
    """Whether a module of Rust within a file neither declares nor imports a name that stands in it."""
    modules = [outer for outer in upward(file, scopes.node_at(file, offset)) if outer.type == "mod_item"]
    for module in takewhile(lambda module: range_of(file, module) not in declared(file, name), modules):
        body = module.child_by_field_name("body")
        items = body.named_children if body else ()
        used = " ".join(symbols.text_of(item) for item in items if item.type == "use_declaration")
        if "super::*" not in used and name not in re.findall(r"\w+", used):
            return True
    return False


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
    return _of_members(project, meaning_of(project, file, mark.join(qualifier), offset, renamed, steps - 1), name)


def _of_members(project: Project, outer: Meaning, name: str) -> Meaning:
    """What the types of a path declare by a name, if each of them does."""
    members = [tuple(own_members(project, definition, name)) for definition in outer.definitions]
    return Meaning.joined(map(Meaning, members)) if outer.is_known and members and all(members) else UNKNOWN


def _of_name(project: Project, file: Snapshot, name: str, offset: int, renamed: Renamed | None, steps: int) -> Meaning:
    meaning = _without_stars(project, file, name, offset, renamed, steps)
    if meaning is not None:
        return meaning
    by_stars = partial(_by_stars, project, file, name, renamed, steps)
    return project.followed(("by stars", file, name, renamed), steps, by_stars, UNKNOWN, _is_known)


def _without_stars(
    project: Project, file: Snapshot, name: str, offset: int, renamed: Renamed | None, steps: int
) -> Meaning | None:
    """What the name stands for if the file says so; None if only an import of all names may bring it."""
    if _is_out_of_sight(file, name, offset):
        return UNKNOWN
    named = [imported for imported in project.imports(file) if imported.alias == name]
    within = _imports_of_function(file, named, offset)
    nodes = _nodes_at(project, file, name, offset, renamed, imports_it=bool(within))
    declarations = project.once(("own", file, name), lambda: _own(project, file, name))
    own = [declarations[node.id] for node in nodes if node.id in declarations]
    named = _imports_of(file, nodes, declarations, named) if nodes else within or _imports_at_top(file, named)
    if not (own or named):
        in_package = project.once(
            ("in package", file, name, renamed), lambda: _in_package(project, file, name, renamed)
        )
        return None if in_package == NOTHING and _stars(project, file) else in_package
    answers = [_imported(project, file, imported, name, renamed, steps - 1) for imported in named]
    if own and scopes.node_at(file, offset) not in nodes and all(map(_is_overloaded, own)):
        answers.append(_in_package(project, file, name, renamed))
    return Meaning.joined([Meaning(tuple(own)), *answers])


def _nodes_at(
    project: Project, file: Snapshot, name: str, offset: int, renamed: Renamed | None, *, imports_it: bool
) -> list[Node]:
    """What declares the name there: no global of the file where a function imports it."""
    nodes = declared_at(file, name, offset)
    if imports_it and not any(scopes.binding(file, node) for node in nodes):
        return []
    if renamed is None:
        return nodes
    ids, here = _alike(project, file, name, renamed), scopes.node_at(file, offset)
    if here is not None and here in nodes and _may_be(renamed, file, here, True):
        ids = {*ids, here.id}
    return [node for node in nodes if node.id in ids]


def _imports_of(
    file: Snapshot, nodes: Iterable[Node], declarations: Mapping[int, Declaration], named: Sequence[Imported]
) -> list[Imported]:
    """The import by which each of the nodes that declare nothing themselves has its meaning."""
    offsets = (file.offset_of_byte(node.start_byte) for node in nodes if node.id not in declarations)
    return [imported for at in offsets for imported in _last_before(at, named)]


def _imports_of_function(file: Snapshot, named: Iterable[Imported], offset: int) -> list[Imported]:
    return [imported for imported in named if _is_of_function(file, imported, offset)]


def _imports_at_top(file: Snapshot, named: Iterable[Imported]) -> list[Imported]:
    return [imported for imported in named if scopes.enclosing_range(file, imported.start) is None]


def _stars(project: Project, file: Snapshot) -> list[Imported]:
    return [imported for imported in project.imports(file) if imported.name == "*"]


def _by_stars(project: Project, file: Snapshot, name: str, renamed: Renamed | None, steps: int) -> Meaning:
    """What imports of all names bring. Files may import each other in circles: each is looked into once."""
    if family(file.path) in traits.PACKAGED - {"rust"}:
        stars = _stars(project, file)
        return Meaning.joined(_imported(project, file, star, name, renamed, steps - 1) for star in stars)
    answers: list[Meaning] = []
    level, reached = [file], set[str | None]({file.path})
    while level and steps > 0:
        steps -= 1
        paths = dict.fromkeys(path for source in level for path in _paths_of_stars(project, source))
        level = list[Snapshot]()
        for path in [path for path in paths if path not in reached]:
            target = project.file(path) if path is not None else None
            if target is None or not hands_out(target, name):
                answers.append(UNKNOWN)
                continue
            meaning = _at_top(project, target, name, renamed, steps)
            if meaning is None:
                level.append(target)
            else:
                answers.append(meaning)
        reached.update(paths)
    return Meaning.joined([*answers, UNKNOWN] if level else answers)


def _paths_of_stars(project: Project, file: Snapshot) -> tuple[str | None, ...]:
    """The files all of whose names a file imports; None is one that is not known."""
    return project.once(
        ("paths of stars", file),
        lambda: tuple(project.module(file, star.module) for star in _stars(project, file)),
    )


def _at_top(project: Project, file: Snapshot, name: str, renamed: Renamed | None, steps: int) -> Meaning | None:
    at_top = partial(_without_stars, project, file, name, len(file.text), renamed, steps)
    return project.followed(("at top", file, name, renamed), steps, at_top, UNKNOWN, _is_known)


def _is_overloaded(definition: Declaration) -> bool:
    """Whether another file of the package may declare a function of the name with other parameters, as in Kotlin."""
    is_function = definition.item is not None and definition.type is None
    is_scattered = family(definition.file.path) in traits.SCATTERED_PACKAGES
    return is_scattered and is_function and scopes.binding(definition.file, definition.name) is None


def _alike(project: Project, file: Snapshot, name: str, renamed: Renamed) -> frozenset[int]:
    """Those that declare a name which may stand for what was renamed."""
    nodes = chain.from_iterable(declared(file, name).values())
    return project.once(
        ("alike", file, name, renamed),
        lambda: frozenset(node.id for node in nodes if _may_be(renamed, file, node, is_here=False)),
    )


def _own(project: Project, file: Snapshot, name: str) -> dict[int, Declaration]:
    """What the file itself declares by the name: no imports, which do so for another file."""
    nodes = chain.from_iterable(declared(file, name).values())
    return {node.id: Declaration(file, node) for node in nodes if not _is_imported(project, file, node)}


def _may_be(renamed: Renamed, file: Snapshot, node: Node, is_here: bool) -> bool:
    """Whether a name stands for a thing of the same kind, and for no member, unless that is what it declares."""
    definition = renamed.definition
    is_alike = symbols.category(node, file) == symbols.category(definition.name, definition.file)
    is_member = symbols.owner_of(node) is not None and Declaration(file, node).type is None
    is_other = is_member and symbols.allows_bare_members(file) and (not is_here or constructs(node, definition.name))
    return is_alike and not is_other


def constructs(node: Node, declared: Node) -> bool:
    """Whether it is the name of a constructor of the type that is declared by another name."""
    around, is_function = symbols.owner_of(node), kind_of(node.parent) in {*scopes.FUNCTIONS, "function_declarator"}
    return is_function and around is not None and scopes.names_it(declared, around)


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
    at_end = partial(_of_name, project, source, name, len(source.text), renamed, steps)
    return project.followed(("at end", source, name, renamed), steps, at_end, UNKNOWN, _is_known)


def _is_known(meaning: Meaning | None) -> bool:
    return meaning is None or meaning.is_known


def _in_scattered_package(
    project: Project, file: Snapshot, package: str, name: str, renamed: Renamed | None, steps: int
) -> Meaning:
    """What the files of a package of Kotlin declare, or the type that the path leads to."""
    files = project.in_package(package, name, file.path)
    if files is None or not steps:
        return UNKNOWN
    all_declared = _among(files, name).definitions
    if renamed is not None and renamed.name == name and package_of(renamed.definition.file) == package:
        all_declared = (*all_declared, renamed.definition)
    visible = [declared for declared in all_declared if declared.file.path == file.path or not _is_private(declared)]
    if visible:
        return Meaning(tuple(visible))
    outer, _, type_named = package.rpartition(".")
    around = _in_scattered_package(project, file, outer, type_named, None, steps - 1) if type_named else NOTHING
    return Meaning.joined(Meaning(tuple(own_members(project, owner, name))) for owner in around.definitions)


def _is_private(definition: Declaration) -> bool:
    """Whether only its own file sees it in Kotlin."""
    _, item = scopes.outermost(definition.name)
    return item is not None and symbols.has_modifier(item, "private")


def _in_package(project: Project, file: Snapshot, name: str, renamed: Renamed | None) -> Meaning:
    """What other files of the package declare, which need no import in Go, Java and Kotlin."""
    language = family(file.path)
    if language in traits.SCATTERED_PACKAGES:
        return _in_scattered_package(project, file, package_of(file), name, renamed, 1)
    if renamed is not None and renamed.name == name and project.share_a_package(file, renamed.definition.file):
        return Meaning((renamed.definition,))
    if language == "go":
        files = project.beside(file.path, name)
        return _among(files and [other for other in files if project.share_a_package(other, file)], name)
    if language == "java" and PurePath(file.path).stem != name:
        return _in_java_package(project, file, name)
    return NOTHING


def _in_java_package(project: Project, file: Snapshot, name: str) -> Meaning:
    """What the file of this name in the package declares, which is beside this one or near it."""
    name_of_file = f"{name}.java"
    beside = str(PurePath(file.path).with_name(name_of_file))
    for path in (beside, *(path for path in project.near if PurePath(path).name == name_of_file)):
        source = project.file(path) if project.exists(path) else None
        if source is not None and project.share_a_package(source, file):
            return _among([source], name)
    return _among([], name)


def _among(files: Iterable[Snapshot] | None, name: str) -> Meaning:
    """What files declare by a name, as far as all of them are known."""
    if files is None:
        return UNKNOWN
    declarations = (Declaration(file, node) for file in files for node in declared(file, name).get(None, ()))
    return Meaning(tuple(filter(_is_top_level, declarations)))


def _is_top_level(declaration: Declaration) -> bool:
    return symbols.owner_of(declaration.name) is None and not in_import(declaration.name)


def own_members(project: Project, owner: Declaration, name: str) -> Iterator[Declaration]:
    """Where a type declares a member; in Go and Rust also beside the type."""
    file, around = owner.file, owner.type
    if around is None:
        return
    is_spread = family(file.path) not in traits.CLASSES
    files = (project.beside(file.path, name) if family(file.path) == "go" else None) or [file]
    for source in files:
        for node, declaring in _members_named(source, name):
            is_same_name = is_spread and symbols.type_name(declaring) == symbols.type_name(around)
            if is_same_name or (source is file and declaring == around):
                yield Declaration(source, node)


@cached
def _members_named(file: Snapshot, name: str) -> list[tuple[Node, Node]]:
    """What declares a member of the name, with the types that have it."""
    declaring = ((node, declaring_type(file, node)) for _, node in scopes.nodes_of(file, name))
    return [(node, around) for node, around in declaring if around is not None]


def declaring_type(file: Snapshot, node: Node) -> Node | None:
    """The type whose member this name declares: in its body, by a parameter, or by an assignment to its own object."""
    if scopes.declares(node):
        is_field = "field" in facts.of_name(file, node)
        return symbols.enclosing(node) if is_field else symbols.owner_of(node)
    return symbols.class_of_field(node)


def spelled(imports: Iterable[Imported], parts: list[str], mark: str) -> Iterator[str]:
    """The modules that the imports give for the path."""
    named_imports = [imported for imported in imports if imported.name != "*" and not imported.is_passed_on]
    return _spelled_with_colons(named_imports, parts) if mark == "::" else _spelled_with_dots(named_imports, parts)


def _spelled_with_colons(named_imports: Iterable[Imported], parts: list[str]) -> Iterator[str]:
    first, *rest = parts
    matching = (imported for imported in named_imports if imported.alias == first)
    paths = ["::".join([imported.module, imported.name, *rest]).removeprefix("::") for imported in matching]
    return iter(paths or ["::".join(parts)])


def _spelled_with_dots(imports: Iterable[Imported], parts: list[str]) -> Iterator[str]:
    for imported in imports:
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
