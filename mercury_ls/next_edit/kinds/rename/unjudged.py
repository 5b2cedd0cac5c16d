"""What a rename leaves undone: places that may refer to the renamed symbol, where nothing says so for certain."""

import re
from collections.abc import Generator, Iterable, Set
from itertools import islice
from pathlib import Path, PurePath

from msgspec.structs import replace
from tree_sitter import Node

from mercury_ls.code import scopes, symbols, syntax, traits
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.languages import kinds
from mercury_ls.code.modules import Project, family, in_import
from mercury_ls.code.symbols import Symbol, text_of, type_name
from mercury_ls.code.syntax import innermost, outward
from mercury_ls.next_edit.kinds.rename.declared import renamed_symbol
from mercury_ls.next_edit.kinds.rename.rule import Rename
from mercury_ls.next_edit.kinds.rename.uses import MOST_BASES, Uses, qualifier_node, type_of_object, uses_in_family
from mercury_ls.next_edit.places import named_from
from mercury_ls.wording import counted

MOST_MENTIONS = 1024
MOST_FILES = 48
"""Files besides those of the offer that are looked through, the nearest first."""
MOST_PLACES = 50
MOST_LISTED = 8
STRINGS = frozenset({"interpreted_string_literal_content", "string_content", "string_fragment"})
REFLECTIVE = frozenset(
    kinds("FieldByName MethodByName attrgetter delattr getattr hasattr methodcaller object setattr spyOn")
)
"""Functions that take the names of members as strings."""
SAYING = frozenset(kinds("critical debug error exception info print warning"))
REPLACING = frozenset(kinds("_replace cls evolve partial replace"))
"""Functions of Python that take the names of fields as keywords."""
LISTING = re.compile(r"__(?:all|match_args|slots)__")
FIXTURE = re.compile(r"(?:@.*\n\s*)*?@(?:\w+\.)*fixture\b(?!\([^)]*\bname\s*=)")
STRUCTURAL = frozenset({"interface_declaration", "type_alias_declaration"})
"""Types of TypeScript that an object needs no constructor for."""
METHODS = frozenset({"method_declaration", "method_elem", "method_spec"})
ATTRIBUTES = frozenset(name for kind in (bytes, complex, dict, list, set, str, Path, re.Match) for name in dir(kind))
"""Names that objects of anybody have; one that a single class of the project has is likely its own everywhere."""

Places = list[tuple[Snapshot, int]]


def note_of(
    rule: Rename, home: Snapshot, files: Iterable[Snapshot], project: Project, places_offered: Set[tuple[str, int]]
) -> Generator[None, None, str]:
    """Names the places beside the `places_offered`, each a file and an offset; empty if there are none."""
    places, taken = yield from _unjudged(rule, home, files, project, places_offered)
    if not places:
        return ""
    noun = "more place" if places_offered else "place"
    count, names = counted(len(places), noun), [named_from(home, *place) for place in places]
    if len(places) > MOST_PLACES:
        count, names = f"more than {MOST_PLACES} places", [name.rpartition(":")[0] for name in names]
    notes = [f"{count} cannot be judged: {listed_places(names)}"]
    if taken:
        notes.append(f"the name {rule.after} is taken at {listed_places(named_from(home, *place) for place in taken)}")
    return "; ".join(notes)


def listed_places(names: Iterable[str]) -> str:
    all_names = [*dict.fromkeys(names)]
    return ", ".join(all_names[:MOST_LISTED]) + (" …" if len(all_names) > MOST_LISTED else "")


def _unjudged(
    rule: Rename, home: Snapshot, files: Iterable[Snapshot], project: Project, places_offered: Set[tuple[str, int]]
) -> Generator[None, None, tuple[Places, Places]]:
    """As many as a user may want to see, and one more if there are more; and where their files have the new name."""
    symbol = renamed_symbol(rule, home)
    places: Places = []
    taken: Places = []
    if symbol.node is None or (symbol.local is not None and not symbol.function):
        return places, taken
    if not (scopes.declares(symbol.node) or symbols.is_of_self(symbol.node)):
        return places, taken  # a use got another name
    if symbol.owner is None and symbols.is_of_self(symbol.node):
        symbol = replace(symbol, owner=symbols.enclosing(symbol.node))
    known = {file.path: file for file in files}
    is_only = symbol.owner is not None and rule.before not in ATTRIBUTES
    far: Places = []
    for path in dict.fromkeys((*known, *islice(project.mentioning(rule.before, home.path), MOST_FILES))):
        file = known.get(path) or project.file(path)
        if file is None or (path not in known and not _may_hold(file, symbol, rule.before)):
            continue
        uses = uses_in_family(rule.before, rule.after, symbol, home, file, project)
        does_see = _gets_fixture(file, symbol, home) or (yield from sees(file, uses.home, project))
        is_open = is_in_doubt if does_see else _is_path_in_string
        # What does not have the name of the type, as it gives it another, is in no offer.
        is_unread = symbol.owner is not None and type_name(symbol.owner) not in file.text
        for at in islice(scopes.mentions(file, rule.before), MOST_MENTIONS):
            is_only &= uses.is_certain(at) or not _is_another_declaration(uses, at)
            if (file.uri, at) in places_offered:
                continue
            if not is_open(uses, at):
                far += [(file, at)] if not does_see and len(far) < MOST_PLACES and is_in_doubt(uses, at) else []
                continue
            if path in known or is_unread or not uses.is_certain(at):
                places.append((file, at))
                if len(places) > MOST_PLACES:
                    return places, taken
        if places and places[-1][0] is file and symbol.module_level and uses.taken_at is not None:
            taken.append((file, uses.taken_at))
        yield
    return (places + far if is_only else places), taken


def _is_another_declaration(uses: Uses, offset: int) -> bool:
    node = scopes.node_at(uses.snapshot, offset)
    return node is not None and scopes.declares(node) and symbols.owner_of(node) not in (None, uses.symbol.owner)


def _may_hold(file: Snapshot, symbol: Symbol, name: str) -> bool:
    """Whether a file that is no part of the offer can have a place in doubt, roughly, without a parser."""
    if family(file.path) != "python":
        return True
    letters = re.escape(name)
    if _is_fixture(symbol.node) and re.search(rf"[(,]\s*{letters}\b", file.text):
        return True
    as_member = "" if symbol.owner is None else rf"|\.\s*{letters}\b|\bdef {letters}\b"
    as_keyword = rf"|\b{letters}\s*=" if symbol.owner is not None or symbol.local is not None else ""
    as_keyword += rf"|\bdef {re.escape(symbol.function)}\b" if symbol.function else ""
    return re.search(rf"[\"'.:]{letters}[\"'.:]{as_member}{as_keyword}", file.text) is not None


def sees(file: Snapshot, home: Snapshot, project: Project) -> Generator[None, None, bool]:
    """Whether objects of the home may get there: a file that it imports imports the home, and so on."""
    if family(file.path) in traits.PACKAGED:
        return family(file.path) == family(home.path)
    paths, waiting = {file.path}, [file.path]
    while waiting and home.path not in paths:
        imported = project.imported_by(waiting.pop())
        waiting += imported - paths
        paths |= imported
        yield
    return home.path in paths


def _is_fixture(declared: Node | None) -> bool:
    """Whether pytest gives what this function returns to parameters of its name."""
    around = declared and declared.parent and declared.parent.parent
    return around is not None and around.type == "decorated_definition" and FIXTURE.match(text_of(around)) is not None


def _gets_fixture(file: Snapshot, symbol: Symbol, home: Snapshot) -> bool:
    """Whether pytest gives the fixture to tests there without an import."""
    path = PurePath(home.path)
    return path.name == "conftest.py" and _is_fixture(symbol.node) and PurePath(file.path).is_relative_to(path.parent)


def _asks_for_fixture(uses: Uses, node: Node) -> bool:
    """Whether it is a parameter as tests and fixtures have them, in a file that has no fixture of this name itself."""
    is_parameter = scopes.declares(node) and scopes.in_parameters(uses.snapshot, uses.offset_of(node))
    function = innermost(node, scopes.FUNCTIONS) if is_parameter else None
    named = function and function.child_by_field_name("name")
    if function is None or named is None or innermost(function.parent, scopes.FUNCTIONS) is not None:
        return False
    return uses.is_home or not uses.project.declares(uses.snapshot, uses.name)


def is_in_doubt(uses: Uses, offset: int) -> bool:
    """Whether nothing says that the name there is something else."""
    node, file, symbol = scopes.node_at(uses.snapshot, offset), uses.snapshot, uses.symbol
    if node is None or syntax.inside(file, offset) == "comment":
        return False
    if node.type in STRINGS:
        return symbol.local is None and _is_named_by_string(uses, node)
    if symbol.local is not None:
        return _is_keyword_in_doubt(uses, node) or _is_parameter_of_override(uses, node)
    if _is_fixture(symbol.node) and _asks_for_fixture(uses, node):
        return True
    if uses.is_of_another_kind(node):
        return False
    return _is_member_in_doubt(uses, symbol.owner, node) if symbol.owner is not None else uses.is_imported(node, offset)


def _is_path_in_string(uses: Uses, offset: int) -> bool:
    """Whether a string of Python has the path of the symbol, as far as its file is called so."""
    node = scopes.node_at(uses.snapshot, offset)
    stem = PurePath(uses.home.path).stem
    path = _path_in(text_of(node), uses) if node is not None and node.type in STRINGS else None
    return path is not None and stem in path.split(".")


def _path_in(content: str, uses: Uses) -> str | None:
    """What stands before the name in a string of Python that is a dotted path."""
    path = re.fullmatch(rf"(?P<path>\w+(?:\.\w+)*)[.:]{re.escape(uses.name)}(?:[.:]\w+)*", content)
    return path["path"] if path is not None and family(uses.snapshot.path) == "python" else None


def _is_keyword_in_doubt(uses: Uses, node: Node) -> bool:
    """Whether it is a keyword of a call that may give a value to the parameter that was renamed."""
    call = innermost(node, ("call",)) if symbols.called_with_keyword(node) else None
    called = call.child_by_field_name("function") if call is not None else None
    if call is not None and symbols.last_name(called) == "partial":
        given = call.child_by_field_name("arguments")
        called = given.named_children[0] if given is not None else None
    last = called and (called.child_by_field_name("attribute") or called)
    function, declared = text_of(last), uses.symbol.node
    if called is None or last is None or declared is None:
        return False
    held = function if symbols.is_of_self(last) else text_of(called)
    owner = symbols.enclosing(declared)
    if owner is not None and uses.symbol.function == type_name(owner) != function:
        # It is a constructor's, which classes that derive from this one may inherit or call.
        of_class = Uses(uses.name, uses.new_name, Symbol(owner=owner), uses.home, uses.snapshot, uses.project)
        around = symbols.enclosing(node)
        if around is not None and _is_of_class_around(function, called):
            return of_class.is_related(type_name(around))
        is_held = _is_variable(of_class, called) and not of_class.is_of_another_type(called)
        return is_held or of_class.is_related(function) or _is_alias(uses, uses.snapshot, held)
    if uses.function is None or function != uses.symbol.function:
        return _is_alias(uses, uses.snapshot, held)
    at = uses.offset_of(last)
    is_open = uses.function.is_certain(at) or is_in_doubt(uses.function, at)
    return is_open or _is_variable(uses, called) or _is_alias(uses, uses.snapshot, held)


def _is_of_class_around(function: str, called: Node) -> bool:
    """Whether it is the class around that is called, or the constructor of its base."""
    method = innermost(called, ("function_definition",))
    listed = method and method.child_by_field_name("parameters")
    first = listed.named_children[0] if listed is not None and listed.named_children else None
    is_cls = text_of(called) == text_of(first) == "cls"
    return is_cls or function == "__init__" or text_of(called) in ("self.__class__", "type(self)")


def _is_variable(uses: Uses, called: Node) -> bool:
    """Whether the file declares it as a variable, which may hold any function or class."""
    if called.type != "identifier":
        return False
    declared = uses.declarations_at(text_of(called), uses.offset_of(called))
    items = (*scopes.FUNCTIONS, *scopes.TYPES)
    return any(
        not in_import(node) and not (node.parent and node.parent.type in items and scopes.names_it(node, node.parent))
        for node in declared
    )


def _is_alias(uses: Uses, file: Snapshot, name: str, steps: int = MOST_BASES) -> bool:
    """Whether a file calls a variable so that is given the function, or imports such a one: `read = rows.read`."""
    if not name.isidentifier() or not steps:
        return False
    given = rf"(?:[\w.]+\.)?{re.escape(uses.symbol.function)}\b(?!\s*[.(\[])"
    if re.search(rf"^[ \t]*(?:self\.)?{re.escape(name)}[ \t]*(?::[^=\n]*)?=[ \t]*{given}", file.text, re.MULTILINE):
        return True
    for imported in uses.project.imports(file):
        path = uses.project.module(file, imported.module, uses.home.path) if imported.alias == name else None
        source = uses.project.file(path) if path is not None and path != file.path else None
        if source is not None and _is_alias(uses, source, imported.name, steps - 1):
            return True
    return False


def _is_parameter_of_override(uses: Uses, node: Node) -> bool:
    """Whether a method has the parameter too that overrides the one whose parameter was renamed, or is overridden."""
    method = innermost(node, scopes.FUNCTIONS) if scopes.declares(node) else None
    named = method and method.child_by_field_name("name")
    if named is None or uses.function is None or text_of(named) != uses.function.name:
        return False
    is_parameter = family(uses.snapshot.path) == "python" and scopes.in_parameters(uses.snapshot, uses.offset_of(node))
    at, owner = uses.offset_of(named), uses.function.symbol.owner
    if not is_parameter or owner is None or symbols.owner_of(named) in (None, owner):
        return False
    return uses.function.is_certain(at) or is_in_doubt(uses.function, at)


def _is_named_by_string(uses: Uses, node: Node) -> bool:
    """Whether a program may look the name up that this string contains."""
    content, literal, owner = text_of(node), node.parent, uses.symbol.owner
    around = literal.parent if literal is not None else None
    if literal is None or around is None or literal.named_children[0].type == "interpolation":
        return False
    language, is_whole = family(uses.snapshot.path), content == uses.name
    if language == "python" and owner is None and any(outer.type == "type" for outer in outward(around)):
        return True
    if (path := _path_in(content, uses)) is not None:
        return owner is None or path.split(".")[-1] == type_name(owner)
    if not is_whole:
        return False
    listing = innermost(around, ("assignment", "augmented_assignment"))
    if listing is not None and LISTING.fullmatch(text_of(listing.child_by_field_name("left"))):
        return around.type in ("list", "tuple", "set")
    if around.type in ("arguments", "argument_list"):
        function = around.parent and around.parent.child_by_field_name("function")
        called = symbols.last_name(function)
        return called in REFLECTIVE or (owner is None and language == "python" and called not in {*SAYING, uses.name})
    if owner is None or language != "javascript":
        return False
    if around.type == "subscript_expression":
        whose = around.child_by_field_name("object")
        return whose is not None and not uses.is_of_another_type(whose)
    listed = around.parent if around.type == "literal_type" else None
    return listed is not None and (listed.type != "type_arguments" or not uses.is_another_type_named(listed))


def _is_member_in_doubt(uses: Uses, owner: Node, node: Node) -> bool:
    parent = node.parent
    if parent is None or in_import(node):
        return False
    if (kind := type_of_object(node)) is not None:
        return not uses.is_another_type_named(kind)
    if (whole := _object_around(node)) is not None:
        return _is_object_in_doubt(uses, owner, whole)
    if (named := _type_of_literal(node)) is not None:
        return not uses.owners_named.isdisjoint(re.findall(r"\w+", text_of(named)))
    if parent.type == "keyword_argument":
        function = symbols.called_with_keyword(node)
        return b"def __init__" not in (owner.text or b"") and function in uses.derived | REPLACING
    if scopes.declares(node):
        return _is_declaration_in_doubt(uses, owner, node)
    if symbols.is_of_self(node):
        return _is_self_in_doubt(uses, owner, node)
    whose = qualifier_node(node)
    if whose is None:
        around = symbols.enclosing(node)
        is_bare = not symbols.is_qualified(node) and symbols.allows_bare_members(uses.snapshot)
        is_inherited = around is not None and around != owner and symbols.are_related(around, owner)
        return is_bare and is_inherited and scopes.local_at(uses.snapshot, uses.offset_of(node), (uses.name,)) is None
    modules = {imported.alias for imported in uses.imports if not imported.name}
    return symbols.qualifier_of(node) not in modules and not uses.is_of_another_type(whose)


def _object_around(node: Node) -> Node | None:
    """The object or pattern of JavaScript of which it is a key."""
    pair = node.parent if node.parent is not None and node.parent.type in ("pair", "pair_pattern") else None
    is_key = pair is None or pair.child_by_field_name("key") == node
    whole = pair.parent if pair is not None else node.parent
    return whole if whole is not None and is_key and whole.type in ("object", "object_pattern") else None


def _is_object_in_doubt(uses: Uses, owner: Node, whole: Node) -> bool:
    if whole.type == "object":
        return owner.type in STRUCTURAL
    value = whole.parent and whole.parent.child_by_field_name("value")
    return value is None or not uses.is_of_another_type(value)


def _type_of_literal(node: Node) -> Node | None:
    """The type of the struct that a literal or pattern of Go or Rust spells out, or of the list of such."""
    parent = node.parent
    if parent is not None and parent.type in ("field_initializer", "field_pattern", "shorthand_field_initializer"):
        return symbols.struct_of(parent)
    keyed = parent.parent if parent is not None and parent.type == "literal_element" else None
    if keyed is None or keyed.child_by_field_name("key") != parent:
        return None
    around = innermost(keyed, ("composite_literal",))
    return around.child_by_field_name("type") if around is not None else None


def _is_declaration_in_doubt(uses: Uses, owner: Node, node: Node) -> bool:
    """Whether it overrides or implements the member."""
    own = symbols.owner_of(node)
    if own is None or type_name(own) == type_name(owner):
        return False
    if not symbols.are_related(own, owner):
        return uses.is_related(type_name(own))
    is_implicit = type_name(owner) not in symbols.heading(own) and type_name(own) not in symbols.heading(owner)
    return not is_implicit or (node.parent is not None and node.parent.type in METHODS)


def _is_self_in_doubt(uses: Uses, owner: Node, node: Node) -> bool:
    """Whether the class around has the member, or may inherit it."""
    around = symbols.enclosing(node)
    return around is not None and (around == owner or uses.is_related(type_name(around)))
