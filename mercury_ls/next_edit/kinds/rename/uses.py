"""Which places of a file certainly refer to a symbol whose declaration was renamed: pure.

An imported name, an attribute of that module or class, a member of an object whose type the code states. What is not
certain is left alone: an incomplete rename is noticed, a wrong one may not be.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import islice, takewhile

from msgspec import Struct
from tree_sitter import Node

from mercury_ls.code import scopes, symbols, traits
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.index import facts
from mercury_ls.code.index.definitions import (
    MOST,
    MOST_STEPS,
    Declaration,
    Meaning,
    Renamed,
    in_module,
    meaning_of,
)
from mercury_ls.code.index.judgement import SAME
from mercury_ls.code.index.kinship import Kinship
from mercury_ls.code.index.members import is_in_qualified_type, member_at, overrides, qualifier_node
from mercury_ls.code.index.types import PATH, bases, class_of, generic, of_receivers, own_members, types_of
from mercury_ls.code.modules import Imported, Project, family, in_import
from mercury_ls.code.parts import part_of
from mercury_ls.code.symbols import Symbol, symbol_at, text_of
from mercury_ls.code.syntax import innermost, outward

PROSE = frozenset({"jsx_text"})
TYPE_IN_STRING = re.compile(r"[\w\s.,|\[\]]+")


def knows_imports(snapshot: Snapshot) -> bool:
    return family(snapshot.path) in traits.IMPORTS_KNOWN


class Uses(Struct, dict=True):
    """The uses in one file of the symbol that `home` declared as `name` and calls `new_name` by now."""

    name: str
    new_name: str
    symbol: Symbol
    home: Snapshot
    snapshot: Snapshot
    project: Project

    def is_certain(self, offset: int) -> bool:
        node = scopes.node_at(self.snapshot, offset)
        if node is None or (not self.is_home and not knows_imports(self.snapshot)) or self._stands_too_often:
            return False
        if node.type in PROSE or self.is_of_another_kind(node) or _is_in_macro(node):
            return False
        if self.symbol.is_local_at(node):
            return self._is_same_local(node)
        if self.is_unreadable(node):
            return False
        if not self.is_home and self.symbol.node is not None and symbols.namespace_of(self.symbol.node):
            return False
        if self.kin is not None:
            return member_at(self.kin, self.snapshot, node) is SAME
        return self._is_same_name(node, offset)

    @property
    def other_names(self) -> frozenset[str]:
        """Those by which the file imports it: `b` of `from x import a as b`."""
        return frozenset(imported.alias for imported in self.importing if imported.name == self.name) - {self.name}

    def is_called(self, alias: str, offset: int) -> bool:
        """Whether this name of the file certainly refers to it there."""
        node = scopes.node_at(self.snapshot, offset)
        is_bare = node is not None and not in_import(node) and not symbols.is_qualified(node)
        return is_bare and self.symbol.module_level and self._is_called(alias, offset)

    def is_unreadable(self, node: Node) -> bool:
        """Whether an error hides what is around: the grammar of Kotlin does not read some bodies in a single line."""
        is_open = family(self.snapshot.path) in traits.IMPLICIT_RECEIVERS
        return is_open and any(around.is_error for around in outward(node))

    def is_of_another_kind(self, node: Node) -> bool:
        declared = self.symbol.node
        return declared is not None and symbols.category(declared, self.home) != symbols.category(node, self.snapshot)

    @property
    def is_home(self) -> bool:
        return self.home is self.snapshot or self.home.path == self.snapshot.path

    @cached_property
    def _stands_too_often(self) -> bool:
        return self.snapshot.text.count(self.name) > MOST

    @cached_property
    def imports(self) -> tuple[Imported, ...]:
        return self.project.imports(self.snapshot)

    @cached_property
    def function(self) -> "Uses | None":
        """The uses of the function whose parameter it is."""
        named = self.symbol.node and symbols.function_of_parameter(self.symbol.node)
        if named is None or text_of(named) != self.symbol.function:
            return None
        at, name = self.home.offset_of_byte(named.start_byte), text_of(named)
        symbol = symbols.symbol_at(name, name, self.home, at, self.snapshot, ())
        return Uses(name, "", symbol, self.home, self.snapshot, self.project)

    # Locals

    def _is_same_local(self, node: Node) -> bool:
        """Within its function, or as a keyword argument of a certain call of that function."""
        if symbols.called_with_keyword(node) != self.symbol.function or not self.symbol.function:
            return self.is_home and not self._is_another_function(node)
        call = node.parent and node.parent.parent and node.parent.parent.parent
        last = symbols.name_called(call)
        if self.function is None or last is None or text_of(last) != self.function.name or self._has_overloads:
            return False
        at = self.snapshot.offset_of_byte(last.start_byte)
        return symbols.refers_to(self.function.symbol, self.snapshot, at) and self.function.is_certain(at)

    @cached_property
    def _has_overloads(self) -> bool:
        """Whether several functions have the name of that whose parameter it is, or the class several constructors."""
        function = self.function.symbol if self.function is not None else None
        if function is None or function.node is None or family(self.home.path) not in traits.OVERLOADING:
            return False
        around = function.node.parent
        is_several = len(symbols.declarations(text_of(function.node), self.home, function)) > 1
        return is_several or (around is not None and symbols.has_several_constructors(around))

    def _is_another_function(self, node: Node) -> bool:
        """Whether a call of Kotlin is not of the local, which is no function."""
        is_called = node.parent is not None and part_of(node.parent, "function") == node
        if self.symbol.node is None or not is_called or family(self.snapshot.path) not in traits.IMPLICIT_RECEIVERS:
            return False
        stated = facts.of_name(self.home, self.symbol.node)
        kinds = [text_of(kind) for kind in stated.get("type", ())]
        is_literal = any("literal" in facts.of_expression(self.home, value) for value in stated.get("value", ()))
        return is_literal or any("->" not in kind for kind in kinds) or self.project.declares(self.home, self.name)

    # Names in strings

    def is_in_code_of_string(self, offset: int) -> bool:
        """Whether it stands in a string that Python reads as code, an annotation or an entry of `__all__`, and there
        certainly refers to the symbol."""
        node = scopes.node_at(self.snapshot, offset)
        if node is None or node.type != "string_content" or not self.symbol.module_level or self.taken_at is not None:
            return False
        if _is_in_all(node):
            in_all = text_of(node) == self.name
            return in_all and (self.is_home or any(imported.alias == self.name for imported in self.importing))
        is_first = self.snapshot.text[offset - 1] != "."
        is_ours = self._is_called(self.name, offset) and not self._is_of_the_type_around(node)
        return is_first and _is_annotation(node) and is_ours

    # Names at the top of a file

    def _is_same_name(self, node: Node, offset: int) -> bool:
        if offset in self.import_sites:
            return self.taken_at is None or offset not in self._imported_as_is
        if symbols.is_extension(self.symbol.node) and not scopes.declares(node) and not in_import(node):
            return symbols.is_qualified(node) and self._extends(node) and self._is_all(self._meaning(self.name, offset))
        if symbols.is_qualified(node) or is_in_qualified_type(node):
            if not knows_imports(self.snapshot) or (self.is_home and self._is_in_the_same_file(node)):
                return symbols.is_in_path(node)
            module = qualifier_node(node)
            path = _path_in_file(text_of(module), node) if module is not None else ""
            return bool(path) and self._has(path, self.name, offset)
        if in_import(node):
            return self.is_home and scopes.declares(node)
        if self._is_of_the_type_around(node) or (not self.is_home and symbols.redeclares(self.symbol, node)):
            return False
        if self.taken_at is not None:
            return False
        return self._is_called(self.name, offset) and not self._comes_before(node)

    def _is_hidden(self, name: str, offset: int) -> bool:
        """Whether a module, a namespace or in Java a class around it declares the name itself, or does not see the
        names outside, as in Rust."""
        declared = self.symbol.node if self.is_home else None
        for around in outward(scopes.node_at(self.snapshot, offset)):
            if declared is not None and _is_within(declared, around):
                return False
            if around.type in self._namespaces and around.start_byte in self._namespaces_with(name):
                return True
            if around.type == "mod_item" and not any(_is_used_in(member, name) for member in _items_of(around)):
                return True
        return False

    @property
    def _namespaces(self) -> frozenset[str]:
        is_nesting = family(self.snapshot.path) in traits.NESTING
        return symbols.NAMESPACES | scopes.TYPES if is_nesting else symbols.NAMESPACES

    def _namespaces_with(self, name: str) -> frozenset[int]:
        if name not in self._named:
            self._named[name] = frozenset(self._namespaces_that_declare(name))
        return self._named[name]

    @cached_property
    def _named(self) -> dict[str, frozenset[int]]:
        return {}

    def _namespaces_that_declare(self, name: str) -> Iterator[int]:
        """Where they begin."""
        for at in islice(scopes.mentions(self.snapshot, name), MOST):
            node = scopes.node_at(self.snapshot, at)
            if node is None or node.parent is None or not scopes.declares(node) or scopes.is_member(node):
                continue
            is_item = not scopes.binding_at(self.snapshot, at, ()) and symbols.category(node, self.snapshot) == ""
            around = innermost(node.parent.parent, self._namespaces) if is_item else None
            if around is not None and not scopes.names_it(node, around):
                yield around.start_byte

    def _comes_before(self, node: Node) -> bool:
        """Whether Python reads it before the declaration has run: the second `str` of `str = str` is another."""
        declared = self.symbol.node
        if not self.is_home or declared is None or declared.parent is None or family(self.snapshot.path) != "python":
            return False
        around = innermost(node.parent, scopes.FUNCTIONS)
        return around is None and node.start_byte < declared.parent.end_byte and not scopes.declares(node)

    @cached_property
    def taken_at(self) -> int | None:
        """Where the file has the new name already, for something else."""
        if self.is_home or not self.new_name:
            return None
        bringing = self._importing(self.new_name)
        for imported in self.imports:
            if imported.alias == self.new_name and imported not in bringing:
                return imported.start
        for match in islice(re.finditer(scopes.whole(self.new_name), self.snapshot.text), MOST):
            node = scopes.node_at(self.snapshot, match.start())
            if node is None or not scopes.declares(node) or in_import(node):
                continue
            if not scopes.is_member(node) and symbols.owner_of(node) is None:
                return match.start()
        return None

    @cached_property
    def _imported_as_is(self) -> frozenset[int]:
        """Where import statements name it without an alias."""
        return frozenset(imported.start for imported in self.importing if imported.alias == self.name)

    def _is_of_the_type_around(self, node: Node) -> bool:
        """Whether it stands in the body of a Python class, outside of its functions, that has bound the name itself by
        then."""
        around = symbols.owner_of(_evaluated(node))
        if around is None or family(self.snapshot.path) != "python":
            return False
        return any(owner == around.start_byte and end <= node.start_byte for owner, end in self._named_in_types)

    @cached_property
    def _named_in_types(self) -> frozenset[tuple[int, int]]:
        """The classes that declare the name themselves, and where each declaration ends."""
        matches = islice(re.finditer(scopes.whole(self.name), self.snapshot.text), MOST)
        nodes = (scopes.node_at(self.snapshot, match.start()) for match in matches)
        declared = ((node, symbols.owner_of(node)) for node in nodes if node is not None and scopes.declares(node))
        return frozenset((owner.start_byte, (node.parent or node).end_byte) for node, owner in declared if owner)

    def _is_in_the_same_file(self, node: Node) -> bool:
        """`a::load` where `a` is a module within the file that holds the declaration."""
        space = symbols.namespace_of(self.symbol.node) if self.symbol.node is not None else ""
        return bool(space) and symbols.qualifier_of(node) == space

    @cached_property
    def import_sites(self) -> frozenset[int]:
        """Where import statements name it."""
        return frozenset(imported.start for imported in self.importing if imported.name != "*")

    def is_imported(self, node: Node, offset: int) -> bool:
        """Whether an import of the file that brings it, under its name, is among what is known of it there."""
        is_extension = symbols.is_extension(self.symbol.node)
        if (symbols.is_qualified(node) and not is_extension) or is_in_qualified_type(node):
            return False
        if in_import(node):
            return offset in self.import_sites
        meaning = self._meaning(self.name, offset)
        hiding = self._members_around(self.name, offset)
        is_open = is_extension or hiding is None or not self._is_all(meaning)
        if hiding or (self.is_home and meaning.is_known and not is_open):
            return False
        return any(map(self._is_it, meaning.definitions)) and not self._is_of_the_type_around(node)

    @cached_property
    def importing(self) -> list[Imported]:
        return self._importing(self.name)

    def _importing(self, name: str) -> list[Imported]:
        """The imports that bring what the home calls so."""
        matching = [imported for imported in self.imports if imported.name in (name, "*")]
        meanings = [
            in_module(self.project, self.snapshot, imported.module, name, self._renamed) for imported in matching
        ]
        return [imported for imported, meaning in zip(matching, meanings, strict=True) if self._is_all(meaning)]

    def _meaning(self, path: str, offset: int) -> Meaning:
        return meaning_of(self.project, self.snapshot, path, offset, self._renamed)

    @property
    def _renamed(self) -> Renamed | None:
        return Renamed(self.name, Declaration(self.home, self.symbol.node)) if self.symbol.node is not None else None

    def _is_all(self, meaning: Meaning) -> bool:
        return meaning.is_known and bool(meaning.definitions) and all(map(self._is_it, meaning.definitions))

    def _is_it(self, definition: Declaration) -> bool:
        """Whether it is declared where the home may declare it, which may do so several times."""
        file, name = definition.file, definition.name
        return file.path == self.home.path and symbols.owner_of(name) is None and scopes.binding(file, name) is None

    def _is_called(self, alias: str, offset: int) -> bool:
        """Whether `alias` in this file refers to it."""
        if any(at < offset and first <= offset < stop for at, (first, stop) in self._taken_apart(alias)):
            return False
        if self._members_around(alias, offset) != []:
            return False
        return self._is_all(self._meaning(alias, offset)) and not self._is_hidden(alias, offset)

    def _members_around(self, name: str, offset: int) -> list[Declaration] | None:
        """The members for which a bare name of Kotlin stands there; None if there may be others."""
        node = scopes.node_at(self.snapshot, offset)
        return of_receivers(self.project, self.snapshot, node, name) if node is not None else None

    def _extends(self, node: Node) -> bool:
        """Whether the object has the type that the extension of Kotlin names."""
        whose, extended = qualifier_node(node), scopes.outermost(self.symbol.node)[1] if self.symbol.node else None
        types = types_of(self.project, self.snapshot, whose) if whose is not None else None
        names = {text_of(kind.definition.name) if kind.definition else generic(kind.text)[0] for kind in types or ()}
        return extended is not None and names == {symbols.type_name(extended)}

    def _taken_apart(self, name: str) -> Iterator[tuple[int, tuple[int, int]]]:
        """Where `S { name }` of Rust binds a field to a local, and the scope of that."""
        for at in islice(scopes.mentions(self.snapshot, name), MOST if family(self.snapshot.path) == "rust" else 0):
            node = scopes.node_at(self.snapshot, at)
            is_short = node is not None and node.type == "shorthand_field_identifier"
            if is_short and (reach := scopes.enclosing_range(self.snapshot, at)) is not None:
                yield at, reach

    def _has(self, path: str, name: str, offset: int) -> bool:
        """Whether a dotted path is a module that is the home, or has the name from it."""
        mark = "::" if family(self.snapshot.path) == "rust" else "."
        return PATH.fullmatch(path) is not None and self._is_all(self._meaning(f"{path}{mark}{name}", offset))

    # Members

    @cached_property
    def kin(self) -> Kinship | None:
        """The types that have the member."""
        owner = self.symbol.owner
        return Kinship(self.name, owner, self.home, self.project, self.symbol.node) if owner is not None else None

    def overrides(self, node: Node) -> bool:
        return self.kin is not None and overrides(self.kin, self.snapshot, node)

    def is_derived(self, around: Node) -> bool:
        return self.kin is not None and self.kin.is_derived(self.snapshot, around)

    def offset_of(self, node: Node) -> int:
        return self.snapshot.offset_of_byte(node.start_byte)


def uses_in_family(
    name: str, new_name: str, symbol: Symbol, home: Snapshot, snapshot: Snapshot, project: Project
) -> Uses:
    """The uses of a symbol, and of what it overrides."""
    key = "overridden", name, new_name, home.path, symbol.node and symbol.node.start_byte
    overridden = project.once(key, lambda: _overridden(name, new_name, symbol, home, project))
    declared, file = overridden or (symbol, home)
    return Uses(name, new_name, declared, file, snapshot, project)


def _overridden(
    name: str, new_name: str, symbol: Symbol, home: Snapshot, project: Project
) -> tuple[Symbol, Snapshot] | None:
    """The declaration that the symbol overrides, of the class highest up, and its file."""
    declared = Declaration.of(home, symbol.owner) if symbol.owner is not None else None
    highest, waiting = None, [declared] if declared is not None else []
    for _ in range(MOST_STEPS if waiting else 0):
        above = [base for below in waiting for base_type in bases(below) if (base := class_of(project, base_type))]
        members = [member for base in above for member in own_members(project, base, name)]
        for member in members[:1]:
            if Uses(name, new_name, symbol, home, member.file, project).overrides(member.name):
                highest = symbol_at(name, new_name, member.file, member.offset, member.file, ()), member.file
        waiting = above
    return highest


def _evaluated(node: Node) -> Node:
    """Decorators, defaults and annotations of a Python function are evaluated where it is declared."""
    child, around = node, node.parent
    while around is not None and around.type not in scopes.FUNCTIONS:
        child, around = around, around.parent
    named = part_of(around, "name") if around is not None else None
    is_body = around is not None and child == part_of(around, "body")
    return node if around is None or named is None or is_body else named


def _is_in_all(content: Node) -> bool:
    listed = innermost(content, ("list", "tuple"))
    around = listed.parent if listed is not None and content.parent in listed.named_children else None
    return around is not None and text_of(part_of(around, "left")) == "__all__"


def _is_annotation(content: Node) -> bool:
    """Whether the string is a type, and not one of the values that `Literal` lists."""
    inside = [*takewhile(lambda node: not node.type.endswith(("block", "definition", "parameters")), outward(content))]
    generics = [node for node in inside if node.type in ("generic_type", "subscript")]
    is_value = any(re.search(r"\b(?:Annotated|Literal)\s*\[", text_of(node)) for node in generics)
    return (
        not is_value
        and TYPE_IN_STRING.fullmatch(text_of(content)) is not None
        and any(node.type == "type" for node in inside)
    )


def _path_in_file(path: str, node: Node) -> str:
    """A path of Rust from the top of the file, since modules within it are no files; empty if it leads to one."""
    steps = sum(ancestor.type == "mod_item" for ancestor in outward(node.parent))
    parts = path.split("::")
    if not steps or parts[0] not in ("self", "super"):
        return path
    up = len(list(takewhile(lambda part: part == "super", parts)))
    tail = parts[max(up, 1) :]
    if up < steps:
        return ""
    return "::".join(["super"] * (up - steps) + tail if up > steps else ["self", *tail])


def _is_used_in(statement: Node, name: str) -> bool:
    words = text_of(statement) if statement.type == "use_declaration" else ""
    return "super::*" in words or name in re.findall(r"\w+", words)


def _is_within(node: Node, around: Node) -> bool:
    return around.start_byte <= node.start_byte and node.end_byte <= around.end_byte


def _items_of(around: Node) -> list[Node]:
    body = part_of(around, "body")
    return body.named_children if body is not None else []


def _is_in_macro(node: Node) -> bool:
    """Whether it stands in the parameters or the body of a C macro with parameters."""
    around = outward(node if node.type == "preproc_arg" else node.parent)
    outside = next((node for node in around if node.type not in ("preproc_arg", "preproc_params")), None)
    return outside is not None and outside.type == "preproc_function_def"
