"""Ghost text in real Neovims: seen, typed through, taken in parts, refused, undone."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.editors.scenes import BLOCK, SHOP, WIDE, Scene

pytestmark = [pytest.mark.editor, pytest.mark.slow]


def suggested(editor, scene: Scene = SHOP) -> str:
    """What an editor shows in which the scene was typed."""
    editor.open(scene.text)
    editor.ready()
    editor.keys("G")
    editor.press("A", "i")
    editor.type(scene.typed)
    shown = editor.suggestion()
    assert not editor.copies or shown == scene.rest
    return shown


def mapped(editor) -> None:
    for key, name in {"<C-l>": "accept", "<C-j>": "accept-word", "<C-k>": "accept-line", "<C-x>": "dismiss"}.items():
        editor.lua("vim.keymap.set('i', ...)", key, f"<Plug>(mercury-{name})")


def reach(editor, text: str) -> None:
    editor.until(lambda: editor.text == text, f"the text {text!r}")


def test_ghost_text_is_painted_behind_the_cursor_with_its_answer_until_insert_mode_is_left(editor):
    shown = suggested(editor)
    row, column = editor.cursor
    assert editor.ghosts == [[row - 1, column, shown]]
    assert editor.lua("return _G.turns")[-1] == editor.ghosts
    assert editor.screen_line == editor.line + shown
    editor.press("<Esc>", "n")
    assert editor.ghosts == []


def test_accepting_inserts_what_was_shown_and_undoing_takes_just_that(editor):
    shown = suggested(editor)
    mapped(editor)
    editor.keys("<C-l>")
    reach(editor, SHOP.before + shown)
    editor.until(lambda: status(editor)["accepted"] == 1, "the server to count it")
    assert editor.cursor == [len(editor.text.splitlines()), len(editor.line)]
    editor.press("<Esc>", "n")
    editor.keys("u")
    reach(editor, SHOP.before)
    editor.keys("u")
    reach(editor, SHOP.text)


def test_text_typed_after_accepting_is_undone_by_itself(editor):
    shown = suggested(editor)
    mapped(editor)
    editor.keys("<C-l>  # all")
    reach(editor, SHOP.before + shown + "  # all")
    editor.press("<Esc>", "n")
    editor.keys("u")
    reach(editor, SHOP.before + shown)
    editor.keys("u")
    reach(editor, SHOP.before)


def test_words_are_taken_and_undone_one_by_one_and_the_rest_stays(editor):
    shown = suggested(editor)
    mapped(editor)
    editor.keys("<C-j>")
    taken = one_word(editor, shown, 0)
    editor.shows(shown[taken:])
    editor.keys("<C-j>")
    both = one_word(editor, shown, taken)
    editor.shows(shown[both:])
    editor.press("<Esc>", "n")
    editor.keys("u")
    reach(editor, SHOP.before + shown[:taken])


def one_word(editor, shown: str, taken: int) -> int:
    """How much of the suggestion is in the text when one more word of it is, and no more than a word."""
    now = editor.until(lambda: max(0, len(editor.text) - len(SHOP.before + shown[:taken])), "a word") + taken
    assert editor.text == SHOP.before + shown[:now]
    assert len(shown[taken:now].split()) == 1
    return now


def test_line_is_taken_and_lines_below_stay(editor):
    shown = suggested(editor, BLOCK)
    line = "\n" + shown.splitlines()[1]
    assert shown.startswith(line + "\n"), f"the model stayed within a line: {shown!r}"
    mapped(editor)
    editor.keys("<C-k>")
    reach(editor, BLOCK.before + line)
    rest = shown.removeprefix(line)
    editor.until(lambda: editor.ghost.startswith(rest), f"ghost text {rest!r}, or what it grew to")
    assert len(editor.ghosts) == 1


@pytest.mark.any_model
def test_growing_answer_is_shown_in_full_and_once(bare, face):
    place = {"line": 0, "character": 5}
    grown = ["size", "size = 1", "size = 1\n    return size"]
    answers = [{"items": [{"insertText": text, "range": {"start": place, "end": place}}]} for text in grown]
    (bare.folder / "growing.json").write_text(json.dumps(answers), encoding="utf-8")
    server = Path(__file__).with_name("scripted_server.py")
    bare.start([sys.executable, str(server), str(bare.folder)], ghost=face)
    bare.open("    \n")
    bare.attached()
    bare.press("A", "i")
    bare.type(" ")
    bare.shows(grown[-1])
    assert bare.ghosts == [[0, 5, grown[-1]]]


def test_several_lines_are_one_undo_step(editor):
    shown = suggested(editor, BLOCK)
    mapped(editor)
    editor.keys("<C-l>")
    reach(editor, BLOCK.before + shown)
    editor.press("<Esc>", "n")
    editor.keys("u")
    reach(editor, BLOCK.before)


def test_typing_through_never_takes_it_off_the_screen(editor):
    shown = suggested(editor)
    line = editor.line + shown
    half = len(shown) // 2
    editor.lua("_G.frames = {}")
    editor.type(shown[:half])
    assert editor.suggestion() == shown[half:]
    frames = editor.lua("return _G.frames")
    assert len(frames) > half // 2
    assert {before + ghost for before, ghost in frames} == {line}


def test_typing_something_else_takes_it_off_the_screen_at_once_and_inserts_none_of_it(editor):
    suggested(editor)
    mapped(editor)
    editor.lua("_G.frames = {}")
    editor.type("Q")
    wrong = [ghost for line, ghost in editor.lua("return _G.frames") if line.endswith("Q") and ghost]
    assert wrong == []
    editor.keys("<C-l>R")
    reach(editor, SHOP.before + "QR")


def test_accepting_right_after_typing_through_does_not_double_a_character(editor):
    shown = suggested(editor)
    mapped(editor)
    editor.keys(shown[:2] + "<C-l>")
    reach(editor, SHOP.before + shown)


def test_dismissing_clears_it_and_tells_the_server(editor):
    suggested(editor)
    mapped(editor)
    editor.keys("<C-x>")
    editor.shows("")
    editor.until(lambda: status(editor)["rejected"] == 1, "the server to count it")
    assert editor.text == SHOP.before


def test_columns_are_right_behind_wide_characters(editor):
    shown = suggested(editor, WIDE)
    mapped(editor)
    editor.keys("<C-l>")
    reach(editor, WIDE.before + shown)


def test_auto_closed_bracket_is_neither_covered_nor_doubled(editor):
    editor.lua("vim.keymap.set('i', '(', '()<Left>')")
    editor.open(SHOP.text)
    editor.ready()
    editor.keys("G")
    editor.press("A", "i")
    editor.type("return tax")
    editor.keys("(it")
    editor.until(lambda: editor.line == "    return tax(it)", "the pair")
    editor.suggestion()
    painted = editor.screen_line
    assert painted.count("(") == painted.count(")")
    assert not editor.copies or painted == SHOP.whole.splitlines()[-1]
    mapped(editor)
    editor.keys("<C-l>")
    reach(editor, SHOP.text.removesuffix("    ") + painted)


def test_ghost_text_comes_back_after_the_server_was_killed(editor):
    shown = suggested(editor)
    mapped(editor)
    editor.press("<Esc>", "n")
    replaced(editor, lambda: kill_server(editor))
    editor.press("A", "i")
    editor.type(shown[:2])
    more = editor.suggestion()
    editor.keys("<C-l>")
    reach(editor, SHOP.before + shown[:2] + more)


def replaced(editor, end: Callable[[], None]) -> None:
    """The server is ended, and another one is ready."""
    before = editor.lua("return vim.lsp.get_clients({ bufnr = 0 })[1].id")
    end()
    again = "local c = vim.lsp.get_clients({ bufnr = 0 })[1]; return c and c.initialized and c.id ~= ..."
    editor.until(lambda: editor.lua(again, before), "another server")
    editor.ready()


def kill_server(editor) -> None:
    children = "return vim.api.nvim_get_proc_children(vim.fn.getpid())"
    (server,) = editor.lua(children)
    editor.lua("vim.uv.kill(..., 'sigkill')", server)


def status(editor, name: str = "mercury") -> dict:
    client = "vim.lsp.get_clients({ bufnr = 0, name = ... })[1]"
    code = f"return {client}:request_sync('mercury/status', vim.empty_dict(), 20000).result"
    return editor.lua(code, name)
