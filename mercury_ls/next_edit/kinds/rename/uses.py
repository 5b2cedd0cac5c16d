"""Which places of a file certainly refer to a symbol whose declaration was renamed: pure.

An imported name, an attribute of that module or class, a member of an object whose type the code states. What is not
certain is left alone: an incomplete rename is noticed, a wrong one may not be.
"""

import re
from functools import cached_property
from itertools import chain, islice, takewhile

from msgspec import Struct
from tree_sitter import Node

from mercury_ls.code import scopes, symbols, traits
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.index import definitions, facts
from mercury_ls.code.index.definitions import Declaration, Meaning, Renamed
from mercury_ls.code.index.judgement import OTHER, SAME, UNKNOWN, Judgement
from mercury_ls.code.index.kinship import Kinship
from mercury_ls.code.index.members import member_at
from mercury_ls.code.index.symbol import Symbol, function_of_parameter, has_overloads, symbol_at
from mercury_ls.code.index.types import PATH, ancestors, generic, of_receivers, types_of
from mercury_ls.code.modules import Imported, Project, family, in_import
from mercury_ls.code.parts import is_part, kind_of, part_of
from mercury_ls.code.symbols import text_of
from mercury_ls.code.syntax import innermost, outward, upward

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

    @property
    def may_be_there(self) -> bool:
        """Whether the file may have certain uses: told without parsing it, which takes much longer."""
        return self.project.may_name(self.snapshot, self.home, self.name if self.symbol.module_level else "")

    def is_certain(self, offset: int) -> bool:
        return self.judgement(offset) is SAME

    def judgement(self, offset: int) -> Judgement:
        """Whether the name there refers to it."""
        key = "judgement", self.name, self.new_name, self.symbol, self.home, self.snapshot, offset
        return self.project.once(key, lambda: self._judgement(offset))

    def _judgement(self, offset: int) -> Judgement:
        node = scopes.node_at(self.snapshot, offset)
        if node is None or self.is_of_another_kind(node):
            return OTHER
        if self.symbol.is_local_at(node):
            return SAME if self._is_same_local(node) else OTHER
        if self._is_unreadable(node):
            return UNKNOWN
        verdict = member_at(self.kin, self.snapshot, node) if self.kin is not None else self._of_name(node, offset)
        is_read = self._is_read and node.type not in PROSE and not _is_in_macro(node)
        return UNKNOWN if verdict is SAME and not is_read else verdict

    def may_refer(self, offset: int) -> bool:
        """Whether the name there refers to it, or nothing says that it does not."""
        declared = self.symbol.node
        if self.symbol.owner is None and (declared is None or not scopes.declares(declared)):
            return self.symbol.is_alike(self.name, self.snapshot, offset)
        return self.judgement(offset) is not OTHER

    @property
    def other_names(self) -> frozenset[str]:
        """Those by which the file imports it: `b` of `from x import a as b`."""
        return frozenset(imported.alias for imported in self.importing if imported.name == self.name) - {self.name}

    def is_called(self, alias: str, offset: int) -> bool:
        """Whether this name of the file certainly refers to it there."""
        node = scopes.node_at(self.snapshot, offset)
        is_bare = node is not None and not in_import(node) and not symbols.is_qualified(node)
        return is_bare and self.symbol.module_level and self._is_called(alias, offset)

    def _is_unreadable(self, node: Node) -> bool:
        """Whether an error hides what is around: the grammar of Kotlin does not read some bodies in a single line."""
        is_open = family(self.snapshot.path) in traits.IMPLICIT_RECEIVERS
        return is_open and any(outer.is_error for outer in upward(self.snapshot, node))

    def is_of_another_kind(self, node: Node) -> bool:
        declared = self.symbol.node
        return declared is not None and symbols.category(declared, self.home) != symbols.category(node, self.snapshot)

    @property
    def is_home(self) -> bool:
        return self.home is self.snapshot or self.home.path == self.snapshot.path

    @cached_property
    def _is_read(self) -> bool:
        """Whether the index knows the imports of the file, and all places of the name."""
        return (self.is_home or knows_imports(self.snapshot)) and self.snapshot.text.count(self.name) <= scopes.MOST

    @cached_property
    def function(self) -> "Uses | None":
        """The uses of the function whose parameter it is."""
        named = self.symbol.node and function_of_parameter(self.symbol.node)
        if named is None or text_of(named) != self.symbol.function:
            return None
        at, name = self.home.offset_of_byte(named.start_byte), text_of(named)
        symbol = symbol_at(name, name, self.home, at)
        return Uses(name, "", symbol, self.home, self.snapshot, self.project)

    # Locals

    def _is_same_local(self, node: Node) -> bool:
        """Within its scope, or as a keyword argument of a certain call of its function."""
        if symbols.called_with_keyword(node) != self.symbol.function or not self.symbol.function:
            is_here = self.symbol.is_same_local(self.name, self.snapshot, self.offset_of(node))
            return is_here and not self._is_another_function(node)
        last = symbols.name_of_callee(symbols.function_of_keyword(node))
        if self.function is None or last is None or text_of(last) != self.function.name:
            return False
        return not has_overloads(self.home, self.function.symbol) and self.function.is_certain(self.offset_of(last))

    def _is_another_function(self, node: Node) -> bool:
        """Whether a call of Kotlin is not of the local, which is no function."""
        is_called = is_part(node, "function") and family(self.snapshot.path) in traits.IMPLICIT_RECEIVERS
        if self.symbol.node is None or not is_called:
            return False
        stated = facts.of_name(self.home, self.symbol.node)
        kinds = [text_of(kind) for kind in stated.get("type", ())]
        is_literal = any("literal" in facts.of_expression(self.home, value) for value in stated.get("value", ()))
        is_value = is_literal or any("->" not in kind for kind in kinds)
        return is_value or definitions.declares_at_top(self.project, self.home, self.name)

    # Names in strings

    def is_in_code_of_string(self, offset: int) -> bool:
        """Whether it stands in a string that Python reads as code, an annotation or an entry of `__all__`, and there
        certainly refers to the symbol."""
        node = scopes.node_at(self.snapshot, offset)
        if node is None or node.type != "string_content":
            return False
        if not self.symbol.module_level or self.taken_at is not None:
            return False
        if _is_in_all(node):
            return text_of(node) == self.name and (self.is_home or bool(self._imported_as_is))
        is_first = self.snapshot.text[offset - 1] != "."
        return is_first and _is_annotation(node) and self._is_called(self.name, offset)

    # Names at the top of a file

    def _of_name(self, node: Node, offset: int) -> Judgement:
        if self._is_same_name(node, offset):
            return SAME
        if self.is_home or knows_imports(self.snapshot):
            return UNKNOWN if self._is_imported(node, offset) else OTHER
        if symbols.is_qualified(node) and not symbols.is_in_path(node):
            return OTHER
        return UNKNOWN if scopes.local_at(self.snapshot, offset, (self.name,)) is None else OTHER

    def _is_same_name(self, node: Node, offset: int) -> bool:
        if offset in self.import_sites:
            return self.taken_at is None or offset not in self._imported_as_is
        is_extension = symbols.is_extension(self.symbol.node)
        if is_extension and not scopes.declares(node) and not in_import(node):
            return self._extends(node) and self._is_called(self.name, offset)
        if symbols.is_qualified(node):
            return self._is_same_path(node, offset)
        if in_import(node):
            return self.is_home and scopes.declares(node) and scopes.binding(self.snapshot, node) is None
        if self.taken_at is not None or self.symbol.runs_after(self.snapshot, node):
            return False
        return self._is_called(self.name, offset)

    def _is_same_path(self, node: Node, offset: int) -> bool:
        """Whether what stands before the name is the home, or a module that has the name from it."""
        if self.is_home and self.symbol.is_named_by_namespace(node):
            return symbols.is_in_path(node)
        is_rust = family(self.snapshot.path) == "rust"
        if is_rust and scopes.is_member(node):
            return False
        module = symbols.qualifier_node(node)
        path = symbols.path_before(node) or (_path_in_file(text_of(module), node) if module is not None else "")
        mark = "::" if is_rust else "."
        return PATH.fullmatch(path) is not None and self._is_called(f"{path}{mark}{self.name}", offset)

    @cached_property
    def taken_at(self) -> int | None:
        """Where the file has the new name already, for something else."""
        if self.is_home or not self.new_name:
            return None
        bringing = self._importing(self.new_name)
        for imported in self.project.imports(self.snapshot):
            if imported.alias == self.new_name and (imported not in bringing or self._is_beside_old_name(imported)):
                return imported.start
        nodes = chain.from_iterable(definitions.declared(self.snapshot, self.new_name).values())
        others = [node for node in nodes if not in_import(node) and symbols.owner_of(node) is None]
        return min(map(self.offset_of, others), default=None)

    def _is_beside_old_name(self, imported: Imported) -> bool:
        """Whether the same scope imports the symbol by its old name as well, so that one name would be imported
        twice."""
        scope = self._scope_at(imported.start)
        return any(self._scope_at(at) == scope for at in self._imported_as_is)

    def _scope_at(self, offset: int) -> tuple[Node | None, str]:
        node = scopes.node_at(self.snapshot, offset)
        return innermost(node, scopes.FUNCTIONS), symbols.namespace_of(node) if node is not None else ""

    @cached_property
    def _imported_as_is(self) -> frozenset[int]:
        """Where import statements name it without an alias."""
        return frozenset(imported.start for imported in self.importing if imported.alias == self.name)

    @cached_property
    def import_sites(self) -> frozenset[int]:
        """Where import statements name it."""
        return frozenset(imported.start for imported in self.importing if imported.name != "*")

    def _is_imported(self, node: Node, offset: int) -> bool:
        """Whether an import of the file that brings it, under its name, is among what is known of it there."""
        is_extension = symbols.is_extension(self.symbol.node)
        if symbols.is_qualified(node) and not is_extension:
            return False
        if in_import(node):
            return offset in self.import_sites
        meaning = self._meaning(self.name, offset)
        if self.is_home and self._is_all(meaning) and not is_extension:
            return False
        return any(map(self._is_it, meaning.definitions))

    @cached_property
    def importing(self) -> list[Imported]:
        return self._importing(self.name)

    def _importing(self, name: str) -> list[Imported]:
        """The imports that bring what the home calls so."""
        matching = [imported for imported in self.project.imports(self.snapshot) if imported.name in (name, "*")]

        def has_it(module: str) -> bool:
            return self._is_all(definitions.in_module(self.project, self.snapshot, module, name, self._renamed))

        return [imported for imported in matching if has_it(imported.module)]

    def _meaning(self, path: str, offset: int) -> Meaning:
        key = "meaning", self.name, self.symbol, self.home, self.snapshot, path, offset
        return self.project.once(key, lambda: self._meaning_at(path, offset))

    def _meaning_at(self, path: str, offset: int) -> Meaning:
        """Where a member of an object hides it that Kotlin's code is called on, or may do so, it is not known."""
        meaning = definitions.meaning_of(self.project, self.snapshot, path, offset, self._renamed)
        node, head = scopes.node_at(self.snapshot, offset), path.partition(".")[0]
        if node is None or (head == path and symbols.is_qualified(node)):
            return meaning
        hiding = of_receivers(self.project, self.snapshot, node, head)
        return meaning if hiding == [] else Meaning(() if hiding else meaning.definitions, is_known=False)

    @property
    def _renamed(self) -> Renamed | None:
        return Renamed(self.name, Declaration(self.home, self.symbol.node)) if self.symbol.node is not None else None

    def _is_all(self, meaning: Meaning) -> bool:
        return meaning.is_known and bool(meaning.definitions) and all(map(self._is_it, meaning.definitions))

    def _is_it(self, definition: Declaration) -> bool:
        told = self.project.once(("it", self.symbol, self.home), dict[Declaration, bool])
        if definition not in told:
            told[definition] = self.symbol.may_be(definition)
        return told[definition]

    def _is_called(self, alias: str, offset: int) -> bool:
        """Whether `alias` in this file refers to it."""
        return self._is_all(self._meaning(alias, offset))

    def _extends(self, node: Node) -> bool:
        """Whether it is named of an object of the type that the extension of Kotlin names."""
        if not symbols.is_qualified(node):
            return False
        extended = scopes.outermost(self.symbol.node)[1] if self.symbol.node is not None else None
        whose = symbols.qualifier_node(node)
        if extended is None or whose is None:
            return False
        types = types_of(self.project, self.snapshot, whose) or ()
        names = {text_of(kind.definition.name) if kind.definition else generic(kind.text)[0] for kind in types}
        return names == {symbols.type_name(extended)}

    # Members

    @cached_property
    def kin(self) -> Kinship | None:
        """The types that have the member."""
        owner = self.symbol.owner
        return Kinship(self.name, owner, self.home, self.project, self.symbol.node) if owner is not None else None

    def offset_of(self, node: Node) -> int:
        return self.snapshot.offset_of_byte(node.start_byte)


def uses_in_family(
    name: str, new_name: str, symbol: Symbol, home: Snapshot, snapshot: Snapshot, project: Project
) -> Uses:
    """The uses of a symbol, and of what it overrides."""
    key = "overridden", name, new_name, home.path, symbol.node and symbol.node.start_byte
    overridden = project.once(key, lambda: _overridden(name, new_name, symbol, home, project))
    declared, file = overridden or (symbol, home)
    key = "uses", name, new_name, declared, file, snapshot
    return project.once(key, lambda: Uses(name, new_name, declared, file, snapshot, project))


def _overridden(
    name: str, new_name: str, symbol: Symbol, home: Snapshot, project: Project
) -> tuple[Symbol, Snapshot] | None:
    """The declaration that the symbol overrides, of the class highest up, and its file."""
    highest, kin = None, Uses(name, new_name, symbol, home, home, project).kin
    for base in ancestors(project, Declaration.of(home, symbol.owner)):
        for member in islice(definitions.own_members(project, base, name), 1):
            if kin is not None and kin.is_same_overload(member.file, member.name):
                highest = symbol_at(name, new_name, member.file, member.offset), member.file
    return highest


def _is_in_all(content: Node) -> bool:
    listed = innermost(content, ("list", "tuple"))
    is_listed = listed is not None and content.parent in listed.named_children
    return is_listed and text_of(part_of(listed and listed.parent, "left")) == "__all__"


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


def _is_in_macro(node: Node) -> bool:
    """Whether it stands in the parameters or the body of a C macro with parameters."""
    around = outward(node if node.type == "preproc_arg" else node.parent)
    outside = next((node for node in around if node.type not in ("preproc_arg", "preproc_params")), None)
    return kind_of(outside) == "preproc_function_def"
