"""Two plugins in one editor never suggest twice: ours beside sidekick's client, ghost text beside the ordinary menu."""

import pytest

from tests.editors.nvim.test_ghost import suggested
from tests.editors.nvim.test_next_edit import SCREEN
from tests.editors.nvim.test_rename import rename
from tests.editors.scenes import SHAPES

pytestmark = [pytest.mark.editor, pytest.mark.slow, pytest.mark.any_model, pytest.mark.any_version]

ASK = """
local client = vim.lsp.get_clients({ bufnr = 0, name = "mercury-copilot" })[1]
local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
params.textDocument.version = vim.lsp.util.buf_versions[0 + vim.api.nvim_get_current_buf()]
params.context = { triggerKind = 2 }
return client:request_sync("textDocument/copilotInlineEdit", params, 20000).result.edits
"""


def both(editor, **options) -> None:
    editor.start(**options)
    editor.start(name="mercury-copilot", **options)


def test_next_edit_goes_to_sidekick_alone(served):
    both(served)
    served.open(SHAPES)
    served.attached("mercury-copilot")
    served.ready()
    rename(served)
    edits = served.until(lambda: served.lua(ASK), "sidekick's edits")
    assert {edit["text"] for edit in edits} == {"surface"}
    served.asks()
    assert served.lua(SCREEN) == []


def test_neither_of_our_clients_is_in_the_menu_beside_ghost_text(served):
    both(served, ghost="own")
    suggested(served)
    served.attached("mercury-copilot")
    menu = "return #vim.lsp.get_clients({ bufnr = 0, method = 'textDocument/completion' })"
    assert served.lua(menu) == 0


def test_suggestion_offered_by_the_menu_is_not_painted_beside_it(served):
    """Whoever wants suggestions in the menu as well gets them there, and the ghost text waits until it is closed."""
    served.lua("vim.lsp.config('mercury', { init_options = { suggest = { completion_fallback = 'on' } } })")
    served.start(ghost="own")
    shown = suggested(served)
    served.lua("vim.bo.omnifunc = 'v:lua.vim.lsp.omnifunc'; vim.o.completeopt = 'menu,menuone,noselect'")
    served.keys("<C-x><C-o>")
    served.until(lambda: served.lua("return vim.fn.pumvisible()"), "the menu")
    served.shows("")
    offered = [item["abbr"] for item in served.lua("return vim.fn.complete_info({ 'items' }).items")]
    assert offered == ["it" + shown]
