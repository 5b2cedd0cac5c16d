"""Four bits that are fitted to what a model reads: what they lose, what is written, and what is refused."""

import msgspec
import numpy as np
import pytest
import torch

from mercury_engine.model import openvino_runtime, provenance, torch_runtime
from mercury_engine.model.config import TINY
from mercury_engine.model.export import export, plain, read
from mercury_engine.model.quantize import dequantize_groups, quantize_groups
from mercury_engine.model.runtime import Rows
from mercury_training import quantize
from mercury_training.models import create, save
from mercury_training.quantize import error, made_up, rounded
from tests.training.small import GOLDEN, TOKENIZER, source, write_corpus

CONFIG = msgspec.structs.replace(TINY, vocabulary=TOKENIZER.vocabulary, width=128, head_width=32, feed_forward=256)
IDS = np.array(TOKENIZER.encode(source(7))[:100], np.int32)
"""Text like that of the corpus, but not of it."""


def matrix(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape, np.float32))


def inputs(rows, width):
    """Some are large, and neighbours resemble each other."""
    given = matrix(rows, width, seed=1)
    given[:, 1:] += given[:, :-1]
    given[:, ::7] *= 5
    return given


def rounded_alone(weight):
    return torch.from_numpy(dequantize_groups(*quantize_groups(weight.numpy(), 128)))


def test_outputs_move_less_than_if_every_value_is_rounded_alone():
    weight, given = matrix(32, 256), inputs(2000, 256)
    products = given.T @ given
    alone, together = (
        error(weight, other, products) for other in (rounded_alone(weight), rounded(weight, products).floats())
    )
    assert together < 0.4 * alone


def test_weight_makes_up_for_what_its_inputs_lack():
    weight, exact = matrix(32, 256), inputs(2000, 256)
    given = exact + 0.3 * exact.roll(1, 1)
    products = given.T @ given
    changed = made_up(weight, products, weight @ (exact - given).T @ given)
    left, before = (float((given @ other.T - exact @ weight.T).square().sum()) for other in (changed, weight))
    assert left < 0.5 * before


@pytest.mark.parametrize("weight", [torch.zeros(4, 128), torch.eye(4, 128), -torch.ones(4, 128)], ids=["0", "1", "-1"])
def test_simple_weights_are_kept(weight):
    given = inputs(300, 128)
    torch.testing.assert_close(rounded(weight, given.T @ given).floats(), weight, atol=0.01, rtol=0)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    write_corpus(folder / "corpus")
    save(create(CONFIG, 0), folder / "float")
    (folder / "float/tokenizer.json").write_bytes(GOLDEN.read_bytes())
    quantize.main([str(folder / "float"), str(folder / "corpus"), str(folder / "int4"), "--rows", "2"])
    return folder


def outputs(runtime):
    return runtime.forward(Rows(IDS, np.arange(len(IDS), dtype=np.int32)), runtime.cache()).logits_WV


def test_folder_opens_everywhere_and_answers_nearer_than_plain_rounding(made):
    exact = outputs(torch_runtime.open_torch(made / "float", device="cpu"))
    export(made / "float", made / "plain", 4)
    size, moved, plainly = (
        np.linalg.norm(exact - other)
        for other in (0, *(outputs(torch_runtime.open_torch(made / name, device="cpu")) for name in ("int4", "plain")))
    )
    assert moved < 0.9 * plainly < 0.5 * size
    served = outputs(openvino_runtime.load(made / "int4", threads=1))
    assert np.linalg.norm(served - exact) < 0.3 * size


def test_steps_tell_what_it_was_fitted_to_and_can_be_repeated(made, tmp_path, capsys):
    (step,) = provenance.steps(made / "int4")
    tokens = step.settings.pop("tokens")
    assert step.command == "mercury_training.quantize"
    assert step.settings == {"rows": 2, "seed": 0, "precision": "float32"}
    assert step.read == {"model": provenance.digests(made / "float")}
    quantize.main([str(made / "float"), str(made / "corpus"), str(tmp_path), "--rows", "2"])
    assert "the outputs of each matrix move by at most" in capsys.readouterr().out
    assert provenance.steps(tmp_path)[0].settings["tokens"] == tokens
    assert provenance.digests(tmp_path) == provenance.digests(made / "int4")


def test_untied_head_is_fitted_too(made, tmp_path):
    save(create(msgspec.structs.replace(CONFIG, tied=False, gated=False), 0), tmp_path / "float")
    (tmp_path / "float/tokenizer.json").write_bytes(GOLDEN.read_bytes())
    quantize.main([str(tmp_path / "float"), str(made / "corpus"), str(tmp_path / "int4"), "--rows", "1"])
    before, after = read(tmp_path / "float")[1], read(tmp_path / "int4")[1]
    assert np.linalg.norm(plain(after, "head.weight") - before["head.weight"]) < 0.2 * np.linalg.norm(
        before["head.weight"]
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"width": 64}, "a row of embedding.weight is not a whole number of groups of 128"),
        ({"vocabulary": 400}, "its vocabulary is not that of"),
    ],
)
def test_models_that_cannot_be_fitted_are_refused(made, tmp_path, changes, said):
    save(create(msgspec.structs.replace(CONFIG, **changes), 0), tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(b"" if "vocabulary" in changes else GOLDEN.read_bytes())
    with pytest.raises(SystemExit, match=said):
        quantize.main([str(tmp_path), str(made / "corpus"), str(tmp_path / "out")])
