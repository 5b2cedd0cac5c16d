"""The region in a prompt for one of Sweep's next-edit models, as Sweep, Zed and JetBrains' IDEs write it."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Edit, Snippet
from mercury_engine.prompts.edits.sweep import CURSOR, FILE
from mercury_engine.prompts.lines import shared_ends
from mercury_engine.prompts.received.parts import ReceivedRegion, marked, trimmed

VERSIONS = ("original/", "current/", "updated/")
OLD, NEW = "original:\n", "updated:\n"
LINES = re.compile(r":(?P<first>\d{1,9}):\d{1,9}$")
DIAGNOSTICS = "diagnostics"
LINES_BELOW = 10
"""Of the window below the cursor's line, unless the file ends before."""


class _Section(Struct, frozen=True):
    """What stands under a name. `first_line`: of the whole file; 0 if that is not told."""

    name: str
    body: str
    first_line: int = 0


def region_in(prompt: str) -> ReceivedRegion | None:
    """None unless the prompt ends with the three versions of a window."""
    sections, versions = prompt.split(FILE)[1:-3], prompt.split(FILE)[-3:]
    sections, versions = list(map(_section, sections)), list(map(_section, versions))
    path = versions[-1].name.removeprefix(VERSIONS[-1])
    if [version.name for version in versions] != [version + path for version in VERSIONS]:
        return None
    original, current, updated = versions
    edits = [edit for section in sections if (edit := _edit(section))]
    previous, (text, cursor) = original.body, marked(current.body, CURSOR)
    if CURSOR not in current.body:
        cursor = _end_of_difference(previous, text)
    if previous != text and all(edit.path != path for edit in edits):
        edits += filter(None, [_change(path, current.first_line, previous, text)])
    window = _without_feed(text, cursor)
    region = ReceivedRegion(path, window, 0, len(window), cursor, str, tuple(_files(sections, path)), tuple(edits))
    return _surrounded(_continued(region, updated.body), sections)


def _section(text: str) -> _Section:
    """A diff is named with its first line, too, or with an ending."""
    head, _, body = text.partition("\n")
    lines = LINES.search(head)
    return _Section(head[: lines.start()], body, int(lines["first"])) if lines else _Section(head, body)


def _edit(section: _Section) -> Edit | None:
    before, mark, after = section.body.removeprefix(OLD.rstrip()).partition(f"\n{NEW}")
    if not (mark and section.body.startswith(OLD)):
        return None
    return _change(section.name.removesuffix(".diff"), section.first_line, before.removeprefix("\n"), after)


def _change(path: str, first_line: int, before: str, after: str) -> Edit | None:
    """A blank line alone stands for nothing."""
    old, new = (text.strip("\n") and text.removesuffix("\n").split("\n") for text in (before, after))
    return trimmed(path, max(first_line - 1, 0), list(old), list(new))


def _files(sections: Sequence[_Section], path: str) -> Iterator[Snippet]:
    for section in sections:
        if section.name not in (path, DIAGNOSTICS) and section.body.strip() and not section.body.startswith(OLD):
            yield Snippet(section.name, section.body.strip("\n"))


def _end_of_difference(previous: str, text: str) -> int:
    """Where the last edit ends, which is where the cursor is if nothing tells; the start if there was none."""
    return 0 if previous == text else len(text) - shared_ends(previous, text)[1]


def _without_feed(text: str, cursor: int) -> str:
    """The last line feed is the format's, unless it is the one that ends the file: a window has more lines below."""
    if text.endswith("\n\n") or text.count("\n", cursor) > LINES_BELOW:
        return text.removesuffix("\n")
    return text


def _continued(region: ReceivedRegion, beginning: str) -> ReceivedRegion:
    """The second generation is told how the new text begins, and goes on from there."""
    start = len(beginning) if region.text.startswith(beginning) else 0
    return replace(region, start=start, cursor=max(region.cursor, start))


def _surrounded(region: ReceivedRegion, sections: Sequence[_Section]) -> ReceivedRegion:
    """With the rest of the file, if the prompt has it."""
    for section in sections:
        at = section.body.find(region.text) if section.name == region.path and region.text else -1
        if at >= 0:
            places = {name: at + getattr(region, name) for name in ("start", "end", "cursor")}
            return replace(region, text=section.body.removesuffix("\n"), **places)
    return region
