"""What a forward costs on this processor by rows, cached columns and threads, with random int8 weights.

python -m bench.openvino_shapes [--preset quicksilver | --model FOLDER] [--rounds 20]

Variants take turns, so that whatever else the machine does meets them all. Wall time is what a user waits for;
`cpu` is the processor time of one thread, which other programs disturb least.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from bench.replaying.usage import busy
from mercury_engine.model.config import PRESETS, write_config
from mercury_engine.model.export import export, read, shapes
from mercury_engine.model.openvino_runtime import Contention, OpenvinoCache, OpenvinoRuntime, native_precision
from mercury_engine.model.runtime import Rows

ROWS = (1, 2, 4, 8, 16, 24, 32, 64)
CONTEXTS = (256, 1024, 2048)
FUSED = ((1, 32), (4, 32), (16, 32))
EARLIER = {(1, 1024): 4.5, (4, 1024): 5.7, (8, 1024): 7.3, (32, 1024): 18.7}
"""Two threads, OpenVINO with weights from nncf, same shape: the baseline that this runtime started from. Up to 8
rows it had no head."""

START = """
import json, sys, time
started = time.perf_counter()
import numpy as np
from pathlib import Path
from mercury_engine.model.openvino_runtime import load
from mercury_engine.model.runtime import Rows
runtime = load(Path(sys.argv[1]))
rows = np.arange(8, dtype=np.int32)
runtime.forward(Rows(rows + 64, rows, wanted=[7]), runtime.cache())
seconds = time.perf_counter() - started
status = Path("/proc/self/status")
lines = status.read_text().splitlines() if status.exists() else []
resident = [int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS")]
found = {"seconds": seconds, "cpu": time.process_time(), "torch": "torch" in sys.modules, "rss_mb": resident}
print(json.dumps(found))
"""


class Steady(Contention):
    """Never gives a core back."""

    def record(self, shape: tuple[int, ...], seconds: float) -> None:
        """Nothing: every pass keeps its threads."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--preset", choices=sorted(PRESETS), default="quicksilver")
    arguments.add_argument("--model", type=Path)
    arguments.add_argument("--rounds", type=int, default=20)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        folder = options.model or random_model(options.preset, Path(directory))
        measure(folder, options.rounds)


def random_model(preset: str, directory: Path) -> Path:
    """Times are real, answers are not."""
    config, generator = PRESETS[preset], np.random.default_rng(0)
    weights = {
        name: 0.02 * generator.standard_normal(shape, np.float32) if len(shape) == 2 else np.ones(shape, np.float32)
        for name, shape in shapes(config).items()
    }
    source, target = directory / "float", directory / "int8"
    source.mkdir()
    save_file(weights, source / "model.safetensors")
    write_config(config, source / "config.json")
    export(source, target)
    return target


def measure(folder: Path, rounds: int) -> None:
    start = started(folder)
    runtimes = {threads: steady(folder, threads) for threads in (1, 2)}
    config, precision = runtimes[1].config, runtimes[1].precision
    print(f"{config.name}, {precision}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    print(f"start to first answer {start['seconds']:.2f} s (cpu {start['cpu']:.2f}), MB then {start['rss_mb']}\n")
    contexts = [context for context in CONTEXTS if context <= config.context]
    table = [shape_row(runtimes, rows, context, rounds) for context in contexts for rows in ROWS]
    middle = contexts[len(contexts) // 2]
    fused = [fused_row(runtimes[2], middle, new, canvas, rounds) for new, canvas in FUSED]
    crowd = crowded(folder, runtimes, middle, rounds)
    print(
        json.dumps(
            {
                "machine": platform.platform(),
                "cores": os.cpu_count(),
                "model": config.name,
                "precision": precision,
                "start_s": round(start["seconds"], 3),
                "start_cpu_s": round(start["cpu"], 3),
                "torch_imported": start["torch"],
                "rss_mb": next(iter(start["rss_mb"]), None),
                "shapes": table,
                "fused": fused,
                "one_core_busy": crowd,
            }
        )
    )


def started(folder: Path) -> dict[str, Any]:
    """A new process, from its first import to its first logits."""
    answer = subprocess.run([sys.executable, "-c", START, str(folder)], capture_output=True, check=True, text=True)
    return json.loads(answer.stdout)


def steady(folder: Path, threads: int) -> OpenvinoRuntime:
    config, weights = read(folder)
    return OpenvinoRuntime(config, weights, threads=threads, precision=native_precision(), contention=Steady())


def shape_row(runtimes: dict[int, OpenvinoRuntime], rows: int, context: int, rounds: int) -> dict[str, object]:
    passes = {str(threads): prepared(runtime, filled(runtime, context), rows) for threads, runtime in runtimes.items()}
    times = taking_turns(passes, rounds)
    cpu = np.median(processor_times(passes["1"], rounds))
    earlier = EARLIER.get((rows, context))
    one, two = (summary(times[threads]) for threads in ("1", "2"))
    print(
        f"{rows:3} rows, {context:4} columns: 1 thread {shown(one)} (cpu {cpu:6.2f}), 2 threads {shown(two)}"
        + (f", earlier {earlier}" if earlier else "")
    )
    return {"rows": rows, "context": context, "one": one, "two": two, "cpu": round(float(cpu), 2)}


def fused_row(runtime: OpenvinoRuntime, context: int, new: int, canvas: int, rounds: int) -> dict[str, object]:
    cache = filled(runtime, context)
    encode, draft = prepared(runtime, cache, new), prepared(runtime, cache, canvas)

    def separate() -> None:
        encode()
        draft()

    times = taking_turns({"separate": separate, "fused": prepared(runtime, cache, new + canvas)}, rounds)
    apart, together = (summary(times[name]) for name in ("separate", "fused"))
    print(f"{new} new rows and a canvas of {canvas}: separate {shown(apart)}, fused {shown(together)}")
    return {"new": new, "canvas": canvas, "separate": apart, "fused": together}


def crowded(folder: Path, runtimes: dict[int, OpenvinoRuntime], context: int, rounds: int) -> dict[str, object]:
    """32 rows while another process spins: two threads, one, and the number chosen at run time."""
    config, weights = read(folder)
    choosing = OpenvinoRuntime(config, weights, threads=2, precision=native_precision())
    variants = {"1": runtimes[1], "2": runtimes[2], "chosen": choosing}
    passes = {name: prepared(runtime, filled(runtime, context), 32) for name, runtime in variants.items()}
    taking_turns(passes, rounds)
    with busy():
        times = taking_turns(passes, 2 * rounds)
    found = {name: summary(values) for name, values in times.items()}
    print("one core busy: " + ", ".join(f"{name} {shown(value)}" for name, value in found.items()))
    return found


def filled(runtime: OpenvinoRuntime, length: int) -> OpenvinoCache:
    cache = runtime.cache()
    for start in range(0, length, 256):
        positions = np.arange(start, min(start + 256, length), dtype=np.int32)
        cache.append(runtime.forward(Rows(ids(len(positions)), positions, wanted=[]), cache), range(len(positions)))
    return cache


def prepared(runtime: OpenvinoRuntime, cache: OpenvinoCache, rows: int) -> Callable[[], None]:
    positions = np.minimum(cache.length + np.arange(rows), runtime.config.context - 1).astype(np.int32)
    wanted = Rows(ids(rows), positions)

    def once() -> None:
        runtime.forward(wanted, cache)

    once()
    return once


def ids(count: int) -> np.ndarray:
    return 64 + np.arange(count, dtype=np.int32) % 256


def taking_turns(passes: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds. Each variant runs twice and the second is taken: the first fetches its weights into the cache."""
    times: dict[str, list[float]] = {name: [] for name in passes}
    for _ in range(rounds):
        for name, once in passes.items():
            once()
            begun = time.perf_counter()
            once()
            times[name].append(1e3 * (time.perf_counter() - begun))
    return times


def processor_times(once: Callable[[], None], rounds: int) -> list[float]:
    times = []
    for _ in range(rounds):
        begun = time.process_time()
        once()
        times.append(1e3 * (time.process_time() - begun))
    return times


def summary(times: list[float]) -> list[float]:
    """Median, tenth and ninetieth percentile."""
    return [round(float(value), 2) for value in np.percentile(times, (50, 10, 90))]


def shown(value: list[float]) -> str:
    return f"{value[0]:6.2f} [{value[1]:.2f} {value[2]:.2f}]"


if __name__ == "__main__":
    main()
