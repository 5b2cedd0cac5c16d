"""A name that came and is not known is imported before anything else is offered, as `imports.txt` draws it.

`--- path` begins a file, `⟦old→new⟧` is what the user did, and «→text» is what follows, in the first file.
"""

import re
from pathlib import Path

import pytest

from mercury_ls.code.documents import Document
from mercury_ls.code.edits import difference
from mercury_ls.code.history import History
from mercury_ls.code.importers import Importers
from mercury_ls.code.modules import Project
from tests.cases import files_in
from tests.mercury_ls.next_edit.test_pipeline import DUE, EDIT, asked_at, drawn_after, last_of

_, *PARTS = re.split(r"^=== (.*)\n", Path(__file__).with_name("imports.txt").read_text(encoding="utf-8"), flags=re.M)


@pytest.mark.parametrize("drawn", PARTS[1::2], ids=PARTS[::2])
async def test_missing_names_are_imported(drawn: str) -> None:
    files = {f"/p/{path}": text for path, text in files_in(drawn).items()}
    home, text = next(iter(files.items()))
    plain = DUE.sub("", text)
    edit = EDIT.search(plain)
    assert edit is not None
    before, now = EDIT.sub(r"\1", plain), EDIT.sub(r"\2", plain)
    history, importers = History(), Importers()
    history.record(home, before, difference(before, now), 0.0)
    for path, file_text in files.items():
        importers.keep(path, file_text)

    def mentioning(name: str, near: str) -> list[str]:
        return [path for path, file_text in files.items() if path != near and name in file_text]

    project = Project((), files.get, files.__contains__, mentioning, lambda: importers)
    snapshot = Document(f"file://{home}", home, "", 1, now).snapshot()
    answer = await last_of(asked_at(snapshot, edit.start() + len(edit[2]), history, project=project))
    assert drawn_after(snapshot, answer) == EDIT.sub(r"\2", DUE.sub(r"«\2»", text)), answer.silence
