"""`:Mercury`, `:checkhealth mercury`, options, and two of our clients in one editor."""

import json
import re
import sys

import pytest

from tests.e2e.environment import COMMAND
from tests.editors.nvim.test_ghost import kill_server, reach, replaced, status, suggested
from tests.editors.nvim.test_next_edit import SERVER
from tests.editors.scenes import BLOCK, SHOP

pytestmark = [pytest.mark.editor, pytest.mark.slow, pytest.mark.any_model]

SUBCOMMANDS = [
    "accept",
    "dismiss",
    "install",
    "log",
    "next",
    "restart",
    "sample",
    "snooze",
    "stats",
    "status",
    "toggle",
    "why",
]
COMPLETED = [
    ("", SUBCOMMANDS),
    ("sn", ["snooze"]),
    ("snooze ", ["5", "30", "60", "0"]),
    ("next ", ["accept", "one", "preview", "undo"]),
]


@pytest.mark.parametrize(("typed", "offered"), COMPLETED)
def test_subcommands_are_completed(bare, typed, offered):
    assert bare.lua("return vim.fn.getcompletion(..., 'cmdline')", f"Mercury {typed}") == offered


@pytest.mark.parametrize("typed", ["stat", "next stat"])
def test_unknown_subcommand_is_named(bare, typed):
    bare.command(f"Mercury {typed}")
    bare.says("stat: no such command")


def test_languages_that_are_open_are_completed(bare):
    bare.open(SHOP.text)
    assert bare.lua("return vim.fn.getcompletion('Mercury toggle ', 'cmdline')") == ["python"]


@pytest.mark.parametrize("command", ["Mercury status", "Mercury"])
def test_status_tells_engine_and_decisions(served, command):
    served.start()
    suggested(served)
    served.command(command)
    served.press("<Esc>", "n")
    state = "ready · fake · copies what is already written · cpu" if served.copies else "ready · mercury · "
    assert state in served.page
    assert re.search(r"^\* python, inline: [1-9]\d* shown", served.page, re.MULTILINE), served.page


def test_status_has_the_newest_decision_first_and_needs_no_parser(bare):
    bare.lua("vim.treesitter.start = function() error('no parser') end; vim.cmd('filetype plugin on')")
    bare.start([sys.executable, SERVER, str(bare.folder)])
    bare.open("aera", "area.py")
    bare.attached()
    status = {"state": "ready", "version": "1", "documents": 1, "accepted": 0, "rejected": 0, "problems": []}
    replies = {"mercury/status": {**status, "decisions": ["older", "newer"]}}
    (bare.folder / "replies.json").write_text(json.dumps(replies), encoding="utf-8")
    bare.command("Mercury status")
    assert bare.page.endswith("* newer\n* older")
    assert not bare.waits_for_enter, bare.told()


@pytest.mark.parametrize("model", ["fake"], indirect=True)
def test_status_has_a_problem_that_was_told_once(served):
    (served.folder / ".mercury.toml").write_text("suggest.enabled = 'perhaps, if nobody minds'\n", encoding="utf-8")
    served.start()
    served.open(SHOP.text)
    served.ready()
    served.says(":Mercury status")
    served.command("Mercury status")
    assert served.page.count("perhaps, if nobody minds") == 1


def test_stats_shows_the_servers_page(served):
    served.start()
    suggested(served)
    served.press("<Esc>", "n")
    served.command("Mercury stats")
    assert " python " in served.page
    assert "|" not in served.page
    served.keys("q")
    reach(served, SHOP.before)


@pytest.mark.parametrize("language", ["", "python"])
def test_toggled_off_nothing_is_suggested_until_it_is_on_again(editor, language):
    shown = suggested(editor)
    editor.command(f"Mercury toggle {language}")
    editor.shows("")
    before = editor.asks()
    editor.type(shown[0])
    assert editor.asks() == before
    assert editor.lua("return require('mercury').status()") == "mercury: off"
    editor.command("Mercury toggle lua")
    editor.command(f"Mercury toggle {language}")
    editor.type(shown[1])
    # An offer may grow.
    assert editor.suggestion().startswith(shown[2:])


def test_why_and_status_tell_that_it_was_toggled_off(served):
    served.start()
    served.open(SHOP.text)
    served.ready()
    served.command("Mercury toggle python")
    served.command("Mercury why")
    assert "suggestions are off for python; `:Mercury toggle python` turns them on" in served.page
    served.keys("q")
    served.command("Mercury status")
    assert "suggestions are off for python" in served.page


def test_sample_file_is_never_written(served):
    served.start()
    served.command("Mercury sample")
    served.ready()
    served.until(lambda: served.mode == "i", "insert mode")
    served.type(" ")
    served.suggestion()
    served.press("<Esc>", "n")
    served.command("write")
    assert served.lua("return { vim.bo.modified, vim.fn.filereadable(vim.fn.expand('%')) }") == [False, 0]
    served.command("quit")
    assert served.lua("return #vim.api.nvim_list_tabpages()") == 1


def test_sample_takes_the_place_of_the_one_before(bare, tmp_path):
    bare.lua("local folder = ... vim.fn.stdpath = function() return folder end", f"{tmp_path}/[st] {{a,b}}")
    bare.command("Mercury sample")
    bare.command("Mercury sample")
    names = bare.lua("return vim.tbl_map(vim.api.nvim_buf_get_name, vim.api.nvim_list_bufs())")
    assert sum(name.endswith("sample.py") for name in names) == 1


def test_why_is_asked_where_insert_mode_was_left(served):
    served.start()
    suggested(served)
    served.press("<Esc>", "n")
    served.command("Mercury why")
    assert "inline: a suggestion is ready here" in served.page


def test_why_tells_the_reason(served):
    served.start()
    served.open("# nothing here\n")
    served.ready()
    served.keys("$")
    served.command("Mercury why")
    (reason,) = served.page.splitlines()
    assert reason.startswith("next edit: ")
    served.keys("q")
    served.press("i", "i")
    served.keys("<Cmd>Mercury why<CR>")
    assert served.page.startswith("inline: the cursor is inside a word")


def test_why_takes_nobody_back_who_has_moved_on(bare, tmp_path):
    replies = {"mercury/why": {"reason": "late", "nextEdit": "no rule knows what follows", "model": ""}}
    (tmp_path / "replies.json").write_text(json.dumps(replies), encoding="utf-8")
    bare.start([sys.executable, SERVER, str(tmp_path)])
    bare.open("one\ntwo\n")
    bare.attached()
    bare.keys("gg0")
    bare.lua("vim.cmd('Mercury why') vim.api.nvim_win_set_cursor(0, { 2, 1 })")
    bare.says("next edit: no rule knows what follows")
    assert bare.lua("return #vim.api.nvim_list_wins()") == 1


def test_without_a_server_commands_say_so(bare):
    bare.command("Mercury why")
    bare.says("no server in this buffer; see :checkhealth mercury")


def test_accept_as_a_command(served):
    served.start()
    shown = suggested(served)
    served.keys("<Cmd>Mercury accept<CR>")
    reach(served, SHOP.before + shown)


def test_dismiss_as_a_command(served):
    served.start()
    suggested(served)
    served.keys("<Cmd>Mercury dismiss<CR>")
    served.shows("")
    assert served.text == SHOP.before


def test_restart_starts_another_server(served):
    served.start()
    suggested(served)
    served.press("<Esc>", "n")
    replaced(served, lambda: served.command("Mercury restart"))
    served.press("A", "i")
    served.suggestion()


def test_restart_starts_a_server_that_died(bare):
    bare.start([sys.executable, SERVER, str(bare.folder)], restart=False)
    bare.open("aera", "area.py")
    bare.attached()
    kill_server(bare)
    bare.says("run `:Mercury restart`")
    bare.command("Mercury restart")
    bare.attached()


def test_server_that_keeps_dying_is_left_alone(bare):
    bare.start(["false"])
    bare.open(SHOP.text)
    bare.says("keeps dying")


def test_log_opens_the_log(served):
    served.start()
    served.open(SHOP.text)
    served.attached()
    served.command("Mercury log")
    assert served.lua("return vim.fn.expand('%:t')") == "lsp.log"


def test_health_finds_program_engine_and_clients(served):
    served.start()
    served.open(SHOP.text)
    served.ready()
    served.command("checkhealth mercury")
    report = served.text
    assert "mercury: ready, 1 buffer" in report
    assert "ghost text: drawn by this plugin, requested 25 ms after a key" in report
    assert "keys = false" in report
    assert "ERROR" not in report


def test_health_finds_nothing_wrong_before_a_file_is_open(bare):
    check = "checkhealth mercury"
    bare.command(check)
    assert "WARNING no server is running" in bare.text
    bare.lua("vim.lsp.config('mercury', { cmd = ... }); vim.lsp.enable('mercury')", ["sleep", "9"])
    bare.command(check)
    assert "no server is running yet: it starts with the first file" in bare.text
    assert "WARNING no server is running" not in bare.text


def test_health_says_what_to_do_without_the_program(bare):
    (bare.folder / ".venv/bin").mkdir(parents=True)
    (bare.folder / ".venv/bin/no-such-program").touch(0o700)
    bare.start(["no-such-program", "--stdio"])
    bare.says("no-such-program is not found; see :checkhealth mercury")
    bare.command("checkhealth mercury")
    assert "searched $PATH" in bare.text
    assert f"this one exists, and can be named: {bare.folder}/.venv/bin/no-such-program" in bare.text
    assert "no-such-program is not found" in bare.text
    assert "run `:Mercury install`, or in a clone `pip install . ./models/quicksilver`" in bare.text


def test_wrong_options_are_told_and_the_others_apply(bare):
    bare.lua("require('mercury').setup({ servers = {}, ghots = 'own', ghost = 'both', debounce_ms = 7 })")
    bare.says("… :Mercury status")
    bare.command("Mercury status")
    assert '* option ghots = "own": unknown; the options are debounce_ms, ghost,' in bare.page
    assert '* option ghost = "both": must be one of auto, native, own, off' in bare.page
    assert bare.lua("return require('mercury.options').current.debounce_ms") == 7


def test_plugin_draws_unless_neovim_does_everywhere(bare):
    face = "return require('mercury.client').chosen_face()"
    assert bare.lua(face) == "own"
    if bare.lua("return vim.lsp.inline_completion ~= nil"):
        bare.lua("vim.lsp.inline_completion.enable()")
        assert bare.lua(face) == "native"


def test_ghost_text_can_be_off(served):
    served.start(ghost="off")
    served.open(SHOP.text)
    served.ready()
    served.keys("G")
    served.press("A", "i")
    served.type(SHOP.typed)
    assert served.asks() == 0


def test_without_setup_the_servers_configuration_is_enough(served):
    served.lua("vim.lsp.config('mercury', { cmd = ... }); vim.lsp.enable('mercury')", [*COMMAND, "--stdio"])
    suggested(served)


def test_two_of_our_clients_never_suggest_twice(editor):
    editor.start(name="mercury-copilot", ghost=editor.face)
    editor.lua("if vim.lsp.inline_completion then vim.lsp.inline_completion.enable() end")
    editor.open(BLOCK.text)
    editor.attached("mercury-copilot")
    shown = suggested(editor)
    assert len(editor.ghosts) == 1
    editor.lua("vim.keymap.set('i', '<C-l>', '<Plug>(mercury-accept)')")
    editor.keys("<C-l>")
    reach(editor, SHOP.before + shown)
    editor.until(lambda: status(editor, "mercury")["accepted"] == 1, "the server to count it")
    assert status(editor, "mercury-copilot")["decisions"] == []


def test_copilot_client_alone_has_ghost_text(served):
    served.start(name="mercury-copilot")
    served.open(SHOP.text)
    served.attached("mercury-copilot")
    served.keys("G")
    served.press("A", "i")
    served.until(lambda: served.lua("return require('mercury').status_info().state") == "ready", "the engine")
    served.type(SHOP.typed)
    served.suggestion()
