"""Arguments: one added or removed at a call may be so at the others."""

from collections.abc import Hashable, Iterator

from msgspec.structs import replace

from mercury_ls.code.documents import Snapshot
from mercury_ls.code.modules import Project
from mercury_ls.code.symbols import is_qualified
from mercury_ls.next_edit.examples import Example, PieceRule
from mercury_ls.next_edit.kinds.calls import argument_of, calls_of, changed_arguments, changed_at, rewritten
from mercury_ls.next_edit.places import Place, like_the_edited
from mercury_ls.next_edit.rule import in_label
from mercury_ls.next_edit.suppress import is_no_habit

suppress = is_no_habit


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


def learn(example: Example) -> Iterator[Argument]:
    for piece in example.pieces:
        if (change := argument_of(piece)) and not change[1]:
            yield replace(Argument.of(piece), function=change[0])


def find(rule: Argument, snapshot: Snapshot, home: Snapshot | None, project: Project) -> Iterator[Place]:
    change = changed_at(rule, rule.function, home) if home else None
    if change is None:
        return
    called = change.symbol.node
    if rule.count == 1 and rule.path != snapshot.path and called is not None and is_qualified(called):
        return  # `click.command` is no function of the file in which it was called
    argument = "" if rule.before.strip() else rule.after.strip(" \t,")
    for call in calls_of(change, snapshot, project):
        arguments = None if call.is_spread else changed_arguments(snapshot.text, call, change, argument)
        place = None if arguments is None else rewritten(snapshot.text, call, arguments)
        if place:
            yield like_the_edited(place, rule.before, rule.left, rule.right, snapshot)


def label(rule: Argument) -> str:
    return (
        f"add {in_label(rule.after)} to calls of {in_label(rule.function)}"
        if rule.after
        else f"remove {in_label(rule.before)}"
    )
