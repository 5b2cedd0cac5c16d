"""A proposed edit as the next hunk of a diff, which begins with what the user has done."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from mercury_engine.api import Edit, Proposal
from mercury_engine.prompts.edits.history import newest, unified
from mercury_engine.prompts.lines import bare_lines

MOST_EDITS = 8
MOST_LINES = 12
"""Of the old and of the new text; the rest tells little more."""


class ProposalPrompt(Struct, frozen=True):
    """Where the proposal stands and what it takes away; what it writes; and what comes after it, of which only the
    beginning is expected."""

    place: str
    written: str
    after: str


def diffs(edits: Sequence[Edit]) -> Iterator[str]:
    """The edits, the newest first."""
    return (_header(edit.path) + unified(edit) for edit in newest(edits, MOST_EDITS))


def proposal_prompt(proposal: Proposal) -> ProposalPrompt:
    region = proposal.region
    above, below = bare_lines(region.above), bare_lines(region.below)
    old, new = bare_lines(region.old), bare_lines(proposal.text)
    first, header = region.first_line + 1, _header(region.path)
    sizes = (len(above) + len(lines) + len(below) for lines in (old, new))
    head = "@@ " + " ".join(f"{sign}{first},{size}" for sign, size in zip("-+", sizes, strict=True)) + " @@\n"
    return ProposalPrompt(
        place=header + head + _marked(" ", above) + _marked("-", old[:MOST_LINES]),
        written=_marked("+", new[:MOST_LINES]),
        after=_marked(" ", below[:1]) or header,
    )


def _header(path: str) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"


def _marked(sign: str, lines: Sequence[str]) -> str:
    return "".join(f"{sign}{line}\n" for line in lines)
