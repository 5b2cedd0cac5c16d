"""No key is taken; the documented mappings leave menus, snippets and indentation their meaning."""

import json
import sys
from pathlib import Path

import pytest

from tests.editors.nvim.test_ghost import reach, suggested
from tests.editors.scenes import SHOP

pytestmark = [pytest.mark.editor, pytest.mark.slow, pytest.mark.any_model]


def test_plugin_maps_no_key_but_its_own_names(bare):
    code = """
        local found = {}
        for _, mode in ipairs({ "n", "i", "v", "s", "c" }) do
          for _, map in ipairs(vim.api.nvim_get_keymap(mode)) do
            if (map.rhs or ""):find("mercury") then table.insert(found, map.lhs) end
          end
        end
        return found
    """
    assert all(name.startswith("<Plug>(mercury-") for name in bare.lua(code))


def test_tab_accepts_what_is_shown(editor):
    editor.map("i", "<Tab>", "accept")
    shown = suggested(editor)
    editor.keys("<Tab>")
    reach(editor, SHOP.before + shown)


def test_tab_is_a_tab_where_nothing_is_shown(editor):
    editor.map("i", "<Tab>", "accept")
    editor.lua("vim.o.expandtab, vim.o.shiftwidth, vim.o.softtabstop = true, 4, 4")
    editor.open("x = 1")
    editor.attached()
    editor.press("O", "i")
    editor.keys("<Tab>")
    reach(editor, "    \nx = 1")


def scripted(editor, *suggestions: str) -> None:
    """An editor whose server offers these for the new line below `def empty():`, on which the cursor is."""
    place = {"line": 1, "character": 0}
    items = [{"insertText": text, "range": {"start": place, "end": place}} for text in suggestions]
    (editor.folder / "inline.json").write_text(json.dumps({"items": items}), encoding="utf-8")
    editor.start([sys.executable, str(Path(__file__).with_name("scripted_server.py")), str(editor.folder)])
    editor.lua("vim.o.expandtab, vim.o.shiftwidth, vim.o.softtabstop, vim.o.autoindent = true, 4, 4, false")
    editor.map("i", "<Tab>", "accept")
    editor.open("def empty():")
    editor.attached()
    editor.press("o", "i")
    editor.shows(suggestions[0])


@pytest.mark.parametrize(("suggestion", "after"), [("    pass", "    "), ("pass", "pass")])
def test_tab_indents_where_the_suggestion_would_begin_with_white_space(bare, suggestion, after):
    scripted(bare, suggestion)
    bare.keys("<Tab>")
    reach(bare, f"def empty():\n{after}")


def test_alternatives_are_cycled_through_and_the_one_shown_is_taken(bare):
    scripted(bare, "pass", "return", "raise")
    bare.lua("vim.keymap.set('i', '<C-n>', '<Plug>(mercury-next)')")
    bare.lua("vim.keymap.set('i', '<C-p>', '<Plug>(mercury-prev)')")
    for key, shown in [("<C-n>", "return"), ("<C-n>", "raise"), ("<C-n>", "pass"), ("<C-p>", "raise")]:
        bare.keys(key)
        bare.until(lambda shown=shown: bare.ghost.split(" ")[0] == shown, shown)
    bare.keys("<Tab>")
    reach(bare, "def empty():\nraise")


def test_tab_keeps_its_meaning_in_a_menu(editor):
    editor.map("i", "<Tab>", "accept")
    suggested(editor)
    editor.lua("vim.o.completeopt = 'menu,menuone,noselect'")
    editor.keys("<C-x><C-n>")
    editor.until(lambda: editor.lua("return vim.fn.pumvisible()"), "the menu")
    editor.shows("")
    editor.keys("<Tab>")
    reach(editor, SHOP.before + "\t")


def test_tab_keeps_its_meaning_in_a_menu_beside_which_ghost_text_is_wanted(served):
    served.start(ghost="own", popup_menu="show")
    served.map("i", "<Tab>", "accept")
    suggested(served)
    served.lua("vim.o.completeopt = 'menu,menuone'")
    served.keys("<C-x><C-n>")
    served.until(lambda: served.lua("return vim.fn.pumvisible()"), "the menu")
    assert served.lua("return require('mercury').or_key('accept', '<Tab>')()") == "<Tab>"


def test_tab_keeps_its_meaning_in_a_snippet(editor):
    editor.map("i", "<Tab>", "accept")
    editor.open("x = 1")
    editor.attached()
    editor.press("O", "i")
    editor.lua("vim.snippet.expand('for $1 in $2:')")
    editor.keys("a<Tab>b")
    reach(editor, "for a in b:\nx = 1")


def test_key_for_next_edit_keeps_its_meaning_without_one(bare):
    bare.map("n", "<Tab>", "next_edit")
    assert bare.lua("return require('mercury').or_key('next_edit', '<Tab>')()") == "<Tab>"


def with_keys(editor, before: str = "") -> None:
    editor.lua(before)
    editor.start(keys=True)


def test_default_keys_take_suggestions_in_parts_and_whole(served):
    with_keys(served)
    shown = suggested(served)
    served.keys("<C-Right>")
    served.until(lambda: served.text != SHOP.before, "a word")
    served.keys("<Tab>")
    reach(served, SHOP.before + shown)


@pytest.mark.parametrize(
    ("mapped", "text"),
    [
        ("", "\tx = 1"),
        ("vim.keymap.set('i', '<Tab>', 'mine')", "minex = 1"),
        ("vim.keymap.set('i', '<Tab>', function() return 'my' .. 'own' end, { expr = true })", "myownx = 1"),
    ],
)
def test_default_key_keeps_its_meaning_where_nothing_is_suggested(bare, mapped, text):
    with_keys(bare, mapped)
    bare.open("x = 1")
    bare.press("I", "i")
    bare.keys("<Tab>")
    reach(bare, text)


def test_key_that_user_gave_to_our_action_stays(bare):
    with_keys(bare, "vim.keymap.set('i', '<Tab>', '<Plug>(mercury-accept-word)')")
    assert bare.lua("return vim.fn.maparg('<Tab>', 'i')") == "<Plug>(mercury-accept-word)"


def test_health_tells_what_else_wants_a_key(bare):
    with_keys(bare, "vim.keymap.set('i', '<Tab>', 'mine')")
    bare.lua("vim.keymap.set('n', '<Tab>', 'gt')")
    bare.open("x = 1")
    bare.lua("vim.keymap.set('i', '<C-]>', 'theirs', { buffer = true })")
    bare.command("checkhealth mercury")
    assert "insert <Tab>: accept; where there is nothing to act on: mine" in bare.text
    assert "normal <Tab>: next_edit, but it was mapped again: gt" in bare.text
    assert "insert <C-]> is hidden in shop.py by: theirs" in bare.text


HINTS = [
    ("require('mercury').setup({ servers = {}, keys = true })", "<Tab> accepts the grey text"),
    ("vim.keymap.set('i', '<C-l>', '<Plug>(mercury-accept)')", "<C-L> accepts the grey text"),
    ("vim.keymap.set('i', '<C-k>', require('mercury').or_key('accept', 'x'), { expr = true })", "<C-K> accepts"),
    ("", "no key accepts the grey text yet: `:help mercury-keys`"),
]


@pytest.mark.parametrize(("mapped", "hint"), HINTS)
def test_first_suggestion_ever_shows_its_key_and_later_ones_do_not(bare, mapped, hint):
    bare.lua(mapped)
    bare.lua("require('mercury.welcome').explain()")
    bare.says(hint)
    bare.lua("package.loaded['mercury.welcome'] = nil; require('mercury.welcome').explain()")
    bare.asks()
    assert len(bare.notes) == 1


@pytest.mark.parametrize("left", ["<Esc>", "<C-c>"])
def test_message_in_insert_mode_stays_until_that_mode_is_left(bare, left):
    bare.press("i", "i")
    bare.lua("require('mercury.welcome').explain()")
    bare.says("accepts the grey text")
    bare.type("ab")
    assert "accepts the grey text" in bare.last_screen_line
    bare.press(left, "n")
    bare.press("a", "i")
    bare.until(lambda: bare.last_screen_line.startswith("-- INSERT --"), "the mode")


def test_unknown_action_is_named(bare):
    with pytest.raises(RuntimeError, match=r'or_key\("jump"\): no such action'):
        bare.lua("require('mercury').or_key('jump', '<Tab>')")
