"""What a name refers to, and whether the same name elsewhere refers to it as well."""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Literal

from msgspec import Struct
from tree_sitter import Node

from mercury_ls.code import scopes, syntax, traits
from mercury_ls.code.documents import Snapshot, cached
from mercury_ls.code.languages import find
from mercury_ls.code.parts import part_of, parts_of
from mercury_ls.code.scopes import Binding

MOST_DECLARATIONS = 256
QUALIFIER_FIELDS = ("object", "operand", "argument", "path", "scope", "expression", "table", "value")
MEMBER_FIELDS = ("attribute", "field", "property", "name")
ROOTS = frozenset({"crate", "self", "super"})
NAMESPACES = frozenset({"internal_module", "mod_item", "namespace_declaration", "namespace_definition"})
KEYWORD_ARGUMENTS = frozenset({"keyword_argument", "value_argument"})
IMPORTED = frozenset({"aliased_import", "dotted_name", "identifier"})
PATHS = frozenset({"qualified_identifier", "scoped_identifier"})
SELVES = frozenset({"self", "this", "Self", "cls", "super"})
DECLARING = re.compile(r"\b(?:class|interface|struct)[ \t]+\Z")
FROM = re.compile(r"\bfrom\b[ \t]+(?:[\w.]+|\"[^\"]*\"|'[^']*')")
FROM_MODULES = re.compile(r"\{[^}]*\}|\bfrom\b.*", re.DOTALL)
SIMPLE = re.compile(r"(?P<super>super)\(.*\)\Z|[.:]*+(?:\w++[.:]++)*+(?P<name>\w++)(?:<.*>)?\Z", re.DOTALL)


class Symbol(Struct, frozen=True):
    """`local` is the binding of a parameter or a local, `function` the function that a parameter belongs to.

    `owner` is the type that declares a member, also by a parameter of its constructor. `unrelated_owners` are the other
    types with a member of that name, and `inherited` says whether a type related to the owner has it too.
    `module_level` means that it is declared at the top of a file and is nothing's member. `modules` are the names of
    imported modules, and `bound` the locals that have the name.
    """

    node: Node | None = None
    path: str = ""
    local: Binding | None = None
    owner: Node | None = None
    unrelated_owners: frozenset[str] = frozenset()
    inherited: bool = False
    function: str = ""
    module_level: bool = False
    modules: frozenset[str] = frozenset()
    bound: tuple[Binding, ...] = ()

    def is_local_at(self, node: Node | None) -> bool:
        """Whether a name can only be the local there: a parameter that is a field as well is qualified as a field."""
        return self.local is not None and (self.owner is None or node is None or not is_qualified(node))


def symbol_at(
    before: str, after: str, home: Snapshot | None, offset: int, snapshot: Snapshot, places: Iterable[int]
) -> Symbol:
    """What the name at `offset` of `home` refers to, as far as it matters for these `places` of a snapshot."""
    bound = tuple(scopes.bindings(snapshot, (before,)))
    node = home and scopes.node_at(home, offset)
    if home is None or node is None:
        return Symbol(bound=bound)
    local = scopes.local_at(home, offset, (before, after))
    declared = scopes.declares(node)
    owner = owner_of(node) if declared and not local else class_of_field(node) or _class_of_parameter(node)
    owners = _owners_of(snapshot, places) if declared and not local else {}
    kin = {
        name
        for name, candidate in owners.items()
        if (are_related(candidate, owner) if owner else scopes.names_it(node, candidate))
    }
    return Symbol(
        node=node,
        path=home.path,
        local=local,
        owner=owner,
        unrelated_owners=frozenset(set(owners) - kin),
        inherited=owner is not None and bool(kin - {type_name(owner)}),
        function=_function_of_parameter(node) if local and scopes.in_parameters(home, offset) else "",
        module_level=declared and not local and owner is None and not scopes.is_member(node),
        modules=_imported_modules(snapshot, FROM if home is snapshot else FROM_MODULES),
        bound=bound,
    )


def refers_to(symbol: Symbol, snapshot: Snapshot, offset: int) -> bool:
    """True if the name there may refer to the symbol: a local stays in its function or block, a member in its type."""
    node = scopes.node_at(snapshot, offset)
    if node is not None and symbol.node is not None and category(symbol.node, snapshot) != category(node, snapshot):
        return False
    if symbol.local and symbol.is_local_at(node):
        return node is not None and _is_same_local(symbol, symbol.local, snapshot, node, offset)
    if node is None or symbol.node is None:
        return _scope_at(symbol, snapshot, offset) is None
    if function := called_with_keyword(symbol.node):
        return called_with_keyword(node) == function
    if symbol.owner is not None and node.parent is not None and node.parent.type == "shorthand_field_initializer":
        return last_name(struct_of(node.parent)) == type_name(symbol.owner)
    if not is_qualified(node) and _scope_at(symbol, snapshot, offset):
        return False
    if (
        symbol.owner is None
        and is_capitalized(whose := qualifier_of(symbol.node))
        and is_capitalized(other := qualifier_of(node))
    ):
        return whose == other
    if symbol.owner is not None:
        return _is_member_of(symbol.owner, symbol, snapshot, node)
    if scopes.is_member(symbol.node):
        return scopes.is_member(node) and not called_with_keyword(node) and not is_of_another_self(symbol.node, node)
    return not symbol.module_level or _may_be_module_level(symbol, snapshot, node)


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


def _is_same_local(symbol: Symbol, local: Binding, snapshot: Snapshot, node: Node, offset: int) -> bool:
    if symbol.function and called_with_keyword(node) == symbol.function:
        return True
    is_bound_alike = symbol.path == snapshot.path and _scope_at(symbol, snapshot, offset) == local.reach
    return is_bound_alike and not is_qualified(node)


def _may_be_module_level(symbol: Symbol, snapshot: Snapshot, node: Node) -> bool:
    """True if the name may be what a file declares at its top, which other files qualify by the file's name."""
    if symbol.node is None or (is_qualified(node) and not _is_qualified_by_file(symbol, symbol.node, snapshot, node)):
        return False
    if scopes.declares(node):
        return not redeclares(symbol, node) or (
            owner_of(node) is None and namespace_of(node) == namespace_of(symbol.node)
        )
    around = enclosing(node) if allows_bare_members(snapshot) else None
    return around is None or type_name(around) not in symbol.unrelated_owners


def _is_qualified_by_file(symbol: Symbol, declared: Node, snapshot: Snapshot, node: Node) -> bool:
    """True for `loader.load` in another file, and for `a::load` in the same one."""
    is_same_file, files = symbol.path == snapshot.path, PurePath(symbol.path).with_suffix("").parts[-2:]
    if is_in_path(node) and qualifier_of(node) in (*ROOTS, namespace_of(declared)):
        return True
    if is_same_file or _is_module(declared):
        return is_in_path(node) and qualifier_of(node) in files
    return qualifier_of(node) in files or (declared.parent is not None and declared.parent.type in scopes.TYPES)


def _is_module(node: Node) -> bool:
    """True if the node names an imported module: `json` of `import json`."""
    around = next((ancestor for ancestor in syntax.outward(node) if ancestor.type not in IMPORTED), None)
    return around is not None and around.type == "import_statement"


def namespace_of(node: Node) -> str:
    """The innermost namespace, or module within the file."""
    around = syntax.innermost(node.parent, NAMESPACES)
    return last_name(part_of(around, "name")) if around is not None else ""


def category(node: Node, snapshot: Snapshot) -> Literal["label", "macro", "method", "package", "private", ""]:
    """The kind of a name that lives in a namespace of its own: a label, a package, a Rust macro, a Java method, `#x` in
    JavaScript."""
    parent, language = node.parent, find(snapshot.language, snapshot.path)
    if node.type == "statement_identifier" or (parent is not None and part_of(parent, "label") == node):
        return "label"
    if node.type == "private_property_identifier":
        return "private"
    if parent is not None and parent.type in ("macro_definition", "macro_invocation"):
        return "macro"
    if parent is not None and parent.type == "package_clause":
        return "package"
    if parent is None or language is None or language.id != "java":
        return ""
    named = parent.type in ("method_declaration", "method_invocation") and part_of(parent, "name") == node
    return "method" if named or (parent.type == "method_reference" and parent.named_children[-1] == node) else ""


def redeclares(symbol: Symbol, node: Node) -> bool:
    """True if the name is declared there as well; a constructor with the name of its class does not count."""
    around = owner_of(node) if scopes.declares(node) else None
    is_function = node.parent is not None and node.parent.type in (*scopes.FUNCTIONS, "function_declarator")
    constructs = is_function and around is not None and symbol.node is not None and scopes.names_it(symbol.node, around)
    return scopes.declares(node) and not constructs


def _scope_at(symbol: Symbol, snapshot: Snapshot, offset: int) -> tuple[int, int] | None:
    """The innermost scope that rebinds the name."""
    candidates = [*symbol.bound, symbol.local] if symbol.local and symbol.path == snapshot.path else symbol.bound
    local = scopes.binding_at(snapshot, offset, candidates)
    return local and local.reach


def _is_member_of(owner: Node, symbol: Symbol, snapshot: Snapshot, node: Node) -> bool:
    """True if the name may be the owner's member: not qualified by another type, or unqualified where that is
    allowed."""
    own = owner_of(node) if scopes.declares(node) else None
    if own is not None:
        return are_related(own, owner)
    if is_qualified(node):
        return _is_qualified_by_owner(owner, symbol, snapshot, node)
    around = enclosing(node)
    if around is None or not are_related(around, owner):
        return False
    return owner_of(node) is not None or allows_bare_members(snapshot)


def is_of_self(node: Node) -> bool:
    return is_qualified(node) and qualifier_of(node) in SELVES


def class_of_field(node: Node) -> Node | None:
    """The type around, if the name is assigned to a method's own object."""
    if not is_of_self(node) or node.parent is None:
        return None
    child, parent = scopes.outermost(node.parent)
    if parent is not None and scopes.is_plain_assignment(parent):
        return None
    fields = (part_of(parent, name) for name in ("left", "alias")) if parent is not None else ()
    return enclosing(node) if child in fields else None


def _class_of_parameter(node: Node) -> Node | None:
    """The type around, if a parameter of TypeScript's constructor declares a field as well: `private size: number`."""
    parent = node.parent
    modifiers = {child.type for child in parent.children} if parent is not None else set[str]()
    is_field = parent is not None and parent.type in ("required_parameter", "optional_parameter")
    return enclosing(node) if is_field and modifiers & {"accessibility_modifier", "readonly"} else None


def is_of_another_self(member: Node, node: Node) -> bool:
    """True if both are members of the objects whose methods use them, and these are of unrelated types."""
    if not is_of_self(member) or not is_of_self(node):
        return False
    member_class, node_class = enclosing(member), enclosing(node)
    return member_class is not None and node_class is not None and not are_related(member_class, node_class)


def _is_qualified_by_owner(owner: Node, symbol: Symbol, snapshot: Snapshot, node: Node) -> bool:
    """True unless the object is known to be of an unrelated type."""
    around, name = enclosing(node), type_name(owner)
    whose = called_with_keyword(node) or qualifier_of(node)
    if whose == "super" and around is not None and type_name(around) == name:
        return symbol.inherited
    whose = type_name(around) if around is not None and whose in SELVES else whose
    if whose == name or called_with_keyword(node):
        return whose == name
    if (
        whose in symbol.modules
        or whose in symbol.unrelated_owners
        or _is_declared_as(whose, symbol.unrelated_owners, snapshot, node)
    ):
        return False
    return _derives_from(whose, owner, snapshot) if is_in_path(node) or is_type(whose, snapshot) else True


def is_type(name: str, snapshot: Snapshot) -> bool:
    """True if the name is spelled like a type: all capitals make a constant, and in some languages every public name
    begins with a capital."""
    language = find(snapshot.language, snapshot.path)
    is_constant = len(name) > 1 and name.isupper()
    return is_capitalized(name) and not is_constant and language is not None and language.id not in ("csharp", "go")


def _derives_from(name: str, owner: Node, snapshot: Snapshot) -> bool:
    """True if the file declares a type of this name with the owner in its heading."""
    return any(re.search(rf"\b{re.escape(type_name(owner))}\b", heading) for heading in _headings_of(snapshot, name))


@cached
def _headings_of(snapshot: Snapshot, name: str) -> list[str]:
    """The first lines of the headings of the types of this name."""
    text, pattern = snapshot.text, re.compile(re.escape(name) + r"\b(?P<said>[^{\n]*)")
    places = (at for at in scopes.mentions(snapshot, name) if DECLARING.search(text, text.rfind("\n", 0, at) + 1, at))
    return [match["said"] for at in places if (match := pattern.match(text, at))]


def allows_bare_members(snapshot: Snapshot) -> bool:
    language = find(snapshot.language, snapshot.path)
    return language is not None and language.id in traits.BARE_MEMBERS


def is_in_path(node: Node) -> bool:
    """True if the node is the `b` of `a::b`."""
    if node.parent is not None and node.parent.type in PATHS:
        return part_of(node.parent, "name") == node
    if node.parent is None or node.parent.type != "token_tree":
        return False
    return node.prev_sibling is not None and node.prev_sibling.type == "::"


def _is_declared_as(name: str, types: frozenset[str], snapshot: Snapshot, node: Node) -> bool:
    """True if the function around says that the name is of one of these types: `a: T`, `T *a`, `a := &T{`."""
    if not types or not name.isidentifier():
        return False
    first, last = scopes.function_range(snapshot, snapshot.offset_of_byte(node.start_byte))
    separators, kinds = r"[ \t:=&*\[\]]+(?:mut[ \t]+|new[ \t]+)?", rf"\b(?:{'|'.join(map(re.escape, sorted(types)))})\b"
    declaration = rf"{scopes.whole(name)}{separators}{kinds}|{kinds}[ \t*&]+{scopes.whole(name)}"
    return re.search(declaration, snapshot.text[first:last]) is not None


@cached
def _imported_modules(snapshot: Snapshot, but: re.Pattern[str]) -> frozenset[str]:
    """The names of imported modules, roughly, in languages that qualify functions by modules as they do methods by
    objects. In files other than the owner's, names imported from modules do not count if they may be of its type."""
    language = find(snapshot.language, snapshot.path)
    if language is None or language.id not in traits.MODULAR:
        return frozenset()
    texts = (but.sub("", snapshot.text[start:end]) for start, end in syntax.imports(snapshot))
    return frozenset(word for text in texts for word in re.findall(r"\w+", text) if not is_capitalized(word))


def is_capitalized(name: str) -> bool:
    """True for names spelled like types, where a member's qualifier matters."""
    return name[:1].isupper()


def _owners_of(snapshot: Snapshot, places: Iterable[int]) -> dict[str, Node]:
    """The names of the types that declare the name as a member."""
    nodes = [node for at in places if (node := scopes.node_at(snapshot, at)) is not None and scopes.declares(node)]
    owners = [owner for node in nodes if (owner := owner_of(node)) is not None]
    return {name: owner for owner in owners if (name := type_name(owner))}


def owner_of(node: Node) -> Node | None:
    """The type whose body contains the node, outside functions; a Go method belongs to its receiver's type."""
    child, around = node, node.parent
    while around is not None:
        is_parameter = around.type == "class_parameter" and not scopes.is_property(around)
        if is_parameter or (around.type in scopes.FUNCTIONS and not scopes.names_it(node, around)):
            return None
        if around.type == "method_declaration" and part_of(around, "receiver"):
            return around
        if around.type in scopes.TYPES and child not in parts_of(around, "name") and _is_scoped(around):
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
        if part_of(around, "receiver") or (around.type in scopes.FUNCTIONS and type_name(around)):
            return around
    return None


def receivers(node: Node) -> Iterator[Node | None]:
    """What may have the member that a bare name of Kotlin stands for, from within outward: the types around, what
    extensions extend, and None for the object that a lambda may be called on."""
    for around in syntax.outward(node.parent):
        if is_called_on_an_object(around):
            yield None
        elif around.type in scopes.TYPES:
            yield around if part_of(around, "name") is not None else None
        elif (receiver := part_of(around, "receiver")) is not None:
            yield receiver


def is_called_on_an_object(function: Node) -> bool:
    """True if a lambda of Kotlin may have a `this` of its own."""
    given = function.parent if function.type == "lambda_literal" else None
    named = part_of(given, "name") if given is not None and given.type == "property_declaration" else None
    if given is None or (named is not None and part_of(named, "type") is None):
        return False
    call = syntax.innermost(given, ("call_expression", "lambda_literal"))
    called = name_called(call)
    while called is not None and called.type == "call_expression":
        called = name_called(called)
    return text_of(called) not in traits.GIVING_NO_RECEIVER


def is_extension(declared: Node | None) -> bool:
    """True if this names what Kotlin declares for objects of another type."""
    around = scopes.outermost(declared)[1] if declared is not None else None
    return around is not None and around.type.startswith(("function", "property")) and bool(part_of(around, "receiver"))


def name_called(call: Node | None) -> Node | None:
    """The last name of what a call calls."""
    return name_of_callee(part_of(call, "function")) if call is not None else None


def name_of_callee(called: Node | None) -> Node | None:
    """The last name of what is called."""
    if called is not None and called.type == "user_type":
        return next((child for child in reversed(called.named_children) if child.type == "identifier"), None)
    return called and (part_of(called, "attribute") or part_of(called, "name") or called)


def has_several_constructors(around: Node) -> bool:
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
    return node.prev_sibling is not None and node.prev_sibling.type == "="


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
    type_node = part_of(around, "type") if around.type == "type_spec" else None
    return type_node is not None and type_node.type == "interface_type"


def type_name(around: Node) -> str:
    """The name of a type, or of the type that a function declares itself a method of."""
    if receiver := part_of(around, "receiver"):
        words = re.findall(r"\w+", re.sub(r"[\[<].*", "", text_of(receiver)))
        return words[-1] if words else ""
    if around.type in scopes.FUNCTIONS:
        named = part_of(around, "declarator")
        while named is not None and named.type != "qualified_identifier":
            named = part_of(named, "declarator")
        return last_name(part_of(named, "scope")) if named else ""
    return last_name(part_of(around, "type" if around.type == "impl_item" else "name"))


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
    fields = [child for name in MEMBER_FIELDS for child in parts_of(parent, name)]
    whole = next((child for name in QUALIFIER_FIELDS if (child := part_of(parent, name))), None)
    return last_name(whole) if node in fields and whole is not None and whole != node else ""


def _qualifier_in_macro(node: Node) -> str:
    """The qualifier, from tokens: Rust macros are not parsed inside."""
    mark = node.prev_sibling
    return last_name(mark.prev_sibling) or "?" if mark is not None and mark.type in (".", "::") else ""


def _is_key(node: Node) -> bool:
    """True if the node is the `a` of `T{a: 1}` in Go."""
    keyed = node.parent.parent if node.parent is not None and node.parent.type == "literal_element" else None
    return keyed is not None and part_of(keyed, "key") == node.parent


def struct_of(field: Node) -> Node | None:
    """The type that a Rust literal or pattern names before its braces."""
    around = syntax.innermost(field, ("struct_expression", "struct_pattern"))
    return around and (part_of(around, "name") or part_of(around, "type"))


def composite(node: Node) -> Node | None:
    """The type of the Go literal whose key this is; None for a map's."""
    around = syntax.innermost(node, ("composite_literal",))
    type_node = part_of(around, "type") if around is not None else None
    return type_node if type_node is not None and type_node.type != "map_type" else None


def _function_of_parameter(node: Node) -> str:
    """The function that takes this parameter; for a Python constructor, the class."""
    return text_of(function_of_parameter(node))


def function_of_parameter(node: Node) -> Node | None:
    """The name of what is called to give this parameter a value: for a constructor, that of the class."""
    around = syntax.innermost(node.parent, (*scopes.FUNCTIONS, "primary_constructor"))
    named = part_of(around, "name") if around is not None else None
    is_constructor = text_of(named) == "__init__" or (around is not None and around.type.endswith("_constructor"))
    whole = enclosing(around) if around is not None and is_constructor else None
    return part_of(whole, "name") if whole is not None else named


def called_with_keyword(node: Node) -> str:
    """The function of the call in which the node is the `name` of `name=value`."""
    parent = node.parent
    if parent is None or parent.type not in KEYWORD_ARGUMENTS or part_of(parent, "name") != node:
        return ""
    call = parent.parent and parent.parent.parent
    return last_name(part_of(call, "function")) if call is not None else ""


def last_name(node: Node | None) -> str:
    """The last name of a dotted path, "?" for anything else."""
    match = SIMPLE.match(text_of(node).lstrip("*&")) if node is not None else None
    return match["super"] or match["name"] if match else "?" if node is not None else ""


def text_of(node: Node | None) -> str:
    return (node.text or b"").decode(errors="replace") if node is not None else ""
