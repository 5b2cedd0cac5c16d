"""Whole passes of a model on a GPU: one in a graph, an answer after a keystroke, many sessions, and their cost."""

import statistics
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bench.kernels.clock import replayed_us
from mercury_engine.api import Gap
from mercury_engine.decode.canvas import Canvas, fuse, masked
from mercury_engine.engine import Resources, open_engine
from mercury_engine.model.config import ModelConfig
from mercury_engine.model.gpu.pages import PageCache
from mercury_engine.model.gpu.runtime import GpuRuntime
from mercury_engine.model.gpu.step import Backends
from mercury_engine.model.gpu.weights import Layer, Network
from mercury_engine.model.network import rotations
from mercury_engine.model.runtime import Pass
from mercury_kernels.head import Head
from mercury_kernels.linear import Weight

QUICKSILVER = ModelConfig(
    name="quicksilver",
    width=896,
    layers=24,
    heads=14,
    kv_heads=2,
    head_width=64,
    feed_forward=4864,
    vocabulary=47_413,
    context=2048,
    qk_norm=False,
    qkv_bias=True,
    rope_theta=1e6,
)

DREAM = ModelConfig(
    name="dream-7b",
    width=3584,
    layers=28,
    heads=28,
    kv_heads=4,
    head_width=128,
    feed_forward=18_944,
    vocabulary=152_064,
    context=2048,
    qk_norm=False,
    qkv_bias=True,
    tied=False,
    rope_theta=1e6,
)

MODELS = {config.name: config for config in (QUICKSILVER, DREAM)}

TOLERANCE = 5e-2
"""Relative to the norm of all logits: dozens of layers in bfloat16, rounded in different places."""

CANVAS = 32
ROUNDS = 30


def random_network(
    config: ModelConfig, device: str, dtype: torch.dtype = torch.bfloat16, *, int8: bool = False
) -> Network:
    """Random weights created on the device: times are real, answers are not."""
    random = torch.Generator(device).manual_seed(0)

    def normal(*size: int) -> Tensor:
        return torch.randn(size, generator=random, device=device, dtype=dtype).mul_(0.02)

    def weight(outer: int, inner: int) -> Weight:
        if not int8:
            return normal(outer, inner), None
        values = torch.randint(-127, 128, (outer, inner), generator=random, dtype=torch.int8, device=device)
        return values, torch.full((outer,), 0.02 / 73, device=device)

    width, fed = config.width, config.feed_forward
    queries, keys = config.heads * config.head_width, config.kv_heads * config.head_width

    def ones(size: int) -> Tensor:
        return torch.ones(size, device=device, dtype=dtype)

    def layer() -> Layer:
        return Layer(
            ones(width),
            weight(queries + 2 * keys, width),
            normal(queries + 2 * keys) if config.qkv_bias else None,
            (ones(config.head_width), ones(config.head_width)) if config.qk_norm else None,
            weight(width, queries),
            None,
            ones(width),
            weight(2 * fed, width),
            None,
            weight(width, fed),
            None,
        )

    table = normal(config.vocabulary, width)
    tied = config.tied and not int8
    head = (table[: config.vocabulary], None) if tied else weight(config.vocabulary, width)
    turned = rotations(torch.arange(config.context, device=device)[None], config)
    halves = tuple(part[0, 0, :, : config.head_width // 2].contiguous() for part in turned)
    return Network(
        config,
        table,
        tuple(layer() for _ in range(config.layers)),
        Head(ones(width), head, config.norm_epsilon),
        halves,
    )


def pass_bytes(config: ModelConfig, columns: int) -> int:
    """The bytes that a pass in bfloat16 must read: all weights, and the keys and values of this many columns."""
    kept = 2 * config.layers * config.kv_heads * config.head_width * columns
    return 2 * (_multiplied(config) + kept)


def pass_operations(config: ModelConfig, rows: int, columns: int) -> int:
    attended = 2 * config.layers * config.heads * config.head_width * columns
    return 2 * rows * (_multiplied(config) + attended)


def _multiplied(config: ModelConfig) -> int:
    """The weights in products: a separate embedding table is only looked up."""
    return config.parameters - (0 if config.tied else config.vocabulary * config.width)


def pass_us(runtime: GpuRuntime, rows: int, columns: int) -> float:
    """The duration by the GPU's own clock, with the copies and the choice of a token for each row."""
    return replayed_us(runtime.prepare(rows, columns))


def difference(runtime: GpuRuntime, columns: int) -> float:
    """How far the logits of a typed token and a canvas are from those that torch computes."""
    permitted, found = np.ones(runtime.config.vocabulary, bool), []
    for one in (runtime, GpuRuntime(runtime.network, device=runtime.device, backends=Backends("torch", "torch"))):
        cache = _filled(one, columns)
        forward = one.forward(_drafting(cache, permitted).rows, cache)
        found.append(np.asarray(forward.logits_WV, np.float64))
    return float(np.linalg.norm(found[0] - found[1]) / np.linalg.norm(found[1]))


def answer_ms(runtime: GpuRuntime, columns: int, tokens: int) -> float:
    """The time from a typed token to an answer of this many tokens on the host: a canvas, then its draft verified
    and kept."""
    cache = _filled(runtime, columns)
    permitted = np.ones(runtime.config.vocabulary, bool)

    def once() -> None:
        cache.truncate(columns)
        for number in range(2):
            passing = _drafting(cache, permitted) if not number else _verifying(cache, tokens, permitted)
            forward = runtime.forward(passing.rows, cache)
            _ = forward.logits_WV.choices.ids_WC
            cache.append(forward, range(1 if not number else tokens))

    return median_ms(once)


def together(runtime: GpuRuntime, columns: int, sessions: int) -> float:
    """The milliseconds in which this many sessions draft and verify a canvas each."""
    caches = [_filled(runtime, columns) for _ in range(sessions)]
    permitted = np.ones(runtime.config.vocabulary, bool)

    def once() -> None:
        for first in range(0, sessions, runtime.batch):
            own = caches[first : first + runtime.batch]
            for cache in own:
                cache.truncate(columns)
            drafted = runtime.forwards([_drafting(cache, permitted) for cache in own])
            for cache, forward in zip(own, drafted, strict=True):
                cache.append(forward, range(1))
            verified = runtime.forwards([_verifying(cache, CANVAS, permitted) for cache in own])
            for cache, forward in zip(own, verified, strict=True):
                cache.append(forward, range(CANVAS))

    return median_ms(once, rounds=5)


def served(folder: Path, sessions: int) -> dict[str, float]:
    """Completions for this many clients by the whole engine, taking turns as in the server."""
    engine = open_engine(folder, Resources(device="gpu"))

    def asked(number: int) -> Gap:
        return Gap(
            session=str(number),
            path=f"area_{number}.py",
            language="python",
            before=f"def area_{number}(width, height):\n    return ",
            after="\n",
            invoked=False,
        )

    def turns() -> float:
        waiting = deque(engine.fill(asked(number)) for number in range(sessions))
        started = time.perf_counter()
        while waiting:
            one = waiting.popleft()
            if not next(one).final:
                waiting.append(one)
        return time.perf_counter() - started

    turns()
    before = engine.report.settled
    seconds = turns()
    return {"sessions": sessions, "seconds": seconds, "tokens_a_second": (engine.report.settled - before) / seconds}


def cost(tokens_a_second: float, dollars_an_hour: float) -> float:
    """The dollars per million tokens: the GPU's price per hour over its tokens per hour."""
    return dollars_an_hour / (tokens_a_second * 3600) * 1e6


def _drafting(cache: PageCache, permitted: np.ndarray) -> Pass:
    return _passing(cache, 1, [Canvas(0, masked(CANVAS))], permitted)


def _verifying(cache: PageCache, tokens: int, permitted: np.ndarray) -> Pass:
    return _passing(cache, tokens, [], permitted)


def _passing(cache: PageCache, count: int, canvases: list[Canvas], permitted: np.ndarray) -> Pass:
    length = cache.length + count
    ids = 64 + np.arange(length) % 256
    return Pass(fuse(cache.length, ids, 0, canvases, permitted_V=permitted).rows, cache)


def _filled(runtime: GpuRuntime, columns: int) -> PageCache:
    cache = runtime.cache()
    while cache.length < columns:
        count = min(256, columns - cache.length)
        length = cache.length + count
        ids = 64 + np.arange(length) % 256
        forward = runtime.forward(fuse(cache.length, ids, count).rows, cache)
        cache.append(forward, range(count))
    return cache


def median_ms(once: Callable[[], None], rounds: int = ROUNDS) -> float:
    once()
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        once()
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times)
