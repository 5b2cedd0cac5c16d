"""What a real Neovim 0.12 says while somebody types: `python -m tests.editors.nvim.wire` records it for the replay.

The editor is bare: Neovim's own client and inline completion, set up as Neovim's help says, without our plugin.
A second recording is of our plugin's own ghost text in the same editor. With `--sidekick CLONE` the only recording is
of sidekick.nvim in the bare editor, as it lies in that clone.
"""

import argparse
import json
import os
import random
import select
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tests.e2e.environment import COMMAND, home, stop_engine
from tests.editors.nvim.neovim import Neovim
from tests.editors.tools import found

SetUp = Callable[[Neovim, list[str]], None]

WIRE = Path(__file__).parents[3] / "bench/wire"
TEE = str(Path(__file__).with_name("tee.py"))

TEXT = """\
class Item:
    def __init__(self, name, price, quantity):
        self.name = name
        self.price = price
        self.quantity = quantity


def total(items):
    return sum(item.price * item.quantity for item in items)


def cheapest(items):
    return min(items, key=lambda item: item.price)
"""

KEYS = [
    *("Go", "<CR>", "<CR>"),
    *"def dearest(items):",
    "<CR>",
    *"    return max(items, key",
    "PAUSE",
    "ACCEPT",
    "PAUSE",
    "<CR>",
    *("<CR>", "<CR>", "<BS>"),
    *"def cuonr",
    *("<BS>", "<BS>", "<BS>", "<BS>"),
    *"ount(items):",
    "<CR>",
    *"    return sum(it",
    "PAUSE",
    *"em.quan",
    "<Esc>",
    "PAUSE",
    "A",
    *"tity for item",
    "PAUSE",
    "ACCEPT",
    "PAUSE",
    "<Esc>",
    *("gg", "4j", "A"),
    *"  # pieces",
    "LEAVE",
]
"""With a mistake that is taken back, a leave inside a word, pauses to look, two accepts, a leave before an answer."""

SIDEKICK_KEYS = [
    *("Go", "<CR>", "<CR>"),
    *"def dearest(items):",
    "<CR>",
    *"    return max(items)",
    "<Esc>",
    "PAUSE",
    *("F(", "x", "x", "x", "u", "PAUSE"),
    *("A", "#", " ", *"the most", "<Esc>", "o", *"    pass", "PAUSE", "<Esc>", "PAUSE"),
    *("dd", "x", "PAUSE", "o", *"the", "<Esc>", "PAUSE", "u", "u", "PAUSE"),
]
"""Insert mode is left and come back to, with and without a pause to look, and something is done in normal mode."""

MEDIAN_GAP, PAUSE, ASKED, STARTING = 0.113, 1.2, 0.2, 4.0
WAITS, NEAR = (0.05, 0.1, 0.2, 0.4), 0.022
TELL_KEYS = """
vim.on_key(function(_, typed)
  local client = vim.lsp.get_clients({ bufnr = 0 })[1]
  if client and typed ~= "" then
    client.rpc.notify("$/key", { key = vim.fn.keytrans(typed), mode = vim.api.nvim_get_mode().mode })
  end
end)
"""

SLOW_MS = 300
"""How long the bare editor waits for answers, so that some are under way when the next key comes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=WIRE)
    parser.add_argument("--sidekick", type=Path, metavar="CLONE")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.sidekick:
        record(given.folder / "sidekick.jsonl", partial(sidekick, given.sidekick.resolve()), SIDEKICK_KEYS)
        return
    record(given.folder / "neovim-0.12.jsonl", bare, KEYS, "vim.lsp.inline_completion.get()")
    record(given.folder / "neovim-0.12-plugin.jsonl", plugin, KEYS, "require('mercury').accept()")


def record(path: Path, set_up: SetUp, keys: Sequence[str], accept: str = "") -> None:
    program = found("neovim-0.12")
    if program is None:
        raise SystemExit("Neovim 0.12 is not here; `python -m tests.editors.tools` brings it")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        project = root / "project"
        project.mkdir()
        variables = home(root, PYTHONPATH=os.getcwd())
        editor = Neovim(program, variables, project)
        try:
            set_up(editor, [sys.executable, TEE, str(root / "wire.jsonl"), *COMMAND, "--stdio"])
            editor.open(TEXT)
            editor.until(lambda: editor.lua("return #vim.lsp.get_clients({ bufnr = 0 })"), "the server to attach")
            wait(STARTING)
            perform(editor, keys, accept)
        finally:
            editor.close()
            stop_engine(variables)
        path.write_text(portable(root / "wire.jsonl", root), encoding="utf-8")


def bare(editor: Neovim, command: list[str]) -> None:
    editor.lua("vim.opt.runtimepath:remove(...)", str(Path(__file__).parents[3] / "editors/nvim"))
    config = {"cmd": command, "root_markers": [".git"], "init_options": {"suggest": {"delay_ms": SLOW_MS}}}
    editor.lua("vim.lsp.config('mercury', ...)", config)
    editor.lua("vim.lsp.enable('mercury'); vim.lsp.inline_completion.enable(true)")
    editor.command("autocmd! mercury")


def plugin(editor: Neovim, command: list[str]) -> None:
    editor.start(command, ghost="own")


def sidekick(clone: Path, editor: Neovim, command: list[str]) -> None:
    """Our server as its Copilot, ghost text by the editor itself. Each key is written into the conversation as well,
    past the client, which would send changes early for it: only from keys can be told when insert mode was left."""
    editor.lua("vim.opt.runtimepath:prepend(...)", str(clone))
    editor.lua("require('sidekick').setup({})")
    config = {"cmd": command, "root_markers": [".git"], "init_options": {"suggest": {"delay_ms": SLOW_MS}}}
    editor.lua("vim.lsp.config('mercury-copilot', ...)", config)
    editor.lua("vim.lsp.enable('mercury-copilot'); vim.lsp.inline_completion.enable(true)")
    editor.command("autocmd! mercury")
    editor.lua(TELL_KEYS)


def perform(editor: Neovim, keys: Sequence[str], accept: str) -> None:
    """The same rhythm every time: gaps as people have them, most of them short."""
    chance = random.Random(12)
    for key in keys:
        if key == "PAUSE":
            wait(PAUSE)
        elif key == "LEAVE":
            wait(ASKED)
            editor.keys("<Esc>")
        elif key == "ACCEPT":
            editor.keys(f"<Cmd>lua {accept}<CR>")
        else:
            editor.keys("<lt>" if key == "<" else key)
        wait(gap(chance))
    wait(PAUSE)


def gap(chance: random.Random, near: float = NEAR) -> float:
    """As long as people's are, most of them short; never so near to what an editor waits that chance decides."""
    while True:
        seconds = min(0.8, MEDIAN_GAP * chance.lognormvariate(0, 0.7))
        if all(abs(seconds - each) > near for each in WAITS):
            return seconds


def wait(seconds: float) -> None:
    select.select([], [], [], seconds)


def portable(journal: Path, root: Path) -> str:
    """The recording without this machine's folders and process ids."""
    lines = []
    for line in journal.read_text(encoding="utf-8").replace(str(root), "").splitlines():
        entry = json.loads(line)
        if entry["message"].get("method") == "initialize":
            entry["message"]["params"]["processId"] = None
        lines.append(json.dumps(entry, ensure_ascii=False, separators=(",", ":")))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
