"""What a real VS Code says while somebody types: `python -m tests.editors.vscode.wire` records it for the replay."""

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from tests.e2e.environment import COMMAND, home, stop_engine
from tests.editors.nvim.wire import PAUSE, SLOW_MS, STARTING, TEE, TEXT, WIRE, gap, portable, wait
from tests.editors.tools import found
from tests.editors.vscode.codeserver import CodeServer, Window, brought
from tests.editors.vscode.package import made

SMALL = {"width": 560, "height": 360}
NEAR = 0.07
"""Of what is waited for, no key is typed nearer than that: a browser may be late by as much."""

LOOK = "PAUSE"
KEYS = [
    *("Enter", "Enter", "Enter"),
    *"def dearest(items):",
    "Enter",
    *"return max(items, key",
    LOOK,
    "Tab",
    LOOK,
    *("End", "Enter", "Enter", "Enter"),
    *"def cuonr",
    *("Backspace", "Backspace", "Backspace", "Backspace"),
    *"ount(items):",
    "Enter",
    *"return sum(it",
    LOOK,
    *"em.quan",
    "Escape",
    LOOK,
    *"tity for item",
    LOOK,
    *("ArrowUp", "ArrowUp", "End"),
    *"  # how many",
    LOOK,
]
"""With a mistake that is taken back, pauses to look, what is offered taken once, and a move elsewhere."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=WIRE)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    if missing := brought():
        raise SystemExit(missing)
    made()
    record(folder / "vscode.jsonl")


def record(path: Path) -> None:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright, ExitStack() as stack:
        root = Path(name).resolve()
        (root / "project/.git").mkdir(parents=True)
        variables = home(root, PYTHONPATH=os.getcwd())
        stack.callback(stop_engine, variables)
        journal = root / "wire.jsonl"
        command = [sys.executable, TEE, str(journal), *COMMAND]
        slow = {"mercury.suggest.delayMs": SLOW_MS}
        server = stack.enter_context(closing(CodeServer(root / "vs", variables, command=command, **slow)))
        browser = playwright.chromium.launch(executable_path=str(found("chromium")))
        window = stack.enter_context(closing(server.window(browser, root / "project")))
        window.page.set_viewport_size(SMALL)
        window.ready()
        window.open(TEXT, "shop.py")
        wait(STARTING)
        perform(window, KEYS)
        path.write_text(portable(journal, root), encoding="utf-8")


def perform(window: Window, keys: Sequence[str]) -> None:
    """The same rhythm every time: gaps as people have them, most of them short."""
    chance = random.Random(12)
    for key in keys:
        if key == LOOK:
            wait(PAUSE)
        else:
            window.press("Space" if key == " " else key)
        wait(gap(chance, NEAR))
    wait(PAUSE)


if __name__ == "__main__":
    main()
