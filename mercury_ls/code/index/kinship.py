"""Whether an object has the member that a type declares: it is of the type, or of one that derives from it."""

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import takewhile

from msgspec import Struct
from tree_sitter import Node

from mercury_ls.code import scopes, symbols, traits
from mercury_ls.code.documents import Snapshot, cached
from mercury_ls.code.index import facts
from mercury_ls.code.index.definitions import MOST_STEPS, Declaration, definitions
from mercury_ls.code.index.judgement import OTHER, SAME, UNKNOWN, Judgement
from mercury_ls.code.index.types import (
    LISTS,
    MAPPINGS,
    PATH,
    SUPER,
    Type,
    ancestors,
    bases,
    class_of,
    generic,
    is_self,
    members,
    types_of,
)
from mercury_ls.code.modules import Project, family
from mercury_ls.code.parts import kind_of, part_of
from mercury_ls.code.symbols import text_of, type_name
from mercury_ls.code.syntax import outward

ANY = frozenset({"Any", "Callable", "any", "auto", "dyn", "impl", "interface", "object", "unknown", "var"})
CONTAINERS = LISTS | MAPPINGS | {"tuple"}
MAKING_TYPES = re.compile(r"(?:\w+\.)*(?:Enum|NamedTuple|NewType|TypedDict|namedtuple)\(")
ALIAS = re.compile(r"\btype (\w+)")
OF_ANY_OBJECT = frozenset({"function_declaration", "function_expression", "generator_function_declaration"})


class Kinship(Struct, dict=True):
    """The types of objects that have the member `name` of `owner`, the type that `home` declares."""

    name: str
    owner: Node
    home: Snapshot
    project: Project
    declared: Node | None = None
    """The name of the member where the owner declares it."""

    def of_object(self, file: Snapshot, whose: Node) -> Judgement:
        receiver, around = text_of(whose), symbols.enclosing(whose)
        is_own_object = receiver in SUPER or is_self(file, receiver)
        if around is not None and is_own_object and not _is_extension(around):
            return self._of_own_object(file, whose, around)
        types = types_of(self.project, file, whose)
        return Judgement.joined(map(self.of_type, types)) if types is not None else UNKNOWN

    def _of_own_object(self, file: Snapshot, whose: Node, around: Node) -> Judgement:
        """Of what a method calls its object, or `super`."""
        if _is_of_another_object(file, whose, around):
            return UNKNOWN
        if text_of(whose) not in SUPER and self.is_of(file, around):
            return SAME
        return SAME if self.is_derived(file, around) else UNKNOWN

    def is_overridden(self, file: Snapshot, whose: Node) -> bool:
        """Whether an object may be of a type that derives from the owner and has a member of its own by this name."""
        types = types_of(self.project, file, whose) or ()
        declared = [member for kind in types for member in members(self.project, kind, self.name) or ()]
        owners = [(member.file, owner) for member in declared if (owner := symbols.owner_of(member.name))]
        return any(self.is_derived(source, owner) for source, owner in owners)

    def of_annotation(self, file: Snapshot, annotation: Node) -> Judgement:
        return self.of_type(Type.stated(file, annotation))

    def of_type(self, kind: Type) -> Judgement:
        """An object of one of the owner's bases may be of the owner, too."""
        verdict = Judgement.joined(self._of_written(alternative, MOST_STEPS) for alternative in kind.alternatives)
        return UNKNOWN if verdict is OTHER and any(map(self._is_base, kind.alternatives)) else verdict

    def of_class(self, file: Snapshot, path: str, offset: int) -> Judgement:
        """Of a class that is called so there."""
        definition = class_of(self.project, Type(file, path, offset))
        if definition is not None:
            return self.of(definition)
        return self._of_name(file, path, ())

    def derived(self, file: Snapshot) -> list[Declaration]:
        """The classes of a file that derive from it."""
        return [name for name in (Declaration(file, name) for name in facts.classes(file)) if self._derives(name)]

    def is_derived(self, file: Snapshot, around: Node) -> bool:
        return (definition := Declaration.of(file, around)) is not None and self._derives(definition)

    def may_derive(self, file: Snapshot, around: Node) -> bool:
        return (definition := Declaration.of(file, around)) is not None and self.of(definition) is not OTHER

    def overrides(self, file: Snapshot, node: Node) -> bool:
        """Whether a type that derives from the owner declares it there, with the same parameters."""
        own = symbols.owner_of(node) if scopes.declares(node) else None
        return own is not None and self.is_derived(file, own) and self.is_same_overload(file, node)

    def is_same_overload(self, file: Snapshot, node: Node) -> bool:
        """Whether it is the same overload: a method with other parameters is another one, and in Java a field none."""
        language = family(file.path)
        if language not in traits.OVERLOADING & traits.CLASSES or self.declared is None:
            return True
        parameters = symbols.nameless_parameters(node)
        is_overriding = parameters is not None or language in traits.OVERRIDING_FIELDS
        return is_overriding and symbols.nameless_parameters(self.declared) == parameters

    def is_of(self, file: Snapshot, around: Node) -> bool:
        """Whether a type, or what declares methods of one, is the owner and no other of its name."""
        if type_name(around) != type_name(self.owner):
            return False
        if family(file.path) in traits.CLASSES:
            return file.path == self.home.path and around.start_byte == self.owner.start_byte
        return self.project.share_a_package(file, self.home)

    def is_right_below(self, file: Snapshot, around: Node) -> bool:
        """Whether it is the first base of a class."""
        definition = Declaration.of(file, around)
        above = [class_of(self.project, base) for base in bases(definition)[:1]]
        return any(base is not None and self._owns(base) for base in above)

    def of(self, definition: Declaration, steps: int = MOST_STEPS) -> Judgement:
        """Whether a class is the owner, or inherits the member from it."""
        if self._owns(definition):
            return SAME
        key = "kinship", self.home.path, self.owner.start_byte, self.name, definition.place
        return self.project.followed(key, steps, lambda: self._of(definition, steps), UNKNOWN, _is_known)

    def _of(self, definition: Declaration, steps: int) -> Judgement:
        around = definition.type
        is_implicit = symbols.is_interface_of_go(self.owner) and around is not None
        if around is None or (is_implicit and not symbols.is_interface_of_go(around)):
            return UNKNOWN
        is_first = True
        for base in bases(definition):
            verdict = self._of_written(base, steps - 1)
            if verdict is not OTHER:
                return verdict if is_first else UNKNOWN
            if base.name == "Protocol":
                return UNKNOWN
            inherited = members(self.project, base, self.name)
            if inherited:
                return OTHER
            is_first = is_first and inherited is not None
        return OTHER

    def _derives(self, definition: Declaration) -> bool:
        return not self._owns(definition) and self.of(definition) is SAME

    def _owns(self, definition: Declaration) -> bool:
        return definition.type is not None and self.is_of(definition.file, definition.type)

    def _of_written(self, kind: Type, steps: int) -> Judgement:
        if kind.definition is not None:
            return self.of(kind.definition, steps - 1)
        if not steps or not kind.text:
            return OTHER if steps else UNKNOWN
        path, arguments = generic(kind.text)
        if PATH.fullmatch(path):
            if (definition := class_of(self.project, kind)) is not None:
                verdict = self.of(definition, steps - 1)
                return UNKNOWN if verdict is OTHER and self._is_in(arguments) else verdict
            if (declared := definitions(self.project, kind.file, path, kind.offset)) is not None:
                return Judgement.joined(self._of_alias(definition, steps - 1) for definition in declared)
        return self._of_name(kind.file, path, arguments)

    def _of_alias(self, definition: Declaration, steps: int) -> Judgement:
        """Of a variable that is used as a type, or of one of several classes of a name."""
        if definition.type is not None:
            return self.of(definition, steps)
        value = facts.of_name(definition.file, definition.name).get("value")
        if not value or value[0].type == "call":
            return OTHER if value and MAKING_TYPES.match(text_of(value[0])) else UNKNOWN
        alternatives = Type.stated(definition.file, value[0]).alternatives
        return Judgement.joined(self._of_written(kind, steps) for kind in alternatives)

    def _of_name(self, file: Snapshot, path: str, arguments: Iterable[str]) -> Judgement:
        """Of a type of which nothing but the name is known: none of the project's."""
        last = re.split(r"\.|::", path)[-1]
        if last == type_name(self.owner):
            # In Go and Rust methods of a type may stand where it is not declared.
            is_near = self.project.share_a_package(file, self.home)
            return SAME if is_near and family(file.path) not in traits.CLASSES else UNKNOWN
        if last in ANY or len(last) < 2 or last in _aliases(file):
            return UNKNOWN
        return UNKNOWN if last not in CONTAINERS and self._is_in(arguments) else OTHER

    def _is_in(self, arguments: Iterable[str]) -> bool:
        return any(type_name(self.owner) in re.findall(r"\w+", text) for text in arguments)

    def _is_base(self, kind: Type) -> bool:
        """Where nothing says where it is declared, by the name that the owner's heading gives it."""
        definition, owner = class_of(self.project, kind), Declaration.of(self.home, self.owner)
        if definition is not None:
            return definition.place in self._bases
        return kind.name in {base.name for base in bases(owner)}

    @cached_property
    def _bases(self) -> frozenset[tuple[str, int]]:
        """The classes from which the owner derives."""
        return frozenset(base.place for base in ancestors(self.project, Declaration.of(self.home, self.owner)))


@cached
def _aliases(file: Snapshot) -> frozenset[str]:
    return frozenset(ALIAS.findall(file.text))


def _is_extension(around: Node) -> bool:
    return around.type not in scopes.TYPES and part_of(around, "receiver") is not None


def _is_known(verdict: Judgement) -> bool:
    return verdict is not UNKNOWN


def _is_of_another_object(file: Snapshot, node: Node, around: Node) -> bool:
    """Whether `this` is not the class's: in JavaScript in a plain function, or in the method of an object, in Kotlin in
    a lambda."""
    any_object = OF_ANY_OBJECT if family(file.path) == "javascript" else frozenset[str]()
    for inside in takewhile(lambda node: node != around, outward(node.parent)):
        in_object = inside.type == "method_definition" and kind_of(inside.parent) == "object"
        if in_object or inside.type in any_object or symbols.is_called_on_an_object(inside):
            return True
    return False
