"""Tries what a release holds in a real editor, with the server of its wheel.

`python -m tests.editors.tried EDITOR ARTEFACT PROGRAMS`: the artefact is unpacked, unless it is a vsix, and the
programs are those of an environment with the wheel.
"""

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from tests.e2e.environment import home
from tests.editors.lsp4ij import CAPABILITIES, PYCHARM
from tests.editors.models import STEADY
from tests.editors.scenes import CARRIED, RENAMED, SHAPES, SHOP
from tests.editors.tools import found

if TYPE_CHECKING:
    from tests.editors.vim.vim import Vim

LAZY = """\
vim.opt.runtimepath:prepend("{lazy}")
require("lazy").setup({{
  spec = {{
    url = "file://{plugin}",
    name = "mercury.nvim",
    main = "mercury",
    event = "VeryLazy",
    opts = {{ keys = true }},
  }},
  root = "{folder}/plugins",
  lockfile = "{folder}/lazy-lock.json",
  rocks = {{ enabled = false }},
}})
"""
OFFERED = """\
local space = vim.api.nvim_create_namespace("mercury.nextedit")
return #vim.api.nvim_buf_get_extmarks(0, space, 0, -1, {}) > 0
"""


class Trial(NamedTuple):
    """What is tried, where, and the environment in which `mercury-ls` is the wheel's."""

    artefact: Path
    folder: Path
    environment: dict[str, str]


class MissingError(Exception):
    """An editor is not on this machine."""


def brought(name: str) -> Path:
    if program := found(name):
        return program
    raise MissingError(f"{name} is not here, `python -m tests.editors.tools {name}` brings it")


def neovim(trial: Trial) -> str:
    """Cloned by lazy.nvim from a repository that holds nothing else, as from a mirror."""
    from tests.editors.nvim.neovim import Neovim

    program, lazy = brought("neovim-0.12"), brought("lazy.nvim").parents[2]
    mirror = shutil.copytree(trial.artefact, trial.folder / "mirror")
    commit(mirror)
    project = trial.folder / "project"
    project.mkdir()
    init = trial.folder / "init.lua"
    init.write_text(LAZY.format(lazy=lazy, plugin=mirror, folder=trial.folder), encoding="utf-8")
    installing = [program, "--headless", "-u", init, "-i", "NONE", "+qall"]
    subprocess.run(installing, env=trial.environment, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    with closing(Neovim(program, trial.environment, project, init)) as editor:
        editor.open(SHOP.text)
        editor.ready()
        editor.keys("G")
        editor.press("A", "i")
        editor.type(SHOP.typed)
        ghost = editor.suggestion()
        editor.keys("<Tab>")
        editor.until(lambda: editor.text == SHOP.before + ghost, "the suggestion to be taken")
        editor.press("<Esc>", "n")
        editor.open(SHAPES, "shapes.py")
        editor.attached()
        editor.keys("1G0wcwsurface<Esc>")
        editor.until(lambda: f"{editor.text}\n" == RENAMED and editor.lua(OFFERED), "the rename to be offered")
        editor.keys("<Tab>")
        editor.until(lambda: editor.cursor[0] > 1, "the jump")
        editor.keys("<Tab>")
        editor.until(lambda: f"{editor.text}\n" == CARRIED, "the rename to be made")
        editor.until(lambda: editor.lua("return vim.fn.getcompletion('mercury-keys', 'help')[1]"), "its help")
    return "Neovim, by lazy.nvim: a completion, a rename, its help"


def commit(folder: Path) -> None:
    names = ["-c", "user.name=release", "-c", "user.email=release@localhost"]
    for command in (["init", "--quiet"], ["add", "--all"], [*names, "commit", "--quiet", "--message", "release"]):
        subprocess.run(["git", "-C", folder, *command], check=True)


def vim(trial: Trial) -> str:
    from tests.editors.vim.vim import Vim

    program, node = brought("vim"), brought("node")
    for scene, shown in ((SHOP.text, completed), (SHAPES, carried)):
        project = trial.folder / shown.__name__
        project.mkdir()
        with closing(Vim(program, node, trial.environment, project, scene, trial.artefact)) as editor:
            shown(editor)
    return "Vim 9.0 with coc.nvim: a completion, a rename"


def completed(editor: "Vim") -> None:
    editor.insert()
    editor.type(SHOP.typed)
    shown = editor.suggested()
    editor.keys("\t")
    editor.until(lambda: editor.screen.cursor.x == len(shown), "the suggestion to be taken")


def carried(editor: "Vim") -> None:
    editor.keys("wcwsurface\x1b")
    editor.shows(RENAMED)
    editor.until(editor.offers_an_edit, "the rename to be offered")
    editor.keys("\\m")
    editor.until(lambda: "mercury: rename" in editor.told(), "the code action")
    editor.settle()
    editor.keys("\r")
    editor.shows(CARRIED)


def vscode(trial: Trial) -> str:
    from playwright.sync_api import sync_playwright

    from tests.editors.vscode.codeserver import CodeServer, unpack

    chromium = brought("chromium")
    brought("code-server")
    project = trial.folder / "project"
    (project / ".git").mkdir(parents=True)
    unpack(trial.artefact, trial.folder / "vs/extensions")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium))
        with (
            closing(CodeServer(trial.folder / "vs", trial.environment, command=(), package=False)) as server,
            closing(server.window(browser, project)) as window,
        ):
            window.ready()
            window.open(SHOP.before[:-1])
            window.type(SHOP.before[-1])
            window.first_ghost(SHOP.before[-1])
            window.press("Tab")
            window.until(lambda: len(window.text) > len(SHOP.before), "the suggestion to be taken")
            window.open(SHAPES, cursor="def area")
            window.run("deleteWordLeft")
            window.type("surface")
            window.until(lambda: window.text == RENAMED and "surface" in window.marks, "the rename")
            window.press("Control+Alt+.")
            window.until(lambda: window.cursor[0] > 0, "the jump")
            window.press("Control+Alt+.")
            window.has(CARRIED)
    return "code-server: a completion, a rename"


def jetbrains(trial: Trial) -> str:
    """By its command, as an IDE with LSP4IJ starts it, and by what that says of itself."""
    template = json.loads((trial.artefact / "template.json").read_text(encoding="utf-8"))
    asyncio.run(suggested(trial, shlex.split(template["programArgs"]["default"])))
    return "its command, as LSP4IJ starts it: a completion"


async def suggested(trial: Trial, command: list[str]) -> None:
    from tests.e2e.raw import Raw

    async with Raw(trial.environment, trial.folder, initialize=False, command=command) as server:
        who = {"clientInfo": PYCHARM, "rootUri": trial.folder.as_uri(), "capabilities": CAPABILITIES}
        await server.request("initialize", who)
        server.send({"jsonrpc": "2.0", "method": "initialized", "params": {}})
        uri = server.open("shop.py", SHOP.before)
        while (await server.request("mercury/status", {}))["state"] != "ready":
            pass
        line, character = SHOP.before.count("\n"), len(SHOP.before.rpartition("\n")[2])
        if not await server.inline(uri, line, character):
            raise AssertionError(f"nothing is suggested: {await server.why(uri, line, character)}")


TRIALS: Mapping[str, Callable[[Trial], str]] = {
    "neovim": neovim,
    "vim": vim,
    "vscode": vscode,
    "jetbrains": jetbrains,
}


def main(editor: str, artefact: str, programs: str) -> None:
    """The last line says what was seen."""
    with TemporaryDirectory(prefix="tried-") as name:
        folder = Path(name).resolve()
        own = folder / "home/.local/bin"  # where uv puts it
        own.mkdir(parents=True)
        (own / "mercury-ls").symlink_to(Path(programs, "mercury-ls").resolve())
        path = f"{own}{os.pathsep}{os.environ['PATH']}"
        environment = home(folder / "home", PATH=path, PYTHONPATH="", MERCURY_ENGINE_MODEL="auto", **STEADY)
        try:
            seen = TRIALS[editor](Trial(Path(artefact).resolve(), folder, environment))
        except MissingError as missing:
            seen = f"not tried: {missing}"
        finally:
            subprocess.run([Path(programs) / "mercury-ls", "serve", "--stop"], env=environment, capture_output=True)
    sys.stdout.write(f"{seen}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
