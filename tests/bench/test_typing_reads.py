"""Tokens read with each key: ours are few, and the other prompts are as their makers build them."""

import statistics

from bench.typing_reads import PROMPTS, fim_tokenizer, reads

BEFORE, AFTER = "import math\n\n\n" * 40, "\n\ndef other(value):\n    return value\n" * 40


def test_our_prompt_reads_less_again_than_others():
    tokenizer = fim_tokenizer()
    found = {name: reads(prompt, tokenizer, BEFORE, AFTER)[1:] for name, prompt in PROMPTS.items()}
    mean = {name: statistics.mean(keys) for name, keys in found.items()}
    assert statistics.median(found["ours"]) <= 2
    assert mean["ours"] < mean["llama.vim"] < mean["minuet"]
    assert min(found["minuet"]) > 400
