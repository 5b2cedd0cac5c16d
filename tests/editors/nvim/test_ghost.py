"""Ghost text in real Neovims: seen, typed through, taken in parts, refused, undone."""

import pytest

pytestmark = [pytest.mark.editor, pytest.mark.slow]

SHOP = """\
def total(items):
    return sum(item.price * item.quantity for item in items)


def count(items):
    """
LINE = "    return sum(item.price * item.quantity for item in items)"
TYPED = "return sum(it"
REST = LINE.removeprefix(f"    {TYPED}")

BLOCK = """\
def load(path):
    with open(path) as file:
        data = file.read()
        return data.strip()


def again(path):
    with open(path) as file:"""
LINES = "\n        data = file.read()\n        return data.strip()"


def suggested(editor, text: str = SHOP, typed: str = TYPED, rest: str = REST) -> None:
    """An editor that shows `rest` after `typed` was typed at the end of `text`."""
    editor.open(text)
    editor.ready()
    editor.keys("G")
    editor.press("A", "i")
    editor.type(typed)
    editor.shows(rest)


def mapped(editor) -> None:
    for key, name in {"<C-l>": "accept", "<C-j>": "accept-word", "<C-k>": "accept-line", "<C-x>": "dismiss"}.items():
        editor.lua("vim.keymap.set('i', ...)", key, f"<Plug>(mercury-{name})")


def reach(editor, text: str) -> None:
    editor.until(lambda: editor.text == text, f"the text {text!r}")


def test_it_appears_where_the_cursor_is(editor):
    suggested(editor)
    row, column = editor.cursor
    assert editor.ghosts == [[row - 1, column, REST]]


def test_accepting_inserts_what_was_shown_and_undoing_takes_just_that(editor):
    suggested(editor)
    mapped(editor)
    editor.keys("<C-l>")
    reach(editor, SHOP + TYPED + REST)
    assert editor.cursor == [6, len(LINE)]
    editor.press("<Esc>", "n")
    editor.keys("u")
    reach(editor, SHOP + TYPED)
    editor.keys("u")
    reach(editor, SHOP)


def test_what_is_typed_after_accepting_is_undone_by_itself(editor):
    suggested(editor)
    mapped(editor)
    editor.keys("<C-l>  # all")
    reach(editor, SHOP + TYPED + REST + "  # all")
    editor.press("<Esc>", "n")
    editor.keys("u")
    reach(editor, SHOP + TYPED + REST)
    editor.keys("u")
    reach(editor, SHOP + TYPED)


def test_the_server_hears_of_an_accepted_suggestion(editor):
    suggested(editor)
    mapped(editor)
    editor.keys("<C-l>")
    editor.until(lambda: status(editor)["accepted"] == 1, "the server to count it")


def test_words_are_taken_one_by_one_and_the_rest_stays(editor):
    suggested(editor)
    mapped(editor)
    editor.keys("<C-j>")
    reach(editor, SHOP + TYPED + "em")
    editor.shows(REST.removeprefix("em"))
    editor.keys("<C-j><C-j>")
    reach(editor, SHOP + TYPED + "em.price")
    editor.shows(REST.removeprefix("em.price"))


def test_a_word_is_one_undo_step(editor):
    suggested(editor)
    mapped(editor)
    editor.keys("<C-j>")
    reach(editor, SHOP + TYPED + "em")
    editor.press("<Esc>", "n")
    editor.keys("u")
    reach(editor, SHOP + TYPED)


def test_a_line_is_taken_and_the_lines_below_stay(editor):
    block(editor)
    editor.keys("<C-k>")
    reach(editor, BLOCK + "\n        data = file.read()")
    editor.shows("\n        return data.strip()")


def block(editor) -> None:
    suggested(editor, BLOCK.removesuffix("e:"), "e:", LINES)
    mapped(editor)


def test_several_lines_are_one_undo_step(editor):
    block(editor)
    editor.keys("<C-l>")
    reach(editor, BLOCK + LINES)
    editor.press("<Esc>", "n")
    editor.keys("u")
    reach(editor, BLOCK)


def test_typing_through_never_takes_it_off_the_screen(editor):
    suggested(editor)
    editor.lua("_G.frames = {}")
    editor.type("em.price * item")
    editor.shows(" * item.quantity for item in items)".removeprefix(" * item"))
    frames = editor.lua("return _G.frames")
    assert len(frames) > 5
    assert {line + ghost for line, ghost in frames} == {LINE}


def test_typing_something_else_takes_it_off_the_screen_at_once(editor):
    suggested(editor)
    editor.lua("_G.frames = {}")
    editor.type("Q")
    wrong = [ghost for line, ghost in editor.lua("return _G.frames") if line.endswith("Q") and ghost]
    assert wrong == []


def test_nothing_is_inserted_that_was_not_shown(editor):
    suggested(editor)
    mapped(editor)
    editor.keys("Q<C-l>R")
    reach(editor, SHOP + TYPED + "QR")


def test_accepting_right_after_typing_through_does_not_double_a_character(editor):
    suggested(editor)
    mapped(editor)
    editor.keys("em<C-l>")
    reach(editor, SHOP + TYPED + REST)


def test_leaving_insert_mode_clears_it(editor):
    suggested(editor)
    editor.press("<Esc>", "n")
    assert editor.ghosts == []


def test_dismissing_clears_it_and_tells_the_server(editor):
    suggested(editor)
    mapped(editor)
    editor.keys("<C-x>")
    editor.shows("")
    editor.until(lambda: status(editor)["rejected"] == 1, "the server to count it")


def test_columns_are_right_behind_wide_characters(editor):
    suggested(editor, SHOP + "'née 🦀'; ")
    mapped(editor)
    editor.keys("<C-l>")
    reach(editor, SHOP + "'née 🦀'; " + TYPED + REST)


def test_it_is_painted_into_the_line_and_covers_nothing(editor):
    suggested(editor)
    assert editor.screen_line == LINE


def test_a_bracket_that_was_closed_ahead_is_neither_covered_nor_doubled(editor):
    editor.lua("vim.keymap.set('i', '(', '()<Left>')")
    editor.open(SHOP)
    editor.ready()
    editor.keys("G")
    editor.press("A", "i")
    editor.type("return sum")
    editor.keys("(it")
    editor.until(lambda: editor.line == "    return sum(it)", "the pair")
    editor.until(lambda: editor.ghost, "ghost text")
    assert editor.screen_line == LINE
    mapped(editor)
    editor.keys("<C-l>")
    reach(editor, SHOP + TYPED + REST)


def test_there_is_no_entry_in_the_ordinary_menu_beside_it(editor):
    editor.open(SHOP)
    editor.ready()
    assert not editor.lua("return vim.lsp.get_clients({ bufnr = 0 })[1].server_capabilities.completionProvider")


def test_it_comes_back_after_the_server_was_killed(editor):
    suggested(editor)
    editor.press("<Esc>", "n")
    before = editor.lua("return vim.lsp.get_clients({ bufnr = 0 })[1].id")
    kill_server(editor)
    again = "local c = vim.lsp.get_clients({ bufnr = 0 })[1]; return c and c.initialized and c.id ~= ..."
    editor.until(lambda: editor.lua(again, before), "another server")
    editor.ready()
    editor.press("A", "i")
    editor.type("em")
    editor.shows(REST.removeprefix("em"))


def kill_server(editor) -> None:
    children = "return vim.api.nvim_get_proc_children(vim.fn.getpid())"
    (server,) = editor.lua(children)
    editor.lua("vim.uv.kill(..., 'sigkill')", server)


def status(editor, name: str = "mercury") -> dict:
    client = "vim.lsp.get_clients({ bufnr = 0, name = ... })[1]"
    code = f"return {client}:request_sync('mercury/status', vim.empty_dict(), 20000).result"
    return editor.lua(code, name)
