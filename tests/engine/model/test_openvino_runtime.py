"""The CPU runtime: equal to the reference model, whatever is padded, cached, cut off or quantised."""

import gc
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from mercury_engine.api import EngineError
from mercury_engine.model import openvino_runtime
from mercury_engine.model.adapter import DOWN, SPECIAL, UP, Adapter
from mercury_engine.model.config import TINY, ModelError
from mercury_engine.model.export import ADAPTER_FILE, SCALE, dequantized, export, plain, read, shapes
from mercury_engine.model.openvino_runtime import (
    COLUMN_STEP,
    STORED,
    OpenvinoRuntime,
    fastest_precision,
    load,
    native_precision,
    padded_columns,
    padded_rows,
)
from mercury_engine.model.quantize import quantize
from mercury_engine.model.runtime import Rows
from mercury_engine.model.silent_openvino import ov
from mercury_engine.tokens.vocabulary import SPECIALS
from mercury_training.models import SMALL, create, save, with_weights
from mercury_training.rows.blocks import Block
from tests.masks import canvas_mask

TOLERANCE = 1e-4
EVERYTHING = msgspec.structs.replace(TINY, tied=False, qkv_bias=True, qk_norm=False, kv_heads=1)
GROUPED = msgspec.structs.replace(TINY, width=128, head_width=32, feed_forward=256)
"""Every row of a matrix is a whole number of groups."""


def random_model(config):
    """Vectors too are random, so that none can be left out unnoticed."""
    model = create(config, 0).requires_grad_(False)
    generator = torch.Generator().manual_seed(1)
    for weight in model.parameters():
        weight.copy_(torch.randn(weight.shape, generator=generator) * (0.5 if weight.dim() < 2 else 0.1))
    return model


def runtime_of(model, precision=ov.Type.f32, **options):
    weights = {name: weight.numpy() for name, weight in model.state_dict().items()}
    return OpenvinoRuntime(model.config, weights, **{"threads": 1, "precision": precision} | options)


@pytest.fixture(scope="module")
def model():
    return random_model(TINY)


@pytest.fixture(scope="module")
def runtime(model):
    return runtime_of(model)


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    source = tmp_path_factory.mktemp("source")
    save(model, source)
    export(source, source / "int8")
    return source / "int8"


def ids_of(count, seed=0):
    return np.random.default_rng(seed).integers(64, TINY.vocabulary, count).astype(np.int32)


def clean(ids, start=0, rows=None):
    positions = np.arange(start, start + len(ids), dtype=np.int32)
    return Rows(ids, positions, rows=rows)


def expected_logits(model, rows):
    """What the reference says of rows that stand on no cache."""
    mask = None if rows.mask_RC is None else torch.from_numpy(rows.mask_RC)
    ids, positions = torch.from_numpy(rows.ids_R)[None].long(), torch.from_numpy(rows.positions_R)[None]
    with torch.no_grad():
        hidden, _ = model(ids, positions, mask=mask)
        return model.logits(hidden[0, list(rows.wanted)]).numpy()


def filled(runtime, ids):
    cache = runtime.cache()
    cache.append(runtime.forward(clean(ids, rows=[]), cache), range(len(ids)))
    return cache


def check_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)


def canvas_rows(count, canvas, **options):
    blocks = (Block(count), Block(canvas, count - 1, causal=False))
    size = count + canvas
    return Rows(
        ids_of(size),
        np.arange(size, dtype=np.int32),
        mask_RC=canvas_mask(blocks),
        **options,
    )


@pytest.mark.parametrize("count", [1, 2, 3, 7, 33, 64, 65, 100, 130])
def test_causal_rows_equal_the_reference(model, runtime, count):
    rows = clean(ids_of(count))
    check_close(runtime.forward(rows, runtime.cache()).logits_WV, expected_logits(model, rows))


@pytest.mark.parametrize("config", [TINY, EVERYTHING], ids=["plain", "everything"])
def test_canvas_equals_reference(config):
    model = random_model(config)
    rows = canvas_rows(20, 8)
    runtime = runtime_of(model)
    check_close(runtime.forward(rows, runtime.cache()).logits_WV, expected_logits(model, rows))


def random_adapter(config, rank=4):
    """Beside three matrices of each layer: two with the same input, and one."""
    generator = np.random.default_rng(2)

    def floats(*shape):
        return (generator.standard_normal(shape) * 0.1).astype(np.float32)

    factors = {}
    for name, shape in shapes(config).items():
        if name.endswith(("query.weight", "value.weight", "down.weight")):
            factors[name + UP], factors[name + DOWN] = floats(shape[0], rank), floats(rank, shape[1])
    return Adapter(factors, floats(len(SPECIALS), config.width))


def merged(model, adapter):
    """The same in one model."""
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    weights["embedding.weight"][: len(SPECIALS)] = torch.from_numpy(adapter.special_SD)
    for name in weights:
        if name + UP in adapter.factors:
            weights[name] += torch.from_numpy(adapter.factors[name + UP] @ adapter.factors[name + DOWN])
    other = create(model.config, 0).requires_grad_(False)
    other.load_state_dict(weights)
    return other


@pytest.mark.parametrize("bits", [None, 8, 4])
@pytest.mark.parametrize("changes", [{}, {"qkv_bias": True, "qk_norm": False, "embedding_scale": 3.0}])
def test_adapter_changes_what_is_read_for_edits_and_nothing_else(changes, bits, tmp_path):
    model = random_model(msgspec.structs.replace(GROUPED, **changes))
    save(model, tmp_path / "float")
    folder = tmp_path / "float"
    if bits:
        folder = tmp_path / "rounded"
        export(tmp_path / "float", folder, bits)
    plainly = load(folder, threads=1, precision=ov.Type.f32)
    adapter = random_adapter(model.config)
    save_file(adapter.factors | {SPECIAL: adapter.special_SD}, folder / ADAPTER_FILE)
    adapted = load(folder, threads=1, precision=ov.Type.f32)
    assert (plainly.edits, adapted.edits) == (False, True)
    rows = clean(np.array([3, 70, 71, *range(60, 68), 400], np.int32))
    before = plainly.forward(rows, plainly.cache()).logits_WV
    for _ in range(2):
        edits, completions = (adapted.forward(rows, adapted.cache(edits=kind)).logits_WV for kind in (True, False))
        np.testing.assert_array_equal(completions, before)
        rounded = with_weights(model.config, dequantized(read(folder)[1]))
        expected = expected_logits(merged(rounded, adapter), rows)
        assert np.abs(edits - expected).max() < (TOLERANCE if bits is None else 0.1 * np.abs(expected).max())
        assert np.abs(expected - before).max() > 0.3 * np.abs(expected).max()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({SPECIAL: None}, "has no vectors for the special tokens of this model"),
        ({SPECIAL: np.zeros((64, 8), np.float32)}, "has no vectors for the special tokens of this model"),
        (
            {"layers.0.attention.query.weight.up": None},
            "layers.0.attention.query.weight.down is no factor of this model",
        ),
        ({"layers.9.attention.query.weight.up": np.zeros((64, 4), np.float32)}, "is no factor of this model"),
        ({"layers.0.attention.query.weight.up": np.full((64, 4), np.nan, np.float32)}, "values that are not numbers"),
        (
            {"layers.0.attention.query.weight.up": np.zeros((64, 4), np.int8)},
            "query.weight.up has no scales for its rows",
        ),
    ],
)
def test_adapter_of_another_model_or_a_damaged_one_is_refused(folder, tmp_path, changed, said):
    adapter = random_adapter(TINY)
    tensors = adapter.factors | {SPECIAL: adapter.special_SD} | changed
    shutil.copytree(folder, tmp_path / "model")
    save_file({name: array for name, array in tensors.items() if array is not None}, tmp_path / "model" / ADAPTER_FILE)
    with pytest.raises(ModelError, match=said):
        load(tmp_path / "model", threads=1)


def test_first_row_may_be_alone_in_a_model_whose_heads_share_no_keys():
    model = random_model(msgspec.structs.replace(TINY, kv_heads=TINY.heads, qk_norm=False))
    runtime, rows = runtime_of(model, native_precision(), threads=2), clean(ids_of(1))
    found = runtime.forward(rows, runtime.cache()).logits_WV
    expected = expected_logits(model, rows)
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.05 * np.abs(expected).max())


@pytest.mark.parametrize("wanted", [[0], [4, 9], [9, 4], [3, 3], []], ids=str)
def test_logits_are_computed_for_wanted_rows_only(model, runtime, wanted):
    rows = clean(ids_of(10), rows=wanted)
    found = runtime.forward(rows, runtime.cache()).logits_WV
    assert found.dtype == np.float32
    assert found.shape == (len(wanted), TINY.vocabulary)
    check_close(found, expected_logits(model, rows))


def test_mask_may_hide_cached_columns(model, runtime):
    ids, cut = ids_of(90), 80
    mask = np.tri(90, dtype=bool)
    mask[cut:, 10:70] = False
    positions = np.arange(90, dtype=np.int32)
    everything = Rows(ids, positions, mask_RC=mask, rows=range(cut, 90))
    rows = Rows(ids[cut:], positions[cut:], mask_RC=mask[cut:])
    found = runtime.forward(rows, filled(runtime, ids[:cut])).logits_WV
    check_close(found, expected_logits(model, everything))


def test_fused_pass_equals_separate_ones(runtime):
    new, canvas = 3, 8
    ids = ids_of(70 + new + canvas)
    cache = filled(runtime, ids[:70])
    blocks = (Block(70 + new), Block(canvas, 70 + new - 1, causal=False))
    positions = np.arange(70, len(ids), dtype=np.int32)
    fused = runtime.forward(Rows(ids[70:], positions, mask_RC=canvas_mask(blocks, 70)), cache)
    first = runtime.forward(clean(ids[70:-canvas], 70), cache)
    cache.append(first, range(new))
    mask = canvas_mask(blocks, 70 + new)
    rows = Rows(ids[-canvas:], positions[new:], mask_RC=mask)
    second = runtime.forward(rows, cache)
    check_close(fused.logits_WV, np.concatenate([first.logits_WV, second.logits_WV]))


def test_forward_leaves_cache_as_it_is_and_outlives_later_ones(model, runtime):
    ids = ids_of(40)
    cache = filled(runtime, ids[:30])
    first = runtime.forward(clean(ids[30:], 30), cache)
    kept = first.logits_WV.copy()
    runtime.forward(clean(ids_of(8, seed=5), 30), cache)
    assert cache.length == 30
    np.testing.assert_array_equal(first.logits_WV, kept)
    cache.append(first, range(5))
    found = runtime.forward(clean(ids[35:], 35), cache).logits_WV
    check_close(found, expected_logits(model, clean(ids, rows=range(35, 40))))


def test_rows_are_kept_in_the_order_in_which_they_are_named(model, runtime):
    """A canvas row is skipped; columns have no order but the rows' own positions."""
    ids = ids_of(12)
    cache = runtime.cache()
    cache.append(runtime.forward(clean(ids[:11]), cache), [2, 1, 0, *range(3, 11)])
    found = runtime.forward(clean(ids[11:], 11), cache).logits_WV
    check_close(found, expected_logits(model, clean(ids, rows=[11])))


EDITS = st.lists(st.tuples(st.integers(0, 150), st.integers(1, 90)), min_size=1, max_size=6)


@settings(max_examples=25)
@given(EDITS)
def test_truncated_and_extended_cache_equals_new_one(model, runtime, edits):
    cache, ids = runtime.cache(), np.zeros(0, np.int32)
    for seed, (kept, added) in enumerate(edits):
        kept = min(kept, len(ids))
        cache.truncate(kept)
        new = ids_of(added, seed)
        cache.append(runtime.forward(clean(new, kept, rows=[]), cache), range(added))
        ids = np.concatenate([ids[:kept], new])
    assert cache.length == len(ids)
    found = runtime.forward(clean(ids_of(1), len(ids)), cache).logits_WV
    whole = clean(np.concatenate([ids, ids_of(1)]), rows=[len(ids)])
    check_close(found, expected_logits(model, whole))


def test_cache_gives_back_what_it_no_longer_needs(runtime):
    cache = filled(runtime, ids_of(300))
    full = cache.bytes
    cache.truncate(10)
    assert cache.bytes < full / 2
    assert cache.length == 10


def test_going_back_and_forth_over_a_buckets_edge_copies_nothing(runtime):
    cache = filled(runtime, ids_of(COLUMN_STEP))
    forward = runtime.forward(clean(ids_of(4), COLUMN_STEP), cache)
    cache.append(forward, range(4))
    size = cache.bytes
    cache.truncate(COLUMN_STEP)
    assert cache.bytes == size


def test_half_precision_halves_the_cache(model):
    half = runtime_of(model, ov.Type.bf16).cache()
    assert half.bytes * 2 == runtime_of(model).cache().bytes


def test_position_past_context_is_an_error_that_says_so(runtime):
    with pytest.raises(EngineError, match=r"position 512: tiny has a context of 512 tokens; send less text"):
        runtime.forward(clean(ids_of(2), 511), runtime.cache())


def test_token_of_another_vocabulary_is_an_error_that_says_so(runtime):
    with pytest.raises(
        EngineError, match=r"token 512: tiny has a vocabulary of 512; the tokenizer belongs to another model"
    ):
        runtime.forward(clean(np.array([70, 512], np.int32)), runtime.cache())


@pytest.mark.parametrize("precision", STORED, ids=lambda precision: precision.get_type_name())
def test_quantised_weights_answer_almost_alike(model, folder, precision):
    rows = clean(ids_of(60))
    runtime = load(folder, threads=1, precision=precision)
    found, expected = runtime.forward(rows, runtime.cache()).logits_WV, expected_logits(model, rows)
    assert np.linalg.norm(found - expected) < 0.1 * np.linalg.norm(expected)
    assert runtime.precision == f"int8 weights, {precision.get_type_name()}"


def test_four_bits_are_multiplied_and_looked_up_beside_eight(tmp_path):
    save(random_model(GROUPED), tmp_path)
    export(tmp_path, tmp_path / "int4", 4)
    config, weights = read(tmp_path / "int4")
    key = "layers.0.attention.key.weight"
    weights[key], weights[key + SCALE] = quantize(plain(weights, key))
    runtime, rows = OpenvinoRuntime(config, weights, threads=1, precision=ov.Type.f32), clean(ids_of(20))
    found = runtime.forward(rows, runtime.cache()).logits_WV
    model = random_model(config)
    model.load_state_dict({name: torch.tensor(weight) for name, weight in dequantized(weights).items()})
    expected = expected_logits(model, rows)
    assert np.linalg.norm(found - expected) < 0.03 * np.linalg.norm(expected)


def test_float_folders_are_read_too(model, folder):
    runtime = load(folder.parent, threads=1, precision=ov.Type.f32)
    assert runtime.precision == "float32 weights, f32"
    rows = clean(ids_of(20))
    gc.collect()
    check_close(runtime.forward(rows, runtime.cache()).logits_WV, expected_logits(model, rows))


def test_native_precision_of_processor_can_be_held_by_the_cache(folder):
    assert native_precision() in STORED
    assert load(folder).precision.endswith(native_precision().get_type_name())


@pytest.mark.parametrize(
    ("processor", "kind", "precision"),
    [("x86_64", np.uint8, ov.Type.f32), ("x86_64", np.int8, ov.Type.bf16), ("arm64", np.uint8, ov.Type.bf16)],
)
def test_int4_matrices_have_their_inputs_quantised_in_float32(monkeypatch, processor, kind, precision):
    monkeypatch.setattr(openvino_runtime, "machine", lambda: processor)
    monkeypatch.setattr(openvino_runtime, "native_precision", lambda: ov.Type.bf16)
    assert fastest_precision({"embedding.weight": np.zeros((2, 2), kind)}) == precision


def test_damaged_folder_is_an_error(folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelError, match="install the model again"):
        load(tmp_path)


@given(st.integers(0, 140_000))
def test_sizes_are_rounded_up_by_little(count):
    assert count <= padded_rows(count) <= max(1, 1.25 * count, count + 3)
    assert count <= padded_columns(count) < count + max(COLUMN_STEP, count / 16) + (count == 0)
    assert padded_columns(count) % COLUMN_STEP == 0


@pytest.mark.parametrize(
    ("counts", "padded"),
    [((17, 9, 17, 9), (20, 20, 20, 20)), ((9, 17, 3), (12, 20, 4)), ((9, 1, 9), (12, 1, 12)), ((95, 12), (96, 12))],
)
def test_few_surplus_rows_are_kept_rather_than_changed(counts, padded):
    before, found = 0, []
    for count in counts:
        before = padded_rows(count, before, spare=8)
        found.append(before)
    assert tuple(found) == padded


FIRST_ANSWER = """
import json, sys
from pathlib import Path
import numpy as np
from mercury_engine.model.openvino_runtime import load
from mercury_engine.model.runtime import Rows
from mercury_engine.model.silent_openvino import ov
runtime, steps = load(Path(sys.argv[1])), np.arange(256, dtype=np.int32)
cache = runtime.cache()
for start in range(0, runtime.config.context - 256, 256):
    cache.append(runtime.forward(Rows(steps + 64, steps + start, rows=[]), cache), range(256))
logits = runtime.forward(Rows(steps[:36] + 64, steps[:36] + cache.length), cache).logits_WV
status = Path("/proc/self/status")
lines = status.read_text().splitlines() if status.exists() else []
resident = [int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS")]
print(json.dumps([bool(np.isfinite(logits).all()), "torch" in sys.modules, *resident]))
"""


def in_new_process(folder):
    command = [sys.executable, "-c", FIRST_ANSWER, str(folder)]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True, env=os.environ).stdout)


@pytest.mark.slow
def test_shipped_model_answers_without_torch_in_little_memory(tmp_path):
    save(create(SMALL, 0), tmp_path)
    export(tmp_path, tmp_path / "int8")
    finite, torch_imported, *resident = in_new_process(tmp_path / "int8")
    assert finite
    assert not torch_imported
    assert all(megabytes <= 350 for megabytes in resident)  # 310 without AVX-512


TWO_MODELS = """
import os
import signal
import sys
from pathlib import Path
import numpy as np
from mercury_engine.model.openvino_runtime import load
from mercury_engine.model.runtime import Rows

def answered():
    runtime = load(Path(sys.argv[1]))
    runtime.forward(Rows(np.array([64]), np.array([0])), runtime.cache())
    return runtime

first, second = answered(), answered()
del first
del second
signal.signal(signal.SIGTERM, lambda *_: print("handled", flush=True))
os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.mark.slow
def test_signals_are_handled_after_models_have_come_and_gone(folder):
    command = [sys.executable, "-c", TWO_MODELS, str(folder)]
    done = subprocess.run(command, capture_output=True, check=False, text=True, env=os.environ)
    assert (done.returncode, done.stdout) == (0, "handled\n"), done.stderr


def trained():
    """A tiny model that has learnt a rule, so that its answers are as decided as those of a trained one."""
    model = create(TINY, 0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(0)
    for _ in range(120):
        ids = ruled(torch.randint(97, (16, 1), generator=generator))
        hidden, _ = model(ids[:, :-1], torch.arange(31).expand(16, -1))
        loss = torch.nn.functional.cross_entropy(model.logits(hidden).flatten(0, 1), ids[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.requires_grad_(False)


def ruled(first):
    columns = [first]
    while len(columns) < 32:
        columns.append((5 * columns[-1] + 7) % 97)
    return torch.cat(columns, 1) + 64


@pytest.mark.slow
def test_int8_and_half_precision_choose_what_a_trained_float_model_chooses(tmp_path: Path):
    model = trained()
    save(model, tmp_path)
    export(tmp_path, tmp_path / "int8")
    runtime = load(tmp_path / "int8", threads=1)
    agreed = []
    for first in range(97):
        rows = clean(ruled(torch.tensor([[first]]))[0].numpy().astype(np.int32))
        found = runtime.forward(rows, runtime.cache()).logits_WV.argmax(1)
        agreed.append((found == expected_logits(model, rows).argmax(1)).mean())
    assert np.mean(agreed) >= 0.99
