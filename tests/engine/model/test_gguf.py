"""GGUF files become checkpoints with the same weights and the same tokenizer; damaged ones are refused."""

import json
import os
import random
import struct
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from mercury_engine.api import EngineError
from mercury_engine.chat.template import Source, read_source
from mercury_engine.model import gguf, stored
from mercury_engine.model.checkpoint import read_checkpoint
from mercury_engine.model.config import ModelError
from mercury_engine.model.gguf import BLOCKS, dequantize, describe, read_gguf, tokenizer_of, write_weights
from mercury_engine.tokens.pretrained import PretrainedTokenizer

VOCABULARIES = os.environ.get("MERCURY_LS_VOCABULARIES", "")
WIDTH, HEADS, KV_HEADS, INNER = 32, 4, 2, 64
LETTERS = ["a", "b", "Ġ", "ab", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "1", "2"]
SUMS = {
    2: 3846547463,
    3: 4256982466,
    6: 2174317946,
    7: 1523743318,
    8: 1586512141,
    12: 2811684743,
    13: 2375461282,
    14: 4237594304,
}
KINDS = [1, 1, 1, 1, 3, 3, 3, 1, 1]


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def value(found):
    match found:
        case bool():
            return struct.pack("<I?", 7, found)
        case int():
            return struct.pack("<II", 4, found)
        case float():
            return struct.pack("<If", 6, found)
        case str():
            return struct.pack("<I", 8) + text(found)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(found)) + b"".join(map(text, found))
        case [float(), *_]:
            return struct.pack("<IIQ", 9, 6, len(found)) + struct.pack(f"<{len(found)}f", *found)
    return struct.pack("<IIQ", 9, 5, len(found)) + struct.pack(f"<{len(found)}i", *found)


def file_of(fields, tensors, version=3):
    """`tensors`: name, kind, shape and bytes."""
    head, data = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(fields)), b""
    head += b"".join(text(name) + value(found) for name, found in fields.items())
    for name, kind, shape, raw in tensors:
        head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape[::-1])
        head += struct.pack("<IQ", kind, len(data))
        data += raw + bytes(-len(raw) % 32)
    return head + bytes(-len(head) % 32) + data


def quantised(matrix):
    """Q8_0"""
    blocks = matrix.reshape(-1, 32)
    scales = (np.abs(blocks).max(axis=1, keepdims=True) / 127).astype(np.float16)
    values = np.rint(blocks / scales.astype(np.float32)).astype(np.int8)
    return np.concatenate([scales.view(np.uint8).reshape(-1, 2), values.view(np.uint8)], axis=1).tobytes()


def fields(kind="llama", **more):
    sizes = {"embedding_length": WIDTH, "block_count": 1, "feed_forward_length": INNER, "context_length": 128}
    sizes |= {"attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS}
    sizes |= {"attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": 10_000.0}
    tokenizer = {"model": "gpt2", "pre": "qwen2", "tokens": LETTERS, "token_type": KINDS, "merges": ["a b"]}
    return {
        "general.architecture": kind,
        **{f"{kind}.{name}": found for name, found in sizes.items()},
        **{f"tokenizer.ggml.{name}": found for name, found in tokenizer.items()},
        **more,
    }


def weights():
    made = np.random.default_rng(0)
    keys = WIDTH // HEADS * KV_HEADS
    shapes = {"q_proj": (WIDTH, WIDTH), "k_proj": (keys, WIDTH), "v_proj": (keys, WIDTH), "o_proj": (WIDTH, WIDTH)}
    found = {f"self_attn.{name}": shape for name, shape in shapes.items()}
    found |= {"mlp.gate_proj": (INNER, WIDTH), "mlp.up_proj": (INNER, WIDTH), "mlp.down_proj": (WIDTH, INNER)}
    found |= {"input_layernorm": (WIDTH,), "post_attention_layernorm": (WIDTH,)}
    found = {f"model.layers.0.{name}.weight": shape for name, shape in found.items()}
    found |= {"model.embed_tokens.weight": (len(LETTERS), WIDTH), "model.norm.weight": (WIDTH,)}
    return {name: made.normal(0, 0.1, shape).astype(np.float32) for name, shape in found.items()}


def tensors(published, kind):
    theirs = {ours: name for name, ours in gguf.PARTS.items()} | {ours: name for name, ours in gguf.WHOLE.items()}
    for name, weight in published.items():
        part, _, suffix = name.rpartition(".")
        layer = f"blk.0.{theirs[part.split('.', 3)[3]]}" if part.startswith("model.layers") else theirs[part]
        if kind == "llama" and layer.endswith(("attn_q", "attn_k")):
            heads = HEADS if layer.endswith("q") else KV_HEADS
            weight = weight.reshape(heads, 2, -1, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)
        if weight.ndim == 2:
            yield f"{layer}.{suffix}", 8, weight.shape, quantised(weight)
        else:
            yield f"{layer}.{suffix}", 0, weight.shape, weight.tobytes()


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_gguf_file_becomes_a_checkpoint(tmp_path, kind):
    published = weights()
    for part in "qkv":
        rows = len(published[f"model.layers.0.self_attn.{part}_proj.weight"])
        published[f"model.layers.0.self_attn.{part}_proj.bias"] = np.arange(rows, dtype=np.float32)
    (tmp_path / "a.gguf").write_bytes(file_of(fields(kind), list(tensors(published, kind))))
    assert describe(tmp_path / "a.gguf", tmp_path) == sum(weight.size for weight in published.values())
    write_weights(tmp_path / "a.gguf", tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["vocab_size"] == len(LETTERS)
    for read in (read_checkpoint(tmp_path), gguf.checkpoint_in(read_gguf(tmp_path / "a.gguf"))):
        assert (read.config.heads, read.config.kv_heads, read.config.tied) == (HEADS, KV_HEADS, True)
        for ours, theirs in [("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj")]:
            for suffix, most in [("weight", 0.003), ("bias", 0.0)]:
                expected = published[f"model.layers.0.self_attn.{theirs}.{suffix}"]
                weight = read.weights[f"layers.0.attention.{ours}.{suffix}"]
                assert np.abs(weight.rows() - expected).max() <= most
                assert np.array_equal(weight.rows(3, 9), weight.rows()[3:9])
    assert not list(tmp_path.glob("*.part"))


def q4_0(matrix):
    blocks = matrix.reshape(-1, 32)
    scales = (np.abs(blocks).max(axis=1, keepdims=True) / 7).astype(np.float16)
    values = np.rint(blocks / scales.astype(np.float32)).astype(np.int8).view(np.uint8) + np.uint8(8)
    packed = values[:, :16] | (values[:, 16:] << 4)
    return np.concatenate([scales.view(np.uint8).reshape(-1, 2), packed], axis=1).tobytes()


def check_head(tmp_path, head, embedding, *, tied):
    """A file with a head of eight bits, and an embedding of four."""
    published = weights() | {"lm_head.weight": head}
    stored = {tensor[0]: tensor for tensor in tensors(published, "qwen2")}
    stored["token_embd.weight"] = ("token_embd.weight", 2, embedding.shape, q4_0(embedding))
    (tmp_path / "a.gguf").write_bytes(file_of(fields("qwen2"), list(stored.values())))
    describe(tmp_path / "a.gguf", tmp_path)
    write_weights(tmp_path / "a.gguf", tmp_path)
    for read in (read_checkpoint(tmp_path), gguf.checkpoint_in(read_gguf(tmp_path / "a.gguf"))):
        assert (read.config.tied, "head.weight" in read.weights) == (tied, not tied)
        finer = read.weights["embedding.weight" if tied else "head.weight"]
        assert np.abs(finer.rows() - head).max() < 0.003


def test_matrix_that_is_stored_twice_is_kept_once_in_more_bits(tmp_path):
    head = np.random.default_rng(1).normal(0, 0.1, (len(LETTERS), WIDTH)).astype(np.float32)
    check_head(tmp_path, head, head, tied=True)
    one_row = head.copy()
    one_row[-1] *= -1
    check_head(tmp_path, head, one_row, tied=False)


def test_weights_are_the_same_in_pieces_of_any_size(tmp_path, monkeypatch):
    (tmp_path / "a.gguf").write_bytes(file_of(fields(), list(tensors(weights(), "llama"))))
    write_weights(tmp_path / "a.gguf", tmp_path)
    whole = load_file(tmp_path / "model.safetensors")
    monkeypatch.setattr(stored, "PIECE", 3 * WIDTH)
    write_weights(tmp_path / "a.gguf", tmp_path)
    pieces = load_file(tmp_path / "model.safetensors")
    assert [name for name in whole if not np.array_equal(whole[name], pieces[name])] == []


@pytest.mark.parametrize(
    ("name", "kind"), [("blk.0.attn_v.weight", 0), ("output_norm.weight", 0), ("token_embd.weight", 8)]
)
def test_weight_that_is_no_number_is_named(tmp_path, name, kind):
    stored = {tensor[0]: tensor for tensor in tensors(weights(), "llama")}
    _, _, shape, raw = stored[name]
    if kind == 0:
        raw = np.full(shape, np.inf, np.float32).tobytes()
    else:
        raw = np.array([np.nan], np.float16).tobytes() + raw[2:]
    stored[name] = (name, kind, shape, raw)
    (tmp_path / "a.gguf").write_bytes(file_of(fields(), list(stored.values())))
    describe(tmp_path / "a.gguf", tmp_path)
    with pytest.raises(ModelError, match=rf"a\.gguf: {name} has values that are not numbers"):
        write_weights(tmp_path / "a.gguf", tmp_path)


def test_tokenizer_is_made_from_the_tokens_of_the_file(tmp_path):
    (tmp_path / "a.gguf").write_bytes(file_of(fields(), list(tensors(weights(), "llama"))))
    describe(tmp_path / "a.gguf", tmp_path)
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert tokenizer.encode("ab a<|fim_prefix|>12").tokens == ["ab", "Ġ", "a", "<|fim_prefix|>", "1", "2"]
    assert tokenizer.token_to_id("<|fim_middle|>") == 6
    added = json.loads((tmp_path / "tokenizer.json").read_text())["added_tokens"]
    assert [token["content"] for token in added] == LETTERS[4:7]


def check_chat(tmp_path, more, expected):
    (tmp_path / "a.gguf").write_bytes(file_of(fields(**more), list(tensors(weights(), "llama"))))
    describe(tmp_path / "a.gguf", tmp_path)
    assert read_source(tmp_path) == expected


def test_chat_template_and_special_tokens_are_kept(tmp_path):
    end = LETTERS[4]
    named = {"tokenizer.ggml.eos_token_id": 4, "tokenizer.ggml.bos_token_id": 10**6}
    check_chat(tmp_path, named, None)
    template = {"tokenizer.chat_template": "{{ messages }}"}
    names = {"eos_token": end, "chat_template": "{{ messages }}"}
    check_chat(tmp_path, named | template, Source("{{ messages }}", "{{ messages }}", names))
    tools = {"tokenizer.chat_template.tool_use": "{{ tools }}"}
    check_chat(tmp_path, named | template | tools, Source("{{ messages }}", "{{ tools }}", {"eos_token": end}))


def test_tokenizer_from_scored_pieces(tmp_path):
    own = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.scores": [-1.0] * len(LETTERS)}
    (tmp_path / "a.gguf").write_bytes(file_of(fields(**own), list(tensors(weights(), "llama"))))
    describe(tmp_path / "a.gguf", tmp_path)
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert tokenizer.encode("ab<|fim_prefix|>1").tokens == ["ab", "<|fim_prefix|>", "1"]


@pytest.mark.skipif(not VOCABULARIES, reason="MERCURY_LS_VOCABULARIES names no folder like llama.cpp's models/")
@pytest.mark.parametrize("path", sorted(Path(VOCABULARIES).glob("*.gguf")), ids=lambda path: path.stem)
def test_texts_are_encoded_as_by_llama_cpp(path, tmp_path):
    """Beside each vocabulary lie texts and the tokens that llama.cpp makes of them."""
    texts, tokens, file = path.with_name(f"{path.name}.inp"), path.with_name(f"{path.name}.out"), read_gguf(path)
    if not texts.exists():
        pytest.skip("no texts beside it")
    try:
        tokenizer_of(file).save(str(tmp_path / "tokenizer.json"))
    except ModelError as error:
        pytest.skip(str(error))
    own = PretrainedTokenizer(tmp_path / "tokenizer.json")
    blank = " " if file.fields["tokenizer.ggml.model"] == "llama" else ""
    found = [own.encode(text and blank + text) for text in texts.read_text().split("\n__ggml_vocab_test__\n")]
    assert found == [[*map(int, line.split())] for line in tokens.read_text().split("\n")]


def check_refused(tmp_path, data, said):
    (tmp_path / "a.gguf").write_bytes(data)
    with pytest.raises(ModelError, match=said):
        describe(tmp_path / "a.gguf", tmp_path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"general.architecture": "mamba"}, "the architecture is mamba"),
        ({"llama.rope.scaling.type": "yarn"}, "scales its positions"),
        ({"tokenizer.ggml.model": "bert"}, "its tokenizer is of the kind bert"),
        ({"tokenizer.ggml.model": "llama"}, "scores does not cover every token"),
        ({"tokenizer.ggml.model": "llama", "tokenizer.ggml.scores": [1.0]}, "scores does not cover every token"),
        ({"tokenizer.ggml.tokens": [1]}, "lacks the tokenizer's tokens"),
        ({"tokenizer.ggml.merges": ["ab"]}, "not a pair of tokens"),
        ({"general.alignment": 3}, "not a power of two"),
        ({"general.architecture": [1]}, r"the architecture is \[1\]"),
        ({"tokenizer.ggml.token_type": 5}, "token_type does not cover every token"),
        ({"tokenizer.ggml.token_type": [1]}, "token_type does not cover every token"),
        ({"tokenizer.ggml.pre": "x"}, r"a\.gguf: the tokenizer splits texts by 'x'"),
        ({"llama.attention.head_count": 0}, r"a\.gguf: num_attention_heads is 0"),
        ({"llama.attention.head_count": [4] * 1000}, r"num_attention_heads is \[4, 4, 4, 4, 4, 4, \.\.\.\]"),
        ({"llama.attention.head_count": 1 << 30}, "num_attention_heads is 1073741824"),
        ({"llama.attention.head_count_kv": 3}, "4 attention heads cannot share 3"),
        ({"llama.attention.head_count_kv": "x"}, "num_key_value_heads is 'x'"),
        ({"llama.attention.key_length": 7}, "head_dim is 7"),
        ({"llama.attention.head_count": 32, "llama.attention.key_length": 2}, r"is \(16, 32\), and by the config"),
        ({"llama.block_count": 1000}, "num_hidden_layers is 1000, and there are"),
        ({"tokenizer.chat_template": " " * (1 << 21)}, "its chat template has more than 1,048,576 characters"),
        ({"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 0.0}, "a value of the wrong kind"),
        ({"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": float("nan")}, "no numbers to rotate by"),
        ({"llama.rope.freq_base": float("inf")}, "rope_theta is inf, not a positive number"),
        ({"llama.rope.freq_base": True}, "rope_theta is True, not a positive number"),
        ({"llama.attention.layer_norm_rms_epsilon": float("nan")}, "rms_norm_eps is nan, not a positive number"),
        ({"llama.context_length": float("nan")}, "a context of nan"),
    ],
)
def test_unsupported_gguf_is_named(tmp_path, changes, said):
    check_refused(tmp_path, file_of(fields(**changes), list(tensors(weights(), "llama"))), said)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"GGML" + bytes(40), "is not a GGUF file"),
        (b"GGUF" + struct.pack("<I", 1) + bytes(40), "version 1"),
        (b"GGUF" + struct.pack("<IQ", 3, 1 << 60) + bytes(40), "tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 5000) + bytes(40), "5,000 fields, more than the limit of 4,096"),
        (b"GGUF" + struct.pack("<IQQ", 3, 20_000, 0) + bytes(40), "20,000 tensors, more than the limit of 16,384"),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", 9, 8, 3 << 20),
            "3,145,728 entries in a list, more than the limit of 2,097,152",
        ),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQIQ", 9, 9, 1, 4, 0),
            "of the unknown kind 9",
        ),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 62), "in the middle of its header"),
        (file_of({"a": "b"}, [("x", 99, (4,), b"")]), "stored as type 99"),
        (file_of({"a": "b"}, [("x", 0, (1 << 40,), b"")]), "does not fit the file"),
        (file_of({"a": "b"}, [("x", 8, (31,), bytes(34))]), "does not fit the file"),
        (file_of({"a": "b"}, [("x", 0, (1 << 63, 2), b"")]), "does not fit the file"),
        (
            file_of(fields(), [("token_embd.weight", 0, (2, 2, 2), bytes(32))]),
            r"embedding.weight is \(2, 2, 2\), and by",
        ),
        (
            file_of(fields(), [("token_embd.weight", 2, (32, 1 << 16), bytes(18 << 16))]),
            r"embedding.weight is \(32, 65536\), and by the config \(32, 32\)",
        ),
        (file_of(fields(), [("odd.weight", 0, (4,), bytes(16))]), "odd.weight is no weight"),
    ],
)
def test_damaged_file_is_refused(tmp_path, data, said):
    check_refused(tmp_path, data, said)


def test_file_cut_or_changed_anywhere_is_refused_or_read(tmp_path):
    whole = file_of(fields(), list(tensors(weights(), "llama")))
    chance, path = random.Random(0), tmp_path / "a.gguf"
    for _ in range(150):
        changed = bytearray(whole[: chance.choice([len(whole), chance.randrange(1, len(whole))])])
        changed[chance.randrange(min(len(changed), 1500))] = chance.randrange(256)
        path.write_bytes(changed)
        with suppress(EngineError):
            describe(path, tmp_path)


def test_any_field_may_be_of_any_kind_or_missing(tmp_path):
    whole, stored, path = fields(), list(tensors(weights(), "llama")), tmp_path / "a.gguf"
    hostile = (0, 1, 7, (1 << 32) - 1, True, 0.0, float("inf"), float("nan"), "", "x" * 1000, [], [3], ["a b"])
    made = [whole | {name: found} for name in whole for found in hostile]
    for changed in [*made, *({k: v for k, v in whole.items() if k != name} for name in whole)]:
        path.write_bytes(file_of(changed, stored))
        with suppress(EngineError):
            describe(path, tmp_path)
            write_weights(path, tmp_path)


def blocks(kind):
    made = np.random.default_rng(kind)
    raw = made.integers(0, 256, (50, BLOCKS[kind].bytes), dtype=np.uint8)
    for start in {2: [0], 6: [0], 8: [0], 14: [208]}.get(kind, [0, 2]):
        raw[:, start : start + 2] = made.normal(0, 1, (50, 1)).astype(np.float16).view(np.uint8)
    return raw


@pytest.mark.parametrize("kind", SUMS)
def test_blocks_are_read_as_llama_cpp_reads_them(kind):
    """The sums are of what its own Python package, gguf 0.19, makes of these blocks."""
    assert zlib.crc32(dequantize(blocks(kind).reshape(-1), kind).tobytes()) == SUMS[kind]


def test_truncated_file_has_no_tensors(tmp_path):
    data = file_of(fields(), list(tensors(weights(), "llama")))
    (tmp_path / "a.gguf").write_bytes(data[:-100])
    with pytest.raises(ModelError, match="does not fit the file"):
        read_gguf(tmp_path / "a.gguf")
