"""What the last edits teach: rules that other places of the code may have to follow."""

from collections.abc import Hashable, Sequence
from functools import lru_cache

from msgspec.structs import replace

from mercury_engine.api import Edit
from mercury_ls.next_edit.examples import example
from mercury_ls.next_edit.kinds import KINDS
from mercury_ls.next_edit.rule import Rule

__all__ = ["rules"]

LONGEST_EDIT = 4000
MOST_RULES = 40


def rules(edits: Sequence[Edit]) -> tuple[Rule, ...]:
    """The rules of these edits, oldest edit first; the latest rule first, each once, without what was undone."""
    merged: dict[Hashable, Rule] = {}
    for age, edit in enumerate(reversed(edits)):
        for lesson in lessons(edit.before, edit.after):
            line, places = edit.line + lesson.line, ((edit.path, edit.line),)
            rule = replace(lesson, age=age, since=age, path=edit.path, line=line, places=places)
            earlier = merged.get(rule.key)
            merged[rule.key] = rule if earlier is None else earlier.joined(rule)
    rules = [*merged.values()]
    return tuple(rule for rule in rules if not any(map(rule.is_undone_by, rules)))[:MOST_RULES]


@lru_cache(maxsize=256)
def lessons(before: str, after: str) -> tuple[Rule, ...]:
    """What an edit teaches wherever and whenever it was made; cached, since each is asked about many times."""
    if len(before) + len(after) > LONGEST_EDIT:
        return ()
    lines = max(before.count("\n"), after.count("\n"), 1)
    taken_apart = example(before, after)
    modules = dict.fromkeys(KINDS.values())
    return tuple(replace(rule, lines=lines) for module in modules for rule in module.learn(taken_apart))
