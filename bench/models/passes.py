"""What the forwards of a diffusion model of 0.5 billion parameters cost on a processor, with random weights.

`python -m bench.models.passes`: the shape of Qwen2.5-Coder-0.5B, which open-dcoder and Tiny-A2D have, in int8; a gap of
32 tokens that is filled in so many forwards, with the text around it read again in each, or kept as it was first read.
"""

import argparse
import itertools
import json
import os
import resource
import time
from collections.abc import Callable, Iterator

import numpy as np

from bench.harness.measures import machine
from bench.models.shapes import config_of
from mercury_engine.families.blocks import encode, read_block
from mercury_engine.families.context import Around
from mercury_engine.families.family import family_named
from mercury_engine.families.gap import Gap
from mercury_engine.families.progress import Encoded, FamilyModel
from mercury_engine.families.slots import Slots
from mercury_engine.families.vocabulary import FamilyVocabulary
from mercury_engine.model.config import ModelConfig
from mercury_engine.model.export import SCALE, Weights, shapes
from mercury_engine.model.openvino_runtime import OpenvinoRuntime, native_precision

__all__ = ["main"]

SHAPE = "qwen2.5-coder-0.5b"
SPAN = 32
FORWARDS = (4, 8, 16)


class Silent:
    """A tokenizer of which only the special tokens are known."""

    added = frozenset()

    def __init__(self, vocabulary: int) -> None:
        self.token_bytes = (b"", *[b"a"] * (vocabulary - 1))

    def special(self, name: str) -> int:
        return 0

    def decode_bytes(self, ids: Iterator[int]) -> bytes:
        return b""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.models.passes", description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--prompts", type=int, nargs="+", default=[256, 512])
    options = parser.parse_args()
    config = config_of(SHAPE)
    runtime = OpenvinoRuntime(config, random_weights(config), threads=options.threads, precision=native_precision())
    print(f"{SHAPE}, random weights, {runtime.precision}, {options.threads} threads, a gap of {SPAN} tokens\n")
    figures = {f"prompt {size}": passes(runtime, size, options.rounds) for size in options.prompts}
    figures |= {f"block after {size}": block(runtime, size, options.rounds) for size in options.prompts}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"shape": SHAPE, "machine": machine(), "threads": options.threads, "peak_mib": peak} | figures))


def random_weights(config: ModelConfig) -> Weights:
    random, found = np.random.default_rng(0), {}
    for name, shape in shapes(config).items():
        if len(shape) == 1:
            found[name] = np.ones(shape, np.float32)
            continue
        found[name] = random.integers(-127, 128, shape, np.int8)
        found[name + SCALE] = np.full((shape[0], 1), 0.02 / 127, np.float32)
    return found


def passes(runtime: OpenvinoRuntime, size: int, rounds: int) -> dict[str, float]:
    """Milliseconds of a forward over everything, and over the gap alone; and of an answer in so many forwards."""
    model = model_of(runtime, "open-dcoder")
    text = Around(numbers(size * 2 // 3), numbers(size - size * 2 // 3), b"")

    def gap(encoded: Encoded | None) -> Gap:
        return Gap(model, text, Slots(model.vocabulary, SPAN, limit=SPAN), encoded)

    kept = gap(Encoded(runtime.cache()))
    kept.read()
    whole, alone = milliseconds(gap(None).read, rounds), milliseconds(kept.read, rounds)
    lengths = itertools.cycle((SPAN // 2, SPAN))

    def resized() -> None:
        kept.slots = Slots(model.vocabulary, next(lengths), limit=SPAN)
        kept.read()

    other, logits = milliseconds(resized, rounds), kept.read()
    chosen = milliseconds(lambda: model.vocabulary.choose(logits), rounds)
    print(
        f"prompt {size:4}: everything {whole:5.0f} ms · gap and what is behind {other:5.0f} ms · "
        f"gap alone {alone:5.0f} ms · choosing tokens {chosen:3.0f} ms"
    )
    found = {"all_ms": whole, "resized_ms": other, "gap_ms": alone, "choose_ms": chosen}
    for forwards in FORWARDS:
        exact = forwards * (whole + chosen)
        dual = whole + (forwards - 1) * alone + forwards * chosen
        print(f"  {forwards:2} forwards {exact:6.0f} ms · text kept {dual:6.0f} ms · {exact / dual:.1f} times as fast")
        found |= {f"exact_{forwards}": exact, f"dual_{forwards}": dual}
    return {name: round(value, 1) for name, value in found.items()}


def block(runtime: OpenvinoRuntime, size: int, rounds: int) -> dict[str, float]:
    """Milliseconds of a forward over a block of 32 behind encoded text, and of encoding the text."""
    model = model_of(runtime, "tiny-a2d-bd3lm")
    encoded = Encoded(runtime.cache())

    def read() -> None:
        encoded.keep(0)
        for _ in encode(model, encoded, numbers(size)):
            pass

    reading = milliseconds(read, max(1, rounds // 2))
    slots = Slots(model.vocabulary, SPAN, limit=SPAN)
    each = milliseconds(lambda: read_block(model, encoded, [], slots), rounds)
    print(f"block after {size:4} encoded tokens: {each:5.0f} ms a forward · encoding them {reading:6.0f} ms")
    return {"forward_ms": round(each, 1), "encode_ms": round(reading, 1)}


def model_of(runtime: OpenvinoRuntime, name: str) -> FamilyModel:
    family = family_named(name)
    assert family is not None
    size = runtime.config.vocabulary
    return FamilyModel(runtime, family, FamilyVocabulary(family, Silent(size), size))


def numbers(count: int) -> list[int]:
    return [1000 + number % 9000 for number in range(count)]


def milliseconds(once: Callable[[], object], rounds: int) -> float:
    """The fastest after two runs that prepare: other programs only make it slower."""
    times = []
    for _ in range(rounds + 2):
        started = time.perf_counter()
        once()
        times.append((time.perf_counter() - started) * 1000)
    return min(times[2:])


if __name__ == "__main__":
    main()
