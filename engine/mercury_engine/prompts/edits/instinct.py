"""Instinct, the next-edit model of Continue: a chat model that rewrites the eleven lines around the cursor.

What it is told is part of the format: the system prompt and the preface are those that it was trained with
(continuedev/instinct, Apache License 2.0).
"""

from collections.abc import Callable, Sequence
from functools import partial

from mercury_engine.api import Edit, InfillRequest, Snippet, Window
from mercury_engine.prompts.edits.asked import Asked, EditFormat, cursor_of, fitting, refuse, too_long, window_of
from mercury_engine.prompts.edits.history import hunk, newest
from mercury_engine.prompts.edits.region import Region, around
from mercury_engine.prompts.pieces import Mark, Piece, Prompt, Special, joined, tokens_of

__all__ = ["INSTINCT"]

RADII = ((5, 25), (5, 10), (3, 3), (0, 0))
DIFF_CONTEXT_LINES = 5
MOST_EDITS = 8
ROOM_TO_GROW = 128

MESSAGE, MESSAGE_END = Special("<|im_start|>"), Special("<|im_end|>")
START, END = Mark("<|editable_region_start|>"), Mark("<|editable_region_end|>")
CURSOR = Mark("<|user_cursor_is_here|>")
CONTEXT_FILE, SNIPPET = Mark("<|context_file|>"), Mark("<|snippet|>")

SYSTEM = (
    "You are Instinct, an intelligent next-edit predictor developed by Continue.dev. Your role as an AI "
    "assistant is to help developers complete their code tasks by predicting the next edit that they will make "
    "within the section of code marked by <|editable_region_start|> and <|editable_region_end|> tags.\n"
    "\n"
    "You have access to the following information to help you make informed suggestions:\n"
    "\n"
    '- Context: In the section marked "### Context", there are context items from potentially relevant files '
    "in the developer's codebase. Each context item consists of a <|context_file|> marker, the filepath, a "
    "<|snippet|> marker, and then some content from that file, in that order. Keep in mind that not all of the "
    "context information may be relevant to the task, so use your judgement to determine which parts to "
    "consider.\n"
    '- User Edits: In the section marked "### User Edits:", there is a record of the most recent changes made '
    "to the code, helping you understand the evolution of the code and the developer's intentions. These "
    "changes are listed from most recent to least recent. It's possible that some of the edit diff history is "
    "entirely irrelevant to the developer's change. The changes are provided in a unified line-diff format, "
    "i.e. with pluses and minuses for additions and deletions to the code.\n"
    '- User Excerpt: In the section marked "### User Excerpt:", there is a filepath to the developer\'s current '
    "file, and then an excerpt from that file. The <|editable_region_start|> and <|editable_region_end|> "
    "markers are within this excerpt. Your job is to rewrite only this editable region, not the whole excerpt. "
    "The excerpt provides additional context on the surroundings of the developer's edit.\n"
    "- Cursor Position: Within the user excerpt's editable region, the <|user_cursor_is_here|> flag indicates "
    "where the developer's cursor is currently located, which can be crucial for understanding what part of "
    "the code they are focusing on. Do not produce this marker in your output; simply take it into account.\n"
    "\n"
    "Your task is to predict and complete the changes the developer would have made next in the editable "
    "region. The developer may have stopped in the middle of typing. Your goal is to keep the developer on the "
    "path that you think they're following. Some examples include further implementing a class, method, or "
    "variable, or improving the quality of the code. Make sure the developer doesn't get distracted by "
    "ensuring your suggestion is relevant. Consider what changes need to be made next, if any. If you think "
    "changes should be made, ask yourself if this is truly what needs to happen. If you are confident about "
    "it, then proceed with the changes.\n"
    "\n"
    "# Steps\n"
    "\n"
    "1. **Review Context**: Analyze the context from the resources provided, such as recently viewed snippets, "
    "edit history, surrounding code, and cursor location.\n"
    "2. **Evaluate Current Code**: Determine if the current code within the tags requires any corrections or "
    "enhancements.\n"
    "3. **Suggest Edits**: If changes are required, ensure they align with the developer's patterns and "
    "improve code quality.\n"
    "4. **Maintain Consistency**: Ensure indentation and formatting follow the existing code style.\n"
    "\n"
    "# Output Format\n"
    "\n"
    "- Provide only the revised code within the tags. Do not include the tags in your output.\n"
    "- Ensure that you do not output duplicate code that exists outside of these tags.\n"
    "- Avoid undoing or reverting the developer's last change unless there are obvious typos or errors.\n"
    "\n"
)

PREFACE = (
    "Reference the user excerpt, user edits, and the snippets to understand the developer's intent. Update the "
    "editable region of the user excerpt by predicting and completing the changes they would have made next. "
    "This may be a deletion, addition, or modification of code."
)


def _ask(request: InfillRequest, *, budget: int, count: Callable[[str], int]) -> Asked:
    window, cursor = window_of(request), cursor_of(request)
    for radius, context in RADII:
        region = around(window.text, cursor, radius, context)
        left = budget - tokens_of(joined(_prompt(window, region, cursor, (), ())), count)
        if left >= 0:
            break
    else:
        raise too_long(INSTINCT.name, budget)
    refuse((START, END, CURSOR), window.text[region.first : region.last], INSTINCT.name)
    edits = fitting(newest(request.edits, MOST_EDITS), partial(_edits, window), left, count)
    files = fitting(request.snippets, _context, left - tokens_of(edits, count), count)
    old = window.text[region.start : region.end]
    prompt = Prompt(
        joined(_prompt(window, region, cursor, files, edits)),
        stop_tokens=(MESSAGE_END, Special("<|endoftext|>")),
        most_tokens=count(old) + max(request.spans[0].budget, ROOM_TO_GROW),
        copied=old,
    )
    return Asked(prompt, window.text, region.start, region.end, _region, (MESSAGE_END,))


def _prompt(
    window: Window, region: Region, cursor: int, files: Sequence[Piece], edits: Sequence[Piece]
) -> Sequence[Piece]:
    text = window.text
    return (
        *(MESSAGE, f"system\n{SYSTEM}", MESSAGE_END, "\n"),
        *(MESSAGE, f"user\n{PREFACE}\n\n### Context:\n\n", *files, "\n\n\n### User Edits:\n\n", *edits),
        *(f'### User Excerpt:\n"{window.path}"\n\n', text[region.first : region.start], START, "\n"),
        *(
            text[region.start : cursor],
            CURSOR,
            text[cursor : region.end],
            "\n",
            END,
            text[region.end : region.last].removesuffix("\n"),
        ),
        *(MESSAGE_END, "\n", MESSAGE, "assistant\n"),
    )


def _edits(window: Window, edits: Sequence[Edit]) -> Sequence[Piece]:
    """Newest first."""
    hunks = [(edit.path, hunk(edit, window, DIFF_CONTEXT_LINES)) for edit in edits]
    return ["".join(f'User edited file "{path}"\n\n```diff\n{lines}```\n\n' for path, lines in hunks)]


def _context(snippets: Sequence[Snippet]) -> Sequence[Piece]:
    """The best one last, nearest to the excerpt."""
    pieces: list[Piece] = []
    for snippet in reversed(snippets):
        text = snippet.text.rstrip("\n")
        pieces += ["\n\n\n" if pieces else "", CONTEXT_FILE, f" {snippet.path}\n", SNIPPET, f"\n{text}"]
    return pieces


def _region(answer: str) -> str:
    if START in answer:
        answer = answer.rpartition(START)[2].removeprefix("\n")
    return answer.partition(END)[0].partition(MESSAGE_END)[0].replace(CURSOR, "")


INSTINCT = EditFormat("instinct", r"instinct", _ask)
