"""Where no rule knows what to write, the user is led to what the last edit leaves, as `undone.txt` draws it.

`--- path` begins a file, `⟦old→new⟧` is what the user did in the first; a line that ends in `?` as a comment holds a
place that is led to. `left:` begins what is said of them.
"""

import re
from pathlib import Path

import pytest

from mercury_ls.code.documents import Document
from mercury_ls.code.edits import difference
from mercury_ls.code.history import History
from mercury_ls.code.modules import Project
from mercury_ls.next_edit.situation import Situation
from mercury_ls.next_edit.undone import undone
from tests.cases import files_in
from tests.mercury_ls.next_edit.test_pipeline import EDIT

_, *PARTS = re.split(r"^=== (.*)\n", Path(__file__).with_name("undone.txt").read_text(encoding="utf-8"), flags=re.M)
MARK = re.compile(r"  (?:#|//)\?$", re.MULTILINE)


@pytest.mark.parametrize("drawn", PARTS[1::2], ids=PARTS[::2])
def test_leavings_of_an_edit_are_named_and_led_to(drawn: str) -> None:
    drawn, _, note = drawn.rstrip("\n").partition("\nleft: ")
    files = {f"/p/{path}": text for path, text in files_in(drawn + "\n").items()}
    home, text = next(iter(files.items()))
    before, now = (MARK.sub("", EDIT.sub(group, text)) for group in (r"\1", r"\2"))
    texts = {path: MARK.sub("", text) for path, text in files.items()} | {home: now}
    marked = {path: EDIT.sub(r"\2", text) for path, text in files.items()}
    expected = [
        (path, number)
        for path, text in marked.items()
        for number, line in enumerate(text.split("\n"))
        if MARK.search(line)
    ]
    history = History()
    history.record(home, before, difference(before, now), 0.0)

    def mentioning(name: str, near: str) -> list[str]:
        return [path for path, text in texts.items() if path != near and name in text]

    snapshot = Document(f"file://{home}", home, "", 1, now).snapshot()
    project = Project((snapshot,), texts.get, texts.__contains__, mentioning)
    work = undone(Situation(snapshot, 0, history.edits(8), project=project), project)
    while True:
        try:
            next(work)
        except StopIteration as end:
            left = end.value
            break
    assert sorted({(file.path, file.line_of(at)) for file, at in left.places}) == sorted(expected)
    assert left.note.startswith(note)
