"""The shipping folder: what goes in comes out, and what is damaged is named."""

import json
import subprocess
import sys

import msgspec
import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from mercury_engine.export import main
from mercury_engine.model.config import TINY, ModelError, write_config
from mercury_engine.model.export import HEADER_BYTES, export, plain, read, shapes
from mercury_engine.model.network import Model
from mercury_training.models import SMALL, create, save

UNTIED = msgspec.structs.replace(TINY, tied=False, qkv_bias=True, qk_norm=False)
GROUPED = msgspec.structs.replace(TINY, width=128, head_width=32, feed_forward=256)
"""Every row of a matrix is a whole number of groups."""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("float")
    save(create(TINY, 0), folder)
    (folder / "tokenizer.json").write_text("{}")
    return folder


@pytest.fixture
def shipped(source, tmp_path):
    export(source, tmp_path / "int8")
    return tmp_path / "int8"


def random_weights(config):
    generator = np.random.default_rng(0)
    return {name: generator.standard_normal(shape, np.float32) for name, shape in shapes(config).items()}


def written(config, weights, folder):
    save_file(weights, folder / "model.safetensors")
    write_config(config, folder / "config.json")
    return folder


def check_refused(folder, *words):
    with pytest.raises(ModelError) as caught:
        read(folder)
    message = str(caught.value)
    assert str(folder) in message
    assert [word for word in words if word not in message] == []


@pytest.mark.parametrize("config", [TINY, SMALL, UNTIED], ids=lambda config: config.name)
def test_shapes_are_those_of_reference_model(config):
    with torch.device("meta"):
        expected = {name: tuple(weight.shape) for name, weight in Model(config).state_dict().items()}
    assert shapes(config) == expected


@pytest.mark.parametrize(("bits", "kind", "error"), [(8, np.int8, 0.01), (4, np.uint8, 0.12)])
def test_matrices_come_back_near_and_the_rest_comes_back_equal(tmp_path, bits, kind, error):
    (tmp_path / "float").mkdir()
    before = random_weights(GROUPED)
    export(written(GROUPED, before, tmp_path / "float"), tmp_path / "shipped", bits)
    config, after = read(tmp_path / "shipped")
    assert config == GROUPED
    for name, weight in before.items():
        if weight.ndim == 2:
            assert after[name].dtype == kind
            assert np.linalg.norm(plain(after, name) - weight) < error * np.linalg.norm(weight)
        else:
            np.testing.assert_array_equal(after[name], weight)


def test_report_tells_how_far_each_matrix_moved(source, tmp_path):
    report = export(source, tmp_path)
    assert report.errors.keys() == {name for name, shape in shapes(TINY).items() if len(shape) == 2}
    assert all(0 < error < 0.01 for error in report.errors.values())
    assert report.files == ("config.json", "provenance.json", "tokenizer.json", "weights-00001-of-00001.safetensors")
    assert report.bytes == sum((tmp_path / name).stat().st_size for name in report.files)


def test_shards_stay_under_their_limit_and_hold_everything(tmp_path, monkeypatch):
    monkeypatch.setattr("mercury_engine.model.export.SHARD_BYTES", HEADER_BYTES + 2**18)
    (tmp_path / "float").mkdir()
    written(GROUPED, random_weights(GROUPED), tmp_path / "float")
    report = export(tmp_path / "float", tmp_path / "int8")
    assert report.files[-2:] == ("weights-00001-of-00002.safetensors", "weights-00002-of-00002.safetensors")
    assert all((tmp_path / "int8" / name).stat().st_size <= HEADER_BYTES + 2**18 for name in report.files)
    assert read(tmp_path / "int8")[0] == GROUPED


def test_export_replaces_older_one_and_may_be_exported_again(source, shipped, tmp_path):
    (shipped / "weights-00009-of-00009.safetensors").write_bytes(b"")
    export(source, shipped)
    export(shipped, tmp_path / "again")
    first, second = read(shipped)[1], read(tmp_path / "again")[1]
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_export_command_says_what_it_wrote_or_what_is_wrong(source, tmp_path, capsys):
    main([str(source), str(tmp_path / "int8")])
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'int8'}: ")
    assert read(tmp_path / "int8")[1]
    with pytest.raises(SystemExit, match=f"mercury_engine.export: {source}: .*; export to another folder"):
        main([str(source), str(source)])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_weights_are_read_as_float(tmp_path, dtype):
    model = create(TINY, 0).to(dtype)
    save(model, tmp_path)
    weights = read(tmp_path)[1]
    for name, weight in model.state_dict().items():
        np.testing.assert_array_equal(weights[name], weight.float().numpy())


def test_large_matrices_stay_in_the_file(shipped):
    weights = read(shipped)[1]
    assert isinstance(weights["embedding.weight"], np.memmap)


def test_reading_imports_no_torch(shipped):
    program = (
        "import sys; from pathlib import Path; from mercury_engine.model.export import read; "
        "read(Path(sys.argv[1])); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(shipped)], check=False).returncode == 0


def test_damaged_shipped_folder_is_named(shipped):
    path = shipped / "weights-00001-of-00001.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    check_refused(shipped, path.name, "checksum", "install the model again")
    path.unlink()
    check_refused(shipped, path.name, "cannot be read", "install the model again")
    (shipped / "checksums.sha256").write_text("00  ../elsewhere\n")
    check_refused(shipped, "names no file in this folder")


@pytest.mark.parametrize("kept", [0, 4, 8, 100, -1], ids=lambda kept: f"{kept} bytes kept")
def test_file_cut_short_is_named(source, tmp_path, kept):
    data = (source / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(data[:kept])
    write_config(TINY, tmp_path / "config.json")
    check_refused(tmp_path, "model.safetensors", "install the model again")


def damaged(source, tmp_path, **changes):
    """The same file with a header in which the final norm's entry is changed."""
    data = (source / "model.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["norm.weight"] |= changes
    text = json.dumps(header).encode()
    (tmp_path / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
    write_config(TINY, tmp_path / "config.json")
    return tmp_path


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"data_offsets": [0, 2**40]}, "does not fit the file"),
        ({"data_offsets": [-256, 0]}, "does not fit the file"),
        ({"shape": [1]}, "does not fit the file"),
        ({"shape": [-1, -64]}, "does not fit the file"),
        ({"dtype": "C64"}, "convert it to one of"),
        ({"shape": "wide"}, "damaged header"),
        ({"shape": [1] * 100}, "length <= 8"),
    ],
    ids=str,
)
def test_false_header_is_refused(source, tmp_path, changes, word):
    check_refused(damaged(source, tmp_path, **changes), "model.safetensors", word)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ((1 << 40).to_bytes(8, "little"), "its header has 1,099,511,627,776 bytes, more than 8,388,608"),
        ((9 << 20).to_bytes(8, "little") + b" " * (9 << 20), "its header has 9,437,184 bytes"),
        ((20_005).to_bytes(8, "little") + b'{"a":' + b"[" * 10_000 + b"]" * 10_000, "damaged header"),
        ((12).to_bytes(8, "little") + b'{"\xff\xff": {} }', "damaged header"),
    ],
)
def test_header_that_takes_long_to_read_is_not_read(tmp_path, header, said):
    (tmp_path / "model.safetensors").write_bytes(header)
    write_config(TINY, tmp_path / "config.json")
    check_refused(tmp_path, said)


def test_tensors_of_more_bytes_than_the_file_are_refused(tmp_path):
    entry = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
    header = json.dumps({"a": entry, "b": entry}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    write_config(TINY, tmp_path / "config.json")
    check_refused(tmp_path, "its tensors overlap")


def test_weights_of_another_config_are_refused(tmp_path):
    written(TINY, random_weights(msgspec.structs.replace(TINY, feed_forward=256)), tmp_path)
    check_refused(tmp_path, "feed_forward", "256", "128", "belongs to another model")


def test_missing_and_unknown_weights_are_named(tmp_path):
    weights = random_weights(TINY)
    weights["extra.weight"] = weights.pop("norm.weight")
    written(TINY, weights, tmp_path)
    check_refused(tmp_path, "norm.weight", "extra.weight")


def test_int8_matrix_needs_its_scales(tmp_path):
    weights = random_weights(TINY)
    weights["embedding.weight"] = weights["embedding.weight"].astype(np.int8)
    written(TINY, weights, tmp_path)
    check_refused(tmp_path, "embedding.weight.scale")


@pytest.mark.parametrize(
    ("name", "kind", "scales", "said"),
    [
        ("norm.weight", np.int8, np.ones((64, 1), np.float32), "unknown ['norm.weight.scale']"),
        ("embedding.weight", np.int8, np.ones((512, 1), np.float32), "either all matrices are quantised or none"),
        ("embedding.weight", np.int8, np.ones((512, 2), np.float32), "embedding.weight is int8"),
        ("embedding.weight", np.int8, np.ones((512, 1), np.float16), "embedding.weight is int8"),
        ("embedding.weight", np.uint8, np.ones((512, 2), np.float16), "embedding.weight is uint8"),
    ],
)
def test_scales_that_fit_no_matrix_are_refused(tmp_path, name, kind, scales, said):
    weights = random_weights(TINY)
    weights[name], weights[name + ".scale"] = weights[name].astype(kind), scales
    written(TINY, weights, tmp_path)
    check_refused(tmp_path, said)


def test_folder_without_weights_is_named(tmp_path):
    write_config(TINY, tmp_path / "config.json")
    check_refused(tmp_path, "no .safetensors file")
