"""How quickly models read and write on this CPU, beside llama.cpp with the layers and bits of the first one.

    python -m bench.pace MODEL … [--llama-bench PROGRAM] [--rounds N]

A model is a name, an added one's too, or a folder. They take turns; the figures are medians over the rounds, with the
least and the most. `read` is of 512 tokens in chunks, as the engine reads them, and beside it what that makes of a
float32 product of these shapes in the same round; `rows` are passes behind them. The last line is JSON.
"""

import argparse
import json
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np

from bench.harness.measures import machine
from mercury_engine import model_folders
from mercury_engine.decode.canvas import fuse
from mercury_engine.engine import open_runtime
from mercury_engine.model.decoder import open_decoder
from mercury_engine.model.openvino_runtime import OpenvinoRuntime
from mercury_engine.model.published import write_gguf
from mercury_engine.model.runtime import Cache, Resources, Rows, Runtime
from mercury_engine.record import read_record

TOKENS, CHUNK = 512, 256
PASSES = (1, 8, 32)
REPEATS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--llama-bench", metavar="PROGRAM")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    opened = {name: _opened(name) for name in given.models}
    rounds: dict[str, list[float]] = defaultdict(list)
    with TemporaryDirectory() as folder:
        layers, first = opened[given.models[0]]
        peer = write_gguf(layers, Path(folder)) if given.llama_bench else None
        for _ in range(given.rounds):
            for name, (_, runtime) in opened.items():
                for figure, value in measured(runtime):
                    rounds[f"{name} {figure}"].append(value)
            for figure, value in _llama(given.llama_bench, peer, first.threads) if peer else ():
                rounds[f"llama.cpp {figure}"].append(value)
    for name, values in rounds.items():
        print(f"{name:40}{median(values):10.1f}   {min(values):8.1f} to {max(values):.1f}")
    print(json.dumps({"machine": machine(), "rounds": rounds}))


def _opened(name: str) -> tuple[Path, OpenvinoRuntime]:
    if (folder := model_folders.resolve(name)) is None:
        raise SystemExit(f"{name} has no weights: name an installed model or its folder")
    record = read_record(folder)
    runtime = open_decoder(folder, record, Resources()) if record else open_runtime(folder)
    return folder, cast("OpenvinoRuntime", runtime)


def measured(runtime: Runtime) -> Iterator[tuple[str, float]]:
    config = runtime.config
    seconds = min(_read(runtime) for _ in range(2))
    layers = config.parameters - config.vocabulary * config.width * (1 if config.tied else 2)
    flops = 2 * TOKENS * layers
    yield "read, tokens/s", TOKENS / seconds
    yield "read, share of float32", flops / seconds / _float32_flops(config.width, config.feed_forward)
    cache = runtime.cache()
    cache.append(runtime.forward(fuse(0, np.zeros(TOKENS, np.int32), TOKENS - 1).rows, cache), [0] * TOKENS)
    for rows in PASSES:
        forward = fuse(TOKENS, np.zeros(TOKENS + rows, np.int32), TOKENS).rows
        yield f"{rows} rows, ms", 1000 * min(_seconds(runtime, forward, cache) for _ in range(REPEATS))


def _read(runtime: Runtime) -> float:
    cache, started = runtime.cache(), time.perf_counter()
    for start in range(0, TOKENS, CHUNK):
        rows = fuse(start, np.zeros(start + CHUNK, np.int32), start + CHUNK - 1).rows
        cache.append(runtime.forward(rows, cache), [0] * CHUNK)
    return time.perf_counter() - started


def _seconds(runtime: Runtime, rows: Rows, cache: Cache) -> float:
    started = time.perf_counter()
    runtime.forward(rows, cache)
    return time.perf_counter() - started


def _float32_flops(width: int, feed_forward: int) -> float:
    """Of a product of the largest matrices, each second."""
    left, right = np.ones((CHUNK, width), np.float32), np.ones((width, feed_forward), np.float32)
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        np.matmul(left, right)
        times.append(time.perf_counter() - started)
    return 2 * left.size * feed_forward / min(times)


def _llama(program: str, gguf: Path, threads: int) -> Iterator[tuple[str, float]]:
    command = [program, "-m", gguf, "-p", str(TOKENS), "-n", "16", "-r", "1", "-t", str(threads), "-o", "json"]
    told = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    for run in json.loads(told):
        figure, value = ("read, tokens/s", run["avg_ts"]) if run["n_prompt"] else ("1 rows, ms", 1000 / run["avg_ts"])
        yield figure, value


if __name__ == "__main__":
    main()
