"""Models in the layouts of other engines: what they read there is what we read."""

from pathlib import Path

import numpy as np
import pytest
import torch
from msgspec.structs import replace

from mercury_engine.export import main
from mercury_engine.model.checkpoint import read_checkpoint
from mercury_engine.model.config import TINY, ModelError
from mercury_engine.model.export import export, plain, read
from mercury_engine.model.gguf import checkpoint_in, read_gguf, tokenizer_of
from mercury_engine.model.published import gguf_name, published_name, write_checkpoint, write_gguf
from mercury_training.models import create, save
from tests.engine.tiny import DOCUMENT, TOKENIZER

VOCABULARY = Path(__file__).parents[1] / "golden" / "tokenizer.json"
QWEN2 = replace(TINY, width=128, head_width=32, feed_forward=256, qkv_bias=True, qk_norm=False)
"""Every row of a matrix is a whole number of groups."""


def written(config, folder, bits=0):
    """A random model in floats, or in so many bits."""
    torch.manual_seed(0)
    save(create(config, 0), folder / "float")
    (folder / "float" / "tokenizer.json").write_bytes(VOCABULARY.read_bytes())
    if bits:
        export(folder / "float", folder / "rounded", bits)
    return folder / ("rounded" if bits else "float")


def check_weights(checkpoint, source, tolerance=0.0):
    config, weights = read(source)
    assert replace(checkpoint.config, name=config.name, norm_epsilon=config.norm_epsilon) == config
    assert checkpoint.config.norm_epsilon == pytest.approx(config.norm_epsilon)
    for name, weight in checkpoint.weights.items():
        np.testing.assert_allclose(weight.rows(), plain(weights, name), rtol=tolerance, atol=1e-7 if tolerance else 0)


@pytest.mark.parametrize(
    ("config", "bits", "tolerance"), [(TINY, 0, 0.0), (TINY, 8, 1e-3), (QWEN2, 8, 1e-3), (QWEN2, 4, 0.0)]
)
def test_llama_cpp_reads_the_same_weights(tmp_path, config, bits, tolerance):
    source = written(config, tmp_path, bits)
    file = read_gguf(write_gguf(source, tmp_path / "gguf"))
    check_weights(checkpoint_in(file), source, tolerance)


@pytest.mark.parametrize("config", [TINY, QWEN2], ids=["qwen3", "qwen2"])
def test_published_checkpoint_has_the_same_weights(tmp_path, config):
    source = written(config, tmp_path, 8)
    write_checkpoint(source, tmp_path / "hf")
    check_weights(read_checkpoint(tmp_path / "hf"), source, 1e-3)


def test_llama_cpp_reads_the_same_tokens(tmp_path):
    file = read_gguf(write_gguf(written(TINY, tmp_path), tmp_path / "gguf"))
    texts = (DOCUMENT, "a\r\n\r\n\tb  \n \n x = 12;\n\n", "é {\n})\n\n\n")
    assert [tokenizer_of(file).encode(text).ids for text in texts] == [TOKENIZER.encode(text) for text in texts]
    assert file.fields["tokenizer.ggml.tokens"][:4] == ["<bos>", "<pad>", "<mask>", "<eom>"]


def test_transformers_says_the_same(tmp_path):
    from transformers import AutoModelForCausalLM

    source = written(QWEN2, tmp_path)
    write_checkpoint(source, tmp_path / "hf")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "hf", dtype=torch.float32)
    ids = torch.tensor([[0, *TOKENIZER.encode(DOCUMENT)]])
    ours = create(QWEN2, 0)
    with torch.no_grad():
        expected = ours.logits(ours(ids, torch.arange(ids.shape[1])[None])[0])
    torch.testing.assert_close(theirs(ids).logits, expected, rtol=1e-2, atol=1e-2)


def test_names_of_other_engines():
    name = "layers.3.attention.query.weight"
    assert published_name(name) == "model.layers.3.self_attn.q_proj.weight"
    assert gguf_name(name) == "blk.3.attn_q.weight"
    assert gguf_name("embedding.weight") == "token_embd.weight"


def test_command_says_what_it_wrote_or_what_is_wrong(tmp_path, capsys):
    source = written(TINY, tmp_path)
    main([str(source), str(tmp_path / "gguf"), "--format", "gguf"])
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'gguf' / 'model.gguf'}: ")
    with pytest.raises(SystemExit, match="holds the model; write to another folder"):
        main([str(source), str(source), "--format", "hf"])


def test_layers_that_no_other_engine_knows_are_refused(tmp_path):
    source = written(replace(TINY, qkv_bias=True), tmp_path)
    with pytest.raises(ModelError, match="has layers that no Qwen has"):
        write_gguf(source, tmp_path / "gguf")
