"""The user's recent edits as hunks of lines, and what a suggestion must not undo."""

import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from itertools import accumulate, groupby, islice, takewhile

from msgspec import Struct

from mercury_engine.api import LINES_AROUND, Edit
from mercury_engine.private_keys import masked_lines
from mercury_engine.prompts.lines import shared_ends
from mercury_ls.code.differences import LINE, TERMINATOR
from mercury_ls.code.edits import TextEdit, applied, difference, is_word, same_result

MAX_HUNKS, MAX_CHARACTERS = 64, 64 << 10
"""Of the user's own edits; what accepted offers made between two of them counts as one more."""
MAX_ACCEPTED, MAX_ACCEPTED_CHARACTERS = 1024, 256 << 10
MAX_FILES = 256
MOST_KEY_LINES = 4096
"""Of a file."""
LARGEST_HUNK = MAX_CHARACTERS // 2
PAUSE_SECONDS = 1.0
MAX_LINES = 8
MAX_AROUND = 600
"""Characters above an edit, and below it."""


class _Hunk(Struct, eq=False):
    """Whole lines: `before` became `after`, which begins at `start` in the text before the later hunks in the list.
    `above` and `below` are the surrounding lines as they were at that time."""

    path: str
    start: int
    line: int
    before: str
    after: str
    time: float
    is_own: bool = True
    is_reload: bool = False
    mark: int = 0
    above: str = ""
    below: str = ""

    @property
    def end(self) -> int:
        return self.start + len(self.after)

    @property
    def grown(self) -> int:
        return len(self.after) - len(self.before)

    @property
    def lines_grown(self) -> int:
        return _terminators(self.after) - _terminators(self.before)


class _Trace(Struct, eq=False):
    """`removed` was replaced by what the user typed, which is `start:end` in the current text. Before the last pause
    the text there was `stood`; `time` is that of the file's last change."""

    path: str
    start: int
    end: int
    removed: str
    time: float
    stood: str = ""


class History:
    """The recent edits of all files. Edits that belong together become one hunk; reverted edits disappear."""

    def __init__(self) -> None:
        self._hunks: list[_Hunk] = []
        self._traces: list[_Trace] = []
        self.mark = 0
        """A counter that increases with every change: see `since`."""
        self.is_last_too_large = False
        """Whether the user's last change is not among the edits, since its lines have more than `LARGEST_HUNK`
        characters."""
        self._reverted_at = 0
        self._lengths: dict[str, int] = {}
        self._key_lines: dict[str, dict[str, str]] = {}
        """For each file, the lines that have ever held something of a private key, and what is shown of them: a hunk
        is a piece of a text, and may be what is left of one."""
        self._noted = ""

    def record(
        self,
        path: str,
        text_before: str,
        change: TextEdit,
        time: float,
        is_own: bool = True,
        lines: tuple[int, int] | None = None,
    ) -> None:
        """Record a change of `text_before`, in the order in which the file's changes happened. Changes by an accepted
        offer are not the user's own. If `lines` is given, only that range of the text is real."""
        self._note(path, text_before, change)
        self._follow(path, text_before, change, time)
        known = lines or (0, len(text_before))
        pieces = _by_lines(text_before, change) if self._replaces_edits(path, change) else []
        if len(pieces) < 2:
            self._add(path, text_before, change, time, is_own, known)
        else:
            mark = self.mark
            for piece in reversed(pieces):
                self._add(path, text_before, piece, time, False, known)
                text_before = applied(text_before, [piece])
                known = known[0], known[1] + len(piece.text) - (piece.end - piece.start)
            self._look_around(path, text_before, mark, known)
        self._forget_oldest()

    def reloaded(self, path: str, text_before: str, change: TextEdit, time: float) -> None:
        """Follow a change that another program made: it is no edit of the user, and takes back what it reverts."""
        self._note(path, text_before, change)
        for trace in self._traces:
            if trace.path == path:
                _move_trace(trace, change)
        for piece in reversed(_by_lines(text_before, change)):
            self._add_reload(path, text_before, piece, time)
            text_before = applied(text_before, [piece])
        self._forget_oldest()

    def reloaded_by_user(self, path: str, mark: int) -> None:
        """What the file was taken to be reloaded with since this mark was an edit of the user after all."""
        for hunk in self._hunks:
            if hunk.path == path and hunk.mark > mark and hunk.is_reload:
                hunk.is_own, hunk.is_reload = True, False

    def _note(self, path: str, text_before: str, change: TextEdit) -> None:
        if text_before != self._noted:
            self._note_keys(path, text_before)
        self._noted = applied(text_before, [change])
        self._note_keys(path, self._noted)
        self._lengths.pop(path, None)
        self._lengths[path] = len(text_before) - (change.end - change.start) + len(change.text)

    def _note_keys(self, path: str, text: str) -> None:
        if noted := masked_lines(text):
            earlier = {line: shown for line, shown in self._key_lines.get(path, {}).items() if line not in noted}
            self._key_lines[path] = dict([*earlier.items(), *noted.items()][-MOST_KEY_LINES:])

    def _add(
        self, path: str, text_before: str, change: TextEdit, time: float, is_own: bool, lines: tuple[int, int]
    ) -> None:
        continued = self._continued(path, text_before, change, time)
        hunk = continued or _hunk_of(path, text_before, change, time)
        hunk.is_own = is_own or (continued is not None and continued.is_own)
        hunk.above, hunk.below = _around(hunk, text_before, change, lines)
        is_too_large = len(hunk.before) + len(hunk.after) > LARGEST_HUNK
        self.is_last_too_large = is_own and is_too_large
        if is_too_large:
            # The older hunks of this file do not fit its text without this one.
            self._hunks = [other for other in self._hunks if other.path != path]
        elif hunk.before != hunk.after:
            self.mark = hunk.mark = self.mark + 1
            self._hunks.append(hunk)
        elif hunk.is_own:
            self.mark = self._reverted_at = self.mark + 1

    def _add_reload(self, path: str, text_before: str, change: TextEdit, time: float) -> None:
        self.mark += 1
        if self._continued(path, text_before, change, time, only_undone=True):
            self._reverted_at = self.mark
            return
        hunk = _hunk_of(path, text_before, change, time)
        hunk.is_own, hunk.is_reload, hunk.mark = False, True, self.mark
        self._hunks.append(hunk)
        if len(hunk.before) + len(hunk.after) > LARGEST_HUNK:
            self._hunks = [other for other in self._hunks if other.path != path]

    def _look_around(self, path: str, text: str, mark: int, lines: tuple[int, int]) -> None:
        """Note what surrounds the hunks after this mark by now, when all pieces of a change have been made."""
        hunks = [hunk for hunk in self._hunks if hunk.path == path]
        for index, hunk in enumerate(hunks):
            latest, _ = _as_latest(hunk, hunks[index + 1 :]) if hunk.mark > mark else (None, [])
            if latest:
                nothing = TextEdit(latest.start, latest.start, "")
                hunk.above, hunk.below = _around(latest, text, nothing, lines)

    def edits(self, limit: int = 16, *, own: bool = False) -> tuple[Edit, ...]:
        """The edits as whole lines with their terminators and current line numbers, oldest first, without those whose
        results are gone; with `own`, without those that accepted offers made. Private keys are masked in them."""
        made = [(index, hunk) for index, hunk in enumerate(self._hunks) if not hunk.is_reload]
        indices = (index for index, hunk in reversed(made) if hunk.is_own or not own)
        standing = (index for index in indices if _stands(self._hunks[index], self._hunks[index + 1 :]))
        return tuple(self._edit(index) for index in reversed([*islice(standing, limit)]))

    def accepted(self) -> tuple[Edit, ...]:
        """The edits that accepted offers made: nothing is learned from them, and they need no follow-up edits."""
        made = (index for index, hunk in enumerate(self._hunks) if not (hunk.is_own or hunk.is_reload))
        return tuple(map(self._edit, made))

    def _edit(self, index: int) -> Edit:
        hunk = self._hunks[index]
        line = _current_line(hunk, self._hunks[index + 1 :])
        accepted = not hunk.is_own
        edit = Edit(hunk.path, line, hunk.before, hunk.after, above=hunk.above, below=hunk.below, accepted=accepted)
        key_lines = self._key_lines.get(hunk.path)
        return edit.with_texts(lambda text: _without(key_lines, text)) if key_lines else edit

    def since(self, mark: int) -> int:
        """The number of the user's edits that were made or extended after this mark."""
        return sum(hunk.mark > mark for hunk in self._hunks if hunk.is_own)

    def has_changed_since(self, mark: int) -> bool:
        """True if the user has edited something after this mark, or reverted an edit."""
        return self._reverted_at > mark or self.since(mark) > 0

    def reverses(self, path: str, text: str, start: int, end: int, replacement: str) -> bool:
        """True if an edit of the current text would restore what the user has just removed, or remove what the user
        has just typed. Completing what was typed is neither, even if the same text stood there before.
        """
        change = difference(text[start:end], replacement)
        edit = change.moved(start)
        if edit.start == edit.end and not edit.text:
            return False
        traces = [trace for trace in self._traces if trace.path == path]
        return any(_removes_typed(trace, text, edit) or _restores_removed(trace, text, edit) for trace in traces)

    def has_deletion_at(self, path: str, offset: int) -> bool:
        """Whether the last thing that was done to the file is that text before or behind the offset went, and nothing
        came instead."""
        trace = next((trace for trace in reversed(self._traces) if trace.path == path), None)
        return trace is not None and trace.start == trace.end == offset

    def knows(self, path: str) -> bool:
        """Whether there are edits of the file."""
        return any(hunk.path == path for hunk in self._hunks)

    @property
    def paths(self) -> frozenset[str]:
        """The files that have edits."""
        return frozenset(hunk.path for hunk in self._hunks)

    def reopened(self, path: str, *texts: str) -> None:
        """Forget the file's edits if its content was replaced, for example by another branch's: if they fit none of
        these texts."""
        if not any(self._fits(path, text) for text in texts):
            self.forget(path)

    def _fits(self, path: str, text: str) -> bool:
        fits = self._lengths.get(path, len(text)) == len(text)
        for hunk in reversed([hunk for hunk in self._hunks if hunk.path == path]):
            fits = fits and text.startswith(hunk.after, hunk.start)
            text = text[: hunk.start] + hunk.before + text[hunk.end :]
        return fits

    def forget(self, path: str) -> None:
        if self.knows(path):
            self.mark = self._reverted_at = self.mark + 1
        self._hunks = [hunk for hunk in self._hunks if hunk.path != path]
        self._traces = [trace for trace in self._traces if trace.path != path]
        self._lengths.pop(path, None)
        self._key_lines.pop(path, None)

    def rename(self, old: str, new: str) -> None:
        self.forget(new)
        for entry in [*self._hunks, *self._traces]:
            if entry.path == old:
                entry.path = new
        if old in self._lengths:
            self._lengths[new] = self._lengths.pop(old)
        if old in self._key_lines:
            self._key_lines[new] = self._key_lines.pop(old)

    def clear(self) -> None:
        self.is_last_too_large = False
        self._hunks.clear()
        self._traces.clear()
        self._lengths.clear()
        self._key_lines.clear()

    def _continued(
        self, path: str, text: str, change: TextEdit, time: float, *, only_undone: bool = False
    ) -> _Hunk | None:
        """The hunk that this change extends, or undoes, merged with it and removed from the list."""
        lines = start, end = _whole_lines(text, change)
        newer: list[_Hunk] = []
        for hunk in reversed([hunk for hunk in self._hunks if hunk.path == path]):
            if start <= hunk.end and end >= hunk.start:
                latest, below = _as_latest(hunk, newer)
                joined = latest and _merged_hunk(latest, text, change, lines, time)
                if joined is None or (only_undone and joined.before != joined.after):
                    return None
                self._take_out(hunk, below)
                return joined
            if start > hunk.end:
                start, end = start - hunk.grown, end - hunk.grown
            newer.insert(0, hunk)
        return None

    def _replaces_edits(self, path: str, change: TextEdit) -> bool:
        """Whether a change of several lines takes the place of edits, as when the editor reloads the file."""
        if not 0 < change.end - change.start <= LARGEST_HUNK or not 0 < len(change.text) <= LARGEST_HUNK:
            return False
        start, end = change.start, change.end
        for hunk in reversed([hunk for hunk in self._hunks if hunk.path == path]):
            if start < hunk.end and end > hunk.start:
                return True
            if start >= hunk.end:
                start, end = start - hunk.grown, end - hunk.grown
        return False

    def _take_out(self, hunk: _Hunk, below: Iterable[_Hunk]) -> None:
        self._hunks.remove(hunk)
        for other in below:
            other.start -= hunk.grown
            other.line -= hunk.lines_grown

    def _follow(self, path: str, text: str, change: TextEdit, time: float) -> None:
        """Move the traces along with the text, and add one for this change."""
        mine = [trace for trace in self._traces if trace.path == path]
        for trace in mine:
            if time - trace.time >= PAUSE_SECONDS:
                trace.stood = text[trace.start : trace.end]
            trace.time = time
        removed = text[change.start : change.end]
        continued = (
            _continues_deletion(mine[-1:], change, removed)
            if removed
            else any(trace.start <= change.start <= trace.end for trace in mine)
        )
        for trace in mine:
            _move_trace(trace, change)
        if not continued and len(removed) <= LARGEST_HUNK:
            end = change.start + len(change.text)
            self._traces.append(_Trace(path, change.start, end, removed, time))
        self._traces = [trace for trace in self._traces if trace.removed or trace.start < trace.end]

    def _forget_oldest(self) -> None:
        while self._has_too_much():
            self._hunks.pop(0)
        size = sum(len(trace.removed) for trace in self._traces)
        while len(self._traces) > MAX_HUNKS or size > MAX_CHARACTERS:
            size -= len(self._traces.pop(0).removed)
        while len(self._lengths) > MAX_FILES:
            del self._lengths[next(iter(self._lengths))]

    def _has_too_much(self) -> bool:
        own = [hunk for hunk in self._hunks if hunk.is_own]
        accepted = [hunk for hunk in self._hunks if not hunk.is_own]
        offers = sum(not key for key, _ in groupby(self._hunks, lambda hunk: hunk.is_own))
        return (
            len(own) + offers > MAX_HUNKS
            or _characters(own) > MAX_CHARACTERS
            or len(accepted) > MAX_ACCEPTED
            or _characters(accepted) > MAX_ACCEPTED_CHARACTERS
        )


def _without(key_lines: Mapping[str, str], text: str) -> str:
    return "".join(key_lines.get(line, line) for line in re.split(r"([\r\n]+)", text))


def _characters(hunks: Iterable[_Hunk]) -> int:
    return sum(len(hunk.before) + len(hunk.after) for hunk in hunks)


def _hunk_of(path: str, text: str, change: TextEdit, time: float) -> _Hunk:
    start, end = _whole_lines(text, change)
    after = text[start : change.start] + change.text + text[change.end : end]
    return _trimmed(_Hunk(path, start, _terminators(text, start), text[start:end], after, time))


def _by_lines(text: str, change: TextEdit) -> list[TextEdit]:
    """The change as changes of single lines, without the lines that stay."""
    start, end = _whole_lines(text, change)
    before = LINE.findall(text[start:end])
    after = LINE.findall(text[start : change.start] + change.text + text[change.end : end])
    offsets = [*accumulate(map(len, before), initial=start)]
    opcodes = SequenceMatcher(None, before, after).get_opcodes()
    return [TextEdit(offsets[i], offsets[j], "".join(after[k:m])) for tag, i, j, k, m in opcodes if tag != "equal"]


def _around(hunk: _Hunk, text: str, change: TextEdit, lines: tuple[int, int]) -> tuple[str, str]:
    """The whole lines above and below a hunk, of which this change of the text is the latest part."""
    grown = len(change.text) - (change.end - change.start)
    first = max(min(change.start, hunk.start) - MAX_AROUND, lines[0])
    last = min(max(change.end, hunk.end - grown) + MAX_AROUND, lines[1])
    near = text[first : change.start] + change.text + text[change.end : last]
    above, below = LINE.findall(near[: max(hunk.start - first, 0)]), LINE.findall(near[hunk.end - first :])
    cut_above, cut_below = first > lines[0], last < lines[1]  # the outermost line may be a part of one
    return "".join(above[cut_above:][-LINES_AROUND:]), "".join(below[: len(below) - cut_below][:LINES_AROUND])


def _merged_hunk(hunk: _Hunk, text: str, change: TextEdit, lines: tuple[int, int], time: float) -> _Hunk | None:
    """One hunk for both if they belong together: the change touches what the hunk changed, or follows soon on the same
    or adjacent lines.
    """
    start, end = lines
    if start > hunk.end or end < hunk.start or not (time - hunk.time <= PAUSE_SECONDS or _touches_hunk(hunk, change)):
        return None
    start, end = min(start, hunk.start), max(end, hunk.end)
    before = text[start : hunk.start] + hunk.before + text[hunk.end : end]
    after = text[start : change.start] + change.text + text[change.end : end]
    line = hunk.line - _terminators(text[start : hunk.start])
    joined = _trimmed(_Hunk(hunk.path, start, line, before, after, time, hunk.is_own))
    return joined if max(_terminators(joined.before), _terminators(joined.after)) <= MAX_LINES else None


def _touches_hunk(hunk: _Hunk, change: TextEdit) -> bool:
    core = difference(hunk.before, hunk.after)
    first = hunk.start + core.start
    return change.start <= first + len(core.text) and change.end >= first


def _as_latest(hunk: _Hunk, newer: Iterable[_Hunk]) -> tuple[_Hunk | None, list[_Hunk]]:
    """The hunk as if it were the latest, and those of `newer` below it; None if one of them overlaps it."""
    start, line = hunk.start, hunk.line
    below: list[_Hunk] = []
    for other in newer:
        if other.start >= start + len(hunk.after):
            below.append(other)
        elif other.start + len(other.before) <= start:
            start += other.grown
            line += other.lines_grown
        else:
            return None, []
    return _Hunk(hunk.path, start, line, hunk.before, hunk.after, hunk.time, hunk.is_own), below


def _stands(hunk: _Hunk, newer: Iterable[_Hunk]) -> bool:
    """Whether no newer hunk replaced all of what came in by something else."""
    made = difference(hunk.before, hunk.after)
    start, size = hunk.start + made.start, len(made.text)
    for other in newer if size else ():
        if other.path != hunk.path or other.start > start:
            continue
        if other.start + len(other.before) >= start + size:
            change = difference(other.before, other.after).moved(other.start)
            if change.start <= start and change.end >= start + size:
                return made.text in change.text
            if change.end > start:
                continue
        start += other.grown
    return True


def _current_line(hunk: _Hunk, newer: Iterable[_Hunk]) -> int:
    line = hunk.line
    for other in newer:
        if other.path != hunk.path or other.line > line:
            continue
        if line >= other.line + _terminators(other.before):
            line += other.lines_grown
        else:
            line = min(line, other.line + _terminators(other.after))
    return max(line, 0)  # typing a carriage return before a line feed turns two counted lines into one


def _whole_lines(text: str, change: TextEdit) -> tuple[int, int]:
    """The range of the lines that the change touches; exactly the change if it replaces whole lines by whole lines."""
    start = _line_start(text, change.start)
    whole = start == change.start and (not change.text or change.text[-1] in "\r\n")
    if whole and _line_start(text, change.end) == change.end:
        return start, change.end
    match = TERMINATOR.search(text, change.end)
    return start, match.end() if match else len(text)


def _line_start(text: str, offset: int) -> int:
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def _terminators(text: str, end: int | None = None) -> int:
    return text.count("\n", 0, end) + text.count("\r", 0, end) - text.count("\r\n", 0, end)


def _trimmed(hunk: _Hunk) -> _Hunk:
    """The hunk without unchanged lines at its edges."""
    before, after = LINE.findall(hunk.before), LINE.findall(hunk.after)
    head, tail = shared_ends(before, after)
    before, after = before[head:], after[head:]
    skipped = len(hunk.before) - sum(map(len, before))
    hunk.start += skipped
    hunk.line += head
    hunk.before = "".join(before[: len(before) - tail])
    hunk.after = "".join(after[: len(after) - tail])
    return hunk


def _continues_deletion(last: list[_Trace], change: TextEdit, removed: str) -> bool:
    """True if the change continues the last deletion, backwards or forwards; if so, the trace is extended."""
    if not last or change.text or not last[0].removed or last[0].start < last[0].end:
        return False
    trace = last[0]
    if change.end == trace.start:
        trace.removed = removed + trace.removed
    elif change.start == trace.start:
        trace.removed += removed
    return trace.start in (change.start, change.end)


def _move_trace(trace: _Trace, change: TextEdit) -> None:
    """Adapt a trace to a change: text typed inside it or at its edge becomes part of it."""
    reached = change.start + len(change.text)
    if trace.start > change.start:
        trace.start = max(trace.start - change.end, 0) + reached
    if trace.end >= change.end:
        trace.end += reached - change.end
    elif trace.end > change.start:
        trace.end = change.start
    trace.end = max(trace.start, trace.end)


def _removes_typed(trace: _Trace, text: str, edit: TextEdit) -> bool:
    """True if the edit removes some of what was typed without replacing it, and does more than mend a word."""
    first, last = max(trace.start, edit.start), min(trace.end, edit.end)
    removes = not edit.text.strip() and bool(text[first:last].strip())
    return removes and not _mends_word(trace, text, edit)


def _mends_word(trace: _Trace, text: str, edit: TextEdit) -> bool:
    """True if the edit takes some letters out of a word typed since the last pause without restoring what stood before
    it."""
    typed, first, last = text[trace.start : trace.end], edit.start - trace.start, edit.end - trace.start
    is_inside = 0 <= first < last <= len(typed)
    if edit.text or not is_inside or not all(map(is_word, typed[first:last])):
        return False
    start, end = first - _length_of_word(reversed(typed[:first])), last + _length_of_word(typed[last:])
    if (start, end) == (first, last):
        return False
    if _within_word(text, trace.start + start) or _within_word(text, trace.start + end):
        return False
    return typed[start:end] not in trace.stood and typed[:first] + typed[last:] != trace.stood


def _length_of_word(characters: Iterable[str]) -> int:
    """How many of the first characters are of one word."""
    return sum(1 for _ in takewhile(is_word, characters))


def _restores_removed(trace: _Trace, text: str, edit: TextEdit) -> bool:
    typed, inserts = text[trace.start : trace.end], edit.start == edit.end
    if typed == trace.removed or (inserts and typed):
        return False
    if same_result(text, edit, TextEdit(trace.start, trace.end, trace.removed)):
        return True
    if inserts:
        edit = _slide_insertion(text, edit, trace.start)
    if not trace.removed or edit.start > trace.end or edit.end < trace.start:
        return False
    if inserts:
        return _stands_again(trace, text, edit) or _is_part(edit.text, trace.removed)
    return _stands_again(trace, text, edit) or _brings_back(trace, typed, edit)


def _slide_insertion(text: str, insertion: TextEdit, target: int) -> TextEdit:
    """The insertion with the same result that is nearest to `target`: inserting `a` before or after an `a` is the same.
    The text may be older than the trace and end before it."""
    at, inserted = insertion.start, insertion.text
    while at < min(target, len(text)) and text[at] == inserted[0]:
        at, inserted = at + 1, inserted[1:] + inserted[0]
    while at > target and text[at - 1] == inserted[-1]:
        at, inserted = at - 1, inserted[-1] + inserted[:-1]
    return TextEdit(at, at, inserted)


def _stands_again(trace: _Trace, text: str, edit: TextEdit) -> bool:
    """True if the removed text would be back in its place, as whole words, whatever follows it."""
    size = len(trace.removed)
    if edit.start < trace.start or ("\n" in trace.removed and not trace.removed.strip()):
        return False
    result = text[trace.start : edit.start] + edit.text + text[edit.end : edit.end + size + 1]
    return result.startswith(trace.removed) and not _within_word(result, size)


def _is_part(text: str, removed: str) -> bool:
    """True if the text is the beginning or the end of what was removed; brackets alone do not count."""
    return any(map(is_word, text)) and (removed.startswith(text) or removed.endswith(text))


def _brings_back(trace: _Trace, typed: str, edit: TextEdit) -> bool:
    """True if the edit replaces all that was typed by something that contains the removed text."""
    removed, is_over = trace.removed.strip(), edit.start <= trace.start and trace.end <= edit.end
    keeps_typed = bool(typed) and typed in edit.text
    if len(removed) < 2 or keeps_typed or not is_over:
        return False
    at = edit.text.find(removed)
    ends = at, at + len(removed)
    return at >= 0 and not any(_within_word(edit.text, end) for end in ends)


def _within_word(text: str, offset: int) -> bool:
    return 0 < offset < len(text) and is_word(text[offset - 1]) and is_word(text[offset])
