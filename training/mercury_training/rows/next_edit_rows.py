"""Rows of git history in the format of the next-edit development set; their file is a window of 48 lines."""

import hashlib
from collections.abc import Sequence

import msgspec

from mercury_engine.api import Edit
from mercury_training.corpus.shards import EditRow, Replacement
from mercury_training.corpus.synthetic import lines_of

DIFF_CONTEXT = 3


def next_edit_row(row: EditRow) -> dict | None:
    """A row of git history in the format of the development set; the file is its window of 48 lines. None if an
    earlier edit reaches across the border of the window."""
    states = _undone(row)
    if states is None:
        return None
    diffs, before = states
    lines = row.window.split("\n")
    expected = [_expected(row, replacement) for replacement in row.expected]
    body = {
        "repo": row.repository,
        "commit": row.commit,
        "licence": row.licence,
        "path": row.path,
        "language": row.language,
        "kind": "next_edit",
        "class": class_of(row),
        "file_before": before,
        "edits": [{"path": edit.path, "diff": diff} for edit, diff in zip(row.edits, diffs, strict=True)],
        "file_now": row.window,
        "cursor": {"line": row.cursor, "character": len(lines[row.cursor])},
        "expected": expected[row.next : row.next + 1],
        "also_ok": expected[: row.next] + expected[row.next + 1 :],
    }
    return {"id": "ne-" + hashlib.sha256(msgspec.json.encode(body)).hexdigest()[:12], **body}


def class_of(row: EditRow) -> str:
    if row.kind == "repeat" and not row.expected[row.next].text:
        return "repeat_delete"
    return row.kind


def _expected(row: EditRow, replacement: Replacement) -> dict:
    lines = lines_of(row.window)
    old = "".join(lines[replacement.first : replacement.stop])
    return {
        "range": {
            "start": {"line": replacement.first, "character": 0},
            "end": {"line": replacement.stop, "character": 0},
        },
        "newText": replacement.text,
        "diff": _diff(row.path, lines, Edit(row.path, replacement.first, old, replacement.text), replacement.first),
    }


def _undone(row: EditRow) -> tuple[list[str], str] | None:
    """The edits as diffs, with context if inside the window, and the window as it was before all of them."""
    lines, offset = lines_of(row.window), row.first_line
    diffs = []
    for edit in reversed(row.edits):
        old, new = lines_of(edit.before), lines_of(edit.after)
        at = edit.line - offset
        if edit.path != row.path or at >= len(lines):
            diffs.append(_diff(edit.path, [], edit, edit.line))
        elif at + len(new) <= 0:
            diffs.append(_diff(edit.path, [], edit, edit.line))
            offset += len(old) - len(new)
        elif at >= 0 and lines[at : at + len(new)] == new:
            lines[at : at + len(new)] = old
            diffs.append(_diff(edit.path, lines, edit, at, offset))
        else:
            return None
    return diffs[::-1], "".join(lines)


def _diff(path: str, lines: Sequence[str], edit: Edit, at: int, offset: int = 0) -> str:
    """A unified diff of one edit of `lines`, whose old text begins at line `at`."""
    old, new = lines_of(edit.before), lines_of(edit.after)
    above = list(lines[max(0, at - DIFF_CONTEXT) : at])
    below = list(lines[at + len(old) : at + len(old) + DIFF_CONTEXT])
    start = at - len(above) + offset
    sizes = [len(above) + len(part) + len(below) for part in (old, new)]
    numbers = " ".join(f"{sign}{start + bool(size)},{size}" for sign, size in zip("-+", sizes, strict=True))
    marked = [(" ", above), ("-", old), ("+", new), (" ", below)]
    body = "".join(sign + line.removesuffix("\n") + "\n" for sign, part in marked for line in part)
    return f"--- a/{path}\n+++ b/{path}\n@@ {numbers} @@\n{body}"
