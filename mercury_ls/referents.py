"""What a renamed name stands for, and whether the same name elsewhere stands for that too."""

import re
from collections.abc import Iterable

from msgspec import Struct
from tree_sitter import Node

from mercury_ls import scopes
from mercury_ls.documents import Snapshot
from mercury_ls.languages import find

__all__ = ["Referent", "declares_anew", "is_meant", "referent"]

TAKEN_FROM = ("object", "operand", "argument", "path", "scope", "expression", "table", "value")
TAKEN = ("attribute", "field", "property", "name")
SELVES = frozenset({"self", "this", "Self", "cls", "super"})
BARE = frozenset({"c", "cpp", "csharp", "java"})
"""Languages in which a method names the members of its type without saying whose they are."""
SIMPLE = re.compile(r"[\w.:]*?(?P<name>\w+)(?:<.*>)?\Z", re.DOTALL)


class Referent(Struct, frozen=True):
    """`local` is the range in which a parameter or a local is known, `owner` the type that a member is declared in,
    `rivals` the types with a member of their own that has the name, `function` what a parameter belongs to; `free` says
    that something of the file's own was renamed where it is declared, which nothing has as a member."""

    node: Node | None = None
    path: str = ""
    local: tuple[int, int] | None = None
    owner: Node | None = None
    rivals: frozenset[str] = frozenset()
    function: str = ""
    free: bool = False
    bound: tuple[tuple[int, int], ...] = ()


def referent(
    before: str, after: str, home: Snapshot | None, offset: int, snapshot: Snapshot, places: Iterable[int]
) -> Referent:
    """What stands at `offset` of `home`, as it matters for these places of a snapshot that have its old name."""
    bound = tuple(scopes.binding_ranges(snapshot, before))
    node = home and scopes.node_at(home, offset)
    if home is None or node is None:
        return Referent(bound=bound)
    local = scopes.local_range(home, offset, (before, after))
    declared = scopes.declares(node)
    owner = owner_of(node) if declared and not local else None
    return Referent(
        node=node,
        path=home.path,
        local=local,
        owner=owner,
        rivals=rivals(owner, snapshot, places) if owner else frozenset(),
        function=taker_of(node) if local and scopes.in_parameters(home, offset) else "",
        free=declared and not local and owner is None and not scopes.is_member(node),
        bound=bound,
    )


def is_meant(meant: Referent, snapshot: Snapshot, offset: int) -> bool:
    """A local of one function or block stays in it, a member in its type, and neither is the other."""
    here = meant.path == snapshot.path
    node = scopes.node_at(snapshot, offset)
    if meant.local:
        named = node is not None and bool(meant.function) and names_argument(node, meant.function)
        return named or (here and scope_at(meant, offset) == meant.local and not (node and is_taken(node)))
    if node is None or meant.node is None:
        return scope_at(meant, offset) is None
    member = is_taken(node)
    if not member and scope_at(meant, offset):
        return False
    if meant.owner is None and is_static(whose := taken_from(meant.node)) and is_static(other := taken_from(node)):
        return whose == other
    if meant.owner is not None:
        return is_of(meant.owner, meant.rivals, snapshot, node)
    if scopes.is_member(meant.node):
        return scopes.is_member(node)
    return not (meant.free and here and scopes.is_member(node))


def declares_anew(meant: Referent, node: Node) -> bool:
    """Whether the name is declared there as well; that a constructor has its class's name says nothing."""
    around = owner_of(node) if scopes.declares(node) else None
    constructs = around is not None and meant.node is not None and scopes.names_it(meant.node, around)
    return scopes.declares(node) and not constructs


def scope_at(meant: Referent, offset: int) -> tuple[int, int] | None:
    """The innermost of the ranges that have the name for something of their own."""
    ranges = {*meant.bound, meant.local} - {None}
    around = (each for each in ranges if each and each[0] <= offset < each[1])
    return min(around, key=lambda each: each[1] - each[0], default=None)


def is_of(owner: Node, rivals: frozenset[str], snapshot: Snapshot, node: Node) -> bool:
    """Whether it may be the owner's member: taken from no rival, or bare where it can be."""
    own = owner_of(node) if scopes.declares(node) else None
    if own is not None:
        return akin(own, owner)
    around = enclosing(node)
    if is_taken(node):
        whose = taken_from(node)
        return (type_name(around) if around is not None and whose in SELVES else whose) not in rivals
    if around is None or not akin(around, owner):
        return False
    language = find(snapshot.language, snapshot.path)
    return owner_of(node) is not None or (language is not None and language.id in BARE)


def is_static(name: str) -> bool:
    """Types are written with a capital where it matters whose member something is."""
    return name[:1].isupper()


def rivals(owner: Node, snapshot: Snapshot, places: Iterable[int]) -> frozenset[str]:
    nodes = [node for at in places if (node := scopes.node_at(snapshot, at)) is not None and scopes.declares(node)]
    owners = [other for node in nodes if (other := owner_of(node)) is not None]
    return frozenset(type_name(other) for other in owners if not akin(other, owner)) - {""}


def owner_of(node: Node) -> Node | None:
    """The type in whose body it stands and in no function of it; that of a method of Go is its receiver's."""
    child, around = node, node.parent
    while around is not None:
        if around.type in scopes.FUNCTIONS and not scopes.names_it(node, around):
            return None
        if around.type == "method_declaration" and around.child_by_field_name("receiver"):
            return around
        if around.type in scopes.TYPES and child not in around.children_by_field_name("name") and is_scoped(around):
            return around
        child, around = around, around.parent
    return None


def is_scoped(around: Node) -> bool:
    """The members of a plain `enum` of C are known without it."""
    return around.type != "enum_specifier" or any(child.type in ("class", "struct") for child in around.children)


def enclosing(node: Node) -> Node | None:
    """The type in which it stands, be it in one of its methods."""
    around = node.parent
    while around is not None and (around.type not in scopes.TYPES or not is_scoped(around)):
        if around.type in scopes.FUNCTIONS and type_name(around):
            return around
        around = around.parent
    return around


def akin(one: Node, other: Node) -> bool:
    """The same type, or one that is made from the other; in Go any that may implement an interface."""
    name, other_name = type_name(one), type_name(other)
    implicit = is_interface_of_go(one) or is_interface_of_go(other)
    return name == other_name or implicit or other_name in heading(one) or name in heading(other)


def heading(around: Node) -> set[str]:
    """The words of what stands before the body."""
    body = around.child_by_field_name("body")
    text = (around.text or b"")[: (body.start_byte if body else around.end_byte) - around.start_byte]
    return set(re.findall(r"\w+", text.decode(errors="replace")))


def is_interface_of_go(around: Node) -> bool:
    made = around.child_by_field_name("type") if around.type == "type_spec" else None
    return made is not None and made.type == "interface_type"


def type_name(around: Node) -> str:
    """That of a type; that of the type a function says that it is a method of, outside of its body."""
    if receiver := around.child_by_field_name("receiver"):
        words = re.findall(r"\w+", re.sub(r"\[.*", "", text_of(receiver)))
        return words[-1] if words else ""
    if around.type in scopes.FUNCTIONS:
        named = around.child_by_field_name("declarator")
        while named is not None and named.type != "qualified_identifier":
            named = named.child_by_field_name("declarator")
        return simple(named.child_by_field_name("scope")) if named else ""
    return simple(around.child_by_field_name("type" if around.type == "impl_item" else "name"))


def is_taken(node: Node) -> bool:
    return scopes.is_member(node) or taken_from(node) != ""


def taken_from(node: Node) -> str:
    """The last name of what this member is taken from: `b` of `a.b.c`, `B` of `A::B::c` and of `B { c: 1 }`."""
    parent = node.parent
    if parent is None:
        return ""
    if parent.type == "literal_element":
        keyed = parent.parent is not None and parent.parent.child_by_field_name("key") == parent
        return simple(composite(parent)) if keyed else ""
    fields = [each for name in TAKEN for each in parent.children_by_field_name(name)]
    whole = next((each for name in TAKEN_FROM if (each := parent.child_by_field_name(name))), None)
    return simple(whole) if node in fields and whole is not None and whole != node else ""


def composite(node: Node) -> Node | None:
    """The type of the literal of Go whose key this is, None for a map's."""
    around: Node | None = node
    while around is not None and around.type != "composite_literal":
        around = around.parent
    made = around.child_by_field_name("type") if around is not None else None
    return made if made is not None and made.type != "map_type" else None


def taker_of(node: Node) -> str:
    """The function that is given this parameter; for a constructor of Python the class."""
    around = node.parent
    while around is not None and around.type not in scopes.FUNCTIONS:
        around = around.parent
    name = simple(around.child_by_field_name("name")) if around is not None else ""
    whole = enclosing(around) if around is not None and name == "__init__" else None
    return type_name(whole) if whole is not None else name


def names_argument(node: Node, function: str) -> bool:
    """Whether it is the `name` of `name=value` in a call of that function."""
    given = node.parent
    if given is None or given.type != "keyword_argument" or given.child_by_field_name("name") != node:
        return False
    call = given.parent and given.parent.parent
    return call is not None and simple(call.child_by_field_name("function")) == function


def simple(node: Node | None) -> str:
    """The last name of a path of names, "?" of anything else."""
    match = SIMPLE.match(text_of(node).lstrip("*&")) if node is not None else None
    return match["name"] if match else "?" if node is not None else ""


def text_of(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")
