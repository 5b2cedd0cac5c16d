"""A real Emacs in a terminal that is typed into, configured by one of the blocks of its README."""

from pathlib import Path

from tests.editors.terminal import Terminal

BESIDES = """\
(setq flymake-indicator-type nil inhibit-startup-screen t)
(setq make-backup-files nil create-lockfiles nil auto-save-default nil)
(setq lsp-session-file (expand-file-name "session" "{folder}") lsp-auto-guess-root t)
(setq lsp-client-packages nil lsp-enable-snippet nil)
(when {lsp} (mapc #'require '(lsp-mode lsp-lens lsp-headerline lsp-modeline lsp-diagnostics lsp-inline-completion)))
"""
"""An installed package loads its parts by itself; one that was only unpacked does not."""


class Emacs(Terminal):
    def __init__(self, program: Path, environment: dict[str, str], folder: Path, configuration: str, text: str):
        (folder / ".git").mkdir()
        self.path = folder / "shop.py"
        self.path.write_text(text, encoding="utf-8")
        besides = BESIDES.format(folder=folder, lsp="t" if "lsp-mode" in configuration else "nil")
        (folder / "init.el").write_text(configuration + besides, encoding="utf-8")
        command = [str(program), "-nw", "-Q", "-l", str(folder / "init.el"), self.path.name]
        super().__init__(command, environment, folder)
        self.ready()

    @property
    def line(self) -> str:
        """The cursor's line as it is painted, ghost text and all."""
        return self.lines[self.screen.cursor.y]

    def type(self, text: str) -> None:
        """One key at a time."""
        for character in text:
            before = (self.line, self.screen.cursor.x)
            self.keys(character)
            self.until(lambda before=before: (self.line, self.screen.cursor.x) != before, f"{character!r} to arrive")

    def suggested(self) -> str:
        """The cursor's line with ghost text behind the cursor, once the screen is at rest."""
        silent = f"ghost text; the model stayed silent at {self.line!r}"
        self.until(lambda: len(self.line) > self.screen.cursor.x, silent)
        self.settle()
        return self.line

    def saved(self) -> str:
        self.keys("\x18\x13")
        self.until(lambda: "Wrote" in self.lines[-1], "the file to be written")
        return self.path.read_text(encoding="utf-8")
