"""What an answer costs: forwards of our engine against llama.cpp token by token, a keystroke, and how cost grows.

    python -m bench.decode [--preset quicksilver] [--rounds 9] [--plot docs/benchmarks]
    python -m bench.decode --model FOLDER --set FIM.jsonl [--limit 60]     and answers, with a trained model

Without a model the weights are random: times are real, answers are not. Both sides alternate in one process, with the
same shape, threads and context; the peer needs the extra `peers` and is left out, and said to be, where it is missing.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from bench.agreement import ROWS, SHIPPED, agreement
from bench.answers import compare, read
from bench.openvino_shapes import filled, ids, random_model, started
from bench.peers import QUANTISATIONS, LlamaPeer, write_gguf
from bench.replaying.usage import busy
from mercury_engine.api import InfillRequest, Span, Window
from mercury_engine.model.config import PRESETS, TOKENIZER_FILE
from mercury_engine.model.openvino_runtime import OpenvinoRuntime, load
from mercury_engine.model.runtime import Cache, Rows
from mercury_engine.tokens.layout import budget_for, freeze, lay_out
from mercury_engine.tokens.prefix import common_prefix
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_training import plot

EDITS = ROWS.with_name("next_edit.jsonl")
CONTEXT = 1024
ANSWERS = (16, 32, 64)
FORWARDS = (1, 2, 4)
LINE_TOKENS = 9
CANVAS = 16
LINE_MOVE_TOKENS = 78
"""What moving down a line encodes, in the median: see `moved_tokens`."""
SUFFIX_TOKENS = 256
MEASURED = """
import sys
from pathlib import Path
from bench.decode import CONTEXT, keystroke_passes
from bench.openvino_shapes import filled
from mercury_engine.model.openvino_runtime import load
runtime = load(Path(sys.argv[1]))
for once in keystroke_passes(runtime, filled(runtime, CONTEXT)).values():
    once()
status = Path("/proc/self/status").read_text()
print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))
"""
"""A process of its own that has read a full context and answered: what a user's engine weighs."""

GROWTH_CONTEXTS = (256, 512, 1024, 2048, 4096)
GROWTH_CANVASES = (8, 16, 32, 64)

Times = dict[str, list[float]]


def main() -> None:
    options = arguments()
    with tempfile.TemporaryDirectory() as directory:
        folder = options.model or random_model(options.preset, Path(directory))
        start = started(folder)
        runtime = load(folder)
        print(
            f"{runtime.config.name}, {runtime.precision}, {platform.machine()}, {os.cpu_count()} cores, "
            f"{runtime.threads} threads, context {CONTEXT}, medians of {options.rounds} turns [p10 p90], milliseconds"
        )
        figures = {
            **answers(runtime, Path(directory), options.rounds),
            **keystrokes(runtime, options.rounds),
            "engine_rss_mb": resident_mb(folder),
            "cold_start_s": round(start["seconds"], 2),
        }
        if options.plot:
            figures["growth"] = growth(folder, runtime, options.plot, options.rounds)
        figures["line_move_tokens"] = moved_tokens(Tokenizer.load(SHIPPED / TOKENIZER_FILE), runtime.config.context)
        if options.set:
            figures["matched"] = compare(folder, options.set, options.edits, options.limit)
            figures["agreement"] = agreement(folder, read(options.set, options.limit))
    about = {
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "threads": runtime.threads,
        "shape": msgspec.to_builtins(runtime.config),
        "precision": runtime.precision,
    }
    print(json.dumps({"model": runtime.config.name, **about, "context": CONTEXT, **figures}))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=sorted(PRESETS), default="quicksilver")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--set", type=Path)
    parser.add_argument("--edits", type=Path, default=EDITS, help="rows of edits, answered beside those of the set")
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--plot", type=Path, help="draw how cost grows into this folder")
    return parser.parse_args()


# An answer of so many tokens, after one typed character


def answers(runtime: OpenvinoRuntime, directory: Path, rounds: int) -> dict[str, object]:
    cache = filled(runtime, CONTEXT)
    peers = opened_peers(runtime, directory)
    print(f"\n{'tokens':>6}{'forwards':>9}  {'ours':24}" + "".join(f"{name:28}" for name in peers) + "speed-up")
    figures: dict[str, object] = {"peers": sorted(peers)}
    for tokens in ANSWERS:
        variants = {f"k{k}": canvas_answer(runtime, cache, tokens, k) for k in FORWARDS}
        variants |= {name: peer_answer(peer, tokens) for name, peer in peers.items()}
        times = alternate(variants, rounds)
        for k in FORWARDS:
            figures |= answer_row(times, list(peers), tokens, k)
    figures |= fim_order(peers, rounds)
    for peer in peers.values():
        peer.close()
    return figures


def opened_peers(runtime: OpenvinoRuntime, directory: Path) -> dict[str, LlamaPeer]:
    """llama.cpp in both quantisations, its prompt cache filled as ours is."""
    try:
        import gguf  # noqa: F401
        import llama_cpp  # noqa: F401
    except ImportError as error:
        print(f"no peer: {error}; pip install 'mercury-ls[peers]'")
        return {}
    threads = min(2, os.cpu_count() or 1)
    peers = {}
    for kind in QUANTISATIONS:
        path = write_gguf(runtime.config, directory / f"{kind}.gguf", kind)
        peers[kind] = LlamaPeer(path, threads)
        peers[kind].read(ids(CONTEXT))
    return peers


def canvas_answer(runtime: OpenvinoRuntime, cache: Cache, tokens: int, forwards: int) -> Callable[[], None]:
    """The typed token and the canvas in one forward, then the canvas again: what K denoising passes cost."""

    def once() -> None:
        cache.truncate(CONTEXT)
        first = runtime.forward(rows(runtime, CONTEXT, 1, tokens), cache)
        cache.append(first, range(1))
        for _ in range(forwards - 1):
            runtime.forward(rows(runtime, CONTEXT + 1, 0, tokens), cache)

    return once


def rows(runtime: OpenvinoRuntime, start: int, new: int, canvas: int) -> Rows:
    """Clean rows and a canvas behind them, with the logits that the decoder reads: of the last clean row, and of all
    slots but the last."""
    count = new + canvas
    mask = np.ones((count, start + count), bool)
    mask[:new, start:] = np.tri(new, count, dtype=bool)
    drafting, wanted = np.arange(count) >= new, range(max(new - 1, 0), count - 1)
    return Rows(ids(count), places(runtime, start, count), mask_RC=mask, drafting_R=drafting, wanted=wanted)


def places(runtime: OpenvinoRuntime, start: int, count: int) -> np.ndarray:
    """Positions, as far as the model knows any: what a pass costs does not depend on them."""
    return np.minimum(start + np.arange(count), runtime.config.context - 1).astype(np.int32)


def peer_answer(peer: LlamaPeer, tokens: int) -> Callable[[], None]:
    def once() -> None:
        peer.keep(CONTEXT)
        peer.answer(ids(1), tokens)

    return once


def answer_row(times: Times, peers: list[str], tokens: int, forwards: int) -> dict[str, object]:
    ours = times[f"k{forwards}"]
    line = f"{tokens:6}{forwards:9}  {shown(ours):24}" + "".join(f"{name} {shown(times[name]):22}" for name in peers)
    if not peers:
        print(line)
        return {f"speedup_k{forwards}_s{tokens}": None}
    best = min(peers, key=lambda name: statistics.median(times[name]))
    speedup = statistics.median(b / a for a, b in zip(ours, times[best], strict=True))
    print(f"{line}{speedup:6.2f} x")
    return {f"speedup_k{forwards}_s{tokens}": round(speedup, 2)}


def fim_order(peers: dict[str, LlamaPeer], rounds: int) -> dict[str, object]:
    """As llama.vim sends it: prefix, then suffix, then middle. A typed character makes it read the suffix again."""
    if not peers:
        return {}
    variants = {}
    for name, peer in peers.items():

        def once(peer: LlamaPeer = peer) -> None:
            peer.keep(CONTEXT - SUFFIX_TOKENS)
            peer.read(ids(1 + SUFFIX_TOKENS))
            peer.answer(ids(1), 31)

        variants[name] = once
    times = alternate(variants, max(rounds // 2, 3))
    for name, values in times.items():
        print(f"    32 tokens in llama.vim's order, suffix of {SUFFIX_TOKENS} read again: {name} {shown(values)}")
    return {"fim_order_ms": {name: round(statistics.median(values), 1) for name, values in times.items()}}


# A keystroke


def keystrokes(runtime: OpenvinoRuntime, rounds: int) -> dict[str, object]:
    """From the typed token to a verified line of nine: draft and verify; the same after a move to another line, with
    one core busy, and token by token."""
    variants = keystroke_passes(runtime, filled(runtime, CONTEXT))
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


def keystroke_passes(runtime: OpenvinoRuntime, cache: Cache) -> dict[str, Callable[[], None]]:
    return {
        "keystroke": verified_line(runtime, cache, 1),
        "line_move": verified_line(runtime, cache, LINE_MOVE_TOKENS),
        "autoregressive": stepped_line(runtime, cache),
    }


def resident_mb(folder: Path) -> int:
    found = subprocess.run([sys.executable, "-c", MEASURED, str(folder)], capture_output=True, check=True, text=True)
    return round(int(found.stdout) / 1024)


def verified_line(runtime: OpenvinoRuntime, cache: Cache, new: int) -> Callable[[], None]:
    """Two forwards: what is new with a canvas, then the draft of nine, causally."""

    def once() -> None:
        cache.truncate(CONTEXT - LINE_MOVE_TOKENS)
        first = runtime.forward(rows(runtime, cache.length, new, CANVAS), cache)
        cache.append(first, range(new))
        draft = runtime.forward(Rows(ids(LINE_TOKENS), places(runtime, cache.length, LINE_TOKENS)), cache)
        cache.append(draft, range(LINE_TOKENS))

    return once


def stepped_line(runtime: OpenvinoRuntime, cache: Cache) -> Callable[[], None]:
    def once() -> None:
        cache.truncate(CONTEXT - LINE_MOVE_TOKENS)
        for _ in range(1 + LINE_TOKENS):
            cache.append(runtime.forward(Rows(ids(1), places(runtime, cache.length, 1)), cache), range(1))

    return once


def moved_tokens(tokenizer: Tokenizer, context: int) -> dict[str, float]:
    """How many tokens a move by a line encodes in real files: the text nearby, which moves along, and what came to
    stand before the cursor. Counted, so that no other program disturbs it."""
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
    """At the end of a file's middle line, of the one above it and of the one below."""
    lines = (row["prefix"] + row["middle"] + row["suffix"]).splitlines(keepends=True)
    middle = len(lines) // 2 + 1
    ends = [len("".join(lines[:until]).removesuffix("\n")) for until in (middle, middle - 1, middle + 1)]
    window = Window(row["path"], row["language"], "".join(lines))
    return [InfillRequest(session="", windows=(window,), spans=(Span(0, end, end, "line"),)) for end in ends]


# How cost grows


def growth(folder: Path, runtime: OpenvinoRuntime, target: Path, rounds: int) -> dict[str, list[tuple[int, float]]]:
    """Forwards by cached columns, for each canvas; caches may be longer than the model was made for."""
    lines: dict[str, list[tuple[int, float]]] = {f"canvas {size}": [] for size in GROWTH_CANVASES}
    for context in GROWTH_CONTEXTS:
        cache = stretched(runtime, context)
        variants = {f"canvas {size}": canvas_pass(runtime, cache, size) for size in GROWTH_CANVASES}
        for name, values in alternate(variants, rounds).items():
            lines[name].append((context, round(statistics.median(values), 2)))
    plot.write(
        target / "decode-growth.svg",
        f"One forward of {runtime.config.name} ({runtime.precision})",
        "tokens in the cache",
        "milliseconds",
        lines,
    )
    return lines


def stretched(runtime: OpenvinoRuntime, length: int) -> Cache:
    cache = runtime.cache()
    for start in range(0, length, 256):
        positions = np.minimum(np.arange(start, start + 256), runtime.config.context - 1).astype(np.int32)
        cache.append(runtime.forward(Rows(ids(256), positions, wanted=[]), cache), range(256))
    return cache


def canvas_pass(runtime: OpenvinoRuntime, cache: Cache, size: int) -> Callable[[], None]:
    wanted = rows(runtime, cache.length, 0, size)

    def once() -> None:
        runtime.forward(wanted, cache)

    return once


# What the sections share


def alternate(variants: dict[str, Callable[[], None]], rounds: int) -> Times:
    """Milliseconds of each, taking turns; a first turn is not counted."""
    times: Times = {name: [] for name in variants}
    for number in range(rounds + 1):
        for name, once in variants.items():
            began = time.perf_counter()
            once()
            if number:
                times[name].append(1000 * (time.perf_counter() - began))
    return times


def shown(values: list[float]) -> str:
    low, high = np.percentile(values, (10, 90))
    return f"{statistics.median(values):.1f} [{low:.1f} {high:.1f}]"


if __name__ == "__main__":
    main()
