"""Names in syntax trees: what qualifies them, and which type or namespace they belong to."""

import re
from collections.abc import Iterator
from typing import Literal

from tree_sitter import Node

from mercury_ls.code import scopes, syntax, traits
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.parts import is_part, kind_of, part_of, parts_of

QUALIFIER_FIELDS = ("object", "operand", "argument", "path", "scope", "expression", "table", "value")
MEMBER_FIELDS = ("attribute", "field", "property", "name")
NAMESPACES = frozenset({"internal_module", "mod_item", "namespace_declaration", "namespace_definition"})
KEYWORD_ARGUMENTS = frozenset({"keyword_argument", "value_argument"})
QUALIFIED = frozenset({"nested_type_identifier", "qualified_type", "scoped_type_identifier"})
PATHS = frozenset({"qualified_identifier", "scoped_identifier"})
OBJECT, COMPANION = "object_declaration", "companion_object"
SELVES = frozenset({"self", "this", "Self", "cls", "super"})
SIMPLE = re.compile(r"(?P<super>super)\(.*\)\Z|[.:]*+(?:\w++[.:]++)*+(?P<name>\w++)(?:<.*>)?\Z", re.DOTALL)


def namespace_of(node: Node) -> str:
    """The innermost namespace, or module within the file."""
    return last_name(part_of(syntax.innermost(node.parent, NAMESPACES), "name"))


def category(node: Node, snapshot: Snapshot) -> Literal["label", "macro", "method", "package", "private", ""]:
    """The kind of a name that lives in a namespace of its own: a label, a package, a Rust macro, a Java method, `#x` in
    JavaScript."""
    around = kind_of(node.parent)
    if node.type == "statement_identifier" or is_part(node, "label"):
        return "label"
    if node.type == "private_property_identifier":
        return "private"
    if around in ("macro_definition", "macro_invocation"):
        return "macro"
    if around == "package_clause":
        return "package"
    is_named = around in ("method_declaration", "method_invocation") and is_part(node, "name")
    is_method = is_named or (around == "method_reference" and node.next_sibling is None)
    return "method" if is_method and snapshot.written_in.id == "java" else ""


def is_of_self(node: Node) -> bool:
    return is_qualified(node) and qualifier_of(node) in SELVES


def class_of_field(node: Node) -> Node | None:
    """The type around, if the name is assigned to a method's own object."""
    if not is_of_self(node) or node.parent is None:
        return None
    child, parent = scopes.outermost(node.parent)
    if parent is None or part_of(parent, "operator") is not None:
        return None
    return enclosing(node) if child in (part_of(parent, "left"), part_of(parent, "alias")) else None


def is_type(name: str, snapshot: Snapshot) -> bool:
    """True if the name is spelled like a type: all capitals make a constant, and in some languages every public name
    begins with a capital."""
    is_constant = len(name) > 1 and name.isupper()
    return is_capitalized(name) and not is_constant and snapshot.written_in.id not in ("csharp", "go")


def allows_bare_members(snapshot: Snapshot) -> bool:
    return snapshot.written_in.id in traits.BARE_MEMBERS


def is_in_path(node: Node) -> bool:
    """True if the node is the `b` of `a::b`."""
    in_path = kind_of(node.parent) in PATHS and is_part(node, "name")
    return in_path or (kind_of(node.parent) == "token_tree" and kind_of(node.prev_sibling) == "::")


def is_capitalized(name: str) -> bool:
    """True for names spelled like types, where a member's qualifier matters."""
    return name[:1].isupper()


def owner_of(node: Node) -> Node | None:
    """The type whose body contains the node, outside functions and the nameless types of its members; a Go method
    belongs to its receiver's type."""
    child, around = node, node.parent
    while around is not None:
        is_parameter = around.type == "class_parameter" and not scopes.is_property(around)
        if is_parameter or (around.type in scopes.FUNCTIONS and not scopes.names_it(node, around)):
            return None
        if around.type == "method_declaration" and part_of(around, "receiver"):
            return around
        if around.type in scopes.TYPES and child not in parts_of(around, "name") and _is_scoped(around):
            return around
        if around.type == "property_signature" and child.type == "type_annotation":
            return None
        child, around = around, around.parent
    return None


def _is_scoped(around: Node) -> bool:
    """True for an enum with scoped members; those of a plain C `enum` need no qualifier."""
    return around.type != "enum_specifier" or any(child.type in ("class", "struct") for child in around.children)


def enclosing(node: Node | None) -> Node | None:
    """The type that contains the node, in a method or not."""
    for around in syntax.outward(node and node.parent):
        if around.type in scopes.TYPES and _is_scoped(around):
            return around
        if part_of(around, "receiver"):
            return around
        if around.type in scopes.FUNCTIONS and type_name(around):
            return around
    return None


def receivers(file: Snapshot, node: Node, of_types: bool) -> Iterator[tuple[Node | None, bool]]:
    """What may have the member that a bare name of Kotlin stands for, from within outward: the types around, what
    extensions extend, and None for the object that a lambda may be called on. Types are members of types alone. With
    each goes whether only members are seen that need no object, as from a companion or a class that is not inner."""
    is_static = False
    for around in syntax.upward(file, node.parent):
        if around.type in scopes.TYPES:
            if part_of(around, "name") is not None or not of_types:
                yield around if around.type != "object_literal" else None, is_static and around.type != OBJECT
            is_nested = kind_of(around.parent).endswith("class_body")
            is_static |= is_nested and around.type != "object_literal" and not has_modifier(around, "inner")
        elif around.type == COMPANION:
            is_static = True
        elif not of_types and is_called_on_an_object(around):
            yield None, False
        elif not of_types and (receiver := part_of(around, "receiver")) is not None:
            yield receiver, False


def is_seen(member: Node | None, receiver: Node, is_static: bool) -> bool:
    """Whether a member of Kotlin can be named there: those of companions, entries and types belong to no object."""
    of_no_object = member is not None and _belongs_to_no_object(member)
    if is_static:
        return of_no_object
    return receiver.type in scopes.TYPES or not of_no_object


def _belongs_to_no_object(member: Node) -> bool:
    _, item = scopes.outermost(member)
    if kind_of(item) in {*scopes.TYPES, "enum_entry"}:
        return True
    around = syntax.innermost(item and item.parent, {*scopes.TYPES, COMPANION})
    return kind_of(around) == COMPANION


def has_modifier(item: Node, modifier: str) -> bool:
    """Whether this stands before what Kotlin declares."""
    return modifier in text_of(item.named_children[0]).split()


def is_called_on_an_object(function: Node) -> bool:
    """True if a lambda of Kotlin may have a `this` of its own."""
    whole = function.parent if function.type == "lambda_literal" else None
    named = part_of(whole, "name") if kind_of(whole) == "property_declaration" else None
    if whole is None or (named is not None and part_of(named, "type") is None):
        return False
    callee = syntax.innermost(whole, ("call_expression", "lambda_literal"))
    while kind_of(callee) in ("call_expression", "lambda_literal"):
        callee = name_of_callee(part_of(callee, "function"))
    return text_of(callee) not in traits.GIVING_NO_RECEIVER


def is_extension(declared: Node | None) -> bool:
    """True if this names what Kotlin declares for objects of another type."""
    around = scopes.outermost(declared)[1] if declared is not None else None
    return kind_of(around).startswith(("function", "property")) and part_of(around, "receiver") is not None


def name_of_callee(callee: Node | None) -> Node | None:
    """The last name of what is called."""
    if callee is not None and callee.type == "user_type":
        return next((child for child in reversed(callee.named_children) if child.type == "identifier"), None)
    return part_of(callee, "attribute", "name") or callee


def has_several_constructors(around: Node | None) -> bool:
    body = part_of(around, "body")
    return body is not None and any(node.type == "secondary_constructor" for node in body.named_children)


def parameters_in(listed: Node) -> list[Node]:
    """The parameters that are listed, without what Kotlin has beside them: modifiers and defaults."""
    return [
        node
        for node in listed.named_children
        if "comment" not in node.type and not node.type.endswith("_modifiers") and not _is_default(node)
    ]


def _is_default(node: Node) -> bool:
    return kind_of(node.prev_sibling) == "="


def default_beside(parameter: Node) -> Node | None:
    after = parameter.next_named_sibling
    return after if after is not None and _is_default(after) else None


def are_related(first: Node, second: Node) -> bool:
    """True if both are the same type or one derives from the other; in Go any type may implement an interface."""
    name, other_name = type_name(first), type_name(second)
    implicit = is_interface_of_go(first) or is_interface_of_go(second)
    return name == other_name or implicit or other_name in heading(first) or name in heading(second)


def heading(around: Node) -> set[str]:
    """The words before the body, without the constructor of a Kotlin class."""
    constructor, body = part_of(around, "constructor"), part_of(around, "body")
    first, last = (
        constructor.end_byte if constructor else around.start_byte,
        body.start_byte if body else around.end_byte,
    )
    text = (around.text or b"")[first - around.start_byte : last - around.start_byte]
    return set(re.findall(r"\w+", text.decode(errors="replace")))


def is_interface_of_go(around: Node) -> bool:
    return around.type == "type_spec" and kind_of(part_of(around, "type")) == "interface_type"


def type_name(around: Node | None) -> str:
    """The name of a type, or of the type that a function declares itself a method of."""
    if receiver := part_of(around, "receiver"):
        words = re.findall(r"\w+", re.sub(r"[\[<].*", "", text_of(receiver)))
        return words[-1] if words else ""
    if kind_of(around) in scopes.FUNCTIONS:
        named = part_of(around, "declarator")
        while named is not None and named.type != "qualified_identifier":
            named = part_of(named, "declarator")
        return last_name(part_of(named, "scope"))
    return last_name(part_of(around, "type" if kind_of(around) == "impl_item" else "name"))


def is_qualified(node: Node) -> bool:
    return scopes.is_member(node) or qualifier_of(node) != ""


def qualifier_of(node: Node) -> str:
    """The last name of the qualifier: `b` of `a.b.c`, `B` of `A::B::c` and of `B { c: 1 }`; "?" for anything else."""
    if scopes.declares(node) or kind_of(node.parent) == "shorthand_field_initializer":
        return ""
    whose = qualifier_node(node)
    return (last_name(whose) or "?") if whose is not None else ""


def qualifier_node(node: Node) -> Node | None:
    """The node that qualifies a member, or the type whose literal or pattern names it."""
    parent = node.parent
    if parent is None:
        return None
    if parent.type == "token_tree":  # Rust macros are not parsed inside
        mark = node.prev_sibling
        return mark.prev_sibling if mark is not None and mark.type in (".", "::") else None
    if parent.type == "literal_element":
        return _composite(parent) if is_part(parent, "key") else None
    if parent.type in ("field_initializer", "field_pattern", "shorthand_field_initializer"):
        return _struct_of(parent) if parent.named_children[0] == node else None
    if parent.type == "user_type":
        return parent if path_before(node) else None
    if parent.type in QUALIFIED:
        return parent.named_children[0] if parent.named_children[-1] == node else None
    if not any(node in parts_of(parent, field) for field in MEMBER_FIELDS):
        return None
    whole = part_of(parent, *QUALIFIER_FIELDS)
    return whole if whole != node else None


def path_before(node: Node) -> str:
    """The `a.b` of the type `a.b.C` in Kotlin, for which there is no node."""
    parent = node.parent
    if parent is None or parent.type != "user_type":
        return ""
    return (parent.text or b"")[: node.start_byte - parent.start_byte].decode(errors="replace").rstrip(". \n")


def _struct_of(field: Node) -> Node | None:
    """The type that a Rust literal or pattern names before its braces."""
    return part_of(syntax.innermost(field, ("struct_expression", "struct_pattern")), "name", "type")


def _composite(key: Node) -> Node | None:
    """The type of the Go literal whose key this is, or of the map's values that it is in; None for the map's own."""
    type_node = part_of(syntax.innermost(key, ("composite_literal",)), "type")
    if kind_of(type_node) != "map_type":
        return type_node
    literal = syntax.innermost(key, ("literal_value",))
    is_own = kind_of(literal and literal.parent) == "composite_literal"
    return None if is_own else part_of(type_node, "value")


def called_with_keyword(node: Node) -> str:
    """The name of the function that is called with the node as the `name` of `name=value`."""
    return last_name(function_of_keyword(node))


def nameless_parameters(function: Node) -> list[str] | None:
    """What tells a function of this name from others: its parameters without their names and modifiers."""
    listed = part_of(function.parent, "parameters")
    return None if listed is None else [_nameless(node) for node in parameters_in(listed)]


def _nameless(parameter: Node) -> str:
    named = part_of(parameter, "name", "declarator")
    while named is not None and (inside := part_of(named, "declarator")):
        named = inside
    name = text_of(named) if kind_of(named) == "identifier" else ""
    modifiers = text_of(next((child for child in parameter.children if child.type == "modifiers"), None))
    text = text_of(parameter).removeprefix(modifiers)
    return re.sub(rf"\b{name}\b|\s+" if name else r"\s+", "", text)


def function_of_keyword(node: Node) -> Node | None:
    parent = node.parent
    if parent is None or parent.type not in KEYWORD_ARGUMENTS or not is_part(node, "name"):
        return None
    return part_of(parent.parent and parent.parent.parent, "function")


def last_name(node: Node | None) -> str:
    """The last name of a dotted path, "?" for anything else."""
    match = SIMPLE.match(text_of(node).lstrip("*&")) if node is not None else None
    return match["super"] or match["name"] if match else "?" if node is not None else ""


def text_of(node: Node | None) -> str:
    return (node.text or b"").decode(errors="replace") if node is not None else ""
