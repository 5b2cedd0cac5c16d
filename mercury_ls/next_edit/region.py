"""What a next-edit model rewrites around a place: it is given a window, chooses its own lines in it, and answers with
the window's whole new text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Diagnostic, Region, Regions, Rewritten
from mercury_engine.prompts.lines import shared_ends
from mercury_ls.code import syntax
from mercury_ls.code.diagnostics import FileDiagnostic
from mercury_ls.code.differences import is_step_towards
from mercury_ls.code.documents import Snapshot, unified
from mercury_ls.code.edits import TextEdit, same_result, widened
from mercury_ls.code.lexemes import line_break, minimal
from mercury_ls.code.modules import Project
from mercury_ls.code.private import hides, shown, without_quotes
from mercury_ls.completion.context import window
from mercury_ls.completion.judge import Evidence
from mercury_ls.completion.polish import in_the_files_style, without_sentinels
from mercury_ls.completion.suggest import MASK, Question
from mercury_ls.completion.target import Silence
from mercury_ls.next_edit.candidates import Candidate, CandidatePlace, distinct, permitted, place_of
from mercury_ls.next_edit.learn import rules
from mercury_ls.next_edit.once import is_prose
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.next_edit.renamed import Renames

WORD = re.compile(r"\w+")

SURE_ENOUGH = 0.6
"""A rule's edit as likely as this does not wait for long for a model that may know more."""
MOST_LINES = 64
"""Old and new ones together: a model that rewrites more of a file has lost its way."""
MOST_REMOVED = 12
"""More than are written: a model that removes more has rather stopped too early."""
MOST_COMPARED = 400
"""Lines between the first difference and the last one."""
LATE = "the model's answer came too late"
UNCHANGED = "the model changes nothing here"


def places(question: NextQuestion, candidates: Sequence[Candidate]) -> Iterator[tuple[Snapshot, int]]:
    """The cursor, and the likeliest place elsewhere where a rule leaves it to a model what to write."""
    snapshot, offset = question.snapshot, question.offset
    yield snapshot, offset
    start, end = window(snapshot, offset, question.budget.characters)
    outside = [
        candidate for candidate in candidates if candidate.uri != snapshot.uri or not start <= candidate.start <= end
    ]
    unanswered = [candidate for candidate in outside if candidate.text is None]
    if unanswered:
        best = max(unanswered, key=lambda candidate: candidate.p_edit)
        yield question.files[best.uri], best.start


def regions_at(
    question: Question, snapshot: Snapshot, offset: int, diagnostics: Sequence[FileDiagnostic] = ()
) -> Regions:
    """`diagnostics` are those of the snapshot."""
    start, end = window(snapshot, offset, question.budget.characters)
    near = (problem for problem in diagnostics if start <= problem.start <= end)
    text, first_line = shown(snapshot)[start:end], snapshot.line_of(start)
    return Regions(
        session=question.session,
        regions=(Region(snapshot.path, snapshot.language, text, first_line=first_line),),
        cursor=offset - start,
        snippets=question.related.snippets,
        edits=question.history.edits(question.recent_edits),
        diagnostics=tuple(_diagnostic(snapshot, problem) for problem in near if not _in_key(snapshot, problem)),
    )


def _in_key(snapshot: Snapshot, reported: FileDiagnostic) -> bool:
    """Whether it is about a line of a private key, which it may quote."""
    first, last = snapshot.line_of(reported.start), snapshot.line_of(max(reported.end, reported.start))
    return hides(snapshot, snapshot.line_start(first), snapshot.line_stop(last))


def _diagnostic(snapshot: Snapshot, reported: FileDiagnostic) -> Diagnostic:
    line = snapshot.line_of(reported.start)
    column = reported.start - snapshot.line_start(line)
    return Diagnostic(snapshot.path, line, column, without_quotes(snapshot, reported.message), reported.severity)


class RegionRewrite(Struct, frozen=True):
    """The edits of a next-edit model's answer, which belong together, and what they are judged by."""

    edits: tuple[Candidate, ...]
    evidence: Evidence


def rewritten(
    question: NextQuestion,
    snapshot: Snapshot,
    region: tuple[int, int],
    answer: Rewritten,
    candidates: Sequence[Candidate],
) -> RegionRewrite | Silence:
    """The edits that the answer makes, which belong together; or why it makes none, or none that may be shown."""
    start, end = region
    if answer.refused:
        return Silence(f"the model's answer was refused: {answer.refused}")
    if not answer.complete:
        return Silence(LATE)
    if without_sentinels(answer.text, snapshot.text) != answer.text:
        return _discarded("it contains special tokens")
    edits = edits_of(snapshot, region, answer.text, question.offset)
    if not edits:
        is_same = unified(answer.text).split() == unified(shown(snapshot)[start:end]).split()
        return Silence(UNCHANGED) if is_same else _discarded("it rewrites or removes too much")
    if any(hides(snapshot, edit.start, edit.end) or (question.hides and MASK.search(edit.text)) for edit in edits):
        return _discarded("it rewrites lines of a private key, which the model was not shown")
    if not question.invoked and any((snapshot.uri, *widened(snapshot.text, e)) in question.refused for e in edits):
        return _discarded("it was rejected before")
    evidence = question.judge.evidence(answer, text="\n".join(edit.text for edit in edits))
    chance = question.judge.chance(evidence)
    candidates_of_model = [
        Candidate(snapshot.uri, edit.start, edit.end, edit.text, "region", None, {}, chance, bound=True)
        for edit in edits
    ]
    reason = unwelcome(question, candidates_of_model, candidates)
    return _discarded(reason) if reason else RegionRewrite(tuple(candidates_of_model), evidence)


def unwelcome(question: NextQuestion, own_edits: Sequence[Candidate], candidates: Iterable[Candidate]) -> str:
    """Why what a model has written is not shown: it restores what the user has just changed, unless that was a typo, or
    in code it writes the new name for something else that has the old one; empty if it does neither."""
    files = question.files
    reversals = [edit for edit in own_edits if question.is_reversal(edit.uri, edit)]
    if not all(_mends_a_word(files[edit.uri], edit) for edit in reversals):
        return "it would undo what was done a moment ago"
    learned = rules(question.edits)
    renames = Renames.of(learned, files.values(), (question.project or Project()).with_files(files.values()))
    allowed = permitted([*candidates, *own_edits], renames, files)
    is_welcome = all(edit in allowed or is_prose(files[edit.uri], edit.start) for edit in own_edits)
    return "" if is_welcome else "it would rename something else too"


def _mends_a_word(snapshot: Snapshot, edit: Candidate) -> bool:
    """True if the edit makes one word of another, after which the file has fewer syntax errors."""
    old = snapshot.text[edit.start : edit.end]
    change = minimal(old, edit.text or "")
    words = old[change.start : change.end], change.text
    before = syntax.problems(snapshot.tree) if all(WORD.fullmatch(word) for word in words) else 0
    return bool(before) and syntax.problems_after(snapshot, edit.start, edit.end, edit.text or "") < before


def _discarded(reason: str) -> Silence:
    return Silence(f"the model's edit was discarded: {reason}")


def edits_of(snapshot: Snapshot, region: tuple[int, int], text: str, cursor: int) -> list[TextEdit]:
    """What turns these whole lines into the text, in the file's style; blanks at the ends of lines make no difference.
    None if the model has lost its way."""
    first, last = map(snapshot.line_of, region)
    start, end = snapshot.line_start(first), snapshot.line_end(last)
    old, new = unified(shown(snapshot)[start:end]).split("\n"), unified(text).split("\n")
    if not old[-1] and new[-1]:
        new.append("")
    elif old[-1] and len(new) > 1 and not new[-1]:
        new.pop()
    changed = [change for change in _differing(old, new) if _is_visible(old, new, change)]
    removed, added = sum(j - i for i, j, _, _ in changed), sum(m - k for _, _, k, m in changed)
    if removed + added > MOST_LINES or removed - added > MOST_REMOVED:
        return []
    edits: list[TextEdit] = []
    for i, j, k, m in changed:
        lines = in_the_files_style("\n".join(["", *new[k:m]]), snapshot).split(line_break(snapshot.text))[1:]
        edits += _hunk(snapshot, first + i, first + j, lines, last, cursor)
    return edits


def _differing(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Which lines became which; all between the first difference and the last one if they are too many to compare."""
    bare = [[line.rstrip() for line in lines] for lines in (old, new)]
    head, tail = shared_ends(*bare)
    between = [lines[head : len(lines) - tail] for lines in bare]
    if max(map(len, between)) > MOST_COMPARED:
        yield head, len(old) - tail, head, len(new) - tail
        return
    for tag, i, j, k, m in SequenceMatcher(None, between[0], between[1]).get_opcodes():
        if tag != "equal":
            yield head + i, head + j, head + k, head + m


def _is_visible(old: Sequence[str], new: Sequence[str], lines: tuple[int, int, int, int]) -> bool:
    """Whether more than blank lines differ."""
    i, j, k, m = lines
    return any(line.strip() for line in (*old[i:j], *new[k:m]))


def _hunk(snapshot: Snapshot, first: int, stop: int, came: Sequence[str], last: int, cursor: int) -> list[TextEdit]:
    """The lines from `first` to `stop` become others: only what differs, line by line if their number stays."""
    end_of_line, number = line_break(snapshot.text), stop - first
    if number and number == len(came):
        lines = zip(range(first, stop), came, strict=True)
        return [minimal(snapshot.line(at), line).moved(snapshot.line_start(at)) for at, line in lines]
    if number and came:
        start = snapshot.line_start(first)
        before = snapshot.text[start : snapshot.line_end(stop - 1)]
        return [minimal(before, end_of_line.join(came)).moved(start)]
    above = snapshot.line_end(first - 1) if first else 0
    if stop > last or (came and above == cursor > snapshot.line_start(max(first - 1, 0))):
        end = snapshot.line_end(stop - 1) if number else above
        return [TextEdit(above, end, "".join(end_of_line + line for line in came))]
    text = "".join(line + end_of_line for line in came)
    return [TextEdit(snapshot.line_start(first), snapshot.line_start(stop), text)]


def merged_candidates(
    question: NextQuestion, candidates: Sequence[Candidate], rewrite: Sequence[Candidate]
) -> list[Candidate]:
    """The candidates of the rules, and the model's. Where both make the same edit, it is likelier than either says. If
    the model does a rule's edit and more, all that it does comes instead, and is likelier too."""
    parts = [[candidate for candidate in candidates if _is_part(question, candidate, edit)] for edit in rewrite]
    likelier: dict[CandidatePlace, Candidate] = {}
    is_ruled = True
    for steps, edit in zip(parts, rewrite, strict=True):
        equal = [candidate for candidate in steps if _is_same(question, candidate, edit)]
        likelier |= {place_of(candidate): _strengthened(candidate, edit) for candidate in equal}
        is_ruled &= bool(equal)
    if is_ruled:
        return list(distinct([likelier.get(place_of(candidate), candidate) for candidate in candidates]))
    replaced = {place_of(candidate): candidate.p_edit for steps in parts for candidate in steps}
    likeliest = max(replaced.values(), default=0.0)
    own = [replace(edit, p_edit=_chance_of_either(edit.p_edit, likeliest)) for edit in rewrite]
    others = [candidate for candidate in candidates if place_of(candidate) not in replaced]
    return list(distinct([*others, *own]))


def _strengthened(ruled: Candidate, rewritten: Candidate) -> Candidate:
    return replace(
        ruled,
        p_edit=_chance_of_either(ruled.p_edit, rewritten.p_edit),
        p_due=_chance_of_either(ruled.p_due, rewritten.p_edit),
    )


def _is_same(question: NextQuestion, first: Candidate, second: Candidate) -> bool:
    return same_result(question.files[second.uri].text, _edit_of(first), _edit_of(second))


def _is_part(question: NextQuestion, part: Candidate, whole: Candidate) -> bool:
    """Whether making one edit is making the other, or a step towards it."""
    if part.uri != whole.uri or part.text is None:
        return False
    if _is_same(question, part, whole):
        return True
    text = question.files[whole.uri].text
    if not whole.start <= part.start <= part.end <= whole.end:
        return False
    old = text[whole.start : whole.end]
    after = old[: part.start - whole.start] + (part.text or "") + old[part.end - whole.start :]
    return is_step_towards(old, after, whole.text or "")


def _edit_of(candidate: Candidate) -> TextEdit:
    return TextEdit(candidate.start, candidate.end, candidate.text or "")


def _chance_of_either(first: float, second: float) -> float:
    """The chance that one of two independent signs is right."""
    return 1.0 - (1.0 - first) * (1.0 - second)
