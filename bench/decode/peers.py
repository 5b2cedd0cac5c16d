"""The peer that we are compared with: llama.cpp with a model of the same shape, decoding token by token.

Needs the extra `peers` (llama-cpp-python and gguf). Tokens go in and logits come out of its C interface directly: no
HTTP, no JSON, no tokenizer, so that the peer is as fast as it can be.
"""

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from mercury_engine.model.config import ModelConfig
from mercury_engine.model.export import shapes

__all__ = ["QUANTISATIONS", "LlamaPeer", "write_gguf"]

QUANTISATIONS = ("q8_0", "q4_0")

WHOLE_MODEL = {"embedding.weight": "token_embd", "norm.weight": "output_norm"}
LAYER = {
    "attention_norm": "attn_norm",
    "attention.query": "attn_q",
    "attention.key": "attn_k",
    "attention.value": "attn_v",
    "attention.output": "attn_output",
    "attention.query_norm": "attn_q_norm",
    "attention.key_norm": "attn_k_norm",
    "feed_forward_norm": "ffn_norm",
    "feed_forward.gate": "ffn_gate",
    "feed_forward.up": "ffn_up",
    "feed_forward.down": "ffn_down",
}
"""What llama.cpp calls the weights of a Qwen3 model."""


def write_gguf(
    config: ModelConfig, path: Path, quantisation: str, weights: Mapping[str, np.ndarray] | None = None
) -> Path:
    """Write float weights as a Qwen3 model, which has the same layers; random ones if none are given: times are real,
    answers are not."""
    import gguf

    kind = {"q8_0": gguf.GGMLQuantizationType.Q8_0, "q4_0": gguf.GGMLQuantizationType.Q4_0}[quantisation]
    writer = gguf.GGUFWriter(path, "qwen3")
    describe(writer, config)
    for name, tensor in (random_tensors(config) if weights is None else named(weights)).items():
        if tensor.ndim == 1:
            writer.add_tensor(name, tensor)
        else:
            writer.add_tensor(name, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def describe(writer, config: ModelConfig) -> None:
    writer.add_block_count(config.layers)
    writer.add_context_length(config.context)
    writer.add_embedding_length(config.width)
    writer.add_feed_forward_length(config.feed_forward)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.kv_heads)
    writer.add_key_length(config.head_width)
    writer.add_value_length(config.head_width)
    writer.add_rope_freq_base(config.rope_theta)
    writer.add_layer_norm_rms_eps(config.norm_epsilon)
    writer.add_vocab_size(config.vocabulary)
    writer.add_tokenizer_model("no_vocab")


def random_tensors(config: ModelConfig) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    return {
        gguf_name(name): np.ones(shape, np.float32)
        if len(shape) == 1
        else 0.02 * generator.standard_normal(shape, np.float32)
        for name, shape in shapes(msgspec.structs.replace(config, hints=False)).items()
    }


def named(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {gguf_name(name): np.ascontiguousarray(tensor, np.float32) for name, tensor in weights.items()}


def gguf_name(name: str) -> str:
    """The head is tied: llama.cpp uses the embedding if there is no output matrix."""
    if name in WHOLE_MODEL:
        return f"{WHOLE_MODEL[name]}.weight"
    _, layer, part = name.removesuffix(".weight").split(".", 2)
    return f"blk.{layer}.{LAYER[part]}.weight"


class LlamaPeer:
    """One model with a prompt cache. Positions count from the tokens that are cached."""

    def __init__(self, path: Path, threads: int, context: int = 4096, flash: bool = True):
        from llama_cpp import llama_cpp as native

        self._native = native
        quiet(native)
        native.llama_backend_init()
        self._model = native.llama_model_load_from_file(os.fsencode(path), native.llama_model_default_params())
        if not self._model:
            raise OSError(f"llama.cpp cannot load {path}: look at its log with MERCURY_BENCH_LOG=1")
        parameters = native.llama_context_default_params()
        parameters.n_ctx = context
        parameters.n_batch = parameters.n_ubatch = 512
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.flash_attn_type = 1 if flash else 0
        self._context = native.llama_init_from_model(self._model, parameters)
        self._memory = native.llama_get_memory(self._context)
        self._vocabulary = native.llama_vocab_n_tokens(native.llama_model_get_vocab(self._model))
        self.cached = 0

    def read(self, tokens: np.ndarray) -> int:
        """Append to the cache; the greedy next token."""
        return int(np.argmax(self.logits(tokens)))

    def logits(self, tokens: np.ndarray) -> np.ndarray:
        """Append to the cache; the logits of the last token, valid until more is read."""
        for start in range(0, len(tokens), 512):
            piece = np.ascontiguousarray(tokens[start : start + 512], np.int32)
            pointer = piece.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
            if self._native.llama_decode(self._context, self._native.llama_batch_get_one(pointer, len(piece))):
                raise MemoryError("llama.cpp has no room left in its cache")
            self.cached += len(piece)
        return np.ctypeslib.as_array(self._native.llama_get_logits_ith(self._context, -1), shape=(self._vocabulary,))

    def keep(self, length: int) -> None:
        """Forget what was read after the first `length` tokens."""
        self._native.llama_memory_seq_rm(self._memory, 0, length, -1)
        self.cached = length

    def answer(self, typed: np.ndarray, tokens: int) -> None:
        """Read what was typed and generate `tokens` more, one after the other, greedily."""
        token = self.read(typed)
        for _ in range(tokens - 1):
            token = self.read(np.array([token]))

    def close(self) -> None:
        self._native.llama_free(self._context)
        self._native.llama_model_free(self._model)


def quiet(native) -> None:
    if not os.environ.get("MERCURY_BENCH_LOG"):
        native.llama_log_set(SILENT, ctypes.c_void_p(0))


@ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
def SILENT(level, text, user_data):  # noqa: N802  a C callback must outlive every call
    return None
