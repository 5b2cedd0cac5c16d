"""The region in a prompt for one of Zed's next-edit models."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

from mercury_engine.api import Edit, Snippet
from mercury_engine.prompts.edits.markers import MARKER, TAG
from mercury_engine.prompts.edits.zeta import (
    CURRENT,
    CURSOR,
    CURSOR_HERE,
    END,
    FILE,
    MIDDLE,
    PREFIX,
    SEPARATOR,
    START,
    START_OF_FILE,
    SUFFIX,
    UPDATED,
)
from mercury_engine.prompts.received.parts import ReceivedRegion, edits_in, marked

EXCERPT, EVENT, FENCE = "### User Excerpt:", 'User edited "', "```"
HISTORY = "edit_history"
ELLIPSIS = "\n..."


def region_in(prompt: str) -> ReceivedRegion | None:
    if START in prompt and END in prompt:
        return _between_marks(prompt)
    if SUFFIX in prompt and PREFIX in prompt and MIDDLE in prompt:
        return _of_seed(prompt)
    return None


def _between_marks(prompt: str) -> ReceivedRegion | None:
    """Zeta 1: the line feeds beside the marks are the format's own."""
    events, _, excerpt = prompt.partition(EXCERPT)
    path, _, body = excerpt.lstrip().removeprefix(FENCE).partition("\n")
    before, _, tail = body.rpartition(f"\n{FENCE}")[0].partition(START)
    inside, _, after = tail.partition(END)
    old, cursor = marked(inside.removeprefix("\n").removesuffix("\n"), CURSOR_HERE)
    before = before.removeprefix(f"{START_OF_FILE}\n")
    edits = chain.from_iterable(map(_event, events.split(EVENT)[1:]))
    return _region(path, before, old, after, cursor, _answered_between_marks, edits=tuple(edits))


def _event(text: str) -> Iterator[Edit]:
    path, _, tail = text.partition('":')
    return edits_in(tail.partition(f"{FENCE}diff\n")[2].partition(f"\n{FENCE}")[0], path)


def _answered_between_marks(new: str) -> str:
    return f"{START}\n{new}\n{END}"


def _of_seed(prompt: str) -> ReceivedRegion | None:
    """Zeta 2 and 2.1: suffix first, then files, of which the last one has the region at its end."""
    _, _, tail = prompt.partition(SUFFIX)
    after, _, tail = tail.partition(PREFIX)
    *files, current = [part.partition("\n") for part in tail.rpartition(MIDDLE)[0].split(FILE)[1:]] or [("", "", "")]
    path, _, body = current
    files = [(name, text) for name, _, text in files]
    fields = {
        "snippets": tuple(_snippet(name, text) for name, text in files if name != HISTORY and text.strip()),
        "edits": tuple(edit for name, text in files if name == HISTORY for edit in edits_in(text)),
    }
    if CURRENT in body:
        before, _, tail = body.rpartition(CURRENT)
        inside = tail.rpartition(SEPARATOR)[0]
        if after.startswith("\n"):
            inside = inside.removesuffix("\n")  # written by the format: the file's own comes after the region
        old, cursor = marked(inside, CURSOR)
        return _region(path, before, old, after, cursor, _answered_in_conflict, **fields)
    tags = [*TAG.finditer(body)]
    if len(tags) < 2:
        return None
    inside = TAG.sub("", body[tags[0].end() : tags[-1].start()])
    old, cursor = marked(inside, CURSOR)
    ends = int(tags[0][1]), int(tags[-1][1])
    return _region(
        path, body[: tags[0].start()], old, after, cursor, partial(_answered_by_markers, old, ends), **fields
    )


def _snippet(path: str, text: str) -> Snippet:
    return Snippet(path, text.rstrip("\n").removesuffix(ELLIPSIS))


def _answered_in_conflict(new: str) -> str:
    return f"{new if new.endswith(chr(10)) else new + chr(10)}{UPDATED}\n"


def _answered_by_markers(old: str, ends: tuple[int, int], new: str) -> str:
    """All blocks at once; the same marker twice where nothing changes. A first line that is blank needs one more line
    feed: the first may be taken for the marker's own."""
    first, last = (f"{MARKER}{number}|>" for number in ends)
    if new == old:
        return f"{first}{first}"
    return f"{first}{chr(10) if new.startswith(chr(10)) and not old.startswith(chr(10)) else ''}{new}{last}"


def _region(
    path: str,
    before: str,
    old: str,
    after: str,
    cursor: int,
    answer: Callable[[str], str],
    *,
    snippets: tuple[Snippet, ...] = (),
    edits: tuple[Edit, ...] = (),
) -> ReceivedRegion:
    start = len(before)
    return ReceivedRegion(path, before + old + after, start, start + len(old), start + cursor, answer, snippets, edits)
