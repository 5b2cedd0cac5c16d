"""Which family a model belongs to, by its own files."""

import pytest

from mercury_engine.api import EngineError
from mercury_engine.families.family import FAMILIES, family_for, family_named

QWEN = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>")
DREAM = (*QWEN, "<|beginoftext|>", "<|mask|>")
SEED = ("<[begin▁of▁sentence]>", "<[end▁of▁sentence]>", "<[MASK_TOKEN]>", "<[fim-prefix]>")


def check(config, added, family, name=""):
    found = family_for(config, added, name)
    assert (found and found.name) == family
    assert family is None or family_named(family) == found


def test_families_are_recognised_by_their_configuration():
    check({"model_type": "Dream", "mask_token_id": 151666}, DREAM, "dream", "Dream-org/Dream-Coder-v0-Base-7B")
    check({"model_type": "Dream"}, DREAM, "dream", "apple/DiffuCoder-7B-Base")
    check({"model_type": "Dream"}, (*DREAM, "<|expand|>"), "dreamon")
    check({"model_type": "qwen2"}, (*QWEN, "<M>"), "open-dcoder")
    check({"model_type": "qwen2"}, QWEN, None, "Qwen/Qwen2.5-Coder-0.5B")
    check({"model_type": "a2d-qwen2"}, (*QWEN, "<|mask|>"), "tiny-a2d", "Qwen2.5-Coder-0.5B-diffusion-mdlm-v0.1")
    check({"model_type": "a2d-qwen3"}, (*QWEN, "<|mask|>"), "tiny-a2d-bd3lm", "Qwen3-0.6B-diffusion-bd3lm-v0.1")
    check({"model_type": "sdar", "block_size": 4, "mask_token_id": 151669}, (*QWEN, "<|MASK|>"), "sdar")
    check({"model_type": "sdar", "block_size": 16}, (*QWEN, "<|MASK|>"), "sdar-16")
    check({"model_type": "Fast_dLLM_Qwen", "bd_size": 32}, (*QWEN, "|<MASK>|"), "fast-dllm-v2")
    check({"model_type": "llama", "architectures": ["StableDiffcoderForCausalLM"]}, SEED, "stable-diffcoder")
    check({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}, SEED, None, "Seed-Coder-8B-Base")
    check({"model_type": "llada"}, ("<|mdm_mask|>", "<|startoftext|>", "<|endoftext|>"), "llada")
    check({"model_type": "starcoder2"}, (), None)
    check({}, (), None)


def test_block_diffusion_only_continues():
    for family in FAMILIES:
        assert (family.attention == "block-causal") == (family.length == "continue")
        assert bool(family.block) == bool(family.ends) == (family.length == "continue")


def test_unknown_family_is_refused():
    assert family_named("qwen") is None
    assert family_named("sdar-0") is None
    assert family_named("dream-8") is None


def test_family_that_does_not_run_says_what_to_do():
    with pytest.raises(EngineError, match=r"big: DiffusionGemma .*mercury-ls model recommend.* vLLM"):
        family_for({"model_type": "diffusion_gemma"}, (), "big")
    with pytest.raises(EngineError, match="mixture of experts"):
        family_for({"model_type": "llada", "num_experts": 64}, ())


def test_missing_mask_is_named():
    with pytest.raises(EngineError, match=r"has <\|mask\|>, <\|beginoftext\|>, which this one lacks"):
        family_for({"model_type": "Dream"}, QWEN)
