"""A model of random int8 weights: times are real, answers are not."""

import subprocess
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from bench.decode.peers import random_weights
from mercury_engine.model.config import PRESETS, write_config
from mercury_engine.model.export import export
from mercury_engine.model.openvino_runtime import OpenvinoCache, OpenvinoRuntime
from mercury_engine.model.runtime import Rows

START = """
import sys, time
started = time.perf_counter()
import numpy as np
from pathlib import Path
from mercury_engine.model.openvino_runtime import load
from mercury_engine.model.runtime import Rows
runtime = load(Path(sys.argv[1]))
rows = np.arange(8, dtype=np.int32)
runtime.forward(Rows(rows + 64, rows, rows=[7]), runtime.cache())
print(time.perf_counter() - started)
"""


def random_model(preset: str, directory: Path) -> Path:
    """A random model: times are real, answers are not."""
    config = PRESETS[preset]
    source, target = directory / "float", directory / "int8"
    source.mkdir()
    save_file(dict(random_weights(config)), source / "model.safetensors")
    write_config(config, source / "config.json")
    export(source, target)
    return target


def started(folder: Path) -> float:
    """The seconds of a new process from its first import to its first logits."""
    answer = subprocess.run([sys.executable, "-c", START, str(folder)], capture_output=True, check=True, text=True)
    return float(answer.stdout)


def filled(runtime: OpenvinoRuntime, length: int) -> OpenvinoCache:
    cache = runtime.cache()
    for start in range(0, length, 256):
        positions = np.arange(start, min(start + 256, length), dtype=np.int32)
        cache.append(runtime.forward(Rows(ids(len(positions)), positions, rows=[]), cache), range(len(positions)))
    return cache


def ids(count: int) -> np.ndarray:
    return 64 + np.arange(count, dtype=np.int32) % 256
