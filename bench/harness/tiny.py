"""A tiny checkpoint with random weights in the layout of Qwen2.5-Coder, and its tokenizer."""

import json

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

WIDTH, LAYERS, HEADS, KV_HEADS, INNER = 32, 2, 4, 2, 64
SPECIALS = (
    *("<|endoftext|>", "<|im_end|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>"),
    *("<|repo_name|>", "<|file_sep|>"),
)


def checkpoint(folder, specials=SPECIALS, **config):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _byte_tokenizer(specials)
    tokenizer.save(str(folder / "tokenizer.json"))
    vocabulary = tokenizer.get_vocab_size()
    written = {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "intermediate_size": INNER,
        "vocab_size": vocabulary,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10_000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        **config,
    }
    (folder / "config.json").write_text(json.dumps(written))
    save_file(weights(vocabulary), folder / "model.safetensors")
    return folder


def _byte_tokenizer(specials):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: number for number, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in specials])
    return tokenizer


def weights(vocabulary):
    random = np.random.default_rng(0)
    keys = WIDTH // HEADS * KV_HEADS

    def matrix(*shape):
        return random.normal(0, 0.05, shape).astype(np.float32)

    found = {"model.embed_tokens.weight": matrix(vocabulary, WIDTH), "model.norm.weight": np.ones(WIDTH, np.float32)}
    for number in range(LAYERS):
        layer = {
            "input_layernorm.weight": np.ones(WIDTH, np.float32),
            "post_attention_layernorm.weight": np.ones(WIDTH, np.float32),
            "self_attn.q_proj.weight": matrix(WIDTH, WIDTH),
            "self_attn.q_proj.bias": matrix(WIDTH),
            "self_attn.k_proj.weight": matrix(keys, WIDTH),
            "self_attn.k_proj.bias": matrix(keys),
            "self_attn.v_proj.weight": matrix(keys, WIDTH),
            "self_attn.v_proj.bias": matrix(keys),
            "self_attn.o_proj.weight": matrix(WIDTH, WIDTH),
            "mlp.gate_proj.weight": matrix(INNER, WIDTH),
            "mlp.up_proj.weight": matrix(INNER, WIDTH),
            "mlp.down_proj.weight": matrix(WIDTH, INNER),
        }
        found |= {f"model.layers.{number}.{name}": weight for name, weight in layer.items()}
    return found
