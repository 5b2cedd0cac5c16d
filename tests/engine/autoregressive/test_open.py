"""From the folder of a checkpoint as it was published to the answers that its own library gives."""

import json

import numpy as np
import pytest

from mercury_engine.api import EngineError
from mercury_engine.autoregressive.engine import open_autoregressive
from mercury_engine.model.decoder import read_decoder
from mercury_engine.model.openvino_runtime import OpenvinoRuntime
from mercury_engine.model.runtime import Resources
from mercury_engine.model.silent_openvino import ov
from mercury_engine.record import ModelRecord
from tests.engine.autoregressive.models import FIM, TOKENIZER, decoded, engine
from tests.engine.tiny import gap
from tests.engine.tokens.pretrained_files import spec

TEXT = "class Shape:\n    def area(self):\n        return self.width\n"
TOKENS = 12


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A random Qwen2 model of transformers with its tokenizer, as they are published."""
    import torch
    import transformers

    torch.manual_seed(0)
    shape = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = transformers.Qwen2Config(**shape, num_key_value_heads=2, vocab_size=TOKENIZER.vocabulary)
    model = transformers.Qwen2ForCausalLM(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight) * 0.3 + (weight.dim() == 1))
    folder = tmp_path_factory.mktemp("checkpoint")
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(spec("qwen")), encoding="utf-8")
    return model, folder


def generated(model, ids):
    """What transformers adds to these tokens, greedily."""
    import torch

    ends = [TOKENIZER.special(name) for name in TOKENIZER.added]
    asked = torch.tensor([ids])
    found = model.generate(
        asked,
        attention_mask=torch.ones_like(asked),
        do_sample=False,
        max_new_tokens=TOKENS,
        eos_token_id=ends,
        pad_token_id=ends[0],
    )
    return [token for token in found[0, len(ids) :].tolist() if token not in ends]


@pytest.mark.slow
@pytest.mark.parametrize("drafting", [True, False])
def test_answers_are_those_of_transformers(saved, drafting):
    model, folder = saved
    config, weights = read_decoder(folder)
    answering = engine(OpenvinoRuntime(config, weights, threads=1, precision=ov.Type.f32), drafting=drafting)
    for marked in (f"{TEXT}$0", f"{TEXT}$0x = 1\n", f"$0{TEXT}"):
        asked = gap(marked, block=True, most_tokens=TOKENS, effort="medium")
        answer = decoded(answering, asked)
        expected = generated(model, answer.question.ids.tolist())
        written = [choice.token for choice in answer.choices][: len(expected)]
        assert len(written) > 1
        assert written == expected[: len(written)]


@pytest.mark.slow
def test_folder_is_opened_as_its_record_says(saved):
    _, folder = saved
    answering = open_autoregressive(folder, FIM, Resources("cpu", threads=1))
    *_, last = answering.fill(gap(f"{TEXT}$0", most_tokens=4))
    info = answering.info()
    assert last.final
    assert (info.model, info.fills) == (FIM.name, True)
    assert info.bytes > sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    assert np.isfinite(last.p_accept)


@pytest.mark.slow
def test_prompt_tokens_missing_from_the_model_are_refused(saved):
    with pytest.raises(EngineError, match="no token"):
        open_autoregressive(saved[1], ModelRecord(name="x", kind="fim", prompt="starcoder"), Resources("cpu", 1))
