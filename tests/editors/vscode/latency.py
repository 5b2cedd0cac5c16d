"""Where the time goes between a key and visible ghost text in a real VS Code: `python -m tests.editors.vscode.latency`.

The wire, the page and its frames are read by one clock. What comes after the server's answer is what must be short.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.e2e.environment import COMMAND, home, stop_engine
from tests.editors.nvim.tee import between
from tests.editors.scenes import SHOP
from tests.editors.tools import found
from tests.editors.vscode.codeserver import CodeServer, Window
from tests.editors.vscode.package import made

if TYPE_CHECKING:
    from playwright.sync_api import Page

ASKED = "textDocument/inlineCompletion"

PARTS = {
    "asked": "key to question: the editor's pause, and the way to the server",
    "answered": "question to answer: the server",
    "arrived": "answer to the page: the extension's process, and the way from it",
    "drawn": "page to ghost text in its document: the editor, up to its next frame",
    "painted": "its document to the screen",
}
AFTER = ("arrived", "drawn", "painted")

MOMENTS = Path(__file__).with_name("moments.js").read_text("utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=20)
    samples = measured(parser.parse_args().samples)
    told = {part: spread([sample[part] for sample in samples]) for part in PARTS}
    told["answer to screen"] = spread([sum(sample[part] for part in AFTER) for sample in samples])
    for part, figures in told.items():
        row = "  ".join(f"{name} {figure:6.1f}" for name, figure in figures.items())
        sys.stdout.write(f"{part:17} {row} ms  {PARTS.get(part, '')}\n".replace(" ms  \n", " ms\n"))
    sys.stdout.write(json.dumps({"samples": len(samples), "ms": told}) + "\n")


def spread(values: Sequence[float]) -> dict[str, float]:
    tenths = statistics.quantiles(values, n=10, method="inclusive")
    return {"p10": round(tenths[0], 1), "p50": round(tenths[4], 1), "p90": round(tenths[8], 1)}


def measured(samples: int) -> list[dict[str, float]]:
    from playwright.sync_api import sync_playwright

    made()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright, ExitStack() as stack:
        root = Path(name).resolve()
        (root / "project").mkdir()
        variables = home(root, PYTHONPATH=os.getcwd())
        journal = root / "journal.jsonl"
        command = [sys.executable, "-m", "tests.editors.vscode.latency", "--tee", str(journal), *COMMAND]
        stack.callback(stop_engine, variables)
        server = stack.enter_context(closing(CodeServer(root / "vs", variables, command=command)))
        browser = playwright.chromium.launch(executable_path=str(found("chromium")))
        window = stack.enter_context(closing(server.window(browser, root / "project", watched)))
        window.ready()
        sample(window, journal)  # the first one wakes everybody up
        return [sample(window, journal) for _ in range(samples)]


def watched(page: "Page") -> None:
    page.add_init_script(MOMENTS)


def sample(window: Window, journal: Path) -> dict[str, float]:
    """How long each part took, of the last key that ghost text came for."""
    window.open(SHOP.before[:-1])
    window.type(SHOP.before[-1])
    window.first_ghost(SHOP.before[-1])
    page = window.until(lambda: painted(window), "the picture")
    asked, answered = window.until(lambda: exchange(journal, page["arrived"]), "the journal")
    moments = [page["key"], asked, answered, page["arrived"], page["drawn"], page["painted"]]
    return {part: moments[index + 1] - moments[index] for index, part in enumerate(PARTS)}


def painted(window: Window) -> dict[str, float] | None:
    moments = window.page.evaluate("() => window.moments")
    return moments if {"key", "arrived", "drawn", "painted"} <= moments.keys() else None


def exchange(journal: Path, before: float) -> tuple[float, float] | None:
    """The last question that was answered with a suggestion up to then, and its answer."""
    entries = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    asked = {entry["message"]["id"]: entry["ms"] for entry in entries if entry["message"].get("method") == ASKED}
    for entry in reversed(entries):
        message = entry["message"]
        if "method" not in message and message["id"] in asked and entry["ms"] <= before:
            return asked[message["id"]], entry["ms"]
    return None


def tee(journal: str, command: list[str]) -> int:
    """Stands between the editor and the server, and writes down questions and answers by the clock on the wall."""
    with open(journal, "a", encoding="utf-8") as file:

        def note(sender: str, message: dict[str, Any]) -> None:
            moment = time.time() * 1000
            if message.get("method") == ASKED or (sender == "server" and items(message)):
                file.write(json.dumps({"ms": moment, "message": message}) + "\n")
                file.flush()

        return between(command, note)


def items(message: dict[str, Any]) -> list | None:
    result = message.get("result")
    return result.get("items") if isinstance(result, dict) else None


if __name__ == "__main__":
    sys.exit(tee(sys.argv[2], sys.argv[3:]) if sys.argv[1:2] == ["--tee"] else main())
