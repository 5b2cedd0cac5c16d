"""Of which types an expression may be: by annotations, values, constructors, results, members and elements."""

import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from tree_sitter import Node

from mercury_ls.code import scopes, symbols, traits
from mercury_ls.code.brackets import split
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.index import facts
from mercury_ls.code.index.definitions import MOST_STEPS, Declaration, declared_at, definitions, own_members
from mercury_ls.code.modules import Project, family, in_import
from mercury_ls.code.symbols import text_of, type_name
from mercury_ls.code.syntax import outward

PATH = re.compile(r"\w+(?:(?:\.|::)\w+)*")
BEFORE_NAME = re.compile(r"(?:(?<=&)'\w+\s|[&*:\"'\s]|\.\.\.|(?:const|in|mut|out|readonly|struct)\b)*+")
BEHIND_NAME = "\"'? \t\r\n\f\v"
"""What stands beside the name of a type and changes nothing of its members."""
LONGEST_TYPE = 1000
"""What is longer is taken as one type, which nothing declares."""
GENERIC = re.compile(r"(?P<name>[\w.:]*)\s*[\[<](?P<arguments>.*)[\]>]", re.DOTALL)
LISTED = re.compile(r"\[\d*\](?P<go>.+)|(?P<array>.+)\[\]|\[(?P<rust>[^\];]+)(?:;[^\]]*)?\]", re.DOTALL)
MAP_OF_GO = re.compile(r"map\[(?P<key>[^\]]+)\](?P<value>.+)", re.DOTALL)
NOTHING = frozenset({"None", "nil", "null", "undefined", "void"})
SAME = frozenset(
    {"Annotated", "Arc", "Box", "ClassVar", "Final", "InitVar", "Optional", "Rc", "Readonly", "Type", "type"}
)
"""Generic types with the members of their first argument."""
AWAITED = frozenset({"Awaitable", "Coroutine", "Future", "Promise", "PromiseLike", "Task", "Result", "Option"})
FIRST = frozenset({"AsyncContextManager", "AsyncGenerator", "ContextManager", "Generator"})
LISTS = frozenset(
    {"Array", "ArrayList", "AsyncIterable", "AsyncIterator", "Collection", "Deque", "FrozenSet", "HashSet", "Iterable"}
    | {"Iterator", "List", "MutableCollection", "MutableIterable", "MutableList", "MutableSequence", "MutableSet"}
    | {"ReadonlyArray", "Sequence", "Set", "Stream", "Vec", "VecDeque"}
    | {"deque", "frozenset", "list", "set"}
)
"""Generic types whose elements are of their argument."""
MAPPINGS = frozenset(
    {"BTreeMap", "DefaultDict", "Dict", "HashMap", "Map", "Mapping", "MutableMap", "MutableMapping", "OrderedDict"}
    | {"ReadonlyMap", "Record", "defaultdict", "dict"}
)
OWN = frozenset({"Self", "self", "this"})
"""Types that say: what the method is called on."""
TAKING = frozenset({"get", "pop", "setdefault"})
"""Methods of a mapping or list that return what it holds."""

NEUTRAL = frozenset({"ABC", "Generic", "abc.ABC", "object", "typing.Generic"})
"""Bases without members of their own."""

SUPER = frozenset({"super", "super()"})


class Type(Struct, frozen=True):
    """A type as a file writes it at this offset, or the type that is declared by `definition`. Without either it is one
    of the language's own."""

    file: Snapshot
    text: str = ""
    offset: int = 0
    definition: Declaration | None = None

    @classmethod
    def stated(cls, file: Snapshot, node: Node, definition: Declaration | None = None) -> "Type":
        """The one that a file names there."""
        return cls(file, text_of(node), file.offset_of_byte(node.start_byte), definition)

    @property
    def alternatives(self) -> "list[Type]":
        """The types of which it is one, without what only wraps them."""
        if self.definition is not None or not self.text or len(self.text) > LONGEST_TYPE:
            return [self]
        alternatives, wrapped = list[Type](), [self.text]
        while wrapped:
            text = wrapped.pop()
            parts = [part for part in _split_at_bars(_bare(text)) if part not in NOTHING]
            if text in ("", *parts):
                name, arguments = generic(text)
                parts = arguments[:1] if name.rpartition(".")[2] in SAME else []
                alternatives += [] if parts else [self._written(text)]
            wrapped += reversed(parts)
        return alternatives

    @property
    def name(self) -> str:
        """The last name of what is written, without arguments."""
        return generic(self.text)[0].rpartition(".")[2]

    def element(self, of_mapping: bool) -> "Type | None":
        """What it holds: the values of a mapping, or what an iteration goes over."""
        name, arguments = self.name, generic(self.text)[1]
        if not arguments:
            return None
        if name in MAPPINGS and len(arguments) == 2:
            return self._written(arguments[of_mapping])
        is_list = name in LISTS and len(arguments) == 1
        is_tuple = name == "tuple" and arguments[1:] in ([], ["..."])
        return self._written(arguments[0]) if name in FIRST or is_list or is_tuple else None

    def unwrapped(self, names: Iterable[str]) -> "Type | None":
        """The argument that one of these generic types wraps: the last of a coroutine."""
        _, arguments = generic(self.text)
        if self.name not in names or not arguments:
            return None
        return self._written(arguments[-1] if self.name == "Coroutine" else arguments[0])

    def _written(self, text: str) -> "Type":
        return Type(self.file, text.strip(), self.offset)


def generic(text: str) -> tuple[str, list[str]]:
    """The name of a type and its arguments; an array is a list, however it is written."""
    if mapping := MAP_OF_GO.fullmatch(text):
        return "Map", [mapping["key"], mapping["value"]]
    if listed := LISTED.fullmatch(text):
        return "List", [listed["go"] or listed["array"] or listed["rust"]]
    match = GENERIC.fullmatch(text)
    return (match["name"], [part.strip() for part in split(match["arguments"], types=True)]) if match else (text, [])


def _bare(text: str) -> str:
    before = BEFORE_NAME.match(text)
    return text[before.end() if before is not None else 0 :].rstrip(BEHIND_NAME)


def _split_at_bars(text: str) -> list[str]:
    parts, depth, start = list[str](), 0, 0
    for at, character in enumerate(text):
        depth += (character in "([{<") - (character in ")]}>")
        if character == "|" and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [part for part in (*parts, text[start:].strip()) if part]


Types = tuple[Type, ...]
CHANGED: dict[str, Callable[[Type], Type | None]] = {
    "awaited": lambda kind: kind.unwrapped(AWAITED) or kind,
    "container": lambda kind: kind.element(of_mapping=True),
}
"""What becomes of the types of a part of an expression in the expression."""


def types_of(project: Project, file: Snapshot, node: Node, steps: int = MOST_STEPS) -> Types | None:
    """The types of which an expression is one; None if it may be of another."""
    key = "types", file, node.id
    return project.followed(key, steps, lambda: _types_of(project, file, node, steps), None, _is_known)


def _is_known(answer: object) -> bool:
    return answer is not None


def _types_of(project: Project, file: Snapshot, node: Node, steps: int) -> Types | None:
    made_of = facts.of_expression(file, node)
    if "literal" in made_of:
        return (Type(file),)
    if "nothing" in made_of:
        return ()
    if own := _own_types(file, node):
        return own
    if inner_nodes := made_of.get("same"):
        return _union(types_of(project, file, inner, steps - 1) for inner in inner_nodes)
    if stated := made_of.get("cast", made_of.get("new")):
        return tuple(Type(file, text_of(stated[0]), file.offset_of_byte(node.start_byte)).alternatives)
    for made, change in CHANGED.items():
        if made in made_of:
            types = types_of(project, file, made_of[made][0], steps - 1)
            return types and _each(types, change)
    if callee := made_of.get("called"):
        return _result(project, file, callee[0], steps - 1)
    if method := made_of.get("method"):
        return _of_member(project, file, made_of["object"][0], text_of(method[0]), steps - 1, is_called=True)
    named = _of_name(project, file, node, steps) if PATH.fullmatch(text_of(node)) else None
    if named is not None or "member" not in made_of:
        return named
    return _of_member(project, file, made_of["object"][0], text_of(made_of["member"][0]), steps - 1, is_called=False)


def _each(types: Types, change: Callable[[Type], Type | None]) -> Types | None:
    changed = [change(kind) for kind in types]
    kinds = [kind for kind in changed if kind is not None]
    return tuple(inner for kind in kinds for inner in kind.alternatives) if len(kinds) == len(changed) else None


def _union(answers: Iterable[Types | None]) -> Types | None:
    union: list[Type] = []
    for types in answers:
        if types is None:
            return None
        union += types
    return tuple(dict.fromkeys(union))


def _own_types(file: Snapshot, node: Node) -> Types:
    """The type around, for what its methods call their object; its bases, for `super`."""
    name = text_of(node)
    around = symbols.enclosing(node) if name in SUPER or is_self(file, name) else None
    if around is not None and any(map(symbols.is_called_on_an_object, outward(node))):
        return ()
    definition = Declaration.of(file, around)
    if definition is not None:
        return tuple(bases(definition)) if name in SUPER else (Type(file, definition=definition),)
    return (Type(file, type_name(around), file.offset_of_byte(around.start_byte)),) if around is not None else ()


def is_self(file: Snapshot, text: str) -> bool:
    return text in ("this", "super") if family(file.path) in traits.THIS else text in symbols.SELVES


def _of_name(project: Project, file: Snapshot, node: Node, steps: int) -> Types | None:
    path = text_of(node)
    if family(file.path) in traits.IMPLICIT_RECEIVERS:
        path = path.removesuffix(".Companion")
    declared = _declared(project, file, node, path, steps)
    if declared is None:
        return _class_elsewhere(file, path, file.offset_of_byte(node.start_byte))
    return _union(_of_definition(project, definition, steps - 1, is_called=False) for definition in declared)


def _declared(project: Project, file: Snapshot, node: Node, path: str, steps: int) -> Sequence[Declaration] | None:
    """What a path of names stands for, in Kotlin also a member of what the code around is called on."""
    in_receivers = of_receivers(project, file, node, path.partition(".")[0], steps)
    if in_receivers == []:
        return definitions(project, file, path, file.offset_of_byte(node.start_byte), steps)
    return in_receivers if "." not in path else None


def _of_definition(project: Project, definition: Declaration, steps: int, is_called: bool) -> Types | None:
    """The types of what is declared there, or of what it returns if it is called."""
    if not steps:
        return None
    file, item = definition.file, definition.item
    if definition.type is not None:
        return (Type(file, definition=definition),)
    stated = facts.of_name(file, definition.name)
    if item is not None:
        return _of_function(project, file, item, stated, steps) if is_called or "property" in stated else None
    if is_called:
        return None
    if stated_type := stated.get("type"):
        return tuple(Type.stated(file, stated_type[0]).alternatives)
    if value := stated.get("value"):
        return types_of(project, file, value[0], steps - 1)
    if element := stated.get("element"):
        types = types_of(project, file, element[0], steps - 1)
        return types and _each(types, lambda kind: kind.element(of_mapping=False))
    if entered := stated.get("entered"):
        return _entered(project, file, entered[0], steps - 1)
    return None


def _of_function(project: Project, file: Snapshot, function: Node, stated: facts.Facts, steps: int) -> Types | None:
    if returns := stated.get("returns"):
        return tuple(Type.stated(file, returns[0]).alternatives)
    returned = facts.returned(file, function)
    return _union(types_of(project, file, value, steps - 1) for value in returned) or None


def _result(project: Project, file: Snapshot, callee: Node, steps: int) -> Types | None:
    path, offset = text_of(callee), file.offset_of_byte(callee.start_byte)
    declared = _declared(project, file, callee, path, steps) if PATH.fullmatch(path) else None
    if declared is not None:
        return _union(_of_definition(project, definition, steps, is_called=True) for definition in declared)
    made_of = facts.of_expression(file, callee)
    if (member := made_of.get("member")) is not None:
        types = _of_member(project, file, made_of["object"][0], text_of(member[0]), steps, is_called=True)
        if types is not None:
            return types
    return _class_elsewhere(file, path, offset)


def _class_elsewhere(file: Snapshot, path: str, offset: int) -> Types | None:
    """A class that is none of the project's files: what is spelled like one and is no variable."""
    is_class = bool(PATH.fullmatch(path)) and symbols.is_type(re.split(r"\.|::", path)[-1], file)
    return (Type(file, path, offset),) if is_class and not _is_variable(file, path, offset) else None


def _is_variable(file: Snapshot, path: str, offset: int) -> bool:
    nodes = declared_at(file, re.split(r"\.|::", path)[0], offset)
    return any(not in_import(node) for node in nodes)


def _of_member(project: Project, file: Snapshot, whose: Node, name: str, steps: int, is_called: bool) -> Types | None:
    owners = types_of(project, file, whose, steps)
    return owners and _union(_member_of(project, owner, name, steps, is_called) for owner in owners)


def _member_of(project: Project, owner: Type, name: str, steps: int, is_called: bool) -> Types | None:
    element = owner.element(of_mapping=True) if is_called else None
    if element is not None:
        return _of_container(element, name)
    declared = members(project, owner, name, steps) or ()
    types = _union(_of_definition(project, member, steps - 1, is_called) for member in declared)
    if types is None:
        return None
    return tuple(owner if kind.text in OWN else kind for kind in types)


def _of_container(element: Type, method: str) -> Types | None:
    """What a method of a mapping or list returns that holds this."""
    if method in TAKING:
        return tuple(element.alternatives)
    return (Type(element.file, f"list[{element.text}]", element.offset),) if method == "values" else None


def _entered(project: Project, file: Snapshot, manager: Node, steps: int) -> Types | None:
    """What a context manager gives: what its class says, or what a generator yields."""
    types = types_of(project, file, manager, steps)
    if types is None:
        return None
    answers: list[Types | None] = []
    for kind in types:
        element = kind.unwrapped(FIRST | {"AsyncIterator", "Iterator"})
        methods = (_member_of(project, kind, name, steps, is_called=True) for name in ("__enter__", "__aenter__"))
        answers.append(tuple(element.alternatives) if element is not None else next(filter(None, methods), None))
    return _union(answers)


def class_of(project: Project, kind: Type, steps: int = MOST_STEPS) -> Declaration | None:
    """The one class that a type is, if it is of the project."""
    if kind.definition is not None:
        return kind.definition
    path, _ = generic(kind.text)
    if is_self(kind.file, path):
        return _class_of_self(project, kind, path, steps)
    declared = definitions(project, kind.file, path, kind.offset, steps) if PATH.fullmatch(path) else None
    classes = [definition for definition in declared or () if definition.type is not None]
    if len(classes) != 1:
        return None
    is_sure = len(declared or ()) == 1 or family(kind.file.path) in traits.TYPES_APART
    return classes[0] if is_sure else None


def _class_of_self(project: Project, kind: Type, name: str, steps: int) -> Declaration | None:
    node = scopes.node_at(kind.file, kind.offset)
    own = next(iter(_own_types(kind.file, node)), None) if node is not None else None
    if own is None or own.text == name or not steps:
        return None
    return class_of(project, own, steps - 1)


def bases(definition: Declaration | None) -> list[Type]:
    """What a class derives from, in its own order."""
    if definition is None:
        return []
    file = definition.file
    stated = facts.of_name(file, definition.name).get("base", ())
    stated_bases = [Type.stated(file, base) for base in stated]
    return [base for base in stated_bases if generic(base.text)[0] not in NEUTRAL]


def ancestors(project: Project, definition: Declaration | None) -> list[Declaration]:
    """The classes of the project from which a class derives, the nearest first."""
    above = dict[Declaration, None]()
    waiting = [definition] if definition is not None else []
    for below in waiting:
        declared = dict.fromkeys(filter(None, (class_of(project, base) for base in bases(below))))
        waiting += [base for base in declared if base not in above]
        above |= declared
    return [*above]


def members(project: Project, owner: Type, name: str, steps: int = MOST_STEPS) -> list[Declaration] | None:
    """Where a class, or the first of its bases that has one, declares a member; None if that is not known."""
    definition = class_of(project, owner, steps) if steps else None
    if definition is None:
        return None
    key = "members", definition, name
    return project.followed(key, steps, lambda: _members_of(project, definition, name, steps), None, _is_known)


def _members_of(project: Project, definition: Declaration, name: str, steps: int) -> list[Declaration] | None:
    if own := [*own_members(project, definition, name)]:
        return own
    for base in bases(definition):
        inherited = members(project, base, name, steps - 1)
        if inherited is None or inherited:
            return inherited
    return []


def of_receivers(
    project: Project, file: Snapshot, node: Node, name: str, steps: int = MOST_STEPS
) -> list[Declaration] | None:
    """The member of an object that a bare name of Kotlin stands for; None if there may be others than are known."""
    offset = file.offset_of_byte(node.start_byte)
    if family(file.path) not in traits.IMPLICIT_RECEIVERS or scopes.local_at(file, offset, (name,)) is not None:
        return []
    is_type = symbols.is_type(name, file)
    for receiver, is_static in symbols.receivers(file, node, is_type):
        declared = members(project, type_of_receiver(file, receiver), name, steps) if receiver is not None else None
        if receiver is None or (declared is None and not is_type):
            return None
        if seen := [member for member in declared or () if symbols.is_seen(member.name, receiver, is_static)]:
            return seen
    return []


def type_of_receiver(file: Snapshot, receiver: Node) -> Type:
    """Of a type that is declared around, or that an extension names."""
    return Type.stated(file, receiver, Declaration.of(file, receiver))
