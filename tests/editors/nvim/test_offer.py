"""An offer that reaches further than the eye: announced, listed, made in part, taken back whole, in files that are not
open too. The server offers what the test has written down."""

import json

import pytest

from tests.editors.nvim.test_next_edit import (
    CHANGED,
    FIRST,
    SCREEN,
    SECOND,
    answer,
    below,
    edit,
    journal,
    offered,
    reach,
    shows,
    told,
)
from tests.editors.nvim.test_next_edit import editor as editor

pytestmark = [pytest.mark.editor, pytest.mark.slow]

OTHER = {**edit(0, 0, 4, "area"), "file": "other.py", "oldText": "aera"}
THIRD = {**edit(0, 0, 4, "area"), "file": "third.py", "oldText": "aera"}
MADE = CHANGED.replace("hight", "height")
KEYS = "a apply · x exclude or include · <CR> go there · q close"
LISTED = f"""\
2 of 2: {KEYS}
area.py
✓    2 -     return width * hight
       +     return width * height
other.py
✓    1 - aera
       + area"""
BUFFER = "return table.concat(vim.api.nvim_buf_get_lines(vim.fn.bufnr(...), 0, -1, false), '\\n')"


def lines(editor, name: str) -> str:
    return editor.lua(BUFFER, name)


def beside(editor, **more: str) -> None:
    """An offer for the file that is looked at, and for one in no window."""
    editor.open("aera\n", "other.py")
    editor.attached()
    offered(editor, FIRST, OTHER, **more)
    editor.until(lambda: screen(editor), "the offer")


def closed(editor, *edits: dict, text: str = "aera\n") -> None:
    """The same for files that are not open."""
    for each in edits:
        (editor.folder / each["file"]).write_text(text, encoding="utf-8")
    offered(editor, FIRST, *edits)
    editor.until(lambda: screen(editor), "the offer")


def screen(editor) -> list:
    return editor.lua(SCREEN)


def listed(editor) -> None:
    editor.keys("<Tab>")
    assert editor.page == LISTED


def test_changes_elsewhere_are_announced_first(editor):
    beside(editor, summary="1 here, 1 in other.py", note="pyright can rename this: undo and use rename")
    shows(
        editor,
        ["-", 1, "hight"],
        ["+", 1, "height"],
        ["?", 0, "  next edit: 1 here, 1 in other.py (<Tab>)"],
        ["+", 0, "  pyright can rename this: undo and use rename"],
    )


def test_first_key_lists_unseen_changes_and_the_second_makes_them(editor):
    beside(editor)
    listed(editor)
    assert lines(editor, "area.py") == CHANGED.removesuffix("\n")
    assert lines(editor, "other.py") == "aera"
    editor.keys("<Tab>")
    reach(editor, MADE)
    assert lines(editor, "other.py") == "area"
    assert told(editor, "workspace/executeCommand")["arguments"] == ["one"]
    editor.says("2 files changed: :wall writes, :Mercury next undo reverts")


def test_line_with_several_edits_is_listed_once_and_left_out_whole(editor):
    edits = [edit(0, 0, 4, "surface", oldText="area"), edit(0, 10, 14, "surface", oldText="area")]
    moved = edit(1, 0, 0, "# the sum\n", oldText="")
    closed(editor, *({**each, "file": "other.py"} for each in [*edits, moved]), text="area(x) + area(y)\nprint()\n")
    editor.keys("<Tab>")
    other = "other.py\n✓    1 - area(x) + area(y)\n       + surface(x) + surface(y)\n✓    2 + # the sum"
    assert editor.page.startswith("4 of 4")
    assert editor.page.endswith(other)
    editor.keys("6Gx")
    editor.until(lambda: editor.text.startswith("2 of 4"), "two to be left out")
    editor.keys("a")
    reach(editor, MADE)
    assert lines(editor, "other.py") == "area(x) + area(y)\n# the sum\nprint()"


def test_unticked_change_is_not_made_and_server_hears_how_many_were(editor):
    beside(editor)
    listed(editor)
    editor.keys("G")
    editor.keys("x")
    editor.until(lambda: "✗    1 - aera" in editor.text, "the mark")
    editor.keys("x")
    editor.until(lambda: "✗" not in editor.text, "no mark")
    editor.keys("xa")
    reach(editor, MADE)
    assert lines(editor, "other.py") == "aera"
    assert told(editor, "workspace/executeCommand")["arguments"] == ["one", 1]


@pytest.mark.parametrize("key", ["<CR>", "g<Tab>"])
def test_jump_key_goes_to_edit_and_changes_nothing(editor, key):
    beside(editor)
    listed(editor)
    editor.keys("G" + key)
    editor.until(lambda: editor.lua("return vim.fn.expand('%:t')") == "other.py", "the other file")
    shows(editor, ["-", 0, "aera"], ["+", 0, "area"], ["?", 0, "  next edit: 2 edits (<Tab>)"])


def test_closing_the_list_keeps_the_offer(editor):
    beside(editor)
    listed(editor)
    editor.keys("q")
    reach(editor, CHANGED)
    editor.keys("<Tab>")
    assert editor.page == LISTED


def test_list_is_also_a_command_and_says_where_there_is_nothing(editor):
    offered(editor, FIRST)
    shows(editor, ["-", 1, "hight"], ["+", 1, "height"])
    editor.command("Mercury next preview")
    assert editor.page.startswith(f"1 of 1: {KEYS}\narea.py\n✓    2 -")
    editor.keys("a")
    reach(editor, MADE)
    editor.command("Mercury next undo")
    editor.says("undone: rename in 1 file")
    editor.command("Mercury next preview")
    editor.says("there is no next edit")


def test_edits_in_windows_are_seen_and_need_no_list(editor):
    editor.open("aera\n", "other.py")
    editor.command("split")
    offered(editor, FIRST, OTHER)
    shows(editor, ["-", 1, "hight"], ["+", 1, "height"])
    editor.keys("<Tab>")
    reach(editor, MADE)
    assert lines(editor, "other.py") == "area"


def made(editor) -> None:
    """All of it, and the server has been asked what comes next."""
    listed(editor)
    editor.keys("a")
    reach(editor, MADE)
    editor.says("2 files changed")
    editor.until(lambda: len(journal(editor, "mercury/nextEdit")) == 2, "the next question")


def test_undo_command_takes_an_offer_back_in_all_files(editor):
    beside(editor)
    made(editor)
    editor.command("silent wall")
    editor.command("Mercury next undo")
    reach(editor, CHANGED)
    assert lines(editor, "other.py") == "aera"
    editor.says("undone: rename in 2 files")
    editor.command("Mercury next undo")
    editor.says("there is no next edit to undo")


@pytest.mark.parametrize(
    "change",
    [
        "vim.api.nvim_buf_set_lines(vim.fn.bufnr('other.py'), 0, 0, false, { '# mine' })",
        "vim.cmd('silent wall | bwipeout other.py')",
    ],
)
def test_file_that_changed_or_closed_since_is_not_taken_back(editor, change):
    beside(editor)
    made(editor)
    editor.lua(change)
    editor.command("Mercury next undo")
    editor.says("not undone: other.py changed or closed since; press u where it is open")
    reach(editor, MADE)
    assert "bwipeout" in change or lines(editor, "other.py") == "# mine\narea"


def test_nothing_is_taken_back_once_all_files_are_wiped(editor):
    beside(editor)
    made(editor)
    editor.command("silent wall")
    editor.command("%bwipeout")
    editor.command("Mercury next undo")
    editor.says("not undone: area.py, other.py changed or closed since; press u where it is open")


def test_offer_refused_after_its_list_was_closed_stays_away(editor):
    beside(editor)
    listed(editor)
    editor.keys("q")
    editor.until(lambda: editor.lua("return vim.api.nvim_win_get_config(0).relative") == "", "the list to close")
    assert screen(editor)
    editor.keys("<C-x>")
    editor.until(lambda: not screen(editor), "the offer to go")
    reason = "return require('mercury.nextedit').reason()"
    assert editor.lua(reason) == "you have rejected it; your next change asks again"


def test_offers_in_a_buffer_without_a_window_are_two_steps(editor):
    beside(editor)
    made(editor)
    answer(editor, edit(1, 4, 10, "give"), {**edit(0, 4, 4, "()"), "file": "other.py", "oldText": ""})
    editor.keys("1Gx")
    editor.until(lambda: screen(editor), "the second offer")
    editor.keys("<Tab>")
    assert "+ area()" in editor.page
    editor.keys("a")
    editor.until(lambda: lines(editor, "other.py") == "area()", "the second edit")
    editor.keys(":buffer other.py<CR>u")
    reach(editor, "area")
    editor.keys("u")
    reach(editor, "aera")


def test_files_that_are_not_open_are_changed_but_not_written(editor):
    closed(editor, OTHER, THIRD)
    editor.keys("<Tab>")
    assert [line for line in editor.page.splitlines() if line.endswith(".py")] == ["area.py", "other.py", "third.py"]
    assert editor.lua("return vim.fn.bufloaded('other.py')") == 0
    editor.keys("a")
    reach(editor, MADE)
    assert (lines(editor, "other.py"), lines(editor, "third.py")) == ("area", "area")
    assert (editor.folder / "other.py").read_text(encoding="utf-8") == "aera\n"
    assert editor.lua("return vim.fn.getbufvar('third.py', '&buflisted')") == 1
    editor.says("3 files changed")
    editor.command("Mercury next undo")
    assert (lines(editor, "other.py"), lines(editor, "third.py")) == ("aera", "aera")


def check_in_one_closed_file(editor, edits: list[dict], before: str, after: str, drawn: list[list]) -> None:
    """The first key goes there and shows all edits, the second one makes them."""
    (editor.folder / "other.py").write_text(before, encoding="utf-8")
    offered(editor, *({**each, "file": "other.py"} for each in edits))
    shows(editor, ["?", 0, "  → next edit: other.py:1 (<Tab>) · 2 edits"])
    editor.keys("<Tab>")
    reach(editor, before)
    shows(editor, *drawn)
    editor.keys("<Tab>")
    reach(editor, after)
    shows(editor)
    editor.keys("u")
    reach(editor, before)


def test_edits_on_one_line_of_a_file_that_is_not_open_are_made_together(editor):
    before, after = "area(x) + area(y)\n", "surface(x) + surface(y)\n"
    edits = [edit(0, 0, 4, "surface", oldText="area"), edit(0, 10, 14, "surface", oldText="area")]
    shown = [["-", 0, "area"], ["+", 0, "surface"]] * 2
    check_in_one_closed_file(editor, edits, before, after, shown)


def test_edit_that_adds_a_line_to_a_file_that_is_not_open_moves_those_below(editor):
    before, after = "a = 1\nprint(aera)\n", "a = 1\nb = 2\nprint(area)\n"
    edits = [edit(0, 5, 5, "\nb = 2", oldText=""), edit(1, 6, 10, "area", oldText="aera")]
    shown = [["+", 0, "b = 2"], ["-", 1, "aera"], ["+", 1, "area"]]
    check_in_one_closed_file(editor, edits, before, after, shown)


def test_edits_of_a_file_that_is_not_open_are_made_one_by_one(editor):
    (editor.folder / "other.py").write_text("area(x) + area(y)\n", encoding="utf-8")
    edits = [edit(0, 0, 4, "surface", oldText="area"), edit(0, 10, 14, "surface", oldText="area")]
    offered(editor, *({**each, "file": "other.py"} for each in edits))
    shows(editor, ["?", 0, "  → next edit: other.py:1 (<Tab>) · 2 edits"])
    editor.keys("g<Tab>")
    reach(editor, "area(x) + area(y)")
    editor.keys("g<Tab>")
    reach(editor, "surface(x) + area(y)")
    shows(editor, ["-", 0, "area"], ["+", 0, "surface"])
    editor.keys("g<Tab>")
    reach(editor, "surface(x) + surface(y)")


READ_ONLY = "vim.api.nvim_create_autocmd('BufReadPost', { pattern = 'third.py', command = 'setlocal readonly' })"


@pytest.mark.parametrize(
    ("protect", "text", "reason"),
    [("", "# mine\naera\n", "has changed since"), (READ_ONLY, "aera\n", "is not modifiable")],
)
def test_file_that_cannot_be_changed_voids_the_whole_offer(editor, protect, text, reason):
    editor.lua(protect)
    closed(editor, OTHER, THIRD)
    editor.keys("<Tab>")
    assert "third.py" in editor.page
    (editor.folder / "third.py").write_text(text, encoding="utf-8")
    editor.keys("a")
    editor.says(f"next edit not applied: third.py {reason}")
    reach(editor, CHANGED)
    assert protect or lines(editor, "other.py") == "aera"


@pytest.mark.parametrize("here", [[FIRST], []], ids=["listed", "jumped to"])
def test_file_that_changed_on_the_disk_since_is_asked_about_again(editor, here):
    (editor.folder / "other.py").write_text("aera\n", encoding="utf-8")
    offered(editor, *here, OTHER)
    editor.until(lambda: screen(editor), "the offer")
    (editor.folder / "other.py").write_text("# mine\naera\n", encoding="utf-8")
    answer(editor, {**edit(1, 0, 4, "area"), "file": "other.py", "oldText": "aera"}, id="two")
    editor.keys("<Tab>")
    editor.says("next edit not applied: other.py has changed since")
    shows(editor, ["?", 0, "  → next edit: other.py:2 (<Tab>)"])
    editor.keys("<Tab>")
    reach(editor, "# mine\naera")
    editor.keys("<Tab>")
    reach(editor, "# mine\narea")


def test_file_that_begins_with_a_byte_order_mark_is_listed_without_it(editor):
    closed(editor, OTHER, text="\ufeffaera\n")
    listed(editor)
    editor.keys("<Tab>")
    reach(editor, MADE)
    assert lines(editor, "other.py") == "area"


SWAPPED = """
    local buf = vim.fn.bufadd("other.py")
    vim.fn.bufload(buf)
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, { "unsaved" })
    vim.api.nvim_buf_call(buf, function() vim.cmd("silent preserve") end)
    local swap = vim.fn.swapname(buf)
    local content = vim.fn.readblob(swap)
    vim.api.nvim_buf_delete(buf, { force = true })
    vim.fn.writefile(content, swap)
"""


def test_file_with_a_swap_file_is_left_alone_without_a_question(editor):
    editor.lua("vim.o.directory, vim.o.swapfile, vim.o.updatecount = ...", str(editor.folder), True, 200)
    editor.lua(SWAPPED)
    closed(editor, OTHER)
    listed(editor)
    editor.keys("a")
    editor.says("other.py has a swap file")
    assert editor.lua("return vim.fn.bufloaded('other.py')") == 0
    assert (editor.folder / "other.py").read_text(encoding="utf-8") == "aera\n"
    assert not editor.waits_for_enter


def test_modelines_of_a_file_wait_until_it_is_looked_at(editor):
    editor.command("set modeline")  # which is off for root
    closed(editor, OTHER, text="aera\n# vim: set shiftwidth=7:\n")
    listed(editor)
    editor.keys("a")
    reach(editor, MADE)
    assert lines(editor, "other.py") == "area\n# vim: set shiftwidth=7:"
    assert editor.lua("return vim.bo[vim.fn.bufnr('other.py')].shiftwidth") != 7
    editor.command("buffer other.py")
    assert editor.lua("return vim.bo.shiftwidth") == 7


def test_buffer_that_must_not_be_hidden_stays_in_its_window(editor):
    editor.open("aera\n", "other.py")
    editor.attached()
    offered(editor, OTHER)
    shows(editor, ["?", 0, "  → next edit: other.py:1 (<Tab>)"])
    editor.command("set nohidden")
    editor.keys("<Tab>")
    editor.until(lambda: editor.text == "aera", "the other file")
    assert editor.lua("return #vim.api.nvim_list_wins()") == 2


def test_another_server_that_renames_is_named(editor):
    code = """
        local function server(dispatchers)
          local closing = false
          return {
            request = function(method, _, callback)
              callback(nil, method == "initialize" and { capabilities = { renameProvider = true } } or vim.NIL)
              return true, 1
            end,
            notify = function() return true end,
            is_closing = function() return closing end,
            terminate = function() closing = true; dispatchers.on_exit(0, 0) end,
          }
        end
        vim.api.nvim_create_autocmd("FileType", {
          callback = function() vim.lsp.start({ name = "pyright", cmd = server }) end,
        })
    """
    editor.lua(code)
    offered(editor, FIRST)
    assert told(editor, "mercury/nextEdit")["context"]["renameProvider"] == "pyright"


def test_offer_on_screen_does_not_keep_newer_one_away(editor):
    editor.open("aera\n", "other.py")
    editor.attached()
    offered(editor, OTHER)
    shows(editor, ["?", 0, "  → next edit: other.py:1 (<Tab>)"])
    answer(editor, SECOND, id="two")
    editor.keys("x")
    shows(editor, ["-", 4, "aera"], ["+", 4, "area"], below(5))


def test_server_hears_what_was_shown(editor):
    offered(editor, FIRST)
    assert told(editor, "textDocument/didShowInlineEdit")["item"]["command"]["arguments"] == ["one"]
    editor.keys("jk")
    shows(editor, ["-", 1, "hight"], ["+", 1, "height"])
    assert len(journal(editor, "textDocument/didShowInlineEdit")) == 1


def test_why_tells_of_the_offer(editor):
    replies = {"mercury/why": {"reason": "nothing was typed", "nextEdit": "on offer"}}
    (editor.folder / "replies.json").write_text(json.dumps(replies), encoding="utf-8")
    offered(editor, FIRST, summary="1 here")
    shows(editor, ["-", 1, "hight"], ["+", 1, "height"])
    editor.command("Mercury why")
    assert editor.page == "next edit: rename (1 here)"


def test_text_that_is_long_keeps_the_note_on_the_screen(editor):
    editor.rpc("nvim_ui_try_resize", 80, 12)
    text = "#" * 70 + "\n" * 40 + "aera()\n"
    offered(editor, edit(40, 0, 4, "area"), text=text)
    shows(editor, ["-", 40, "aera"], ["+", 40, "area"], ["+", 0, "  ↓ next edit: line 41 (<Tab>)"])
