"""Two plugins in one editor never suggest twice: ours beside sidekick's client, ghost text beside the ordinary menu."""

import pytest

from tests.editors.nvim.test_ghost import REST, SHOP, TYPED, suggested
from tests.editors.nvim.test_next_edit import SCREEN, SHAPES

pytestmark = [pytest.mark.editor, pytest.mark.slow]

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


def test_a_next_edit_goes_to_sidekick_alone(bare):
    both(bare)
    bare.open(SHAPES)
    bare.attached("mercury-copilot")
    bare.ready()
    bare.keys("1G4lcwsurface<Esc>")
    bare.until(lambda: bare.line.startswith("def surface("), "the rename")
    edits = bare.until(lambda: bare.lua(ASK), "sidekick's edits")
    assert {edit["text"] for edit in edits} == {"surface"}
    bare.asks()
    assert bare.lua(SCREEN) == []


def test_neither_of_our_clients_is_in_the_menu_beside_ghost_text(bare):
    both(bare, ghost="own")
    bare.open(SHOP)
    bare.attached("mercury-copilot")
    suggested(bare)
    menu = "return #vim.lsp.get_clients({ bufnr = 0, method = 'textDocument/completion' })"
    assert bare.lua(menu) == 0


def test_what_the_menu_is_told_to_offer_is_not_painted_beside_it(bare):
    """Whoever wants suggestions in the menu as well gets them there, and the ghost text waits until it is closed."""
    bare.lua("vim.lsp.config('mercury', { init_options = { suggest = { completion_fallback = 'on' } } })")
    bare.start(ghost="own")
    suggested(bare)
    bare.lua("vim.bo.omnifunc = 'v:lua.vim.lsp.omnifunc'; vim.o.completeopt = 'menu,menuone,noselect'")
    bare.keys("<C-x><C-o>")
    bare.until(lambda: bare.lua("return vim.fn.pumvisible()"), "the menu")
    bare.shows("")
    offered = [item["abbr"] for item in bare.lua("return vim.fn.complete_info({ 'items' }).items")]
    assert offered == [(TYPED + REST).removeprefix("return sum(")]
