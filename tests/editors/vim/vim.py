"""A real Vim with coc.nvim that is typed into, configured as its README says."""

import os
import re
import signal
from pathlib import Path

from mercury_ls.editor import NAMED
from tests.editors.documented import EDITORS, blocks
from tests.editors.terminal import SECONDS, Terminal, children

BESIDES = """\
filetype on
set nocompatible noswapfile autoindent shiftwidth=4 expandtab laststatus=0
let g:coc_node_path = "{node}"
let g:coc_config_home = "{folder}"
let g:coc_data_home = "{folder}/data"
set runtimepath+={coc}
"""
"""What a plugin manager and a user's own settings do."""


class Vim(Terminal):
    def __init__(
        self,
        program: Path,
        node: Path,
        environment: dict[str, str],
        folder: Path,
        text: str,
        extension: Path = EDITORS / "vim",
    ):
        (folder / ".git").mkdir()
        (folder / "data").mkdir()
        self.path = folder / "shop.py"
        self.path.write_text(text, encoding="utf-8")
        (page,) = blocks("vim", "vim")
        besides = BESIDES.format(node=node, folder=folder, coc=program.with_name("coc.nvim"))
        (folder / "vimrc").write_text(besides + page.replace(f"{NAMED}/vim", str(extension)), encoding="utf-8")
        self.questions = 0
        super().__init__([str(program), "-u", str(folder / "vimrc"), self.path.name], environment, folder)
        self.ready()

    @property
    def line(self) -> str:
        """The cursor's line as it is painted, ghost text and all, but not which of how many suggestions it is."""
        return re.sub(r" \(\d/\d\)$", "", self.lines[self.screen.cursor.y])

    def insert(self) -> None:
        """At the end of the file."""
        self.keys("GA")
        self.until(lambda: "INSERT" in self.lines[-1], "insert mode")

    def type(self, text: str) -> None:
        """One key at a time; what is painted behind the cursor moves that of the terminal too, for a moment."""
        start = self.screen.cursor.x
        for place, character in enumerate(text, start + 1):
            self.keys(character)
            self.until(lambda place=place: self.screen.cursor.x == place, f"{character!r} to arrive")

    def suggested(self) -> str:
        """The cursor's line with ghost text behind the cursor, once the screen is at rest."""
        silent = f"ghost text; the model stayed silent at {self.line!r}"
        self.until(lambda: len(self.line) > self.screen.cursor.x, silent)
        self.settle()
        return self.line

    def shows(self, text: str) -> None:
        """The whole file, and nothing beside it."""
        wanted = text.splitlines()
        self.until(lambda: self.lines[: len(wanted)] == wanted, f"the text\n{text}")

    def offers_an_edit(self) -> bool:
        """One that is not shown yet: the next <Tab> jumps to it."""
        self.questions += 1
        told = f"{self.questions}. state"
        self.command(f"echo '{told}' get(b:, 'coc_next_edit_state')")
        self.until(lambda: self.lines[-1].startswith(told), "an answer")
        return self.lines[-1] == f"{told} 1"

    def kill_server(self) -> None:
        """A grandchild: coc.nvim's own process has started it."""
        (node,) = self.children()
        (server,) = children(node)
        os.kill(server, signal.SIGKILL)

    def close(self) -> None:
        """A Vim that is killed would leave coc.nvim's process and the server behind."""
        try:
            self.command("qall!")
            self.process.wait(SECONDS)
        finally:
            super().close()

    def command(self, command: str) -> None:
        self.keys(f"\x1b:{command}\r")

    def saved(self) -> str:
        self.command("write")
        self.until(lambda: "written" in self.lines[-1], "the file to be written")
        return self.path.read_text(encoding="utf-8")
