"""Writes a model of ours in the layouts of other engines: a published checkpoint, which transformers, vLLM and SGLang
open, and a GGUF file, which llama.cpp opens. They read from left to right, a token at a time."""

import shutil
import struct
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from mercury_engine.bounds import small_bytes
from mercury_engine.model.architectures import LLAMA
from mercury_engine.model.config import CONFIG_FILE, TOKENIZER_FILE, ModelConfig, ModelError
from mercury_engine.model.export import SCALE, Weights, plain, read, shapes
from mercury_engine.model.gguf import (
    ARRAY,
    CHAT_FILE,
    CLASSES,
    CONTROL,
    MAGIC,
    PARTS,
    SCALARS,
    SIZES,
    STRING,
    WEIGHTS_FILE,
    WHOLE,
)
from mercury_engine.model.stored import TensorWriter
from mercury_engine.tokens.vocabulary import BOS, EOM, PAD, SPECIALS

GGUF_FILE = "model.gguf"
VERSION, ALIGNMENT, NORMAL = 3, 32, 1
SCALAR = {code: kind for kind, code in SCALARS.items()}
F32, Q4_0, Q8_0 = 0, 2, 8
BLOCK = 32
"""The values that share a scale in llama.cpp's int4 and int8. Several such blocks share one of ours."""
PUBLISHED = {ours: name for name, ours in LLAMA.whole.items()} | {ours[0]: name for name, ours in LLAMA.parts.items()}
IN_GGUF = {name: part for part, name in (WHOLE | PARTS).items()}


def write_checkpoint(source: Path, target: Path) -> Path:
    """Write the model of one folder to another, matrices in 16 bits; return the file with the weights."""
    config, weights = _read(source, target)
    layout = {
        published_name(name): (np.dtype(np.float16 if len(shape) == 2 else np.float32), shape)
        for name, shape in shapes(config).items()
    }
    with (target / WEIGHTS_FILE).open("wb") as file:
        writer = TensorWriter(file, layout)
        for name in shapes(config):
            dtype, _ = layout[published_name(name)]
            writer.write(published_name(name), 0, plain(weights, name).astype(dtype))
    roles = {"bos_token": SPECIALS[BOS], "eos_token": SPECIALS[EOM], "pad_token": SPECIALS[PAD]}
    for name, described in (
        (CONFIG_FILE, _published_config(config)),
        (CHAT_FILE, {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False} | roles),
    ):
        (target / name).write_bytes(msgspec.json.format(msgspec.json.encode(described), indent=2))
    shutil.copyfile(source / TOKENIZER_FILE, target / TOKENIZER_FILE)
    return target / WEIGHTS_FILE


def write_gguf(source: Path, target: Path) -> Path:
    """Write the model of one folder to another, matrices in the bits that they have; return the file."""
    config, weights = _read(source, target)
    path = source / TOKENIZER_FILE
    tokenizer = _tokenizer_fields(path, config.vocabulary) if path.exists() else {"tokenizer.ggml.model": "no_vocab"}
    fields = _model_fields(config) | tokenizer
    tensors = {name: _tensor(weights, name) for name in shapes(config)}
    header, offset = [], 0
    for name, (kind, data) in tensors.items():
        shape = shapes(config)[name][::-1]
        header.append(_text(gguf_name(name)) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset))
        offset += _aligned(data.nbytes)
    pairs = (_text(name) + _typed(value) for name, value in fields.items())
    start = b"".join([MAGIC, struct.pack("<IQQ", VERSION, len(tensors), len(fields)), *pairs, *header])
    with (target / GGUF_FILE).open("wb") as file:
        for data in (np.frombuffer(start, np.uint8), *(data for _, data in tensors.values())):
            file.write(np.ascontiguousarray(data).data)
            file.write(bytes(_aligned(data.nbytes) - data.nbytes))
    return target / GGUF_FILE


def published_name(ours: str) -> str:
    """
    >>> published_name("layers.3.attention.query.weight")
    'model.layers.3.self_attn.q_proj.weight'
    """
    part, _, kind = ours.rpartition(".")
    if not part.startswith("layers."):
        return f"{PUBLISHED[part]}.{kind}"
    _, layer, part = part.split(".", 2)
    return f"{LLAMA.layer}{layer}.{PUBLISHED[part]}.{kind}"


def gguf_name(ours: str) -> str:
    """
    >>> gguf_name("layers.3.attention.query.weight")
    'blk.3.attn_q.weight'
    """
    part, _, kind = published_name(ours).rpartition(".")
    if part in IN_GGUF:
        return f"{IN_GGUF[part]}.{kind}"
    layer, _, part = part.removeprefix(LLAMA.layer).partition(".")
    return f"blk.{layer}.{IN_GGUF[part]}.{kind}"


def _read(source: Path, target: Path) -> tuple[ModelConfig, Weights]:
    if source.resolve() == target.resolve():
        raise ModelError(f"{target}: holds the model; write to another folder")
    config, weights = read(source)
    is_plain = config.gated and config.activation == "silu" and not (config.layer_norm or config.output_bias)
    if config.qkv_bias == config.qk_norm or config.feed_forward_bias or config.rope_frequencies or not is_plain:
        raise ModelError(f"{source}: {config.name} has layers that no Qwen has; no other engine can compute it")
    target.mkdir(parents=True, exist_ok=True)
    return config, weights


def _model_type(config: ModelConfig) -> str:
    return "qwen2" if config.qkv_bias else "qwen3"


def _sizes(config: ModelConfig) -> dict[str, int | float]:
    """By the names of published configs."""
    return {
        "hidden_size": config.width,
        "num_hidden_layers": config.layers,
        "intermediate_size": config.feed_forward,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "max_position_embeddings": config.context,
        "head_dim": config.head_width,
        "rope_theta": config.rope_theta,
        "rms_norm_eps": config.norm_epsilon,
    }


def _published_config(config: ModelConfig) -> dict[str, Any]:
    architecture, model_type = CLASSES[_model_type(config)]
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "hidden_act": "silu",
        "use_sliding_window": False,
        "tie_word_embeddings": config.tied,
        "vocab_size": config.vocabulary,
        "dtype": "float16",
        "bos_token_id": BOS,
        "eos_token_id": EOM,
        "pad_token_id": PAD,
        **_sizes(config),
    }


def _model_fields(config: ModelConfig) -> dict[str, Any]:
    kind = _model_type(config)
    sizes = {f"{kind}.{SIZES[name]}": value for name, value in _sizes(config).items()}
    more = {f"{kind}.attention.value_length": config.head_width, f"{kind}.vocab_size": config.vocabulary}
    return {"general.architecture": kind, "general.name": config.name, **sizes, **more}


def _tokenizer_fields(path: Path, vocabulary: int) -> dict[str, Any]:
    """No token of ours goes on behind a line feed, so splitting as Qwen does, which is what llama.cpp knows, encodes
    texts as our own way does."""
    stored = msgspec.json.decode(small_bytes(path))
    special = {token["id"]: token["content"] for token in stored["added_tokens"]}
    tokens = {number: token for token, number in stored["model"]["vocab"].items()} | special
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in stored["model"]["merges"]]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": [tokens.get(number, f"<unused{number}>") for number in range(vocabulary)],
        "tokenizer.ggml.token_type": [CONTROL if number in special else NORMAL for number in range(vocabulary)],
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": BOS,
        "tokenizer.ggml.eos_token_id": EOM,
        "tokenizer.ggml.padding_token_id": PAD,
        "tokenizer.ggml.add_bos_token": True,
    }


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _typed(value: str | bool | float | list[Any], whole: str = "I") -> bytes:
    """A field's value behind its kind. Numbers in lists have a sign, others none."""
    if isinstance(value, str):
        return struct.pack("<I", STRING) + _text(value)
    if isinstance(value, list):
        items = [_typed(item, "i") for item in value]
        kind, count = items[0][:4], struct.pack("<Q", len(items))
        return struct.pack("<I", ARRAY) + kind + count + b"".join(item[4:] for item in items)
    code = "?" if isinstance(value, bool) else whole if isinstance(value, int) else "f"
    return struct.pack(f"<I{code}", SCALAR[code], value)


def _tensor(weights: Weights, name: str) -> tuple[int, np.ndarray]:
    """A weight as llama.cpp stores it."""
    weight = weights[name]
    if weight.dtype == np.float32:
        return F32, weight
    is_int4 = weight.dtype == np.uint8
    scales, values = weights[name + SCALE], _nibbles(weight) if is_int4 else weight
    blocks = values.reshape(-1, BLOCK // 2 if is_int4 else BLOCK)
    halves = np.repeat(scales.astype(np.float16).reshape(-1, 1), len(blocks) // scales.size, axis=0)
    return Q4_0 if is_int4 else Q8_0, np.concatenate([halves.view(np.uint8), blocks.view(np.uint8)], axis=1)


def _nibbles(packed: np.ndarray) -> np.ndarray:
    """Two values of 0..15 in each byte: in a block the first half of them in the low halves of the bytes."""
    flipped = packed ^ 0x88  # 8 is added to each
    values = np.stack([flipped & 15, flipped >> 4], axis=-1).reshape(-1, 2, BLOCK // 2)
    return values[:, 0] | values[:, 1] << 4


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
