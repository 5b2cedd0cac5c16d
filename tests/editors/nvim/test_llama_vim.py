"""llama.vim, as it is, against the HTTP port: MERCURY_LS_LLAMA_VIM is a checkout of it."""

import os

import pytest

from mercury_engine.fake import FakeEngine
from mercury_ls.web.access import Access
from tests.mercury_ls.web.listening import beside

CHECKOUT = os.environ.get("MERCURY_LS_LLAMA_VIM", "")

pytestmark = [
    pytest.mark.editor,
    pytest.mark.slow,
    pytest.mark.skipif(not CHECKOUT, reason="MERCURY_LS_LLAMA_VIM names no checkout of llama.vim"),
]

SHOWN = """
local found = {}
for name, id in pairs(vim.api.nvim_get_namespaces()) do
  if name == "vt_fim" then
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, id, 0, -1, { details = true })) do
      local lines = { mark[4].virt_text }
      vim.list_extend(lines, mark[4].virt_lines or {})
      for _, chunks in ipairs(lines) do
        found[#found + 1] = table.concat(vim.tbl_map(function(chunk) return chunk[1] end, chunks))
      end
    end
  end
end
return table.concat(found, "\\n")
"""
ANSWER = "return math.pi * radius**2"


def test_it_shows_and_accepts_what_the_server_says(bare):
    # On a blank line it asks at the line's start, and expects the indentation in the answer.
    with beside(FakeEngine({"def area(radius):\n": f"    {ANSWER}"}), access=Access()) as port:
        config = {"endpoint_fim": f"http://127.0.0.1:{port}/infill", "show_info": 0}
        bare.lua("vim.g.llama_config = ...; vim.opt.runtimepath:prepend(select(2, ...))", config, CHECKOUT)
        bare.command("runtime plugin/llama.vim")
        bare.open("import math\n\n\ndef area(radius):\n    pass\n\n\nprint(area(2))\n", "circle.py")
        bare.keys("5GS")
        bare.until(lambda: bare.lua(SHOWN).strip() == ANSWER, f"ghost text {ANSWER!r}, not {bare.lua(SHOWN)!r}")
        bare.keys("<Tab>")
        bare.until(lambda: bare.line == f"    {ANSWER}", "the line to be accepted")
