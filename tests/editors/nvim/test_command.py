"""`:Mercury`, `:checkhealth mercury`, options, and two of our clients in one editor."""

import pytest

from tests.e2e.environment import COMMAND
from tests.editors.nvim.test_ghost import reach, replaced, status, suggested
from tests.editors.scenes import BLOCK, SHOP

pytestmark = [pytest.mark.editor, pytest.mark.slow]

SUBCOMMANDS = ["accept", "dismiss", "log", "restart", "snooze", "status", "why"]


@pytest.mark.parametrize(
    ("typed", "offered"), [("", SUBCOMMANDS), ("s", ["snooze", "status"]), ("snooze ", ["5", "30", "60", "0"])]
)
def test_subcommands_are_completed(bare, typed, offered):
    assert bare.lua("return vim.fn.getcompletion(..., 'cmdline')", f"Mercury {typed}") == offered


def test_an_unknown_subcommand_names_the_known(bare):
    bare.command("Mercury stats")
    bare.says("stats: the commands are accept, dismiss, log, restart, snooze, status, why")


def test_status_tells_engine_and_decisions(served):
    served.start()
    suggested(served)
    served.command("Mercury status")
    served.says("ready · fake · copies what is already written · cpu" if served.copies else "ready · mercury · ")
    served.says("1 shown")


def test_why_tells_the_reason(served):
    served.start()
    served.open("# nothing here\n")
    served.ready()
    served.keys("$")
    served.command("Mercury why")
    served.says("the cursor is inside a word")


def test_without_a_server_commands_say_so(bare):
    bare.command("Mercury status")
    bare.says("no server is attached to this buffer")


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


def test_a_server_that_keeps_dying_is_left_alone(bare):
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
    assert "mercury: ready, 1 buffers" in report
    assert "ERROR" not in report


def test_health_says_what_to_do_without_the_program(bare):
    bare.start(["no-such-program", "--stdio"])
    bare.command("checkhealth mercury")
    assert "no-such-program is not found" in bare.text
    assert "uv tool install mercury-ls" in bare.text


def test_wrong_options_are_told_and_the_others_apply(bare):
    bare.lua("require('mercury').setup({ servers = {}, ghots = 'own', ghost = 'both', debounce_ms = 7 })")
    bare.says('option ghots = "own": unknown; the options are debounce_ms, ghost,')
    bare.says('option ghost = "both": must be one of auto, native, own, off')
    assert bare.lua("return require('mercury.options').current.debounce_ms") == 7


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


def test_the_copilot_client_alone_has_ghost_text(served):
    served.start(name="mercury-copilot")
    served.open(SHOP.text)
    served.attached("mercury-copilot")
    served.keys("G")
    served.press("A", "i")
    served.until(lambda: served.lua("return require('mercury').status_info().state") == "ready", "the engine")
    served.type(SHOP.typed)
    served.suggestion()
