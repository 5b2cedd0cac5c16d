"""What is renamed where it is declared is renamed where it certainly is used, in all files, and nowhere else.

`--- path` begins a file, `⟦old→new⟧` is what the user did, and each «name» has to follow; all others stay.
"""

import re

import pytest

from mercury_ls.code.documents import CLOSED, Document
from mercury_ls.code.edits import difference
from mercury_ls.code.history import History
from mercury_ls.code.importers import Importers
from mercury_ls.code.modules import Project
from tests.mercury_ls.next_edit.next_edit_scenarios import FILES, Scenario
from tests.mercury_ls.next_edit.test_pipeline import asked_at, last_of

EDIT = re.compile(r"⟦(.*?)→(.*?)⟧")
FILE = re.compile(r"^--- (\S+)\n", re.MULTILINE)


async def check(drawn: str, note: str | None = None, places: list[str] | None = None) -> None:
    """`note` is what the offer says of the places that it leaves, `places` are these in any order."""
    pieces = FILE.split(drawn.lstrip("\n"))[1:]
    files = dict(zip((f"/p/{path}" for path in pieces[::2]), pieces[1::2], strict=True))
    plain = {path: text.replace("«", "").replace("»", "") for path, text in files.items()}
    home = next(path for path, text in files.items() if EDIT.search(text))
    edit = EDIT.search(plain[home])
    assert edit is not None
    before, now = EDIT.sub(edit[1], plain[home]), EDIT.sub(edit[2], plain[home])
    history = History()
    history.record(home, before, difference(before, now), 0.0)
    texts = {**plain, home: now}
    opened = {path: Document(f"file://{path}", path, "", CLOSED, text).snapshot() for path, text in texts.items()}
    opened[home] = Document(f"file://{home}", home, "", 1, now).snapshot()
    others = [each for path, each in opened.items() if path != home and edit[1] in texts[path]]
    importers = Importers()
    for path, text in plain.items():
        importers.keep(path, text)
    question = asked_at(
        opened[home],
        edit.start() + len(edit[2]),
        history,
        neighbours=tuple(others),
        project=Project(read=texts.get, exists=texts.__contains__, importers=lambda: importers),
    )
    answer = await last_of(question)
    left = answer.offer.note if answer.offer else re.sub(", since `.*?` became `.*?`$", "", answer.silence)
    if note is not None:
        assert left == note
    if places is not None:
        assert sorted(re.findall(r"[\w.]+:\d+", left.split("; ")[0])) == sorted(places)
    for made in sorted(answer.edits, key=lambda each: -each.start):
        path = made.uri.removeprefix("file://")
        texts[path] = texts[path][: made.start] + made.text + texts[path][made.end :]
    assert texts == {path: re.sub("«.*?»", edit[2], EDIT.sub(edit[2], text)) for path, text in files.items()}


@pytest.mark.parametrize("scenario", FILES, ids=lambda scenario: scenario.title)
async def test_rename_reaches_its_certain_uses_and_nothing_else(scenario: Scenario) -> None:
    await check(scenario.drawn, scenario.note)
