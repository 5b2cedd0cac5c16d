"""Files whose lines end otherwise than with a line feed, in real Neovims: what is shown, inserted, counted, written."""

import json
import sys

import pytest

from tests.editors.models import FAKE
from tests.editors.nvim.test_ghost import mapped, reach, suggested
from tests.editors.nvim.test_next_edit import SERVER, answer, edit, journal, shows
from tests.editors.scenes import BLOCK

pytestmark = [pytest.mark.editor, pytest.mark.slow]

copied = pytest.mark.parametrize("model", [FAKE], indirect=True)
"""With the engine of which it is known that it goes on over several lines."""
CRLF = BLOCK._replace(text=BLOCK.text.replace("\n", "\r\n"))
OFFERED = "né🦀:{0}    pass{0}    return"
ENDS = ["\r\n", "\r"]


def written(editor) -> bytes:
    editor.press("<Esc>", "n")
    editor.command("write")
    return (editor.folder / "shop.py").read_bytes()


def scripted(editor, face: str, suggestion: str) -> None:
    """An editor that shows this for the empty last line of a file with CRLF."""
    place = {"line": 1, "character": 0}
    item = {"insertText": suggestion, "range": {"start": place, "end": place}}
    item["command"] = {"title": "", "command": "mercury.didAccept", "arguments": ["one"]}
    (editor.folder / "inline.json").write_text(json.dumps({"items": [item]}), encoding="utf-8")
    editor.start([sys.executable, SERVER, str(editor.folder)], ghost=face)
    editor.open("if empty:\r\n")
    editor.attached()
    mapped(editor)
    editor.press("o", "i")
    editor.shows(OFFERED.format("\n"))


@copied
def test_crlf_file_gets_what_was_shown_inserted_and_written(editor):
    shown = suggested(editor, CRLF)
    assert editor.lua("return vim.bo.fileformat") == "dos"
    assert "\n" in shown
    assert "\r" not in shown
    assert "^M" not in shown
    mapped(editor)
    editor.keys("<C-l>")
    reach(editor, BLOCK.before + shown)
    assert written(editor).decode() == (BLOCK.before + shown + "\n").replace("\n", "\r\n")


@copied
def test_crlf_file_has_one_line_taken_and_the_lines_below_stay(editor):
    shown = suggested(editor, CRLF)
    line = "\n" + shown.splitlines()[1]
    mapped(editor)
    editor.keys("<C-k>")
    reach(editor, BLOCK.before + line)
    rest = shown.removeprefix(line)
    editor.until(lambda: editor.ghost.startswith(rest), f"ghost text {rest!r}, or what it grew to")


@copied
def test_crlf_line_end_is_typed_through(editor):
    shown = suggested(editor, CRLF)
    editor.lua("_G.frames = {}")
    editor.keys("<CR>")
    reach(editor, BLOCK.before + "\n    ")
    editor.shows(shown.removeprefix("\n    "))
    assert all(ghost for _, ghost in editor.lua("return _G.frames"))


@pytest.mark.parametrize("end", ENDS)
def test_words_lines_and_the_whole_are_taken_whatever_ends_a_line(bare, face, end):
    scripted(bare, face, OFFERED.format(end))
    bare.keys("<C-k>")
    reach(bare, "if empty:\nné🦀:")
    bare.keys("<C-j>")
    reach(bare, "if empty:\nné🦀:\n    pass")
    bare.keys("<C-l>")
    reach(bare, "if empty:\n" + OFFERED.format("\n"))
    assert written(bare).decode() == "if empty:\r\n" + OFFERED.format("\r\n") + "\r\n"


@pytest.mark.parametrize("end", [*ENDS, "\n"])
def test_accepted_text_is_counted_as_the_server_sent_it(bare, face, end):
    scripted(bare, face, OFFERED.format(end))
    bare.keys("<C-k>")
    reach(bare, "if empty:\nné🦀:")
    bare.keys("<C-j>")
    partial = "textDocument/didPartiallyAcceptCompletion"
    bare.until(lambda: len(journal(bare, partial)) == 2, "two reports")
    lengths = [params["acceptedLength"] for params in journal(bare, partial)]
    assert lengths == [len(part.encode("utf-16-le")) // 2 for part in ("né🦀:", f"né🦀:{end}    pass")]


def test_next_edit_has_line_ends_of_its_file(bare):
    bare.start([sys.executable, SERVER, str(bare.folder)])
    bare.open("-one\r\ntwo\r\n", "area.py")
    bare.attached()
    answer(bare, edit(1, 0, 3, "2\r\n2"), edit(2, 0, 0, "three\r\n"))
    bare.keys("1Gx")
    shows(bare, ["-", 1, "two"], ["+", 1, "2"], ["+", 1, "2"], ["+", 1, "three"])
    bare.lua("require('mercury').next_edit()")
    reach(bare, "one\n2\n2\nthree")
    bare.command("write")
    assert (bare.folder / "area.py").read_bytes() == b"one\r\n2\r\n2\r\nthree\r\n"
