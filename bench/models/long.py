"""Long prompts on random weights: what a chunk costs behind a text of each length, and what memory all of it takes.

    python -m bench.models.long [--lengths 1024,4096,16384,65536,131072] [--layers 4] [--width 256] [--threads 2]

A small shape: time and memory grow with layers, heads and width, the shape of the curve does not. The cache is filled
with the keys and values of one chunk again and again, so that a length costs no reading; the time to read all of it is
the sum over its chunks, interpolated. `needed` is what the engine counts on before it begins.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec
import numpy as np

from bench.harness.measures import machine
from bench.harness.usage import resident_mb
from mercury_engine.model.config import TINY, ModelConfig
from mercury_engine.model.network import create
from mercury_engine.model.openvino_runtime import OpenvinoRuntime, Unmoved, native_precision
from mercury_engine.model.room import CHUNK, chunk_at, reading_bytes
from mercury_engine.model.runtime import Cache, Rows, Runtime

__all__ = ["main"]

LENGTHS = (1024, 4096, 16_384, 65_536, 131_072)
ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)), help="tokens")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    lengths = [int(length) for length in given.lengths.split(",")]
    config = shape(given.layers, given.width, max(lengths) + CHUNK)
    weights = {name: weight.numpy() for name, weight in create(config, 0).state_dict().items()}
    runtime = OpenvinoRuntime(
        config, weights, threads=given.threads, precision=native_precision(), contention=Unmoved()
    )
    found = list(measured(runtime, lengths, resident_mb(os.getpid()) or 0.0))
    told = f"{config.layers} layers, width {config.width}, {config.heads} heads, {config.kv_heads} of keys"
    print(f"{machine()}; {told}, {given.threads} threads")
    names = f"{'ms a chunk':>12}{'ms a row':>10}{'read s':>9}{'cache MiB':>11}{'needed':>8}{'resident':>10}"
    print(f"{'tokens':>8}{'rows':>6}{names}")
    for each in found:
        print(
            f"{each['tokens']:8}{each['rows']:6}{each['chunk_ms']:12.1f}{each['chunk_ms'] / each['rows']:10.2f}"
            f"{each['read_s']:9.1f}{each['cache_mib']:11.0f}{each['needed_mib']:8.0f}{each['resident_mb']:10.0f}"
        )
    print(json.dumps({"machine": machine(), "layers": config.layers, "width": config.width, "found": found}))


def shape(layers: int, width: int, context: int) -> ModelConfig:
    return msgspec.structs.replace(
        TINY,
        layers=layers,
        width=width,
        heads=width // 64,
        kv_heads=max(1, width // 256),
        head_width=64,
        feed_forward=3 * width,
        context=context,
        hints=False,
    )


def measured(runtime: Runtime, lengths: Sequence[int], before: float) -> Iterator[dict[str, float]]:
    cache, rates = runtime.cache(), [(0, 0.0)]
    for length in sorted(lengths):
        fill(runtime, cache, length)
        rows = chunk_at(length)
        taken = statistics.median(timed(runtime, cache, rows) for _ in range(ROUNDS))
        rates.append((length, taken / rows))
        yield {
            "tokens": length,
            "rows": rows,
            "chunk_ms": taken * 1000,
            "read_s": reading_seconds(rates),
            "cache_mib": cache.bytes / 2**20,
            "needed_mib": reading_bytes(runtime, cache, length) / 2**20,
            "resident_mb": (resident_mb(os.getpid()) or 0.0) - before,
        }


def fill(runtime: Runtime, cache: Cache, length: int) -> None:
    """Up to so many columns, with one chunk's keys and values."""
    forward = runtime.forward(chunk(0, CHUNK), runtime.cache())
    while cache.length < length:
        cache.append(forward, range(min(CHUNK, length - cache.length)))


def chunk(start: int, rows: int) -> Rows:
    return Rows(np.arange(200, 200 + rows, dtype=np.int32), np.arange(start, start + rows, dtype=np.int32), wanted=[])


def timed(runtime: Runtime, cache: Cache, rows: int) -> float:
    began = time.perf_counter()
    runtime.forward(chunk(cache.length, rows), cache)
    return time.perf_counter() - began


def reading_seconds(rates: Sequence[tuple[int, float]]) -> float:
    """The integral of seconds a row over the rows, by trapezoids; the first rate holds from the start."""
    points = [(0, rates[1][1]), *rates[1:]]
    return sum((b - a) * (one + other) / 2 for (a, one), (b, other) in pairwise(points))


if __name__ == "__main__":
    main()
