"""Small tokenizers in the layouts of other people's models, trained on a few lines, as the files that they publish."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from mercury_engine.tokens.pretrained import PretrainedTokenizer

TEXT = (
    """\
import math


class Shape:
    def __init__(self, width, height):
        self.width = width
        self.height = height

    def area(self):
        return self.width * self.height  # it's 100 %

if (a) {
\t\tcall(a, b);
\t}
/* one
 * two
 */
"""
    * 3
)

QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3 = QWEN.replace(r"\p{N}|", r"\p{N}{1,3}|", 1)
FIM = (
    "<|endoftext|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
)


def split(*patterns):
    return [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]


BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
SPLITTERS = {
    "qwen": [*split(QWEN), BYTES],
    "llama3": [*split(LLAMA3), BYTES],
    "o200k": [*split(O200K), BYTES],
    "starcoder": [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)],
    "deepseek": [
        *split(r"[\r\n]", r"\s?\p{L}+", r"\s?[!-/:-~]+", r"\s+$", r"[一-龥ࠀ-一가-퟿]+"),
        pre_tokenizers.Digits(individual_digits=True),
        BYTES,
    ],
    "deepseek-coder": [
        *split(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+"),
        pre_tokenizers.Digits(individual_digits=True),
        BYTES,
    ],
}


def byte_level(name):
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(SPLITTERS[name])
    tokenizer.normalizer = normalizers.NFC() if name == "qwen" else None
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.add_special_tokens(list(FIM[:1]))
    tokenizer.add_tokens([tokenizers.AddedToken(name, normalized=False) for name in FIM[1:]])
    return json.loads(tokenizer.to_str())


def llama():
    """Llama 2's: no pre-tokens, `▁` for a blank and before every text, bytes for what is not in the vocabulary."""
    words = ["▁", "a", "b", "s", "e", "l", "f", "r", "t", "u", "n", ".", "(", ")", ":", "=", "▁▁", "▁▁▁▁", "▁s"]
    words += ["se", "lf", "self", "▁self", "re", "ret", "_", "/", "}", "'", "|", "d", "]", "])"]
    words += (joined := [f"▁{letter}" for letter in "ad_/}'.=|"])
    vocab = {
        name: token
        for token, name in enumerate(["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), *words])
    }
    merges = ["] )", *map(" ".join, joined), "▁ ▁", "▁▁ ▁▁", "s e", "l f", "se lf", "▁ self", "r e", "re t", "▁ s"]
    layout = json.loads(Path(__file__).with_name("llama.json").read_bytes())
    layout["model"] |= {"vocab": vocab, "merges": merges}
    return layout


LAYOUTS = (*SPLITTERS, "llama")


@cache
def spec(layout):
    return llama() if layout == "llama" else byte_level(layout)


def load(data):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        path.write_text(json.dumps(data), encoding="utf-8")
        return PretrainedTokenizer(path)


@cache
def tokenizer(layout):
    return load(spec(layout))
