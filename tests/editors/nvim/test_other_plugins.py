"""Other completion plugins, as they are, against the HTTP port: MERCURY_LS_PLUGINS is a folder with checkouts of
llama.vim, minuet-ai.nvim and plenary.nvim, of which minuet is made."""

import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from mercury_engine.fake import FakeEngine
from mercury_ls.serve.access import Access
from tests.mercury_ls.web.listening import beside

FOLDER = os.environ.get("MERCURY_LS_PLUGINS", "")

pytestmark = [
    pytest.mark.editor,
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER, reason="MERCURY_LS_PLUGINS names no folder with other plugins"),
]

CODE = "import math\n\n\ndef area(radius):\n    pass\n\n\nprint(area(2))\n"
ANSWER = "return math.pi * radius**2"
TOKEN = "t" * 40

SHOWN = Path(__file__).with_name("shown.lua").read_text("utf-8")

MINUET = Path(__file__).with_name("minuet.lua").read_text("utf-8")


@pytest.fixture
def servers():
    """They outlive the editor, which waits for a key where one is gone."""
    with ExitStack() as stack:
        yield stack


def test_llama_vim_asks_at_the_start_of_a_blank_line(servers, bare):
    def begin(port):
        config = {"endpoint_fim": f"http://127.0.0.1:{port}/infill", "api_key": TOKEN, "show_info": 0}
        bare.lua("vim.g.llama_config = ...", config)
        use(bare, "llama.vim")

    check(servers, bare, begin, f"    {ANSWER}", "vt_fim")


def test_minuet_asks_where_the_cursor_is(servers, bare):
    def begin(port):
        use(bare, "plenary.nvim", "minuet-ai.nvim")
        bare.lua(MINUET, TOKEN, f"http://127.0.0.1:{port}/v1/completions")

    check(servers, bare, begin, ANSWER, "minuet.virtualtext")


def use(neovim, *plugins):
    for folder in (Path(FOLDER, name) for name in plugins):
        neovim.lua("vim.opt.runtimepath:prepend(...)", str(folder))
        for script in folder.glob("plugin/*"):
            neovim.command(f"source {script}")


def check(servers, neovim, begin, answer, namespace):
    """What the server answers is shown behind the cursor, and accepted with Tab."""
    engine = FakeEngine({"def area(radius):\n": answer})
    begin(servers.enter_context(beside(engine, access=Access(TOKEN))))
    neovim.open(CODE, "circle.py")
    neovim.keys("5GS")
    shown = partial(neovim.lua, SHOWN, namespace)
    neovim.until(lambda: shown().strip() == ANSWER, f"ghost text {ANSWER!r}, not {shown()!r}")
    neovim.keys("<Tab>")
    neovim.until(lambda: neovim.line == f"    {ANSWER}", "the line to be accepted")
