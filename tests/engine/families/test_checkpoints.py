"""Each family from files in its published layout: the whole way to an answer, and the logits of transformers."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from mercury_engine.api import EngineError
from mercury_engine.families.context import Around
from mercury_engine.families.engine import open_family
from mercury_engine.families.family import family_for, family_named
from mercury_engine.families.gap import CanvasGap
from mercury_engine.families.progress import Encoded, FamilyModel
from mercury_engine.families.slots import Slots
from mercury_engine.families.vocabulary import FamilyVocabulary
from mercury_engine.model.convert import convert
from mercury_engine.model.decoder import read_decoder
from mercury_engine.model.openvino_runtime import OpenvinoRuntime
from mercury_engine.model.runtime import Resources
from mercury_engine.model.silent_openvino import ov
from mercury_engine.record import ModelRecord
from mercury_engine.tokens.pretrained import PretrainedTokenizer
from tests.engine.families.checkpoints import CHECKPOINTS, SIZES, as_llada, write
from tests.engine.families.fakes import gap

TOLERANCE = 2e-5
CPU = Resources(device="cpu", threads=1)


@pytest.fixture(scope="module")
def torch_and_transformers():
    """Their import takes seconds."""
    import torch
    import transformers

    return torch, transformers


def record(family):
    return ModelRecord(name="m", kind="diffusion", prompt=family)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_from_files_to_an_answer(name, tmp_path):
    checkpoint, config = write(tmp_path, name)
    tokenizer = PretrainedTokenizer(tmp_path / "tokenizer.json")
    family = family_for(config, tokenizer.added, checkpoint)
    assert family == family_named(name)
    engine = open_family(tmp_path, record(name), CPU)
    asked = gap("def area(self):\n    return sel$0\n\n", block=True, most_tokens=16)
    drafts = list(engine.fill(asked))
    assert drafts[-1].final
    assert len(drafts) > 2
    assert engine.info().model == "m"
    *_, again = engine.fill(asked)
    assert again.text == drafts[-1].text, "what is still encoded changes no answer"
    assert again.confidence == pytest.approx(drafts[-1].confidence, rel=1e-5)


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_as_it_is_added(precision, tmp_path):
    write(tmp_path, "dreamon")
    convert(tmp_path, tmp_path / "added", precision)
    engine = open_family(tmp_path / "added", record("dreamon"), CPU)
    *_, last = engine.fill(gap("def area(self):\n    return $0\n", most_tokens=16))
    assert last.final
    assert engine.info().bytes > 0


def test_record_of_unknown_family_is_refused(tmp_path):
    with pytest.raises(EngineError, match=r"prompt is 'qwen', not one of the families dream, .*model add"):
        open_family(tmp_path, record("qwen"), CPU)


def on_openvino(config, weights):
    return OpenvinoRuntime(config, weights, threads=1, precision=ov.Type.f32)


def on_torch(config, weights):
    from mercury_engine.model.torch_runtime import of_weights

    return of_weights(config, weights, device="cpu", precision="float32")


@pytest.mark.parametrize("opened", [on_openvino, on_torch])
@pytest.mark.parametrize("name", ["dream", "tiny-a2d", "llada"])
def test_logits_of_a_gap_are_those_of_the_whole_sequence(name, opened, tmp_path, torch_and_transformers):
    """Shifted where the family shifts; reading the gap alone over cached keys and values changes nothing at first."""
    write(tmp_path, name)
    runtime = opened(*read_decoder(tmp_path))
    model = model_of(runtime, name, tmp_path)
    before, after = [3, 9, 27, 81], [5, 25, 125]
    for encoded in (None, Encoded(runtime.cache())):
        canvas = CanvasGap(model, Around(before, after, b""), Slots(model.vocabulary, 6, limit=6), encoded)
        first, second = canvas.read(), canvas.read()
        expected = published(*torch_and_transformers, tmp_path, name, [*before, *canvas.slots.ids, *after])[4:10]
        np.testing.assert_allclose(first, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())
        np.testing.assert_allclose(second, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())


def model_of(runtime, name, folder):
    family = family_named(name)
    tokenizer = PretrainedTokenizer(folder / "tokenizer.json")
    return FamilyModel(runtime, family, FamilyVocabulary(family, tokenizer, runtime.config.vocabulary))


def published(torch, transformers, folder, name, ids):
    """As the families' own code has it: attention over everything, then `cat([logits[:1], logits[:-1]])`."""
    layers = {"dream": "Qwen2", "tiny-a2d": "Qwen3", "llada": "Llama"}[name]
    config = getattr(transformers, f"{layers}Config")(**SIZES, head_dim=16, is_causal=False)
    model = getattr(transformers, f"{layers}ForCausalLM")(config).eval()
    stored = load_file(folder / "model.safetensors")
    renamed = {key: stored[as_llada(key) if name == "llada" else key] for key in model.state_dict()}
    model.load_state_dict({key: torch.from_numpy(weight) for key, weight in renamed.items()})
    with torch.no_grad():
        logits = model(
            torch.tensor([ids]), attention_mask=torch.ones(1, 1, len(ids), len(ids), dtype=torch.bool)
        ).logits
    shifted = torch.cat([logits[:, :1], logits[:, :-1]], 1) if family_named(name).shift else logits
    return shifted[0].numpy()
