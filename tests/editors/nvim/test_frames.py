"""What a terminal shows beside a strong model: answers of several lines grow, and nothing flickers."""

import subprocess
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from bench.oracle.server import Options, serving
from tests.e2e.environment import COMMAND
from tests.editors.nvim.neovim import PLUGIN
from tests.editors.oracle import BEGUN, FIRST_MS, WHOLE, added, contradicts, running
from tests.editors.patience import rest, until
from tests.editors.terminal import SECONDS, Terminal

pytestmark = [pytest.mark.editor, pytest.mark.slow]

ROWS = 25
INIT = Path(__file__).with_name("frames.lua").read_text("utf-8")
KEY_SECONDS = 0.11


class Watched(Terminal):
    """A Neovim on one file; `screens` has each text that its window has shown."""

    def __init__(self, program: Path, environment: dict[str, str], folder: Path, text: str, name: str = "basket.py"):
        (folder / ".git").mkdir(parents=True)
        (folder / name).write_text(text, encoding="utf-8")
        init = folder.parent / "init.lua"
        command = ", ".join(f'"{part}"' for part in [*COMMAND, "--stdio"])
        init.write_text(INIT.format(plugin=PLUGIN, command=command), encoding="utf-8")
        self.screens: list[str] = []
        socket = folder.parent / "nvim"
        started = [str(program), "--headless", "--listen", str(socket), "-u", str(init), "-i", "NONE", name]
        self.server = subprocess.Popen(
            started, env={**environment, "MERCURY_LOG_FILE": str(folder / "server.log")}, cwd=folder
        )
        until(socket.exists, "Neovim to listen", seconds=SECONDS, pause=partial(rest, 0.02))
        super().__init__([str(program), "--server", str(socket), "--remote-ui"], environment, folder, ROWS)

    def close(self) -> None:
        self.keys("\x1b:qall!\r")
        self.server.wait(SECONDS)
        super().close()

    @property
    def shown(self) -> str:
        return "\n".join(self.lines[: ROWS - 1]).rstrip()

    def read(self, seconds: float) -> bool:
        has_read = super().read(seconds)
        if has_read and (not self.screens or self.screens[-1] != self.shown):
            self.screens.append(self.shown)
        return has_read


def write(editor: Watched, text: str, begun: str = "") -> int:
    """Types as a person does, and takes with one key what has several lines and does not grow any more; how many keys
    it took."""
    written, keys = BEGUN + begun, 0
    while written.rstrip() != text.rstrip():
        editor.until(lambda written=written: editor.shown.startswith(written.rstrip()), f"{written!r}")
        ahead = editor.shown.removeprefix(written.rstrip())
        if ahead.count("\n") > 1 and not written[-1].isspace():  # behind blanks, Tab indents
            editor.settle()
            taken = editor.shown
            editor.keys("\t")
            editor.read_for(KEY_SECONDS)
            written = taken
        else:
            character = text[len(written)]
            editor.keys("\r" if character == "\n" else character)
            editor.read_for(KEY_SECONDS)
            written += character
        keys += 1
    return keys


def test_suggestion_grows_and_never_flickers(program, tmp_path):
    options = Options(first_ms=FIRST_MS)
    (house := tmp_path / "h").mkdir()
    with (
        running(serving([WHOLE], options)) as oracle,
        added(house, oracle.address) as (variables, _),
        closing(Watched(program, variables, tmp_path / "project", BEGUN)) as editor,
    ):
        editor.ready()
        editor.keys("\x0cGo")
        editor.until(lambda: "INSERT" in editor.lines[-1], "insert mode")
        editor.screens.clear()
        keys = write(editor, WHOLE)
        screens = [*editor.screens]
        editor.keys("\x1b:write\r")
        editor.until(lambda: (editor.folder / "basket.py").read_text().rstrip() == WHOLE.rstrip(), "the file")
        assert contradicts(screens) == ""
        assert keys < (len(WHOLE) - len(BEGUN)) / 4
