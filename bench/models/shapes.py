"""Random weights in the shape of a real model, as a checkpoint, a GGUF file, and a graph for openvino-genai."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np

from bench.decode import peers
from bench.decode.peers import transformers_name
from mercury_engine.model.config import CONFIG_FILE, ModelConfig
from mercury_engine.model.export import shapes
from mercury_engine.model.stored import TensorWriter, stored_tensors

__all__ = ["SHAPES", "qwen", "write_checkpoint", "write_gguf"]

VOCABULARY = 151_936
QWEN = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 32_768,
    "rope_theta": 1_000_000.0,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "use_sliding_window": False,
}


def qwen(layers: int, width: int, heads: int, kv_heads: int, feed_forward: int) -> dict[str, object]:
    return QWEN | {
        "num_hidden_layers": layers,
        "hidden_size": width,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": feed_forward,
    }


SHAPES = {
    "qwen2.5-coder-0.5b": qwen(24, 896, 14, 2, 4864),
    "qwen2.5-coder-1.5b": qwen(28, 1536, 12, 2, 8960),
}


def write_checkpoint(layout: Mapping[str, Any], folder: Path) -> Path:
    """float16, as downloaded. The residual stream grows little, so that float16 could hold it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG_FILE).write_bytes(msgspec.json.encode(layout))
    names = {transformers_name(name): size for name, size in shapes(laid_out("", layout)).items()}
    generator = np.random.default_rng(0)
    with (folder / "model.safetensors").open("wb") as file:
        writer = TensorWriter(file, {name: (np.dtype(np.float16), size) for name, size in names.items()})
        for name, size in names.items():
            if "norm" in name:
                writer.write(name, 0, np.ones(size, np.float16))
                continue
            for start in range(0, size[0], 8192):
                rows = generator.standard_normal((min(8192, size[0] - start), *size[1:]), np.float32)
                writer.write(name, start, (0.02 * rows).astype(np.float16))
    return folder


def config_of(shape: str) -> ModelConfig:
    return laid_out(shape, SHAPES[shape])


def laid_out(name: str, layout: Mapping[str, Any]) -> ModelConfig:
    found = SimpleNamespace(**layout)
    return ModelConfig(
        name=name,
        width=found.hidden_size,
        layers=found.num_hidden_layers,
        heads=found.num_attention_heads,
        kv_heads=found.num_key_value_heads,
        head_width=found.hidden_size // found.num_attention_heads,
        feed_forward=found.intermediate_size,
        vocabulary=found.vocab_size,
        context=found.max_position_embeddings,
        rope_theta=found.rope_theta,
        qk_norm=False,
        qkv_bias=True,
    )


def write_gguf(checkpoint: Path, shape: str, path: Path, quantisation: str) -> Path:
    """The weights of the checkpoint for llama.cpp."""
    config, stored = config_of(shape), stored_tensors(checkpoint / "model.safetensors", "write it again")
    weights = ((name, stored[transformers_name(name)].floats()) for name in shapes(config))
    return peers.write_gguf(config, path, quantisation, weights, embedding="q8_0")
