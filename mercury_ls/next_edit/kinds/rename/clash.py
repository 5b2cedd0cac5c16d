"""Whether a new name already means something else where the renamed one is used."""

import re

from mercury_ls.code import scopes
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.modules import Project
from mercury_ls.code.scopes import Binding, whole
from mercury_ls.next_edit.kinds.rename.rule import Rename

__all__ = ["clash"]


def clash(rule: Rename, home: Snapshot, project: Project) -> str:
    """Why the rename would mix up two parameters or locals; empty if it would not."""

    def reason() -> str:
        node = scopes.node_at(home, rule.offset(home))
        if node is None or scopes.is_member(node):
            return ""
        own = scopes.binding(home, node)
        is_taken = any(mixes(rule, home, own, at) for at in scopes.mentions(home, rule.after))
        return (
            f"the name {rule.after} is taken there: {rule.before} cannot be told from it any more" if is_taken else ""
        )

    return project.once(("clash", rule, home.path), reason)


def mixes(rule: Rename, home: Snapshot, own: Binding | None, at: int) -> bool:
    """Whether the new name at `at` is another declaration that has uses of the old name in its reach, or is another's
    use in the reach of the renamed one."""
    node = scopes.node_at(home, at)
    is_name = node is not None and node.type.endswith("identifier") and not scopes.is_member(node)
    if node is None or not is_name or is_made_by_user(rule, home, at):
        return False
    declared = scopes.binding(home, node)
    if declared is None:
        return own is not None and own.start <= at < own.end and not scopes.declares(node)
    if own is not None and declared.reach == own.reach:
        return True
    start, end = declared.reach
    reach = (0, len(home.text)) if own is None else own.reach
    uses = (use for use in scopes.mentions(home, rule.before) if start <= use < end and reach[0] <= use < reach[1])
    return any(is_use(rule, home, use, own) for use in uses)


def is_made_by_user(rule: Rename, home: Snapshot, at: int) -> bool:
    """Whether the name came with the rename itself: on a line of it that did not have the name before."""
    if at == rule.offset(home):
        return True
    number = home.line_of(at)
    edited = any(path == home.path and first <= number < first + rule.lines for path, first in rule.places)
    return edited and not re.search(whole(rule.after), rule.lines_before)


def is_use(rule: Rename, home: Snapshot, at: int, own: Binding | None) -> bool:
    """Whether the old name there can be what was renamed: no member, and no other parameter or local."""
    node = scopes.node_at(home, at)
    return node is not None and not scopes.is_member(node) and scopes.local_at(home, at, (rule.before,)) is None
