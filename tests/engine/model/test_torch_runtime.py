"""The torch runtime: caches that keep exactly what they are told, canvases beside clean rows, stated precision."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.decode.canvas import Canvas, fuse, masked
from mercury_engine.model import batches
from mercury_engine.model.config import TINY, ModelError
from mercury_engine.model.runtime import Pass
from mercury_engine.model.torch_runtime import TorchRuntime, open_torch
from mercury_training.models import create, save
from tests.engine.tiny import random_runtime


def forward(cache, ids, first=0, canvases=()):
    fused = fuse(cache.length, np.array([0] * cache.length + list(ids)), first, canvases)
    return fused, random_runtime().forward(fused.rows, cache)


def filled(ids):
    cache = random_runtime().cache()
    cache.append(forward(cache, ids)[1], range(len(ids)))
    return cache


def check_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def test_logits_are_those_of_the_rows_asked_for():
    cache = filled([70, 71])
    _, everything = forward(cache, [72, 73, 74])
    _, last = forward(cache, [72, 73, 74], first=2)
    assert last.logits_WV.shape == (1, TINY.vocabulary)
    assert last.logits_WV.dtype == np.float32
    check_close(last.logits_WV[0], everything.logits_WV[2])


def test_forward_leaves_cache_alone_and_append_keeps_part():
    cache = filled([70, 71])
    _, drafted = forward(cache, [72, 73, 99])
    assert cache.length == 2
    cache.append(drafted, range(2))
    check_close(forward(cache, [74])[1].logits_WV, forward(filled([70, 71, 72, 73]), [74])[1].logits_WV)


def test_rows_may_be_kept_one_here_one_there():
    cache, ids = filled([70]), [71, 72, 73]
    cache.append(forward(cache, ids)[1], [0, 2])
    assert cache.length == 3


def test_truncating_forgets():
    cache = filled([70, 71, 72, 73])
    cache.truncate(2)
    check_close(forward(cache, [80])[1].logits_WV, forward(filled([70, 71]), [80])[1].logits_WV)


def test_cache_grows_by_whole_steps_and_says_how_large_it_is():
    cache = filled([70] * 200)
    size = cache.bytes
    assert size == 2 * TINY.layers * TINY.kv_heads * TINY.head_width * 4 * 256
    cache.append(forward(cache, [70] * 100)[1], range(100))
    assert cache.bytes == 2 * size


def test_canvas_beside_clean_rows_changes_nothing_for_them():
    cache = filled([70, 71])
    fused, both = forward(cache, [72, 73], canvases=[Canvas(1, masked(8))])
    _, alone = forward(cache, [72, 73])
    check_close([fused.clean_row(both.logits_WV, row) for row in range(2)], alone.logits_WV)
    cache.append(both, range(2))
    again, separate = forward(cache, [73], canvases=[Canvas(0, masked(8))])
    assert again.slots(separate.logits_WV, 0).shape == fused.slots(both.logits_WV, 0).shape == (8, TINY.vocabulary)


def test_canvas_in_forward_equals_one_on_cache():
    """`[typed | canvas]` against the typed row read before, its canvas in a forward of its own."""
    fused, both = forward(filled([70, 71]), [72, 73], canvases=[Canvas(1, masked(8))])
    separate, alone = forward(filled([70, 71, 72]), [73], canvases=[Canvas(0, masked(8))])
    check_close(fused.slots(both.logits_WV, 0), separate.slots(alone.logits_WV, 0))


def test_sibling_canvases_are_read_apart():
    canvases = [Canvas(1, masked(8)), Canvas(2, masked(16))]
    fused, result = forward(filled([70]), [71, 72, 73], first=1, canvases=canvases)
    first, second = (fused.slots(result.logits_WV, number) for number in range(2))
    assert (len(first), len(second)) == (8, 16)
    check_close(first[0], fused.clean_row(result.logits_WV, 1))
    check_close(second[0], fused.clean_row(result.logits_WV, 2))


def test_empty_selection_computes_nothing():
    cache = filled([70])
    _, result = forward(cache, [71, 72], first=2)
    assert result.logits_WV.shape == (0, TINY.vocabulary)


def test_precision_is_what_was_asked_for(tmp_path):
    save(create(TINY, 0), tmp_path)
    runtime = open_torch(tmp_path, device="cpu", precision="bfloat16")
    assert next(runtime.model.parameters()).dtype == torch.bfloat16
    assert (runtime.device, runtime.precision) == ("cpu", "bfloat16")
    assert open_torch(tmp_path, device="cpu").precision == "float32"


@pytest.mark.parametrize(("precision", "message"), [("float16", "hundreds of times slower"), ("int3", "not one of")])
def test_unsupported_precision_is_refused(precision, message):
    with pytest.raises(ModelError, match=message):
        TorchRuntime(create(TINY, 0), precision=precision)


contexts = st.lists(st.integers(64, TINY.vocabulary - 1), max_size=30)
clean = st.lists(st.integers(64, TINY.vocabulary - 1), min_size=1, max_size=12)
wishes = st.lists(st.tuples(contexts, clean, st.sampled_from([0, 8, 16]), st.booleans()), min_size=1, max_size=5)


@settings(max_examples=40)
@given(wishes)
def test_passes_together_are_what_they_are_alone(drawn):
    runtime = TorchRuntime(random_runtime().model, batch=8)
    passes = []
    for context, ids, canvas, all_wanted in drawn:
        cache, count = filled(context) if context else runtime.cache(), len(context)
        canvases = [Canvas(len(ids) - 1, masked(canvas))] if canvas else []
        fused = fuse(count, np.array([*context, *ids]), 0 if all_wanted else len(ids) - 1, canvases)
        passes.append((fused.rows, cache))
    together = runtime.forwards([Pass(rows, cache) for rows, cache in passes])
    for (rows, cache), found in zip(passes, together, strict=True):
        alone = runtime.forward(rows, cache)
        check_close(found.logits_WV, alone.logits_WV)
        count = cache.length
        cache.append(found, range(len(rows.ids_R)))
        kept = [part[:, :, count:].clone() for pair in cache.filled() for part in pair]
        cache.truncate(count)
        cache.append(alone, range(len(rows.ids_R)))
        for one, other in zip(kept, (p[:, :, count:] for pair in cache.filled() for p in pair), strict=True):
            check_close(one, other)


def test_long_passes_do_not_pad_short_ones(monkeypatch):
    monkeypatch.setattr(batches, "BATCH_ROWS", 40)
    assert batches.groups([17, 40, 1, 17]) == [[2, 0], [3], [1]]


def test_processor_batches_only_when_told_to():
    assert TorchRuntime(random_runtime().model).batch == 1
    assert TorchRuntime(random_runtime().model, batch=4).batch == 4
