"""Sweep's next-edit models: 21 lines before and after the last edit, which the answer goes on with from the cursor's
line."""

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import partial

from mercury_engine.api import Edit, InfillRequest, Snippet
from mercury_engine.prompts.edits.asked import Asked, EditFormat, cursor_of, fitting, refuse, too_long, window_of
from mercury_engine.prompts.edits.history import newest, place_of
from mercury_engine.prompts.pieces import Mark, Piece, Prompt, Special, joined, tokens_of

__all__ = ["SWEEP"]

FILE, CURSOR = Special("<|file_sep|>"), Mark("<|cursor|>")
STOPS = tuple(map(Special, ("<|file_sep|>", "<|endoftext|>", "<|fim_prefix|>", "<|repo_name|>", "<|im_end|>")))
RADII = (10, 5, 2, 0)
FILE_RADII = (150, 75, 30, 0)
MOST_EDITS = 8
MOST_SNIPPETS, SNIPPET_LINES, SNIPPET_TOKENS = 3, 25, 2048
ROOM_TO_GROW = 128
MOST_ABOVE = 5
"""Lines that may be added above the cursor by an answer that also removes some."""

NO_NEWLINE = " No newline at end of file"


def _ask(request: InfillRequest, *, budget: int, count: Callable[[str], int]) -> Asked:
    window, cursor = window_of(request), cursor_of(request)
    lines = window.text.splitlines(keepends=True) or [""]
    row = min(window.text.count("\n", 0, cursor), len(lines) - 1)
    head = window.first_line
    for radius in RADII:
        top, bottom = max(row - radius, 0), min(row + radius + 1, len(lines))
        start = len("".join(lines[:top]))
        old = "".join(lines[top:bottom])
        section = _section(request, old, start, cursor, f"{window.path}:{head + top + 1}:{head + bottom}")
        prefill = _prefill(request, old, start, cursor)
        left = budget - tokens_of(joined([*_opening(window.path, "", ()), "\n", *section, prefill]), count)
        if left >= 0:
            break
    else:
        raise too_long(SWEEP.name, budget)
    refuse((FILE, CURSOR), old, SWEEP.name)
    changes = fitting(newest(request.edits, MOST_EDITS), _changes, left // 2, count)
    left -= tokens_of(changes, count)
    near = next((text for n in FILE_RADII if count(text := "".join(lines[max(row - n, 0) : row + n])) <= left), "")
    left -= count(near)
    snippets = fitting(request.snippets[:MOST_SNIPPETS], _retrieved, min(left, SNIPPET_TOKENS), count)
    pieces = joined([*_opening(window.path, near, snippets), *changes, "\n", *section, prefill])
    prompt = Prompt(
        pieces,
        stop_tokens=STOPS,
        most_tokens=count(old[len(prefill) :]) + max(request.spans[0].budget, ROOM_TO_GROW),
        copied=old[len(prefill) :],
    )
    take = partial(_window, old, prefill, cursor - start)
    return Asked(prompt, window.text, start, start + len(old), take, (FILE,))


def _opening(path: str, near: str, snippets: Sequence[Piece]) -> Sequence[Piece]:
    return (FILE, f"{path}\n{near}", *snippets, "\n")


def _section(request: InfillRequest, old: str, start: int, cursor: int, name: str) -> Sequence[Piece]:
    at = cursor - start
    return (
        *(FILE, f"original/{name}\n{_before_last_edit(request, old, start)}\n"),
        *(FILE, f"current/{name}\n{old[:at]}", CURSOR, f"{old[at:]}\n"),
        *(FILE, f"updated/{name}\n"),
    )


def _before_last_edit(request: InfillRequest, old: str, start: int) -> str:
    """These lines as they were before the user's last edit, if that was in them."""
    edit, place = _last_edit(request)
    if edit is None or not start <= place or place + len(edit.after) > start + len(old):
        return old
    return old[: place - start] + edit.before + old[place - start + len(edit.after) :]


def _last_edit(request: InfillRequest) -> tuple[Edit | None, int]:
    edit = request.edits[-1] if request.edits else None
    place = place_of(edit, window_of(request)) if edit else -1
    return (edit, place) if place >= 0 else (None, -1)


def _prefill(request: InfillRequest, old: str, start: int, cursor: int) -> str:
    """The lines above the cursor's, which the answer cannot change. After an insertion above it, only the first line
    and the blank ones that follow."""
    above = old[: cursor - start]
    edit, place = _last_edit(request)
    line_start = window_of(request).text.rfind("\n", 0, cursor) + 1
    inserted = edit is not None and len(edit.after) > len(edit.before) and place + len(edit.after) <= line_start
    if not inserted:
        return above[: above.rfind("\n") + 1]
    first, feed, rest = above.partition("\n")
    return first + feed + rest[: len(rest) - len(rest.lstrip("\n"))]


def _changes(edits: Sequence[Edit]) -> Sequence[Piece]:
    """Oldest first."""
    pieces: list[Piece] = []
    for edit in reversed(edits):
        before, after = edit.before.removesuffix("\n"), edit.after.removesuffix("\n")
        last = edit.line + max(len(edit.after.splitlines()), 1)
        body = f"{edit.path}:{edit.line + 1}:{last}\noriginal:\n{before}\nupdated:\n{after}"
        pieces += [*(["\n"] if pieces else []), FILE, body]
    return pieces


def _retrieved(snippets: Sequence[Snippet]) -> Sequence[Piece]:
    pieces: list[Piece] = []
    for snippet in reversed(snippets):
        text = "\n".join(snippet.text.splitlines()[:SNIPPET_LINES])
        pieces += ["\n", FILE, f"{snippet.path}\n{text}\n"]
    return pieces


def _window(old: str, prefill: str, cursor: int, answer: str) -> str | None:
    """The new text of the lines, unless it is one of those that Sweep's own server discards."""
    if answer.startswith("<|"):
        return None
    answer = answer.partition(FILE)[0].removesuffix("<|endoftext|>").rstrip("\n")
    for ending in (f"\n\\{NO_NEWLINE}", NO_NEWLINE):
        answer = answer.removesuffix(ending)
    body = old.rstrip("\n")
    new = (prefill + answer).rstrip("\n")
    if new == body or _only_inserts_above(body, new, cursor) or _grows_above(body, new, cursor):
        return None
    return new


def _only_inserts_above(old: str, new: str, cursor: int) -> bool:
    start = old.rfind("\n", 0, cursor) + 1
    line = old[start:].partition("\n")[0]
    return bool(line.strip()) and len(new) > len(old) and new.startswith(old[:start]) and new.endswith(old[start:])


def _grows_above(old: str, new: str, cursor: int) -> bool:
    row = old.count("\n", 0, cursor)
    codes = SequenceMatcher(None, old.split("\n"), new.split("\n"), autojunk=False).get_opcodes()
    added = sum(d - c for kind, a, _, c, d in codes if kind in ("insert", "replace") and a <= row)
    removed = sum(b - a for kind, a, b, _, _ in codes if kind in ("delete", "replace") and a <= row)
    return removed > 0 and added - removed > MOST_ABOVE


SWEEP = EditFormat("sweep", r"sweep|next-edit-v2", _ask)
