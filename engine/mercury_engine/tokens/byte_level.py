"""A byte-level BPE tokenizer from its parts, for models that come without a `tokenizer.json`."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from mercury_engine.api import EngineError
from mercury_engine.bounds import small_bytes

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
HAN_AND_HANGUL = "[一-龥ࠀ-一가-퟿]+"

SPLITS: Mapping[str, tuple[str, ...]] = {
    "qwen2": (rf"{CONTRACTIONS}|{WORDS}|\p{{N}}|{REST}",),
    "llama-bpe": (rf"{CONTRACTIONS}|{WORDS}|\p{{N}}{{1,3}}|{REST}",),
    "seed-coder": (rf"{CONTRACTIONS}|{WORDS}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+|\s*[\r\n]+|\s+(?!\S)|\s+",),
    "deepseek-coder": (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", HAN_AND_HANGUL, r"\p{N}"),
    "starcoder": (r"\p{N}", ""),
    "refact": (r"\p{N}", ""),
    "smollm": (r"\p{N}", ""),
    "gpt-2": ("",),
    "mellum": ("",),
}
"""How a text is split before pairs are merged, by the names in GGUF files; "" is GPT-2's own way."""


def byte_level(
    vocabulary: Mapping[str, int], merges: Sequence[tuple[str, str]], special: Collection[str], split: str
) -> Tokenizer:
    """A tokenizer from these parts. `special` tokens are not found in a text unless looked up explicitly."""
    if split not in SPLITS:
        names = ", ".join(SPLITS)
        raise EngineError(f"the tokenizer splits texts by {split!r}, which is not supported (supported: {names})")
    unknown = next((pair for pair in merges if not {*pair, "".join(pair)} <= vocabulary.keys()), None)
    if unknown:  # at which the library would end the process
        raise EngineError(f"the tokenizer merges {unknown}, which is not in its vocabulary; get the model again")
    tokenizer = Tokenizer(models.BPE(dict(vocabulary), list(merges), ignore_merges=split == "llama-bpe"))
    if split == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(list(map(_splitting, SPLITS[split])) + _ending(SPLITS[split]))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer


def _splitting(pattern: str) -> pre_tokenizers.PreTokenizer:
    if not pattern:
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def _ending(patterns: Sequence[str]) -> list[pre_tokenizers.PreTokenizer]:
    """The decoder from bytes to letters, unless the last pattern already does that."""
    return [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)] if patterns[-1] else []


def from_files(folder: Path) -> Tokenizer:
    """A tokenizer from `vocab.json`, `merges.txt` and the special tokens beside them, the layout of the Qwen family."""
    try:
        vocabulary = msgspec.json.decode(small_bytes(folder / "vocab.json"), type=dict[str, int])
        lines = small_bytes(folder / "merges.txt").decode().splitlines()
        added = _added_in(folder)
        merges = [
            (first, second)
            for line in lines
            if not line.startswith("#version")
            for first, second in [_pair(line)]
            if second
        ]
        special = [token for token, _ in sorted(added.items(), key=lambda item: item[1])]
        return byte_level(vocabulary | added, merges, special, "qwen2")
    except EngineError:
        raise
    except Exception as error:  # entries of any kind; and the binding raises plain Exception
        raise EngineError(
            f"{folder}: no tokenizer.json, and vocab.json with merges.txt is no substitute ({error})"
        ) from error


def _pair(line: str) -> tuple[str, str]:
    first, _, second = line.partition(" ")
    return first, second


def _added_in(folder: Path) -> dict[str, int]:
    if (file := folder / "added_tokens.json").exists():
        return msgspec.json.decode(small_bytes(file), type=dict[str, int])
    config = msgspec.json.decode(small_bytes(folder / "tokenizer_config.json"), type=dict[str, object])
    entries = config.get("added_tokens_decoder")
    return {str(entry["content"]): int(id) for id, entry in entries.items()} if isinstance(entries, dict) else {}
