"""A real Helix that is typed into, configured as its README says."""

import re
from pathlib import Path

from tests.editors.documented import blocks
from tests.editors.terminal import Terminal

BARE = "[editor]\ngutters = []\n"
"""A line of the screen is then a line of the text."""


class Helix(Terminal):
    def __init__(self, program: Path, environment: dict[str, str], folder: Path, text: str):
        settings = folder / "config/helix"
        settings.mkdir(parents=True)
        (settings / "languages.toml").write_text(blocks("helix", "toml")[0], encoding="utf-8")
        (settings / "config.toml").write_text(BARE, encoding="utf-8")
        (folder / ".git").mkdir()
        self.path = folder / "shop.py"
        self.path.write_text(text, encoding="utf-8")
        variables = {**environment, "XDG_CONFIG_HOME": str(folder / "config")}
        super().__init__([str(program), self.path.name], variables, folder)
        self.ready()

    @property
    def status(self) -> str:
        return self.lines[-2]

    @property
    def line(self) -> str:
        """The cursor's line."""
        return self.lines[self.screen.cursor.y]

    @property
    def entry(self) -> str:
        """Our suggestion in the menu; Helix names the kind of each behind it."""
        below = "\n".join(self.lines[:-2])
        found = re.search(r"^ +(\S.*?) +text$", below, re.MULTILINE)
        return found[1] if found else ""

    def insert(self) -> None:
        """At the end of the file."""
        self.keys("geA")
        self.until(lambda: "INS" in self.status, "insert mode")

    def type(self, text: str) -> None:
        """One key at a time; what Helix closes ahead stands behind the cursor."""
        for character in text:
            before = self.screen.cursor.x
            self.keys(character)
            self.until(lambda before=before: self.screen.cursor.x != before, f"{character!r} to arrive")

    def suggested(self) -> str:
        """Our entry, once the menu is at rest."""
        self.until(lambda: self.entry, f"an entry of ours; the model stayed silent at {self.line!r}")
        self.settle()
        return self.entry

    def normal(self) -> None:
        self.keys("\x1b")
        self.until(lambda: "NOR" in self.status, "normal mode")

    def command(self, command: str) -> None:
        self.keys(f":{command}\r")

    def saved(self) -> str:
        """The text, as Helix writes it: with a line end behind the last line."""
        self.command("w!")
        self.until(lambda: "written" in self.lines[-1], "the file to be written")
        return self.path.read_text(encoding="utf-8")
