"""The README's moving picture, recorded from a real Neovim: `python -m tests.editors.nvim.picture` renews it.

Server, model and settings are those that ship. The scene is the demo's, chosen because the model does well in it.
"""

import argparse
import os
import subprocess
import tempfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path

from bench.demo import FILES, NEW_NAME, OLD_NAME, TYPED, accepts, last_line
from tests.e2e.environment import COMMAND, home, stop_engine
from tests.editors.film import Frame, draw, photograph
from tests.editors.models import SHIPPED, named
from tests.editors.nvim.neovim import PLUGIN
from tests.editors.patience import rest, until
from tests.editors.terminal import SECONDS, Terminal
from tests.editors.tools import found

OUT = Path(__file__).parents[3] / "docs/picture.svg"
ROWS, COLUMNS = 25, 80
BASKET_ROWS = 17
KEY, PAUSE, READ = 0.05, 0.16, 0.75
"""Seconds: after a letter, after any other key, and for reading."""

INIT = Path(__file__).with_name("picture.lua").read_text("utf-8")


class Recorder(Terminal):
    """A Neovim with both files in view; each screen is kept with the time for which it stood."""

    def __init__(self, program: Path, environment: dict[str, str], folder: Path):
        (folder / ".git").mkdir(parents=True)
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="utf-8")
        init = folder.parent / "init.lua"
        command = ", ".join(f'"{part}"' for part in [*COMMAND, "--stdio"])
        init.write_text(INIT.format(plugin=PLUGIN, command=command, rows=BASKET_ROWS), encoding="utf-8")
        socket = folder.parent / "nvim"
        started = [str(program), "--headless", "--listen", str(socket), "-u", str(init), "-i", "NONE", "basket.py"]
        variables = {**environment, "MERCURY_LOG_FILE": str(folder / "server.log")}
        self.server = subprocess.Popen(started, env=variables, cwd=folder)
        until(socket.exists, "Neovim to listen", seconds=SECONDS, pause=partial(rest, 0.02))
        super().__init__([str(program), "--server", str(socket), "--remote-ui"], environment, folder, ROWS, COLUMNS)
        self.frames: list[Frame] = []
        self.key = self.caption = ""

    def close(self) -> None:
        self.keys("\x1b:qall!\r")
        self.server.wait(SECONDS)
        super().close()

    def wait(self, seconds: float) -> None:
        """Record what happens in that time."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            began = time.monotonic()
            rows, cursor = photograph(self.screen), (self.screen.cursor.y, self.screen.cursor.x)
            self.read(min(left, 0.02))
            self.keep(rows, cursor, time.monotonic() - began)

    def keep(self, rows, cursor, seconds: float) -> None:
        frame = Frame(seconds, rows, cursor, "INSERT" in self.lines[-1], self.key, self.caption)
        last = self.frames[-1] if self.frames else None
        if last and last[1:] == frame[1:]:
            self.frames[-1] = last._replace(seconds=last.seconds + seconds)
        else:
            self.frames.append(frame)

    def press(self, keys: str, name: str = "", caption: str | None = None) -> None:
        self.key, self.caption = name, self.caption if caption is None else caption
        self.keys(keys)

    def write(self, text: str) -> None:
        """Types, and takes suggestions where they are what was going to be typed."""
        while text:
            ghost = self.ghost()
            if accepts(ghost, text):
                taken = ghost
                self.press("", "", "The grey text is suggested")
                self.wait(READ)
                self.press("\t", "Tab", "takes it")
                self.wait(READ / 2)
            else:
                taken = text[0]
                self.press("\r" if taken == "\n" else taken, "", "Typing a function")
                self.wait(KEY if taken.isalpha() else PAUSE)
            text = text[len(taken) :]

    def ghost(self) -> str:
        """What stands behind the cursor and below it, which is at the end of the file."""
        y, x = self.screen.cursor.y, self.screen.cursor.x
        behind = self.lines[y][x:]
        below = [line[4:] for line in self.lines[y + 1 : BASKET_ROWS]]
        return "\n".join([behind, *below]).rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=OUT)
    out = parser.parse_args().out
    program = found("neovim-0.12")
    if program is None:
        raise SystemExit("Neovim 0.12 is not here; `python -m tests.editors.tools neovim-0.12` brings it")
    with tempfile.TemporaryDirectory() as folder:
        variables = home(Path(folder), MERCURY_ENGINE_MODEL=named(SHIPPED), PYTHONPATH=os.getcwd())
        try:
            frames = record(program, variables, Path(folder) / "shop")
        finally:
            stop_engine(variables)
    out.write_text(draw(frames, "mercury-ls in Neovim"), encoding="utf-8")


def record(program: Path, variables: dict[str, str], folder: Path) -> list[Frame]:
    with closing(Recorder(program, variables, folder)) as editor:
        editor.ready()
        editor.press("\x0cGo")
        editor.until(lambda: "INSERT" in editor.lines[-1], "insert mode")
        editor.settle()
        write_function(editor)
        rename(editor)
        return editor.frames


def write_function(editor: Recorder) -> None:
    editor.caption = "Typing a function"
    editor.wait(READ)
    editor.write(TYPED)
    editor.wait(READ)
    assert last_line(TYPED) in "\n".join(editor.lines), editor.told()


def rename(editor: Recorder) -> None:
    editor.press("\x1bgg5G0w", "", "Renaming the class")
    editor.wait(READ)
    editor.press("ciw")
    editor.wait(READ / 2)
    for letter in NEW_NAME:
        editor.press(letter)
        editor.wait(KEY)
    editor.press("\x1b", "Esc")
    editor.wait(READ / 2)
    assert f"{OLD_NAME}{NEW_NAME}" in editor.lines[BASKET_ROWS + 1], editor.told()
    editor.press("", "", "The other uses, in both files, are offered as the next edit")
    editor.wait(3 * READ)
    editor.press("\t", "Tab", "goes to the nearest one")
    editor.wait(READ)
    editor.press("\t", "Tab", "makes all four edits")
    editor.wait(2.5 * READ)


if __name__ == "__main__":
    main()
