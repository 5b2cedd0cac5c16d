"""The GPU's runtime against the reference model: the same logits, in the interpreter where there is no GPU."""

import functools
from itertools import product
from weakref import WeakSet, ref

import numpy as np
import pytest
import torch
from msgspec.structs import replace

pytest.importorskip("triton")

from mercury_engine.api import TooLongError
from mercury_engine.decode.canvas import Canvas, fuse, masked
from mercury_engine.model.config import TINY as WIDER
from mercury_engine.model.export import shapes
from mercury_engine.model.gpu import runtime as module
from mercury_engine.model.gpu.backends import CHUNK, KEYSTROKE
from mercury_engine.model.gpu.inputs import Bucket
from mercury_engine.model.gpu.runtime import GpuRuntime
from mercury_engine.model.gpu.step import ATTENTIONS, PRODUCTS, Backends
from mercury_engine.model.gpu.weights import prepared
from mercury_engine.model.quantize import quantize
from mercury_engine.model.room import Room, reading_bytes
from mercury_engine.model.runtime import Pass, Runtime
from mercury_engine.model.torch_runtime import of_weights
from mercury_kernels.reference import greedy_confidence
from mercury_training.models import SMALL

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # numpy computes in the interpreter
]

TINY = replace(WIDER, layers=1, width=32, heads=2, kv_heads=1, feed_forward=40, vocabulary=400)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
OURS, THEIRS = Backends(), Backends("torch", "torch")


def weights(config, *, int8=False, scale=0.1):
    """Large enough that every context says something else."""
    generator, found = np.random.default_rng(0), {}
    for name, shape in shapes(config).items():
        if len(shape) == 1 and "bias" not in name:
            found[name] = generator.uniform(0.5, 1.5, shape).astype(np.float32)
        else:
            found[name] = generator.normal(0, scale, shape).astype(np.float32)
            if int8 and len(shape) == 2:
                found[name], found[f"{name}.scale"] = quantize(found[name])
    return found


def pair(config=TINY, *, backends=OURS, int8=False, batch=4):
    given = weights(config, int8=int8)
    network = prepared(config, given, device=DEVICE, dtype=torch.float32)
    ours = GpuRuntime(network, device=DEVICE, backends=backends, batch=batch)
    return ours, reference_of(config, given)


def reference_of(config, given):
    """On the processor: on a GPU these would be our kernels once more."""
    return of_weights(config, given, device="cpu", precision="float32")


def ids(count, seed=0):
    return np.random.default_rng(seed).integers(64, TINY.vocabulary, count)


def rows_of(context, count, canvas=0, *, first=0, permitted=None):
    tokens = ids(context + count)
    canvases = [Canvas(count - 1, masked(canvas))] if canvas else []
    fused = fuse(context, tokens, first, canvases)
    fused.rows.permitted_V = permitted
    return fused.rows


def read(runtime, context):
    cache = runtime.cache()
    if context:
        cache.append(runtime.forward(rows_of(0, context, first=context), cache), range(context))
    return cache


def check_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-4)


def check_cached(cache, reference):
    for own, other in zip(cache.filled(), reference.filled(), strict=True):
        for part, expected in zip(own, other, strict=True):
            torch.testing.assert_close(part.cpu(), expected[0], rtol=0, atol=2e-4)


def check(context, count, canvas=0, config=TINY, **options):
    """A pass on a context that was read: the same logits, and the same keys and values behind it."""
    ours, theirs = pair(config, **options)
    rows = rows_of(context, count, canvas)
    cache, reference = read(ours, context), read(theirs, context)
    found, expected = ours.forward(rows, cache), theirs.forward(rows, reference)
    check_close(found.logits_WV, expected.logits_WV)
    cache.append(found, range(count))
    reference.append(expected, range(count))
    check_cached(cache, reference)


@pytest.mark.parametrize("backends", [OURS, THEIRS, Backends("torch", "triton"), Backends("triton", "torch")])
@pytest.mark.parametrize(("context", "count", "canvas"), [(0, 3, 0), (63, 1, 8)])
def test_pass_is_what_reference_computes(context, count, canvas, backends):
    check(context, count, canvas, config=replace(TINY, layers=2), backends=backends)


@pytest.mark.parametrize("backends", [OURS, THEIRS])
def test_int8_weights_stay_int8(backends):
    check(2, 1, 8, int8=True, backends=backends)
    runtime, _ = pair(int8=True)
    assert runtime.network.layers[0].heads[0].dtype == torch.int8


OTHERS = {
    "biased": {"qkv_bias": True, "output_bias": True, "feed_forward_bias": True, "qk_norm": False},
    "untied": {"tied": False, "embedding_scale": 8.0},
    "turned": {"rope_scale": 1.2},
}


@pytest.mark.parametrize("changed", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("backends", [OURS, THEIRS])
def test_other_architectures(changed, backends):
    check(2, 1, 8, config=replace(TINY, **changed), backends=backends)


@functools.cache
def shipped(config, int8):
    """A model of a real size, and the logits of a canvas behind 300 rows, which are too many for a graph."""
    given, rows = weights(config, int8=int8, scale=0.02), rows_of(300, 2, 32)
    theirs = reference_of(config, given)
    return given, rows, theirs.forward(rows, read(theirs, 300)).logits_WV


@pytest.mark.skipif(DEVICE == "cpu", reason="the interpreter computes wrongly in bfloat16")
@pytest.mark.parametrize(("config", "int8"), [(SMALL, True), (SMALL, False)])
@pytest.mark.parametrize("backends", [None, *(Backends(*names) for names in product(PRODUCTS, ATTENTIONS))])
def test_models_of_real_sizes_in_bfloat16(config, int8, backends):
    """As an engine opens them, `None` with the backends that are fastest here, before and after the pool has moved."""
    given, rows, expected = shipped(config, int8)
    ours = GpuRuntime(prepared(config, given, device=DEVICE, dtype=torch.bfloat16), device=DEVICE, backends=backends)
    cache = read(ours, 300)
    for grown in (False, False, True):
        if grown:
            ours._pool.take(ours._pool.free + 1)
        ours.forward(rows_of(0, 1), ours.cache())  # a smaller graph in the same memory
        found = np.asarray(ours.forward(rows, cache).logits_WV)
        assert np.linalg.norm(found - expected) < 5e-2 * np.linalg.norm(expected)


def test_passes_together_are_what_they_are_alone():
    ours, theirs = pair()
    drawn = [(5, 2, 8), (0, 3, 0), (70, 1, 16)]
    caches, references = [[read(runtime, context) for context, *_ in drawn] for runtime in (ours, theirs)]
    wishes = [rows_of(*wish) for wish in drawn]
    together = ours.forwards([Pass(rows, cache) for rows, cache in zip(wishes, caches, strict=True)])
    for rows, found, cache, reference in zip(wishes, together, caches, references, strict=True):
        expected = theirs.forward(rows, reference)
        check_close(found.logits_WV, expected.logits_WV)
        cache.append(found, range(2))
        reference.append(expected, range(2))
        check_cached(cache, reference)


def test_choices_are_those_of_the_logits():
    runtime, _ = pair()
    permitted = np.arange(TINY.vocabulary) % 5 == 2
    cache = read(runtime, 3)
    found = runtime.forward(rows_of(3, 2, 8, first=1, permitted=permitted), cache).logits_WV
    expected = greedy_confidence(np.where(permitted, found, -np.inf))
    assert found.choices.ids_WC[:, 0].tolist() == expected.ids.tolist()
    check_close(found.choices.probability_WC[:, 0], expected.probability)
    assert found[2].choices.ids_WC[0] == expected.ids[2]
    assert found[[3, 1]].choices.ids_WC[:, 0].tolist() == expected.ids[[3, 1]].tolist()
    shares = np.exp(np.where(permitted, found, -np.inf) - np.max(found[:, permitted], 1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    check_close(found.choices.probability_WC, np.take_along_axis(shares, found.choices.ids_WC, 1))
    every = np.ones(TINY.vocabulary, bool)
    again = runtime.forward(rows_of(3, 2, 8, first=1, permitted=every), cache).logits_WV
    assert again.choices.ids_WC[:, 0].tolist() == again.argmax(1).tolist()


def test_forward_is_kept_before_the_next_one_or_not_at_all():
    runtime, _ = pair()
    cache = runtime.cache()
    old = runtime.forward(rows_of(0, 2), cache)
    runtime.forward(rows_of(0, 2), cache)
    with pytest.raises(AssertionError, match="before the next one"):
        cache.append(old, range(2))


def test_logits_of_forward_outlast_the_next_one():
    ours, theirs = pair()
    rows, cache = rows_of(0, 2), ours.cache()
    first = ours.forward(rows, cache)
    ours.forward(rows_of(0, 2, 8), cache)
    check_close(first.logits_WV, theirs.forward(rows, theirs.cache()).logits_WV)


def test_growing_pool_keeps_what_it_holds():
    ours, theirs = pair()
    cache, reference = read(ours, 5), read(theirs, 5)
    ours._pool.take(ours._pool.free)
    rows = rows_of(5, 60)
    found, expected = ours.forward(rows, cache), theirs.forward(rows, reference)
    assert ours._pool.moves == 1
    check_close(found.logits_WV, expected.logits_WV)
    cache.append(found, [0, 2, 3])
    reference.append(expected, [0, 2, 3])
    check_cached(cache, reference)
    assert ours.prepare(3, 5)().shape == (4, TINY.width)


def test_runtime_is_what_an_engine_asks_for():
    runtime, _ = pair()
    asked = {name for name in {**vars(Runtime), **Runtime.__annotations__} if not name.startswith("_")}
    assert [name for name in sorted(asked) if not hasattr(runtime, name)] == []
    assert isinstance(runtime.forward(rows_of(0, 2), runtime.cache()).logits_WV, np.ndarray)
    found = runtime.forward(rows_of(0, 2, first=2), runtime.cache())
    assert found.logits_WV.shape == (0, TINY.vocabulary)
    cache = read(runtime, 65)
    assert cache.bytes_for(65) == cache.bytes == cache.bytes_for(128)
    assert (runtime.name, runtime.precision) == ("triton products, triton attention", "float32")


def test_backends_are_measured_at_the_start(monkeypatch):
    """By whole passes: the fastest of several, by the clock."""
    network = prepared(TINY, weights(TINY), device=DEVICE, dtype=torch.float32)
    ticks = iter([0, 5, 10, 13, 20, 24, 30, 39, 40, 49])

    def measured(timed, clock):
        assert timed(THEIRS, 3, clock) == 3
        return {KEYSTROKE: THEIRS, CHUNK: OURS}

    monkeypatch.setattr(module, "chosen_backends", measured)
    runtime = GpuRuntime(network, device=DEVICE, clock=lambda: next(ticks))
    assert runtime.name == "torch products, torch attention; triton products, triton attention"


def test_pass_can_be_started_to_be_measured():
    runtime, _ = pair(backends=THEIRS)
    assert runtime.prepare(3, 5)().shape == (4, TINY.width)


def test_graphs_share_memory_as_long_as_one_of_them_lives(monkeypatch):
    """Torch does not take a handle again whose graphs have all gone."""
    runtime, _ = pair()
    alive, numbers = {}, iter(range(9))
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, next(numbers)))
    runtime._stream = object()

    class Graph:
        pass

    def made(bucket, choosing, backends=None, *, memory):
        own = Graph()
        if memory in alive:
            assert len(alive[memory]), "no graph of this memory is left"
        alive.setdefault(memory, WeakSet()).add(own)
        return own

    runtime._made = made
    buckets = [Bucket(1, rows, 0, 8) for rows in (8, 16, 24)]
    for bucket in buckets:
        runtime._prepared(bucket, False)
    assert {memory: len(graphs) for memory, graphs in alive.items()} == {(0, 0): 3}
    runtime._pool.take(runtime._pool.free + 1)
    for bucket in buckets:
        runtime._prepared(bucket, False)
    assert {memory: len(graphs) for memory, graphs in alive.items()} == {(0, 0): 0, (0, 1): 3}


def test_graph_is_captured_after_everything_is_compiled(monkeypatch):
    """What CUDA would do, written down: one run on a stream, one on the same that is recorded, then replays."""
    done = []

    class Fake:
        def __init__(self, *given, stream=None, **_):
            self.streams = [one for one in (*given, stream) if isinstance(one, Fake)]

        def wait_stream(self, other):
            done.append("wait")

        def replay(self):
            done.append("replay")

        def __enter__(self):
            assert own in self.streams
            done.append("enter")

        def __exit__(self, *error):
            done.append("exit")

    for name in ("CUDAGraph", "stream", "graph", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, Fake)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: done.append("synchronize"))
    own, inputs = Fake(), torch.ones(1)
    alive = ref(inputs)

    def once(inputs=inputs):
        done.append("run")
        return inputs + 1

    replay = module._captured(once, own, None)
    assert done == ["wait", "enter", "run", "exit", "synchronize", "enter", "run", "exit"]
    assert replay() is replay()
    assert done[-2:] == ["replay", "replay"]
    del once, inputs
    assert alive() is not None, "a replay reads the inputs at their address"


def test_text_without_gpu_memory_for_it_is_refused():
    """Its kernels keep no scores, so that only pages of the pool, and rows, take memory."""
    runtime, _ = pair()
    cache = runtime.cache()
    room = Room(runtime, "tiny", free=lambda: reading_bytes(runtime, cache, 400))
    assert room.allow(200, 100, cache) == 100
    with pytest.raises(TooLongError, match=r"tiny: 400 tokens and an answer take .* MiB are free on (cpu|cuda)"):
        Room(runtime, "tiny", free=lambda: 1000).allow(400, 9, cache)
