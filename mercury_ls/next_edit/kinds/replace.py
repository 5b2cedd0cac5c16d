"""Replace: a piece of a line, other than a name, was changed; the same tokens may change elsewhere."""

import re
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache

from msgspec.structs import replace

from mercury_ls.code import scopes, syntax
from mercury_ls.code.differences import tokens
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import CONSTANTS, KEYWORDS, openness, tokens_of
from mercury_ls.code.modules import Project
from mercury_ls.next_edit.examples import Example, PieceRule, is_rename
from mercury_ls.next_edit.kinds.calls import argument_of, called, changed_at, is_called
from mercury_ls.next_edit.places import Place, nearest, sequence, sides, with_likeness
from mercury_ls.next_edit.rule import in_label
from mercury_ls.next_edit.suppress import is_no_habit

suppress = is_no_habit

BESIDE = (((1, 0), (0, 1)), ((2, 0), (0, 2)))
BETWEEN = (((2, 0), (1, 1), (0, 2)), ((2, 1), (1, 2)))
"""How many neighbours on the left and on the right tell where something else stands, or where something is put in; the
second row where nothing comes of the first."""


class Replace(PieceRule, frozen=True, kw_only=True):
    """It may be about an argument of `function`; `is_glued` says that no blank follows the new text."""

    kind = "replace"
    copies_code = True
    function: str = ""
    is_glued: bool = False


def learn(example: Example) -> Iterator[Replace]:
    for piece in example.pieces:
        if piece.is_cut or is_rename(piece.before, piece.after):
            continue
        if "\n" in piece.before + piece.after or openness(piece.before) != 0:
            continue
        function, _ = argument_of(piece) or ("", False)
        yield replace(Replace.of(piece), function=function, is_glued=piece.is_glued)


def find(rule: Replace, snapshot: Snapshot, home: Snapshot | None, project: Project) -> Iterator[Place]:
    """The same tokens; between the same neighbours only, if they are not distinctive."""
    is_single = rule.count == 1
    in_list = home is not None and scopes.in_parameters(home, rule.offset(home))
    if is_single and in_list and (rule.function or rule.before.strip()):
        return
    call_starts = _call_starts(rule, snapshot, home, project) if is_single and home is not None else None
    for start, end in sorted(_spans(rule, snapshot)):
        if call_starts is not None and _is_given_to_another(call_starts, snapshot, start):
            continue
        if home is not None and _is_put_elsewhere(rule, home, in_list, snapshot, start):
            continue
        if _is_out_of_line(rule, snapshot, start) or _is_done(rule, snapshot.text, start):
            continue
        if not rule.after:
            start, end = _with_blanks(snapshot.text, start, end)
        yield with_likeness(Place(start, end, rule.after), rule.left, rule.right, snapshot)


def _spans(rule: Replace, snapshot: Snapshot) -> set[tuple[int, int]]:
    spans: set[tuple[int, int]] = set()
    for pattern in _patterns(rule):
        spans.update(nearest([match.span("phrase") for match in pattern.finditer(snapshot.text)], snapshot, rule))
    return spans


def label(rule: Replace) -> str:
    before, after = in_label(rule.before), in_label(rule.after)
    if rule.before.strip() and rule.after.strip():
        return f"replace {before} → {after}"
    return f"add {after}" if rule.after.strip() else f"remove {before}"


def _with_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """Widened by blanks that would separate nothing after the removal."""
    head, tail = text[text.rfind("\n", 0, start) + 1 : start], text[end : (text.find("\n", end) + 1) or None]
    left_blanks, right_blanks = len(head) - len(head.rstrip(" \t")), len(tail) - len(tail.lstrip(" \t"))
    if not head.strip() or (left_blanks == 0 and head[-1] in "([{"):
        return start, end + right_blanks
    return start - left_blanks * (not tail or tail[0] in " \t\r\n,;)]}"), end


def _call_starts(rule: Replace, snapshot: Snapshot, home: Snapshot, project: Project) -> set[int] | None:
    """Where the brackets open of calls of the function whose argument was changed; None if it was no argument."""
    change = changed_at(rule, rule.function, home) if rule.function else None
    if change is None:
        return None
    calls = called(rule.function, snapshot)
    return {call.end() for call in calls if is_called(change, snapshot, call.start(), project)}


def _is_given_to_another(call_starts: Set[int], snapshot: Snapshot, offset: int) -> bool:
    """Whether it is an argument of another function than those whose brackets open at these offsets."""
    outward = syntax.outward(scopes.node_at(snapshot, offset))
    around = next((node for node in outward if "argument" in node.type), None)
    return around is not None and snapshot.offset_of_byte(around.start_byte) + 1 not in call_starts


def _is_put_elsewhere(rule: Replace, home: Snapshot, in_list: bool, snapshot: Snapshot, offset: int) -> bool:
    """Whether something was put in a list of parameters and this is none, or the other way round, or behind a local
    that is not the same one."""
    if rule.before:
        return False
    if scopes.in_parameters(snapshot, offset) != in_list:
        return True
    return rule.count == 1 and _is_behind_another(rule, home, snapshot, offset)


def _is_behind_another(rule: Replace, home: Snapshot, snapshot: Snapshot, offset: int) -> bool:
    """Whether something was put behind a local, and this is not the same one: `name` became `name.strip()`."""
    name = rule.left[-1] if rule.left else ""
    if rule.after[:1] not in (".", "[", "(") or not name.isidentifier():
        return False
    local = scopes.local_at(home, rule.offset(home) - 1, (name,))
    if local is None:
        return False
    here = scopes.local_at(snapshot, offset - 1, (name,)) if home is snapshot else None
    return here is None or here.reach != local.reach


def _is_out_of_line(rule: Replace, snapshot: Snapshot, offset: int) -> bool:
    """Whether what is put in would stand beside an operand without a delimiter, or would be one of a row that is none
    here, as it is not at the edited place."""
    new = tokens(rule.after)
    if rule.before or not new or syntax.inside(snapshot, offset) is not None:
        return False
    before, after = sides(snapshot, offset, offset)
    first, last = new[0].text, new[-1].text
    left, right = (rule.left[-1:], before[-1:]), (rule.right[:1], after[:1])
    leaves_row = _is_no_row(first, *right) or _is_no_row(last, *left)
    return leaves_row or _meets_operand(first, *left) or _meets_operand(last, *right)


def _is_no_row(edge: str, old_neighbour: Sequence[str], neighbour: Sequence[str]) -> bool:
    """Whether a delimiter at one end of an insertion also stood beyond its other end, and does not do so here."""
    return not _is_operand(edge) and [*old_neighbour] == [edge] != [*neighbour]


def _meets_operand(edge: str, old_neighbour: Sequence[str], neighbour: Sequence[str]) -> bool:
    """Whether an operand at one end of an insertion would stand beside another, and did not at the edited place."""
    return _is_operand(edge) and any(map(_is_operand, neighbour)) and not any(map(_is_operand, old_neighbour))


def _is_operand(token: str) -> bool:
    return token[0].isalnum() or token[0] in "_'\"`"


def _is_done(rule: Replace, text: str, start: int) -> bool:
    """Whether the new text, which contains the old one, is there already."""
    at = rule.after.find(rule.before) if rule.before else -1
    return at >= 0 and start >= at and text.startswith(rule.after, start - at)


def _tells(went: Sequence[str], neighbours: Sequence[str]) -> bool:
    """Whether a word says what it is about; beside a number or constant, it has to be a name."""
    is_value = bool(went) and CONSTANTS.issuperset(word for word in went if word.isidentifier())
    words = [word for word in (*neighbours, *went) if word.isidentifier()]
    return any(word not in KEYWORDS for word in words) if is_value else bool(words)


@lru_cache(maxsize=64)
def _patterns(rule: Replace) -> tuple[re.Pattern[str], ...]:
    """The old tokens; with a neighbour if they are punctuation or a keyword, with several if there are none."""
    went = tokens_of(rule.before)
    if any(map(_is_distinctive, went)):
        return (re.compile(f"(?P<phrase>{sequence(went)})"),)
    for sizes in BESIDE if went else BETWEEN:
        patterns = (_between(rule, went, before, after) for before, after in sizes)
        if told := tuple(filter(None, patterns)):
            return told
    return ()


def _is_distinctive(word: str) -> bool:
    return len(word) > 1 and word.isidentifier() and word not in KEYWORDS


def _between(rule: Replace, went: list[str], on_the_left: int, on_the_right: int) -> re.Pattern[str] | None:
    """Between so many of the old neighbours; the end of a line counts as one, but does not do alone. None if there are
    not so many."""
    left_tokens, right_tokens = rule.left[len(rule.left) - on_the_left :], (*rule.right, "")[:on_the_right]
    neighbours = [*left_tokens, *right_tokens]
    if (
        len(left_tokens) < on_the_left
        or len(right_tokens) < on_the_right
        or not any(neighbours)
        or not _tells(went, neighbours)
    ):
        return None
    before, after = sequence(left_tokens), sequence([word for word in right_tokens if word])
    after += r"[ \t]*+(?=\r?$)" if "" in right_tokens else ""
    # What is put between two neighbours stands at the one that it touches.
    to_the_right = went or not left_tokens or rule.is_glued or rule.after[-1:].isspace()
    gap = r"[ \t]*+" if left_tokens else ""
    phrase = f"{gap}(?P<phrase>{sequence(went)})" if to_the_right else f"(?P<phrase>){gap}"
    between_them = r"[ \t]*+" if went and right_tokens else ""
    return re.compile(f"{before}{phrase}{between_them}{after}", re.MULTILINE)
