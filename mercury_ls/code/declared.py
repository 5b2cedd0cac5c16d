"""The declarations of a text: names with their kinds, parameters, types and scopes; and its imports."""

import re
from collections.abc import Generator, Iterable, Iterator
from functools import cache
from itertools import islice

from msgspec import Struct
from tree_sitter import Node, QueryCursor

from mercury_engine.api import NameKind
from mercury_ls.code import languages, scopes, symbols
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.languages import Language
from mercury_ls.code.modules import imports_of
from mercury_ls.code.parts import kind_of, part_of, parts_of
from mercury_ls.code.syntax import outward

LONGEST_TEXT = 160
MOST = 4096
"""Declarations in one file."""
MOST_USED = 512
NODES_A_STEP = 64
MOST_LEVELS = 8
NAME_FIELDS = ("name", "declarator", "alias", "property", "left")
NOT_NAMES = ("type", "value", "parameters", "return_type", "default_value", "key", "index", "right", "object", "size")
TYPE_FIELDS = ("type", "return_type", "returns", "result")
VALUE_FIELDS = ("value", "right", "default_value")
MADE_FIELDS = ("constructor", "type", "name", "function", "method")
LISTS = ("expression_list", "variable_list", "pattern_list")
MAKING = frozenset(
    languages.kinds("""
    call composite_literal new_expression object_creation_expression reference_expression struct_expression
    unary_expression call_expression
    """)
)
OWN = frozenset({"attribute", "member_expression"})
"""`self.x`, which an assignment to it declares."""
ASSIGNING = "assignment_expression"
"""Languages in which a name must be declared before it is assigned to, unless it is a member."""
LEAF = re.compile(r"(?:identifier|identifier_pattern|name|constant|word)\Z")
ENUMERATED = re.compile(r"enum(?:erator|_body|_assignment|_variant|_constant|_entry|_member)|const_")
CLASSES = re.compile(r"class|struct|enum|interface|object_|trait|record|union|type")
MODULES = re.compile(r"namespace|module|mod_item|import")
FUNCTIONS = re.compile(r"function|method|constructor|arrow|lambda|closure|macro")
PATTERN = re.compile(r"declarator|_pattern\Z")
IMPORT = re.compile(r"import|export_specifier|use_declaration|using_directive|extern_crate")
NAMES = re.compile(r"(?:\w+(?:\.|::))*\w+")
CALLS = {
    "go": "(composite_literal type: (_) @of body: (literal_value (keyed_element key: (_) @name)))",
    "python": "(call function: (_) @of arguments: (argument_list (keyword_argument name: (_) @name)))",
    "rust": "(struct_expression name: (_) @of body: (field_initializer_list (field_initializer field: (_) @name)))",
}
"""Arguments passed by name."""
SPACE = re.compile(r"\s+")


class Declared(Struct, frozen=True, array_like=True, omit_defaults=True):
    """A name; `_owner` is the type it is a member of. `parameters` and `type` are as written: `type` is what a function
    returns, or the rest of a type's heading. An imported name comes from a `module`, where it is called `original`."""

    name: str
    kind: NameKind = ""
    owner: str = ""
    parameters: str = ""
    type: str = ""
    module: str = ""
    original: str = ""


class Used(Struct, frozen=True, array_like=True, omit_defaults=True):
    """A name that a text imports from a `module`, or uses behind the name `of` that it imports from there. The module
    is unknown for a type or a global that the text does not import, and for a function or type `of()` that takes an
    argument of this name."""

    name: str
    kind: NameKind = ""
    module: str = ""
    origin: str = ""


def declared_in_file(snapshot: Snapshot) -> Generator[None, None, tuple[Declared, ...]]:
    """The declarations at the top of a file and the members of its types, each name once: in small steps, since a long
    file takes a while."""
    declared: list[Declared] = []
    for number, declaration in enumerate(_declarations(snapshot), 1):
        if declaration is not None:
            declared.append(declaration)
        if len(declared) == MOST:
            break
        if number % NODES_A_STEP == 0:
            yield
    return once(declared)


def once(declarations: Iterable[Declared]) -> tuple[Declared, ...]:
    """For each name of a type, the first declaration that states a type, else the first."""
    distinct: dict[tuple[str, str], Declared] = {}
    for declaration in declarations:
        before = distinct.setdefault((declaration.owner, declaration.name), declaration)
        if declaration.type and not before.type:
            distinct[declaration.owner, declaration.name] = declaration
    return tuple(distinct.values())


def _declarations(snapshot: Snapshot) -> Iterator[Declared | None]:
    """Those of one node after the other, and None after each. What is too deep declares nothing."""
    language = snapshot.written_in
    if snapshot.tree is None or not language.definitions:
        return
    yield from _imported(snapshot)
    inside = 0
    for node in _declaring(language, snapshot.tree.root_node):
        yield None
        if snapshot.is_deep(snapshot.offset_of_byte(node.start_byte)):
            continue
        is_local = node.start_byte < inside
        for name in _names_of(node):
            is_assigned = kind_of(name.parent) in OWN
            if is_assigned == is_local and (declaration := _declared(node, name, _owner(name))).kind != "parameter":
                yield declaration
        if node.type in scopes.FUNCTIONS:
            inside = max(inside, node.end_byte)


def _imported(snapshot: Snapshot) -> Iterator[Declared]:
    for declaration in imports_of(snapshot):
        if not declaration.is_passed_on and declaration.name != "*":
            name = declaration.alias.partition(".")[0]
            spelled = name if declaration.name == "default" else declaration.name
            kind = _kind_by_spelling(spelled) if spelled else "module"
            yield Declared(name, kind, module=declaration.module, original=declaration.name)


def used_in_file(snapshot: Snapshot) -> tuple[Used, ...]:
    """What the text uses from modules that are found by name rather than by the file's location."""
    imports = [declaration for declaration in _imported(snapshot) if not declaration.module.startswith(".")]
    used = set(islice(_given_by_name(snapshot), MOST_USED))
    used |= {
        Used(declaration.original, declaration.kind, declaration.module)
        for declaration in imports
        if declaration.original not in ("", "default")
    }
    by_name = {declaration.name: declaration for declaration in imports}
    names = "|".join(map(re.escape, sorted(by_name)))
    pattern = re.compile(
        rf"(?<![\w.:])(?P<of>{names + '|' if names else ''}[A-Z]\w*)(?:\.|::)(?P<name>[^\W\d]\w*)(?P<call>\()?"
    )
    for match in pattern.finditer(snapshot.text):
        declaration = by_name.get(match["of"], Declared(match["of"]))
        kind = _kind_by_spelling(match["name"]) or ("function" if match["call"] else "")
        origin = declaration.original if declaration.module else declaration.name
        used.add(Used(match["name"], kind, declaration.module, origin))
        if len(used) >= 2 * MOST_USED:
            break
    return tuple(used)


def _given_by_name(snapshot: Snapshot) -> Iterator[Used]:
    language = snapshot.written_in
    if language.id not in CALLS or snapshot.tree is None:
        return
    for _, parts in QueryCursor(languages.query(language, CALLS[language.id])).matches(snapshot.tree.root_node):
        owner_name, name = symbols.last_name(parts["of"][0]), symbols.text_of(parts["name"][0])
        if owner_name.isidentifier() and name.isidentifier():
            yield Used(name, "keyword", origin=f"{owner_name}()")


def _kind_by_spelling(name: str) -> NameKind:
    if name.isupper() and len(name) > 1:
        return "constant"
    return "class" if symbols.is_capitalized(name) else ""


def locals_at(snapshot: Snapshot, offset: int) -> list[Declared]:
    """The parameters and locals usable at an offset, nearest first."""
    around = _outermost_scope(snapshot, offset)
    if around is None:
        return []
    nearest: dict[str, tuple[int, int, Declared]] = {}
    byte, left_out = snapshot.byte(offset), 0
    for node in _declaring(snapshot.written_in, around):
        if node.start_byte < left_out:
            continue
        if node.type in scopes.FUNCTIONS and not node.start_byte < byte <= node.end_byte:
            left_out = node.end_byte
        for name in _names_of(node):
            local = None if kind_of(name.parent) in OWN else scopes.binding(snapshot, name)
            if local is None or not (local.start <= offset <= local.end and local.visible_from <= offset):
                continue
            declaration = _declared(node, name, "")
            distance = local.end - local.start, -name.start_byte
            if declaration.name not in nearest or distance < nearest[declaration.name][:2]:
                nearest[declaration.name] = *distance, declaration
    return [declaration for _, _, declaration in sorted(nearest.values(), key=lambda entry: entry[:2])]


def _outermost_scope(snapshot: Snapshot, offset: int) -> Node | None:
    around = [*outward(scopes.node_at(snapshot, max(offset - 1, 0)))]
    return next((node for node in reversed(around) if node.type in scopes.FUNCTIONS | scopes.TYPES), None)


def _declaring(language: Language, around: Node) -> list[Node]:
    """The nodes that may declare names, in the order of the text."""
    declarators = QueryCursor(languages.query(language, _declarators(language))).captures(around).get("d", [])
    return sorted(declarators, key=lambda node: (node.start_byte, -node.end_byte))


@cache
def _declarators(language: Language) -> str:
    """The pattern of the nodes that may declare names."""
    grammar = languages.grammar(language)
    declaring_kinds = (
        scopes.BINDING_FIELDS,
        scopes.BINDING_LISTS,
        scopes.FUNCTIONS,
        scopes.TYPES,
        language.definitions,
    )
    syntax_kinds = {ASSIGNING}.union(*declaring_kinds)
    visible_kinds = filter(grammar.node_kind_is_visible, range(grammar.node_kind_count))
    kinds = filter(None, map(grammar.node_kind_for_id, filter(grammar.node_kind_is_named, visible_kinds)))
    chosen = {
        kind for kind in kinds if (kind in syntax_kinds or scopes.NAMING.search(kind)) and not IMPORT.search(kind)
    }
    return f"[{' '.join(f'({kind})' for kind in sorted(chosen))}] @d"


def _names_of(node: Node) -> Iterator[Node]:
    """The names that a node declares."""
    if node.type in scopes.BINDING_LISTS:
        parts = node.named_children
    else:
        fields = scopes.BINDING_FIELDS.get(node.type, NAME_FIELDS)
        parts = [child for field in fields for child in parts_of(node, field)]
    if node.type == ASSIGNING:
        parts = [part for part in parts if part.type in OWN]
    for part in parts:
        yield from _leaves(part)


def _leaves(node: Node, levels: int = MOST_LEVELS) -> Iterator[Node]:
    """The names of a pattern, as far as it is nested no deeper: of each pattern within it they are asked again."""
    if node.type in OWN:
        whose = node.named_children[0]
        if symbols.text_of(whose) in symbols.SELVES:
            yield node.named_children[-1]
        return
    if LEAF.search(node.type) and not node.named_child_count:
        yield node
        return
    is_pattern = node.type in scopes.PATTERNS or node.type in LISTS or PATTERN.search(node.type)
    if not levels or not is_pattern:
        return
    fields = NOT_NAMES if node.type != "pair_pattern" else ("key",)
    skipped = [child for field in fields for child in parts_of(node, field)]
    for child in node.named_children:
        if child not in skipped:
            yield from _leaves(child, levels - 1)


def _owner(name: Node) -> str:
    return symbols.type_name(symbols.enclosing(name) if kind_of(name.parent) in OWN else symbols.owner_of(name))


def _declared(node: Node, name: Node, whose: str) -> Declared:
    kind = _kind_of(node, name, whose)
    parameters = _part(node, ("parameters", "constructor")) if kind in ("function", "class") else ""
    if node.type in scopes.BINDING_LISTS and name.parent is not None:
        node = name.parent
    annotation = (
        _heading(node, name) if kind == "class" else _part(node, TYPE_FIELDS) or _type_beside(name) or _made(node)
    )
    return Declared(
        symbols.text_of(name), kind, whose, _tidy(parameters.strip("()|")), _tidy(annotation.lstrip(":-> "))
    )


def _kind_of(node: Node, name: Node, whose: str) -> NameKind:
    if scopes.is_property(node):
        return "property"
    if node.type in scopes.BINDING_LISTS or "parameter" in node.type:
        return "parameter"
    is_function = FUNCTIONS.search(node.type) or kind_of(part_of(node, *VALUE_FIELDS)) in scopes.FUNCTIONS
    if is_function or any("function_declarator" in child.type for child in parts_of(node, "declarator")):
        return "function"
    if CLASSES.search(node.type) and not ENUMERATED.search(node.type):
        return "class"
    if MODULES.search(node.type):
        return "module"
    if ENUMERATED.search(node.type) or symbols.text_of(name).isupper():
        return "constant"
    return "property" if whose else "variable"


def _part(node: Node, fields: tuple[str, ...]) -> str:
    """The text of the first of these parts, which may belong to the node, its declarator or its value."""
    near = [node, *parts_of(node, "declarator"), *parts_of(node, "value")]
    if node.parent is not None and "declarator" in node.type:
        near.append(node.parent)
    return symbols.text_of(next(filter(None, (part_of(parent, *fields) for parent in near)), None))


def _type_beside(name: Node) -> str:
    """The type in the pattern that a declaration of Kotlin has as its name."""
    return symbols.text_of(part_of(name.parent, "type")) if kind_of(name.parent) in scopes.PATTERNS else ""


def _made(node: Node) -> str:
    """The type of an object constructed in its declaration, `Foo` of `new Foo(…)` and `&Foo{…}`, or the call that
    constructs it, `foo()` of `foo(…)`."""
    value = part_of(node, *VALUE_FIELDS)
    while value is not None and (value.type in LISTS or value.type in ("reference_expression", "unary_expression")):
        value = value.named_children[-1] if value.named_children else None
    if value is None or value.type not in MAKING:
        return ""
    callee = part_of(value, *MADE_FIELDS)
    if callee is not None and callee.type == "scoped_identifier":  # `Foo::new(…)`
        callee = part_of(callee, "path")
    text = symbols.text_of(callee)
    return f"{text}()" if value.type in ("call", "call_expression") and NAMES.fullmatch(text) else text


def _heading(node: Node, name: Node) -> str:
    """The text between the name of a type, or its constructor, and its body."""
    body, constructor = part_of(node, "body"), part_of(node, "constructor")
    text, start = node.text or b"", (constructor or name).end_byte
    end = body.start_byte if body is not None else min(node.end_byte, name.end_byte + LONGEST_TEXT)
    return text[start - node.start_byte : end - node.start_byte].decode(errors="replace")


def _tidy(text: str) -> str:
    return SPACE.sub(" ", text[: 2 * LONGEST_TEXT]).strip()[:LONGEST_TEXT]
