"""The peers that are measured beside us: llama.cpp with a model of the same shape, decoding token by token.

Needs the extra `peers` (llama-cpp-python and gguf). Tokens go in and logits come out of its C interface directly: no
HTTP, no JSON, no tokenizer, so that the peer is as fast as it can be.
"""

import ctypes
import os
from pathlib import Path

import numpy as np

from mercury_engine.config import ModelConfig

__all__ = ["QUANTISATIONS", "LlamaPeer", "write_gguf"]

QUANTISATIONS = ("q8_0", "q4_0")


def write_gguf(config: ModelConfig, path: Path, quantisation: str, seed: int = 0) -> Path:
    """Random weights of this shape as a Qwen3 model, which has the same layers: times are real, answers are not."""
    import gguf

    kind = {"q8_0": gguf.GGMLQuantizationType.Q8_0, "q4_0": gguf.GGMLQuantizationType.Q4_0}[quantisation]
    writer = gguf.GGUFWriter(path, "qwen3")
    describe(writer, config)
    generator = np.random.default_rng(seed)
    for name, shape in tensors(config).items():
        if len(shape) == 1:
            writer.add_tensor(name, np.ones(shape, np.float32))
        else:
            weights = 0.02 * generator.standard_normal(shape, np.float32)
            writer.add_tensor(name, gguf.quants.quantize(weights, kind), raw_dtype=kind)
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
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(config.vocabulary)
    writer.add_tokenizer_model("no_vocab")


def tensors(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The head is tied: llama.cpp uses the embedding where there is no output matrix."""
    wide, narrow = config.heads * config.head_width, config.kv_heads * config.head_width
    layer: dict[str, tuple[int, ...]] = {
        "attn_norm": (config.width,),
        "attn_q": (wide, config.width),
        "attn_k": (narrow, config.width),
        "attn_v": (narrow, config.width),
        "attn_output": (config.width, wide),
        "attn_q_norm": (config.head_width,),
        "attn_k_norm": (config.head_width,),
        "ffn_norm": (config.width,),
        "ffn_gate": (config.feed_forward, config.width),
        "ffn_up": (config.feed_forward, config.width),
        "ffn_down": (config.width, config.feed_forward),
    }
    layers = {f"blk.{n}.{name}.weight": shape for n in range(config.layers) for name, shape in layer.items()}
    return {"token_embd.weight": (config.vocabulary, config.width), **layers, "output_norm.weight": (config.width,)}


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
        for start in range(0, len(tokens), 512):
            piece = np.ascontiguousarray(tokens[start : start + 512], np.int32)
            pointer = piece.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
            if self._native.llama_decode(self._context, self._native.llama_batch_get_one(pointer, len(piece))):
                raise MemoryError("llama.cpp has no room left in its cache")
            self.cached += len(piece)
        logits = self._native.llama_get_logits_ith(self._context, -1)
        return int(np.argmax(np.ctypeslib.as_array(logits, shape=(self._vocabulary,))))

    def keep(self, length: int) -> None:
        """Forget what was read after the first `length` tokens."""
        self._native.llama_memory_seq_rm(self._memory, 0, length, -1)
        self.cached = length

    def answer(self, typed: np.ndarray, tokens: int) -> None:
        """Read what was typed and say `tokens` more, one after the other, greedily."""
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
