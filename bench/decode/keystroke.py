"""The cost of a keystroke: from the typed token to a drafted and verified line, and what moving to another line
adds."""

import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bench.decode.agreement import ROWS
from bench.decode.forwards import CONTEXT, places, rows
from bench.decode.random_model import filled, ids
from bench.decode.trained import read
from bench.decode.turns import alternate, shown
from bench.harness.usage import busy
from mercury_engine.api import InfillRequest, Span, Window
from mercury_engine.model.openvino_runtime import OpenvinoRuntime
from mercury_engine.model.runtime import Cache, Rows
from mercury_engine.tokens.layout import budget_for, freeze, lay_out
from mercury_engine.tokens.prefix import common_prefix
from mercury_engine.tokens.tokenizer import Tokenizer

LINE_TOKENS = 9

CANVAS = 16

LINE_MOVE_TOKENS = 78
"""The median number of tokens encoded when moving down a line: see `moved_tokens`."""

MEASURED = """
import os, sys
from pathlib import Path
from bench.decode.forwards import CONTEXT
from bench.decode.keystroke import _keystroke_passes
from bench.decode.random_model import filled
from bench.harness.usage import resident_mb
from mercury_engine.model.openvino_runtime import load
runtime = load(Path(sys.argv[1]))
for once in _keystroke_passes(runtime, filled(runtime, CONTEXT)).values():
    once()
print(resident_mb(os.getpid()))
"""
"""A separate process that has read a full context and answered, which needs as much memory as a user's engine."""


def keystrokes(runtime: OpenvinoRuntime, rounds: int) -> dict[str, object]:
    """From the typed token to a verified line of nine tokens; the same after a move to another line, with one core
    busy, and token by token."""
    variants = _keystroke_passes(runtime, filled(runtime, CONTEXT))
    quiet = alternate(variants, rounds)
    with busy():
        loud = alternate({"keystroke": variants["keystroke"]}, rounds)["keystroke"]
    print()
    for name, values in {**quiet, "one core busy": loud}.items():
        print(f"{name:16}{shown(values)}")
    median = {name: statistics.median(values) for name, values in quiet.items()}
    return {
        "keystroke_p50_ms": round(median["keystroke"], 1),
        "line_move_adds_ms": round(median["line_move"] - median["keystroke"], 1),
        "keystroke_one_core_busy_ms": round(statistics.median(loud), 1),
        "keystroke_ar_ms": round(median["autoregressive"], 1),
    }


def _keystroke_passes(runtime: OpenvinoRuntime, cache: Cache) -> dict[str, Callable[[], None]]:
    return {
        "keystroke": _verified_line(runtime, cache, 1),
        "line_move": _verified_line(runtime, cache, LINE_MOVE_TOKENS),
        "autoregressive": _stepped_line(runtime, cache),
    }


def resident_mb(folder: Path) -> int:
    found = subprocess.run([sys.executable, "-c", MEASURED, str(folder)], capture_output=True, check=True, text=True)
    return round(float(found.stdout))


def _verified_line(runtime: OpenvinoRuntime, cache: Cache, new: int) -> Callable[[], None]:
    """Two forwards: the new tokens with a canvas, then the draft of nine, causally."""

    def once() -> None:
        cache.truncate(CONTEXT - LINE_MOVE_TOKENS)
        first = runtime.forward(rows(runtime, cache.length, new, CANVAS), cache)
        cache.append(first, range(new))
        draft = runtime.forward(Rows(ids(LINE_TOKENS), places(runtime, cache.length, LINE_TOKENS)), cache)
        cache.append(draft, range(LINE_TOKENS))

    return once


def _stepped_line(runtime: OpenvinoRuntime, cache: Cache) -> Callable[[], None]:
    def once() -> None:
        cache.truncate(CONTEXT - LINE_MOVE_TOKENS)
        for _ in range(1 + LINE_TOKENS):
            cache.append(runtime.forward(Rows(ids(1), places(runtime, cache.length, 1)), cache), range(1))

    return once


def moved_tokens(tokenizer: Tokenizer, context: int) -> dict[str, float]:
    """The number of tokens encoded on a move by a line in real files: the text nearby, which moves along, and the
    new text before the cursor. Tokens are counted, not timed, so that other programs do not disturb it."""
    counts: dict[str, list[int]] = {"up": [], "down": []}
    budget = budget_for(context)
    for row in {row["path"]: row for row in read(ROWS, 1 << 30)}.values():
        here, *moved = around_the_middle(row)
        frozen = freeze(tokenizer, here, budget)
        before = lay_out(tokenizer, here, frozen, budget).ids
        for found, asked in zip(counts.values(), moved, strict=True):
            after = lay_out(tokenizer, asked, frozen, budget).ids
            found.append(len(after) - common_prefix([before], [after]))
    print("\ntokens encoded by moving a line: " + ", ".join(f"{name} {shown(found)}" for name, found in counts.items()))
    return {name: statistics.median(found) for name, found in counts.items()}


def around_the_middle(row: dict) -> list[InfillRequest]:
    """Requests at the end of a file's middle line, of the line above and of the line below."""
    lines = (row["prefix"] + row["middle"] + row["suffix"]).splitlines(keepends=True)
    middle = len(lines) // 2 + 1
    ends = [len("".join(lines[:until]).removesuffix("\n")) for until in (middle, middle - 1, middle + 1)]
    window = Window(row["path"], row["language"], "".join(lines))
    return [InfillRequest(session="", windows=(window,), spans=(Span(0, end, end, "line"),)) for end in ends]
