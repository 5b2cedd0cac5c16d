"""Whether the last edit is done: what is still being typed is no example yet."""

from collections.abc import Sequence

from mercury_engine.api import Edit
from mercury_ls.code import syntax
from mercury_ls.code.differences import texts_of, token_changes
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import openness
from mercury_ls.next_edit.situation import Situation


def unsettled(situation: Situation) -> str:
    """Why the last edit is not settled; empty if it is."""
    snapshot, edits = situation.snapshot, situation.edits
    edit = edits[-1]
    empty = next((edit for edit in reversed(edits) if _leaves_block_empty(snapshot, edit)), None)
    if empty is not None:
        return f"a block has nothing in it yet: line {empty.line + 1}"
    if edit.path != snapshot.path or edit.line >= snapshot.line_count:
        return ""
    rows = edit.rows
    if snapshot.line_of(situation.offset) not in rows:
        return ""
    if situation.may_delete_more and _shortens_word_at(snapshot, situation.offset, edits):
        return "a word is being deleted at the cursor"
    incomplete = _broken(snapshot, rows.start, min(rows.stop, snapshot.line_count)) or _unbalanced(snapshot, edit)
    if incomplete and not _broken_before(snapshot, edit):
        return "the statement at the cursor is not complete"
    return ""


def _shortens_word_at(snapshot: Snapshot, offset: int, edits: Sequence[Edit]) -> bool:
    """Whether the last edit took away the end of a word before the offset, and no earlier edit did the same."""
    edit, start = edits[-1], snapshot.line_start(edits[-1].line)
    replaced_names = {replaced for earlier in edits[:-1] for replaced in _replacements(earlier)}
    for touch in token_changes(edit.before, edit.after):
        went, came = texts_of(edit.before, edit.after, touch)
        shortened = came and went != came and went.startswith(came)
        if start + touch.new_end == offset and shortened and (went, came) not in replaced_names:
            return True
    return False


def _leaves_block_empty(snapshot: Snapshot, edit: Edit) -> bool:
    """Whether it begins a block that still has nothing in it, or has taken all of it away."""
    if edit.path != snapshot.path or edit.line >= snapshot.line_count:
        return False
    rows = range(edit.line, edit.line + edit.after.count("\n"))
    stands = snapshot.text.startswith(edit.after, snapshot.line_start(edit.line))
    return stands and syntax.empty_blocks(snapshot.tree, [rows]) > 0


def _broken_before(snapshot: Snapshot, edit: Edit) -> bool:
    """Whether the file parsed no better without the edit: then it is not this statement that is incomplete."""
    start = snapshot.line_start(edit.line)
    if not snapshot.text.startswith(edit.after, start):
        return False
    without = syntax.problems_after(snapshot, start, start + len(edit.after), edit.before)
    return 0 < without >= syntax.problems(snapshot.tree)


def _replacements(edit: Edit) -> list[tuple[str, str]]:
    return [texts_of(edit.before, edit.after, touch) for touch in token_changes(edit.before, edit.after)]


def _unbalanced(snapshot: Snapshot, edit: Edit) -> bool:
    """Whether the file does not parse and this edit has left a bracket or quote alone."""
    if snapshot.tree is None or not snapshot.tree.root_node.has_error:
        return False
    odd = any((edit.before.count(quote) - edit.after.count(quote)) % 2 for quote in "\"'`")
    return odd or openness(edit.before) != openness(edit.after)


def _broken(snapshot: Snapshot, first: int, stop: int) -> bool:
    """Whether the parser stumbles over these lines."""
    if snapshot.tree is None or not snapshot.tree.root_node.has_error:
        return False
    start, end = snapshot.byte(snapshot.line_start(first)), snapshot.byte(snapshot.line_end(stop - 1))
    stack = [snapshot.tree.root_node]
    while stack:
        node = stack.pop()
        if node.end_byte < start or node.start_byte > end or not node.has_error:
            continue
        within = node.start_byte >= start - 1 and node.end_byte <= end + 1
        if (node.is_error or node.is_missing) and (within or node.start_byte >= start):
            return True
        stack += node.children
    return False
