"""The parts of a syntax node by name: the fields of its grammar, or where it has none, what stands in their place.

Where there is no node, there is no part of it, and its kind is empty.
"""

from tree_sitter import Node

PLACES = {
    "anonymous_function": {"parameters": "function_value_parameters", "body": "function_body"},
    "as_expression": {"type": "as… as?…"},
    "call_expression": {"function": "0", "arguments": "value_arguments"},
    "catch_block": {"name": "…:"},
    "class_declaration": {"body": "class_body enum_class_body", "constructor": "primary_constructor"},
    "class_parameter": {"name": "…:", "type": ":…", "value": "=…"},
    "companion_object": {"body": "class_body"},
    "constructor_invocation": {"function": "user_type", "arguments": "value_arguments"},
    "enum_entry": {"name": "identifier", "arguments": "value_arguments", "body": "class_body"},
    "for_statement": {"left": "multi_variable_declaration variable_declaration", "right": "in…"},
    "function_declaration": {
        "body": "function_body",
        "parameters": "function_value_parameters",
        "receiver": "….",
        "returns": ":…",
        "type_parameters": "type_parameters",
    },
    "getter": {"body": "function_body"},
    "import": {"path": "qualified_identifier", "alias": "as…"},
    "infix_expression": {"object": "0", "name": "1"},
    "navigation_expression": {"object": "0", "name": ".… ?.… ::…"},
    "object_declaration": {"body": "class_body"},
    "object_literal": {"body": "class_body"},
    "parameter": {"name": "…:", "pattern": "…:", "type": ":…"},
    "property_declaration": {
        "name": "multi_variable_declaration variable_declaration",
        "receiver": "….",
        "value": "=…",
    },
    "secondary_constructor": {"parameters": "function_value_parameters", "body": "block"},
    "setter": {"pattern": "(…", "body": "function_body"},
    "type_alias": {"name": "…="},
    "value_argument": {"name": "…=", "value": "=…"},
    "variable_declaration": {"type": ":…"},
    "when_subject": {"name": "variable_declaration", "value": "=…"},
}
"""By kinds of nodes, as in Kotlin: the first child is a part that is of one of these kinds, has this number, or stands
behind (`=…`) or before (`…:`) one of these tokens."""


def kind_of(node: Node | None) -> str:
    return node.type if node is not None else ""


def is_part(node: Node, name: str) -> bool:
    """Whether it is what its parent has by this name."""
    return part_of(node.parent, name) == node


def part_of(node: Node | None, *names: str) -> Node | None:
    """The first of these parts that it has."""
    if node is None:
        return None
    places = PLACES.get(node.type, {})
    for name in names:
        part = node.child_by_field_name(name)
        if part is None and name in places:
            part = _placed(node, places[name])
        if part is not None:
            return part
    return None


def parts_of(node: Node, name: str) -> list[Node]:
    """All of these parts. An error has none, and may have thousands of children, which the binding goes through."""
    fields = [] if node.is_error else node.children_by_field_name(name)
    return fields or [child for child in (part_of(node, name),) if child is not None]


def _placed(node: Node, places: str) -> Node | None:
    words, numbered = places.split(), enumerate(node.named_children)
    return next((child for at, child in numbered if any(_is_at(child, at, word) for word in words)), None)


def _is_at(child: Node, number: int, place: str) -> bool:
    before, mark, after = place.partition("…")
    if not mark:
        return place in (child.type, str(number))
    token = child.prev_sibling if before else child.next_sibling
    return kind_of(token) == before + after
