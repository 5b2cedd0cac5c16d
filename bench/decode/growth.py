"""The growth of a forward's cost with the cached context and with the canvas."""

import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench.decode.forwards import rows
from bench.decode.random_model import ids
from bench.decode.turns import alternate
from mercury_engine.model.openvino_runtime import OpenvinoRuntime
from mercury_engine.model.runtime import Cache, Rows
from mercury_training import plot

GROWTH_CONTEXTS = (256, 512, 1024, 2048, 4096)

GROWTH_CANVASES = (8, 16, 32, 64)


def growth(runtime: OpenvinoRuntime, target: Path, rounds: int) -> dict[str, list[tuple[int, float]]]:
    """Forwards by cached columns, for each canvas; caches may be longer than the model's context."""
    lines: dict[str, list[tuple[int, float]]] = {f"canvas {size}": [] for size in GROWTH_CANVASES}
    for context in GROWTH_CONTEXTS:
        cache = _stretched(runtime, context)
        variants = {f"canvas {size}": _canvas_pass(runtime, cache, size) for size in GROWTH_CANVASES}
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


def _stretched(runtime: OpenvinoRuntime, length: int) -> Cache:
    cache = runtime.cache()
    for start in range(0, length, 256):
        positions = np.minimum(np.arange(start, start + 256), runtime.config.context - 1).astype(np.int32)
        cache.append(runtime.forward(Rows(ids(256), positions, rows=[]), cache), range(256))
    return cache


def _canvas_pass(runtime: OpenvinoRuntime, cache: Cache, size: int) -> Callable[[], None]:
    wanted = rows(runtime, cache.length, 0, size)

    def once() -> None:
        runtime.forward(wanted, cache)

    return once
