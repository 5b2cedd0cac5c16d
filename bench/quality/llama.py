"""The peer for comparison: llama.cpp with our weights, decoding token by token.

Needs the extra `peers` (llama-cpp-python). Tokens go in and logits come out of its C interface directly: no
HTTP, no JSON, no tokenizer, so that the peer is as fast as it can be.
"""

import ctypes
import os
from pathlib import Path

import numpy as np


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
