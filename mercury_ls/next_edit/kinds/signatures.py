"""Signatures: the parameters of a function were reordered, removed or added, and the arguments of its calls follow.

All of that is one difference between the parameters as they were and as they are: it says which argument of a call is
given to which parameter, and so where each has to stand now.
"""

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from difflib import SequenceMatcher
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace
from tree_sitter import Node

from mercury_engine.api import Edit
from mercury_ls.code import scopes
from mercury_ls.code.differences import WORD, token_changes
from mercury_ls.code.documents import CLOSED, Snapshot, cached
from mercury_ls.code.edits import TextEdit, difference
from mercury_ls.code.languages import kinds
from mercury_ls.code.lexemes import CONSTANTS, KEYWORDS
from mercury_ls.code.modules import Project, family
from mercury_ls.code.symbols import (
    SELVES,
    Symbol,
    declarations,
    enclosing,
    is_qualified,
    owner_of,
    qualifier_of,
    symbol_at,
    text_of,
    type_name,
)
from mercury_ls.code.syntax import innermost
from mercury_ls.next_edit.examples import Example, example
from mercury_ls.next_edit.kinds.calls import (
    NAMED,
    CalledArguments,
    Function,
    argument_of,
    callee,
    calls_by_name,
    gives_receiver,
    is_called,
    named_by,
    rewritten,
    symbol_of,
)
from mercury_ls.next_edit.kinds.rename.unjudged import is_in_doubt, listed_places, sees
from mercury_ls.next_edit.kinds.rename.uses import Uses, knows_imports
from mercury_ls.next_edit.places import Place, named_from
from mercury_ls.next_edit.rule import Rule, quoted
from mercury_ls.next_edit.suppress import never

suppress = never

RECEIVER = re.compile(r"(?:&\s*)?(?:'\w+\s+)?(?:mut\s+)?(?:self|cls|this)\b")
LISTS = frozenset(kinds("formal_parameters method_parameters parameter_list parameters"))
RESTS = frozenset(
    kinds("""
    dictionary_splat_pattern list_splat_pattern rest_pattern spread_parameter variadic_parameter
    variadic_parameter_declaration
    """)
)
NAME_FIELDS = ("name", "declarator", "pattern", "left")
DEFAULT_FIELDS = ("value", "right", "default_value")
QUOTE = re.compile("[\"'`]")
SHORT = 2
CONSTRUCTORS = frozenset({"__init__", "constructor"})
ASSIGNING = frozenset({"assignment", "const_item", "const_spec", "static_item", "var_spec", "variable_declarator"})


class Parameter(Struct, frozen=True):
    """`passing` says how calls give it a value, if they have no choice; what is `rest` collects any number of them."""

    name: str
    passing: str = ""
    is_required: bool = True


class Signature(Rule, frozen=True, kw_only=True):
    """The parameters of `function`, whose name is at `named_at` of its file, were `old` and are `new`. The old ones
    that were `renamed`, each from the name that comes first, have their new names already. Since then calls were
    `given` these arguments by hand."""

    kind = "parameter"
    is_rare = True
    function: str = ""
    named_at: int = 0
    receiver: str = ""
    old: tuple[Parameter, ...] = ()
    new: tuple[Parameter, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    given: tuple[tuple[str, str], ...] = ()

    @property
    def known_as(self) -> str:
        return self.function

    @property
    def due(self) -> frozenset[str]:
        """The parameters that a call may give no value by mistake."""
        had = {parameter.name for parameter in self.old if parameter.is_required} - {new for _, new in self.renamed}
        return frozenset(parameter.name for parameter in self.new if parameter.is_required) - had

    @property
    def went(self) -> list[str]:
        return _missing_in(self.new, self.old)


class JudgedCall(Struct, frozen=True):
    """A call that may have to change: what follows is in `place`, if that is clear; without a text, a model writes the
    `missing` arguments. A call that is not `certain` may be another function's."""

    call: CalledArguments
    certain: bool
    place: Place | None
    missing: tuple[str, ...] = ()


def learn(example: Example) -> Iterable[Signature]:
    """Nothing: only a syntax tree tells a parameter from an argument. See `changed_signatures`."""
    return ()


def changed_signatures(files: Iterable[Snapshot], edits: Sequence[Edit]) -> list[Signature]:
    """What these edits, oldest first, made of parameters, by the latest of them first."""
    signatures = [signature for file in files for signature in _changed_in(file, tuple(edits))]
    return sorted(signatures, key=lambda signature: signature.age)


@cached
def _changed_in(home: Snapshot, edits: tuple[Edit, ...]) -> list[Signature]:
    lists = {listed.start_byte: listed for edit in reversed(edits) for listed in _edited_lists(home, edit)}
    return [signature for listed in lists.values() if (signature := _signature(home, listed, edits)) is not None]


def _edited_lists(home: Snapshot, edit: Edit) -> Iterator[Node]:
    if edit.path != home.path or edit.line >= home.line_count:
        return
    start = home.line_start(edit.line)
    if home.text.startswith(edit.after.rstrip("\r\n"), start):
        touches = token_changes(edit.before, edit.after)
        ends = sorted({start + at for touch in touches for at in (touch.new_start, touch.new_end)})
        lists = (innermost(scopes.node_at(home, at), LISTS) for at in ends)
        yield from (listed for listed in lists if listed is not None and _name_before(listed) is not None)


def _name_before(listed: Node) -> Node | None:
    """The name of the function whose parameters these are."""
    function = listed.parent
    if function is not None and function.type in ("arrow_function", "function_expression"):
        function = function.parent
    named = function and (function.child_by_field_name("name") or function.child_by_field_name("declarator"))
    if function is None or named is None or function.child_by_field_name("result") == listed:
        return None
    if function.parent is not None and function.parent.type == "object":
        return None  # nothing says which objects are like it
    return named if named.end_byte <= listed.start_byte and WORD.fullmatch(text_of(named)) else None


def _signature(home: Snapshot, listed: Node, edits: Sequence[Edit]) -> Signature | None:
    """None if calls are as they have to be, or nothing says which parameter became which."""
    named, at = _name_before(listed), home.offset_of_byte(listed.start_byte)
    if named is None or listed.has_error:
        return None
    function, named_at = text_of(named), home.offset_of_byte(named.start_byte)
    symbol = symbol_of(function, home, named_at, home)
    states = [(age, was) for age, was in _undone(home, at, edits) if was is not None]
    states = [*takewhile(lambda state: text_of(_name_before(state[1])) == function, states)]
    texts = [text_of(listed), *(text_of(was) for _, was in states)]
    ages = [age for (age, _), text, later in zip(states, texts[1:], texts, strict=False) if text != later]
    if symbol.node is None or not ages or not scopes.declares(symbol.node) or _is_overloaded(symbol, home):
        return None
    was = states[-1][1]
    receiver, new = _parameters(listed, symbol, home)
    old_receiver, old = _parameters(was, symbol, home)
    renamed = _renamed(old, new)
    if receiver != old_receiver or renamed is None:
        return None
    old = tuple(replace(parameter, name=renamed.get(parameter.name, parameter.name)) for parameter in old)
    is_kept = [(p.name, p.passing) for p in old] == [(p.name, p.passing) for p in new[: len(old)]]
    if is_kept and not any(parameter.is_required for parameter in new[len(old) :]):
        return None
    return Signature(
        function=function,
        named_at=named_at,
        receiver=receiver,
        old=old,
        new=new,
        renamed=tuple(renamed.items()),
        given=tuple(_given_since(function, new, edits[len(edits) - ages[0] :])),
        path=home.path,
        age=ages[0],
        since=len(edits),
    )


def _given_since(function: str, new: Sequence[Parameter], edits: Iterable[Edit]) -> Iterator[tuple[str, str]]:
    """The arguments that these edits gave to calls, as they are written; strings are decided one by one."""
    for piece in (piece for edit in edits for piece in example(edit.before, edit.after).pieces):
        argument, at = piece.after.strip(" ,\t"), callee(piece.left)
        if argument_of(piece) != (function, False) or at is None or not argument or QUOTE.search(argument):
            continue
        index, named = at[1] + piece.after.lstrip().startswith(","), NAMED.match(argument)
        if named or index < len(new):
            yield (named["name"] if named else new[index].name), argument


def _undone(home: Snapshot, at: int, edits: Sequence[Edit]) -> Iterator[tuple[int, Node | None]]:
    """The age of each edit of the parameters whose bracket opens there, the latest first, and what they were before."""
    now, listed, undone = home, _list_at(home, at), list[tuple[int, int]]()
    for age, edit in enumerate(reversed(edits)):
        line = edit.line - sum(grown for below, grown in undone if edit.line > below)
        first = now.line_of(at)
        last = first if listed is None else now.line_of(now.offset_of_byte(listed.end_byte))
        lines = edit.after.count("\n")
        if edit.path != home.path or not first - max(lines, 1) < line <= last:
            continue
        start, change = now.line_start(line), difference(edit.after, edit.before)
        touches = [touch for touch in token_changes(edit.before, edit.after) if start + touch.new_start <= at]
        if not now.text.startswith(edit.after, start) or any(start + touch.new_end > at for touch in touches):
            return
        now = now.changed(TextEdit(start + change.start, start + change.end, change.text))
        at += sum(touch.end - touch.start - touch.new_end + touch.new_start for touch in touches)
        undone.append((edit.line, lines - edit.before.count("\n")))
        listed = _list_at(now, at)
        yield age, listed


def _list_at(snapshot: Snapshot, at: int) -> Node | None:
    """The parameters whose bracket opens there, if they can be read."""
    node = scopes.node_at(snapshot, at)
    is_list = node is not None and node.type in LISTS and node.start_byte == snapshot.byte(at) and not node.has_error
    return node if is_list else None


def _parameters(listed: Node, symbol: Symbol, home: Snapshot) -> tuple[str, tuple[Parameter, ...]]:
    """What stands before the brackets of a call, and what within them."""
    parameters: list[Parameter] = []
    passing = ""
    nodes = [node for node in listed.named_children if "comment" not in node.type and text_of(node) != "void"]
    receiver = _receiver(nodes, symbol, home)
    for node in nodes[bool(receiver) :]:
        if node.type == "positional_separator":
            parameters = [replace(parameter, passing="position") for parameter in parameters]
        elif node.type == "keyword_separator":
            passing = "name"
        elif not RESTS.isdisjoint(inner.type for inner in (node, *node.named_children[:1])):
            parameters.append(Parameter(text_of(node), "rest", is_required=False))
            passing = "name"
        else:
            has_default = any(node.child_by_field_name(field) for field in DEFAULT_FIELDS) or "optional" in node.type
            # `a, b int` of Go are two.
            for named in node.children_by_field_name("name") or [node]:
                parameters.append(Parameter(_name_of(named) or text_of(named), passing, not has_default))
    return receiver, tuple(parameters)


def _receiver(listed: Sequence[Node], symbol: Symbol, home: Snapshot) -> str:
    """The parameter that calls pass before the dot: the first of a Python method, `self` of Rust."""
    first = text_of(listed[0]) if listed else ""
    if not named_by(home):
        return first if RECEIVER.match(first) else ""
    around = symbol.node and symbol.node.parent and symbol.node.parent.parent
    decorated = around.named_children if around is not None and around.type == "decorated_definition" else []
    is_static = any(text_of(decorator) == "@staticmethod" for decorator in decorated)
    return first if symbol.owner is not None and not is_static and not first.startswith("*") else ""


def _is_overloaded(symbol: Symbol, home: Snapshot) -> bool:
    """Whether its type, or the top of its file, declares the name more than once; in C that only repeats it."""
    return family(home.path) != "c" and len(declarations(text_of(symbol.node), home, symbol)) > 1


def _name_of(parameter: Node) -> str:
    """The name of a parameter, within declarators and types; empty if it is destructured."""
    named = parameter.named_children[0] if parameter.type == "typed_parameter" else parameter
    while inner := next((child for field in NAME_FIELDS if (child := named.child_by_field_name(field))), None):
        named = inner
    return text_of(named) if WORD.fullmatch(text_of(named)) else ""


def _missing_in(parameters: Iterable[Parameter], others: Iterable[Parameter]) -> list[str]:
    names = {parameter.name for parameter in parameters}
    return [other.name for other in others if other.name not in names]


def _renamed(old: Sequence[Parameter], new: Sequence[Parameter]) -> dict[str, str] | None:
    """The new names, by the old ones, of parameters that stand where others stood; None if several may have become one
    another."""
    names = [[parameter.name for parameter in parameters] for parameters in (old, new)]
    if any(len(set(listed)) < len(listed) for listed in names):
        return None
    renamed: dict[str, str] = {}
    for _, i, j, k, m in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
        went = [parameter for parameter in old[i:j] if parameter.name not in names[1]]
        came = [parameter for parameter in new[k:m] if parameter.name not in names[0]]
        if went and came and [p.passing == "rest" for p in went] != [p.passing == "rest" for p in came]:
            return None
        renamed |= {was.name: now.name for was, now in zip(went, came, strict=False)}
    return renamed


def names_of_calls(signature: Signature, home: Snapshot) -> frozenset[str]:
    """The names that a file must contain to call the function: its own, and that of its type. Empty if it is local."""
    function, *constructed = _functions(signature, home, home)
    if function.symbol.local:
        return frozenset()
    owner = {type_name(function.symbol.owner)} if function.symbol.owner is not None else set[str]()
    return frozenset({each.name for each in constructed} or {function.name, *owner})


def find(rule: Signature, snapshot: Snapshot, home: Snapshot | None, project: Project) -> Iterator[Place]:
    """The calls that are clear; of files that are not open, only those that certainly are of the function. What changes
    in an argument that moves does so on the way."""
    judged_calls = [*_judged(rule, snapshot, home, project)] if home is not None else []
    places: list[tuple[CalledArguments, Place]] = []
    for judged in sorted(judged_calls, key=lambda judged: -judged.call.start):
        place = judged.place
        if place is None or not (judged.certain or not _must_be_certain(snapshot)):
            continue
        is_written = place.text is not None
        inner = [changed for changed in places if is_written and place.start <= changed[0].named_at < place.end]
        for call, change in inner:
            was, at = snapshot.text[call.named_at : call.end], call.named_at
            now = was if change.text is None else was[: change.start - at] + change.text + was[change.end - at :]
            place = replace(place, text=(place.text or "").replace(was, now, 1))
        places = [changed for changed in places if changed not in inner]
        places.append((judged.call, replace(place, bound=judged.certain and is_written)))
    yield from (place for _, place in reversed(places))


def _must_be_certain(snapshot: Snapshot) -> bool:
    return snapshot.version == CLOSED and knows_imports(snapshot)


def _judged(rule: Signature, snapshot: Snapshot, home: Snapshot, project: Project) -> Iterator[JudgedCall]:
    """The calls that may have to change."""
    for function in _functions(rule, snapshot, home):
        uses = Uses(function.name, "", function.symbol, home, snapshot, project)
        others = [*_others(uses)]
        around = _class_named(function.symbol.node)
        for name in (function.name, *sorted(uses.other_names), *(["cls"] if around and home is snapshot else [])):
            for call in calls_by_name(name, snapshot):
                node, is_alias, at = scopes.node_at(snapshot, call.named_at), name != function.name, call.named_at
                if node is None or gives_receiver(function, node):
                    continue
                if name == "__init__" and qualifier_of(node) not in SELVES:
                    continue  # it has the object in its brackets
                if name == "cls":
                    certain = enclosing(node) == around and not is_qualified(node)
                else:
                    certain = uses.is_called(name, at) if is_alias else uses.is_certain(at)
                if any(other.is_certain(at) and not (certain and is_base) for other, is_base in others):
                    continue
                may_be = not is_alias and is_called(function, snapshot, at)
                may_be = may_be and (certain or not knows_imports(snapshot) or is_in_doubt(uses, at))
                certain = certain and (may_be or function.symbol.local is None)
                is_open = not certain and bool(others or not _is_named_alike(node, function.symbol))
                if certain or may_be or (not is_alias and _must_be_certain(snapshot)):
                    for judged in _changed_call(rule, call, snapshot, certain):
                        yield replace(judged, place=None, missing=()) if is_open else judged


def _class_named(name: Node | None) -> Node | None:
    """The class of Python that is declared by this name: in its methods `cls` is the class itself."""
    around = name.parent if name is not None else None
    return around if around is not None and around.type == "class_definition" else None


def _is_named_alike(node: Node, symbol: Symbol) -> bool:
    """Whether an object of which nothing states the type is called like that of the method: `store` of `DiskStore`."""
    whose = qualifier_of(node).replace("_", "").lower()
    kind = type_name(symbol.owner).lower() if symbol.owner is not None else ""
    return kind.startswith(whose) or whose.endswith(kind) or (len(whose) > SHORT and kind.endswith(whose))


def _others(uses: Uses) -> Iterator[tuple[Uses, bool]]:
    """The uses of what other types declare by the same name, in the file and in those that it imports, and whether
    the type whose method it is derives from them."""
    owner, snapshot, home, project = uses.symbol.owner, uses.snapshot, uses.home, uses.project
    if owner is None:
        return
    files = {file.path: file for file in (home, snapshot)}
    for path in files.keys() | project.imported_by(snapshot.path):
        file = files.get(path) or project.file(path)
        if file is None:
            continue
        for at in scopes.mentions(file, uses.name):
            symbol = symbol_at(uses.name, uses.name, file, at, snapshot, ())
            if symbol.owner is not None and (path != home.path or type_name(symbol.owner) != type_name(owner)):
                other = Uses(uses.name, "", symbol, file, snapshot, project)
                yield other, other.derives(home, type_name(owner))


def _changed_call(rule: Signature, call: CalledArguments, snapshot: Snapshot, certain: bool) -> Iterator[JudgedCall]:
    values = {name: value for name in rule.due if (value := _value_of(name, rule, snapshot, call))}
    is_clear = not call.is_spread and (named_by(snapshot) or not any(call.names))
    told = _arguments(rule, call, snapshot, values) if is_clear else None
    arguments, came = told or ([], [])
    if told is None:
        if certain or not is_clear:
            yield JudgedCall(call, certain, None)
    elif arguments != [*range(len(call.pieces))]:
        missing = tuple(name for name in came if name not in values)
        place = Place(call.start, call.end, None) if missing else rewritten(snapshot.text, call, arguments)
        if place is None or place.text != snapshot.text[place.start : place.end]:
            place = place and replace(place, is_gap=bool(came) and place.start == place.end)
            yield JudgedCall(call, certain, place, missing)


def _value_of(name: str, rule: Signature, snapshot: Snapshot, call: CalledArguments) -> str:
    """What to give to a new parameter: the variable of its name, or what another call was given by hand."""
    if _is_known(name, snapshot, call):
        return name
    given = dict(rule.given).get(name, "")
    words = {*WORD.findall(NAMED.sub("", given))} - KEYWORDS - CONSTANTS
    return given if all(_is_known(word, snapshot, call) for word in words) else ""


def _functions(rule: Signature, snapshot: Snapshot, home: Snapshot) -> Iterator[Function]:
    """What was edited, and the class if that was its constructor."""
    symbol = symbol_of(rule.function, home, rule.named_at, snapshot)
    yield Function(rule.function, symbol, rule.receiver)
    named = symbol.owner.child_by_field_name("name") if symbol.owner is not None else None
    if named is not None and rule.function in CONSTRUCTORS:
        at = home.offset_of_byte(named.start_byte)
        yield Function(text_of(named), symbol_of(text_of(named), home, at, snapshot))


def _arguments(
    rule: Signature, call: CalledArguments, snapshot: Snapshot, values: Mapping[str, str]
) -> tuple[list[int | str], list[str]] | None:
    """The arguments as they have to be, each the number of an old one or a new text, and the parameters that had none,
    which get these `values`. None if nothing says which argument is for which parameter."""
    has_names, new_names = named_by(snapshot), dict(rule.renamed)
    names = [new_names.get(name, name) for name in call.names]
    if rule.new and rule.new[-1].name.startswith("**") and not {*rule.went}.isdisjoint(names):
        return None  # it may be collected
    # What does not fit the old parameters has some of the new arguments already.
    given = _given(rule.old, names, {parameter.name for parameter in rule.new}) or _given(rule.new, names)
    if given is None:
        return None
    by_position, by_name, rest = given
    kept = {parameter.name for parameter in rule.old if parameter.is_required} - {*rule.went} - rule.due
    if not kept <= by_position.keys() | by_name.keys():
        return None  # it is being written, or another function's
    order = {parameter.name: at for at, parameter in enumerate(rule.new)}
    arguments: list[int | str] = []
    moved: list[str] = []
    named: list[tuple[int, int | str]] = [
        (order.get(name, len(order)), at) for name, at in by_name.items() if name not in rule.went
    ]
    missing: list[str] = []
    is_in_row = True
    for parameter in rule.new:
        name, passing, piece = parameter.name, parameter.passing, by_position.get(parameter.name)
        is_missing = piece is None and name not in by_name and name in rule.due
        missing += [name] if is_missing else []
        value = values.get(name, "")
        is_named = is_missing and (NAMED.match(value) or any(order[name] < at < len(order) for at, _ in named))
        if passing == "rest":
            if rest and not is_in_row:
                return None
            arguments += [] if name.startswith("**") else rest
            rest = rest if name.startswith("**") else []
        elif piece is None and not is_missing:
            is_in_row = is_in_row and passing == "name"
            if name in by_name and passing == "position":
                return None
        elif is_in_row and passing != "name" and not is_named:
            arguments.append(value if piece is None else piece)
        elif not has_names or passing == "position":
            return None
        else:
            is_in_row = is_in_row and passing == "name"
            if piece is not None:
                moved.append(f"{name}={snapshot.text[slice(*call.pieces[piece])]}")
            else:
                before = next((n for n, (at, _) in enumerate(named) if at > order[name]), len(named))
                named.insert(before, (order[name], f"{name}={NAMED.sub('', value)}"))
    return None if rest else ([*arguments, *moved, *(argument for _, argument in named)], missing)


def _given(
    parameters: Sequence[Parameter], names: Sequence[str], also_known: Set[str] = frozenset()
) -> tuple[dict[str, int], dict[str, int], list[int]] | None:
    """Which argument of a call is given to which parameter, by position and by name, and to the one that collects the
    rest; None if the call is none of such a function."""
    count = sum(1 for _ in takewhile(lambda name: not name, names))
    slots = [parameter.name for parameter in parameters if parameter.passing in ("", "position")]
    collecting = [parameter.name.startswith("**") for parameter in parameters if parameter.passing == "rest"]
    by_position, rest = dict(zip(slots, range(count), strict=False)), [*range(len(slots), count)]
    by_name = {name: at for at, name in enumerate(names) if name}
    is_foreign = not by_name.keys() <= {parameter.name for parameter in parameters} | also_known
    is_overfull = (bool(rest) and False not in collecting) or (is_foreign and True not in collecting)
    if is_overfull or "" in names[count:] or not by_position.keys().isdisjoint(by_name):
        return None
    return by_position, by_name, rest


def _is_known(name: str, snapshot: Snapshot, call: CalledArguments) -> bool:
    """Whether a variable of this name has a value at the call."""
    places = scopes.mentions(snapshot, name)
    before = [at for at in places if at < call.named_at]
    if (local := scopes.binding_at(snapshot, call.start - 1, scopes.bindings(snapshot, (name,)))) is not None:
        return any(local.start <= at for at in before)
    first, _ = scopes.function_range(snapshot, call.named_at)
    return any(_is_variable(scopes.node_at(snapshot, at)) for at in (places if first else before))


def _is_variable(node: Node | None) -> bool:
    """Whether it declares a variable at the top of the file, and no function."""
    _, parent = scopes.outermost(node) if node is not None else (None, None)
    if node is None or parent is None or parent.type not in ASSIGNING or not scopes.declares(node):
        return False
    if scopes.is_member(node) or innermost(parent, (*scopes.FUNCTIONS, *scopes.TYPES)) is not None:
        return False
    value = parent.child_by_field_name("value") or parent.child_by_field_name("right")
    return value is None or value.type not in scopes.FUNCTIONS


def calls_left(
    rule: Signature, home: Snapshot, files: Iterable[Snapshot], project: Project, lines_offered: set[tuple[str, int]]
) -> Generator[None, None, str]:
    """Names the calls beside the lines offered that need an argument, those that cannot be judged, and the methods that
    override the function with other parameters; empty if there are none."""
    unclear: list[str] = []
    overriding: list[str] = []
    needing: dict[str, list[str]] = {}
    for file in files:
        functions = _functions(rule, file, home)
        uses = [Uses(function.name, "", function.symbol, home, file, project) for function in functions]
        may_be_meant = not _must_be_certain(file) or (yield from sees(file, home, project))
        for judged in sorted(_judged(rule, file, home, project), key=lambda judged: judged.call.start):
            line = file.line_of(judged.call.named_at)
            if (file.uri, line) in lines_offered:
                continue
            place = named_from(home, file, judged.call.named_at)
            is_doubted = may_be_meant and any(is_in_doubt(use, judged.call.named_at) for use in uses)
            if judged.certain or not _must_be_certain(file):
                for name in judged.missing:
                    needing.setdefault(name, []).append(place)
                unclear += [place] if judged.place is None else []
            elif is_doubted:
                unclear.append(place)
        if may_be_meant:
            overriding += [named_from(home, file, at) for at in _overriding(rule, uses[0])]
        yield
    needs = [f"needs an argument for {quoted(name)}: {listed_places(places)}" for name, places in needing.items()]
    others = ("cannot be judged", unclear), ("overridden with other parameters", overriding)
    return "; ".join([*needs, *(f"{what}: {listed_places(places)}" for what, places in others if places)])


def _overriding(rule: Signature, uses: Uses) -> Iterator[int]:
    """Where other classes of the file declare the method, or seem to, with other parameters than it has now."""
    owner, file = uses.symbol.owner, uses.snapshot
    if owner is None or rule.function in CONSTRUCTORS:
        return
    for at in scopes.mentions(file, uses.name):
        node = scopes.node_at(file, at)
        own = owner_of(node) if node is not None and scopes.declares(node) else None
        listed = node and node.parent and node.parent.child_by_field_name("parameters")
        if node is None or own is None or listed is None or (uses.is_home and own.start_byte == owner.start_byte):
            continue
        _, parameters = _parameters(listed, symbol_of(rule.function, file, at, file), file)
        takes_all = bool(parameters) and all(parameter.passing == "rest" for parameter in parameters)
        is_alike = [parameter.name for parameter in parameters] == [parameter.name for parameter in rule.new]
        if not (takes_all or is_alike) and (uses.is_certain(at) or is_in_doubt(uses, at)):
            yield at


def label(rule: Signature) -> str:
    came = ", ".join(name for name in _missing_in(rule.old, rule.new) if name in rule.due)
    went = ", ".join(rule.went)
    if came and not went:
        return f"add {quoted(came)} to calls of {quoted(rule.function)}"
    return f"remove {quoted(went)}" if went and not came else f"change the arguments of {quoted(rule.function)}"
