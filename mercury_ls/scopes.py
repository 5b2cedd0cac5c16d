"""Whose name it is: the function or the block that declares a local or a parameter, as the syntax tree has it."""

import re
from collections.abc import Sequence
from itertools import islice

from tree_sitter import Node

from mercury_ls.documents import Snapshot
from mercury_ls.languages import find

__all__ = [
    "FUNCTIONS",
    "TYPES",
    "binder",
    "binding_ranges",
    "declares",
    "function_range",
    "in_parameters",
    "is_member",
    "local_range",
    "names_it",
    "node_at",
]

MOST_MATCHES = 256
FUNCTIONS = frozenset(
    re.findall(
        r"\w+",
        """
    arrow_function closure_expression constructor_declaration func_literal function_declaration
    function_definition function_expression function_item generator_function_declaration lambda
    lambda_expression method method_declaration method_definition singleton_method
    """,
    )
)
BLOCKS = frozenset(
    re.findall(
        r"\w+",
        """
    block catch_clause communication_case compound_statement default_case enhanced_for_statement expression_case
    expression_switch_statement for_expression for_in_statement for_range_loop for_statement foreach_statement
    if_expression if_statement match_arm statement_block switch_body switch_block_statement_group switch_section
    switch_statement try_with_resources_statement type_case type_switch_statement using_statement while_expression
    while_statement
    """,
    )
)
COMPREHENSIONS = frozenset(
    {"dictionary_comprehension", "generator_expression", "list_comprehension", "set_comprehension"}
)
TYPES = frozenset(
    re.findall(
        r"\w+",
        """
    abstract_class_declaration annotation_type_declaration class class_declaration class_definition class_specifier
    enum_declaration enum_item enum_specifier impl_item interface_declaration object_creation_expression
    record_declaration struct_declaration struct_item struct_specifier trait_item type_alias_declaration type_spec
    union_item union_specifier
    """,
    )
)
TYPE_PARAMETERS = frozenset({"template_parameter_list", "type_parameter_list", "type_parameters"})
BINDING_FIELDS = {
    "arrow_function": "parameter",
    "as_pattern": "alias",
    "assignment": "left",
    "catch_clause": "parameter",
    "catch_declaration": "name",
    "catch_formal_parameter": "name",
    "const_spec": "name",
    "declaration": "declarator",
    "default_parameter": "name",
    "enhanced_for_statement": "name",
    "for_expression": "pattern",
    "for_in_clause": "left",
    "for_in_statement": "left",
    "for_range_loop": "declarator",
    "for_statement": "left",
    "foreach_statement": "left",
    "formal_parameter": "name",
    "init_declarator": "declarator",
    "lambda_expression": "parameters",
    "let_condition": "pattern",
    "let_declaration": "pattern",
    "match_arm": "pattern",
    "named_expression": "name",
    "optional_parameter": "pattern",
    "parameter": "pattern",
    "parameter_declaration": "name declarator",
    "range_clause": "left",
    "receive_statement": "left",
    "required_parameter": "pattern",
    "resource": "name",
    "short_var_declaration": "left",
    "type_switch_statement": "alias",
    "typed_default_parameter": "name",
    "var_spec": "name",
    "variable_declarator": "name",
}
NAMING = re.compile(
    r"(?:definition|declaration|declarator|enum_assignment|enum_body|enum_constant|enumerator|import_from_statement"
    r"|_item|_signature|_spec|_variant|specifier)\Z"
)
NAME_FIELDS = ("name", "declarator", "alias")
MEMBER_FIELDS = {"attribute": "attribute", "field_access": "field", "keyword_argument": "name"}
BINDING_LISTS = frozenset(
    re.findall(
        r"\w+",
        """
    block_parameters closure_parameters formal_parameters inferred_parameters lambda_parameters lifetime_parameter
    method_parameters optional_type_parameter_declaration parameters type_parameter type_parameter_declaration
    """,
    )
)
PATTERNS = frozenset(
    re.findall(
        r"\w+",
        """
    array_declarator array_pattern as_pattern_target dictionary_splat_pattern dotted_name expression_list lifetime
    list_pattern list_splat_pattern match_pattern mut_pattern object_pattern pair_pattern pattern_list
    pointer_declarator ref_pattern reference_declarator rest_pattern tuple_pattern tuple_struct_pattern
    typed_parameter
    """,
    )
)


def local_range(snapshot: Snapshot, offset: int, names: Sequence[str]) -> tuple[int, int] | None:
    """The innermost function or block around `offset` that declares a parameter or local of one of these names."""
    node = node_at(snapshot, offset)
    if node is None or is_member(node):
        return None
    byte = snapshot.byte(offset)
    around = [
        scope
        for name in names
        for scope in binders(snapshot, name)
        if scope.start_byte <= byte < scope.end_byte and not names_it(node, scope)
    ]
    innermost = min(around, key=lambda scope: scope.end_byte - scope.start_byte, default=None)
    return innermost and range_of(snapshot, innermost)


def binding_ranges(snapshot: Snapshot, name: str) -> list[tuple[int, int]]:
    """Every function and block with a parameter or local of this name."""
    return [range_of(snapshot, node) for node in binders(snapshot, name)]


def function_range(snapshot: Snapshot, offset: int) -> tuple[int, int]:
    """The function around `offset`, or all of the text."""
    node = node_at(snapshot, offset)
    while node is not None and node.type not in FUNCTIONS:
        node = node.parent
    return range_of(snapshot, node) if node else (0, len(snapshot.text))


def in_parameters(snapshot: Snapshot, offset: int) -> bool:
    """Whether a function is told there what it is given."""
    node = node_at(snapshot, offset)
    while node is not None and node.type not in FUNCTIONS:
        if node.type in BINDING_LISTS or node.type.endswith("parameter_list"):
            return True
        node = node.parent
    return False


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
    named = NAMING.search(parent.type) and any(child in parent.children_by_field_name(field) for field in NAME_FIELDS)
    return bool(named) or declared_in(child, parent)


def is_member(node: Node) -> bool:
    """Whether it is a field of something, or the name of an argument."""
    if node.type == "field_identifier" or node.type == "property_identifier":
        return True
    parent = node.parent
    field = MEMBER_FIELDS.get(parent.type) if parent else None
    return bool(field) and parent.child_by_field_name(field) == node


def names_it(node: Node, whole: Node) -> bool:
    """Whether this identifier is the name of a function or a type, and not something in it."""
    if whole.type in BLOCKS:
        return False
    named = whole.child_by_field_name("name") or whole.child_by_field_name("declarator")
    while named is not None and named != node:
        named = named.child_by_field_name("declarator")
    return named is not None


def binders(snapshot: Snapshot, name: str) -> list[Node]:
    found: list[Node] = []
    for match in islice(re.finditer(rf"(?<![\w$]){re.escape(name)}(?![\w$])", snapshot.text), MOST_MATCHES):
        node = node_at(snapshot, match.start())
        scope = node and binder(snapshot, node)
        if scope and scope not in found:
            found.append(scope)
    return found


def binder(snapshot: Snapshot, node: Node) -> Node | None:
    """The function, or the block where blocks are scopes, whose parameter or local this identifier declares."""
    child, parent = outermost(node)
    if parent is None or is_member(node) or not declared_in(child, parent):
        return None
    language = find(snapshot.language, snapshot.path)
    return scope_of(parent, language is not None and not language.indents_blocks and not is_hoisted(parent))


def scope_of(node: Node | None, in_blocks: bool) -> Node | None:
    while node is not None and node.type not in TYPES:
        if node.type in TYPE_PARAMETERS:
            return node.parent
        if node.type in FUNCTIONS or node.type in COMPREHENSIONS:
            return node
        if in_blocks and node.type in BLOCKS and (node.parent is None or node.parent.type not in FUNCTIONS):
            return node
        node = node.parent
    return None


def is_hoisted(declarator: Node) -> bool:
    """`var` of JavaScript is of the function, wherever it stands."""
    statement = declarator.parent if declarator.type == "variable_declarator" else declarator
    return statement is not None and any(child.type == "var" for child in statement.children[:3])


def outermost(node: Node) -> tuple[Node, Node | None]:
    """Past the patterns that it is a part of, and what these are in."""
    child, parent = node, node.parent
    while parent is not None and parent.type in PATTERNS and parent.child_by_field_name("type") != child:
        child, parent = parent, parent.parent
    return child, parent


def declared_in(child: Node, parent: Node) -> bool:
    fields = BINDING_FIELDS.get(parent.type, "").split()
    return parent.type in BINDING_LISTS or any(child in parent.children_by_field_name(field) for field in fields)


def range_of(snapshot: Snapshot, node: Node) -> tuple[int, int]:
    return snapshot.offset_of_byte(node.start_byte), snapshot.offset_of_byte(node.end_byte)
