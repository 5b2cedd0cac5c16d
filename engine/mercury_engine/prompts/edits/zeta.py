"""Zed's next-edit models: Zeta 1 rewrites a marked region, Zeta 2 what stands between conflict markers, Zeta 2.1 the
blocks between the numbered markers that it names."""

from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from mercury_engine.api import Edit, Regions, Snippet
from mercury_engine.prompts.edits.asked import (
    EditFormat,
    EditPrompt,
    PromptRoom,
    Refused,
    Taken,
    refuse,
    window_of,
)
from mercury_engine.prompts.edits.excerpt import Excerpt, nearby
from mercury_engine.prompts.edits.history import newest, unified
from mercury_engine.prompts.edits.markers import MARKER, offsets, rewritten, with_markers
from mercury_engine.prompts.pieces import Begin, Mark, Piece, Prompt, Special, joined

EDITABLE_TOKENS, CONTEXT_TOKENS = 350, 150
SCALES = (1, 2, 4, 8, 32)
MOST_EDITS = 6
MOST_EVENT_TOKENS = 500
"""Of the edits in a prompt for Zeta 1, which was trained with no more."""

MOST_TOKENS = 4096 * 9 // 10
"""Of a prompt for Zeta 2 and 2.1: Zed leaves a tenth of 4,096 as a margin."""

ACCEPTED = "// User accepted prediction:\n"
ROOM_TO_GROW = 128

START_OF_FILE = Mark("<|start_of_file|>")
START, END = Mark("<|editable_region_start|>"), Mark("<|editable_region_end|>")
CURSOR_HERE = Mark("<|user_cursor_is_here|>")
INSTRUCTION = (
    "### Instruction:\nYou are a code completion assistant and your task is to analyze user edits and then rewrite an"
    " excerpt that the user provides, suggesting the appropriate edits within the excerpt, taking into account the"
    " cursor location.\n\n### User Edits:\n\n"
)

BEGIN, ENDED = Begin("<[begin▁of▁sentence]>"), Special("<[end▁of▁sentence]>")
SUFFIX, PREFIX, MIDDLE = Special("<[fim-suffix]>"), Special("<[fim-prefix]>"), Special("<[fim-middle]>")
FILE, CURSOR = Mark("<filename>"), Mark("<|user_cursor|>")
CURRENT, SEPARATOR, UPDATED = "<<<<<<< CURRENT\n", "=======\n", ">>>>>>> UPDATED"

Build = Callable[[Regions, Excerpt, Sequence[Piece], Sequence[Piece]], Sequence[Piece]]
"""The prompt about an excerpt of a window, with these recent edits and related files."""


def _asked(
    regions: Regions, build: Build, budget: int, count: Callable[[str], int], name: str, marks: Sequence[str]
) -> tuple[Prompt, Excerpt]:
    """The prompt within the budget, without what ends an answer: the region first, then the newest edits, then related
    files."""
    window, cursor = window_of(regions), regions.cursor
    is_old = name == ZETA_1.name
    room = PromptRoom(name, budget if is_old else min(budget, MOST_TOKENS), count)
    excerpts = (nearby(window.old, cursor, EDITABLE_TOKENS // scale, CONTEXT_TOKENS // scale) for scale in SCALES)
    excerpt = room.largest(excerpts, lambda excerpt: build(regions, excerpt, (), ()))
    refuse(marks, window.old[excerpt.first : excerpt.last], name)
    recent = newest(regions.edits, MOST_EDITS)
    edits = room.fitting(recent, _events, MOST_EVENT_TOKENS) if is_old else room.fitting(recent, _history)
    files = () if is_old else room.fitting(regions.snippets, _files)
    old = window.old[excerpt.start : excerpt.end]
    most_tokens = count(old) + ROOM_TO_GROW
    return Prompt(joined(build(regions, excerpt, edits, files)), most_tokens=most_tokens, copied=old), excerpt


def _ask_1(regions: Regions, *, budget: int, count: Callable[[str], int]) -> EditPrompt:
    marks = (START, END, CURSOR_HERE)
    prompt, excerpt = _asked(regions, _instruction, budget, count, ZETA_1.name, marks)
    prompt = replace(prompt, stops=(f"\n{END}",), stop_tokens=(Special("<|endoftext|>"),))
    return EditPrompt(prompt, window_of(regions).old, excerpt.start, excerpt.end, _between_marks, (END,))


def _instruction(
    regions: Regions, excerpt: Excerpt, events: Sequence[Piece], _files: Sequence[Piece]
) -> Sequence[Piece]:
    window, cursor = window_of(regions), regions.cursor
    text = window.old
    start_of_file = () if excerpt.first or window.first_line else (START_OF_FILE, "\n")
    return (
        *(INSTRUCTION, *events, f"\n\n### User Excerpt:\n\n```{window.path}\n", *start_of_file),
        *(text[excerpt.first : excerpt.start], START, "\n", text[excerpt.start : cursor], CURSOR_HERE),
        *(text[cursor : excerpt.end], "\n", END, text[excerpt.end : excerpt.last], "\n```\n\n### Response:\n"),
    )


def _events(edits: Sequence[Edit]) -> Sequence[Piece]:
    """Oldest first."""
    hunks = [f'User edited "{edit.path}":\n```diff\n{unified(edit)}\n```' for edit in reversed(edits)]
    return ("\n\n".join(hunks),)


def _between_marks(answer: str) -> Taken:
    if answer.count(START) > 1:
        return Refused("it has several regions")
    _, start, region = answer.rpartition(START)
    region = region.removeprefix("\n") if start else region
    return region.partition(END)[0].replace(CURSOR_HERE, "")


def _ask_2(regions: Regions, *, budget: int, count: Callable[[str], int]) -> EditPrompt:
    marks = (CURSOR, CURRENT, UPDATED)
    prompt, excerpt = _asked(regions, partial(_seed, _between_conflict), budget, count, ZETA_2.name, marks)
    prompt = replace(prompt, stops=(UPDATED,), stop_tokens=(ENDED,))
    return EditPrompt(prompt, window_of(regions).old, excerpt.start, excerpt.end, _until_updated, (UPDATED,))


def _ask_2_1(regions: Regions, *, budget: int, count: Callable[[str], int]) -> EditPrompt:
    marks = (CURSOR, MARKER)
    prompt, excerpt = _asked(regions, partial(_seed, _between_markers), budget, count, ZETA_2_1.name, marks)
    prompt, take = replace(prompt, stop_tokens=(ENDED,)), partial(_named_blocks, prompt.copied)
    return EditPrompt(prompt, window_of(regions).old, excerpt.start, excerpt.end, take, (ENDED,), None)


def _seed(
    editable: Callable[[str, int], Sequence[Piece]],
    regions: Regions,
    excerpt: Excerpt,
    history: Sequence[Piece],
    files: Sequence[Piece],
) -> Sequence[Piece]:
    """Suffix first, in the tokens of Seed-Coder; everything else belongs to the prefix."""
    window, text = window_of(regions), window_of(regions).old
    after = text[excerpt.end : excerpt.last]
    return (
        *(BEGIN, SUFFIX, after if after.endswith("\n") else after + "\n", PREFIX),
        *(*files, "\n" if files else "", *history, "\n" if history else ""),
        *(FILE, f"{window.path}\n", text[excerpt.first : excerpt.start]),
        *editable(text[excerpt.start : excerpt.end], regions.cursor - excerpt.start),
        MIDDLE,
    )


def _between_conflict(old: str, cursor: int) -> Sequence[Piece]:
    tail = old[cursor:]
    return (CURRENT, old[:cursor], CURSOR, tail if tail.endswith("\n") else tail + "\n", SEPARATOR)


def _between_markers(old: str, cursor: int) -> Sequence[Piece]:
    return (*with_markers(old, cursor, CURSOR), "\n")


def _history(edits: Sequence[Edit]) -> Sequence[Piece]:
    """Oldest first."""
    return (FILE, "edit_history\n", *map(_event, reversed(edits)))


def _event(edit: Edit) -> str:
    return f"{ACCEPTED if edit.accepted else ''}--- a/{edit.path}\n+++ b/{edit.path}\n{unified(edit)}"


def _files(snippets: Sequence[Snippet]) -> Sequence[Piece]:
    """The best one last, nearest to the region; each is cut out of a longer file."""
    return [
        piece
        for snippet in reversed(snippets)
        for piece in (FILE, f"{snippet.path}\n{snippet.text.removesuffix(chr(10))}\n...\n")
    ]


def _until_updated(answer: str) -> Taken:
    if answer.lstrip().startswith("NO_EDITS"):
        return None
    return answer.partition(UPDATED)[0].partition(ENDED)[0].replace(CURSOR, "")


def _named_blocks(old: str, answer: str) -> Taken:
    if answer.lstrip().startswith("NO_EDITS"):
        return None
    return rewritten(old, offsets(old), answer.partition(ENDED)[0].replace(CURSOR, ""))


ZETA_1 = EditFormat("zeta", r"zeta(?![-_]?\d)", _ask_1)
ZETA_2 = EditFormat("zeta-2", r"zeta[-_]?2(?![.\d])", _ask_2, (SUFFIX, PREFIX, MIDDLE))
ZETA_2_1 = EditFormat("zeta-2.1", r"zeta[-_]?2[._]1", _ask_2_1, (SUFFIX, PREFIX, MIDDLE))
