"""What is known of a name that may be a member: whether it is that which a type declares."""

import re
from collections.abc import Iterable

from tree_sitter import Node

from mercury_ls.code import scopes, symbols, traits
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.index.definitions import Declaration, in_module, own_members
from mercury_ls.code.index.judgement import OTHER, SAME, UNKNOWN, Judgement
from mercury_ls.code.index.kinship import Kinship
from mercury_ls.code.index.types import Type, class_of, members, type_of_receiver, types_of
from mercury_ls.code.languages import kinds
from mercury_ls.code.modules import family, in_import
from mercury_ls.code.parts import is_part, kind_of, part_of
from mercury_ls.code.symbols import text_of, type_name
from mercury_ls.code.syntax import innermost

LITERALS = frozenset({"field_initializer", "field_pattern", "literal_element", "shorthand_field_initializer"})
"""What has the name of a field in a literal or pattern of Go or Rust."""
REPLACING = frozenset(kinds("_replace cls evolve partial replace"))
"""Functions of Python that take the names of fields as keywords."""
STRUCTURAL = frozenset({"interface_declaration", "type_alias_declaration"})
"""Types of TypeScript that an object needs no constructor for."""


def member_at(kin: Kinship, file: Snapshot, node: Node) -> Judgement:
    own = symbols.owner_of(node)
    if node.type == "private_property_identifier":
        is_own = file.path == kin.home.path and (own or symbols.enclosing(node)) == kin.owner
        return SAME if is_own else OTHER
    if node.parent is None or in_import(node):
        return SAME if _is_imported(kin, file, file.offset_of_byte(node.start_byte)) else OTHER
    if (kind := _type_of_object(node)) is not None:
        return kin.of_annotation(file, kind)
    if own is not None and scopes.declares(node):
        return _of_declaration(kin, file, node, own)
    if family(file.path) in traits.IMPLICIT_RECEIVERS and (verdict := _of_kotlin(kin, file, node)) is not None:
        return verdict
    if _is_seen_bare(kin, file, node, own):
        return SAME
    return _of_written(kin, file, node)


def _of_kotlin(kin: Kinship, file: Snapshot, node: Node) -> Judgement | None:
    """Of a name where no qualifier need say whose member it is; None if one does."""
    if scopes.declares(node):
        return OTHER
    if symbols.is_extension(kin.declared):
        return UNKNOWN
    if not symbols.is_qualified(node):
        return _of_bare(kin, file, node)
    path = symbols.path_before(node)
    return kin.of_class(file, path, file.offset_of_byte(node.start_byte)) if path else None


def _of_written(kin: Kinship, file: Snapshot, node: Node) -> Judgement:
    """Of a name by what it is written in: a key, a literal, a keyword argument or a qualified name."""
    if (around := _object_around(node)) is not None:
        return _of_key(kin, file, around)
    if kind_of(node.parent) in LITERALS and (named := symbols.qualifier_node(node)) is not None:
        return _of_literal(kin, file, node, named)
    if kind_of(node.parent) in symbols.KEYWORD_ARGUMENTS:
        return _of_keyword(kin, file, node)
    if scopes.declares(node):
        return OTHER
    verdict = _of_qualified(kin, file, node)
    if verdict is SAME or not symbols.is_of_self(node):
        return verdict
    owner = symbols.enclosing(node)
    return UNKNOWN if owner is not None and kin.may_derive(file, owner) else OTHER


def _of_bare(kin: Kinship, file: Snapshot, node: Node) -> Judgement:
    """Of a name that may be a member of what lambdas, extensions and the types around are called on."""
    offset = file.offset_of_byte(node.start_byte)
    if scopes.local_at(file, offset, (kin.name,)) is not None:
        return OTHER
    is_open, of_types = False, kin.declared is not None and Declaration(kin.home, kin.declared).type is not None
    for receiver, is_static in symbols.receivers(file, node, of_types):
        if receiver is None:
            return UNKNOWN
        kind = type_of_receiver(file, receiver)
        verdict = kin.of_type(kind) if symbols.is_seen(kin.declared, receiver, is_static) else OTHER
        if verdict is not OTHER:
            return UNKNOWN if is_open else verdict
        declared = members(kin.project, kind, kin.name)
        if any(symbols.is_seen(member.name, receiver, is_static) for member in declared or ()):
            return OTHER
        is_open |= declared is None
    starts = [imported.start for imported in kin.project.imports(file) if imported.alias == kin.name]
    return SAME if any(_is_imported(kin, file, start) for start in starts) else OTHER


def _is_imported(kin: Kinship, file: Snapshot, offset: int) -> bool:
    """Whether an import of Kotlin names the member there: `import shop.Color.RED`."""
    for imported in kin.project.imports(file):
        package, _, owner = imported.module.removesuffix(".Companion").rpartition(".")
        if imported.start == offset and family(file.path) in traits.SCATTERED_PACKAGES:
            owners = in_module(kin.project, file, package, owner, None).definitions
            return any(kin.of(whole) is SAME for whole in owners if whole.type is not None)
    return False


def _of_declaration(kin: Kinship, file: Snapshot, node: Node, own: Node) -> Judgement:
    """Of the name of a member where a type declares it: it may override or implement the other."""
    if kin.is_of(file, own) or kin.overrides(file, node):
        return SAME
    if type_name(own) == type_name(kin.owner):
        return OTHER
    return UNKNOWN if symbols.are_related(own, kin.owner) or kin.may_derive(file, own) else OTHER


def _is_seen_bare(kin: Kinship, file: Snapshot, node: Node, own: Node | None) -> bool:
    """Whether it has no qualifier, and the type around may name its members without one."""
    if symbols.is_qualified(node) or kind_of(node.parent) == "shorthand_field_initializer":
        return False
    around = own if own is not None else symbols.enclosing(node)
    if file.path != kin.home.path or around is None or not kin.is_of(file, around):
        return False
    if own is not None:
        return True
    is_local = scopes.local_at(file, file.offset_of_byte(node.start_byte), (kin.name,)) is not None
    return symbols.allows_bare_members(file) and not is_local


def _of_literal(kin: Kinship, file: Snapshot, node: Node, named: Node) -> Judgement:
    """Of a field in a literal or pattern that names its type."""
    if _of_qualified(kin, file, node) is SAME:
        return SAME
    return UNKNOWN if type_name(kin.owner) in re.findall(r"\w+", text_of(named)) else OTHER


def _of_key(kin: Kinship, file: Snapshot, whole: Node) -> Judgement:
    """Of a key of an object or pattern of JavaScript."""
    if whole.type == "object":
        return UNKNOWN if kin.owner.type in STRUCTURAL else OTHER
    value = part_of(whole.parent, "value")
    return UNKNOWN if value is None else kin.of_object(file, value)


def _of_keyword(kin: Kinship, file: Snapshot, node: Node) -> Judgement:
    """Of a keyword argument, which sets a field if the class has no constructor: a data class."""
    function = symbols.function_of_keyword(node)
    if function is None or b"def __init__" in (kin.owner.text or b""):
        return OTHER
    if kind_of(node.parent) == "value_argument":
        return _of_named_argument(kin, file, function)
    if kin.of_class(file, text_of(function), file.offset_of_byte(function.start_byte)) is SAME:
        return SAME
    return UNKNOWN if symbols.last_name(function) in REPLACING else OTHER


def _of_named_argument(kin: Kinship, file: Snapshot, function: Node) -> Judgement:
    """Of one of Kotlin, which gives a value to a property that is a parameter of the constructor."""
    whose = part_of(function, "object")
    if whose is not None and text_of(part_of(function, "name")) == "copy":
        copied = [class_of(kin.project, kind) for kind in types_of(kin.project, file, whose) or ()]
        return _of_parameter(kin, copied, kin.of_object(file, whose))
    path, offset = text_of(function), file.offset_of_byte(function.start_byte)
    made = class_of(kin.project, Type(file, path, offset))
    verdict = _of_parameter(kin, [made], kin.of_class(file, path, offset))
    is_several = made is not None and symbols.has_several_constructors(made.type)
    return UNKNOWN if verdict is SAME and is_several else verdict


def _of_parameter(kin: Kinship, classes: Iterable[Declaration | None], verdict: Judgement) -> Judgement:
    """The verdict on objects of these classes, if their constructors have the member as a parameter."""
    names, owners = [kin.declared], [*filter(None, classes)]
    if verdict is SAME and owners:
        names = [name for owner in owners for name in _declared_by(kin, owner)]
    return verdict if any(map(_is_parameter_of_class, names)) else OTHER


def _is_parameter_of_class(name: Node | None) -> bool:
    return name is not None and kind_of(name.parent) == "class_parameter"


def _declared_by(kin: Kinship, owner: Declaration) -> list[Node | None]:
    """The names of the member in the class itself, which may override that of the owner."""
    if owner.type is not None and kin.is_of(owner.file, owner.type):
        return [kin.declared]
    return [member.name for member in own_members(kin.project, owner, kin.name)]


def _of_qualified(kin: Kinship, file: Snapshot, node: Node) -> Judgement:
    whose = symbols.qualifier_node(node)
    if whose is None or _is_in_chain(whose):
        return UNKNOWN if _may_be_seen_bare(kin, file, node) else OTHER
    verdict = kin.of_object(file, whose)
    if verdict is SAME or _is_the_packages_own(kin, file, node):
        return SAME
    modules = {imported.alias for imported in kin.project.imports(file) if not imported.name}
    return OTHER if symbols.qualifier_of(node) in modules else verdict


def _may_be_seen_bare(kin: Kinship, file: Snapshot, node: Node) -> bool:
    """Whether the type around may inherit it, or it is a constructor, which has the name of its class."""
    if symbols.is_qualified(node) or not symbols.allows_bare_members(file):
        return False
    if scopes.local_at(file, file.offset_of_byte(node.start_byte), (kin.name,)) is not None:
        return False
    around = symbols.enclosing(node)
    if around is not None and around != kin.owner and kin.may_derive(file, around):
        return True
    return kin.name == type_name(kin.owner) and kind_of(kin.declared and kin.declared.parent) in scopes.FUNCTIONS


def _is_in_chain(token: Node) -> bool:
    """Whether more stands before a token in a macro of Rust, which is not parsed."""
    return kind_of(token.parent) == "token_tree" and kind_of(token.prev_sibling) in (".", "::")


def _is_the_packages_own(kin: Kinship, file: Snapshot, node: Node) -> bool:
    """Whether it is private to this package of Go, in which no other type has such a member: then it is the same,
    whatever qualifies it."""
    is_private = family(kin.home.path) == "go" and not symbols.is_capitalized(kin.name)
    if not is_private or kind_of(node.parent) != "selector_expression":
        return False
    is_near = kin.project.share_a_package(kin.home, file)
    return is_near and kin.project.once(("alone", kin.home.path, kin.name), lambda: _is_alone(kin))


def _is_alone(kin: Kinship) -> bool:
    """Whether no file of the package declares another member of the name."""
    files = kin.project.beside(kin.home.path, kin.name)
    nodes = (node for file in files or () for _, node in scopes.nodes_of(file, kin.name))
    return files is not None and not any(scopes.is_member(node) and scopes.declares(node) for node in nodes)


def _object_around(node: Node) -> Node | None:
    """The object or pattern of JavaScript of which it is a key."""
    whole = node.parent
    if whole is not None and whole.type in ("pair", "pair_pattern") and is_part(node, "key"):
        whole = whole.parent
    return whole if kind_of(whole) in ("object", "object_pattern") else None


def _type_of_object(node: Node) -> Node | None:
    """The type of the object that a literal or pattern spells out, as far as it is named beside: `T` of
    `x: T = { a: 1 }`, `({ a }: T)`, `(): T => ({ a: 1 })` and `case T(a=1)`."""
    if kind_of(node.parent) == "keyword_pattern":
        around = innermost(node, ("class_pattern",))
        return around.named_children[0] if around is not None else None
    whole = _object_around(node)
    return part_of(whole.parent, "type") or _type_of_result(whole) if whole is not None else None


def _type_of_result(value: Node) -> Node | None:
    """The type that a function states for its result, if it returns this object of JavaScript."""
    function, around = innermost(value, scopes.FUNCTIONS), value.parent
    if around is not None and around.type == "parenthesized_expression":
        around = around.parent
    if function is None or (around != function and kind_of(around) != "return_statement"):
        return None
    stated = part_of(function, "return_type")
    if stated is None or not any(child.type == "async" for child in function.children):
        return stated
    promised = part_of(stated.named_children[0], "type_arguments")
    return promised.named_children[0] if promised is not None else None
