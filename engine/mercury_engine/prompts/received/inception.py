"""The region in a message to Inception's edit endpoint."""

import re

from mercury_engine.api import Snippet
from mercury_engine.prompts.edits.inception import CLOSE, CURSOR, FENCE, FILE, NOTHING, OPEN
from mercury_engine.prompts.received.parts import ReceivedRegion, edits_in, marked

PATH = re.compile(r"<\|current_file_content\|>\s*current_file_path: ((?:(?!<\|)[^\n])*+)\n")
SNIPPET, SNIPPET_PATH = "recently_viewed_code_snippet", "code_snippet_file_path: "
HISTORY = "edit_diff_history"


def edit_in(message: str) -> ReceivedRegion | None:
    """None if the message has no code to edit."""
    head, mark, rest = message.partition(OPEN)
    inside, closed, tail = rest.partition(CLOSE)
    if not (mark and closed):
        return None
    path = PATH.search(head)
    before = head[path.end() :] if path else ""
    old, cursor = marked(inside.removeprefix("\n").removesuffix("\n"), CURSOR)
    after = tail.partition(FILE)[0].removeprefix("\n").removesuffix("\n")
    if after and not after.startswith("\n"):
        after = "\n" + after  # some write a line feed of their own after the region, and some do not
    history = message.partition(f"<|{HISTORY}|>\n")[2].partition(f"<|/{HISTORY}|>")[0]
    return ReceivedRegion(
        path[1] if path else "",
        before + old + after,
        len(before),
        len(before) + len(old),
        len(before) + cursor,
        lambda new: NOTHING if new == old else f"{FENCE}\n{new}\n{FENCE}",
        tuple(map(_snippet, message.split(f"<|{SNIPPET}|>\n")[1:])),
        tuple(edits_in(history)),
    )


def _snippet(said: str) -> Snippet:
    path, _, text = said.partition(f"<|/{SNIPPET}|>")[0].removeprefix(SNIPPET_PATH).partition("\n")
    return Snippet(path, text.removesuffix("\n"))
