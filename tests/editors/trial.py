"""A strong model in real editors, from `model add` to the screen: `python -m tests.editors.trial` renews its pictures.

It counts steps, keys and seconds, and measures from the key to the next edit on the screen, over the server's own time.
The server knows the answers (`bench/oracle`); 400 ms to its first token.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

from bench.oracle.edits import FORMATS, EditRow, EditsOracle, answering, edit_rows
from bench.oracle.server import Options, serving
from tests.editors.film import Frame, draw, photograph
from tests.editors.nvim.test_frames import Watched, write
from tests.editors.oracle import BEGUN, FIRST_MS, WHOLE, added, contradicts, running, switched
from tests.editors.patience import rest, until
from tests.editors.tools import found
from tests.editors.vscode.codeserver import CodeServer, Window, clean
from tests.editors.vscode.package import made

OUT = Path(__file__).parents[2] / "docs/screenshots"
FORMAT = "zeta-2"
REWRITER = ("--protocol", "openai", "--model", "oracle", "--prompt", FORMAT)
COLOURS = {"2f5a3c", "6b2f45"}
"""Of what a next edit adds and deletes, in `test_frames.py`."""
TYPED = "    def total(self):"
SECONDS = 15
STEPS = ("mercury-ls model add", "mercury-ls model use", "typing", "Tab")
DRAWN = """
window.moments = {};
window.addEventListener('keydown', () => { window.moments = { key: performance.now() }; }, true);
new MutationObserver(() => {
  if (!window.moments.drawn && document.querySelector('.editor-instance .view-line span[class*="ced-"]')) {
    window.moments.drawn = performance.now();
  }
}).observe(document, { subtree: true, childList: true, attributes: true });
"""
FRAMES = Path(__file__).with_name("frames.js").read_text("utf-8").removesuffix("\n")
"""What is typed and what is suggested, line by line: what has a new size is told when a frame is complete."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("editor", choices=["neovim", "vscode"])
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--samples", type=int, default=8)
    given = parser.parse_args()
    rows = [row for row in edit_rows() if row.due and row.language == "python" and "\n" not in row.edit.text]
    trial = {"neovim": neovim, "vscode": vscode}[given.editor]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        root = Path(name).resolve()
        oracle = stack.enter_context(running(serving([WHOLE], Options(first_ms=FIRST_MS))))
        rewriter = stack.enter_context(running(answering(EditsOracle(FORMATS[FORMAT], first_ms=FIRST_MS))))
        variables, seconds = stack.enter_context(added(root, oracle.address))
        told = {"editor": given.editor, "seconds_to_add": round(seconds, 1), "steps": len(STEPS)}
        told |= trial(variables, root, rewriter, rows[: given.samples], given.out)
    sys.stdout.write(json.dumps(told | {"minutes": round((time.monotonic() - began) / 60, 1)}) + "\n")


def neovim(
    variables: dict[str, str], root: Path, rewriter: EditsOracle, rows: Sequence[EditRow], out: Path
) -> dict[str, Any]:
    program = found("neovim-0.12")
    if program is None:
        raise SystemExit("Neovim 0.12 is not here; `python -m tests.editors.tools neovim-0.12` brings it")
    with closing(Watched(program, variables, root / "project", BEGUN)) as editor:
        editor.ready()
        editor.keys("\x0cGo")
        editor.until(lambda: "INSERT" in editor.lines[-1], "insert mode")
        editor.screens.clear()
        for character in TYPED:
            editor.keys(character)
            editor.read_for(0.11)
        editor.until(lambda: "return amount" in editor.shown, "several lines")
        shoot(editor, out / "neovim-several-lines.svg", "Several lines at once, by a model behind a server, in Neovim")
        keys = len(TYPED) + write(editor, WHOLE, TYPED)
        wrong = contradicts(editor.screens)
        switched(variables, "rewriter", rewriter.address, *REWRITER)
        rewriter.rows = rows
        editor.keys("\x1b:wall\r")
        editor.ready(2)
        waits = [in_neovim(editor, rewriter, row, out, is_first=not number) for number, row in enumerate(rows)]
    return {"keys": keys, "characters": len(WHOLE) - len(BEGUN), "flicker": wrong, **spread(waits)}


def shoot(editor: Watched, path: Path, title: str) -> None:
    cursor = editor.screen.cursor.y, editor.screen.cursor.x
    frame = Frame(1.0, photograph(editor.screen), cursor, "INSERT" in editor.lines[-1], "", "")
    path.write_text(draw([frame], title), encoding="utf-8")


def in_neovim(editor: Watched, rewriter: EditsOracle, row: EditRow, out: Path, *, is_first: bool) -> float:
    """Milliseconds from leaving insert mode to the edit on the screen, over the server's own."""
    (editor.folder / row.file).write_text(row.before, encoding="utf-8")
    line = row.before.count("\n", 0, row.edit.start)
    column = row.edit.start - (row.before.rfind("\n", 0, row.edit.start) + 1)
    editor.keys(f":edit! {row.file} | set ttimeoutlen=0 | call cursor({line + 1}, {column + 1})\r")
    editor.until(lambda: row.before.splitlines()[0] in editor.shown, "the file")
    editor.settle()
    removed = row.edit.end - row.edit.start
    editor.keys(f"{removed}s{row.edit.text}" if removed else f"i{row.edit.text}")
    editor.until(lambda: row.text.splitlines()[line] in editor.shown, "the change")
    began = time.monotonic()
    editor.keys("\x1b")
    editor.until(lambda: colours(editor) & COLOURS, f"a next edit after {row.name!r}")
    waited = (time.monotonic() - began) * 1000
    if is_first:
        editor.settle()
        shoot(editor, out / "neovim-next-edit.svg", "A next edit, by a model behind a server, in Neovim")
    editor.keys(":edit!\r")
    return waited - rewriter.took_ms


def colours(editor: Watched) -> set[str]:
    return {cell.bg for line in editor.screen.buffer.values() for cell in line.values()}


def vscode(
    variables: dict[str, str], root: Path, rewriter: EditsOracle, rows: Sequence[EditRow], out: Path
) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    made()
    (project := root / "project").mkdir()
    settings = {"editor.minimap.enabled": False, "workbench.colorTheme": "Default Dark Modern"}
    settings |= {"editor.autoClosingBrackets": "never", "mercury.suggest.minimumProbability": None}
    with sync_playwright() as playwright, ExitStack() as stack:
        server = stack.enter_context(closing(CodeServer(root / "vs", variables, **settings)))
        browser = playwright.chromium.launch(executable_path=str(found("chromium")))
        window = stack.enter_context(closing(server.window(browser, project, lambda page: page.add_init_script(DRAWN))))
        window.run("workbench.action.closeSidebar")
        window.ready()
        window.open(BEGUN, "basket.py")
        window.page.evaluate(FRAMES)
        window.type(TYPED)
        window.until(lambda: "return amount" in window.ghost, "several lines")
        wrong = contradicts([clean(frame) for frame in window.page.evaluate("() => window.frames")])
        picture(window, out / "vscode-several-lines.png")
        window.press("Tab")
        window.until(lambda: "return amount" in window.text, "what was taken")
        keys = len(TYPED) + 1
        switched(variables, "rewriter", rewriter.address, *REWRITER)
        rewriter.rows = rows
        window.until(lambda: "rewriter" in window.status and "Ready" in window.status, "the other model")
        waits = [in_vscode(window, rewriter, row, out, is_first=not number) for number, row in enumerate(rows)]
    return {"keys": keys, "flicker": wrong, **spread(waits)}


def in_vscode(window: Window, rewriter: EditsOracle, row: EditRow, out: Path, *, is_first: bool) -> float | None:
    """None where nothing was offered within some seconds; why not goes to standard error."""
    path = window.open(row.before, row.file)
    window.show(path, row.edit.end)
    for _ in range(row.edit.end - row.edit.start):
        window.press("Backspace")
    window.page.keyboard.type(row.edit.text)  # at once: what is offered before the last key is not measured
    try:
        moments = until(lambda: drawn(window), "a next edit", seconds=SECONDS, pause=partial(rest, 0.02))
    except AssertionError:
        window.run("mercury-ls.why")
        window.until(lambda: any("next edit:" in message for message in window.messages), "the reason")
        sys.stderr.write(f"{row.name}: {window.messages}\n")
        window.run("notifications.clearAll")
        return None
    if is_first:
        picture(window, out / "vscode-rewritten.png")
    return moments["drawn"] - moments["key"] - rewriter.took_ms


def drawn(window: Window) -> dict[str, float] | None:
    moments = window.page.evaluate("() => window.moments")
    return moments if {"key", "drawn"} <= moments.keys() else None


def picture(window: Window, path: Path) -> None:
    window.page.mouse.move(0, 0)
    path.write_bytes(window.page.screenshot(clip={"x": 0, "y": 30, "width": 900, "height": 420}, caret="hide"))


def spread(answers: Sequence[float | None]) -> dict[str, Any]:
    waits = [waited for waited in answers if waited is not None]
    return {
        "asked": len(answers),
        "shown": len(waits),
        "over_ms_p50": round(statistics.median(waits)),
        "over_ms": sorted(map(round, waits)),
    }


if __name__ == "__main__":
    main()
