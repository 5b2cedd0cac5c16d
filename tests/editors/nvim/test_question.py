"""A question of the server waits until the user answers it: from the offer of a model to its use."""

import os
import sys
from contextlib import closing

import pytest

from bench.harness.stand_in_hub import StandIn, serving
from bench.harness.tiny import checkpoint
from tests.e2e.environment import home, stop_engine
from tests.editors.nvim.neovim import Neovim
from tests.editors.scenes import SHOP
from tests.mercury_ls.models import stand_in_machine

pytestmark = [pytest.mark.editor, pytest.mark.slow]

CHOOSE = """
vim.ui.select = function(items, options, choose)
  _G.put = { options.prompt, vim.tbl_map(options.format_item, items) }
  choose(items[...])
end
"""


def test_stronger_model_is_offered_installed_and_used(program, tmp_path):
    made = checkpoint(tmp_path / "made")
    files = {path.name: path.read_bytes() for path in made.iterdir()}
    (house := tmp_path / "h").mkdir()
    with serving(StandIn(files, "org/Tiny-Coder")) as hub:
        variables = home(
            house, HF_ENDPOINT=hub.address, PYTHONPATH=os.getcwd(), MERCURY_SUGGEST_MINIMUM_PROBABILITY="0"
        )
        del variables["MERCURY_ENGINE_MODEL"]
        with closing(Neovim(program, variables, tmp_path)) as editor:
            try:
                follow(editor, hub)
            finally:
                stop_engine(variables)


def follow(editor, hub):
    editor.start([sys.executable, stand_in_machine.__file__, "--stdio"])
    editor.open(SHOP.before)
    editor.ready()
    editor.keys("GA")
    editor.until(lambda: editor.ghost, "a suggestion")
    editor.keys(" ")
    editor.says(":Mercury answer – this machine can run a stronger model")
    assert not hub.asked
    assert editor.mode == "i"
    editor.press("<Esc>", "n")
    editor.lua(CHOOSE.replace("items[...]", "items[1]"))
    editor.command("Mercury answer")
    editor.says("org/Tiny-Coder suggests from now on")
    prompt, titles = editor.lua("return _G.put")
    assert "licence Apache-2.0" in prompt
    assert titles == ["Install", "Not now", "Never"]
    info = "return require('mercury').status_info()"
    editor.until(lambda: editor.lua(info)["state"] == "ready" and editor.lua(info)["model"] == "tiny-coder", "it")
    editor.command("Mercury answer")
    editor.says("there is no question")
