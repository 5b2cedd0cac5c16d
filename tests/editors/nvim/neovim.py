"""A real Neovim that is typed into: started bare, with this plugin and the server under test."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.e2e.environment import COMMAND
from tests.editors.models import FAKE
from tests.editors.nvim.rpc import SECONDS, Rpc
from tests.editors.patience import rest, until

PLUGIN = Path(__file__).parents[3] / "editors/nvim"

WATCH = Path(__file__).with_name("watch.lua").read_text("utf-8")


class Neovim:
    """One editor, with the plugin or started by an `init.lua`. `ghost` is all ghost text, whoever draws it."""

    def __init__(self, program: Path, environment: dict[str, str], folder: Path, init: Path | None = None):
        command = [str(program), "--embed", "--headless", "-u", str(init or "NONE"), "-i", "NONE", "-n"]
        (folder / ".git").mkdir(exist_ok=True)
        self.rpc = Rpc(command, environment, folder)
        self.folder = folder
        self.copies = environment.get("MERCURY_ENGINE_MODEL") == FAKE
        self.rpc("nvim_ui_attach", 100, 30, {"rgb": True, "ext_linegrid": True})
        self.lua(WATCH)
        if init is None:
            self.lua("vim.opt.runtimepath:prepend(...); vim.cmd.runtime('plugin/mercury.lua')", str(PLUGIN))
        self.lua("vim.o.swapfile, vim.o.updatetime, vim.o.autoindent = false, 50, true")

    def start(self, command: list[str] | None = None, name: str = "mercury", **options: Any) -> None:
        """Our server, or the given one, under our configuration's name."""
        config = {"cmd": command or [*COMMAND, "--stdio"]}
        self.lua("vim.lsp.config(...)", name, config)
        self.lua("require('mercury').setup(...)", {"servers": [name], **options})

    def lua(self, code: str, *arguments: Any) -> Any:
        return self.rpc("nvim_exec_lua", code, arguments)

    def open(self, text: str, name: str = "shop.py") -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        self.command(f"edit {path}")
        self.command("filetype detect")
        return path

    def attached(self, name: str = "mercury") -> None:
        question = "return #vim.lsp.get_clients({ bufnr = 0, name = ... })"
        self.until(lambda: self.lua(question, name) == 1, f"{name} to attach")

    def ready(self) -> None:
        self.attached()
        self.until(lambda: self.lua("return require('mercury').status_info().state") == "ready", "the engine")

    def until(self, holds: Callable[[], Any], what: str) -> Any:
        return until(holds, what, self.told, seconds=SECONDS, pause=partial(rest, 0.005))

    def told(self) -> str:
        """What a person would look at when nothing comes."""
        lines = [self.text, f"ghost {self.ghosts}", f"mode {self.mode}", f"notes {self.notes}"]
        return "\n".join([*lines, self.rpc("nvim_exec2", "messages", {"output": True})["output"]])

    def keys(self, keys: str) -> None:
        self.rpc("nvim_input", keys)

    def type(self, text: str) -> None:
        """Types, one key at a time, and waits for each to arrive."""
        for character in text:
            before = self.text
            self.keys("<lt>" if character == "<" else character)
            self.until(lambda before=before: self.text != before, f"{character!r} to arrive")

    def press(self, keys: str, mode: str) -> None:
        self.keys(keys)
        self.until(lambda: self.mode == mode, f"mode {mode} after {keys}")

    @property
    def mode(self) -> str:
        return self.rpc("nvim_get_mode")["mode"]

    @property
    def text(self) -> str:
        return "\n".join(self.rpc("nvim_buf_get_lines", 0, 0, -1, False))

    @property
    def line(self) -> str:
        return self.rpc("nvim_get_current_line")

    @property
    def notes(self) -> list[str]:
        return self.lua("return _G.notes")

    @property
    def ghosts(self) -> list[list]:
        return self.lua("return _G.ghosts()")

    @property
    def ghost(self) -> str:
        return "".join(text for _, _, text in self.ghosts)

    def suggestion(self) -> str:
        """The ghost text at the cursor, once what was typed is answered."""
        self.until(lambda: self.lua("return _G.settled()"), "an answer")
        assert self.ghost, f"the model stayed silent at {self.line!r}\n{self.told()}"
        return self.ghost

    def shows(self, text: str) -> None:
        self.until(lambda: self.ghost == text, f"ghost text {text!r}")

    def asks(self) -> int:
        """How often a suggestion was asked for, when every timer that the keys so far have started is through."""
        self.lua("_G.later = false; vim.defer_fn(function() _G.later = true end, 300)")
        self.until(lambda: self.lua("return _G.later"), "the timers")
        return self.lua("return _G.asked")

    def map(self, mode: str, key: str, action: str) -> None:
        """The mapping that the documentation suggests for a key that has a meaning of its own."""
        code = "local m, k, a = ...; vim.keymap.set(m, k, require('mercury').or_key(a, k), { expr = true })"
        self.lua(code, mode, key, action)

    @property
    def page(self) -> str:
        """The lines of the float that is open, as one text."""
        self.until(lambda: self.lua("return vim.api.nvim_win_get_config(0).relative") != "", "a page")
        return self.text

    @property
    def waits_for_enter(self) -> bool:
        return self.rpc("nvim_get_mode")["mode"].startswith("r")

    def says(self, part: str) -> None:
        self.until(lambda: any(part in note for note in self.notes), f"a message with {part!r}")

    @property
    def screen_line(self) -> str:
        """The cursor's line as it is painted, ghost text and all."""
        code = """
            vim.cmd.redraw()
            local cells = {}
            for column = 1, vim.o.columns do
              cells[column] = vim.fn.screenstring(vim.fn.screenpos(0, vim.fn.line("."), 1).row, column)
            end
            return (table.concat(cells):gsub("%s+$", ""))
        """
        return self.lua(code)

    @property
    def last_screen_line(self) -> str:
        """Where Neovim shows messages, and the mode."""
        code = """
            local cells = {}
            for column = 1, vim.o.columns do
              cells[column] = vim.fn.screenstring(vim.o.lines, column)
            end
            return table.concat(cells)
        """
        return self.lua(code)

    @property
    def cursor(self) -> list[int]:
        return self.rpc("nvim_win_get_cursor", 0)

    def command(self, command: str) -> None:
        self.rpc("nvim_command", command)

    def close(self) -> None:
        self.rpc.close()
