"""Third-party architectures that our graph can compute: their configs and weights in our terms.

An architecture is data. Constant factors of a family are multiplied into its weights, so that the graph needs none.
"""

import math
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from mercury_engine.bounds import small_bytes
from mercury_engine.model.config import Activation, ModelConfig, ModelError

DOWNLOAD = "download the checkpoint again"
ELSEWHERE = "run it in a server such as llama-server or Ollama and add the server's address"


class Architecture(Struct, frozen=True, kw_only=True):
    """A layer's weights are named `layer`, its number, a key of `parts`, and `weight` or `bias`. A part with several
    names stacks their matrices. `sizes` maps config keys to their usual names; `defaults` apply where a config omits
    them."""

    whole: dict[str, str]
    layer: str
    parts: dict[str, tuple[str, ...]]
    sizes: dict[str, str] = {}
    defaults: dict[str, Any] = {}
    norm_offset: float = 0.0
    scaled_embedding: bool = False
    activation: Activation | None = None


LLAMA = Architecture(
    whole={
        "model.embed_tokens": "embedding",
        "model.norm": "norm",
        "lm_head": "head",
    },
    layer="model.layers.",
    parts={
        "input_layernorm": ("attention_norm",),
        "self_attn.q_proj": ("attention.query",),
        "self_attn.k_proj": ("attention.key",),
        "self_attn.v_proj": ("attention.value",),
        "self_attn.o_proj": ("attention.output",),
        "self_attn.q_norm": ("attention.query_norm",),
        "self_attn.k_norm": ("attention.key_norm",),
        "post_attention_layernorm": ("feed_forward_norm",),
        "mlp.gate_proj": ("feed_forward.gate",),
        "mlp.up_proj": ("feed_forward.up",),
        "mlp.down_proj": ("feed_forward.down",),
    },
)

STARCODER = msgspec.structs.replace(
    LLAMA,
    parts={name: ours for name, ours in LLAMA.parts.items() if not name.startswith("mlp.")}
    | {"mlp.c_fc": ("feed_forward.up",), "mlp.c_proj": ("feed_forward.down",)},
    sizes={"rms_norm_eps": "norm_epsilon"},
    defaults={"norm_epsilon": 1e-5},
)

GRANITE_HYBRID = msgspec.structs.replace(
    LLAMA,
    parts={name: ours for name, ours in LLAMA.parts.items() if not name.startswith("mlp.")}
    | {
        "shared_mlp.input_linear": ("feed_forward.gate", "feed_forward.up"),
        "shared_mlp.output_linear": ("feed_forward.down",),
    },
    sizes={"intermediate_size": "shared_intermediate_size"},
    defaults={"position_embedding_type": None},
)

GEMMA = msgspec.structs.replace(LLAMA, norm_offset=1.0, scaled_embedding=True, activation="gelu_tanh")

LLADA = Architecture(
    whole={
        "model.transformer.wte": "embedding",
        "model.transformer.ln_f": "norm",
        "model.transformer.ff_out": "head",
    },
    layer="model.transformer.blocks.",
    parts={
        "attn_norm": ("attention_norm",),
        "q_proj": ("attention.query",),
        "k_proj": ("attention.key",),
        "v_proj": ("attention.value",),
        "attn_out": ("attention.output",),
        "ff_norm": ("feed_forward_norm",),
        "ff_proj": ("feed_forward.gate",),
        "up_proj": ("feed_forward.up",),
        "ff_out": ("feed_forward.down",),
    },
    sizes={
        "hidden_size": "d_model",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "num_key_value_heads": "n_kv_heads",
        "intermediate_size": "mlp_hidden_size",
        "max_position_embeddings": "max_sequence_length",
        "tie_word_embeddings": "weight_tying",
    },
)

ARCHITECTURES = {
    **dict.fromkeys(("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"), LLAMA),
    "Starcoder2ForCausalLM": STARCODER,
    "GraniteForCausalLM": LLAMA,
    "GraniteMoeHybridForCausalLM": GRANITE_HYBRID,
    "GemmaForCausalLM": GEMMA,
    **dict.fromkeys(("DreamModel", "DreamForCausalLM", "SDARForCausalLM", "Fast_dLLM_QwenForCausalLM"), LLAMA),
    **dict.fromkeys(("A2DLlamaLMHeadModel", "A2DQwen2LMHeadModel", "A2DQwen3LMHeadModel"), LLAMA),
    "StableDiffcoderForCausalLM": LLAMA,
    "LLaDAModelLM": LLADA,
}
"""By the class that a config names. A diffusion model is the autoregressive one it was made from, under another
mask."""

LARGEST = 1 << 20

ACTIVATIONS: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}


def architecture_of(path: Path, config: Mapping[str, Any]) -> tuple[str, Architecture]:
    """The architecture that a config names."""
    named = config.get("architectures") or []
    if not isinstance(named, list):
        raise ModelError(f"{path}: architectures is {named!r}, not a list; {DOWNLOAD}")
    name = next((kind for kind in map(str, named) if kind in ARCHITECTURES), None)
    if name is None:
        named_types = ", ".join(map(str, named)) or config.get("model_type") or "not named"
        raise ModelError(f"{path}: the architecture is {named_types}, which cannot run in process; {ELSEWHERE}")
    return name, ARCHITECTURES[name]


def config_of(path: Path, found: dict[str, Any], weights: Mapping[str, tuple[int, ...]], context: int) -> ModelConfig:
    """The config in our terms. `weights` are the shapes of the weights by our names, which say more than a config
    does. `context` is an upper limit unless 0."""
    try:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            config = _config_of(path, found, weights, context)
            factors(path, found, config.head_width)
            return msgspec.convert(msgspec.to_builtins(config), ModelConfig)
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
        raise ModelError(f"{path}: has a value of the wrong kind ({error}); {DOWNLOAD}") from error


def _config_of(path: Path, config: dict[str, Any], weights: Mapping[str, tuple[int, ...]], context: int) -> ModelConfig:
    name, architecture = architecture_of(path, config)
    _refuse(path, config, name)
    config = architecture.defaults | config
    sizes = config | {usual: config[own] for usual, own in architecture.sizes.items() if own in config}
    heads, width = _size(path, sizes, "num_attention_heads"), _size(path, sizes, "hidden_size")
    head_width = _size(path, {"head_dim": sizes.get("head_dim") or width // heads}, "head_dim")
    kv_heads = _size(path, {"num_key_value_heads": sizes.get("num_key_value_heads") or heads}, "num_key_value_heads")
    if heads % kv_heads:
        raise ModelError(f"{path}: {heads} attention heads cannot share {kv_heads} of keys and values; {DOWNLOAD}")
    if head_width % 2:
        raise ModelError(f"{path}: head_dim is {head_width}, and halves of a head are rotated; {DOWNLOAD}")
    layers = _size(path, sizes, "num_hidden_layers")
    if weights and layers > len(weights):
        raise ModelError(f"{path}: num_hidden_layers is {layers}, and there are {len(weights)} weights; {DOWNLOAD}")
    frequencies, rope_scale = _rotation(path, sizes, head_width)
    if not all(map(math.isfinite, (*frequencies, rope_scale))):
        raise ModelError(f"{path}: rope_scaling is {reprlib.repr(_rope(sizes))}, no numbers to rotate by; {DOWNLOAD}")
    multiplier = _number(path, sizes, "embedding_multiplier")
    first = "layers.0."
    return ModelConfig(
        name=path.parent.name,
        width=width,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_width=head_width,
        feed_forward=_size(path, sizes, "intermediate_size"),
        vocabulary=weights.get("embedding.weight", (0,))[0],
        context=_context(sizes, context),
        rope_theta=_theta(path, sizes),
        norm_epsilon=_number(path, sizes, "rms_norm_eps") or 1e-6,
        qk_norm=f"{first}attention.query_norm.weight" in weights,
        qkv_bias=f"{first}attention.query.bias" in weights,
        tied=sizes.get("tie_word_embeddings") is True or "head.weight" not in weights,
        layer_norm="norm.bias" in weights,
        gated=f"{first}feed_forward.gate.weight" in weights,
        activation=architecture.activation or _activation(path, sizes),
        output_bias=f"{first}attention.output.bias" in weights,
        feed_forward_bias=f"{first}feed_forward.down.bias" in weights,
        embedding_scale=width**0.5 if architecture.scaled_embedding else multiplier or 1.0,
        rope_frequencies=frequencies,
        rope_scale=rope_scale,
    )


def factors(path: Path, config: Mapping[str, Any], head_width: int) -> dict[str, float]:
    """The factors for the weights of some parts."""
    residual, attention = (_number(path, config, f"{part}_multiplier") for part in ("residual", "attention"))
    return {
        "attention.output": residual or 1.0,
        "feed_forward.down": residual or 1.0,
        "attention.query": attention * head_width**0.5 if attention else 1.0,
        "norm": 1 / (_number(path, config, "logits_scaling") or 1.0),
    }


def read_json(path: Path, remedy: str = DOWNLOAD) -> dict[str, Any]:
    try:
        return msgspec.json.decode(small_bytes(path), type=dict[str, Any])
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error}); name the folder of a checkpoint") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: {error}; {remedy}") from error


def _refuse(path: Path, config: Mapping[str, Any], name: str) -> None:
    """Refuse what the graph lacks, in an architecture that it has."""
    rope = _rope(config)
    layers = {"attention", "full_attention", "sliding_attention"}
    recurrent = sorted({str(layer) for layer in config.get("layer_types") or []} - layers)
    partial = config.get("partial_rotary_factor") or rope.get("partial_rotary_factor") or 1.0
    wrong = {
        "num_local_experts": config.get("num_local_experts"),
        "layer_types": recurrent,
        "partial_rotary_factor": partial if partial != 1.0 else None,
        "quantization_config": config.get("quantization_config"),
    }
    for key, value in wrong.items():
        if value:
            raise ModelError(f"{path}: {key} is {value!r}; {name} cannot run in process with that: {ELSEWHERE}")


def _size(path: Path, config: Mapping[str, Any], name: str) -> int:
    value = config.get(name)
    if type(value) is not int or not 1 <= value <= LARGEST:
        raise ModelError(f"{path}: {name} is {reprlib.repr(value)}, not a number from 1 to {LARGEST}; {DOWNLOAD}")
    return value


def _number(path: Path, config: Mapping[str, Any], name: str) -> float | None:
    """A positive number; None if the config has none."""
    value = config.get(name)
    if value is not None and (type(value) not in (int, float) or not 0 < value < math.inf):
        raise ModelError(f"{path}: {name} is {reprlib.repr(value)}, not a positive number; {DOWNLOAD}")
    return value


def _context(config: Mapping[str, Any], limit: int) -> int:
    """Rows see everything before them, so a sliding window limits the context."""
    slides = config.get("use_sliding_window", True) and config.get("sliding_window")
    sizes = [*filter(None, (config.get("max_position_embeddings"), slides, limit))]
    for size in sizes:
        if type(size) is not int or size < 1:
            raise ValueError(f"a context of {reprlib.repr(size)}")
    return min(sizes, default=2048)


def _activation(path: Path, config: Mapping[str, Any]) -> Activation:
    named = config.get("hidden_act") or config.get("activation_type") or "silu"
    if named not in ACTIVATIONS:
        raise ModelError(f"{path}: hidden_act is {named!r}, none of {', '.join(ACTIVATIONS)}; {ELSEWHERE}")
    return ACTIVATIONS[named]


def _rope(config: Mapping[str, Any]) -> dict[str, Any]:
    return config.get("rope_parameters") or config.get("rope_scaling") or {}


def _theta(path: Path, config: Mapping[str, Any]) -> float:
    return _number(path, config, "rope_theta") or _number(path, _rope(config), "rope_theta") or 10_000.0


def _rotation(path: Path, config: Mapping[str, Any], head_width: int) -> tuple[tuple[float, ...], float]:
    """The frequencies of a scaled rotation, empty for a plain one, and the length of its cosines and sines."""
    rope, theta = _rope(config), _theta(path, config)
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if config.get("position_embedding_type", "rope") != "rope":
        return (0.0,) * (head_width // 2), 1.0
    plain = theta ** -(np.arange(0, head_width, 2) / head_width)
    try:
        match kind:
            case "default" | "dynamic":
                return (), 1.0
            case "linear":
                return tuple((plain / rope["factor"]).tolist()), 1.0
            case "llama3":
                return tuple(_llama3(plain, rope).tolist()), 1.0
            case "yarn":
                return tuple(_yarn(plain, rope, theta, config).tolist()), _yarn_scale(rope, _yarn_factor(rope, config))
    except KeyError as error:
        raise ModelError(f"{path}: rope_scaling is {kind!r} without {error}; {DOWNLOAD}") from error
    raise ModelError(f"{path}: rope_scaling is {kind!r}, none of linear, llama3 and yarn; {ELSEWHERE}")


def _llama3(plain: np.ndarray, rope: Mapping[str, Any]) -> np.ndarray:
    """Long waves are stretched, short ones stay, and those in between fade from one to the other."""
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    turns = rope["original_max_position_embeddings"] * plain / (2 * math.pi)
    ramp = np.clip((turns - low) / (high - low), 0, 1)
    return plain * (ramp + (1 - ramp) / rope["factor"])


def _yarn(plain: np.ndarray, rope: Mapping[str, Any], theta: float, config: Mapping[str, Any]) -> np.ndarray:
    count, original = len(plain), rope.get("original_max_position_embeddings") or config["max_position_embeddings"]
    low, high = (
        2 * count * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))
        for turns in (rope.get("beta_fast") or 32, rope.get("beta_slow") or 1)
    )
    if rope.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, 2 * count - 1)
    stretched = np.clip((np.arange(count) - low) / max(high - low, 0.001), 0, 1)
    return plain * (1 - stretched + stretched / _yarn_factor(rope, config))


def _yarn_factor(rope: Mapping[str, Any], config: Mapping[str, Any]) -> float:
    return rope.get("factor") or config["max_position_embeddings"] / rope["original_max_position_embeddings"]


def _yarn_scale(rope: Mapping[str, Any], factor: float) -> float:
    def scale(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    if rope.get("attention_factor") is not None:
        return float(rope["attention_factor"])
    own, all_of_them = rope.get("mscale"), rope.get("mscale_all_dim")
    return scale(own) / scale(all_of_them) if own and all_of_them else scale(1)
