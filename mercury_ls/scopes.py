"""Whose name it is: the function that declares a local or a parameter, as the syntax tree has it."""

import re
from collections.abc import Sequence
from itertools import islice

from tree_sitter import Node

from mercury_ls.documents import Snapshot

__all__ = ["binding_ranges", "declares", "function_range", "is_member", "local_range", "node_at"]

MOST_MATCHES = 256
FUNCTIONS = frozenset(
    re.findall(
        r"\w+",
        """
    arrow_function closure_expression constructor_declaration func_literal function_declaration
    function_definition function_expression function_item generator_function_declaration lambda
    lambda_expression method_declaration method_definition
    """,
    )
)
BINDING_FIELDS = {
    "arrow_function": "parameter",
    "as_pattern": "alias",
    "assignment": "left",
    "catch_formal_parameter": "name",
    "const_spec": "name",
    "declaration": "declarator",
    "default_parameter": "name",
    "enhanced_for_statement": "name",
    "for_expression": "pattern",
    "for_in_clause": "left",
    "for_in_statement": "left",
    "for_statement": "left",
    "formal_parameter": "name",
    "init_declarator": "declarator",
    "let_condition": "pattern",
    "let_declaration": "pattern",
    "named_expression": "name",
    "optional_parameter": "pattern",
    "parameter": "pattern",
    "parameter_declaration": "name declarator",
    "range_clause": "left",
    "required_parameter": "pattern",
    "short_var_declaration": "left",
    "typed_default_parameter": "name",
    "var_spec": "name",
    "variable_declarator": "name",
}
NAMING = re.compile(r"(?:definition|declaration|declarator|import_from_statement|_item|_signature|_spec|specifier)\Z")
NAME_FIELDS = ("name", "declarator", "alias")
MEMBER_FIELDS = {"attribute": "attribute", "field_access": "field", "keyword_argument": "name"}
BINDING_LISTS = frozenset({"parameters", "formal_parameters", "closure_parameters", "lambda_parameters"})
PATTERNS = frozenset(
    re.findall(
        r"\w+",
        """
    dotted_name array_declarator array_pattern as_pattern_target dictionary_splat_pattern expression_list
    list_pattern list_splat_pattern mut_pattern object_pattern pair_pattern pattern_list pointer_declarator
    ref_pattern reference_declarator rest_pattern tuple_pattern typed_parameter
    """,
    )
)


def local_range(snapshot: Snapshot, offset: int, names: Sequence[str]) -> tuple[int, int] | None:
    """The innermost function around `offset` with a parameter or local of one of these names."""
    node = node_at(snapshot, offset)
    if node is None or is_member(node):
        return None
    byte = snapshot.byte(offset)
    around = [
        function
        for name in names
        for function in binders(snapshot, name)
        if function.start_byte <= byte < function.end_byte and not names_function(node, function)
    ]
    innermost = min(around, key=lambda function: function.end_byte - function.start_byte, default=None)
    return innermost and range_of(snapshot, innermost)


def binding_ranges(snapshot: Snapshot, name: str) -> list[tuple[int, int]]:
    """Every function with a parameter or local of this name."""
    return [range_of(snapshot, node) for node in binders(snapshot, name)]


def function_range(snapshot: Snapshot, offset: int) -> tuple[int, int]:
    """The function around `offset`, or all of the text."""
    node = node_at(snapshot, offset)
    while node is not None and node.type not in FUNCTIONS:
        node = node.parent
    return range_of(snapshot, node) if node else (0, len(snapshot.text))


def node_at(snapshot: Snapshot, offset: int) -> Node | None:
    if snapshot.tree is None:
        return None
    byte = snapshot.byte(offset)
    return snapshot.tree.root_node.named_descendant_for_byte_range(byte, byte + 1)


def declares(node: Node) -> bool:
    """Whether this identifier is where something gets its name, be it a local, a field, a function or an import."""
    child, parent = outermost(node)
    if parent is None:
        return False
    named = NAMING.search(parent.type) and any(parent.child_by_field_name(field) == child for field in NAME_FIELDS)
    return bool(named) or declared_in(child, parent)


def is_member(node: Node) -> bool:
    """Whether it is a field of something, or the name of an argument."""
    if node.type == "field_identifier" or node.type == "property_identifier":
        return True
    parent = node.parent
    field = MEMBER_FIELDS.get(parent.type) if parent else None
    return bool(field) and parent.child_by_field_name(field) == node


def binders(snapshot: Snapshot, name: str) -> list[Node]:
    found: list[Node] = []
    for match in islice(re.finditer(rf"(?<![\w$]){re.escape(name)}(?![\w$])", snapshot.text), MOST_MATCHES):
        node = node_at(snapshot, match.start())
        function = node and binder(node)
        if function and function not in found:
            found.append(function)
    return found


def binder(node: Node) -> Node | None:
    """The function whose parameter or local this identifier declares."""
    child, parent = outermost(node)
    if parent is None or is_member(node) or not declared_in(child, parent):
        return None
    while parent is not None and parent.type not in FUNCTIONS:
        parent = parent.parent
    return parent


def outermost(node: Node) -> tuple[Node, Node | None]:
    """Past the patterns that it is a part of, and what these are in."""
    child, parent = node, node.parent
    while parent is not None and parent.type in PATTERNS:
        child, parent = parent, parent.parent
    return child, parent


def declared_in(child: Node, parent: Node) -> bool:
    fields = BINDING_FIELDS.get(parent.type, "").split()
    return parent.type in BINDING_LISTS or any(child in parent.children_by_field_name(field) for field in fields)


def names_function(node: Node, function: Node) -> bool:
    return node == function.child_by_field_name("name") or node == function.child_by_field_name("declarator")


def range_of(snapshot: Snapshot, node: Node) -> tuple[int, int]:
    return snapshot.offset_of_byte(node.start_byte), snapshot.offset_of_byte(node.end_byte)
