"""When nothing is shown: special buffers, macros, snippets, menus, several cursors, a snoozing user."""

import pytest

from tests.editors.nvim.test_ghost import suggested
from tests.editors.scenes import SHOP

pytestmark = [pytest.mark.editor, pytest.mark.slow, pytest.mark.any_model]


def quiet(editor, begin: str, end: str) -> None:
    """Nothing is asked or shown between what `begin` and `end` do in Lua, and then again."""
    shown = suggested(editor)
    editor.lua(begin)
    before = editor.asks()
    editor.type(shown[0])
    assert editor.asks() == before
    assert editor.ghosts == []
    editor.lua(end)
    editor.type(shown[1])
    assert editor.suggestion() == shown[2:]


MENU = "package.loaded['blink.cmp'] = { is_visible = function() return true end }"


@pytest.mark.parametrize(
    ("begin", "end"),
    [("vim.b.visual_multi = 1", "vim.b.visual_multi = nil"), (MENU, "package.loaded['blink.cmp'] = nil")],
    ids=["several cursors", "another completion menu"],
)
def test_silent_where_others_work(editor, begin, end):
    quiet(editor, begin, end)


def test_silent_while_a_snippet_is_filled_in(editor):
    editor.open(SHOP.text)
    editor.ready()
    editor.keys("G")
    editor.press("A", "i")
    editor.lua("vim.snippet.expand('max($1, $2)')")
    before = editor.asks()
    editor.type("it")
    assert editor.asks() == before
    assert editor.lua("return require('mercury.quiet').reason(0)") == "a snippet is active"
    editor.lua("vim.snippet.stop()")
    editor.type("e")
    assert editor.asks() > before


def test_silent_while_a_macro_is_recorded(editor):
    shown = suggested(editor)
    editor.press("<Esc>", "n")
    editor.keys("qa")
    editor.press("A", "i")
    before = editor.asks()
    editor.type(shown[0])
    assert editor.asks() == before
    assert editor.ghosts == []
    editor.press("<Esc>", "n")
    editor.keys("q")
    editor.press("A", "i")
    assert editor.suggestion() == shown[1:]


def test_silent_while_a_macro_is_played(editor):
    editor.open(SHOP.text)
    editor.ready()
    editor.lua("vim.fn.setreg('a', vim.keycode('GA' .. ... .. '<Esc>'))", SHOP.typed)
    before = editor.asks()
    editor.keys("@a")
    editor.until(lambda: editor.text == SHOP.before and editor.mode == "n", "the macro")
    assert editor.asks() == before


def test_silent_where_the_buffer_cannot_be_changed(editor):
    editor.open(SHOP.text)
    editor.ready()
    editor.lua("vim.bo.modifiable = false")
    assert editor.lua("return require('mercury.quiet').reason(0)") == "the buffer is not modifiable"


def test_special_buffers_get_no_server(editor):
    editor.open(SHOP.text)
    editor.ready()
    editor.lua("vim.cmd.new(); vim.bo.buftype = 'nofile'; vim.bo.filetype = 'python'")
    assert editor.lua("return require('mercury.quiet').reason(0)") == "a special buffer"
    assert editor.lua("return #vim.lsp.get_clients({ bufnr = 0 })") == 0


def test_silent_while_snoozing(editor):
    shown = suggested(editor)
    editor.lua("vim.cmd('Mercury snooze 5')")
    editor.shows("")
    editor.says("no suggestions for 5 minutes")
    assert editor.lua("return require('mercury').status()") == "mercury: snoozed 5 min"
    editor.type(shown[0])
    editor.asks()
    assert editor.ghosts == []
    editor.lua("vim.cmd('Mercury snooze 0')")
    editor.says("on again")
    editor.type(shown[1])
    assert editor.suggestion() == shown[2:]
    assert editor.lua("return require('mercury').status()") == "mercury"
