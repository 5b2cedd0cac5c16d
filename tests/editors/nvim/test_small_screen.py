"""On a small screen nothing asks to press ENTER, and what does not fit is found on a page."""

import json
import sys

import pytest

from tests.editors.nvim.test_ghost import kill_server, replaced, suggested
from tests.editors.nvim.test_next_edit import SERVER
from tests.editors.scenes import SHOP

pytestmark = [pytest.mark.editor, pytest.mark.slow, pytest.mark.any_model]

LONG = 'mercury: the setting engine.model = "nowhere" names no model that is installed here\nremedy: leave it out'


@pytest.fixture
def small(served):
    served.rpc("nvim_ui_try_resize", 80, 12)
    served.lua("vim.o.cmdheight = 1")
    return served


def calm(editor) -> None:
    """Once every message of this moment has been given."""
    editor.asks()
    assert not editor.waits_for_enter, editor.told()


def test_commands_and_their_pages(small):
    small.start(keys=True)
    suggested(small)
    small.press("<Esc>", "n")
    for command in [
        "status",
        "stats",
        "why",
        "snooze 5",
        "snooze 0",
        "toggle",
        "toggle",
        "next",
        "next undo",
        "nonsense",
    ]:
        small.command(f"Mercury {command}")
        calm(small)
        small.keys("q<Esc>" if small.lua("return vim.api.nvim_win_get_config(0).relative") else "<Esc>")


def test_killed_server_asks_for_no_key_press(small):
    small.start()
    suggested(small)
    small.press("<Esc>", "n")
    replaced(small, lambda: kill_server(small))
    small.says("the server exited by signal 9: restarting it")
    calm(small)


def test_server_that_cannot_start_asks_for_no_key_press(small):
    small.start(["false"])
    small.open(SHOP.text)
    small.says("keeps dying")
    calm(small)


def test_several_wrong_options_and_no_program(small):
    small.start(["no-such-program"], ghots="own", ghost="both", debounce_ms="soon")
    small.open(SHOP.text)
    small.says("… :Mercury status")
    calm(small)


def test_long_message_of_server_is_shortened_and_kept(bare):
    bare.rpc("nvim_ui_try_resize", 80, 12)
    bare.start([sys.executable, SERVER, str(bare.folder)])
    bare.open("aera", "area.py")
    bare.attached()
    status = {"state": "ready", "version": "1", "documents": 1, "accepted": 0, "rejected": 0, "decisions": []}
    replies = {"mercury/status": {**status, "problems": []}}
    (bare.folder / "replies.json").write_text(json.dumps(replies), encoding="utf-8")
    bare.lua("vim.lsp.get_clients()[1].handlers['window/showMessage'](nil, { type = 2, message = ... })", LONG)
    bare.says("… :Mercury status")
    calm(bare)
    bare.command("Mercury status")
    assert LONG.removeprefix("mercury: ").replace("\n", " ") in bare.page
