"""The peer for comparison: llama.cpp with our weights, decoding token by token.

Needs the extra `peers` (llama-cpp-python and gguf). Tokens go in and logits come out of its C interface directly: no
HTTP, no JSON, no tokenizer, so that the peer is as fast as it can be.
"""

import ctypes
import os
from collections.abc import Container, Iterable
from pathlib import Path

import numpy as np

from mercury_engine.model.config import ModelConfig
from mercury_engine.model.export import dequantized, read

PARTS = {
    "embedding": "token_embd",
    "norm": "output_norm",
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
"""The names of parts of Qwen 2 and 3 in llama.cpp. The head is tied: it uses the embedding if there is no output
matrix."""


def dense_weights(folder: Path) -> tuple[ModelConfig, dict[str, np.ndarray]]:
    """The weights of a model of ours as float32, if its layers are Qwen's."""
    config, stored = read(folder)
    if config.qkv_bias == config.qk_norm or not config.tied:
        raise ValueError(f"{folder}: {config.name} has layers that no Qwen has; no peer can decode it")
    return config, dequantized(stored)


def gguf_name(ours: str) -> str:
    part, _, kind = ours.rpartition(".")
    if not part.startswith("layers."):
        return f"{PARTS[part]}.{kind}"
    _, index, part = part.split(".", 2)
    return f"blk.{index}.{PARTS[part]}.{kind}"


def write_gguf(
    config: ModelConfig, path: Path, weights: Iterable[tuple[str, np.ndarray]], four_bits: Container[str] = ()
) -> Path:
    """Write float weights as the Qwen model with the same layers, its products as q8_0, or q4_0 where they have four
    bits."""
    import gguf

    writer = gguf.GGUFWriter(path, "qwen2" if config.qkv_bias else "qwen3")
    _describe(writer, config)
    for name, weight in weights:
        tensor = np.ascontiguousarray(weight, np.float32)
        if tensor.ndim == 1:
            writer.add_tensor(gguf_name(name), tensor)
        else:
            kind = gguf.GGMLQuantizationType.Q4_0 if name in four_bits else gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(tensor, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _describe(writer, config: ModelConfig) -> None:
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


class LlamaPeer:
    """One model with a prompt cache. Positions count from the tokens that are cached."""

    def __init__(self, path: Path, threads: int):
        from llama_cpp import llama_cpp as native

        self._native = native
        _quiet(native)
        native.llama_backend_init()
        self._model = native.llama_model_load_from_file(os.fsencode(path), native.llama_model_default_params())
        if not self._model:
            raise OSError(f"llama.cpp cannot load {path}: look at its log with MERCURY_BENCH_LOG=1")
        parameters = native.llama_context_default_params()
        parameters.n_ctx = 4096
        parameters.n_batch = parameters.n_ubatch = 512
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.flash_attn_type = 1
        self._context = native.llama_init_from_model(self._model, parameters)
        self._memory = native.llama_get_memory(self._context)
        self._vocabulary = native.llama_vocab_n_tokens(native.llama_model_get_vocab(self._model))

    def logits(self, tokens: np.ndarray) -> np.ndarray:
        """Append to the cache; return the logits of the last token, valid until more is read."""
        for start in range(0, len(tokens), 512):
            piece = np.ascontiguousarray(tokens[start : start + 512], np.int32)
            pointer = piece.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
            if self._native.llama_decode(self._context, self._native.llama_batch_get_one(pointer, len(piece))):
                raise MemoryError("llama.cpp has no room left in its cache")
        return np.ctypeslib.as_array(self._native.llama_get_logits_ith(self._context, -1), shape=(self._vocabulary,))

    def keep(self, length: int) -> None:
        """Forget what was read after the first `length` tokens."""
        self._native.llama_memory_seq_rm(self._memory, 0, length, -1)

    def close(self) -> None:
        self._native.llama_free(self._context)
        self._native.llama_model_free(self._model)


def _quiet(native) -> None:
    if not os.environ.get("MERCURY_BENCH_LOG"):
        native.llama_log_set(_SILENT, ctypes.c_void_p(0))


@ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
def _SILENT(level, text, user_data):  # noqa: N802  a C callback must outlive every call
    return None
