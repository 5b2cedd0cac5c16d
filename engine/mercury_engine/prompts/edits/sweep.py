"""Sweep's next-edit models: 21 lines before and after the last edit. The first generation answers with all of them; the
second is shown the cursor and the rest of the file, and goes on from the cursor's line."""

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import partial

from msgspec import Struct

from mercury_engine.api import Diagnostic, Edit, Region, Regions, Snippet
from mercury_engine.prompts.edits.asked import (
    MARKED,
    EditFormat,
    EditPrompt,
    PromptRoom,
    Refused,
    Taken,
    refuse,
    window_of,
)
from mercury_engine.prompts.edits.history import hunk_of, newest, place_of
from mercury_engine.prompts.lines import bare_lines, lines_of
from mercury_engine.prompts.pieces import Mark, Piece, Prompt, Special, joined

FILE, CURSOR = Special("<|file_sep|>"), Mark("<|cursor|>")
STOPS = tuple(map(Special, ("<|file_sep|>", "<|endoftext|>", "<|fim_prefix|>", "<|repo_name|>", "<|im_end|>")))
RADII = (10, 5, 2, 0)
FILE_RADII = (150, 75, 30, 0)
MOST_EDITS = 6
EDIT_CONTEXT_LINES = 1
MOST_SNIPPETS, SNIPPET_LINES, SNIPPET_TOKENS = 3, 25, 2048
MOST_DIAGNOSTICS = 25
ROOM_TO_GROW = 128
LARGE = 5
"""An answer that changes something above the cursor may not both add and remove more lines than this."""

NO_NEWLINE = " No newline at end of file"


class _Block(Struct, frozen=True):
    """The lines from `top` to `bottom` of a window, which begin at `start`: `old` as they are, `previous` as they were
    before the last edit. The cursor is `at` there."""

    top: int
    bottom: int
    start: int
    at: int
    old: str
    previous: str


def _block(regions: Regions, lines: Sequence[str], row: int, radius: int) -> _Block:
    top, bottom = max(row - radius, 0), min(row + radius + 1, len(lines))
    start, old = len("".join(lines[:top])), "".join(lines[top:bottom])
    return _Block(top, bottom, start, regions.cursor - start, old, _before_last_edit(regions, old, start))


def _rows(regions: Regions) -> tuple[list[str], int]:
    """The window's lines, and which of them has the cursor."""
    text = window_of(regions).old
    lines = lines_of(text) or [""]
    return lines, min(text.count("\n", 0, regions.cursor), len(lines) - 1)


def _ask_1(regions: Regions, *, budget: int, count: Callable[[str], int]) -> EditPrompt:
    path, (lines, row) = window_of(regions).path, _rows(regions)
    room = PromptRoom(SWEEP_1.name, budget, count)

    def section(block: _Block) -> Sequence[Piece]:
        return _versions(path, block.previous.removesuffix("\n"), (block.old.removesuffix("\n"),))

    block = room.largest((_block(regions, lines, row, radius) for radius in RADII), section)
    refuse((FILE,), block.old, SWEEP_1.name)
    changes = room.fitting(_edits(regions), partial(_changes, _unnumbered), room.left // 2)
    files = room.fitting(regions.snippets[:MOST_SNIPPETS], _files, SNIPPET_TOKENS)
    return _asked(regions, block, joined([*files, *changes, *section(block)]), "", count)


def _ask_2(regions: Regions, *, budget: int, count: Callable[[str], int]) -> EditPrompt:
    window, (lines, row) = window_of(regions), _rows(regions)
    room = PromptRoom(SWEEP_2.name, budget, count)

    def section(block: _Block) -> Sequence[Piece]:
        return [*_marked(window, block), _prefill(regions, block)]

    blocks = (_block(regions, lines, row, radius) for radius in RADII)
    block = room.largest(blocks, lambda block: [*_opening(window.path, "", ()), "\n", *section(block)])
    refuse((FILE, CURSOR), block.old, SWEEP_2.name)
    changes = room.fitting(_edits(regions), partial(_changes, _numbered), room.left // 2)
    texts = ("".join(lines[max(row - n, 0) : row + n]) for n in FILE_RADII)
    near = room.largest((*texts, ""), lambda text: [text])
    nearest = sorted(regions.diagnostics, key=lambda diagnostic: abs(diagnostic.line - window.first_line - row))
    diagnosed = room.fitting(nearest[:MOST_DIAGNOSTICS], _diagnosed, SNIPPET_TOKENS)
    snippets = room.fitting(regions.snippets[:MOST_SNIPPETS], _retrieved, SNIPPET_TOKENS)
    opening = _opening(window.path, near, (*diagnosed, *snippets))
    changes = changes and (*changes[:-1], changes[-1].removesuffix("\n"))
    return _asked(regions, block, joined([*opening, *changes, "\n", *section(block)]), _prefill(regions, block), count)


def _asked(
    regions: Regions, block: _Block, pieces: tuple[Piece, ...], prefill: str, count: Callable[[str], int]
) -> EditPrompt:
    copied = block.old[len(prefill) :]
    limit = count(copied) + ROOM_TO_GROW
    prompt = Prompt(pieces, stop_tokens=STOPS, most_tokens=limit, copied=copied)
    take = partial(_window, block.old, prefill, block.at)
    return EditPrompt(prompt, window_of(regions).old, block.start, block.start + len(block.old), take, (FILE,))


def _opening(path: str, near: str, retrieved: Sequence[Piece]) -> Sequence[Piece]:
    return (FILE, f"{path}\n{near}", *retrieved, "\n")


def _versions(name: str, previous: str, current: Sequence[Piece]) -> Sequence[Piece]:
    return (
        *(FILE, f"original/{name}\n{previous}\n"),
        *(FILE, f"current/{name}\n", *current, "\n"),
        *(FILE, f"updated/{name}\n"),
    )


def _marked(window: Region, block: _Block) -> Sequence[Piece]:
    """With the cursor. Where both versions end with a line feed, it is that of the format."""
    head, tail, previous = block.old[: block.at], block.old[block.at :], block.previous
    if tail.endswith("\n") and previous.endswith("\n"):
        tail, previous = tail[:-1], previous[:-1]
    name = f"{window.path}:{window.first_line + block.top + 1}:{window.first_line + block.bottom}"
    return _versions(name, previous, (head, CURSOR, tail))


def _before_last_edit(regions: Regions, old: str, start: int) -> str:
    """These lines as they were before the user's last edit, if that was in them."""
    edit = regions.edits[-1] if regions.edits else None
    if edit is None or not start <= (place := place_of(edit, window_of(regions))) <= start + len(old) - len(edit.after):
        return old
    return old[: place - start] + edit.before + old[place - start + len(edit.after) :]


def _prefill(regions: Regions, block: _Block) -> str:
    """The lines above the cursor's, which the answer cannot change. After an insertion above it, only the first line
    and the blank ones that follow."""
    above = block.old[: block.at]
    if not _has_inserted_above(regions):
        return above[: above.rfind("\n") + 1]
    first, feed, tail = above.partition("\n")
    return first + feed + tail[: len(tail) - len(tail.lstrip("\n"))]


def _has_inserted_above(regions: Regions) -> bool:
    window, edit = window_of(regions), regions.edits[-1] if regions.edits else None
    if edit is None or edit.path != window.path or len(edit.after) <= len(edit.before):
        return False
    return edit.line + len(lines_of(edit.after)) <= window.first_line + window.old.count("\n", 0, regions.cursor)


def _edits(regions: Regions) -> list[Edit]:
    """The newest first, but for those of white space alone."""
    return newest([edit for edit in regions.edits if edit.before.strip() != edit.after.strip()], MOST_EDITS)


def _numbered(path: str, first: int, last: int) -> str:
    return f"{path}:{first}:{max(first, last)}"


def _unnumbered(path: str, _first: int, _last: int) -> str:
    return f"{path}.diff"


def _changes(named: Callable[[str, int, int], str], edits: Sequence[Edit]) -> Sequence[Piece]:
    """Oldest first."""
    return [piece for edit in reversed(edits) for piece in (FILE, _change(named, edit))]


def _change(named: Callable[[str, int, int], str], edit: Edit) -> str:
    hunk = hunk_of(edit, EDIT_CONTEXT_LINES)
    before, after = hunk.side("-"), hunk.side("+")
    name = named(edit.path, hunk.start, hunk.start + len(after) - 1)
    old, new = ("\n".join(lines).strip("\n") for lines in (before, after))
    return f"{name}\noriginal:\n{old}\nupdated:\n{new}\n"


def _diagnosed(diagnostics: Sequence[Diagnostic]) -> Sequence[Piece]:
    lines = [
        f"{diagnostic.path}:{diagnostic.line + 1}:{diagnostic.column + 1}: "
        f"{diagnostic.severity}: {diagnostic.message}\n"
        for diagnostic in sorted(diagnostics, key=lambda problem: (problem.line, problem.column))
    ]
    return ("\n", FILE, f"diagnostics\n{''.join(lines)}\n")


def _retrieved(snippets: Sequence[Snippet]) -> Sequence[Piece]:
    """The best one last."""
    pieces: list[Piece] = []
    for snippet in reversed(snippets):
        text = "\n".join(bare_lines(snippet.text)[:SNIPPET_LINES])
        pieces += ["\n", FILE, f"{snippet.path}\n{text}\n"]
    return pieces


def _files(snippets: Sequence[Snippet]) -> Sequence[Piece]:
    return [
        piece
        for snippet in reversed(snippets)
        for piece in (FILE, f"{snippet.path}\n{snippet.text.removesuffix(chr(10))}\n")
    ]


def _window(old: str, prefill: str, cursor: int, answer: str) -> Taken:
    """The new text of the lines, unless it is one that Sweep's own server discards. Lines that are only inserted above
    the cursor's, which it discards too, are an edit like any other."""
    if answer.startswith("<|"):
        return MARKED
    answer = answer.partition(FILE)[0].removesuffix("<|endoftext|>").rstrip("\n")
    for ending in (f"\n\\{NO_NEWLINE}", NO_NEWLINE):
        answer = answer.removesuffix(ending)
    body = old.rstrip("\n")
    new = (prefill + answer).rstrip("\n")
    if _is_large_above(body, new, cursor):
        return Refused(f"it changes more than {LARGE} lines, and some above the cursor")
    return new


def _is_large_above(old: str, new: str, cursor: int) -> bool:
    if old[:cursor] == new[:cursor]:
        return False
    codes = SequenceMatcher(None, old.split("\n"), new.split("\n"), autojunk=False).get_opcodes()
    removed = sum(b - a for kind, a, b, _, _ in codes if kind != "equal")
    added = sum(d - c for kind, _, _, c, d in codes if kind != "equal")
    return removed > LARGE and added > LARGE


SWEEP_2 = EditFormat("sweep-2", r"sweep[-_]?2|sweep.*0[._]5b|next-edit-v2", _ask_2, (FILE,))
SWEEP_1 = EditFormat("sweep", r"sweep", _ask_1, (FILE,))
