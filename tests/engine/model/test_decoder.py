"""Checkpoints of other people answer as transformers' own layers do, before and after they are converted."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from mercury_engine.model.checkpoint import read_checkpoint
from mercury_engine.model.config import ModelError
from mercury_engine.model.convert import convert
from mercury_engine.model.decoder import open_decoder, read_decoder
from mercury_engine.model.openvino_runtime import OpenvinoRuntime
from mercury_engine.model.runtime import Resources, Rows
from mercury_engine.model.silent_openvino import ov
from mercury_engine.record import ModelRecord
from tests.engine.families.checkpoints import as_llada

TOLERANCE = 2e-4
VOCABULARY = 300
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}


def rope(kind, **fields):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10_000.0, **fields}}


LLAMA3 = rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
GRANITE = {
    "embedding_multiplier": 12.0,
    "attention_multiplier": 0.08,
    "residual_multiplier": 0.22,
    "logits_scaling": 4.0,
}
DENSE_HYBRID = {
    "layer_types": ["attention"] * 2,
    "num_local_experts": 0,
    "num_experts_per_tok": 0,
    "shared_intermediate_size": 96,
    "mamba_n_heads": 8,
}
CASES = {
    "qwen2": ("Qwen2", {}),
    "qwen2 tied": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3", {}),
    "llama": ("Llama", {}),
    "llama biases": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "deepseek": ("Llama", rope("linear", factor=4.0)),
    "llama 3": ("Llama", LLAMA3),
    "yarn": ("Qwen2", rope("yarn", factor=4.0, original_max_position_embeddings=64)),
    "mistral": ("Mistral", {"sliding_window": 128}),
    "starcoder2": ("Starcoder2", {"sliding_window": 128, "use_bias": True}),
    "granite": ("Granite", GRANITE),
    "granite 4": ("GraniteMoeHybrid", GRANITE | DENSE_HYBRID | {"position_embedding_type": "rope"}),
    "granite 4 without positions": ("GraniteMoeHybrid", GRANITE | DENSE_HYBRID),
    "codegemma": ("Gemma", {"tie_word_embeddings": True}),
}
AS_DIFFUSION = {
    "qwen2": "DreamModel",
    "qwen2 tied": "A2DQwen2LMHeadModel",
    "qwen3": "A2DQwen3LMHeadModel",
    "llama": "A2DLlamaLMHeadModel",
}
"""Classes of diffusion models whose checkpoints have the names of the model that they were made from."""

LLADA_CONFIG = {
    "architectures": ["LLaDAModelLM"],
    "model_type": "llada",
    "block_type": "llama",
    "activation_type": "silu",
    "d_model": 64,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 2,
    "mlp_hidden_size": 96,
    "max_sequence_length": 256,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10_000.0,
    "vocab_size": VOCABULARY,
    "embedding_size": VOCABULARY,
    "weight_tying": False,
}


@pytest.fixture(scope="module")
def torch_and_transformers():
    """Their import takes seconds."""
    import torch
    import transformers

    return torch, transformers


@pytest.fixture(scope="module")
def saved(torch_and_transformers, tmp_path_factory):
    """A random model of a class of transformers, as it saves it, by the name of its case."""
    torch, transformers = torch_and_transformers
    models = {}

    def save(case):
        if case not in models:
            family, changed = CASES[case]
            torch.manual_seed(0)
            config = getattr(transformers, f"{family}Config")(**SHAPE | changed)
            model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
            with torch.no_grad():
                for weight in model.parameters():
                    weight.copy_(torch.randn_like(weight) * 0.1 + (weight.dim() == 1))
            folder = tmp_path_factory.mktemp(case.replace(" ", "-"))
            model.save_pretrained(folder)
            models[case] = model, folder
        return models[case]

    return save


def ids_of(count):
    return np.random.default_rng(0).integers(3, VOCABULARY, count).astype(np.int32)


def runtime_of(folder, context=0):
    config, weights = read_decoder(folder, context)
    return OpenvinoRuntime(config, weights, threads=1, precision=ov.Type.f32)


def rows_of(ids, start=0, **options):
    return Rows(ids, np.arange(start, start + len(ids), dtype=np.int32), **options)


def logits_of(runtime, ids, **options):
    return runtime.forward(rows_of(ids, **options), runtime.cache()).logits_WV


def theirs(torch, model, ids, *, causal=True):
    count = len(ids)
    mask = torch.ones(count, count, dtype=torch.bool)
    mask = (mask.tril() if causal else mask)[None, None]
    with torch.no_grad():
        return model(torch.from_numpy(ids)[None].long(), attention_mask=mask).logits[0].numpy()


def check_close(found, expected, tolerance=TOLERANCE):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("case", CASES)
def test_logits_equal_those_of_transformers(case, saved, torch_and_transformers):
    model, folder = saved(case)
    ids = ids_of(100)
    check_close(logits_of(runtime_of(folder), ids), theirs(torch_and_transformers[0], model, ids))


def seeing_all(count):
    return np.ones((count, count), bool)


@pytest.mark.parametrize("case", AS_DIFFUSION)
def test_diffusion_models_see_both_ways(case, saved, torch_and_transformers, tmp_path):
    model, folder = saved(case)
    rewritten(copied(folder, tmp_path) / "config.json", architectures=[AS_DIFFUSION[case]], model_type="other")
    ids = ids_of(60)
    found = logits_of(runtime_of(tmp_path), ids, mask_RC=seeing_all(60))
    check_close(found, theirs(torch_and_transformers[0], model, ids, causal=False))


def test_llada_is_a_llama_with_other_names(saved, torch_and_transformers, tmp_path):
    model, folder = saved("llama")
    weights = {}
    for name, weight in load_file(folder / "model.safetensors").items():
        weights[as_llada(name)] = weight
    save_file(weights, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(LLADA_CONFIG))
    ids = ids_of(60)
    found = logits_of(runtime_of(tmp_path), ids, mask_RC=seeing_all(60))
    check_close(found, theirs(torch_and_transformers[0], model, ids, causal=False))


def test_cache_continues_what_was_read(saved):
    runtime, ids = runtime_of(saved("qwen2")[1]), ids_of(100)
    cache, found = runtime.cache(), []
    for start, stop in ((0, 70), (70, 71), (71, 90), (90, 100)):
        forward = runtime.forward(rows_of(ids[start:stop], start), cache)
        cache.append(forward, range(stop - start))
        found.append(forward.logits_WV)
    check_close(np.concatenate(found), logits_of(runtime, ids))


def test_half_precision_checkpoint_is_read_as_it_is(saved, tmp_path):
    """Its weights in float32 are arrays of no file any more."""
    _, folder = saved("qwen2")
    stored = load_file(folder / "model.safetensors")
    save_file({name: weight.astype(np.float16) for name, weight in stored.items()}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    ids = ids_of(40)
    np.testing.assert_allclose(logits_of(runtime_of(tmp_path), ids), logits_of(runtime_of(folder), ids), atol=0.05)


def test_open_decoder_reads_as_far_as_the_record_says(saved):
    folder = saved("qwen2")[1]
    record = ModelRecord(name="tiny", kind="fim", prompt="qwen", context=128)
    config = open_decoder(folder, record, Resources(device="cpu", threads=1)).config
    assert (config.name, config.context) == ("tiny", 128)


@pytest.mark.parametrize("case", CASES)
def test_network_for_gpus_answers_alike(case, saved, torch_and_transformers):
    from mercury_engine.model.torch_runtime import of_weights

    model, folder = saved(case)
    ids = ids_of(40)
    found = logits_of(of_weights(*read_decoder(folder, 0), device="cpu", precision="float32"), ids)
    check_close(found, theirs(torch_and_transformers[0], model, ids))


@pytest.mark.parametrize(("precision", "most"), [("int8", 0.05), ("int4", 0.5)])
@pytest.mark.parametrize("case", ["qwen2", "qwen2 tied", "starcoder2", "granite 4", "codegemma"])
def test_converted_weights_answer_almost_alike(case, precision, most, saved, tmp_path):
    folder, shares = saved(case)[1], []
    facts = convert(folder, tmp_path, precision, lambda share, doing: shares.append(share))
    ids = ids_of(60)
    expected, found = logits_of(runtime_of(folder), ids), logits_of(runtime_of(tmp_path), ids)
    assert np.linalg.norm(found - expected) < most * np.linalg.norm(expected)
    assert runtime_of(tmp_path).precision == f"{precision} weights, f32"
    assert (facts.vocabulary, facts.precision) == (VOCABULARY, precision)
    assert facts.bytes == (tmp_path / "weights.safetensors").stat().st_size
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_converting_again_replaces_what_was_there(saved, tmp_path):
    folder = saved("llama")[1]
    convert(folder, tmp_path, "int8")
    convert(folder, tmp_path, "int4")
    assert runtime_of(tmp_path).precision == "int4 weights, f32"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.json",
        "generation_config.json",
        "weights.safetensors",
    ]


def test_description_without_an_end_is_not_copied(saved, tmp_path):
    folder, target = tmp_path / "made", tmp_path / "converted"
    folder.mkdir()
    copied(saved("llama")[1], folder).joinpath("tokenizer_config.json").symlink_to("/dev/zero")
    with pytest.raises(ModelError, match=r"tokenizer_config\.json: .*is not a file"):
        convert(folder, target)


def copied(folder, target):
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


def rewritten(path, **changed):
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def check_refused(folder, *words):
    with pytest.raises(ModelError) as caught:
        read_decoder(folder)
    assert [word for word in (str(folder), *words) if word not in str(caught.value)] == []


def test_added_model_without_its_weights_must_be_added_again(tmp_path):
    check_refused(tmp_path, "weights.safetensors", "add the model again")


SERVER = "llama-server or Ollama"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"architectures": ["Qwen3MoeForCausalLM"]}, ["Qwen3MoeForCausalLM", SERVER]),
        ({"architectures": None, "model_type": "mamba"}, ["mamba", SERVER]),
        ({"num_local_experts": 8}, ["num_local_experts is 8", SERVER]),
        ({"layer_types": ["full_attention", "linear_attention"]}, ["['linear_attention']", SERVER]),
        ({"partial_rotary_factor": 0.25}, ["partial_rotary_factor is 0.25", SERVER]),
        ({"quantization_config": {"bits": 4}}, ["quantization_config", SERVER]),
        ({"hidden_act": "relu"}, ["hidden_act is 'relu'", SERVER]),
        ({"rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4}}, ["'longrope'", SERVER]),
        ({"rope_parameters": {"rope_type": "linear"}}, ["'linear' without 'factor'", "download"]),
        ({"num_hidden_layers": 3}, ["layers.2", "missing", "download"]),
        ({"hidden_size": None}, ["config.json", "hidden_size is None", "download"]),
        ({"intermediate_size": 50}, ["feed_forward", "(64, 96)", "(64, 50)"]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_model_that_cannot_run_here_is_named_with_a_remedy(changed, words, saved, tmp_path):
    copied(saved("qwen2")[1], tmp_path)
    rewritten(tmp_path / "config.json", **changed)
    check_refused(tmp_path, *words)


def test_weights_that_are_no_numbers_are_named(saved, tmp_path):
    folder = copied(saved("qwen2")[1], tmp_path)
    weights = load_file(folder / "model.safetensors")
    weights["model.layers.1.mlp.up_proj.weight"][3, 5] = np.nan
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"layers\.1\.feed_forward\.up\.weight has values that are not numbers"):
        convert(folder, tmp_path / "converted")


def test_weights_of_integers_are_refused(saved, tmp_path):
    folder = copied(saved("qwen2")[1], tmp_path)
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"] = weights["model.norm.weight"].astype(np.int8)
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"model\.norm\.weight is I8, and weights are floats"):
        read_checkpoint(folder)


def test_damaged_and_missing_files_are_named_with_a_remedy(saved, tmp_path):
    weights = copied(saved("qwen2")[1], tmp_path) / "model.safetensors"
    data = weights.read_bytes()
    weights.write_bytes(data[:-1])
    check_refused(tmp_path, "model.safetensors", "damaged or truncated", "download")
    weights.write_bytes(b"\x08" + bytes(7) + b"no json!")
    check_refused(tmp_path, "model.safetensors", "damaged header", "download")
    (tmp_path / "config.json").rename(tmp_path / "no.json")
    check_refused(tmp_path, "config.json", "name the folder of a checkpoint")
    (tmp_path / "no.json").rename(tmp_path / "config.json")
    weights.rename(tmp_path / "pytorch_model.bin")
    check_refused(tmp_path, "weights.safetensors", "mercury-ls model add")
    with pytest.raises(ModelError, match=r"only \.safetensors are read"):
        read_checkpoint(tmp_path, 64)


def test_damaged_converted_folder_says_to_add_model_again(saved, tmp_path):
    convert(saved("qwen2")[1], tmp_path)
    weights = tmp_path / "weights.safetensors"
    data = weights.read_bytes()
    weights.write_bytes(data[:-1])
    check_refused(tmp_path, "weights.safetensors", "damaged or truncated", "mercury-ls model add")
    weights.write_bytes(data)
    rewritten(tmp_path / "config.json", num_hidden_layers=3)
    check_refused(tmp_path, "weights.safetensors", "layers.2", "mercury-ls model add")


def test_failed_conversion_leaves_nothing_behind(saved, tmp_path):
    def fail(share, doing):
        raise OSError(28, "No space left on device")

    with pytest.raises(ModelError, match=r"No space left on device.*needs 0 MiB of free disk"):
        convert(saved("qwen2")[1], tmp_path, "int8", fail)
    assert list(tmp_path.iterdir()) == []
