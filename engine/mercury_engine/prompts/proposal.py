"""A proposed edit as the next hunk of a diff, which begins with what the user has done."""

from collections.abc import Sequence

from msgspec import Struct

from mercury_engine.api import InfillRequest, Span
from mercury_engine.prompts.edits.history import newest, unified
from mercury_engine.prompts.lines import bare_lines

MOST_EDITS = 8
MOST_LINES = 12
"""Of the old and of the new text; the rest tells little more."""


class ProposalPrompt(Struct, frozen=True):
    """The texts of the `edits`, the oldest first; where the proposal stands and what it takes away; what it writes; and
    the line after it, of which only the beginning is expected."""

    edits: tuple[str, ...]
    place: str
    written: str
    after: str


def proposal_prompt(request: InfillRequest, span: Span) -> ProposalPrompt:
    window = request.windows[span.window]
    above, below = bare_lines(window.text[: span.start]), bare_lines(window.text[span.end :])
    old, new = bare_lines(window.text[span.start : span.end]), bare_lines(span.text)
    first = window.first_line + 1
    sizes = (len(above) + len(lines) + len(below) for lines in (old, new))
    head = "@@ " + " ".join(f"{sign}{first},{size}" for sign, size in zip("-+", sizes, strict=True)) + " @@\n"
    return ProposalPrompt(
        edits=tuple(_header(edit.path) + unified(edit) for edit in reversed(newest(request.edits, MOST_EDITS))),
        place=_header(window.path) + head + _marked(" ", above) + _marked("-", old[:MOST_LINES]),
        written=_marked("+", new[:MOST_LINES]),
        after=_marked(" ", below[:1]),
    )


def _header(path: str) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"


def _marked(sign: str, lines: Sequence[str]) -> str:
    return "".join(f"{sign}{line}\n" for line in lines)
