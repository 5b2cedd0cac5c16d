"""Scopes of locals and parameters: the function or block in which the syntax tree declares a name."""

import re
from collections.abc import Iterator
from heapq import merge
from itertools import chain, islice, takewhile

from msgspec import Struct
from tree_sitter import Node

from mercury_ls.code import traits
from mercury_ls.code.documents import Snapshot, cached
from mercury_ls.code.languages import kinds
from mercury_ls.code.parts import is_part, kind_of, part_of, parts_of
from mercury_ls.code.syntax import innermost, outward, range_of

MOST = 4096
"""Mentions of a name in a file: of a name with more, nothing is certain."""
SHORT = 3
FUNCTIONS = frozenset(
    kinds("""
    anonymous_function arrow_function closure_expression constructor_declaration func_literal function_declaration
    function_definition function_expression function_item generator_function_declaration getter lambda
    lambda_expression lambda_literal method method_declaration method_definition secondary_constructor singleton_method
    """)
)
BLOCKS = frozenset(
    kinds("""
    anonymous_initializer block catch_block catch_clause communication_case compound_statement conditional_type
    default_case
    do_while_statement enhanced_for_statement expression_case
    expression_switch_statement for_expression for_in_statement for_range_loop for_statement foreach_statement
    if_expression if_statement match_arm setter statement_block switch_body switch_block_statement_group switch_section
    switch_statement try_with_resources_statement type_case type_switch_statement using_statement when_entry
    when_expression while_expression while_statement
    """)
)
COMPREHENSIONS = frozenset(
    {"dictionary_comprehension", "generator_expression", "list_comprehension", "set_comprehension"}
)
TYPES = frozenset(
    kinds("""
    abstract_class_declaration annotation_type_declaration class class_declaration class_definition class_specifier
    enum_declaration enum_item enum_specifier impl_item interface_declaration object_creation_expression
    object_declaration object_literal record_declaration struct_declaration struct_item struct_specifier trait_item
    type_alias_declaration type_spec union_item union_specifier
    """)
)
IMPORTS = frozenset({"aliased_import", "import_from_statement", "import_statement"})
TYPE_PARAMETERS = frozenset({"template_parameter_list", "type_parameter_list", "type_parameters"})
BINDING_PARTS = {
    "alias": kinds("as_pattern type_switch_statement"),
    "declarator": kinds("declaration for_range_loop init_declarator parameter_declaration"),
    "left": kinds("""
        assignment for_in_clause for_in_statement for_statement foreach_statement range_clause receive_statement
        short_var_declaration
        """),
    "name": kinds("""
        catch_block catch_declaration catch_formal_parameter class_parameter const_spec default_parameter
        enhanced_for_statement formal_parameter named_expression parameter_declaration property_declaration resource
        typed_default_parameter var_spec variable_declarator when_subject
        """),
    "parameter": kinds("arrow_function catch_clause"),
    "parameters": kinds("lambda_expression"),
    "pattern": kinds("""
        for_expression let_condition let_declaration match_arm optional_parameter parameter required_parameter setter
        """),
}
"""The nodes that declare the names in this part of them."""
BINDING_FIELDS = {
    kind: [part for part, kinds_with_part in BINDING_PARTS.items() if kind in kinds_with_part]
    for kind in chain.from_iterable(BINDING_PARTS.values())
}
NAMING = re.compile(
    r"(?:definition|declaration|declarator|_elem|enum_assignment|enum_body|enum_constant|enum_entry|enumerator|import"
    r"|import_from_statement|import_statement|_item|type_alias|_signature|_spec|_variant|specifier)\Z"
)
NAME_FIELDS = ("name", "declarator", "alias", "property")
MEMBER_FIELDS = {
    "argument": "name",
    "attribute": "attribute",
    "field_access": "field",
    "infix_expression": "name",
    "keyword_argument": "name",
    "navigation_expression": "name",
    "value_argument": "name",
}
CASES = frozenset({"as_pattern", "case_pattern", "keyword_pattern"})
NOT_LOCAL = frozenset({"global_statement", "nonlocal_statement"})
BEFORE_VALUE = frozenset({"init_declarator", "match_arm"})
"""Declarations whose names are visible in their own values."""
PYTHON_PARAMETERS = frozenset({"default_parameter", "typed_default_parameter", "typed_parameter"})
EVALUATED_BEFORE = PYTHON_PARAMETERS | {"for_in_clause"}
"""Nodes with a part that belongs to the scope around that in which they stand."""
BINDING_LISTS = frozenset(
    kinds("""
    block_parameters closure_parameters formal_parameters infer_type inferred_parameters lambda_parameters
    lifetime_parameter method_parameters optional_type_parameter_declaration parameters type_parameter
    type_parameter_declaration
    """)
)
PARAMETER_LISTS = ("parameter_list", "class_parameters", "value_parameters")
IMPORTED = frozenset({"aliased_import", "import_specifier", "use_as_clause"})
"""Names in imports that may get another one, which alone is declared then."""
PATTERNS = frozenset(
    kinds("""
    array_declarator array_pattern as_pattern_target dictionary_splat_pattern dotted_name expression_list field_pattern
    lifetime list_pattern list_splat_pattern match_pattern multi_variable_declaration mut_pattern object_pattern
    pair_pattern pattern_list pointer_declarator ref_pattern reference_declarator rest_pattern splat_pattern
    struct_pattern tuple_pattern tuple_struct_pattern typed_parameter variable_declaration
    """)
)


class Binding(Struct, frozen=True):
    """A parameter or local of `scope`, whose text is `[start, end)`, visible from `visible_from` on."""

    scope: Node
    start: int
    end: int
    visible_from: int

    @property
    def reach(self) -> tuple[int, int]:
        return self.start, self.end


@cached
def bindings(snapshot: Snapshot, names: tuple[str, ...]) -> list[Binding]:
    """All parameters and locals with one of these names."""
    by_reach: dict[tuple[int, int], Binding] = {}
    for at in islice(merge(*(mentions(snapshot, name) for name in dict.fromkeys(names))), MOST):
        bound = binding(snapshot, node_at(snapshot, at))
        if bound is not None:
            first = by_reach.setdefault(bound.reach, bound)
            by_reach[bound.reach] = min(first, bound, key=lambda candidate: candidate.visible_from)
    return list(by_reach.values())


def binding_at(snapshot: Snapshot, offset: int, names: tuple[str, ...], *others: Binding) -> Binding | None:
    """The innermost binding of one of these names, or of the others, that the name at `offset` can refer to."""
    node = node_at(snapshot, offset)
    bound = binding(snapshot, node)
    if node is None or bound is not None:
        return bound
    around = [
        candidate
        for candidate in (*bindings(snapshot, names), *others)
        if candidate.visible_from <= offset < candidate.end and not _is_outside(node, candidate.scope)
    ]
    local = min(around, key=lambda candidate: candidate.end - candidate.start, default=None)
    is_hidden = local is not None and any(
        local.start < start <= offset < end for start, end in _types_with(snapshot, (node.text or b"").decode())
    )
    return None if is_hidden else local


@cached
def _types_with(snapshot: Snapshot, name: str) -> list[tuple[int, int]]:
    """The types with a member of this name, which hides a local of a function around them where no qualifier is due."""
    if snapshot.written_in.id not in traits.BARE_MEMBERS:
        return []
    types: list[tuple[int, int]] = []
    for _, node in nodes_of(snapshot, name):
        if not declares(node) or binding(snapshot, node) is not None:
            continue
        around = innermost(node.parent and node.parent.parent, TYPES)
        if around is not None:
            types.append(range_of(snapshot, around))
    return types


def local_at(snapshot: Snapshot, offset: int, names: tuple[str, ...]) -> Binding | None:
    """The parameter or local with one of these names that is used or declared at `offset`."""
    node = node_at(snapshot, offset)
    return None if node is None or is_member(node) else binding_at(snapshot, offset, names)


@cached
def binding_ranges(snapshot: Snapshot, name: str) -> list[tuple[int, int]]:
    """All functions and blocks with a parameter or local of this name."""
    return list(dict.fromkeys(range_of(snapshot, bound.scope) for bound in bindings(snapshot, (name,))))


def function_range(snapshot: Snapshot, offset: int) -> tuple[int, int]:
    """The range of the function around `offset`, or the whole text."""
    node = innermost(node_at(snapshot, offset), FUNCTIONS)
    return range_of(snapshot, node) if node else (0, len(snapshot.text))


def enclosing_range(snapshot: Snapshot, offset: int) -> tuple[int, int] | None:
    """The range of the function around `offset`, or of the block in languages where blocks are scopes."""
    scope = _scope_of(node_at(snapshot, offset), in_blocks=not snapshot.written_in.indents_blocks)
    return range_of(snapshot, scope) if scope is not None else None


def in_parameters(snapshot: Snapshot, offset: int) -> bool:
    """True if `offset` is in the parameter list of a function."""
    inside = takewhile(lambda node: node.type not in FUNCTIONS, outward(node_at(snapshot, offset)))
    return any(node.type in BINDING_LISTS or node.type.endswith(PARAMETER_LISTS) for node in inside)


@cached
def node_at(snapshot: Snapshot, offset: int) -> Node | None:
    if snapshot.tree is None or snapshot.is_deep(offset):
        return None
    byte = snapshot.byte(offset)
    return snapshot.tree.root_node.named_descendant_for_byte_range(byte, byte + 1)


@cached
def mentions(snapshot: Snapshot, name: str) -> tuple[int, ...]:
    """The offsets of the name; plain search for its letters comes first, because it is faster than a pattern."""
    pattern, text = re.compile(whole_in(snapshot, name)), snapshot.text
    if len(name) < SHORT:
        return tuple(match.start() for match in pattern.finditer(text))
    offsets: list[int] = []
    at = text.find(name)
    while at >= 0:
        is_whole = pattern.match(text, at) is not None
        if is_whole:
            offsets.append(at)
        at = text.find(name, at + (len(name) if is_whole else 1))
    return tuple(offsets)


def nodes_of(snapshot: Snapshot, name: str) -> Iterator[tuple[int, Node]]:
    """Where the name stands in the syntax tree, with its nodes."""
    nodes = ((at, node_at(snapshot, at)) for at in islice(mentions(snapshot, name), MOST))
    return ((at, node) for at, node in nodes if node is not None)


def whole_in(snapshot: Snapshot, name: str) -> str:
    """A pattern for exactly this name, in strings as well: "$name" of Kotlin has it."""
    return whole(name, r"\w" if snapshot.written_in.interpolating else r"\w$")


def whole(name: str, letter: str = r"\w$") -> str:
    """A pattern for exactly this name; a `$` that ends a pattern or string is not part of it.

    The lookbehind comes after the letters: a pattern that starts with letters is found twenty times faster.
    """
    letters = re.escape(name)
    return rf"{letters}(?<![{letter}]{letters})(?!\w|\$(?![\"'`/|]))"


def declares(node: Node) -> bool:
    """True if this identifier declares something: a local, a field, a function or an import."""
    child, parent = outermost(node)
    if parent is None:
        return False
    if child.type == "dotted_name" and child.named_children[0] != node:
        return False
    if parent.type in IMPORTED and (alias := parent.child_by_field_name("alias")) is not None:
        return alias == child
    if NAMING.search(parent.type) and any(child in parts_of(parent, field) for field in NAME_FIELDS):
        return True
    return _declared_in(child, parent)


def is_member(node: Node) -> bool:
    """True if it is a member name or the name of a keyword argument."""
    if node.type in ("field_identifier", "private_property_identifier", "property_identifier"):
        return True
    if node.parent is not None and node.parent.type == "keyword_pattern":
        return node.parent.named_children[0] == node
    field = MEMBER_FIELDS.get(kind_of(node.parent))
    return field is not None and is_part(node, field)


def names_it(node: Node, whole: Node) -> bool:
    """True if this identifier is the name of this function or type, and not something inside it."""
    if whole.type in BLOCKS:
        return False
    named = part_of(whole, "name", "declarator")
    while named is not None and named != node:
        named = part_of(named, "declarator")
    return named is not None


@cached
def binding(snapshot: Snapshot, node: Node | None) -> Binding | None:
    """The parameter or local that this identifier declares."""
    scope = node and _binder(snapshot, node)
    if node is None or scope is None:
        return None
    child, parent = outermost(node)
    start, end = range_of(snapshot, scope)
    is_hoisted = snapshot.written_in.id not in traits.SEQUENTIAL_LOCALS
    if parent is None or is_hoisted or not _declared_in(child, parent):
        return Binding(scope, start, end, start)
    if parent.type == "let_declaration":
        return Binding(scope, snapshot.offset_of_byte(parent.start_byte), end, snapshot.offset_of_byte(parent.end_byte))
    if parent.type == "let_condition" and (consequence := scope.child_by_field_name("consequence")):
        end = snapshot.offset_of_byte(consequence.end_byte)
    value = part_of(parent, "value", "right")
    behind = child if value is None or parent.type in BEFORE_VALUE else value
    return Binding(scope, start, end, snapshot.offset_of_byte(behind.end_byte))


def _is_outside(node: Node, scope: Node) -> bool:
    """True if the node belongs to the surrounding scope although it is inside this one: the name of a function, or what
    Python evaluates before a function or comprehension starts."""
    if names_it(node, scope):
        return True
    if part_of(scope, "constructor") and (declares(node) or not _initializes(node, scope)):
        return kind_of(node.parent) != "user_type"
    child, parent = node, node.parent
    while parent is not None and child != scope:
        if parent == scope and child == scope.child_by_field_name("return_type"):
            return not _may_be_type_parameter(node, scope)
        if parent.type in EVALUATED_BEFORE and _is_evaluated_before(child, parent, scope):
            return True
        child, parent = parent, parent.parent
    return False


def _is_evaluated_before(child: Node, parent: Node, scope: Node) -> bool:
    """True for what a Python comprehension first goes over, and for the defaults and types of a function's
    parameters."""
    if parent.type == "for_in_clause":
        if parent.parent != scope or child != parent.child_by_field_name("right"):
            return False
        return parent == next(clause for clause in scope.children if clause.type == "for_in_clause")
    listed = parent.parent
    is_own = listed is not None and listed.parent == scope
    return is_own and child in (parent.child_by_field_name("value"), parent.child_by_field_name("type"))


def _initializes(node: Node, around: Node) -> bool:
    """True if it is part of the primary constructor of a Kotlin class, whose parameters its methods do not see."""
    inside = [ancestor.type for ancestor in takewhile(lambda ancestor: ancestor != around, outward(node))][::-1]
    return not inside[0].endswith("class_body") or (
        inside[1] in ("anonymous_initializer", "property_declaration") and inside[2] not in ("getter", "setter")
    )


def is_property(parameter: Node) -> bool:
    """True for a parameter of a Kotlin constructor that is a property as well: `val size: Int`."""
    return parameter.type == "class_parameter" and any(child.type in ("val", "var") for child in parameter.children)


def _may_be_type_parameter(node: Node, function: Node) -> bool:
    """Also by a name that the parameter had until now, where types have names of their own."""
    listed = part_of(function, "type_parameters")
    is_type = node.type == "type_identifier"
    return listed is not None and (is_type or node.text in re.findall(rb"\w+", listed.text or b""))


def _binder(snapshot: Snapshot, node: Node) -> Node | None:
    """The function whose parameter or local this declares, or the block in languages where blocks are scopes."""
    child, parent = outermost(node)
    if parent is None or is_member(node) or is_property(parent):
        return None
    is_item = not _declared_in(child, parent)
    if is_item and not _names_item(node, parent):
        return None
    # The name of a function expression is visible only inside it.
    parent = parent.parent if is_item and parent.type != "function_expression" else parent
    if parent is None:
        return None
    if parent.type == "as_pattern" and kind_of(parent.parent).startswith("except"):
        return parent.parent
    if not snapshot.written_in.indents_blocks:
        return _scope_of(parent, in_blocks=not _is_hoisted(parent))
    scope = _scope_of(parent, in_blocks=False)
    while scope is not None and (statement := _declared_elsewhere(scope, node)):
        scope = _scope_of(scope.parent, in_blocks=False) if statement == "nonlocal_statement" else None
    return scope


def _names_item(node: Node, whole: Node) -> bool:
    """True if the node names a function or type with a body, or something that Python imports."""
    if whole.type in IMPORTS:
        return declares(node)
    has_body = part_of(whole, "body") is not None or whole.type == "type_spec"
    return (whole.type in FUNCTIONS or whole.type in TYPES) and has_body and names_it(node, whole)


def _declared_elsewhere(scope: Node, node: Node) -> str:
    """The kind of statement, `global` or `nonlocal`, by which a Python function declares that a name is not its own."""
    body = part_of(scope, "body")
    for statement in body.named_children if body is not None else ():
        if statement.type in NOT_LOCAL and any(name.text == node.text for name in statement.named_children):
            return statement.type
    return ""


def _scope_of(node: Node | None, in_blocks: bool) -> Node | None:
    for ancestor in takewhile(lambda ancestor: ancestor.type not in TYPES, outward(node)):
        if ancestor.type in TYPE_PARAMETERS or ancestor.type == "primary_constructor":
            return ancestor.parent
        if ancestor.type in FUNCTIONS or ancestor.type in COMPREHENSIONS:
            return ancestor
        if in_blocks and ancestor.type in BLOCKS and kind_of(ancestor.parent) not in FUNCTIONS:
            return ancestor
    return None


def _is_hoisted(declarator: Node) -> bool:
    """True if the node is a `var` of JavaScript, which belongs to the whole function."""
    statement = declarator.parent if declarator.type == "variable_declarator" else declarator
    return statement is not None and any(child.type == "var" for child in statement.children[:3])


def outermost(node: Node) -> tuple[Node, Node | None]:
    """The outermost pattern that contains this node, and that pattern's parent."""
    child, parent = node, node.parent
    while parent is not None and parent.type in PATTERNS and part_of(parent, "type") != child:
        if parent.type == "field_pattern" and child.type == "field_identifier":
            break
        child, parent = parent, parent.parent
    return child, parent


def _declared_in(child: Node, parent: Node) -> bool:
    if parent.type in CASES and _is_captured(child, parent):
        return True
    if parent.type == "assignment" and part_of(parent, "operator"):
        return False  # of Kotlin, where assignments declare nothing
    fields = BINDING_FIELDS.get(parent.type, ())
    return parent.type in BINDING_LISTS or any(child in parts_of(parent, field) for field in fields)


def _is_captured(child: Node, parent: Node) -> bool:
    """True if a Python `case` binds the node: a name without dots that is not a keyword's."""
    in_case = parent.type != "as_pattern" or kind_of(parent.parent) == "case_pattern"
    is_keyword = parent.type == "keyword_pattern" and parent.named_children[0] == child
    return in_case and not is_keyword and (child.type != "dotted_name" or child.named_child_count == 1)
