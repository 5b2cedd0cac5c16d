"""Tiny random checkpoints of each family as they are published: config, names of the weights, tokenizer, mask."""

import json

import numpy as np
from safetensors.numpy import save_file

from tests.engine.tokens.pretrained_files import byte_level

VOCABULARY = 480
WIDTH, LAYERS, HEADS, KEY_HEADS, HEAD_WIDTH, FEED_FORWARD = 64, 2, 4, 2, 16, 96

SIZES = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KEY_HEADS,
    "intermediate_size": FEED_FORWARD,
    "max_position_embeddings": 512,
    "vocab_size": VOCABULARY,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10_000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}
LLADA_SIZES = {
    "d_model": WIDTH,
    "n_layers": LAYERS,
    "n_heads": HEADS,
    "n_kv_heads": KEY_HEADS,
    "mlp_hidden_size": FEED_FORWARD,
    "max_sequence_length": 512,
    "vocab_size": VOCABULARY,
    "embedding_size": VOCABULARY,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10_000.0,
    "weight_tying": False,
    "include_bias": False,
    "block_type": "llama",
    "activation_type": "silu",
}


def remote(name, kind, **more):
    """A config whose own code would be fetched by others."""
    module = f"modeling_{kind.lower()}"
    return SIZES | {"architectures": [name], "model_type": kind, "auto_map": {"AutoModel": f"{module}.{name}"}} | more


QWEN2, QWEN3, LLAMA = "bias", "norm", ""
CHECKPOINTS = {
    "dream": (
        "Dream-Coder-v0-Base-7B",
        remote("DreamModel", "Dream", mask_token_id=431),
        QWEN2,
        ("<|beginoftext|>", "<|mask|>"),
    ),
    "dreamon": (
        "DreamOn-v0-7B",
        remote("DreamModel", "Dream", mask_token_id=431),
        QWEN2,
        ("<|beginoftext|>", "<|mask|>", "<|expand|>"),
    ),
    "open-dcoder": (
        "open-dcoder-0.5B",
        SIZES | {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"},
        QWEN2,
        ("<M>",),
    ),
    "llada": (
        "LLaDA-8B-Base",
        LLADA_SIZES | {"architectures": ["LLaDAModelLM"], "model_type": "llada"},
        "llada",
        ("<|startoftext|>", "<|mdm_mask|>"),
    ),
    "tiny-a2d": (
        "Qwen3-0.6B-diffusion-mdlm-v0.1",
        remote("A2DQwen3LMHeadModel", "a2d-qwen3", head_dim=HEAD_WIDTH),
        QWEN3,
        ("<|mask|>",),
    ),
    "tiny-a2d-bd3lm": (
        "Qwen2.5-Coder-0.5B-Instruct-diffusion-bd3lm-v0.1",
        remote("A2DQwen2LMHeadModel", "a2d-qwen2"),
        QWEN2,
        ("<|im_end|>", "<|mask|>"),
    ),
    "sdar-8": (
        "SDAR-1.7B-Chat-b8",
        remote("SDARForCausalLM", "sdar", head_dim=HEAD_WIDTH, block_size=8),
        QWEN3,
        ("<|im_end|>", "<|MASK|>"),
    ),
    "fast-dllm-v2": (
        "Fast_dLLM_v2_1.5B",
        remote("Fast_dLLM_QwenForCausalLM", "Fast_dLLM_Qwen", bd_size=32),
        QWEN2,
        ("<|im_end|>", "|<MASK>|"),
    ),
    "stable-diffcoder": (
        "Stable-DiffCoder-8B-Base",
        remote("StableDiffcoderForCausalLM", "llama"),
        LLAMA,
        ("<[begin▁of▁sentence]>", "<[end▁of▁sentence]>", "<[MASK_TOKEN]>"),
    ),
}
"""By family: the name of a checkpoint, its config, its kind of layers, and what its tokenizer has beside text."""


def write(folder, family, seed=0):
    """Returns the name and the config of the checkpoint."""
    name, config, kind, special = CHECKPOINTS[family]
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer(special)), encoding="utf-8")
    random = np.random.default_rng(seed)
    save_file({name: drawn(random, shape) for name, shape in shapes(kind).items()}, folder / "model.safetensors")
    return name, config


def tokenizer(special):
    spec = byte_level("qwen")
    flags = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    first = 1 + max(token["id"] for token in spec["added_tokens"])
    spec["added_tokens"] += [{"id": first + at, "content": name, **flags} for at, name in enumerate(special)]
    return spec


def drawn(random, shape):
    return (random.normal(size=shape) * (0.1 if len(shape) > 1 else 0.02) + (len(shape) == 1)).astype(np.float32)


def shapes(kind):
    """The names and shapes of the weights."""
    queries, keys = HEADS * HEAD_WIDTH, KEY_HEADS * HEAD_WIDTH
    layer = {
        "input_layernorm": (WIDTH,),
        "self_attn.q_proj": (queries, WIDTH),
        "self_attn.k_proj": (keys, WIDTH),
        "self_attn.v_proj": (keys, WIDTH),
        "self_attn.o_proj": (WIDTH, queries),
        "post_attention_layernorm": (WIDTH,),
        "mlp.gate_proj": (FEED_FORWARD, WIDTH),
        "mlp.up_proj": (FEED_FORWARD, WIDTH),
        "mlp.down_proj": (WIDTH, FEED_FORWARD),
    }
    if kind == QWEN3:
        layer |= {"self_attn.q_norm": (HEAD_WIDTH,), "self_attn.k_norm": (HEAD_WIDTH,)}
    whole = {"model.embed_tokens": (VOCABULARY, WIDTH), "model.norm": (WIDTH,), "lm_head": (VOCABULARY, WIDTH)}
    found = {f"{name}.weight": shape for name, shape in whole.items()}
    for number in range(LAYERS):
        found |= {f"model.layers.{number}.{name}.weight": shape for name, shape in layer.items()}
        if kind == QWEN2:
            biased = {"q_proj": queries, "k_proj": keys, "v_proj": keys}
            found |= {f"model.layers.{number}.self_attn.{name}.bias": (size,) for name, size in biased.items()}
    return {as_llada(name): shape for name, shape in found.items()} if kind == "llada" else found


def as_llada(name):
    for theirs, its in (
        ("model.embed_tokens.", "model.transformer.wte."),
        ("model.norm.", "model.transformer.ln_f."),
        ("lm_head.", "model.transformer.ff_out."),
        ("model.layers.", "model.transformer.blocks."),
        ("input_layernorm.", "attn_norm."),
        ("post_attention_layernorm.", "ff_norm."),
        ("self_attn.o_proj.", "attn_out."),
        ("self_attn.", ""),
        ("mlp.gate_proj.", "ff_proj."),
        ("mlp.down_proj.", "ff_out."),
        ("mlp.", ""),
    ):
        name = name.replace(theirs, its)
    return name
