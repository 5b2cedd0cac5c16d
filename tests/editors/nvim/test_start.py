"""From nothing to the first suggestion: what the README says, in editors that have no more than that."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.editors.documented import blocks
from tests.editors.nvim.neovim import PLUGIN, Neovim
from tests.editors.nvim.test_ghost import reach, suggested
from tests.editors.scenes import SHOP

pytestmark = [pytest.mark.editor, pytest.mark.slow]

INIT, SPEC = (block.replace("/path/to/mercury-ls/editors/nvim", str(PLUGIN)) for block in blocks("nvim", "lua"))

LAZY = """
local spec = %s
vim.opt.runtimepath:append(spec.dir)
require(spec.main).setup(spec.opts)
"""
"""What lazy.nvim does with a spec such as ours."""


@pytest.fixture(params=["init.lua", "lazy.nvim"])
def fresh(request, program, environment, tmp_path) -> Iterator[Neovim]:
    init = tmp_path / "init.lua"
    init.write_text(INIT if request.param == "init.lua" else LAZY % SPEC, encoding="utf-8")
    with closing(Neovim(program, environment, tmp_path, init)) as editor:
        yield editor


def test_steps_lead_to_suggestion_that_tab_takes(fresh):
    shown = suggested(fresh)
    fresh.keys("<Tab>")
    reach(fresh, SHOP.before + shown)
