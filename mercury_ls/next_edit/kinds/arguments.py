"""Arguments: one added or removed at a call may be so at the others, a parameter's must be so at all calls."""

import re
from collections.abc import Hashable, Iterator

from msgspec.structs import replace

from mercury_ls.code import scopes
from mercury_ls.code.documents import CLOSED, Snapshot
from mercury_ls.code.modules import Project
from mercury_ls.code.scopes import whole
from mercury_ls.code.symbols import is_qualified, type_name
from mercury_ls.next_edit import suppress as habits
from mercury_ls.next_edit.examples import Example, PieceRule
from mercury_ls.next_edit.kinds.calls import (
    ArgumentChange,
    CalledArguments,
    argument_of,
    calls_of,
    changed_at,
    constructing,
    named_by,
    with_argument,
    without_argument,
)
from mercury_ls.next_edit.kinds.rename.uses import Uses, knows_imports
from mercury_ls.next_edit.places import Place, with_likeness
from mercury_ls.next_edit.rule import quoted


class Argument(PieceRule, frozen=True, kw_only=True):
    """An argument of `function` was added or removed at a call."""

    kind = "argument"
    copies_code = True
    function: str = ""

    @property
    def key(self) -> Hashable:
        return self.kind, self.before, self.after, self.function

    @property
    def known_as(self) -> str:
        return self.function


class ParameterEdit(Argument, frozen=True, kw_only=True):
    """A parameter was added or removed where the function is defined."""

    kind = "parameter"
    copies_code = False


def learn(example: Example) -> Iterator[Argument]:
    for piece in example.pieces:
        if change := argument_of(piece):
            function, defines = change
            yield replace((ParameterEdit if defines else Argument).of(piece), function=function)


def names_of_calls(rule: Argument, home: Snapshot) -> frozenset[str]:
    """The names that a file must contain to call the function whose parameters were edited: its own, and that of its
    type. Empty if no declaration was edited, or that of a local function."""
    change = changed_at(rule, rule.function, home, home)
    symbol = change and change.symbol
    if change is None or symbol is None or symbol.node is None or symbol.local or not scopes.declares(symbol.node):
        return frozenset()
    if constructed := constructing(change, home, home):
        return frozenset({constructed.function})
    return frozenset({rule.function, type_name(symbol.owner)} if symbol.owner is not None else {rule.function})


def find(rule: Argument, snapshot: Snapshot, home: Snapshot | None, project: Project) -> Iterator[Place]:
    """The syntax tree says whether it was a declaration, since one without a body looks like a call."""
    change = changed_at(rule, rule.function, snapshot, home) if home else None
    if home is None or change is None:
        return
    if change.symbol.node is not None and scopes.declares(change.symbol.node):
        yield from _of_parameter(rule, change, snapshot, home, project)
    elif not isinstance(rule, ParameterEdit):
        yield from _of_argument(rule, change, snapshot)


def _of_argument(rule: Argument, change: ArgumentChange, snapshot: Snapshot) -> Iterator[Place]:
    if rule.count == 1 and rule.path != snapshot.path and change.symbol.node and is_qualified(change.symbol.node):
        return  # `click.command` is no function of the file in which it was called
    for call in calls_of(rule.function, change, snapshot):
        if rule.before.strip():
            is_same_call = change.name in call.names if change.name else len(call.pieces) == change.count + 1
            place = without_argument(call, change) if is_same_call else None
        else:
            place = with_argument(snapshot.text, call, change, rule.after.strip(" \t,"))
        if place:
            yield _like_the_edited(rule, snapshot, place)


def _of_parameter(
    rule: Argument, change: ArgumentChange, snapshot: Snapshot, home: Snapshot, project: Project
) -> Iterator[Place]:
    """A removed parameter's arguments can be removed; a new argument is mostly for the model to write."""
    for candidate in filter(None, (change, constructing(change, snapshot, home))):
        for call in calls_of(rule.function, candidate, snapshot):
            is_checked = snapshot.version == CLOSED and candidate.symbol.module_level and knows_imports(snapshot)
            if is_checked and not _is_of_home(rule, candidate, snapshot, home, project, call):
                continue
            if not rule.before.strip():
                yield _passing(rule, candidate, snapshot, call)
            elif place := without_argument(call, candidate):
                yield replace(_like_the_edited(rule, snapshot, place), bound=is_checked)


def _is_of_home(
    rule: Argument, change: ArgumentChange, snapshot: Snapshot, home: Snapshot, project: Project, call: CalledArguments
) -> bool:
    """True if the imports of the file say that it calls the function of `home`, and not another by this name."""
    function = change.function or rule.function
    return Uses(function, "", change.symbol, home, snapshot, project).is_certain(call.named_at)


def suppress(rule: Argument, place: Place, snapshot: Snapshot) -> bool:
    return not isinstance(rule, ParameterEdit) and habits.is_no_habit(rule, place, snapshot)


def label(rule: Argument) -> str:
    return (
        f"add {quoted(rule.after)} to calls of {quoted(rule.function)}"
        if rule.after
        else f"remove {quoted(rule.before)}"
    )


def _like_the_edited(rule: Argument, snapshot: Snapshot, place: Place) -> Place:
    likened = with_likeness(place, rule.left, rule.right, snapshot)
    if not rule.before.strip():
        return likened
    is_unchanged = snapshot.text[place.start : place.end].strip(" ,") == rule.before.strip(" ,")
    return replace(likened, likeness=(likened.likeness + is_unchanged) / 2)


def _passing(rule: Argument, change: ArgumentChange, snapshot: Snapshot, call: CalledArguments) -> Place:
    """The new parameter's name, if the function around the call has a variable of that name."""
    unknown = Place(call.start, call.end, None)
    first, end_of_function = scopes.function_range(snapshot, call.start)
    outside = (first, end_of_function) == (0, len(snapshot.text))
    if not change.name or outside or not re.search(whole(change.name), snapshot.text[first : call.start]):
        return unknown
    optional = named_by(snapshot) and ("=" in rule.after or change.index < 0)
    place = with_argument(snapshot.text, call, change, f"{change.name}={change.name}" if optional else change.name)
    return with_likeness(place, rule.left, rule.right, snapshot) if place else unknown
