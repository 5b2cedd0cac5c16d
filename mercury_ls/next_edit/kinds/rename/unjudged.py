"""What a rename leaves undone: places that may refer to the renamed symbol, where nothing says so for certain."""

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Set
from functools import partial
from itertools import chain, islice
from pathlib import Path, PurePath

from msgspec.structs import replace
from tree_sitter import Node

from mercury_ls.code import scopes, symbols, syntax
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.index import facts
from mercury_ls.code.index.definitions import Declaration, declared_at, declares_at_top, meaning_of, own_members
from mercury_ls.code.index.judgement import OTHER, SAME, UNKNOWN
from mercury_ls.code.index.kinship import Kinship
from mercury_ls.code.index.symbol import Symbol
from mercury_ls.code.languages import kinds
from mercury_ls.code.modules import Project, family, in_import
from mercury_ls.code.parts import kind_of, part_of
from mercury_ls.code.symbols import text_of, type_name
from mercury_ls.code.syntax import innermost, outward
from mercury_ls.next_edit.kinds.rename.declared import assigned_by_its_old_name, is_one_of_several, renamed_symbol
from mercury_ls.next_edit.kinds.rename.documented import spoken_of
from mercury_ls.next_edit.kinds.rename.rule import Rename
from mercury_ls.next_edit.kinds.rename.uses import Uses, uses_in_family
from mercury_ls.next_edit.places import Left, named_from
from mercury_ls.next_edit.rule import in_label
from mercury_ls.wording import counted

MOST_MENTIONS = 1024
MOST_FILES = 48
"""Files besides those of the offer that are looked through, the nearest first."""
MOST_PLACES = 50
MOST_LISTED = 8
SHORTEST_LOCAL = 3
STRINGS = frozenset({"interpreted_string_literal_content", "string_content", "string_fragment"})
REFLECTIVE = frozenset(
    kinds("FieldByName MethodByName attrgetter delattr getattr hasattr methodcaller object setattr spyOn")
)
"""Functions that take the names of members as strings."""
SAYING = frozenset(kinds("critical debug error exception info print warning"))
LISTING = re.compile(r"__(?:all|match_args|slots)__")
FIXTURE = re.compile(r"(?:@.*\n\s*)*?@(?:\w+\.)*fixture\b(?!\([^)@]*\bname\s*=)")
SPELLED_AS_NAME = re.compile(r"[a-z][A-Z]|\w_\w|\d")
"""What no sentence has unless it speaks of the name: in other files, a plain word may mean anything."""
PATH = re.compile(r"\w++(?:[.:]\w++)*+")
ATTRIBUTES = frozenset(name for kind in (bytes, complex, dict, list, set, str, Path, re.Match) for name in dir(kind))
"""Names that objects of anybody have; one that a single class of the project has is likely its own everywhere."""

Places = list[tuple[Snapshot, int]]


def note_of(
    rule: Rename, home: Snapshot, files: Iterable[Snapshot], project: Project, places_offered: Set[tuple[str, int]]
) -> Generator[None, None, Left]:
    """The places beside the `places_offered`, each a file and an offset, and those in text; its note is empty
    if there are none."""
    search = _Search(rule, home, {file.path: file for file in files}, project, places_offered)
    yield from search.look_through()
    left = [*search.in_texts()]
    names = listed_places(named_from(home, *place) for place in left)
    in_text = f"{counted(len(left), 'mention')} in text left: {names}" if left else ""
    return Left("; ".join(filter(None, (search.note, in_text))), tuple(search.places))


def _in_text(rule: Rename, file: Snapshot, beside: Set[tuple[str, int]], start: int, end: int) -> list[int]:
    """Where comments and strings between two places still have the old name."""
    mentions = islice(scopes.mentions(file, rule.before), MOST_MENTIONS)
    left = [at for at in mentions if start <= at < end and (file.uri, at) not in beside]
    return [at for at in left if syntax.inside(file, at) is not None]


def _spoken_of(rule: Rename, home: Snapshot) -> tuple[int, int]:
    """Where a text speaks of what was renamed: of a local in its scope alone. One or two letters may be a word of any
    sentence."""
    local = renamed_symbol(rule, home).local
    if local is not None:
        return spoken_of(home, local) if len(rule.before) >= SHORTEST_LOCAL else (0, 0)
    return (0, 0) if _seen_elsewhere(rule, home) is None else (0, len(home.text))


def _adds_to_module(node: Node) -> bool:
    """Whether it stands in `declare module "./other"` of TypeScript, so that it may be declared there as well."""
    modules = (around for around in outward(node) if around.type == "module")
    return any(kind_of(around.child_by_field_name("name")) == "string" for around in modules)


def listed_places(names: Iterable[str]) -> str:
    all_names = [*dict.fromkeys(names)]
    return ", ".join(all_names[:MOST_LISTED]) + (" …" if len(all_names) > MOST_LISTED else "")


class _Search:
    """What is known of places in doubt, one file after the other: as many as a user may want to see, and one more if
    there are more; `taken` is where their files have the new name. It `is_only` as long as no other declaration has the
    name: then `far` are places of files that do not see the symbol."""

    def __init__(
        self,
        rule: Rename,
        home: Snapshot,
        files: Mapping[str, Snapshot],
        project: Project,
        places_offered: Set[tuple[str, int]],
    ) -> None:
        self.places: Places = []
        self._taken: Places = []
        self._far: Places = []
        self._rule, self._home, self._files, self._project = rule, home, files, project
        self._places_offered = places_offered
        self._is_only = False

    def look_through(self) -> Generator[None, None, None]:
        symbol, rule = _seen_elsewhere(self._rule, self._home), self._rule
        if symbol is None:
            return
        self._is_only = symbol.owner is not None and rule.before not in ATTRIBUTES
        mentioning = islice(self._project.mentioning(rule.before, self._home.path), MOST_FILES)
        for path in dict.fromkeys((*self._files, *mentioning)):
            file = self._file(path, symbol)
            if file is not None:
                yield from self._look_into(file, symbol)
                yield
            if len(self.places) > MOST_PLACES:
                return
        self.places += self._far if self._is_only else []

    @property
    def note(self) -> str:
        rule, home = self._rule, self._home
        if not self.places:
            lines = {home.line_of(at) for uri, at in self._places_offered if uri == home.uri}
            assigned = assigned_by_its_old_name(rule, home, self._project)
            kept = listed_places(named_from(home, home, at) for at in assigned if home.line_of(at) not in lines)
            if kept:
                return f"{in_label(rule.before)} keeps its name where it is assigned: {kept}"
            return "" if self._places_offered else self._why_nothing()
        noun = "more place" if self._places_offered else "place"
        count, names = counted(len(self.places), noun), [named_from(home, *place) for place in self.places]
        if len(self.places) > MOST_PLACES:
            count, names = f"more than {MOST_PLACES} places", [name.rpartition(":")[0] for name in names]
        notes = [f"{count} cannot be judged: {listed_places(names)}"]
        if self._taken:
            places_taken = listed_places(named_from(home, *place) for place in self._taken)
            notes.append(f"the name {in_label(rule.after)} is taken at {places_taken}")
        return "; ".join(notes)

    def _why_nothing(self) -> str:
        """Empty if nothing else has the name, or no declaration got a new one."""
        rule, home, project = self._rule, self._home, self._project
        name, symbol = in_label(rule.before), renamed_symbol(rule, home)
        if is_one_of_several(rule, home, project):
            return f"{name} is declared several times, and nothing tells which of them was meant"
        if rule.age or symbol.node is None or not scopes.declares(symbol.node):
            return ""
        if symbol.local is not None and not _adds_to_module(symbol.node):
            return ""
        here = (scopes.mentions(file, rule.before) for file in self._files.values())
        others = chain(here, project.mentioning(rule.before, home.path))
        return f"nothing says that other places with the name {name} refer to it" if any(others) else ""

    def in_texts(self) -> Iterator[tuple[Snapshot, int]]:
        """The mentions in comments and strings, also of the other files that change, where no plain word would be about
        it."""
        rule, home = self._rule, self._home
        beside = self._places_offered | {(file.uri, at) for file, at in self.places}
        yield from ((home, at) for at in _in_text(rule, home, beside, *_spoken_of(rule, home)))
        changed = {uri for uri, _ in self._places_offered} - {home.uri}
        for file in self._files.values() if SPELLED_AS_NAME.search(rule.before) else ():
            if file.uri in changed:
                yield from ((file, at) for at in _in_text(rule, file, beside, 0, len(file.text)))

    def _file(self, path: str, symbol: Symbol) -> Snapshot | None:
        """The file if it may have a place in doubt; those of the offer may."""
        if path in self._files:
            return self._files[path]
        file = self._project.file(path)
        return file if file is not None and _may_hold(file, symbol, self._rule.before) else None

    def _look_into(self, file: Snapshot, symbol: Symbol) -> Generator[None, None, None]:
        rule, home = self._rule, self._home
        uses = uses_in_family(rule.before, rule.after, symbol, home, file, self._project)
        does_see = _gets_fixture(file, symbol, home) or self._project.sees(file, uses.home)
        if not does_see and not self._is_only and not _may_hold(file, symbol, rule.before):
            return
        for at in islice(scopes.mentions(file, rule.before), MOST_MENTIONS):
            yield from self._look_at(uses, at, symbol, does_see=does_see)
            if len(self.places) > MOST_PLACES:
                return
        has_places = bool(self.places) and self.places[-1][0] is file
        if has_places and symbol.module_level and uses.taken_at is not None:
            self._taken.append((file, uses.taken_at))

    def _look_at(self, uses: Uses, at: int, symbol: Symbol, *, does_see: bool) -> Generator[None, None, None]:
        self._is_only = self._is_only and (yield from self._may_be_only(uses, at))
        if (uses.snapshot.uri, at) in self._places_offered:
            return
        is_open = is_in_doubt if does_see else _is_path_in_string
        if (yield from self._project.in_turns(partial(is_open, uses, at))):
            if (yield from self._counts(uses, at, symbol)):
                self.places.append((uses.snapshot, at))
        elif self._is_only and not does_see:
            yield from self._look_far(uses, at)

    def _may_be_only(self, uses: Uses, at: int) -> Generator[None, None, bool]:
        is_certain = yield from self._project.in_turns(partial(uses.is_certain, at))
        return is_certain or not _is_another_declaration(uses, at)

    def _look_far(self, uses: Uses, at: int) -> Generator[None, None, None]:
        if len(self._far) < MOST_PLACES and (yield from self._project.in_turns(partial(is_in_doubt, uses, at))):
            self._far.append((uses.snapshot, at))

    def _counts(self, uses: Uses, at: int, symbol: Symbol) -> Generator[None, None, bool]:
        """A certain place of a file that is not part of the offer is counted by another note; not so if the file does
        not have the name of the type."""
        owner, file = symbol.owner, uses.snapshot
        if file.path in self._files or (owner is not None and type_name(owner) not in file.text):
            return True
        return not (yield from self._project.in_turns(partial(uses.is_certain, at)))


def _seen_elsewhere(rule: Rename, home: Snapshot) -> Symbol | None:
    """What was renamed, unless it is a local, or a use got another name."""
    symbol = renamed_symbol(rule, home)
    if symbol.node is None or (symbol.local is not None and not symbol.function):
        return None
    is_of_self = symbols.is_of_self(symbol.node)
    if symbol.owner is None and is_of_self:
        return replace(symbol, owner=symbols.enclosing(symbol.node))
    return symbol if is_of_self or scopes.declares(symbol.node) else None


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


def _is_fixture(declared: Node | None) -> bool:
    """Whether pytest gives what this function returns to parameters of its name."""
    around = declared and declared.parent and declared.parent.parent
    return kind_of(around) == "decorated_definition" and FIXTURE.match(text_of(around)) is not None


def _gets_fixture(file: Snapshot, symbol: Symbol, home: Snapshot) -> bool:
    """Whether pytest gives the fixture to tests there without an import."""
    path = PurePath(home.path)
    return path.name == "conftest.py" and _is_fixture(symbol.node) and PurePath(file.path).is_relative_to(path.parent)


def _asks_for_fixture(uses: Uses, node: Node) -> bool:
    """Whether it is a parameter as tests and fixtures have them, in a file that has no fixture of this name itself."""
    function = innermost(node, scopes.FUNCTIONS)
    if not scopes.declares(node) or not scopes.in_parameters(uses.snapshot, uses.offset_of(node)):
        return False
    if function is None or not part_of(function, "name"):
        return False
    if innermost(function.parent, scopes.FUNCTIONS) is not None:
        return False
    return uses.is_home or not declares_at_top(uses.project, uses.snapshot, uses.name)


def is_in_doubt(uses: Uses, offset: int) -> bool:
    """Whether nothing says that the name there is something else."""
    node, file, symbol = scopes.node_at(uses.snapshot, offset), uses.snapshot, uses.symbol
    inside = syntax.inside(file, offset)
    if node is None or inside == "comment":
        return False
    if node.type in STRINGS and inside == "string":
        return symbol.local is None and _is_named_by_string(uses, node)
    if symbol.local is not None:
        return _is_keyword_in_doubt(uses, node) or _is_parameter_of_override(uses, node)
    if _is_fixture(symbol.node) and _asks_for_fixture(uses, node):
        return True
    verdict = uses.judgement(offset)
    return verdict is UNKNOWN or (verdict is SAME and (uses.kin is not None or not uses.is_home))


def _is_path_in_string(uses: Uses, offset: int) -> bool:
    """Whether a string of Python has the path of the symbol, as far as its file is called so."""
    node = scopes.node_at(uses.snapshot, offset)
    stem = PurePath(uses.home.path).stem
    path = _path_in(text_of(node), uses) if kind_of(node) in STRINGS else None
    return path is not None and stem in path.split(".")


def _path_in(content: str, uses: Uses) -> str | None:
    """What stands before the name in a string of Python that is a dotted path."""
    if not PATH.fullmatch(content):
        return None
    path = re.match(rf"(?P<path>\w+(?:\.\w+)*)[.:]{re.escape(uses.name)}(?!\w)", content)
    return path["path"] if path is not None and family(uses.snapshot.path) == "python" else None


def _is_keyword_in_doubt(uses: Uses, node: Node) -> bool:
    """Whether it is a keyword of a call that may give a value to the parameter that was renamed."""
    called = _function_of_keyword(node)
    last = symbols.name_of_callee(called)
    declared = uses.symbol.node
    if called is None or last is None or declared is None:
        return False
    owner, name = symbols.enclosing(declared), text_of(last)
    if owner is not None and uses.symbol.function == type_name(owner) != name:
        return _may_construct(uses, node, called, last, owner)
    if uses.function is None or name != uses.symbol.function:
        return _is_alias(uses, called, last)
    at = uses.offset_of(last)
    is_open = uses.function.is_certain(at) or is_in_doubt(uses.function, at)
    return is_open or _is_variable(uses, called) or _is_alias(uses, called, last)


def _function_of_keyword(node: Node) -> Node | None:
    """What is called with it, by `partial` in the end."""
    called = symbols.function_of_keyword(node)
    if called is None or symbols.last_name(called) != "partial":
        return called
    given = part_of(called.parent, "arguments")
    return given.named_children[0] if given is not None else None


def _may_construct(uses: Uses, node: Node, called: Node, last: Node, owner: Node) -> bool:
    """Whether the keyword may be one of a constructor's, which classes that derive from its own inherit or call."""
    kin, file, name = Kinship(uses.symbol.function, owner, uses.home, uses.project), uses.snapshot, text_of(last)
    around = symbols.enclosing(node)
    if around is not None and _is_of_class_around(name, called):
        return kin.may_derive(file, around)
    if kin.of_class(file, name, uses.offset_of(called)) is not OTHER:
        return True
    is_held = _is_variable(uses, called) and kin.of_object(file, called) is not OTHER
    return is_held or _is_alias(uses, called, last)


def _is_of_class_around(function: str, called: Node) -> bool:
    """Whether it is the class around that is called, or the constructor of its base."""
    listed = part_of(innermost(called, ("function_definition",)), "parameters")
    first = listed.named_children[0] if listed is not None and listed.named_children else None
    is_cls = text_of(called) == text_of(first) == "cls"
    return is_cls or function == "__init__" or text_of(called) in ("self.__class__", "type(self)")


def _is_variable(uses: Uses, called: Node) -> bool:
    """Whether the file declares it as a variable, which may hold any function or class."""
    if called.type != "identifier":
        return False
    nodes = declared_at(uses.snapshot, text_of(called), uses.offset_of(called))
    return any(not in_import(node) and Declaration(uses.snapshot, node).item is None for node in nodes)


def _is_alias(uses: Uses, called: Node, last: Node) -> bool:
    """Whether it is a variable that is given the function: `read = rows.read`."""
    owner = Declaration.of(uses.snapshot, symbols.enclosing(called)) if symbols.is_of_self(last) else None
    if owner is not None:
        definitions = tuple(own_members(uses.project, owner, text_of(last)))
    else:
        definitions = meaning_of(uses.project, uses.snapshot, text_of(called), uses.offset_of(called)).definitions
    stated = (facts.of_name(definition.file, definition.name) for definition in definitions)
    values = (value for of_name in stated for value in of_name.get("value", ()))
    return any(symbols.last_name(value) == uses.symbol.function for value in values)


def _is_parameter_of_override(uses: Uses, node: Node) -> bool:
    """Whether a method has the parameter too that overrides the one whose parameter was renamed, or is overridden."""
    named = part_of(innermost(node, scopes.FUNCTIONS), "name") if scopes.declares(node) else None
    if named is None or uses.function is None or text_of(named) != uses.function.name:
        return False
    if family(uses.snapshot.path) != "python" or not scopes.in_parameters(uses.snapshot, uses.offset_of(node)):
        return False
    at, owner = uses.offset_of(named), uses.function.symbol.owner
    if owner is None or symbols.owner_of(named) in (None, owner):
        return False
    return uses.function.is_certain(at) or is_in_doubt(uses.function, at)


def _is_named_by_string(uses: Uses, node: Node) -> bool:
    """Whether a program may look the name up that this string contains."""
    content, literal, owner = text_of(node), node.parent, uses.symbol.owner
    around = literal.parent if literal is not None else None
    if literal is None or around is None or literal.named_children[0].type == "interpolation":
        return False
    is_python = family(uses.snapshot.path) == "python"
    if is_python and owner is None and any(outer.type == "type" for outer in outward(around)):
        return True
    if (path := _path_in(content, uses)) is not None:
        return owner is None or path.split(".")[-1] == type_name(owner)
    if content != uses.name:
        return False
    listing = innermost(around, ("assignment", "augmented_assignment"))
    if LISTING.fullmatch(text_of(part_of(listing, "left"))):
        return around.type in ("list", "tuple", "set")
    if around.type in ("arguments", "argument_list"):
        return _takes_names(uses, around, is_python=is_python)
    if owner is not None and around.type == "subscript":
        return symbols.last_name(around.child_by_field_name("value")) == type_name(owner)  # an enumeration's member
    return _is_key_of_object(uses, around)


def _takes_names(uses: Uses, arguments: Node, *, is_python: bool) -> bool:
    """Whether a function that is called with these may look up the name that it is given."""
    called = symbols.last_name(part_of(arguments.parent, "function"))
    if called in REFLECTIVE:
        return True
    return is_python and uses.symbol.owner is None and called not in {*SAYING, uses.name}


def _is_key_of_object(uses: Uses, around: Node) -> bool:
    """Whether JavaScript finds a member by it: `row["name"]`, `Pick<Row, "name">`."""
    if uses.kin is None or family(uses.snapshot.path) != "javascript":
        return False
    if around.type == "subscript_expression":
        whose = around.child_by_field_name("object")
        return whose is not None and uses.kin.of_object(uses.snapshot, whose) is not OTHER
    listed = around.parent if around.type == "literal_type" else None
    if listed is None:
        return False
    return listed.type != "type_arguments" or uses.kin.of_annotation(uses.snapshot, listed) is not OTHER
