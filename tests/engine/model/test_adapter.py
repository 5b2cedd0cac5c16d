"""What an adapter adds is added to the right weights, int8 or not, and to no others."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from mercury_engine.model import openvino_runtime, torch_runtime
from mercury_engine.model.adapter import adapted, identity, read_adapter
from mercury_engine.model.config import TINY, ModelError
from mercury_engine.model.export import SCALE, dequantized, export, plain, read
from mercury_engine.model.network import create, save
from mercury_engine.model.quantize import quantize_groups
from mercury_engine.model.runtime import Rows

NAME = "layers.1.feed_forward.down.weight"
SHAPE = (TINY.width, TINY.feed_forward)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    save(create(TINY, 0), folder / "float")
    export(folder / "float", folder / "int8")
    return folder / "int8"


def noise(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def thin():
    return {NAME + ".up": 0.1 * noise(SHAPE[0], 3), NAME + ".down": noise(3, SHAPE[1], seed=1)}


def adapter(folder, model, added):
    folder.mkdir(exist_ok=True)
    save_file(added, folder / "adapter.safetensors")
    (folder / "adapter.json").write_text(json.dumps({"base": identity(model), "more": 1}))
    return folder


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("int8", [False, True])
def test_products_and_differences_are_added(model, whole, int8):
    _, base = read(model)
    weights = base if int8 else dequantized(base)
    delta = thin()[NAME + ".up"] @ thin()[NAME + ".down"]
    found = adapted(weights, {NAME + ".delta": delta.astype(np.float16)} if whole else thin())
    assert found.keys() == weights.keys()
    assert found[NAME].dtype == weights[NAME].dtype
    wanted, now = dequantized(base)[NAME] + delta, dequantized(found)[NAME]
    assert np.linalg.norm(now - wanted) < 0.01 * np.linalg.norm(wanted)
    assert all(found[name] is weights[name] for name in weights if not name.startswith(NAME))


def test_sum_with_four_bits_is_int8():
    weights = dict(zip((NAME, NAME + SCALE), quantize_groups(noise(*SHAPE), SHAPE[1]), strict=True))
    found = adapted(weights, thin())
    wanted = plain(weights, NAME) + thin()[NAME + ".up"] @ thin()[NAME + ".down"]
    assert found[NAME].dtype == np.int8
    assert np.linalg.norm(plain(found, NAME) - wanted) < 0.01 * np.linalg.norm(wanted)


@pytest.mark.parametrize(
    "added",
    [
        {"layers.9.other.weight.delta": noise(2, 2)},
        {NAME + ".delta": noise(2, 2)},
        {NAME + ".up": noise(SHAPE[0], 3)},
        {NAME + ".down": noise(3, SHAPE[1])},
        {NAME: noise(*SHAPE)},
        {NAME + ".up": noise(SHAPE[0], 3), NAME + ".down": noise(4, SHAPE[1])},
        {NAME + ".up": noise(1 << 20, 1), NAME + ".down": noise(1, 1 << 20)},
    ],
)
def test_adapter_that_fits_no_weight_is_named(model, added):
    with pytest.raises(ModelError, match="tune PATH --remove"):
        adapted(read(model)[1], added)


def test_adapter_of_other_weights_is_refused(model, tmp_path):
    save(create(TINY, 1), tmp_path / "float")
    export(tmp_path / "float", tmp_path / "other")
    made = adapter(tmp_path / "made", tmp_path / "other", thin())
    with pytest.raises(ModelError, match="other weights"):
        read_adapter(made, model)


@pytest.mark.parametrize("damaged", ["adapter.json", "adapter.safetensors"])
def test_damaged_adapter_is_named(model, tmp_path, damaged):
    made = adapter(tmp_path / "made", model, thin())
    (made / damaged).write_bytes(b"{")
    with pytest.raises(ModelError, match=str(made)):
        read_adapter(made, model)


def test_adapter_changes_both_runtimes(model, tmp_path):
    made = adapter(tmp_path / "made", model, thin())
    rows = Rows(np.arange(70, 90, dtype=np.int32), np.arange(20, dtype=np.int32))

    def answers(runtime):
        return runtime.forward(rows, runtime.cache()).logits_WV

    plain = answers(openvino_runtime.load(model, threads=1))
    tuned = answers(openvino_runtime.load(model, threads=1, adapter=made))
    torch_tuned = answers(torch_runtime.open_torch(model, device="cpu", adapter=made))
    assert np.abs(tuned - plain).max() > 0.1
    assert np.abs(tuned - torch_tuned).max() < 0.1 * np.abs(tuned).max()
