"""The next-edit prompt for models that only chat: one message, answered with the new lines in a block of code."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from mercury_engine.api import Diagnostic, Edit, Region, Regions, Snippet
from mercury_engine.prompts.edits.asked import (
    EditFormat,
    EditPrompt,
    PromptRoom,
    Refused,
    Taken,
    refuse,
    window_of,
)
from mercury_engine.prompts.edits.excerpt import Excerpt, around
from mercury_engine.prompts.edits.history import newest, unified
from mercury_engine.prompts.pieces import Piece, Prompt, joined

RADII = ((10, 200), (10, 50), (5, 20), (3, 3))
"""Lines either side of the cursor: to rewrite, and to read."""
MOST_EDITS, MOST_SNIPPETS, MOST_DIAGNOSTICS = 8, 5, 5
ROOM_TO_GROW = 160
OPEN, CLOSE, CURSOR = "<|edit_this|>", "<|/edit_this|>", "<|cursor|>"
NOTHING = "NO_EDIT"
FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n`]*(?:\n|\Z)", re.MULTILINE)
THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
WORDS = "existing|unchanged|rest of|remain|same|other|omitted|previous|code"
OMISSION = re.compile(
    rf"^\s*(?:(?:#|//|--|/\*|<!--|;|%|\{{/\*)\s*(?:(?:\.\.\.|…)|\(?(?:{WORDS})\b.*(?:\.\.\.|…))|…|\.\.\..*\b(?:{WORDS}))",
    re.IGNORECASE,
)
"""A line that stands for lines which were left out."""

INSTRUCTION = f"""\
You predict the next edit in a code editor. Rewrite the lines between {OPEN} and {CLOSE} as their author will want \
them after the recent edits. {CURSOR} is where the author is; finish what is begun there.

Answer with all of these lines, and nothing else, in one fenced block of code. Copy the lines that stay as they are \
exactly, never leave any out or abbreviate them, and leave the marks out. If no edit is due, answer {NOTHING}.
"""


def _ask(regions: Regions, *, budget: int, count: Callable[[str], int]) -> EditPrompt:
    window, cursor = window_of(regions), regions.cursor
    room = PromptRoom(CHAT_EDIT.name, budget, count)
    excerpts = (around(window.old, cursor, *radii) for radii in RADII)
    excerpt = room.largest(excerpts, lambda excerpt: _message(window, excerpt, cursor, ()))
    refuse((OPEN, CLOSE, CURSOR), window.old[excerpt.first : excerpt.last], CHAT_EDIT.name)
    edits = room.fitting(newest(regions.edits, MOST_EDITS), _history)
    nearest = sorted(regions.diagnostics, key=partial(_distance, row=window.old.count("\n", 0, cursor), window=window))
    diagnostics = room.fitting(nearest[:MOST_DIAGNOSTICS], _diagnosed)
    snippets = room.fitting(regions.snippets[:MOST_SNIPPETS], _related)
    old = window.old[excerpt.start : excerpt.end]
    prompt = Prompt(
        joined(_message(window, excerpt, cursor, (*snippets, *diagnostics, *edits))),
        most_tokens=count(old) + ROOM_TO_GROW,
        copied=old,
    )
    return EditPrompt(prompt, window.old, excerpt.start, excerpt.end, partial(_lines_in, old), closing="\n```")


def _message(window: Region, excerpt: Excerpt, cursor: int, about: Sequence[Piece]) -> tuple[Piece, ...]:
    text = window.old
    return (
        *(
            INSTRUCTION,
            *about,
            f"\nThe file {window.path}:\n\n```{window.language}\n",
            text[excerpt.first : excerpt.start],
        ),
        *(OPEN, "\n", text[excerpt.start : cursor], CURSOR, text[cursor : excerpt.end], "\n", CLOSE),
        *(text[excerpt.end : excerpt.last].removesuffix("\n"), "\n```\n"),
    )


def _related(snippets: Sequence[Snippet]) -> Sequence[Piece]:
    return [f"\nFrom {snippet.path}:\n\n```\n{snippet.text.removesuffix(chr(10))}\n```\n" for snippet in snippets]


def _diagnosed(diagnostics: Sequence[Diagnostic]) -> Sequence[Piece]:
    lines = [
        f"{diagnostic.path}:{diagnostic.line + 1}: {diagnostic.severity}: {diagnostic.message}\n"
        for diagnostic in diagnostics
    ]
    return ["\nDiagnostics:\n\n", *lines]


def _distance(diagnostic: Diagnostic, *, row: int, window: Region) -> tuple[bool, int]:
    return diagnostic.path != window.path, abs(diagnostic.line - window.first_line - row)


def _history(edits: Sequence[Edit]) -> Sequence[Piece]:
    """Oldest first."""
    diffs = "".join(f"--- {edit.path}\n+++ {edit.path}\n{unified(edit)}" for edit in reversed(edits))
    return ["\nThe recent edits, the last one at the end:\n\n```diff\n", diffs, "```\n"]


def _lines_in(old: str, answer: str) -> Taken:
    """The new lines in an answer, which may say more around them, if it is clear which are meant and all are there."""
    answer = THOUGHT.sub("", answer)
    if answer.strip("`~ \n") == NOTHING:
        return None
    lines = _between_marks(answer) if OPEN in answer or CLOSE in answer else _in_fence(answer, has_fences="```" in old)
    if lines is None:
        return Refused("it has several blocks of code")
    lines = lines if CURSOR in old else lines.replace(CURSOR, "")
    return _incomplete(old, lines) or lines


def _between_marks(answer: str) -> str | None:
    """A model may repeat the marks of the question."""
    if answer.count(OPEN) > 1 or answer.count(CLOSE) > 1:
        return None
    lines = answer.partition(OPEN)[2].removeprefix("\n") if OPEN in answer else _opened(answer)
    body, mark, _ = lines.partition(CLOSE)
    return body.removesuffix("\n") if mark else _closed(body)


def _in_fence(answer: str, *, has_fences: bool) -> str | None:
    """What stands in the only block of code; all of the answer if it has none. Lines that contain fences themselves
    reach from the first to the last one."""
    fences = [*FENCE.finditer(answer)]
    if not fences:
        return answer
    if len(fences) > 2 and not has_fences:
        return None
    if len(fences) == 1:  # either the model did not open the block, or it has not closed it
        return answer[: fences[0].start()].removesuffix("\n") or answer[fences[0].end() :]
    return answer[fences[0].end() : fences[-1].start()].removesuffix("\n")


def _opened(answer: str) -> str:
    fence = FENCE.search(answer)
    return answer[fence.end() :] if fence else answer


def _closed(answer: str) -> str:
    fence = FENCE.search(answer)
    return answer[: fence.start()].removesuffix("\n") if fence else answer


def _incomplete(old: str, new: str) -> Refused | None:
    """Lines of which some stand for others, or among which less than half of the old ones are, are not all that there
    are to be."""
    before = [line.strip() for line in old.split("\n") if line.strip()]
    after = Counter(line.strip() for line in new.split("\n") if line.strip())
    omits = any(OMISSION.match(line) and line not in before for line in after)
    if omits or ("..." in after and "..." not in before and after.total() < len(before)):
        return Refused("it leaves lines out")
    common = sum((Counter(before) & after).values())
    return (
        None
        if 2 * common >= len(before) - 1
        else Refused("it is not the lines that were asked for, or only a part of them")
    )


CHAT_EDIT = EditFormat("chat", r"(?!)", _ask)
"""No model is trained with it: the user says that one is to be asked so."""
