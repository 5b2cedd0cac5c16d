"""Replace: a piece of a line, other than a name, was changed; the same tokens may change elsewhere."""

import re
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache

from msgspec.structs import replace

from mercury_ls.code import scopes, syntax
from mercury_ls.code.differences import tokens
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import CONSTANTS, KEYWORDS, openness
from mercury_ls.code.modules import Project
from mercury_ls.next_edit.examples import Example, PieceRule, is_rename
from mercury_ls.next_edit.kinds.calls import argument_of, called, changed_at, is_called
from mercury_ls.next_edit.places import Place, nearest, sequence, sides, with_likeness
from mercury_ls.next_edit.rule import in_label
from mercury_ls.next_edit.suppress import is_no_habit

suppress = is_no_habit


class Replace(PieceRule, frozen=True, kw_only=True):
    """It may be about an argument of `function`; `is_glued` says that no blank follows the new text."""

    kind = "replace"
    copies_code = True
    function: str = ""
    is_glued: bool = False


def learn(example: Example) -> Iterator[Replace]:
    for piece in example.pieces:
        in_a_line = "\n" not in piece.before + piece.after and openness(piece.before) == 0
        if in_a_line and not piece.is_cut and not is_rename(piece.before, piece.after):
            function, _ = argument_of(piece) or ("", False)
            yield replace(Replace.of(piece), function=function, is_glued=piece.is_glued)


def find(rule: Replace, snapshot: Snapshot, home: Snapshot | None, project: Project) -> Iterator[Place]:
    """The same tokens; between the same neighbours only, if they are not distinctive."""
    listed = home and scopes.in_parameters(home, rule.offset(home))
    if listed and rule.count == 1 and (rule.function or rule.before.strip()):
        return
    change = changed_at(rule, rule.function, home) if home and rule.function and rule.count == 1 else None
    call_starts = change and {
        m.end() for m in called(rule.function, snapshot) if is_called(change, snapshot, m.start(), project)
    }
    spans: set[tuple[int, int]] = set()
    for pattern in _patterns(rule):
        spans.update(nearest([match.span("phrase") for match in pattern.finditer(snapshot.text)], snapshot, rule))
    for start, end in sorted(spans):
        misplaced = home and not rule.before and scopes.in_parameters(snapshot, start) != listed
        is_elsewhere = call_starts is not None and _is_given_to_another(call_starts, snapshot, start)
        is_elsewhere = is_elsewhere or (
            rule.count == 1 and home is not None and _is_behind_another(rule, home, snapshot, start)
        )
        is_elsewhere = is_elsewhere or _is_out_of_line(rule, snapshot, start)
        if not misplaced and not is_elsewhere and not _is_done(rule, snapshot.text, start):
            if not rule.after:
                start, end = _with_blanks(snapshot.text, start, end)
            yield with_likeness(Place(start, end, rule.after), rule.left, rule.right, snapshot)


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


def _is_given_to_another(call_starts: Set[int], snapshot: Snapshot, offset: int) -> bool:
    """Whether it is an argument of another function than those whose brackets open at these offsets."""
    outward = syntax.outward(scopes.node_at(snapshot, offset))
    around = next((node for node in outward if "argument" in node.type), None)
    return around is not None and snapshot.offset_of_byte(around.start_byte) + 1 not in call_starts


def _is_behind_another(rule: Replace, home: Snapshot, snapshot: Snapshot, offset: int) -> bool:
    """Whether something was put behind a local, and this is not the same one: `name` became `name.strip()`."""
    name = rule.left[-1] if rule.left else ""
    if rule.before or rule.after[:1] not in (".", "[", "(") or not name.isidentifier():
        return False
    local = scopes.local_at(home, rule.offset(home) - 1, (name,))
    binding = scopes.local_at(snapshot, offset - 1, (name,)) if home is snapshot else None
    return local is not None and (binding is None or binding.reach != local.reach)


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
    went = [token.text for token in tokens(rule.before)]
    if any(len(word) > 1 and word.isidentifier() and word not in KEYWORDS for word in went):
        return (re.compile(f"(?P<phrase>{sequence(went)})"),)
    near, further = (((1, 0), (0, 1)), ((2, 0), (0, 2))) if went else (((2, 0), (1, 1), (0, 2)), ((2, 1), (1, 2)))
    patterns = [
        tuple(pattern for before, after in sizes if (pattern := _between(rule, went, before, after)))
        for sizes in (near, further)
    ]
    return patterns[0] or patterns[1]


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
