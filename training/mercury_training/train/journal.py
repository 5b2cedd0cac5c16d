"""The reports of a run: every step as a line of log.jsonl, some of them on stderr, the curve as a picture."""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from mercury_training.train import curve

PAUSE_TERMINAL, PAUSE_FILE = 0.5, 20.0
"""Seconds between lines on stderr."""

FIRST = 6
"""All of the first steps are shown, so that throughput is known within half a minute."""


class Journal:
    """Owns the log of a run; a `silent` one, of a process that is not the first, writes nothing."""

    def __init__(self, out: Path, *, silent: bool = False) -> None:
        self._log, self._picture, self._silent = out / "log.jsonl", out / "curve.svg", silent
        if not silent:
            _mend(self._log)
        self._shown, self._steps = 0.0, 0

    def note(self, entry: Mapping) -> None:
        if self._silent:
            return
        with self._log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, default=str) + "\n")

    def step(self, entry: Mapping) -> None:
        self.note(entry)
        self._steps += 1
        terminal = sys.stderr.isatty()
        if self._steps > FIRST and time.monotonic() - self._shown < (PAUSE_TERMINAL if terminal else PAUSE_FILE):
            return
        self._shown = time.monotonic()
        self._print(f"\r\x1b[K{_line(entry)}" if terminal else f"{_line(entry)}\n")

    def say(self, text: str) -> None:
        self._print(f"{text}\n")

    def plot(self) -> None:
        if not self._silent:
            curve.draw(self._log, self._picture)

    def _print(self, text: str) -> None:
        if not self._silent:
            print(text, end="", file=sys.stderr, flush=True)


def _mend(log: Path) -> None:
    """Drop a last line that was cut off, for example by a full disk."""
    data = log.read_bytes() if log.exists() else b""
    if data and not data.endswith(b"\n"):
        log.write_bytes(data[: data.rfind(b"\n") + 1])


def _line(entry: Mapping) -> str:
    canvas = f" canvas {entry['canvas']:.3f} ({entry['right']:.0%} right)" if entry["canvas"] else ""
    held_out = f" held out {entry['held_out_clean']:.3f}" if "held_out_clean" in entry else ""
    loss = "skipped: no finite gradient" if entry["norm"] is None else f"clean {entry['clean']:.3f}{canvas}{held_out}"
    norm = "" if entry["norm"] is None else f" norm {entry['norm']:.2f}"
    return (
        f"step {entry['step']} {entry['progress']:.1%} {loss}{norm} "
        f"{entry['positions'] / 1e6:.2f} M positions {entry['speed']:,.0f}/s"
    )
