"""What a name refers to, and whether the same name elsewhere refers to it as well."""

import re
from typing import Literal

from msgspec import Struct
from tree_sitter import Node

from mercury_ls.code import scopes, syntax, traits
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.languages import find
from mercury_ls.code.scopes import Binding

MOST_DECLARATIONS = 256
QUALIFIER_FIELDS = ("object", "operand", "argument", "path", "scope", "expression", "table", "value")
MEMBER_FIELDS = ("attribute", "field", "property", "name")
NAMESPACES = frozenset({"internal_module", "mod_item", "namespace_declaration", "namespace_definition"})
PATHS = frozenset({"qualified_identifier", "scoped_identifier"})
SELVES = frozenset({"self", "this", "Self", "cls", "super"})
SIMPLE = re.compile(r"(?P<super>super)\(.*\)\Z|[.:]*+(?:\w++[.:]++)*+(?P<name>\w++)(?:<.*>)?\Z", re.DOTALL)


class Symbol(Struct, frozen=True):
    """`local` is the binding of a parameter or a local, `function` the function that a parameter belongs to.

    `owner` is the type that declares a member, also by a parameter of its constructor. `module_level` means that it is
    declared at the top of a file and is nothing's member.
    """

    node: Node | None = None
    path: str = ""
    local: Binding | None = None
    owner: Node | None = None
    function: str = ""
    module_level: bool = False

    def is_local_at(self, node: Node | None) -> bool:
        """Whether a name can only be the local there: a parameter that is a field as well is qualified as a field."""
        return self.local is not None and (self.owner is None or node is None or not is_qualified(node))


def symbol_at(before: str, after: str, home: Snapshot | None, offset: int) -> Symbol:
    """What the name at `offset` of `home` refers to."""
    node = home and scopes.node_at(home, offset)
    if home is None or node is None:
        return Symbol()
    local = scopes.local_at(home, offset, (before, after))
    declared = scopes.declares(node)
    owner = owner_of(node) if declared and not local else class_of_field(node) or _class_of_parameter(node)
    return Symbol(
        node=node,
        path=home.path,
        local=local,
        owner=owner,
        function=_function_of_parameter(node) if local and scopes.in_parameters(home, offset) else "",
        module_level=declared and not local and owner is None and not scopes.is_member(node),
    )


def is_local_here(symbol: Symbol, local: Binding, name: str, snapshot: Snapshot, offset: int) -> bool:
    """Whether a name of the symbol's file, which had this `name` until now, is the same local."""
    node = scopes.node_at(snapshot, offset)
    if node is None or symbol.path != snapshot.path or is_qualified(node):
        return False
    bound = scopes.binding_at(snapshot, offset, (*scopes.bindings(snapshot, (name,)), local))
    return bound is not None and bound.reach == local.reach


def is_alike(symbol: Symbol, name: str, snapshot: Snapshot, offset: int) -> bool:
    """Whether the name there looks like that of a symbol whose declaration is not known: a local stays in its scope, a
    member is none of another type's own object."""
    node = scopes.node_at(snapshot, offset)
    if node is None or symbol.node is None:
        return scopes.binding_at(snapshot, offset, scopes.bindings(snapshot, (name,))) is None
    if category(symbol.node, snapshot) != category(node, snapshot):
        return False
    if symbol.local is not None and symbol.is_local_at(node):
        return is_local_here(symbol, symbol.local, name, snapshot, offset)
    is_member, function = scopes.is_member(symbol.node), called_with_keyword(symbol.node)
    if is_member != scopes.is_member(node) or function != called_with_keyword(node):
        return False
    if is_capitalized(whose := qualifier_of(symbol.node)) and is_capitalized(other := qualifier_of(node)):
        return whose == other
    if is_member:
        return not _is_of_another_self(symbol.node, node)
    return is_qualified(node) or scopes.local_at(snapshot, offset, (name,)) is None


def declarations(name: str, home: Snapshot, symbol: Symbol) -> list[int]:
    """The places where the file declares something of this name in the same function or type."""
    local_bindings = scopes.bindings(home, (name,))
    owner = symbol.owner if symbol.local is None else None
    target = symbol.local and symbol.local.reach, owner and type_name(owner)
    offsets: list[int] = []
    for at in scopes.mentions(home, name)[:MOST_DECLARATIONS]:
        node = scopes.node_at(home, at)
        field_owner = class_of_field(node) if node is not None else None
        if node is not None and (scopes.declares(node) or field_owner is not None):
            local = None if scopes.is_member(node) else scopes.binding_at(home, at, local_bindings)
            owner = None if local else field_owner or owner_of(node)
            if (local and local.reach, owner and type_name(owner)) == target:
                offsets.append(at)
    return offsets


def namespace_of(node: Node) -> str:
    """The innermost namespace, or module within the file."""
    around = syntax.innermost(node.parent, NAMESPACES)
    return last_name(around.child_by_field_name("name")) if around is not None else ""


def category(node: Node, snapshot: Snapshot) -> Literal["label", "macro", "method", "package", "private", ""]:
    """The kind of a name that lives in a namespace of its own: a label, a package, a Rust macro, a Java method, `#x` in
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


def redeclares(symbol: Symbol, node: Node) -> bool:
    """True if the name is declared there as well; a constructor with the name of its class does not count."""
    around = owner_of(node) if scopes.declares(node) else None
    is_function = node.parent is not None and node.parent.type in (*scopes.FUNCTIONS, "function_declarator")
    constructs = is_function and around is not None and symbol.node is not None and scopes.names_it(symbol.node, around)
    return scopes.declares(node) and not constructs


def is_of_self(node: Node) -> bool:
    return is_qualified(node) and qualifier_of(node) in SELVES


def class_of_field(node: Node) -> Node | None:
    """The type around, if the name is assigned to a method's own object."""
    if not is_of_self(node) or node.parent is None:
        return None
    child, parent = scopes.outermost(node.parent)
    fields = map(parent.child_by_field_name, ("left", "alias")) if parent is not None else ()
    return enclosing(node) if child in fields else None


def _class_of_parameter(node: Node) -> Node | None:
    """The type around, if a parameter of TypeScript's constructor declares a field as well: `private size: number`."""
    parent = node.parent
    modifiers = {child.type for child in parent.children} if parent is not None else set[str]()
    is_field = parent is not None and parent.type in ("required_parameter", "optional_parameter")
    return enclosing(node) if is_field and modifiers & {"accessibility_modifier", "readonly"} else None


def _is_of_another_self(member: Node, node: Node) -> bool:
    """True if both are members of the objects whose methods use them, and these are of unrelated types."""
    if not is_of_self(member) or not is_of_self(node):
        return False
    member_class, node_class = enclosing(member), enclosing(node)
    return member_class is not None and node_class is not None and not are_related(member_class, node_class)


def is_type(name: str, snapshot: Snapshot) -> bool:
    """True if the name is spelled like a type: all capitals make a constant, and in some languages every public name
    begins with a capital."""
    language = find(snapshot.language, snapshot.path)
    is_constant = len(name) > 1 and name.isupper()
    return is_capitalized(name) and not is_constant and language is not None and language.id not in ("csharp", "go")


def allows_bare_members(snapshot: Snapshot) -> bool:
    language = find(snapshot.language, snapshot.path)
    return language is not None and language.id in traits.BARE_MEMBERS


def is_in_path(node: Node) -> bool:
    """True if the node is the `b` of `a::b`."""
    if node.parent is not None and node.parent.type in PATHS:
        return node.parent.child_by_field_name("name") == node
    if node.parent is None or node.parent.type != "token_tree":
        return False
    return node.prev_sibling is not None and node.prev_sibling.type == "::"


def is_capitalized(name: str) -> bool:
    """True for names spelled like types, where a member's qualifier matters."""
    return name[:1].isupper()


def owner_of(node: Node) -> Node | None:
    """The type whose body contains the node, outside functions; a Go method belongs to its receiver's type."""
    child, around = node, node.parent
    while around is not None:
        if around.type in scopes.FUNCTIONS and not scopes.names_it(node, around):
            return None
        if around.type == "method_declaration" and around.child_by_field_name("receiver"):
            return around
        if around.type in scopes.TYPES and child not in around.children_by_field_name("name") and _is_scoped(around):
            return around
        child, around = around, around.parent
    return None


def _is_scoped(around: Node) -> bool:
    """True for an enum with scoped members; those of a plain C `enum` need no qualifier."""
    return around.type != "enum_specifier" or any(child.type in ("class", "struct") for child in around.children)


def enclosing(node: Node) -> Node | None:
    """The type that contains the node, in a method or not."""
    for around in syntax.outward(node.parent):
        if around.type in scopes.TYPES and _is_scoped(around):
            return around
        if around.type in scopes.FUNCTIONS and type_name(around):
            return around
    return None


def are_related(first: Node, second: Node) -> bool:
    """True if both are the same type or one derives from the other; in Go any type may implement an interface."""
    name, other_name = type_name(first), type_name(second)
    implicit = is_interface_of_go(first) or is_interface_of_go(second)
    return name == other_name or implicit or other_name in heading(first) or name in heading(second)


def heading(around: Node) -> set[str]:
    """The words before the body."""
    body = around.child_by_field_name("body")
    text = (around.text or b"")[: (body.start_byte if body else around.end_byte) - around.start_byte]
    return set(re.findall(r"\w+", text.decode(errors="replace")))


def is_interface_of_go(around: Node) -> bool:
    type_node = around.child_by_field_name("type") if around.type == "type_spec" else None
    return type_node is not None and type_node.type == "interface_type"


def type_name(around: Node) -> str:
    """The name of a type, or of the type that a function declares itself a method of."""
    if receiver := around.child_by_field_name("receiver"):
        words = re.findall(r"\w+", re.sub(r"\[.*", "", text_of(receiver)))
        return words[-1] if words else ""
    if around.type in scopes.FUNCTIONS:
        named = around.child_by_field_name("declarator")
        while named is not None and named.type != "qualified_identifier":
            named = named.child_by_field_name("declarator")
        return last_name(named.child_by_field_name("scope")) if named else ""
    return last_name(around.child_by_field_name("type" if around.type == "impl_item" else "name"))


def is_qualified(node: Node) -> bool:
    return scopes.is_member(node) or qualifier_of(node) != ""


def qualifier_of(node: Node) -> str:
    """The last name of the qualifier: `b` of `a.b.c`, `B` of `A::B::c` and of `B { c: 1 }`."""
    parent = node.parent
    if parent is None or scopes.declares(node):
        return ""
    if parent.type == "token_tree":
        return _qualifier_in_macro(node)
    if parent.type == "literal_element":
        return last_name(composite(parent)) if _is_key(node) else ""
    if parent.type in ("field_initializer", "field_pattern"):
        return last_name(struct_of(parent)) if parent.named_children[0] == node else ""
    fields = [child for name in MEMBER_FIELDS for child in parent.children_by_field_name(name)]
    whole = next((child for name in QUALIFIER_FIELDS if (child := parent.child_by_field_name(name))), None)
    return last_name(whole) if node in fields and whole is not None and whole != node else ""


def _qualifier_in_macro(node: Node) -> str:
    """The qualifier, from tokens: Rust macros are not parsed inside."""
    mark = node.prev_sibling
    return last_name(mark.prev_sibling) or "?" if mark is not None and mark.type in (".", "::") else ""


def _is_key(node: Node) -> bool:
    """True if the node is the `a` of `T{a: 1}` in Go."""
    keyed = node.parent.parent if node.parent is not None and node.parent.type == "literal_element" else None
    return keyed is not None and keyed.child_by_field_name("key") == node.parent


def struct_of(field: Node) -> Node | None:
    """The type that a Rust literal or pattern names before its braces."""
    around = syntax.innermost(field, ("struct_expression", "struct_pattern"))
    return around and (around.child_by_field_name("name") or around.child_by_field_name("type"))


def composite(node: Node) -> Node | None:
    """The type of the Go literal whose key this is; None for a map's."""
    around = syntax.innermost(node, ("composite_literal",))
    type_node = around.child_by_field_name("type") if around is not None else None
    return type_node if type_node is not None and type_node.type != "map_type" else None


def _function_of_parameter(node: Node) -> str:
    """The function that takes this parameter; for a Python constructor, the class."""
    around = syntax.innermost(node.parent, scopes.FUNCTIONS)
    name = last_name(around.child_by_field_name("name")) if around is not None else ""
    whole = enclosing(around) if around is not None and name == "__init__" else None
    return type_name(whole) if whole is not None else name


def called_with_keyword(node: Node) -> str:
    """The function of the call in which the node is the `name` of `name=value`."""
    parent = node.parent
    if parent is None or parent.type != "keyword_argument" or parent.child_by_field_name("name") != node:
        return ""
    call = parent.parent and parent.parent.parent
    return last_name(call.child_by_field_name("function")) if call is not None else ""


def last_name(node: Node | None) -> str:
    """The last name of a dotted path, "?" for anything else."""
    match = SIMPLE.match(text_of(node).lstrip("*&")) if node is not None else None
    return match["super"] or match["name"] if match else "?" if node is not None else ""


def text_of(node: Node | None) -> str:
    return (node.text or b"").decode(errors="replace") if node is not None else ""
