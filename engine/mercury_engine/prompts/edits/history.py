"""Recent edits as the formats of next-edit models write them."""

from collections.abc import Sequence

from mercury_engine.api import Edit, Window
from mercury_engine.prompts.fim import edit_lines

__all__ = ["hunk", "newest", "place_of"]

CONTEXT_LINES = 3


def newest(edits: Sequence[Edit], most: int) -> list[Edit]:
    """The newest first, without those that are too long to be of use."""
    return [edit for edit in reversed(edits) if edit_lines(edit)][:most]


def hunk(edit: Edit, window: Window, context: int = CONTEXT_LINES) -> str:
    """One hunk of a unified diff, with the lines around it where the window shows them."""
    body = edit_lines(edit).splitlines()
    place = place_of(edit, window)
    above = window.text[:place].splitlines()[-context:] if place >= 0 and context else []
    below = window.text[place + len(edit.after) :].splitlines()[:context] if place >= 0 else []
    lines = [*(f" {line}" for line in above), *body, *(f" {line}" for line in below)]
    start = edit.line + 1 - len(above)
    before, after = (sum(line[0] in (" ", sign) for line in lines) for sign in "-+")
    return "\n".join([f"@@ -{start},{before} +{start},{after} @@", *lines]) + "\n"


def place_of(edit: Edit, window: Window) -> int:
    """Where the lines that the edit left stand in the window, -1 if they are not there, or not only once."""
    text, after = window.text, edit.after
    if edit.path != window.path or not after or text.count(after) != 1:
        return -1
    found = text.index(after)
    return found if found == 0 or text[found - 1] == "\n" else -1
