"""The reference model: stock Qwen3 layers, fused passes equal to separate ones, files that are checked."""

import json
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from mercury_engine.model.config import TINY, ModelError, read_config, write_config
from mercury_engine.model.export import export
from mercury_engine.model.network import Model
from mercury_training.models import SMALL, create, load, save
from mercury_training.rows.blocks import Block
from tests.masks import canvas_mask

CONTEXT, CANVAS = 20, 8


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def ids_of(rows, seed=0, batch=1):
    return torch.from_numpy(np.random.default_rng(seed).integers(64, TINY.vocabulary, (batch, rows)))


def positions_of(start, stop, batch=1):
    return torch.arange(start, stop).expand(batch, -1)


def masks(blocks, first_row=0):
    return torch.from_numpy(canvas_mask(blocks, first_row))


def check_close(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def joined(cache, new, rows):
    """The cache with the first `rows` of the new keys and values behind it."""
    return [
        (torch.cat([k, new_k[:, :, :rows]], 2), torch.cat([v, new_v[:, :, :rows]], 2))
        for (k, v), (new_k, new_v) in zip(cache, new, strict=True)
    ]


def qwen3_twin(model):
    """A stock Qwen3 with the same weights."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = model.config
    twin = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=config.vocabulary,
            hidden_size=config.width,
            intermediate_size=config.feed_forward,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.kv_heads,
            head_dim=config.head_width,
            max_position_embeddings=config.context,
            rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
            rms_norm_eps=config.norm_epsilon,
            tie_word_embeddings=True,
        )
    ).eval()
    twin.load_state_dict({qwen3_name(name): weight for name, weight in model.state_dict().items()}, strict=False)
    return twin


def qwen3_name(name):
    for ours, theirs in (
        ("embedding.", "model.embed_tokens."),
        ("attention_norm", "input_layernorm"),
        ("feed_forward_norm", "post_attention_layernorm"),
        ("attention.query_norm", "self_attn.q_norm"),
        ("attention.key_norm", "self_attn.k_norm"),
        ("attention.query", "self_attn.q_proj"),
        ("attention.key", "self_attn.k_proj"),
        ("attention.value", "self_attn.v_proj"),
        ("attention.output", "self_attn.o_proj"),
        ("feed_forward.gate", "mlp.gate_proj"),
        ("feed_forward.up", "mlp.up_proj"),
        ("feed_forward.down", "mlp.down_proj"),
    ):
        name = name.replace(ours, theirs)
    return name if name.startswith("model.") else f"model.{name}"


def vivid(config):
    """Random weights large enough for every part to matter, norms included."""
    model = create(config, 0)
    generator = torch.Generator().manual_seed(0)
    for name, weight in model.named_parameters():
        if "norm" in name:
            weight.copy_(torch.rand(weight.shape, generator=generator) + 0.5)
        else:
            weight.mul_(6)
    return model


@pytest.mark.slow
def test_equals_stock_qwen3_under_the_canvas_mask_and_under_a_cache():
    model = vivid(TINY)
    twin = qwen3_twin(model)
    blocks = [Block(CONTEXT), Block(3, parent=CONTEXT - 1), Block(CANVAS, parent=CONTEXT + 2, causal=False)]
    rows = CONTEXT + 3 + CANVAS
    ids, positions = ids_of(rows), positions_of(0, rows)
    expected = twin(input_ids=ids, position_ids=positions, attention_mask=masks(blocks)[None, None]).logits

    hidden, _ = model(ids, positions, masks(blocks))
    assert expected.std() > 0.1
    check_close(model.logits(hidden), expected)

    _, cache = model(ids[:, :CONTEXT], positions[:, :CONTEXT])
    hidden, _ = model(ids[:, CONTEXT:], positions[:, CONTEXT:], masks(blocks, CONTEXT), cache)
    check_close(model.logits(hidden), expected[:, CONTEXT:])


def test_missing_mask_is_causal_with_and_without_a_cache():
    model = vivid(TINY)
    ids, positions = ids_of(12), positions_of(0, 12)
    explicit, _ = model(ids, positions, masks([Block(12)]))
    whole, _ = model(ids, positions)
    _, cache = model(ids[:, :7], positions[:, :7])
    rest, _ = model(ids[:, 7:], positions[:, 7:], cache=cache)
    check_close(whole, explicit)
    check_close(rest, explicit[:, 7:])


def test_typed_tokens_and_canvas_in_one_pass_equal_separate_passes():
    model = vivid(TINY)
    typed = 3
    ids = ids_of(CONTEXT + typed + CANVAS)
    positions = positions_of(0, CONTEXT + typed + CANVAS)
    clean = CONTEXT + typed
    _, cache = model(ids[:, :CONTEXT], positions[:, :CONTEXT])

    typed_hidden, typed_new = model(ids[:, CONTEXT:clean], positions[:, CONTEXT:clean], cache=cache)
    longer = joined(cache, typed_new, typed)
    canvas_blocks = [Block(clean), Block(CANVAS, parent=clean - 1, causal=False)]
    canvas_hidden, _ = model(ids[:, clean:], positions[:, clean:], masks(canvas_blocks, clean), longer)

    blocks = [Block(CONTEXT), Block(typed, CONTEXT - 1), Block(CANVAS, clean - 1, causal=False)]
    fused, new = model(ids[:, CONTEXT:], positions[:, CONTEXT:], masks(blocks, CONTEXT), cache)
    check_close(fused, torch.cat([typed_hidden, canvas_hidden], 1))
    for (k, v), (expected_k, expected_v) in zip(joined(cache, new, typed), longer, strict=True):
        check_close(k, expected_k)
        check_close(v, expected_v)


def test_verify_and_redraft_in_one_pass_equal_separate_passes():
    """A draft of four hangs on the last clean row, and a canvas on the draft's second token."""
    model = vivid(TINY)
    _, cache = model(ids_of(CONTEXT), positions_of(0, CONTEXT))
    draft, canvas = ids_of(4, seed=1), ids_of(CANVAS, seed=2)
    draft_at, canvas_at = positions_of(CONTEXT, CONTEXT + 4), positions_of(CONTEXT + 2, CONTEXT + 2 + CANVAS)

    verified, new = model(draft, draft_at, cache=cache)
    accepted = joined(cache, new, 2)
    separate = [Block(CONTEXT + 2), Block(CANVAS, CONTEXT + 1, causal=False)]
    redrafted, _ = model(canvas, canvas_at, masks(separate, CONTEXT + 2), accepted)

    blocks = [Block(CONTEXT), Block(4, CONTEXT - 1), Block(CANVAS, CONTEXT + 1, causal=False)]
    ids, positions = torch.cat([draft, canvas], 1), torch.cat([draft_at, canvas_at], 1)
    fused, _ = model(ids, positions, masks(blocks, CONTEXT), cache)
    check_close(fused, torch.cat([verified, redrafted], 1))


def test_rows_of_a_batch_do_not_depend_on_each_other():
    model = vivid(TINY)
    ids = ids_of(10, batch=3)
    mask = torch.stack([masks([Block(10)]), masks([Block(4), Block(6)]), masks([Block(10, causal=False)])])
    together, _ = model(ids, positions_of(0, 10, batch=3), mask)
    for index in range(3):
        alone, _ = model(ids[index : index + 1], positions_of(0, 10), mask[index])
        check_close(together[index : index + 1], alone)


def test_attention_can_be_injected():
    def attend_itself(q_BHTE, k_BKSE, v_BKSE, mask):
        assert mask == "whatever the attention takes"
        return v_BKSE.repeat_interleave(q_BHTE.shape[1] // v_BKSE.shape[1], 1)

    model = vivid(TINY)
    ids, positions = ids_of(6), positions_of(0, 6)
    found, _ = model(ids, positions, "whatever the attention takes", attend=attend_itself)
    check_close(found, model(ids, positions, torch.eye(6, dtype=torch.bool))[0])


def test_preset_has_its_size():
    def parameters(config):
        with torch.device("meta"):
            return sum(weight.numel() for weight in Model(config).parameters())

    assert round(parameters(SMALL) / 1e6, 1) == 42.2


def test_initial_weights_are_fixed_by_the_seed():
    first, same, other = create(TINY, 1), create(TINY, 1), create(TINY, 2)
    assert torch.equal(first.embedding.weight, same.embedding.weight)
    assert not torch.equal(first.embedding.weight, other.embedding.weight)


@pytest.mark.parametrize("changes", [{}, {"tied": False}, {"qkv_bias": True, "qk_norm": False}])
def test_saved_model_is_the_same_model(tmp_path, changes):
    model = create(msgspec.structs.replace(TINY, **changes), 0)
    save(model, tmp_path)
    loaded = load(tmp_path)
    assert loaded.config == model.config
    ids, positions = ids_of(6), positions_of(0, 6)
    for found, expected in zip(loaded.state_dict().items(), model.state_dict().items(), strict=True):
        assert found[0] == expected[0]
        assert torch.equal(found[1], expected[1])
    assert torch.equal(loaded.logits(loaded(ids, positions)[0]), model.logits(model(ids, positions)[0]))


@pytest.mark.skipif(sys.platform != "linux", reason="reads the process' map of memory")
def test_loaded_weights_are_the_mapped_file(tmp_path):
    save(create(TINY, 0), tmp_path)
    weights = load(tmp_path).state_dict().values()
    mapped = [
        range(*(int(address, 16) for address in line.split()[0].split("-")))
        for line in Path("/proc/self/maps").read_text().splitlines()
        if line.endswith(str(tmp_path / "model.safetensors"))
    ]
    assert all(any(weight.data_ptr() in addresses for addresses in mapped) for weight in weights)


def test_requested_precision_is_that_of_every_weight(tmp_path):
    save(create(TINY, 0), tmp_path)
    assert {weight.dtype for weight in load(tmp_path, torch.bfloat16).parameters()} == {torch.bfloat16}


def test_logits_are_float32_whatever_the_weights_are():
    model = vivid(TINY).to(torch.bfloat16)
    hidden, _ = model(ids_of(5), positions_of(0, 5))
    assert hidden.dtype == torch.bfloat16
    assert model.logits(hidden[0]).dtype == torch.float32


def change_config(folder, **changes):
    data = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(data | changes))


def test_integer_weights_are_named(tmp_path):
    save(create(TINY, 0), tmp_path / "float")
    export(tmp_path / "float", tmp_path / "int8")
    with pytest.raises(ModelError, match="the weights are quantised; name a folder with float weights"):
        load(tmp_path / "int8")


def test_fields_that_no_model_has_may_stay_unset(tmp_path):
    write_config(TINY, tmp_path / "config.json")
    change_config(tmp_path, role_scalars=False, softcap=None, hints=False)
    assert read_config(tmp_path / "config.json") == TINY


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 0}, "width is 0; it must be positive"),
        ({"kv_heads": 3}, "kv_heads is 3; it must divide heads, 4"),
        ({"head_width": 15}, "head_width is 15"),
        ({"softcap": 5.0}, "softcap is 5.0, which only earlier versions of mercury-ls compute"),
        ({"hints": True}, r"hints is True, .*; choose another model \(`mercury-ls model use auto`\)"),
        ({"vocabulary": 300}, "vocabulary is 300"),
        ({"layout_version": 99}, "layout_version is 99"),
        ({"colour": "red"}, "unknown field `colour`"),
        ({"width": "wide"}, r"got `str` - at `\$.width`"),
    ],
)
def test_wrong_config_is_named(tmp_path, changes, message):
    path = tmp_path / "config.json"
    write_config(TINY, path)
    assert read_config(path) == TINY
    change_config(tmp_path, **changes)
    with pytest.raises(ModelError, match=message) as caught:
        read_config(path)
    assert str(path) in str(caught.value)
