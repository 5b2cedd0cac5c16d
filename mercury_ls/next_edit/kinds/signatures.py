"""Signatures: the parameters of a function were reordered, removed or added, and the arguments of its calls follow.

All of that is one difference between the parameters as they were and as they are: it says which argument of a call is
given to which parameter, and so where each has to stand now.

After `def area(w, h)` became `def area(h, w, unit)`, the call `area(2, 3)` becomes `area(3, 2, unit)` where a variable
`unit` is in scope, or gets what the user has just added to another call; else the offer names the call that still needs
an argument. Methods that override a changed one keep their own parameters. A call follows only if an import, an
annotation or a constructor states what it calls: a name alone states nothing, and the offer says so.
"""

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from difflib import SequenceMatcher
from functools import partial
from itertools import chain, takewhile

from msgspec import Struct
from msgspec.structs import replace
from tree_sitter import Node

from mercury_engine.api import Edit
from mercury_ls.code import scopes, symbols, syntax
from mercury_ls.code.differences import WORD, token_changes
from mercury_ls.code.documents import Snapshot, cached
from mercury_ls.code.edits import difference
from mercury_ls.code.index.definitions import Declaration
from mercury_ls.code.index.judgement import SAME
from mercury_ls.code.index.symbol import Symbol, symbol_at
from mercury_ls.code.index.types import Type, members
from mercury_ls.code.languages import kinds
from mercury_ls.code.lexemes import CONSTANTS, KEYWORDS
from mercury_ls.code.modules import Project, family, in_import, is_exported
from mercury_ls.code.parts import kind_of, part_of, parts_of
from mercury_ls.code.symbols import text_of, type_name
from mercury_ls.code.syntax import innermost
from mercury_ls.next_edit.examples import Example, example
from mercury_ls.next_edit.kinds.calls import (
    NAMED,
    Argument,
    CalledArguments,
    argument_of,
    bracketed,
    callee,
    calls_by_name,
    named_by,
    rewritten,
)
from mercury_ls.next_edit.kinds.rename.unjudged import is_in_doubt, listed_places
from mercury_ls.next_edit.kinds.rename.uses import Uses, knows_imports
from mercury_ls.next_edit.places import Left, Place, named_from
from mercury_ls.next_edit.rule import Rule, in_label
from mercury_ls.next_edit.suppress import never

suppress = never

RECEIVER = re.compile(r"(?:&\s*)?(?:'\w+\s+)?(?:mut\s+)?(?:self|cls|this)\b")
LISTS = frozenset(
    kinds("class_parameters formal_parameters function_value_parameters method_parameters parameter_list parameters")
)
RESTS = frozenset(
    kinds("""
    dictionary_splat_pattern list_splat_pattern rest_pattern spread_parameter variadic_parameter
    variadic_parameter_declaration
    """)
)
NAME_FIELDS = ("name", "declarator", "pattern", "left")
DEFAULT_FIELDS = ("value", "right", "default_value")
QUOTE = re.compile("[\"'`]")
VARIABLE = re.compile(r"(?<![\w.])[^\W\d]\w*")
CONSTRUCTORS = {"__init__": ("cls",), "constructor": ("super", "this")}
"""And what their class is called within itself, or in one that derives from it."""
CLASS_OF_SELF = re.compile(r"\b(?:type\(self\)|self\.__class__)\(")
"""A class of Python that may be derived from the one around."""
OVERRIDING = "overridden with other parameters"
DOCTEST = (">>> ", "... ")
INHERITING = "inherited by classes whose calls cannot be judged"
UNTOLD = "nothing says which parameter became which"
TRANSPARENT = re.compile(
    r"@(?:\w+\.)*(?:abstractmethod|asynccontextmanager|cache|classmethod|contextmanager|final|lru_cache|override"
    r"|staticmethod)\b"
)
"""Decorators that pass on the arguments that they are given, and no others."""
ASSIGNING = frozenset(
    kinds("assignment const_item const_spec property_declaration static_item var_spec variable_declarator")
)


class Parameter(Struct, frozen=True):
    """`passing` says how calls give it a value, if they have no choice; what is `rest` collects any number of them. Its
    `default` is written out if it means the same everywhere."""

    name: str
    passing: str = ""
    is_required: bool = True
    default: str = ""


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
    doubt: str = ""
    """Why nothing says what becomes of its calls."""

    @property
    def known_as(self) -> str:
        return self.function

    @property
    def done(self) -> str:
        return f"the parameters of {in_label(self.function)} changed"

    @property
    def due(self) -> frozenset[str]:
        """The parameters that a call may give no value by mistake."""
        had = {parameter.name for parameter in self.old if parameter.is_required} - {new for _, new in self.renamed}
        return frozenset(parameter.name for parameter in self.new if parameter.is_required) - had

    @property
    def order(self) -> dict[str, int]:
        return {parameter.name: number for number, parameter in enumerate(self.new)}

    @property
    def went(self) -> list[str]:
        return _missing_in(self.new, self.old)


class JudgedCall(Struct, frozen=True):
    """A call that may have to change: what follows is in `place`, if that is clear; without a text, nothing tells the
    `missing` arguments. A call that is not `certain` may be another function's, and has no place."""

    call: CalledArguments
    certain: bool
    place: Place | None
    arguments: tuple[Argument, ...] = ()
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
    if not home.text.startswith(edit.after.rstrip("\r\n"), start):
        return
    touches = token_changes(edit.before, edit.after)
    ends = {at for touch in touches for at in (touch.new_start, touch.new_end)}
    for at in sorted(ends):
        listed = innermost(scopes.node_at(home, start + at), LISTS)
        if listed is not None and _name_before(listed) is not None:
            yield listed


def _name_before(listed: Node) -> Node | None:
    """The name of the function whose parameters these are."""
    function = listed.parent
    if function is not None and function.type in ("arrow_function", "function_expression", "primary_constructor"):
        function = function.parent
    named = part_of(function, "name", "declarator")
    if function is None or named is None or part_of(function, "result") == listed:
        return None
    if kind_of(function.parent) == "object":
        return None  # nothing says which objects are like it
    is_name = WORD.fullmatch(text_of(named).removeprefix("#")) is not None
    return named if named.end_byte <= listed.start_byte and is_name else None


def _signature(home: Snapshot, listed: Node, edits: Sequence[Edit]) -> Signature | None:
    """None if calls are as they have to be, or nothing says which parameter became which."""
    named = _name_before(listed)
    if named is None or listed.has_error:
        return None
    function = text_of(named).removeprefix("#")
    named_at = home.offset_of_byte(named.end_byte) - len(function)
    symbol = symbol_at(function, function, home, named_at)
    changes = _changes(home, listed, text_of(named), edits)
    if not changes or symbol.node is None or not scopes.declares(symbol.node):
        return None
    (latest, _), (_, was) = changes[0], changes[-1]
    receiver, new = _parameters(listed, symbol, home)
    old_receiver, old = _parameters(was, symbol, home)
    if receiver != old_receiver:
        return None
    renamed = _renamed(old, new)
    doubt = _doubt(symbol.node, symbol, home) or (UNTOLD if renamed is None else "")
    renamed = renamed or {}
    old = tuple(replace(parameter, name=renamed.get(parameter.name, parameter.name)) for parameter in old)
    signature = Signature(
        function=function,
        named_at=named_at,
        receiver=receiver,
        old=old,
        new=new,
        renamed=tuple(renamed.items()),
        given=tuple(_given_since(function, new, edits[len(edits) - latest :])),
        doubt=doubt,
        path=home.path,
        age=latest,
        since=len(edits),
    )
    is_kept = [(p.name, p.passing) for p in old] == [(p.name, p.passing) for p in new[: len(old)]]
    return None if is_kept and not signature.due else signature


def _changes(home: Snapshot, listed: Node, name: str, edits: Sequence[Edit]) -> list[tuple[int, Node]]:
    """The ages of the edits that changed the parameters, the latest first, and what these were before, as long as the
    function had this name."""
    changes: list[tuple[int, Node]] = []
    later = listed
    for age, was in _undone(home, home.offset_of_byte(listed.start_byte), edits):
        if was is None:
            continue
        if text_of(_name_before(was)) != name:
            break
        if text_of(was) != text_of(later):
            changes.append((age, was))
        later = was
    return changes


def _doubt(node: Node, symbol: Symbol, home: Snapshot) -> str:
    """Why nothing says which parameters calls have in mind: in C, declarations merely repeat each other."""
    name, is_member = text_of(node), scopes.is_member(node)
    declared = symbol.declarations(name, home) if family(home.path) != "c" else ()
    alike = [other for other in declared if scopes.is_member(other) == is_member and not _is_exported(other)]
    if len(alike) > 1:
        return f"{in_label(name)} is declared more than once"
    if symbols.has_several_constructors(node.parent):
        return f"{in_label(name)} has several constructors"
    if any(not TRANSPARENT.match(decorator) for decorator in _decorators(symbol)):
        return "a decorator may change the arguments"
    return ""


def _decorators(symbol: Symbol) -> list[str]:
    """Those of a function of Python."""
    around = symbol.node and symbol.node.parent and symbol.node.parent.parent
    if around is None or around.type != "decorated_definition":
        return []
    return [text_of(child) for child in around.named_children if child.type == "decorator"]


def _given_since(function: str, new: Sequence[Parameter], edits: Iterable[Edit]) -> Iterator[tuple[str, str]]:
    """The arguments that these edits gave to calls, as they are written; strings are decided one by one."""
    for piece in chain.from_iterable(example(edit.before, edit.after).pieces for edit in edits):
        place = callee(piece.left)
        if place is None or argument_of(piece) != (function, False):
            continue
        argument = piece.after.strip(" ,\t")
        if not argument or QUOTE.search(argument):
            continue
        index = place[1] + piece.after.lstrip().startswith(",")
        if named := NAMED.match(argument):
            yield named["name"], argument
        elif index < len(new):
            yield new[index].name, argument


def _undone(home: Snapshot, at: int, edits: Sequence[Edit]) -> Iterator[tuple[int, Node | None]]:
    """The age of each edit of the parameters whose bracket opens there, the latest first, and what they were before."""
    now, listed, undone = home, bracketed(home, at), list[tuple[int, int]]()
    for age, edit in enumerate(reversed(edits)):
        line = edit.line - sum(grown for below, grown in undone if edit.line > below)
        first = now.line_of(at)
        last = first if listed is None else now.line_of(now.offset_of_byte(listed.end_byte))
        lines = edit.after.count("\n")
        if edit.path != home.path or not first - max(lines, 1) < line <= last:
            continue
        start = now.line_start(line)
        touches = [touch for touch in token_changes(edit.before, edit.after) if start + touch.new_start <= at]
        if not now.text.startswith(edit.after, start) or any(start + touch.new_end > at for touch in touches):
            return
        now = now.changed(difference(edit.after, edit.before).moved(start))
        at += sum(touch.end - touch.start - touch.new_end + touch.new_start for touch in touches)
        undone.append((edit.line, lines - edit.before.count("\n")))
        listed = bracketed(now, at)
        yield age, listed


def _parameters(listed: Node, symbol: Symbol, home: Snapshot) -> tuple[str, tuple[Parameter, ...]]:
    """What stands before the brackets of a call, and what within them."""
    parameters: list[Parameter] = []
    passing = ""
    nodes = [node for node in symbols.parameters_in(listed) if text_of(node) != "void"]
    receiver = _receiver(nodes, symbol, home)
    for node in nodes[bool(receiver) :]:
        if node.type == "positional_separator":
            parameters = [replace(parameter, passing="position") for parameter in parameters]
        elif node.type == "keyword_separator":
            passing = "name"
        elif _is_rest(node):
            parameters.append(Parameter(text_of(node), "rest", is_required=False))
            passing = "name"
        else:
            value = part_of(node, *DEFAULT_FIELDS) or symbols.default_beside(node)
            is_required, default = value is None and "optional" not in node.type, _literal(value)
            # `a, b int` of Go are two.
            for named in parts_of(node, "name") or [node]:
                parameters.append(Parameter(_name_of(named) or text_of(named), passing, is_required, default))
    return receiver, tuple(parameters)


def _is_rest(parameter: Node) -> bool:
    """Whether it collects any number of arguments."""
    modifiers = [node for node in (parameter.prev_sibling, *parameter.named_children[:1]) if node is not None]
    is_rest = not RESTS.isdisjoint(node.type for node in (parameter, *parameter.named_children[:1]))
    return is_rest or any(node.type.endswith("modifiers") and "vararg" in text_of(node).split() for node in modifiers)


def _receiver(listed: Sequence[Node], symbol: Symbol, home: Snapshot) -> str:
    """The parameter that calls pass before the dot: the first of a Python method, `self` of Rust."""
    first = text_of(listed[0]) if listed else ""
    if family(home.path) != "python":
        return first if RECEIVER.match(first) else ""
    if symbol.owner is None or first.startswith("*"):
        return ""
    return first if "@staticmethod" not in _decorators(symbol) else ""


def _name_of(parameter: Node) -> str:
    """The name of a parameter, within declarators and types; empty if it is destructured."""
    named = parameter.named_children[0] if parameter.type == "typed_parameter" else parameter
    while inner := part_of(named, *NAME_FIELDS):
        named = inner
    return text_of(named) if WORD.fullmatch(text_of(named)) else ""


def _literal(value: Node | None) -> str:
    """The value as it is written, if it means the same everywhere: empty if it has names."""
    waiting = [value] if value is not None else []
    for node in waiting:
        waiting += node.named_children
    return "" if any("identifier" in node.type for node in waiting) else text_of(value)


def _missing_in(parameters: Iterable[Parameter], others: Iterable[Parameter]) -> list[str]:
    names = {parameter.name for parameter in parameters}
    return [other.name for other in others if other.name not in names]


def _renamed(old: Sequence[Parameter], new: Sequence[Parameter]) -> dict[str, str] | None:
    """The new names, by the old ones, of parameters that stand where others stood; None if several may have become one
    another."""
    names, new_names = [parameter.name for parameter in old], [parameter.name for parameter in new]
    if len({*names}) < len(names) or len({*new_names}) < len(new_names):
        return None
    renamed: dict[str, str] = {}
    for _, i, j, k, m in SequenceMatcher(None, names, new_names, autojunk=False).get_opcodes():
        went = [parameter for parameter in old[i:j] if parameter.name not in new_names]
        came = [parameter for parameter in new[k:m] if parameter.name not in names]
        if not went or not came:
            continue
        if [*map(_is_collecting, went)] != [*map(_is_collecting, came)]:
            return None
        renamed |= {was.name: now.name for was, now in zip(went, came, strict=True)}
    return renamed


def _is_collecting(parameter: Parameter) -> bool:
    return parameter.passing == "rest"


def names_of_calls(signature: Signature, home: Snapshot) -> frozenset[str]:
    """The names that a file must contain to call the function: its own, and that of its type. Empty if it is local."""
    (name, symbol), *constructed = _functions(signature, home)
    if symbol.local:
        return frozenset()
    names = {name for name, _ in constructed} or {name, type_name(symbol.owner)}
    return frozenset(names - {""})


def find(rule: Signature, snapshot: Snapshot, home: Snapshot | None, project: Project) -> Iterator[Place]:
    """The calls that certainly are of the function. What changes in an argument that moves does so on the way."""
    judged_calls = [*_judged(rule, snapshot, home, project)] if home is not None else []
    places: list[Place] = []
    for judged in sorted(judged_calls, key=lambda judged: -judged.call.start):
        place = judged.place
        if place is not None and place.text is not None:
            within = [inner for inner in places if place.start <= inner.start and inner.end <= place.end]
            places = [inner for inner in places if inner not in within]
            composed = rewritten(snapshot.text, judged.call, judged.arguments, within)
            place = composed and replace(place, text=composed.text, bound=True)
        places += [place] if place is not None else []
    yield from reversed(places)


def _judged(rule: Signature, snapshot: Snapshot, home: Snapshot, project: Project) -> Iterator[JudgedCall]:
    """The calls that may have to change."""
    for uses in _called_as(rule, home, snapshot, project):
        names = (uses.name, *sorted(uses.other_names), *CONSTRUCTORS.get(uses.name, ()))
        for call, name in ((call, called_as) for called_as in names for call in calls_by_name(called_as, snapshot)):
            node = scopes.node_at(snapshot, call.named_at)
            if node is None or _is_overridden(uses, node):
                continue
            certain = _is_certain(uses, name, node)
            if not certain and (name != uses.name or not is_in_doubt(uses, call.named_at)):
                continue
            given = _with_receiver(rule) if _gives_receiver(rule, uses, node) else rule
            judged = _judged_call(given, call, snapshot, certain)
            if judged is not None:
                yield judged


def _is_overridden(uses: Uses, node: Node) -> bool:
    whose = symbols.qualifier_node(node)
    return whose is not None and uses.kin is not None and uses.kin.is_overridden(uses.snapshot, whose)


def _is_certain(uses: Uses, name: str, node: Node) -> bool:
    """Whether this name of the function, of its alias or of the class whose constructor it is stands for it."""
    at = uses.offset_of(node)
    if name in CONSTRUCTORS.get(uses.name, ()):
        return _is_constructed(name, uses, node)
    return uses.is_certain(at) if name == uses.name else uses.is_called(name, at)


def _is_constructed(name: str, uses: Uses, node: Node) -> bool:
    """Whether the class around is the one whose constructor it is, or with `super` one right below it."""
    around = symbols.enclosing(node)
    if around is None or symbols.is_qualified(node):
        return False
    if name == "super":
        return uses.kin is not None and uses.kin.is_right_below(uses.snapshot, around)
    is_new = name != "this" or kind_of(node.parent) == "new_expression"
    return is_new and around == uses.symbol.owner


def _gives_receiver(rule: Signature, uses: Uses, node: Node) -> bool:
    """Whether the call has in its brackets what stands before them elsewhere: `Store.save(store, path)`."""
    if not rule.receiver or rule.receiver.startswith("cls") or "@classmethod" in _decorators(uses.symbol):
        return False
    whose = symbols.qualifier_node(node)
    if whose is None or uses.kin is None or text_of(whose) in symbols.SELVES:
        return False
    return uses.kin.of_class(uses.snapshot, text_of(whose), uses.offset_of(whose)) is SAME


def _with_receiver(rule: Signature) -> Signature:
    receiver = Parameter(rule.receiver, "position")
    return replace(rule, old=(receiver, *rule.old), new=(receiver, *rule.new))


def _judged_call(rule: Signature, call: CalledArguments, snapshot: Snapshot, certain: bool) -> JudgedCall | None:
    """None if it is as it has to be, or seems to be another function's."""
    unclear = JudgedCall(call, certain, None)
    if call.is_spread or (any(call.names) and not named_by(snapshot)):
        return unclear
    values = {name: value for name in rule.due if (value := _value_of(name, rule, snapshot, call))}
    told = _arguments(rule, call, snapshot, values)
    if told is None:
        return unclear if certain else None
    arguments, came = told
    if arguments == [*range(len(call.pieces))] and not rule.doubt:
        return None
    if rule.doubt or not certain:
        return unclear
    missing = [name for name in came if name not in values]
    return _changed_call(call, arguments, came, missing, snapshot)


def _changed_call(
    call: CalledArguments, arguments: list[Argument], came: list[str], missing: list[str], snapshot: Snapshot
) -> JudgedCall | None:
    """None if nothing is left to change."""
    place = Place(call.start, call.end, None) if missing else rewritten(snapshot.text, call, arguments)
    judged = JudgedCall(call, True, place, tuple(arguments), tuple(missing))
    if place is None:
        return judged
    if place.text == snapshot.text[place.start : place.end]:
        return None
    is_gap = bool(came) and place.start == place.end
    return replace(judged, place=replace(place, is_gap=is_gap))


def _value_of(name: str, rule: Signature, snapshot: Snapshot, call: CalledArguments) -> str:
    """What to give to a new parameter: the variable of its name, or what another call was given by hand; and to one
    that had a default, this."""
    if (was := next((parameter for parameter in rule.old if parameter.name == name), None)) is not None:
        return "" if rule.went else was.default
    if _is_known(name, snapshot, call):
        return name
    given = dict(rule.given).get(name, "")
    words = {*VARIABLE.findall(NAMED.sub("", given))} - KEYWORDS - CONSTANTS
    return given if all(_is_known(word, snapshot, call) for word in words) else ""


def _functions(rule: Signature, home: Snapshot) -> Iterator[tuple[str, Symbol]]:
    """What was edited, and the class if that was its constructor, which has the name of the class in Java."""
    symbol = symbol_at(rule.function, rule.function, home, rule.named_at)
    named = part_of(symbol.owner, "name")
    yield "constructor" if rule.function == text_of(named) else rule.function, symbol
    if named is not None and rule.function in (*CONSTRUCTORS, text_of(named)):
        name, at = text_of(named), home.offset_of_byte(named.start_byte)
        yield name, symbol_at(name, name, home, at)


def _called_as(rule: Signature, home: Snapshot, snapshot: Snapshot, project: Project) -> list[Uses]:
    return [Uses(name, "", symbol, home, snapshot, project) for name, symbol in _functions(rule, home)]


def _arguments(
    rule: Signature, call: CalledArguments, snapshot: Snapshot, values: Mapping[str, str]
) -> tuple[list[Argument], list[str]] | None:
    """The arguments as they have to be, each the number of an old one or a new text, and the parameters that had none,
    which get these `values`. None if nothing says which argument is for which parameter."""
    given = _given_until_now(rule, call)
    if given is None:
        return None
    due = rule.due - given.names
    missing = [parameter.name for parameter in rule.new if parameter.name in due]
    by_position = [parameter for parameter in rule.new if parameter.passing in ("", "position")]
    row = _row(by_position, rule, given, missing, values)
    is_collected = len(row) == len(by_position) and any(map(_collects_arguments, rule.new))
    if given.rest and not is_collected:
        return None
    in_row = [given.by_position.get(parameter.name, values.get(parameter.name, "")) for parameter in row]
    behind = _behind_row(row, rule, given, missing, values, named_by(snapshot))
    return None if behind is None else ([*in_row, *given.rest, *behind], missing)


def _row(
    by_position: Sequence[Parameter],
    rule: Signature,
    given: "_Given",
    missing: Sequence[str],
    values: Mapping[str, str],
) -> list[Parameter]:
    """The parameters whose arguments stand in a row: a new one is given by name where it is elsewhere, or where what
    comes after it is."""
    order = rule.order
    last = max((order[name] for name in given.by_name if name in order), default=-1)

    def is_in_row(parameter: Parameter) -> bool:
        if parameter.name not in missing:
            return parameter.name in given.by_position
        return order[parameter.name] > last and not NAMED.match(values.get(parameter.name, ""))

    return [*takewhile(is_in_row, by_position)]


def _behind_row(
    row: Sequence[Parameter],
    rule: Signature,
    given: "_Given",
    missing: Sequence[str],
    values: Mapping[str, str],
    mark: str,
) -> list[Argument] | None:
    """The arguments that are given by name, in the order of the parameters; None if one would be that cannot."""
    order, moved = rule.order, list[Argument]()
    named: list[tuple[int, Argument]] = [
        (order.get(name, len(order)), at) for name, at in given.by_name.items() if name not in rule.went
    ]
    for parameter in rule.new:
        name, piece = parameter.name, given.by_position.get(parameter.name)
        is_given = piece is not None or name in missing or name in given.by_name
        if parameter in row or _is_collecting(parameter) or not is_given:
            continue
        if parameter.passing == "position":
            return None
        if name in given.by_name:
            continue
        if not mark:
            return None
        if piece is not None:
            moved.append((f"{name}{mark}", piece))
            continue
        before = next((n for n, (at, _) in enumerate(named) if at > order[name]), len(named))
        named.insert(before, (order[name], f"{name}{mark}{NAMED.sub('', values.get(name, '')).lstrip()}"))
    return [*moved, *(argument for _, argument in named)]


class _Given(Struct, frozen=True):
    """Which argument of a call is given to which parameter, and which to the one that collects the rest."""

    by_position: dict[str, int]
    by_name: dict[str, int]
    rest: list[int]

    @property
    def names(self) -> Set[str]:
        return self.by_position.keys() | self.by_name.keys()


def _given_until_now(rule: Signature, call: CalledArguments) -> _Given | None:
    """As `_given`, of the parameters by their new names."""
    new_names = dict(rule.renamed)
    names = [new_names.get(name, name) for name in call.names]
    if any(map(_collects_names, rule.new)) and not {*rule.went}.isdisjoint(names):
        return None  # it may be collected
    # What does not fit the old parameters has some of the new arguments already.
    given = _given(rule.old, names, {parameter.name for parameter in rule.new}) or _given(rule.new, names)
    kept = {parameter.name for parameter in rule.old if parameter.is_required} - {*rule.went} - rule.due
    is_complete = given is not None and kept <= given.names
    return given if is_complete else None  # it is being written, or another function's


def _given(parameters: Sequence[Parameter], names: Sequence[str], also_known: Set[str] = frozenset()) -> _Given | None:
    """None if the call is none of such a function."""
    count = len([*takewhile(lambda name: not name, names)])
    slots = [parameter.name for parameter in parameters if parameter.passing in ("", "position")]
    rest = [*range(len(slots), count)]
    if rest and not any(map(_collects_arguments, parameters)):
        return None
    by_position = dict(zip(slots, range(count), strict=False))
    by_name = dict(zip(names[count:], range(count, len(names)), strict=True))
    foreign = by_name.keys() - {parameter.name for parameter in parameters} - also_known
    if foreign and not any(map(_collects_names, parameters)):
        return None
    if "" in by_name or not by_position.keys().isdisjoint(by_name):
        return None
    return _Given(by_position, by_name, rest)


def _collects_arguments(parameter: Parameter) -> bool:
    return _is_collecting(parameter) and not _collects_names(parameter)


def _collects_names(parameter: Parameter) -> bool:
    return parameter.name.startswith("**")


def _is_known(name: str, snapshot: Snapshot, call: CalledArguments) -> bool:
    """Whether a variable of this name has a value at the call."""
    places = scopes.mentions(snapshot, name)
    before = [at for at in places if at < call.named_at]
    if (local := scopes.binding_at(snapshot, call.start - 1, (name,))) is not None:
        return any(local.start <= at for at in before)
    first, _ = scopes.function_range(snapshot, call.named_at)
    return any(_is_variable(scopes.node_at(snapshot, at)) for at in (places if first else before))


def _is_variable(node: Node | None) -> bool:
    """Whether it declares a variable at the top of the file, and no function."""
    if node is None or not scopes.declares(node) or scopes.is_member(node):
        return False
    _, statement = scopes.outermost(node)
    if kind_of(statement) not in ASSIGNING or innermost(statement, scopes.FUNCTIONS | scopes.TYPES) is not None:
        return False
    return kind_of(part_of(statement, "value", "right")) not in scopes.FUNCTIONS


def calls_left(
    rule: Signature, home: Snapshot, files: Iterable[Snapshot], project: Project, places_offered: Set[tuple[str, int]]
) -> Generator[None, None, Left]:
    """The calls that need an argument and are not among the `places_offered`, each a file and an offset, what
    cannot be judged, the classes that override the function or inherit the constructor, and where the function itself
    uses what it is no longer given; its note is empty if there are none. What cannot be judged, and such a use, is
    worth going to only after the last edit."""
    doubt = f"cannot be judged, as {rule.doubt}" if rule.doubt else "cannot be judged"
    notes = _Notes(home, {}, {doubt: [], OVERRIDING: [], INHERITING: []})
    for file in files:
        left = yield from project.in_turns(partial(_left_in, rule, home, file, project))
        for name, at in _needed(left, {at for uri, at in places_offered if uri == file.uri}):
            notes.add(notes.needs, f"needs an argument for {in_label(name)}", file, at, is_worth=True)
        for at in left.in_doubt:
            notes.add(notes.others, doubt, file, at, is_worth=not rule.age)
        for what, places in left.declaring.items():
            for at in places:
                notes.add(notes.others, what, file, at, is_worth=False)
        yield
    for at in _in_doctests(rule, home):
        notes.add(notes.others, "called in an example", home, at, is_worth=not rule.age)
    for at, name in _still_used(rule, home):
        notes.add(notes.others, f"{in_label(name)} is still used", home, at, is_worth=not rule.age)
    return notes.left


class _Notes(Struct):
    """Places by what is to be said of them, and those that are worth going to."""

    home: Snapshot
    needs: dict[str, list[str]]
    others: dict[str, list[str]]
    worth: dict[tuple[Snapshot, int], None] = {}

    def add(self, notes: dict[str, list[str]], what: str, file: Snapshot, at: int, *, is_worth: bool) -> None:
        notes.setdefault(what, []).append(named_from(self.home, file, at))
        if is_worth:
            self.worth[file, at] = None

    @property
    def left(self) -> Left:
        said = (f"{what}: {listed_places(places)}" for what, places in (self.needs | self.others).items() if places)
        return Left("; ".join(said), tuple(self.worth))


def _needed(left: "_Left", offered: Set[int]) -> Iterator[tuple[str, int]]:
    """The arguments that calls need, but for those of the offer, and where."""
    calls_offered = {_call_around(left.calls, at) for at in offered}
    for judged in sorted(left.calls, key=lambda judged: judged.call.start):
        if judged.call not in calls_offered:
            yield from ((name, judged.call.named_at) for name in judged.missing)


class _Left(Struct, frozen=True):
    """What a file has to do with a function whose parameters changed."""

    calls: list[JudgedCall]
    unread: list[int]
    declaring: dict[str, list[int]]

    @property
    def in_doubt(self) -> list[int]:
        at_calls = {judged.call.named_at for judged in self.calls if judged.place is None}
        return sorted(at_calls.union(self.unread))


def _left_in(rule: Signature, home: Snapshot, file: Snapshot, project: Project) -> _Left:
    uses = _called_as(rule, home, file, project)
    may_be_meant = not knows_imports(file) or project.sees(file, home)
    calls = [judged for judged in _judged(rule, file, home, project) if judged.certain or may_be_meant]
    unread = [at for of_function in uses for at in _unread(of_function)]
    if not may_be_meant:
        return _Left(calls, unread, {})
    declaring = {OVERRIDING: [*_overriding(rule, uses[0])], INHERITING: sorted(_inheriting(rule, uses[0]))}
    return _Left(calls, unread, declaring)


def _in_doctests(rule: Signature, home: Snapshot) -> Iterator[int]:
    """Where documentation calls the function as it was, if calls have to change."""
    for at in scopes.mentions(home, rule.function) if rule.due or rule.went else ():
        is_call = home.text.startswith("(", at + len(rule.function))
        if is_call and home.line(home.line_of(at)).lstrip().startswith(DOCTEST) and syntax.inside(home, at) is not None:
            yield at


def _still_used(rule: Signature, home: Snapshot) -> Iterator[tuple[int, str]]:
    """Where the function uses a parameter that went, and the name of it."""
    around = innermost(scopes.node_at(home, rule.named_at), scopes.FUNCTIONS)
    if around is None:
        return
    first, last = syntax.range_of(home, around)
    for name in rule.went:
        for at, node in scopes.nodes_of(home, name):
            is_code = first < at < last and syntax.inside(home, at) is None
            if is_code and not scopes.is_member(node) and scopes.local_at(home, at, (name,)) is None:
                yield at, name


def _call_around(judged_calls: Iterable[JudgedCall], offset: int) -> CalledArguments | None:
    """The innermost of these calls in whose brackets an edit is offered."""
    around = [judged.call for judged in judged_calls if judged.call.start <= offset <= judged.call.end]
    return max(around, key=lambda call: call.start, default=None)


def _unread(uses: Uses) -> Iterator[int]:
    """Where a file hands the function on as a value or under another name, or calls it in a way that is not read."""
    for name in (uses.name, *uses.other_names):
        yield from _handed_on(uses, name)
    kin, file = uses.kin, uses.snapshot
    made_of_self = CLASS_OF_SELF.finditer(file.text) if uses.name in CONSTRUCTORS else ()
    for match in made_of_self:
        around = symbols.enclosing(scopes.node_at(file, match.start()))
        if around is not None and kin is not None and (around == kin.owner or kin.is_derived(file, around)):
            yield match.start()
    for imported in uses.importing:
        if imported.is_passed_on and imported.name == uses.name != imported.alias:
            yield imported.start


def _handed_on(uses: Uses, name: str) -> Iterator[int]:
    """Where this name of the function certainly stands for it, and is neither called nor imported."""
    file = uses.snapshot
    called = {call.named_at for call in calls_by_name(name, file)}
    for at, node in scopes.nodes_of(file, name):
        if at in called or syntax.inside(file, at) is not None:
            continue
        if scopes.declares(node) or in_import(node) or _is_exported(node):
            continue
        if _is_value(node, uses) and _is_certain(uses, name, node):
            yield at


def _is_exported(node: Node) -> bool:
    return is_exported(node) or kind_of(node.parent).startswith("export")


def _is_value(node: Node, uses: Uses) -> bool:
    """Whether the name may be called by another one; that of a class mostly is a type."""
    declared, parent = uses.symbol.node, node.parent
    if declared is None or Declaration(uses.home, declared).type is None:
        return True
    return parent is not None and parent.type in ASSIGNING and node in parent.named_children[1:]


def _overriding(rule: Signature, uses: Uses) -> Iterator[int]:
    """Where other classes of the file declare the method, or seem to, with other parameters than it has now."""
    owner, file = uses.symbol.owner, uses.snapshot
    if owner is None or rule.function in CONSTRUCTORS:
        return
    for at, node in scopes.nodes_of(file, uses.name):
        own = symbols.owner_of(node) if scopes.declares(node) else None
        listed = part_of(node.parent, "parameters")
        if own is None or listed is None:
            continue
        if uses.is_home and own.start_byte == owner.start_byte:
            continue
        _, parameters = _parameters(listed, symbol_at(uses.name, uses.name, file, at), file)
        if not _takes(parameters, rule) and (uses.is_certain(at) or is_in_doubt(uses, at)):
            yield at


def _takes(parameters: Sequence[Parameter], rule: Signature) -> bool:
    """Whether a function with these parameters can be called as this one."""
    if parameters and all(map(_is_collecting, parameters)):
        return True
    return [parameter.name for parameter in parameters] == [parameter.name for parameter in rule.new]


def _inheriting(rule: Signature, uses: Uses) -> Iterator[int]:
    """Where classes of the file take over the constructor: what makes objects of them goes by their names."""
    if rule.function not in CONSTRUCTORS or uses.kin is None:
        return
    for derived in uses.kin.derived(uses.snapshot):
        declared = members(uses.project, Type(derived.file, definition=derived), rule.function) or ()
        if any(symbols.owner_of(member.name) == uses.symbol.owner for member in declared):
            yield derived.offset


def label(rule: Signature) -> str:
    came = [name for name in _missing_in(rule.old, rule.new) if name in rule.due]
    if came and not rule.went:
        return f"add {in_label(', '.join(came))} to calls of {in_label(rule.function)}"
    if rule.went and not came:
        return f"remove {in_label(', '.join(rule.went))}"
    return f"change the arguments of {in_label(rule.function)}"
