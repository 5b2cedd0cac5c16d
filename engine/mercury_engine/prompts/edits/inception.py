"""The next-edit prompt of Inception's edit endpoint: one message of a chat, answered with a fenced block of code."""

from collections.abc import Callable, Sequence

from mercury_engine.api import Edit, Region, Regions, Snippet
from mercury_engine.prompts.edits.asked import EditFormat, EditPrompt, PromptRoom, Taken, refuse, window_of
from mercury_engine.prompts.edits.excerpt import Excerpt, around
from mercury_engine.prompts.edits.history import newest, unified
from mercury_engine.prompts.pieces import Piece, Prompt, joined

RADII = ((10, 200), (10, 50), (5, 20), (3, 3))
"""Lines either side of the cursor: to rewrite, and to read."""

MOST_EDITS = 5
MOST_SNIPPETS = 5
ROOM_TO_GROW = 128
FENCE = "```"
NOTHING = "None"

CURSOR = "<|cursor|>"
OPEN, CLOSE = "<|code_to_edit|>", "<|/code_to_edit|>"
FILE = "<|/current_file_content|>"
MARKS = (CURSOR, OPEN, CLOSE, "<|current_file_content|>", FILE)


def _ask(regions: Regions, *, budget: int, count: Callable[[str], int]) -> EditPrompt:
    window, cursor = window_of(regions), regions.cursor
    room = PromptRoom(INCEPTION_EDIT.name, budget, count)
    excerpts = (around(window.old, cursor, *radii) for radii in RADII)
    excerpt = room.largest(excerpts, lambda excerpt: _message(window, excerpt, cursor, (), ()))
    refuse(MARKS, window.old[excerpt.first : excerpt.last], INCEPTION_EDIT.name)
    edits = room.fitting(newest(regions.edits, MOST_EDITS), _history)
    snippets = room.fitting(regions.snippets[:MOST_SNIPPETS], _viewed)
    old = window.old[excerpt.start : excerpt.end]
    prompt = Prompt(
        joined(_message(window, excerpt, cursor, snippets, edits)),
        most_tokens=count(old) + ROOM_TO_GROW,
        copied=old,
    )
    return EditPrompt(prompt, window.old, excerpt.start, excerpt.end, _code_in, closing=f"\n{FENCE}")


def _message(
    window: Region, excerpt: Excerpt, cursor: int, snippets: Sequence[Piece], edits: Sequence[Piece]
) -> tuple[Piece, ...]:
    text = window.old
    return (
        *("<|recently_viewed_code_snippets|>\n", *snippets, "<|/recently_viewed_code_snippets|>\n\n"),
        *("<|current_file_content|>\n", f"current_file_path: {window.path}\n", text[excerpt.first : excerpt.start]),
        *(OPEN, "\n", text[excerpt.start : cursor], CURSOR, text[cursor : excerpt.end], "\n", CLOSE),
        *(text[excerpt.end : excerpt.last].removesuffix("\n"), "\n<|/current_file_content|>\n\n"),
        *("<|edit_diff_history|>\n", *edits, "<|/edit_diff_history|>\n"),
    )


def _viewed(snippets: Sequence[Snippet]) -> Sequence[Piece]:
    name = "recently_viewed_code_snippet"
    return [
        f"<|{name}|>\ncode_snippet_file_path: {snippet.path}\n{snippet.text.removesuffix(chr(10))}\n<|/{name}|>\n"
        for snippet in snippets
    ]


def _history(edits: Sequence[Edit]) -> Sequence[Piece]:
    """Oldest first."""
    return [f"--- {edit.path}\n+++ {edit.path}\n{unified(edit)}\n" for edit in reversed(edits)]


def _code_in(answer: str) -> Taken:
    """What stands in the fence."""
    text = answer.strip()
    if text.strip("`\n ") == NOTHING:
        return None
    if not text.startswith(FENCE):
        return text
    body = text.partition("\n")[2]
    return body.rpartition(f"\n{FENCE}")[0]


INCEPTION_EDIT = EditFormat("mercury-edit", r"mercury-(?:edit|coder)", _ask)
