"""Moments in which a next edit is due, or silence: a document, what was done before, and what came next.

`cases` reads rows of git history with whole files (`.jsonl`), or the edit rows of a corpus (`.jsonl.xz`), which are
windows; with the mirrors that the corpus was made from, those of real commits become whole files again.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Edit
from mercury_ls.code.differences import is_step_towards, tokens
from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.code.edits import TextEdit, difference
from mercury_ls.code.history import History
from mercury_ls.completion.target import Silence
from mercury_ls.next_edit.candidates import Candidate
from mercury_ls.next_edit.search import searching
from mercury_ls.next_edit.situation import Situation
from mercury_training.corpus.history import hunks_between
from mercury_training.corpus.shards import EditRow, Replacement, read_edits
from mercury_training.corpus.sources import blobs
from mercury_training.corpus.synthetic import lines_of

PAUSE = 60.0
BEYOND = 1 << 30
"""Where every edit is above the text, whichever it is."""
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@.*")


class Case(Struct, frozen=True):
    """`expected` is what came next, `also_ok` what else was still to come; offsets are of the snapshot."""

    kind: str
    snapshot: Snapshot
    offset: int
    history: History
    expected: tuple[TextEdit, ...]
    also_ok: tuple[TextEdit, ...]


def cases(path: Path, mirrors: Path | None = None, every: int = 1) -> Iterator[Case]:
    """Of each `every`-th row: what is left out costs nothing."""
    if path.suffix == ".xz":
        for repository, rows in groupby(islice(read_edits(path), 0, None, every), key=lambda row: row.repository):
            yield from of_repository(rows, mirrors and mirrors / repository.replace("/", "+") / "repo")
        return
    with path.open(encoding="utf-8") as lines:
        yield from (of_commit(json.loads(line)) for line in islice(lines, 0, None, every))


def verdict(snapshot: Snapshot, candidate: Candidate | TextEdit, wanted: Sequence[TextEdit]) -> tuple[bool, bool]:
    """Right: a part of what the author changed on these lines, and nothing else. Without a text: these lines change."""
    first = snapshot.line_start(snapshot.line_of(candidate.start))
    end = snapshot.line_end(snapshot.line_of(max(candidate.end - 1, candidate.start)))
    touched = [each for each in wanted if each.start <= end + 1 and each.end >= first]
    if candidate.text is None:
        return any(each.start <= end and each.end > first for each in touched), False
    proposal = TextEdit(candidate.start, candidate.end, candidate.text)
    for each in touched:
        start, stop = min(first, each.start), max(end, each.end)
        before = snapshot.text[start:stop]
        after, author = (_applied_within(before, start, change) for change in (proposal, each))
        if _words(after) == _words(author):
            return True, True
        if is_step_towards(before, after, author):
            return True, False
    return False, False


def _applied_within(text: str, start: int, change: TextEdit) -> str:
    return text[: change.start - start] + change.text + text[change.end - start :]


def _words(text: str) -> list[str]:
    return [token.text for token in tokens(text)]


def of_commit(row: dict) -> Case:
    """The file of a row may be a window of it: the diffs' numbers then count from lines that are not there."""
    found = next((history for first in _first_lines(row) if (history := _replayed(row, first))), None)
    if found is None:
        raise ValueError(f"{row['id']}: its edits do not lead to file_now; is the row damaged?")
    snapshot = Document("file:///now", row["path"], row["language"], 1, row["file_now"]).snapshot()
    offset = snapshot.offset(max(row["cursor"]["line"], 0), row["cursor"]["character"], "utf-16")
    expected, also_ok = (tuple(_change_of(snapshot, each) for each in row[name]) for name in ("expected", "also_ok"))
    return Case(row["class"], snapshot, offset, found, expected, also_ok)


def _first_lines(row: dict) -> Iterator[int]:
    """The lines of the file at which its text may begin: where one of its edits fits."""
    yield 0
    lines = row["file_before"].split("\n")
    own = [hunk for edit in row["edits"] if edit["path"] == row["path"] for hunk in _hunks(edit["diff"])]
    for number, (first, before, _) in enumerate(own):
        moved = sum(len(after) - len(old) for line, old, after in own[:number] if line <= first)
        fits = (n for n in range(len(lines)) if before and lines[n : n + len(before)] == before)
        yield from (first - moved - n for n in fits)
    yield BEYOND


def _replayed(row: dict, first_line: int) -> History | None:
    """The history of the row's edits, None if they do not lead to its text."""
    text, within, made = row["file_before"], 0, []
    for number, edit in enumerate(row["edits"]):
        here, elsewhere = edit["path"] == row["path"], _name_elsewhere(edit["path"], row["path"])
        for first, before, after in _hunks(edit["diff"]):
            at, lines, longer = first - first_line, text.split("\n"), len(after) - len(before)
            fits = at >= 0 and lines[at : at + len(before)] == before
            below = here and (at >= len(lines) or (at == text.count("\n") and not fits))
            over = here and bool(text) and at + len(before) <= 0
            if not here or below or over:
                line = first - within if below else first
                made.append((number, Edit(elsewhere, line, _whole_lines(before), _whole_lines(after))))
                first_line += longer if over else 0
            elif not fits:
                return None
            else:
                now = "\n".join([*lines[:at], *after, *lines[at + len(before) :]])
                made.append((number, (text, now)))
                text, within = now, within + longer
    return _history_of(row["path"], made) if text.rstrip("\n") == row["file_now"].rstrip("\n") else None


def _whole_lines(lines: Iterable[str]) -> str:
    return "".join(line + "\n" for line in lines)


def _name_elsewhere(edited: str, path: str) -> str:
    """The name of a file that is not there, or of the part of one."""
    return f"elsewhere in {edited}" if edited == path else edited


def _history_of(path: str, made: Sequence[tuple[int, Edit | tuple[str, str]]]) -> History:
    """What was done in turn: to the text that is there, before and after, and to what is not, as edits."""
    history, absent = History(), _beginnings([step for _, step in made if isinstance(step, Edit)])
    for number, step in made:
        if not isinstance(step, Edit):
            _record(history, path, *step, number)
            continue
        lines, at, before = absent[step.path], max(step.line, 0), lines_of(step.before)
        lines[at : at + len(before)] = before
        start = sum(map(len, lines[:at]))
        change = TextEdit(start, start + len(step.before), step.after)
        known = start, start + len(step.before)
        history.record(step.path, "".join(lines), change, PAUSE * number, lines=known)
        lines[at : at + len(before)] = lines_of(step.after)
    return history


def _beginnings(edits: Sequence[Edit]) -> dict[str, list[str]]:
    """The lines that each file must have had for these edits to be made in turn; blank where nothing is known."""
    files: dict[str, list[str]] = {}
    for edit in reversed(edits):
        lines, at, size = files.setdefault(edit.path, []), max(edit.line, 0), len(lines_of(edit.after))
        lines += ["\n"] * (at + size - len(lines))
        lines[at : at + size] = lines_of(edit.before)
    return files


def _hunks(diff: str) -> Iterator[tuple[int, list[str], list[str]]]:
    """First line, counted from 0 in the text that the hunks above have left, and the lines before and after."""
    lines = diff.removesuffix("\n").split("\n")
    starts = [at for at, line in enumerate(lines) if HUNK.match(line)]
    grown = 0
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        first, count = HUNK.match(lines[start]).groups()
        before = [line[1:] for line in lines[start + 1 : stop] if line[:1] in " -"]
        after = [line[1:] for line in lines[start + 1 : stop] if line[:1] in " +"]
        yield int(first) - (count != "0") + grown, before, after
        grown += len(after) - len(before)


def _change_of(snapshot: Snapshot, edit: dict) -> TextEdit:
    start, end = (
        snapshot.offset(edit["range"][name]["line"], edit["range"][name]["character"], "utf-16")
        for name in ("start", "end")
    )
    return TextEdit(start, end, edit["newText"])


def _record(history: History, path: str, before: str, after: str, number: int) -> None:
    history.record(path, before, difference(before, after), PAUSE * number)


def of_repository(rows: Iterable[EditRow], mirror: Path | None) -> Iterator[Case]:
    if mirror is None or not mirror.exists():
        yield from map(of_row, rows)
        return
    with blobs(str(mirror)) as read:
        found = ((row, _whole(row, read)) for row in rows)
        # That nothing more was to be done is certain only of what somebody has done.
        yield from (of_row(restored or row) for row, restored in found if restored or row.kind != "none")


def _whole(row: EditRow, read: Callable[[str], bytes | None]) -> EditRow | None:
    """The row with all of its file as the window, None where history does not give it back."""
    old, new = (read(f"{row.commit}{parent}:{row.path}") for parent in ("^", ""))
    if not old or not new:
        return None
    try:
        before, after = (lines_of(data.decode().replace("\r\n", "\n")) for data in (old, new))
    except UnicodeDecodeError:
        return None
    now = after if row.kind == "none" else _edited(before, [edit for edit in row.edits if edit.path == row.path])
    if now is None or "".join(now[row.first_line :]).find(row.window) != 0:
        return None
    remaining = hunks_between(row.path, now, after) if now != after else []
    if remaining is None or (not remaining) != (row.kind == "none"):
        return None
    expected = tuple(Replacement(hunk.first, hunk.stop, "".join(hunk.new)) for hunk in remaining)
    first = row.expected[row.next].first + row.first_line if row.expected else 0
    number = next((at for at, each in enumerate(expected) if each.first == first), None)
    if expected and number is None:
        return None
    cursor = row.cursor + row.first_line if row.cursor >= 0 else _cursor_of(row)
    return replace(row, window="".join(now), first_line=0, expected=expected, next=number or 0, cursor=cursor)


def _edited(lines: list[str], edits: Sequence[Edit]) -> list[str] | None:
    """The lines after these edits, each where it was when it was made."""
    for edit in edits:
        before = lines_of(edit.before)
        if lines[edit.line : edit.line + len(before)] != before:
            return None
        lines = [*lines[: edit.line], *lines_of(edit.after), *lines[edit.line + len(before) :]]
    return lines


def _cursor_of(row: EditRow) -> int:
    """The line where the last edit left the cursor, if it was in this file."""
    last = row.edits[-1] if row.edits else None
    return last.line + max(last.after.count("\n") - 1, 0) if last and last.path == row.path else -1


def of_row(row: EditRow) -> Case:
    """The edits within the window are taken back and made again; what was done elsewhere is recorded so."""
    text, own = row.window, {}
    for at in range(len(row.edits) - 1, -1, -1):
        edit, start = row.edits[at], _offset_then(row, at, text)
        if start is not None and text.startswith(edit.after, start):
            own[at] = start
            text = text[:start] + edit.before + text[start + len(edit.after) :]
    made, within = [], 0
    for at, edit in enumerate(row.edits):
        if at in own:
            now = text[: own[at]] + edit.after + text[own[at] + len(edit.before) :]
            made.append((at, (text, now)))
            text, within = now, within + _grown(edit)
        else:
            below = edit.path == row.path and not _above(row, edit)
            line = edit.line - within if below else edit.line
            made.append((at, replace(edit, path=_name_elsewhere(edit.path, row.path), line=line)))
    history = _history_of(row.path, made)
    snapshot = Document("file:///now", row.path, row.language, 1, row.window).snapshot()
    expected = tuple(
        TextEdit(_line_start(snapshot, each.first), _line_start(snapshot, each.stop), each.text)
        for each in row.expected
    )
    next_one = expected[row.next : row.next + 1]
    rest = tuple(each for each in expected if each not in next_one)
    return Case(row.kind, snapshot, cursor(row, snapshot), history, next_one, rest)


def _offset_then(row: EditRow, at: int, text: str) -> int | None:
    """Where edit `at` was in the window when it was made; `text` is the window just after it."""
    edit = row.edits[at]
    if edit.path != row.path:
        return None
    line = edit.line - row.first_line + sum(_grown(later) for later in row.edits[at + 1 :] if _above(row, later))
    lines = lines_of(text)
    return sum(map(len, lines[:line])) if 0 <= line <= len(lines) else None


def _grown(edit: Edit) -> int:
    return edit.after.count("\n") - edit.before.count("\n")


def _above(row: EditRow, edit: Edit) -> bool:
    return edit.path == row.path and edit.line + edit.after.count("\n") <= row.first_line


def _line_start(snapshot: Snapshot, line: int) -> int:
    return snapshot.line_start(line) if line < snapshot.line_count else len(snapshot.text)


def cursor(row: EditRow, snapshot: Snapshot) -> int:
    """At the end of its line; outside the window, at the edge beyond which the last edit was made."""
    if row.cursor >= 0:
        return snapshot.line_end(min(row.cursor, snapshot.line_count - 1))
    last = row.edits[-1] if row.edits else None
    return len(snapshot.text) if last and last.path == row.path and last.line > row.first_line else 0


def candidates_after(situation: Situation) -> tuple[Candidate, ...] | Silence:
    """Where the last edits lead to, in this file and in others."""
    search = searching(situation)
    while True:
        try:
            next(search)
        except StopIteration as end:
            return end.value
