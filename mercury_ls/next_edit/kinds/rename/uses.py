"""Which places of a file certainly refer to a symbol whose declaration was renamed: pure.

An imported name, an attribute of that module or class, a member of an object whose type the code states. What is not
certain is left alone: an incomplete rename is noticed, a wrong one may not be.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice, takewhile
from pathlib import PurePath

from msgspec import Struct
from tree_sitter import Node

from mercury_ls.code import scopes, symbols, traits
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.languages import kinds
from mercury_ls.code.modules import Imported, Project, family, in_import
from mercury_ls.code.scopes import Binding
from mercury_ls.code.symbols import Symbol, symbol_at, text_of, type_name
from mercury_ls.code.syntax import innermost, outward

OF_ANY_OBJECT = frozenset({"function_declaration", "function_expression", "generator_function_declaration"})
WRITING = frozenset({"assignment", "assignment_expression", "augmented_assignment", "for_in_clause", "for_statement"})
OBJECTS = frozenset({"super", "this"})
"""What Java and JavaScript call the object whose method it is; `self` is a variable there."""
PROSE = frozenset({"jsx_text"})
MOST = 4096
"""Mentions of a name in a file: of a name with more, nothing is certain."""
MOST_BASES = 4
"""Classes between two of which one derives from the other, and files that hand them on."""
PATH = re.compile(r"\w+(?:(?:\.|::)\w+)*")
TYPE = re.compile(
    r"(?:Optional\[|[&*:\"'\s]|mut\b|'\w+\b)*(?P<name>[\w.]+)(?:\s*\|\s*(?:None|null|undefined)|[\]\"'\s])*"
)
TYPE_IN_STRING = re.compile(r"[\w\s.,|\[\]]+")
DERIVED = re.compile(
    r"\bclass\s+(\w+)\s*(?:<(?:[^<>{]|<(?:[^<>{]|<[^<>{]*>)*>)*>|\[(?:[^\[\]]|\[[^\[\]]*\])*\])?"
    r"(?:\(\s*|\s*\bextends\s+)(\w+(?:\.\w+)*)"
)
WRAPPED = frozenset({"expression_list", "pointer_declarator", "reference_declarator", "typed_parameter"})
QUALIFIED = frozenset({"nested_type_identifier", "qualified_type", "scoped_type_identifier"})
MADE = {
    "python": ("call", "function"),
    "javascript": ("new_expression", "constructor"),
    "java": ("object_creation_expression", "type"),
    "go": ("composite_literal", "type"),
    "rust": ("struct_expression", "name"),
}
"""How a language constructs an object, and which field of that names the type."""


ITERATING = frozenset(
    {"for_in_clause", "for_statement", "for_expression", "for_in_statement", "enhanced_for_statement", "range_clause"}
)
ANY = frozenset({"Any", "Callable", "any", "auto", "dyn", "impl", "interface", "object", "unknown", "var"})
MAKING_TYPES = re.compile(r"(?:\w+\.)*(?:Enum|NamedTuple|NewType|TypedDict|namedtuple)\(")
ATTRIBUTE_OF_SELF = re.compile(r"(?:self|this)\.(?P<name>\w+)")
FIELDS = frozenset({"field_definition", "public_field_definition"})
"""What declares an attribute of JavaScript."""
ATTRIBUTES = frozenset({"attribute", "field_access", "member_expression"})
LITERALS = frozenset(
    kinds("""
    array dictionary dictionary_comprehension float integer integer_literal interpreted_string_literal list
    list_comprehension number raw_string_literal set set_comprehension string string_literal template_string tuple
    """)
)


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
        if self.symbol.local is not None:
            return self._is_same_local(node)
        if not self.is_home and self.symbol.node is not None and symbols.namespace_of(self.symbol.node):
            return False
        if self.symbol.owner is not None:
            return self._is_member(self.symbol.owner, node)
        return self._is_same_name(node, offset)

    @property
    def other_names(self) -> frozenset[str]:
        """Those by which the file imports it: `b` of `from x import a as b`."""
        return frozenset(imported.alias for imported in self._importing(self.name) if imported.name == self.name) - {
            self.name
        }

    def is_called(self, alias: str, offset: int) -> bool:
        """Whether this name of the file certainly refers to it there."""
        node = scopes.node_at(self.snapshot, offset)
        is_bare = node is not None and not in_import(node) and not symbols.is_qualified(node)
        return is_bare and self.symbol.module_level and self._is_called(alias, self.name, offset)

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
        around = innermost(self.symbol.node, scopes.FUNCTIONS)
        named = around and around.child_by_field_name("name")
        if around is not None and named is not None and text_of(named) == "__init__":
            whole = symbols.enclosing(around)
            named = whole and whole.child_by_field_name("name")
        if named is None or text_of(named) != self.symbol.function:
            return None
        at, name = self.home.offset_of_byte(named.start_byte), text_of(named)
        symbol = symbols.symbol_at(name, name, self.home, at, self.snapshot, ())
        return Uses(name, "", symbol, self.home, self.snapshot, self.project)

    # Locals

    def _is_same_local(self, node: Node) -> bool:
        """Within its function, or as a keyword argument of a certain call of that function."""
        if symbols.called_with_keyword(node) != self.symbol.function or not self.symbol.function:
            return self.is_home
        call = node.parent and node.parent.parent and node.parent.parent.parent
        function = call and call.child_by_field_name("function")
        last = function and (function.child_by_field_name("attribute") or function)
        if self.function is None or last is None or text_of(last) != self.function.name:
            return False
        at = self.snapshot.offset_of_byte(last.start_byte)
        return symbols.refers_to(self.function.symbol, self.snapshot, at) and self.function.is_certain(at)

    # Names in strings

    def is_in_code_of_string(self, offset: int) -> bool:
        """Whether it stands in a string that Python reads as code, an annotation or an entry of `__all__`, and there
        certainly refers to the symbol."""
        node = scopes.node_at(self.snapshot, offset)
        if node is None or node.type != "string_content" or not self.symbol.module_level or self.taken_at is not None:
            return False
        if _is_in_all(node):
            in_all = text_of(node) == self.name
            return in_all and (
                self.is_home or any(imported.alias == self.name for imported in self._importing(self.name))
            )
        is_first = self.snapshot.text[offset - 1] != "."
        is_ours = self._is_called(self.name, self.name, offset) and not self._is_of_the_type_around(node)
        return is_first and _is_annotation(node) and is_ours

    # Names at the top of a file

    def _is_same_name(self, node: Node, offset: int) -> bool:
        if offset in self.import_sites:
            return self.taken_at is None or offset not in self._imported_as_is
        if symbols.is_qualified(node) or _is_in_qualified_type(node):
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
        return self._is_called(self.name, self.name, offset) and not self._comes_before(node)

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
        return symbols.NAMESPACES | scopes.TYPES if family(self.snapshot.path) == "java" else symbols.NAMESPACES

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
        return frozenset(imported.start for imported in self._importing(self.name) if imported.alias == self.name)

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
        return frozenset(imported.start for imported in self._importing(self.name) if imported.name != "*")

    def is_imported(self, node: Node, offset: int) -> bool:
        """Whether an import of the file that brings it, under its name, is all that is known of it there."""
        if self.is_home or symbols.is_qualified(node) or _is_in_qualified_type(node):
            return False
        if in_import(node):
            return offset in self.import_sites
        bringing = [imported for imported in self._importing(self.name) if imported.alias in (self.name, "*")]
        around = self._imported_around(self.name, offset)
        local = scopes.binding_at(self.snapshot, offset, self._bindings(self.name))
        if around or local is not None:
            return any(imported in bringing for imported in around)
        return any(self._reach(imported) is None for imported in bringing) and not self._is_of_the_type_around(node)

    def _importing(self, name: str) -> list[Imported]:
        matching = [imported for imported in self.imports if imported.name in (name, "*")]
        return [imported for imported in matching if self.project.brings(self.snapshot, imported, name, self.home.path)]

    def _is_called(self, alias: str, name: str, offset: int) -> bool:
        """Whether `alias` in this file refers to what the home calls `name`."""
        if self._is_local(alias, offset) or self._is_hidden(alias, offset):
            return False
        if around := self._imported_around(alias, offset):
            return all(imported in self._importing(name) for imported in around)
        return alias in self._aliases(name)

    def _aliases(self, name: str) -> frozenset[str]:
        """The names of this file for a name of the home, without those that also name something else."""
        if self.is_home:
            return frozenset({name})
        in_file = [imported for imported in self.imports if self._reach(imported) is None and not imported.is_passed_on]
        import_sites = self._importing(name)
        bringing = [imported for imported in in_file if imported in import_sites]
        named = {imported.alias for imported in bringing if imported.name != "*"}
        stars = [imported for imported in in_file if imported.name == "*"]
        if not named and (len(stars) == len(bringing) == 1 or self.project.share_a_package(self.home, self.snapshot)):
            named = {name}
        foreign_aliases = {imported.alias for imported in in_file if imported not in bringing}
        return frozenset(alias for alias in named - foreign_aliases if not self._declares(alias))

    def _declares(self, name: str) -> bool:
        return self.project.declares(self.snapshot, name)

    def _is_local(self, name: str, offset: int) -> bool:
        """Whether a function binds the name to something of its own, other than by importing it from the home."""
        if any(at < offset and first <= offset < stop for at, (first, stop) in self._taken_apart(name)):
            return True
        local = scopes.binding_at(self.snapshot, offset, self._bindings(name))
        around = self._imported_around(name, offset)
        if any(
            imported.name and not self.project.brings(self.snapshot, imported, imported.name, self.home.path)
            for imported in around
        ):
            return True
        if local is None or not around:
            return local is not None
        starts = {imported.start for imported in around}
        return any(at not in starts and reach == local.reach for at, reach in self._declared_in_functions(name))

    def _taken_apart(self, name: str) -> Iterator[tuple[int, tuple[int, int]]]:
        """Where `S { name }` of Rust binds a field to a local, and the scope of that."""
        for at in islice(scopes.mentions(self.snapshot, name), MOST if family(self.snapshot.path) == "rust" else 0):
            node = scopes.node_at(self.snapshot, at)
            is_short = node is not None and node.type == "shorthand_field_identifier"
            if is_short and (reach := scopes.enclosing_range(self.snapshot, at)) is not None:
                yield at, reach

    def _declared_in_functions(self, name: str) -> Iterator[tuple[int, tuple[int, int]]]:
        for at in islice(scopes.mentions(self.snapshot, name), MOST):
            binding = scopes.binding_at(self.snapshot, at, ())
            if binding is not None:
                yield at, binding.reach

    def _imported_around(self, alias: str, offset: int) -> list[Imported]:
        """What the functions around import by this name; `import a.b` of Python by `a`."""
        named = (imported for imported in self.imports if f"{imported.alias}.".startswith(f"{alias}."))
        reaches = ((imported, self._reach(imported)) for imported in named)
        return [imported for imported, reach in reaches if reach is not None and reach[0] <= offset < reach[1]]

    def _reach(self, imported: Imported) -> tuple[int, int] | None:
        """The function around an import statement, if any."""
        if imported.start not in self._reaches:
            self._reaches[imported.start] = scopes.enclosing_range(self.snapshot, imported.start)
        return self._reaches[imported.start]

    @cached_property
    def _reaches(self) -> dict[int, tuple[int, int] | None]:
        return {}

    def _bindings(self, name: str) -> list[Binding]:
        if name not in self._bound:
            self._bound[name] = scopes.bindings(self.snapshot, (name,), MOST)
        return self._bound[name]

    @cached_property
    def _bound(self) -> dict[str, list[Binding]]:
        return {}

    def _has(self, path: str, name: str, offset: int) -> bool:
        """Whether a dotted path is a module that is the home, or has the name from it."""
        if not PATH.fullmatch(path):
            return False
        mark = "::" if family(self.snapshot.path) == "rust" else "."
        parts = path.split(mark)
        spelled = list(_spelled(self.imports, parts, mark))
        if not spelled or (mark == "." and self._is_local(parts[0], offset)):
            return False
        modules = [self.project.module(self.snapshot, module_name, self.home.path) for module_name in spelled]
        return all(self.project.leads(module, name, self.home.path) for module in modules)

    # Members

    def _is_member(self, owner: Node, node: Node) -> bool:
        own = symbols.owner_of(node)
        if node.type == "private_property_identifier":
            return self.is_home and (own or symbols.enclosing(node)) == owner
        if scopes.declares(node) and own is not None and type_of_object(node) is None:
            is_derived = type_name(own) in self.derived and own.type in scopes.TYPES
            return self._is_owner(own) or (is_derived and self.overrides(node))
        is_short = node.parent is not None and node.parent.type == "shorthand_field_initializer"
        if not symbols.is_qualified(node) and not is_short:
            around = own if own is not None else symbols.enclosing(node)
            allows_bare_members = own is not None or symbols.allows_bare_members(self.snapshot)
            return self.is_home and allows_bare_members and around is not None and self._is_owner(around)
        if node.parent is not None and node.parent.type == "keyword_argument":
            return self._is_field_given(owner, node)
        if (kind := type_of_object(node)) is not None:
            return self._is_type_named(kind)
        whose = qualifier_node(node)
        return whose is not None and (self._is_of_type(whose, node) or self._is_the_packages_own(node))

    def _is_the_packages_own(self, node: Node) -> bool:
        """Whether it is private to this package of Go, in which no other type has such a member: then it is the same,
        whatever qualifies it."""
        is_go = family(self.snapshot.path) == family(self.home.path) == "go"
        if not is_go or self.name[:1].isupper() or node.parent is None or node.parent.type != "selector_expression":
            return False
        if not self.is_home and not self.project.share_a_package(self.home, self.snapshot):
            return False
        return self.project.once(("alone", self.home.path, self.name), self._is_alone)

    def _is_alone(self) -> bool:
        """Whether no file of the package declares another member of the name."""
        files = self.project.beside(self.home.path, self.name)
        return files is not None and not any(_declares_member(file, self.name) for file in files)

    def overrides(self, node: Node) -> bool:
        """Whether it is the same overload: in Java a method with other parameters is another one, and a field none."""
        if family(self.snapshot.path) != "java" or self.symbol.node is None:
            return True
        return _parameters_of(self.symbol.node) == _parameters_of(node) is not None

    def _is_field_given(self, owner: Node, node: Node) -> bool:
        """Whether it is a keyword argument that sets a field of a class without a constructor: a data class."""
        call = node.parent and node.parent.parent and node.parent.parent.parent
        function = call and call.child_by_field_name("function")
        return function is not None and text_of(function) in self.owners and b"def __init__" not in (owner.text or b"")

    def _is_owner(self, around: Node) -> bool:
        """The type itself, not another class of the same name."""
        symbol = self.symbol.owner
        if symbol is None or not (self.is_home or family(self.snapshot.path) == "go"):
            return False
        is_same_type = type_name(around) == type_name(symbol)
        if is_same_type and family(self.snapshot.path) in traits.CLASSES:
            return around.start_byte == symbol.start_byte
        return is_same_type and (self.is_home or type_name(symbol) in self.owners)

    @cached_property
    def owners(self) -> frozenset[str]:
        """The names of this file for the type whose member it is."""
        if self.symbol.owner is None:
            return frozenset()
        return self._aliases(type_name(self.symbol.owner)) | self._default_owners

    @cached_property
    def _default_owners(self) -> frozenset[str]:
        """Those by which it imports the type as the default of a module, which are not its names elsewhere."""
        name, home = type_name(self.symbol.owner) if self.symbol.owner is not None else "", self.home.path
        return frozenset(
            imported.alias
            for imported in self.imports
            if imported.name == "default" and not imported.is_passed_on and not self._declares(imported.alias)
            if self.project.leads_by_default(self.project.module(self.snapshot, imported.module, home), name, home)
        )

    @cached_property
    def owners_named(self) -> frozenset[str]:
        """The same, and its own name, which it may have behind the name of a module."""
        return self.owners | {type_name(self.symbol.owner), "Self"} if self.symbol.owner is not None else self.owners

    @cached_property
    def derived(self) -> frozenset[str]:
        """The classes of the file that derive from it by their first bases."""
        return self._derived(MOST_BASES)

    def _derived(self, steps: int) -> frozenset[str]:
        if self.symbol.owner is None:
            return frozenset()
        key = "derived", self.home.path, self.symbol.owner.start_byte, self.snapshot.path, steps
        return self.project.once(key, lambda: self._derived_within(steps))

    def _derived_within(self, steps: int) -> frozenset[str]:
        pairs = bases_in(self.snapshot)
        imported = {
            base
            for _, base in pairs
            if base not in self.owners and (self._is_type(base, 0) or self._is_derived_elsewhere(base, steps))
        }
        owners, grown = {*self.owners, *imported}, True
        while grown:
            subclasses = {name for name, base in pairs if base in owners} - owners
            owners, grown = owners | subclasses, bool(subclasses)
        return frozenset(owners - self.owners - imported)

    def _is_derived_elsewhere(self, name: str, steps: int) -> bool:
        source = _class_elsewhere(self.snapshot, name, self.home, self.project) if steps else None
        if source is None:
            return False
        file, own_name = source
        there = Uses(self.name, self.new_name, self.symbol, self.home, file, self.project)
        return own_name in there._derived(steps - 1) or there._is_derived_elsewhere(own_name, steps - 1)

    def _is_of_type(self, whose: Node, node: Node) -> bool:
        receiver, offset = text_of(whose), self.snapshot.offset_of_byte(whose.start_byte)
        if self._is_self(receiver):
            around = symbols.enclosing(node)
            if around is None or _is_of_another_object(node, around):
                return False
            is_own = receiver not in ("super", "super()") and self._is_owner(around)
            return is_own or (type_name(around) in self.derived and around.type in scopes.TYPES)
        if self._is_type(receiver, offset) or self._makes(whose):
            return True
        if whose.type in ATTRIBUTES and (attribute := ATTRIBUTE_OF_SELF.fullmatch(receiver)):
            return self._is_attribute(attribute["name"], node)
        return whose.type == "identifier" and self._is_object(receiver, offset)

    def _is_self(self, receiver: str) -> bool:
        words = OBJECTS if family(self.snapshot.path) in ("java", "javascript") else symbols.SELVES | {"super()"}
        return receiver in words

    def _is_attribute(self, name: str, node: Node) -> bool:
        """Whether every assignment of the file to an attribute of this name, and every field, is of the type, and the
        class around has one."""
        writings = [
            writing for at in scopes.mentions(self.snapshot, name) if (writing := self._written(at)) is not None
        ]
        around = symbols.enclosing(node)
        if around is None or _is_of_another_object(node, around):
            return False
        is_own = any(_is_within(node, around) for node in writings)
        return is_own and all(self._is_given_type(node) for node in writings)

    def _written(self, offset: int) -> Node | None:
        """The attribute whose name stands there, if it is assigned to, or the name of a field."""
        node = scopes.node_at(self.snapshot, offset)
        if node is not None and node.parent is not None and node.parent.type in FIELDS:
            return node if scopes.is_member(node) else None
        whole = node.parent if node is not None and scopes.is_member(node) else None
        if whole is None or whole.type not in ATTRIBUTES:
            return None
        child, parent = scopes.outermost(whole)
        is_alias = child.type == "as_pattern_target" or (parent is not None and parent.type == "as_pattern")
        is_left = parent is not None and child == parent.child_by_field_name("left")
        return whole if is_alias or (is_left and parent is not None and parent.type in WRITING) else None

    def _is_given_type(self, attribute: Node) -> bool:
        parent = attribute.parent
        if parent is not None and parent.type in FIELDS:
            return self._is_declared_of_type(attribute)
        is_plain = parent is not None and parent.type in ("assignment", "assignment_expression")
        value = parent.child_by_field_name("right") if parent is not None and is_plain else None
        return value is not None and self._makes(value)

    def _is_object(self, name: str, offset: int) -> bool:
        """Whether all assignments and annotations of this variable say that it is of the type."""
        local = scopes.binding_at(self.snapshot, offset, self._bindings(name))
        if name not in self._objects:
            self._objects[name] = self._reaches_of_objects(name)
        return (local and local.reach) in self._objects[name]

    @cached_property
    def _objects(self) -> dict[str, frozenset[tuple[int, int] | None]]:
        return {}

    def _reaches_of_objects(self, name: str) -> frozenset[tuple[int, int] | None]:
        """The scopes of variables of this name that certainly are of the type; None is the file."""
        by_reach = self._declared(name)
        return frozenset(reach for reach, nodes in by_reach.items() if all(map(self._is_declared_of_type, nodes)))

    def _declared(self, name: str) -> dict[tuple[int, int] | None, list[Node]]:
        """What declares variables of this name, by their scopes."""
        by_reach: dict[tuple[int, int] | None, list[Node]] = {}
        for match in islice(re.finditer(scopes.whole(name), self.snapshot.text), MOST):
            node = scopes.node_at(self.snapshot, match.start())
            if node is not None and scopes.declares(node) and not scopes.is_member(node):
                local = scopes.binding_at(self.snapshot, match.start(), self._bindings(name))
                by_reach.setdefault(local and local.reach, []).append(node)
        return by_reach

    def _is_declared_of_type(self, node: Node) -> bool:
        annotation, value = _stated(node)
        if annotation is not None:
            return self._is_type_named(annotation)
        return value is not None and self._makes(value)

    def _is_type_named(self, annotation: Node) -> bool:
        match = TYPE.fullmatch(text_of(annotation))
        return match is not None and self._is_type(match["name"], self.snapshot.offset_of_byte(annotation.start_byte))

    def _makes(self, value: Node) -> bool:
        """Whether it constructs an object of the type: `C(…)`, or what another language has for that."""
        named = self._constructed(value)
        return named is not None and self._is_type(text_of(named), self.snapshot.offset_of_byte(named.start_byte))

    def _constructed(self, value: Node) -> Node | None:
        while value.type in ("parenthesized_expression", "unary_expression", "reference_expression"):
            value = value.named_children[-1]
        kind, field = MADE.get(family(self.snapshot.path), ("", ""))
        return value.child_by_field_name(field) if value.type == kind else None

    def is_of_another_type(self, whose: Node) -> bool:
        """Whether all that is said of an object says that it is of another type, with which this one has nothing to
        do."""
        if whose.type in LITERALS:
            return True
        if whose.type == "parenthesized_expression" and whose.named_child_count == 1:
            return self.is_of_another_type(whose.named_children[0])
        if (named := self._constructed(whose)) is not None:
            return self._is_another_type(text_of(named))
        if whose.type in ATTRIBUTES and symbols.is_of_self(last := whose.named_children[-1]):
            written = [
                n for at in scopes.mentions(self.snapshot, text_of(last)) if (n := self._written(at)) is not None
            ]
            return bool(written) and all(map(self._is_written_another_type, written))
        if whose.type != "identifier":
            return False
        name, offset = text_of(whose), self.snapshot.offset_of_byte(whose.start_byte)
        declarations = self.declarations_at(name, offset)
        if not declarations or all(map(in_import, declarations)):
            return symbols.is_type(name, self.snapshot) and self._is_another_type(name)
        return all(map(self._is_declared_of_another_type, declarations))

    def _is_written_another_type(self, attribute: Node) -> bool:
        if attribute.parent is not None and attribute.parent.type in FIELDS:
            return self._is_declared_of_another_type(attribute)
        kind, value = (attribute.parent and attribute.parent.child_by_field_name(field) for field in ("type", "right"))
        if kind is not None:
            return self.is_another_type_named(kind)
        return value is not None and self.is_of_another_type(value)

    def declarations_at(self, name: str, offset: int) -> list[Node]:
        local = scopes.binding_at(self.snapshot, offset, self._bindings(name))
        return self._declared(name).get(local and local.reach, [])

    def _is_declared_of_another_type(self, node: Node) -> bool:
        if node.parent is not None and node.parent.type in scopes.TYPES and scopes.names_it(node, node.parent):
            return self._is_another_type(text_of(node))
        annotation, value = _stated(node)
        if annotation is not None:
            return self.is_another_type_named(annotation)
        return value is not None and (value.type in LITERALS or self.is_of_another_type(value))

    def offset_of(self, node: Node) -> int:
        return self.snapshot.offset_of_byte(node.start_byte)

    def is_another_type_named(self, annotation: Node) -> bool:
        words = re.findall(r"\w+", text_of(annotation))
        return bool(words) and not any(
            word in ANY or len(word) == 1 or self.is_related(word) or self._is_no_class(self.snapshot, word)
            for word in words
        )

    def _is_no_class(self, file: Snapshot, name: str, steps: int = MOST_BASES) -> bool:
        """Whether a type of Python is an alias, which may stand for any type, or a protocol, which any may satisfy."""
        if family(file.path) != "python" or not steps:
            return False
        alias = re.search(
            rf"^(?:type )?{re.escape(name)}(?:\[.*\])?(?:\s*:.*?)?\s*=(?!=)\s*(?P<value>.*)", file.text, re.MULTILINE
        )
        if (alias is not None and not MAKING_TYPES.match(alias["value"])) or any(
            "Protocol" in re.findall(r"\w+", heading) for heading in symbols.headings_of(file, name)
        ):
            return True
        return any(self._is_no_class(source, origin, steps - 1) for source, origin in self._sources(file, name))

    def _is_another_type(self, path: str) -> bool:
        """Whether a constructor is another class's: a function, which is none, may return what it likes."""
        last = re.split(r"\.|::", path)[-1]
        return symbols.is_capitalized(last) and not last.isupper() and not self.is_related(last)

    def is_related(self, name: str) -> bool:
        """Whether a type of this name is the one whose member it is, derives from it, or is one that it names as its
        base."""
        owner = self.symbol.owner
        is_base = owner is not None and name in symbols.heading(owner)
        return is_base or self.derives(self.snapshot, name)

    def derives(self, file: Snapshot, name: str, steps: int = MOST_BASES) -> bool:
        """Whether the type that a file calls so is the one whose member it is, or derives from it."""
        if name in self.owners_named:
            return True
        if not steps:
            return False
        bases = {word for heading in symbols.headings_of(file, name) for word in re.findall(r"\w+", heading)} - {name}
        if any(self.derives(file, base, steps - 1) for base in bases):
            return True
        return any(self.derives(source, origin, steps - 1) for source, origin in self._sources(file, name))

    def _sources(self, file: Snapshot, name: str) -> Iterator[tuple[Snapshot, str]]:
        """The files from which a file imports the name, and what it is called there."""
        for imported in self.project.imports(file):
            path = self.project.module(file, imported.module, self.home.path) if imported.alias == name else None
            source = self.project.file(path) if path is not None and path != file.path else None
            if source is not None:
                yield source, imported.name

    def _is_type(self, type_text: str, offset: int) -> bool:
        """Whether a path of names refers to the type whose member it is."""
        owner = self.symbol.owner
        if owner is not None and self._is_called(type_text, type_name(owner), offset):
            return True
        if type_text in self._default_owners:
            return not self._is_local(type_text, offset) and not self._is_hidden(type_text, offset)
        path, _, last = type_text.rpartition(".")
        return bool(path) and owner is not None and last == type_name(owner) and self._has(path, last, offset)


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
    highest, file, above = None, home, symbol.owner and type_name(symbol.owner)
    for _ in range(MOST_BASES if above else 0):
        bases = {base for derived, base in bases_in(file) if derived == above}
        above = bases.pop() if len(bases) == 1 else ""
        is_here = bool(above) and project.declares(file, above)
        source = (file, above) if is_here else _class_elsewhere(file, above, home, project)
        if source is None:
            break
        file, above = source
        for at in islice(scopes.mentions(file, name), MOST):
            node = scopes.node_at(file, at)
            owner = symbols.owner_of(node) if node is not None and scopes.declares(node) else None
            if node is None or owner is None or type_name(owner) != above:
                continue
            if Uses(name, new_name, symbol, home, file, project).overrides(node):
                highest = symbol_at(name, new_name, file, at, file, ()), file
    return highest


def bases_in(file: Snapshot) -> list[tuple[str, str]]:
    """The classes of a file and their first bases."""
    return DERIVED.findall(file.text) if family(file.path) in traits.CLASSES else []


def _class_elsewhere(file: Snapshot, name: str, home: Snapshot, project: Project) -> tuple[Snapshot, str] | None:
    """The file from which a file has a class, and how it is called there; None if that is not certain."""
    if not name or project.declares(file, name):
        return None
    path, _, last = name.rpartition(".")
    if path:
        sources = {(module, last) for module in _spelled(project.imports(file), path.split("."), ".")}
    else:
        sources = {(imported.module, imported.name) for imported in project.imports(file) if imported.alias == name}
    if not sources and family(file.path) == "java":
        path = str(PurePath(file.path).with_name(f"{name}.java"))
        return (beside, name) if project.exists(path) and (beside := project.file(path)) is not None else None
    module, own_name = sources.pop() if len(sources) == 1 else ("", "")
    at = project.module(file, module, home.path) if own_name else None
    source = project.file(at) if at is not None and at != file.path else None
    return (source, own_name) if source is not None else None


def _spelled(imports: Sequence[Imported], parts: list[str], mark: str) -> Iterator[str]:
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


def _stated(node: Node) -> tuple[Node | None, Node | None]:
    """What the declaration of a variable says of it: its type, or else its value."""
    child, parent = scopes.outermost(node)
    if parent is None or (child != node and child.type not in WRAPPED):
        return None, None
    holder = child if child.type == "typed_parameter" else parent
    if kind := holder.child_by_field_name("type") or (parent.parent and _typed_around(parent)):
        return kind, None
    if parent.type in ITERATING:
        return None, None
    value = parent.child_by_field_name("value") or parent.child_by_field_name("right")
    if value is not None and value.type == "expression_list" and value.named_child_count == 1:
        value = value.named_children[0]
    return None, None if child.type == "expression_list" and child.named_child_count != 1 else value


def type_of_object(node: Node) -> Node | None:
    """The type of the object that a literal or pattern spells out, as far as it is named beside: `T` of
    `x: T = { a: 1 }`, `({ a }: T)` and `case T(a=1)`."""
    parent = node.parent
    if parent is not None and parent.type == "keyword_pattern":
        around = innermost(parent, ("class_pattern",))
        return around.named_children[0] if around is not None and parent.named_children[0] == node else None
    is_key = (
        parent is not None and parent.type in ("pair", "pair_pattern") and parent.child_by_field_name("key") == node
    )
    whole = parent.parent if parent is not None and is_key else parent
    if whole is None or whole.type not in ("object", "object_pattern") or whole.parent is None:
        return None
    return whole.parent.child_by_field_name("type")


def _typed_around(declarator: Node) -> Node | None:
    """In Java one type stands before all variables of a statement."""
    around = declarator.parent
    return (
        around.child_by_field_name("type") if around is not None and declarator.type == "variable_declarator" else None
    )


def _evaluated(node: Node) -> Node:
    """Decorators, defaults and annotations of a Python function are evaluated where it is declared."""
    child, around = node, node.parent
    while around is not None and around.type not in scopes.FUNCTIONS:
        child, around = around, around.parent
    named = around.child_by_field_name("name") if around is not None else None
    is_body = around is not None and child == around.child_by_field_name("body")
    return node if around is None or named is None or is_body else named


def _is_of_another_object(node: Node, around: Node) -> bool:
    """Whether JavaScript's `this` is not the class's: in a plain function, or in the method of an object."""
    for inside in takewhile(lambda node: node != around, outward(node.parent)):
        in_object = inside.type == "method_definition" and inside.parent is not None and inside.parent.type == "object"
        if in_object or inside.type in OF_ANY_OBJECT:
            return True
    return False


def _parameters_of(name: Node) -> list[str] | None:
    """The types of the parameters of a Java method."""
    listed = name.parent and name.parent.child_by_field_name("parameters")
    if listed is None:
        return None
    kinds = [
        child.child_by_field_name("type") or child for child in listed.named_children if "comment" not in child.type
    ]
    return [text_of(kind) for kind in kinds]


def _is_in_all(content: Node) -> bool:
    listed = innermost(content, ("list", "tuple"))
    around = listed.parent if listed is not None and content.parent in listed.named_children else None
    return around is not None and text_of(around.child_by_field_name("left")) == "__all__"


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


def _declares_member(snapshot: Snapshot, name: str) -> bool:
    nodes = (scopes.node_at(snapshot, at) for at in scopes.mentions(snapshot, name))
    return any(node is None or (scopes.is_member(node) and scopes.declares(node)) for node in nodes)


def _is_within(node: Node, around: Node) -> bool:
    return around.start_byte <= node.start_byte and node.end_byte <= around.end_byte


def _items_of(around: Node) -> list[Node]:
    body = around.child_by_field_name("body")
    return body.named_children if body is not None else []


def _is_in_macro(node: Node) -> bool:
    """Whether it stands in the parameters or the body of a C macro with parameters."""
    around = outward(node if node.type == "preproc_arg" else node.parent)
    outside = next((node for node in around if node.type not in ("preproc_arg", "preproc_params")), None)
    return outside is not None and outside.type == "preproc_function_def"


def _is_in_qualified_type(node: Node) -> bool:
    """Whether it is the `B` of the type `a.B`."""
    parent = node.parent
    return parent is not None and parent.type in QUALIFIED and parent.named_children[-1] == node


def qualifier_node(node: Node) -> Node | None:
    """The node that qualifies a member."""
    parent = node.parent
    if parent is None:
        return None
    if parent.type in ("field_initializer", "field_pattern", "shorthand_field_initializer"):
        return symbols.struct_of(parent)
    if parent.type == "literal_element":
        return symbols.composite(parent)
    if parent.type == "token_tree":
        mark = node.prev_sibling
        whose = mark.prev_sibling if mark is not None and mark.type in (".", "::") else None
        before = whose.prev_sibling if whose is not None else None
        return None if before is not None and before.type in (".", "::") else whose
    if _is_in_qualified_type(node):
        return parent.named_children[0]
    qualifiers = (parent.child_by_field_name(field) for field in symbols.QUALIFIER_FIELDS)
    return next((qualifier for qualifier in qualifiers if qualifier is not None and qualifier != node), None)
