"""From the server's answer to visible ghost text, in a real VS Code: `python -m tests.editors.vscode.latency`."""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from tests.e2e.environment import COMMAND, home, stop_engine
from tests.editors.nvim.tee import between
from tests.editors.tools import found
from tests.editors.vscode.codeserver import CodeServer, Window
from tests.editors.vscode.package import made

TEXT = "def total(items):\n    return sum(item.price for item in items)\n\n\ndef grand_total(items):\n    return"

SEEN = """() => {
  window.seen = 0;
  const look = () => {
    const ghost = document.querySelector('[class*="ghost-text-decoration"]');
    if (ghost) window.seen = performance.timeOrigin + performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=20)
    samples = parser.parse_args().samples
    times = sorted(measured(samples))
    ninety = times[min(len(times) - 1, round(0.9 * len(times)))]
    figures = {"samples": len(times), "p50_ms": round(statistics.median(times), 1), "p90_ms": round(ninety, 1)}
    sys.stdout.write(f"answer to visible ghost text: median {figures['p50_ms']} ms, p90 {figures['p90_ms']} ms\n")
    sys.stdout.write(json.dumps(figures) + "\n")


def measured(samples: int) -> list[float]:
    from playwright.sync_api import sync_playwright

    made()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        root = Path(name).resolve()
        (root / "project").mkdir()
        variables = home(root, PYTHONPATH=os.getcwd())
        journal = root / "journal.jsonl"
        command = [sys.executable, "-m", "tests.editors.vscode.latency", "--tee", str(journal), *COMMAND]
        with ExitStack() as stack:
            stack.callback(stop_engine, variables)
            server = stack.enter_context(closing(CodeServer(root / "vs", variables, command=command)))
            browser = playwright.chromium.launch(executable_path=str(found("chromium")))
            window = stack.enter_context(closing(server.window(browser, root / "project")))
            window.ready()
            return [sample(window, journal) for _ in range(samples)]


def sample(window: Window, journal: Path) -> float:
    window.open(TEXT)
    window.page.evaluate(SEEN)
    window.type(" sum")
    window.first_ghost("m")
    seen = window.until(lambda: window.page.evaluate("() => window.seen"), "the picture")
    return seen - max(moment for moment in answers(journal) if moment <= seen)


def answers(journal: Path) -> list[float]:
    """When the server answered with a suggestion."""
    entries = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    return [entry["ms"] for entry in entries if (entry["message"].get("result") or {}).get("items")]


def tee(journal: str, command: list[str]) -> int:
    """Stands between the editor and the server, and writes down what the server says by the clock on the wall."""
    with open(journal, "a", encoding="utf-8") as file:

        def note(sender: str, message: dict[str, Any]) -> None:
            if sender == "server" and isinstance(message.get("result"), dict | None):
                file.write(json.dumps({"ms": time.time() * 1000, "message": message}) + "\n")
                file.flush()

        return between(command, note)


if __name__ == "__main__":
    sys.exit(tee(sys.argv[2], sys.argv[3:]) if sys.argv[1:2] == ["--tee"] else main())
