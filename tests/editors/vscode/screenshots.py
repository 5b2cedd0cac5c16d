"""The extension in light and dark: `python -m tests.editors.vscode.screenshots` renews docs/screenshots."""

import argparse
import json
import os
import re
import sys
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

from tests.e2e.environment import COMMAND, home, stop_engine
from tests.editors.tools import found
from tests.editors.vscode.codeserver import CodeServer, Window
from tests.editors.vscode.package import made

OUT = Path(__file__).parents[3] / "docs/screenshots"
SCRIPTED = str(Path(__file__).parents[1] / "nvim/scripted_server.py")
THEMES = {"light": "Default Light Modern", "dark": "Default Dark Modern"}

EDITS = """\
def area(width, height):
    return width * hight


def volume(width, height, depth):
    return aera(width, height) * depth


print(aera(2, 3))
"""


def edit(line: int, start: int, stop: int, text: str) -> dict:
    places = ({"line": line, "character": character} for character in (start, stop))
    return {"range": dict(zip(("start", "end"), places, strict=True)), "newText": text, "display": "diff"}


OFFER = [edit(1, 19, 24, "height"), edit(5, 11, 15, "area"), edit(8, 6, 10, "area")]


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    made()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        root = Path(name).resolve()
        browser = playwright.chromium.launch(executable_path=str(found("chromium")))
        for theme in THEMES:
            take(browser, root / theme, theme, out)
        browser.close()


def take(browser, folder: Path, theme: str, out: Path) -> None:
    project = folder / "basket"
    project.mkdir(parents=True)
    variables = home(folder, MERCURY_ENGINE_MODEL="quicksilver", PYTHONPATH=os.getcwd())
    settings = {
        "editor.minimap.enabled": False,
        "window.autoDetectColorScheme": False,
        "workbench.colorTheme": THEMES[theme],
    }
    for name, command, shots in (("real", COMMAND, real), ("told", [sys.executable, SCRIPTED, str(project)], told)):
        with ExitStack() as stack:
            if name == "real":
                stack.callback(stop_engine, variables)
            opened = CodeServer(folder / name, variables, command=command, **settings)
            server = stack.enter_context(closing(opened))
            window = stack.enter_context(closing(server.window(browser, project, color_scheme=theme)))
            window.run("workbench.action.closeSidebar")
            shots(window, theme, out)


def real(window: Window, theme: str, out: Path) -> None:
    window.ready()
    window.open(EDITS, "shapes.py")
    window.page.locator(".statusbar-item[id='mercury-ls.mercury-ls.mercury-ls']").click()
    window.page.locator(".quick-input-list-entry").first.wait_for()
    shoot(window, out / f"vscode-menu-{theme}.png")
    window.press("Escape")


def told(window: Window, theme: str, out: Path) -> None:
    offer(window, "shapes.py", EDITS, OFFER)
    window.until(lambda: window.marks, "the next edit")
    shoot(window, out / f"vscode-next-edit-{theme}.png")


def offer(window: Window, name: str, text: str, edits: list[dict]) -> None:
    """The first key wakes the editor up, and the server has nothing to say to it; the second one is answered."""
    journal, answer = window.folder / "journal.jsonl", window.folder / "answer.json"
    window.open(text, name, cursor=text.splitlines()[0])
    window.type(" ")
    asked = f'"mercury/nextEdit".*{name}'
    window.until(lambda: re.search(asked, journal.read_text(encoding="utf-8")), "the server to be asked")
    placed = [{"file": name, **edit} for edit in edits]
    answer.write_text(json.dumps({"id": "one", "edits": placed}), encoding="utf-8")
    window.type(" ")


def shoot(window: Window, path: Path) -> None:
    """The editor's part of the window, when two looks in a row are the same."""
    window.page.mouse.move(0, 0)
    clip = {"x": 0, "y": 30, "width": 900, "height": 420}
    before = window.page.screenshot(clip=clip, caret="hide")
    while before != (now := window.page.screenshot(clip=clip, caret="hide")):
        before = now
    path.write_bytes(now)


if __name__ == "__main__":
    main()
