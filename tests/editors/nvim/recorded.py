"""Sessions typed into a real Neovim 0.12 and recorded as users record theirs: `python -m tests.editors.nvim.recorded`.

Somebody adds to two files of this project, with slips that are taken back and pauses as they were measured.
"""

import argparse
import os
import random
import subprocess
import tempfile
from pathlib import Path

from msgspec.structs import replace

from bench.replay import typing_model
from bench.replay.session import Event, Header, Opened, RecordedSession, ended, read, write
from mercury_ls.code.edits import is_word
from tests.e2e.environment import COMMAND, home, stop_engine
from tests.editors.nvim.neovim import Neovim
from tests.editors.nvim.wire import wait
from tests.editors.tools import found

REPOSITORY = Path(__file__).parents[3]
SESSIONS = REPOSITORY / "bench/sessions"
LONGEST_PAUSE = 3.0

PYTHON = [
    *("Go", "<CR>", "<CR>"),
    *"def widths(lines: Sequence[str], encoding: Encoding) -> list[int]:",
    "<CR>",
    *'    """How many units each line has."""',
    "<CR>",
    *"    retrun",
    *("<BS>", "<BS>", "<BS>", "<BS>"),
    *"turn [units(line, len(line), encoding) for line in lines]",
    *("<CR>", "<CR>", "<CR>"),
    *"def widest(lines: Sequence[str], encoding: Encoding) -> int:",
    "<CR>",
    *"    return max(widths(lines, encoding), default=0)",
    "<Esc>",
    *("gg", "2j", "O"),
    *"from collections.abc import Sequence",
    "<CR>",
    "<Esc>",
    *("/__all__", "<CR>", "f]", "i"),
    *', "widest", "widhts"',
    *("<BS>", "<BS>", "<BS>", "<BS>"),
    *'ths"',
    "<Esc>",
    *(":w", "<CR>"),
]
LUA = [
    *("/function M.reason", "<CR>", "2k", "o"),
    "<CR>",
    *"-- Whether the cursor's line is too long to be worth a suggestion.",
    "<CR>",
    *"local function is_endless()",
    "<CR>",
    *"  return #vim.api.nvim_get_curent",
    *("<BS>", "<BS>", "<BS>"),
    *"rent_line() > 400",
    "<CR>",
    *"end",
    "<Esc>",
    *("/several_cursors(buf) then", "<CR>", "j", "o"),
    *"  elseif is_endless() then",
    "<CR>",
    *'    return "the line is too long"',
    "<Esc>",
    *(":w", "<CR>"),
]
TYPED = {
    "neovim-python": ("mercury_ls/code/positions.py", PYTHON),
    "neovim-lua": ("editors/nvim/lua/mercury/quiet.lua", LUA),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=SESSIONS)
    folder = parser.parse_args().folder
    for name, (path, keys) in TYPED.items():
        write(record(name, path, keys), folder / f"{name}.jsonl")


def record(name: str, path: str, keys: list[str]) -> RecordedSession:
    program = found("neovim-0.12")
    if program is None:
        raise SystemExit("Neovim 0.12 is not here; `python -m tests.editors.tools` brings it")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        project = root / "project"
        (project / path).parent.mkdir(parents=True)
        variables = home(root, PYTHONPATH=os.getcwd())
        subprocess.run([*COMMAND, "record", "on"], env=variables, check=True, capture_output=True)
        editor = Neovim(program, variables, project)
        try:
            editor.start(ghost="own")
            editor.open((REPOSITORY / path).read_text(encoding="utf-8"), path)
            editor.ready()
            editor.command("set noautoindent indentexpr= formatoptions=")
            perform(editor, keys)
        finally:
            editor.close()
            stop_engine(variables)
        (recording,) = root.rglob("session-*.jsonl")
        return portable(read(recording), name, project)


def perform(editor: Neovim, keys: list[str]) -> None:
    model, chance = typing_model.load(), random.Random(len(keys))
    for before, key in zip(["", *keys], keys, strict=False):
        milliseconds = typing_model.draw(model, kind_of(before, key), chance)
        wait(min(milliseconds / 1000, LONGEST_PAUSE))
        editor.keys("<lt>" if key == "<" else key)
    wait(LONGEST_PAUSE)


def kind_of(before: str, key: str) -> str:
    """The kind of a keystroke, which its pause depends on."""
    if key == "<BS>":
        return "backspace" if before == "<BS>" else "delete_first"
    if key == "<CR>":
        return "newline"
    if before == "<CR>":
        return "line_start"
    return "in_word" if all(len(each) == 1 and is_word(each) for each in (before, key)) else "boundary"


def portable(session: RecordedSession, name: str, project: Path) -> RecordedSession:
    """The recording without this machine's folders, its end made again for the shorter paths."""
    events = tuple(shortened(event, project) for event in session.events[:-1])
    header = Header(v=1, id=name, source="neovim-0.12", licence="Apache-2.0", pos="utf-8")
    return ended(header, events, name)


def shortened(event: Event, project: Path) -> Event:
    if not isinstance(event, Opened):
        return event
    return replace(event, path=Path(event.path).relative_to(project).as_posix())


if __name__ == "__main__":
    main()
