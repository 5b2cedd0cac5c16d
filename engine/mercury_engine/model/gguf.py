"""Reads GGUF files, the format of llama.cpp, into the layout in which checkpoints are published.

Written after the format's description. A file may be damaged or malicious: every number in it is checked before it is
used to read anything.
"""

import math
import reprlib
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct, structs

from mercury_engine.api import EngineError
from mercury_engine.model.checkpoint import Checkpoint, checkpoint_of, plan
from mercury_engine.model.config import CONFIG_FILE, TOKENIZER_FILE, ModelError
from mercury_engine.model.convert import Report
from mercury_engine.model.stored import TensorWriter, check_finite, forget_pages, pieces
from mercury_engine.tokens.byte_level import byte_level
from mercury_engine.tokens.sentencepiece import of_pieces

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_FIELDS = 1 << 12
MOST_TENSORS = 1 << 14
MOST_VALUES = 1 << 21
"""In all lists of a header together: the largest vocabularies in use have 262,144 tokens, their kinds and scores,
and twice as many merges."""
LONGEST_HEADER = 1 << 26
STRING, ARRAY = 8, 9
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
AGAIN = "download the file again"
CONTROL, USER_DEFINED = 3, 4
WEIGHTS_FILE = "model.safetensors"


class GgufTensor(Struct, frozen=True, eq=False):
    """`raw` is the tensor's bytes in the mapped file; rows of a matrix are stored whole, in blocks of the kind.
    `order`: the numbers of the file's rows in published order, unless that is their own."""

    name: str
    kind: int
    shape: tuple[int, ...]
    raw: np.ndarray
    order: np.ndarray | None = None

    @property
    def dtype(self) -> str:
        return BLOCKS[self.kind].name

    @property
    def bits(self) -> float:
        """Of a value, with its share of the scales."""
        return 8 * BLOCKS[self.kind].bytes / BLOCKS[self.kind].values

    def floats(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Some rows as float32, in published order."""
        chosen = slice(start, stop) if self.order is None else self.order[start:stop]
        if len(self.shape) == 1:
            return dequantize(self.raw, self.kind)[chosen]
        rows = self.raw.reshape(self.shape[0], -1)[chosen]
        return dequantize(rows, self.kind).reshape(len(rows), -1)


class GgufFile(Struct, frozen=True, eq=False):
    path: Path
    fields: dict[str, Any]
    tensors: dict[str, GgufTensor]


class _QuantisedBlock(Struct, frozen=True):
    """The number of values in a block, its number of bytes, and a function from blocks, one per row, to floats."""

    name: str
    values: int
    bytes: int
    read: Callable[[np.ndarray], np.ndarray]


class _Cursor:
    """Reads a file's beginning; reading beyond its end is an error."""

    def __init__(self, path: Path, data: np.ndarray) -> None:
        self._path = path
        self._data = memoryview(data)  # pyright: ignore[reportArgumentType]  arrays are buffers
        self._values = MOST_VALUES
        self.at = 0

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self.at:
            raise ModelError(f"{self._path}: ends at byte {len(self._data)} in the middle of its header; {AGAIN}")
        self.at += size
        if self.at > LONGEST_HEADER:
            raise ModelError(f"{self._path}: its header has more than {LONGEST_HEADER:,} bytes; {AGAIN}")
        return bytes(self._data[self.at - size : self.at])

    def number(self, code: str) -> Any:
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0]

    def count(self, limit: int, noun: str) -> int:
        if (number := self.number("Q")) > limit:
            raise ModelError(f"{self._path}: claims {number:,} {noun}, more than the limit of {limit:,}; {AGAIN}")
        return number

    def text(self) -> str:
        return self.take(self.number("Q")).decode(errors="replace")

    def value(self, kind: int, *, nested: bool = False) -> Any:
        if kind == STRING:
            return self.text()
        if kind == ARRAY and not nested:
            inner, count = self.number("I"), self.count(self._values, "entries in a list")
            self._values -= count
            if inner in SCALARS:
                return np.frombuffer(self.take(count * struct.calcsize(SCALARS[inner])), f"<{SCALARS[inner]}").tolist()
            return [self.value(inner, nested=True) for _ in range(count)]
        if kind not in SCALARS:
            raise ModelError(f"{self._path}: has a field of the unknown kind {kind}; {AGAIN}")
        return self.number(SCALARS[kind])


def read_gguf(path: Path) -> GgufFile:
    try:
        data = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read ({error})") from error
    cursor = _Cursor(path, data)
    if cursor.take(4) != MAGIC:
        raise ModelError(f"{path}: is not a GGUF file")
    if (version := cursor.number("I")) not in VERSIONS:
        raise ModelError(f"{path}: is a GGUF file of version {version}; versions 2 and 3 can be read")
    count = cursor.count(MOST_TENSORS, "tensors")
    pairs = ((cursor.text(), cursor.value(cursor.number("I"))) for _ in range(cursor.count(MOST_FIELDS, "fields")))
    fields = dict(pairs)
    places = [_place(cursor, path) for _ in range(count)]
    alignment = fields.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise ModelError(f"{path}: general.alignment is {reprlib.repr(alignment)}, not a power of two; {AGAIN}")
    start = -(-cursor.at // alignment) * alignment
    tensors = {place[0]: _tensor(path, data[start:], *place) for place in places}
    if sum(len(tensor.raw) for tensor in tensors.values()) > len(data):
        raise ModelError(f"{path}: its tensors overlap; {AGAIN}")
    return GgufFile(path, fields, tensors)


def _place(cursor: _Cursor, path: Path) -> tuple[str, tuple[int, ...], int, int]:
    name, dimensions = cursor.text(), cursor.number("I")
    if not 1 <= dimensions <= 4:
        raise ModelError(f"{path}: {name} has {dimensions} dimensions; {AGAIN}")
    shape = tuple(cursor.number("Q") for _ in range(dimensions))[::-1]
    return name, shape, cursor.number("I"), cursor.number("Q")


def _tensor(path: Path, data: np.ndarray, name: str, shape: tuple[int, ...], kind: int, offset: int) -> GgufTensor:
    if kind not in BLOCKS:
        names = ", ".join(block.name for block in BLOCKS.values())
        raise ModelError(f"{path}: {name} is stored as type {kind}, which is not supported: choose a file of {names}")
    block, values = BLOCKS[kind], math.prod(shape)
    size = values // block.values * block.bytes
    if not values or shape[-1] % block.values or offset + size > len(data):
        raise ModelError(f"{path}: {name} does not fit the file, which is damaged or truncated; {AGAIN}")
    return GgufTensor(name, kind, shape, data[offset : offset + size])


# Blocks of quantised values


def dequantize(raw: np.ndarray, kind: int) -> np.ndarray:
    block = BLOCKS[kind]
    return block.read(np.ascontiguousarray(raw).reshape(-1, block.bytes)).reshape(-1)


def _halves(blocks: np.ndarray, start: int) -> np.ndarray:
    """The float16 scale of each block as a column of float32."""
    return np.ascontiguousarray(blocks[:, start : start + 2]).view(np.float16).astype(np.float32)


def _nibbles(packed: np.ndarray) -> np.ndarray:
    """The low halves of the bytes of a row, then the high ones."""
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)


def _fifth_bits(blocks: np.ndarray, start: int) -> np.ndarray:
    return np.unpackbits(np.ascontiguousarray(blocks[:, start : start + 4]), axis=1, bitorder="little") * np.float32(16)


def _as_type(kind: str) -> Callable[[np.ndarray], np.ndarray]:
    return lambda blocks: blocks.reshape(-1).view(kind).astype(np.float32)


def _scales_of_k(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eight scales and eight minima of six bits each, packed in twelve bytes."""
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([first & 63, (third & 15) | (first >> 6 << 4)], axis=1)
    minima = np.concatenate([second & 63, (third >> 4) | (second >> 6 << 4)], axis=1)
    return scales.astype(np.float32), minima.astype(np.float32)


def _of_k(blocks: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Groups of 32 values with a scale and a minimum each."""
    scales, minima = _scales_of_k(blocks[:, 4:16])
    scales, minima = scales * _halves(blocks, 0), minima * _halves(blocks, 2)
    return values.reshape(-1, 8, 32) * scales[:, :, None] - minima[:, :, None]


def _q4_k(blocks: np.ndarray) -> np.ndarray:
    packed = blocks[:, 16:].reshape(-1, 4, 1, 32)
    return _of_k(blocks, np.concatenate([packed & 15, packed >> 4], axis=2))


def _q5_k(blocks: np.ndarray) -> np.ndarray:
    high = (blocks[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[None, :, None]) & 1
    packed = blocks[:, 48:].reshape(-1, 4, 1, 32)
    low = np.concatenate([packed & 15, packed >> 4], axis=2).reshape(-1, 8, 32)
    return _of_k(blocks, low + high * 16)


def _q6_k(blocks: np.ndarray) -> np.ndarray:
    low = blocks[:, :128].reshape(-1, 2, 1, 64)
    low = np.concatenate([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    shifts = np.array([0, 2, 4, 6], np.uint8)[None, None, :, None]
    high = (blocks[:, 128:192].reshape(-1, 2, 1, 32) >> shifts) & 3
    values = (low | (high << 4)).astype(np.float32) - 32
    scales = blocks[:, 192:208].view(np.int8).astype(np.float32) * _halves(blocks, 208)
    return values.reshape(-1, 16, 16) * scales[:, :, None]


BLOCKS = {
    0: _QuantisedBlock("F32", 1, 4, _as_type("<f4")),
    1: _QuantisedBlock("F16", 1, 2, _as_type("<f2")),
    2: _QuantisedBlock("Q4_0", 32, 18, lambda raw: (_nibbles(raw[:, 2:]) - 8) * _halves(raw, 0)),
    3: _QuantisedBlock("Q4_1", 32, 20, lambda raw: _nibbles(raw[:, 4:]) * _halves(raw, 0) + _halves(raw, 2)),
    6: _QuantisedBlock("Q5_0", 32, 22, lambda raw: (_nibbles(raw[:, 6:]) + _fifth_bits(raw, 2) - 16) * _halves(raw, 0)),
    7: _QuantisedBlock(
        "Q5_1", 32, 24, lambda raw: (_nibbles(raw[:, 8:]) + _fifth_bits(raw, 4)) * _halves(raw, 0) + _halves(raw, 2)
    ),
    8: _QuantisedBlock("Q8_0", 32, 34, lambda raw: raw[:, 2:].view(np.int8).astype(np.float32) * _halves(raw, 0)),
    12: _QuantisedBlock("Q4_K", 256, 144, _q4_k),
    13: _QuantisedBlock("Q5_K", 256, 176, _q5_k),
    14: _QuantisedBlock("Q6_K", 256, 210, _q6_k),
    30: _QuantisedBlock(
        "BF16", 1, 2, lambda raw: (raw.reshape(-1).view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    ),
}


# The checkpoint that it contains


CLASSES = {
    "llama": ("LlamaForCausalLM", "llama"),
    "qwen2": ("Qwen2ForCausalLM", "qwen2"),
    "qwen3": ("Qwen3ForCausalLM", "qwen3"),
    "starcoder2": ("Starcoder2ForCausalLM", "starcoder2"),
}
SIZES = {
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "max_position_embeddings": "context_length",
    "head_dim": "attention.key_length",
    "rope_theta": "rope.freq_base",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "norm_epsilon": "attention.layer_norm_epsilon",
}
WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
PARTS = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
STARCODER_PARTS = {"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"}
CHAT_FILE = "tokenizer_config.json"
CHAT_TEMPLATES = {"default": "tokenizer.chat_template", "tool_use": "tokenizer.chat_template.tool_use"}
LONGEST_TEMPLATES = 1 << 20
ROLES = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
HALF = float(np.finfo(np.float16).max)
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
ROUNDED, MOST_BITS = 3.0, 8
"""Two rows are one that was rounded twice if they differ by less than so many steps of the coarser rounding, as a share
of their length: in a file of five and eight bits they differ by two at most, unlike rows by forty and more. From eight
bits on, every kind counts as eight."""


def describe(path: Path, target: Path) -> int:
    """Write config, tokenizer and chat template into a folder; return the number of parameters."""
    file = read_gguf(path)
    config = _config_of(file)
    _published(file, config)
    tokenizer = tokenizer_of(file)
    (target / CONFIG_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(config), indent=2))
    tokenizer.save(str(target / TOKENIZER_FILE))
    (target / CHAT_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(_chat_config(file)), indent=2))
    return sum(math.prod(tensor.shape) for tensor in file.tensors.values())


def checkpoint_in(file: GgufFile, context: int = 0) -> Checkpoint:
    """The checkpoint in a file; `context` is an upper limit unless 0."""
    config = _config_of(file)
    return checkpoint_of(file.path, config, _with_one_matrix(_published(file, config)), context)


def _published(file: GgufFile, config: dict[str, Any]) -> dict[str, GgufTensor]:
    """The tensors by their published names; `ModelError` unless config and shapes belong together."""
    names = _names(file)
    plan(file.path, config, {names[name]: tensor.shape for name, tensor in file.tensors.items()})
    return {
        names[name]: structs.replace(tensor, order=_published_order(config, tensor))
        for name, tensor in file.tensors.items()
    }


def _with_one_matrix(tensors: dict[str, GgufTensor]) -> dict[str, GgufTensor]:
    """The tensors with one matrix for embedding and head if they are the same but for their rounding: a file does not
    say whether its model has one, and may store it twice."""
    head = tensors.get(HEAD)
    if head is None or not _are_one(tensors[EMBEDDING], head):
        return tensors
    finer = max(tensors[EMBEDDING], head, key=lambda tensor: tensor.bits)
    return {name: tensor for name, tensor in tensors.items() if name != HEAD} | {EMBEDDING: finer}


def _are_one(embedding: GgufTensor, head: GgufTensor) -> bool:
    limit = ROUNDED / 2 ** int(min(embedding.bits, head.bits, MOST_BITS))
    for start, stop in pieces(head.shape):
        rows = head.floats(start, stop)
        with np.errstate(invalid="ignore"):  # what is no number is reported when it is written
            distances = np.linalg.norm(embedding.floats(start, stop) - rows, axis=1)
        forget_pages([embedding.raw, head.raw])
        if not (distances <= limit * np.linalg.norm(rows, axis=1)).all():
            return False
    return True


def _published_order(config: Mapping[str, Any], tensor: GgufTensor) -> np.ndarray | None:
    """Where the published rows are in the file. In this architecture alone, llama.cpp rotates neighbouring rows of a
    query or key head, the published layout its halves: one half is every other row of llama.cpp's."""
    part = tensor.name.rpartition(".")[0].rpartition(".")[2]
    if config["model_type"] != "llama" or part not in ("attn_q", "attn_k"):
        return None
    heads = config["num_attention_heads"]
    if part == "attn_k":
        heads = config.get("num_key_value_heads") or heads
    return np.arange(tensor.shape[0]).reshape(heads, -1, 2).swapaxes(1, 2).reshape(-1)


def _config_of(file: GgufFile) -> dict[str, Any]:
    kind = _word(file, "general.architecture")
    if kind not in CLASSES:
        raise ModelError(
            f"{file.path}: the architecture is {kind}, but GGUF files must be one of {', '.join(CLASSES)}: run it "
            "in llama-server and add the server's address"
        )
    architecture, model_type = CLASSES[kind]
    sizes = {name: file.fields[f"{kind}.{key}"] for name, key in SIZES.items() if f"{kind}.{key}" in file.fields}
    scaling = _word(file, f"{kind}.rope.scaling.type", "none")
    if scaling == "linear":
        sizes["rope_scaling"] = {"rope_type": "linear", "factor": file.fields.get(f"{kind}.rope.scaling.factor", 1.0)}
    elif scaling != "none" or "rope_freqs.weight" in file.tensors:
        raise ModelError(f"{file.path}: scales its positions ({scaling}): add the model from its published checkpoint")
    if (embedding := file.tensors.get("token_embd.weight")) is not None:
        sizes["vocab_size"] = embedding.shape[0]
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "hidden_act": "gelu_pytorch_tanh" if kind == "starcoder2" else "silu",
        "use_sliding_window": False,
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "_name_or_path": _word(file, "general.name", ""),
        **sizes,
    }


def _word(file: GgufFile, name: str, default: str = "not named") -> str:
    """A field as text, short enough for a message."""
    value = file.fields.get(name, default)
    return value[:100] if isinstance(value, str) else reprlib.repr(value)


def tokenizer_of(file: GgufFile) -> Any:
    kind = _word(file, "tokenizer.ggml.model")
    if kind not in ("gpt2", "llama"):
        raise ModelError(
            f"{file.path}: its tokenizer is of the kind {kind}: add the model from its published checkpoint"
        )
    tokens, kinds = _strings(file, "tokens"), file.fields.get("tokenizer.ggml.token_type", [])
    if not isinstance(kinds, list) or len(kinds) not in (0, len(tokens)):
        raise ModelError(f"{file.path}: tokenizer.ggml.token_type does not cover every token; {AGAIN}")
    special = [token for token, kind in zip(tokens, kinds, strict=False) if kind in (CONTROL, USER_DEFINED)]
    try:
        if kind == "llama":
            return of_pieces(tokens, _scores(file, len(tokens)), special)
        merges = [(first, second) for first, _, second in (merge.partition(" ") for merge in _strings(file, "merges"))]
        if not all(second for _, second in merges):
            raise ModelError(f"{file.path}: has a merge that is not a pair of tokens; {AGAIN}")
        vocabulary = {token: number for number, token in enumerate(tokens)}
        return byte_level(vocabulary, merges, special, _word(file, "tokenizer.ggml.pre", "gpt-2"))
    except ModelError:
        raise
    except EngineError as error:
        raise ModelError(f"{file.path}: {error}; or add the model from its published checkpoint") from error


def _chat_config(file: GgufFile) -> dict[str, Any]:
    """How the model chats, as is published beside a tokenizer: templates, and the special tokens by their roles."""
    fields, tokens = file.fields, _strings(file, "tokens")
    ids = {role: fields.get(f"tokenizer.ggml.{key}_token_id") for role, key in ROLES.items()}
    config: dict[str, Any] = {role: tokens[id] for role, id in ids.items() if type(id) is int and 0 <= id < len(tokens)}
    templates = {
        name: template
        for name, field in CHAT_TEMPLATES.items()
        if isinstance(template := fields.get(field), str) and template
    }
    if sum(map(len, templates.values())) > LONGEST_TEMPLATES:
        raise ModelError(f"{file.path}: its chat template has more than {LONGEST_TEMPLATES:,} characters; {AGAIN}")
    if templates.keys() == {"default"}:
        config["chat_template"] = templates["default"]
    elif templates:
        config["chat_template"] = [{"name": name, "template": template} for name, template in templates.items()]
    return config


def _scores(file: GgufFile, count: int) -> list[float]:
    scores = file.fields.get("tokenizer.ggml.scores")
    if not isinstance(scores, list) or len(scores) != count or not all(isinstance(score, float) for score in scores):
        raise ModelError(f"{file.path}: tokenizer.ggml.scores does not cover every token; {AGAIN}")
    return scores


def _strings(file: GgufFile, name: str) -> list[str]:
    tokens = file.fields.get(f"tokenizer.ggml.{name}")
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise ModelError(f"{file.path}: lacks the tokenizer's {name}; {AGAIN}")
    return tokens


def _names(file: GgufFile) -> dict[str, str]:
    """The published names of the tensors."""
    parts = PARTS | (STARCODER_PARTS if file.fields["general.architecture"] == "starcoder2" else {})
    metadata = {}
    for name in file.tensors:
        part, _, kind = name.rpartition(".")
        layer = part.split(".", 2)
        if part in WHOLE:
            metadata[name] = f"{WHOLE[part]}.{kind}"
        elif len(layer) == 3 and layer[0] == "blk" and layer[1].isdecimal() and layer[2] in parts:
            metadata[name] = f"model.layers.{layer[1]}.{parts[layer[2]]}.{kind}"
        else:
            raise ModelError(f"{file.path}: {name} is no weight of this architecture: run it in llama-server instead")
    return metadata


def write_weights(path: Path, target: Path, report: Report = lambda share, doing: None) -> None:
    """Write `model.safetensors`: matrices as float16, everything else as float32."""
    report(0.0, f"reading {path.name}")
    file = read_gguf(path)
    tensors = _with_one_matrix(_published(file, _config_of(file)))
    layout = {
        name: (np.dtype(np.float16 if len(tensor.shape) == 2 else np.float32), tensor.shape)
        for name, tensor in tensors.items()
    }
    part, size_written = target / f"{WEIGHTS_FILE}.part", 0
    whole = sum(len(tensor.raw) for tensor in tensors.values())
    with part.open("wb") as output:
        writer = TensorWriter(output, layout)
        for name, tensor in tensors.items():
            for start, stop in pieces(tensor.shape):
                rows = tensor.floats(start, stop)
                check_finite(rows, f"{path}: {tensor.name}", AGAIN)
                is_matrix = rows.ndim == 2
                writer.write(name, start, np.clip(rows, -HALF, HALF).astype(np.float16) if is_matrix else rows)
                forget_pages([tensor.raw])
            size_written += len(tensor.raw)
            report(size_written / whole, f"reading {path.name}")
    part.replace(target / WEIGHTS_FILE)
