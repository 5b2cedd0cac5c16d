"""What a renamed name stands for, and whether the same name elsewhere stands for that too."""

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Literal

from msgspec import Struct
from tree_sitter import Node

from mercury_ls.code import scopes, syntax
from mercury_ls.code.documents import Snapshot, remembered
from mercury_ls.code.languages import find
from mercury_ls.code.scopes import Binding

__all__ = [
    "Referent",
    "declarations",
    "declares_anew",
    "is_meant",
    "is_static",
    "is_taken",
    "kind",
    "owner_of",
    "referent",
    "taken_from",
    "text_of",
    "type_name",
]

MOST_DECLARATIONS = 256
TAKEN_FROM = ("object", "operand", "argument", "path", "scope", "expression", "table", "value")
TAKEN = ("attribute", "field", "property", "name")
ROOTS = frozenset({"crate", "self", "super"})
SPACES = frozenset({"internal_module", "mod_item", "namespace_declaration", "namespace_definition"})
PATHS = frozenset({"qualified_identifier", "scoped_identifier"})
SELVES = frozenset({"self", "this", "Self", "cls", "super"})
BARE = frozenset({"c", "cpp", "csharp", "java"})
"""Languages in which a method names the members of its type without saying whose they are."""
MODULAR = frozenset({"go", "javascript", "python", "tsx", "typescript"})
DECLARING = re.compile(r"\b(?:class|interface|struct)[ \t]+\Z")
FROM = re.compile(r"\bfrom\b[ \t]+(?:[\w.]+|\"[^\"]*\"|'[^']*')")
FROM_MODULES = re.compile(r"\{[^}]*\}|\bfrom\b.*", re.DOTALL)
SIMPLE = re.compile(r"(?P<super>super)\(.*\)\Z|[.:]*+(?:\w++[.:]++)*+(?P<name>\w++)(?:<.*>)?\Z", re.DOTALL)


class Referent(Struct, frozen=True):
    """`local` is what a parameter or a local is bound to, `owner` the type that a member is declared in, `rivals` the
    other types with a member of that name, `inherited` whether one that is akin to the owner has it too, `function`
    what a parameter belongs to; `free` says that something of the file's own was renamed where it is declared, which
    nothing has as a member; `modules` are what is imported, and `bound` the locals that have the name."""

    node: Node | None = None
    path: str = ""
    local: Binding | None = None
    owner: Node | None = None
    rivals: frozenset[str] = frozenset()
    inherited: bool = False
    function: str = ""
    free: bool = False
    modules: frozenset[str] = frozenset()
    bound: tuple[Binding, ...] = ()


def referent(
    before: str, after: str, home: Snapshot | None, offset: int, snapshot: Snapshot, places: Iterable[int]
) -> Referent:
    """What stands at `offset` of `home`, as it matters for these places of a snapshot that have its old name."""
    bound = tuple(scopes.bindings(snapshot, (before,)))
    node = home and scopes.node_at(home, offset)
    if home is None or node is None:
        return Referent(bound=bound)
    local = scopes.local_at(home, offset, (before, after))
    declared = scopes.declares(node)
    owner = owner_of(node) if declared and not local else None
    owners = owners_of(snapshot, places) if declared and not local else {}
    kin = {name for name, each in owners.items() if (akin(each, owner) if owner else scopes.names_it(node, each))}
    return Referent(
        node=node,
        path=home.path,
        local=local,
        owner=owner,
        rivals=frozenset(set(owners) - kin),
        inherited=owner is not None and bool(kin - {type_name(owner)}),
        function=taker_of(node) if local and scopes.in_parameters(home, offset) else "",
        free=declared and not local and owner is None and not scopes.is_member(node),
        modules=modules(snapshot, FROM if home is snapshot else FROM_MODULES),
        bound=bound,
    )


def is_meant(meant: Referent, snapshot: Snapshot, offset: int) -> bool:
    """A local of one function or block stays in it, a member in its type, and neither is the other."""
    node = scopes.node_at(snapshot, offset)
    if node is not None and meant.node is not None and kind(meant.node, snapshot) != kind(node, snapshot):
        return False
    if meant.local:
        return node is not None and is_that_local(meant, meant.local, snapshot, node, offset)
    if node is None or meant.node is None:
        return scope_at(meant, snapshot, offset) is None
    if function := called_with(meant.node):
        return called_with(node) == function
    if meant.owner is not None and node.parent is not None and node.parent.type == "shorthand_field_initializer":
        return simple(struct_of(node.parent)) == type_name(meant.owner)
    if not is_taken(node) and scope_at(meant, snapshot, offset):
        return False
    if meant.owner is None and is_static(whose := taken_from(meant.node)) and is_static(other := taken_from(node)):
        return whose == other
    if meant.owner is not None:
        return is_of(meant.owner, meant, snapshot, node)
    if scopes.is_member(meant.node):
        return scopes.is_member(node)
    return not meant.free or is_free(meant, snapshot, node)


def declarations(name: str, home: Snapshot, meant: Referent) -> list[int]:
    """Where the file declares something of this name that may be what is meant: of the same function or type."""
    known = scopes.bindings(home, (name,))
    wanted = meant.local and meant.local.reach, meant.owner and type_name(meant.owner)
    found = []
    for at in scopes.mentions(home, name)[:MOST_DECLARATIONS]:
        node = scopes.node_at(home, at)
        if node is not None and scopes.declares(node):
            local = None if scopes.is_member(node) else scopes.binding_at(home, at, known)
            owner = None if local else owner_of(node)
            if (local and local.reach, owner and type_name(owner)) == wanted:
                found.append(at)
    return found


def is_that_local(meant: Referent, local: Binding, snapshot: Snapshot, node: Node, offset: int) -> bool:
    if meant.function and names_argument(node, meant.function):
        return True
    known = meant.path == snapshot.path and scope_at(meant, snapshot, offset) == local.reach
    return known and not is_taken(node)


def is_free(meant: Referent, snapshot: Snapshot, node: Node) -> bool:
    """Whether it may be what a file has at its top: another file may take that from the file, but no module's name."""
    if meant.node is None or (is_taken(node) and not is_taken_from_file(meant, meant.node, snapshot, node)):
        return False
    if scopes.declares(node):
        return not declares_anew(meant, node) or (owner_of(node) is None and space_of(node) == space_of(meant.node))
    around = enclosing(node) if is_bare(snapshot) else None
    return around is None or type_name(around) not in meant.rivals


def is_taken_from_file(meant: Referent, declared: Node, snapshot: Snapshot, node: Node) -> bool:
    """`loader.load` of another file, `a::load` also of the same."""
    here, files = meant.path == snapshot.path, PurePath(meant.path).with_suffix("").parts[-2:]
    if is_in_path(node) and taken_from(node) in (*ROOTS, space_of(declared)):
        return True
    if here or is_module(declared):
        return is_in_path(node) and taken_from(node) in files
    return taken_from(node) in files or (declared.parent is not None and declared.parent.type in scopes.TYPES)


def is_module(node: Node) -> bool:
    """Whether an import brings all of it: `json` of `import json`."""
    around: Node | None = node
    while around is not None and around.type in ("aliased_import", "dotted_name", "identifier"):
        around = around.parent
    return around is not None and around.type == "import_statement"


def space_of(node: Node) -> str:
    """The namespace or module within the file."""
    around = node.parent
    while around is not None and around.type not in SPACES:
        around = around.parent
    return simple(around.child_by_field_name("name")) if around is not None else ""


def kind(node: Node, snapshot: Snapshot) -> Literal["label", "macro", "method", "package", "private", ""]:
    """What has its name beside others of that name: a label, a package, a macro of Rust, in Java a method, `#x` of
    JavaScript."""
    parent, language = node.parent, find(snapshot.language, snapshot.path)
    if node.type == "statement_identifier":
        return "label"
    if node.type == "private_property_identifier":
        return "private"
    if parent is not None and parent.type in ("macro_definition", "macro_invocation"):
        return "macro"
    if parent is not None and parent.type == "package_clause":
        return "package"
    if parent is None or language is None or language.id != "java":
        return ""
    named = parent.type in ("method_declaration", "method_invocation") and parent.child_by_field_name("name") == node
    return "method" if named or (parent.type == "method_reference" and parent.named_children[-1] == node) else ""


def declares_anew(meant: Referent, node: Node) -> bool:
    """Whether the name is declared there as well; that a constructor has its class's name says nothing."""
    around = owner_of(node) if scopes.declares(node) else None
    is_function = node.parent is not None and node.parent.type in (*scopes.FUNCTIONS, "function_declarator")
    constructs = is_function and around is not None and meant.node is not None and scopes.names_it(meant.node, around)
    return scopes.declares(node) and not constructs


def scope_at(meant: Referent, snapshot: Snapshot, offset: int) -> tuple[int, int] | None:
    """The innermost of the ranges that have the name for something of their own."""
    known = [*meant.bound, meant.local] if meant.local and meant.path == snapshot.path else meant.bound
    found = scopes.binding_at(snapshot, offset, known)
    return found and found.reach


def is_of(owner: Node, meant: Referent, snapshot: Snapshot, node: Node) -> bool:
    """Whether it may be the owner's member: taken from no rival, or bare where it can be."""
    own = owner_of(node) if scopes.declares(node) else None
    if own is not None:
        return akin(own, owner)
    if is_taken(node):
        return is_taken_from_owner(owner, meant, snapshot, node)
    around = enclosing(node)
    if around is None or not akin(around, owner):
        return False
    return owner_of(node) is not None or is_bare(snapshot)


def is_taken_from_owner(owner: Node, meant: Referent, snapshot: Snapshot, node: Node) -> bool:
    """An object may be of any type but the rivals, where nothing says what it is."""
    around, name = enclosing(node), type_name(owner)
    whose = called_with(node) or taken_from(node)
    if whose == "super" and around is not None and type_name(around) == name:
        return meant.inherited
    whose = type_name(around) if around is not None and whose in SELVES else whose
    if whose == name or called_with(node):
        return whose == name
    if whose in meant.modules or whose in meant.rivals or is_one_of(whose, meant.rivals, snapshot, node):
        return False
    return is_made_from(whose, owner, snapshot) if is_in_path(node) or is_type(whose, snapshot) else True


def is_type(name: str, snapshot: Snapshot) -> bool:
    """By its spelling; constants are in capitals, and in some languages all that others may see has one."""
    language = find(snapshot.language, snapshot.path)
    is_constant = len(name) > 1 and name.isupper()
    return is_static(name) and not is_constant and language is not None and language.id not in ("csharp", "go")


def is_made_from(name: str, owner: Node, snapshot: Snapshot) -> bool:
    """Whether the file says that a type of this name has something of the owner's."""
    return any(re.search(rf"\b{re.escape(type_name(owner))}\b", said) for said in headings_of(snapshot, name))


@remembered
def headings_of(snapshot: Snapshot, name: str) -> list[str]:
    """What the file says of the types of this name, on the line on which it says that they are types."""
    text, pattern = snapshot.text, re.compile(re.escape(name) + r"\b(?P<said>[^{\n]*)")
    places = (at for at in scopes.mentions(snapshot, name) if DECLARING.search(text, text.rfind("\n", 0, at) + 1, at))
    return [match["said"] for at in places if (match := pattern.match(text, at))]


def is_bare(snapshot: Snapshot) -> bool:
    language = find(snapshot.language, snapshot.path)
    return language is not None and language.id in BARE


def is_in_path(node: Node) -> bool:
    """Whether it is the `b` of `a::b`."""
    if node.parent is not None and node.parent.type in PATHS:
        return node.parent.child_by_field_name("name") == node
    if node.parent is None or node.parent.type != "token_tree":
        return False
    return node.prev_sibling is not None and node.prev_sibling.type == "::"


def is_one_of(name: str, types: frozenset[str], snapshot: Snapshot, node: Node) -> bool:
    """Whether the function around says that the name is of one of these types: `a: T`, `T *a`, `a := &T{`."""
    if not types or not name.isidentifier():
        return False
    first, last = scopes.function_range(snapshot, snapshot.offset_of_byte(node.start_byte))
    made, kinds = r"[ \t:=&*\[\]]+(?:mut[ \t]+|new[ \t]+)?", rf"\b(?:{'|'.join(map(re.escape, sorted(types)))})\b"
    said = rf"{scopes.whole(name)}{made}{kinds}|{kinds}[ \t*&]+{scopes.whole(name)}"
    return re.search(said, snapshot.text[first:last]) is not None


@remembered
def modules(snapshot: Snapshot, but: re.Pattern[str]) -> frozenset[str]:
    """The names of imported modules, roughly, where a module is asked for a function as an object is for a method. What
    comes from modules may be of the owner's type in another file; in the owner's own that would go in circles."""
    language = find(snapshot.language, snapshot.path)
    if language is None or language.id not in MODULAR:
        return frozenset()
    texts = (but.sub("", snapshot.text[start:end]) for start, end in syntax.imports(snapshot))
    return frozenset(word for text in texts for word in re.findall(r"\w+", text) if not is_static(word))


def is_static(name: str) -> bool:
    """Types are written with a capital where it matters whose member something is."""
    return name[:1].isupper()


def owners_of(snapshot: Snapshot, places: Iterable[int]) -> dict[str, Node]:
    """The types that declare it as a member, by their names."""
    nodes = [node for at in places if (node := scopes.node_at(snapshot, at)) is not None and scopes.declares(node)]
    owners = [owner for node in nodes if (owner := owner_of(node)) is not None]
    return {name: owner for owner in owners if (name := type_name(owner))}


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
    if parent is None or scopes.declares(node):
        return ""
    if parent.type == "token_tree":
        return taken_in_macro(node)
    if parent.type == "literal_element":
        return simple(composite(parent)) if is_key(node) else ""
    if parent.type in ("field_initializer", "field_pattern"):
        return simple(struct_of(parent)) if parent.named_children[0] == node else ""
    fields = [each for name in TAKEN for each in parent.children_by_field_name(name)]
    whole = next((each for name in TAKEN_FROM if (each := parent.child_by_field_name(name))), None)
    return simple(whole) if node in fields and whole is not None and whole != node else ""


def taken_in_macro(node: Node) -> str:
    """A macro of Rust keeps its tokens to itself."""
    mark = node.prev_sibling
    return simple(mark.prev_sibling) or "?" if mark is not None and mark.type in (".", "::") else ""


def is_key(node: Node) -> bool:
    """Whether it is the `a` of `T{a: 1}` in Go."""
    keyed = node.parent.parent if node.parent is not None and node.parent.type == "literal_element" else None
    return keyed is not None and keyed.child_by_field_name("key") == node.parent


def struct_of(field: Node) -> Node | None:
    """The type that a literal or a pattern of Rust names before its braces."""
    around: Node | None = field
    while around is not None and around.type not in ("struct_expression", "struct_pattern"):
        around = around.parent
    return around and (around.child_by_field_name("name") or around.child_by_field_name("type"))


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
    return called_with(node) == function


def called_with(node: Node) -> str:
    """The function of the call in which it is the `name` of `name=value`."""
    given = node.parent
    if given is None or given.type != "keyword_argument" or given.child_by_field_name("name") != node:
        return ""
    call = given.parent and given.parent.parent
    return simple(call.child_by_field_name("function")) if call is not None else ""


def simple(node: Node | None) -> str:
    """The last name of a path of names, "?" of anything else."""
    match = SIMPLE.match(text_of(node).lstrip("*&")) if node is not None else None
    return match["super"] or match["name"] if match else "?" if node is not None else ""


def text_of(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")
