"""What the last edits teach: rules that other places of the code may have to follow."""

from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache

from msgspec.structs import replace

from mercury_engine.api import Edit
from mercury_ls.next_edit.examples import example, moves_a_block
from mercury_ls.next_edit.kinds import KINDS
from mercury_ls.next_edit.rule import Rule

LONGEST_EDIT = 4000
MOST_RULES = 40


def rules(edits: Sequence[Edit]) -> tuple[Rule, ...]:
    """The rules of these edits, oldest edit first; the latest rule first, each once, without what was undone."""
    merged: dict[Hashable, Rule] = {}
    for age, since, edit in _whole_edits(edits[::-1]):
        for lesson in _lessons(edit.before, edit.after):
            line, places = edit.line + lesson.line, ((edit.path, edit.line),)
            rule = replace(lesson, age=age, since=since, path=edit.path, line=line, places=places)
            earlier = merged.get(rule.key)
            merged[rule.key] = rule if earlier is None else earlier.joined(rule)
    rules = [rule for rule in merged.values() if not rule.is_taken_back(edits[len(edits) - rule.age :])]
    return tuple(rule for rule in rules if not any(map(rule.is_undone_by, rules)))[:MOST_RULES]


def _whole_edits(edits: Sequence[Edit]) -> Iterator[tuple[int, int, Edit]]:
    """The edits, latest first, with the ages of their latest and of their earliest part: what was done to adjacent
    lines is one edit if it moved them into a block or out of one."""
    age = 0
    while age < len(edits):
        whole, since = edits[age], age
        for earlier in edits[age + 1 :]:
            if (joined := _joined_edit(whole, earlier)) is None:
                break
            whole, since = joined, since + 1
        if since > age and not moves_a_block(whole.before, whole.after):
            whole, since = edits[age], age
        yield age, since, whole
        age = since + 1


def _joined_edit(later: Edit, earlier: Edit) -> Edit | None:
    """Both as one, None unless their lines are adjacent."""
    for upper, lower in ((earlier, later), (later, earlier)):
        if upper.path == lower.path and lower.line == upper.line + upper.after.count("\n"):
            return replace(upper, before=upper.before + lower.before, after=upper.after + lower.after)
    return None


@lru_cache(maxsize=256)
def _lessons(before: str, after: str) -> tuple[Rule, ...]:
    """What an edit teaches wherever and whenever it was made; cached, since each is asked about many times."""
    if len(before) + len(after) > LONGEST_EDIT:
        return ()
    lines = max(before.count("\n"), after.count("\n"), 1)
    taken_apart = example(before, after)
    modules = dict.fromkeys(KINDS.values())
    return tuple(replace(rule, lines=lines) for module in modules for rule in module.learn(taken_apart))
