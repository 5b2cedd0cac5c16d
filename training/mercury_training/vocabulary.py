"""The vocabulary of a checkpoint in the layout's form, whole or pruned.

The layout's 64 special tokens come first, then the kept tokens in their old order. Bytes that the checkpoint has no
token for are added.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct, structs
from tokenizers import pre_tokenizers

from mercury_engine.tokens.pretrained import is_byte_level
from mercury_engine.tokens.tokenizer import Tokenizer, untrained
from mercury_engine.tokens.vocabulary import SPECIALS
from mercury_training.corpus.shards import Corpus
from mercury_training.errors import TrainingError
from mercury_training.progress import shown

ALPHABET = frozenset(pre_tokenizers.ByteLevel.alphabet())
LEAST = len(SPECIALS) + len(ALPHABET)
SPECIAL = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}

LIKE = {
    "<bos>": ("<|begin_of_text|>", "<s>", "<|endoftext|>"),
    "<eom>": ("<|endoftext|>", "<|end_of_text|>", "<|fim_pad|>", "</s>"),
    "<pre>": ("<|fim_prefix|>", "<fim_prefix>", "<PRE>"),
    "<suf>": ("<|fim_suffix|>", "<fim_suffix>", "<SUF>"),
    "<cur>": ("<|fim_middle|>", "<fim_middle>", "<MID>"),
    "<path>": ("<|file_sep|>", "<file_sep>"),
    "<snip>": ("<|repo_name|>", "<repo_name>", "<reponame>"),
}
"""Third-party special tokens with the same meaning: ours start with their embeddings, the rest with the mean of all."""


class SourceVocabulary(Struct, frozen=True):
    """The byte-level BPE of a checkpoint: the tokens that a text can become, in the order of their ids, and those that
    only a prompt names."""

    model: dict[str, Any]
    symbols: dict[str, int]
    special: dict[str, int]
    merges: tuple[tuple[str, str], ...]


class Vocabulary(Struct, frozen=True, eq=False):
    """A tokenizer file in the layout's form, and for each of its tokens the one of the checkpoint whose embedding it
    starts with: -1 if it has none there. `coverage` is its share of the tokens of the corpus that it was chosen by."""

    data: bytes
    origins: np.ndarray
    coverage: float | None = None


def read_source(spec: Mapping[str, Any], path: Path) -> SourceVocabulary:
    """The vocabulary in the `tokenizer.json` of a checkpoint, whose path errors name."""
    model = spec.get("model") or {}
    vocab = model.get("vocab")
    if (
        model.get("type") != "BPE"
        or not isinstance(vocab, dict)
        or model.get("byte_fallback")
        or not is_byte_level(spec)
    ):
        raise TrainingError(
            f"{path}: its model is {model.get('type')!r}, not a byte-level BPE; choose a checkpoint with one, because "
            "mid-word cursors need a token for every byte"
        )
    special = {token["content"]: token["id"] for token in spec.get("added_tokens") or []}
    spelled = {symbol for symbol in vocab.keys() - special.keys() - set(SPECIALS) if ALPHABET.issuperset(symbol)}
    pairs = (merge.split(" ") if isinstance(merge, str) else merge for merge in model.get("merges") or [])
    merges = tuple((first, second) for first, second in pairs if spelled >= {first, second, first + second})
    reachable = spelled if model.get("ignore_merges") else spelled & (ALPHABET | {"".join(pair) for pair in merges})
    symbols = {symbol: vocab[symbol] for symbol in sorted(reachable, key=vocab.__getitem__)}
    return SourceVocabulary(model, symbols, special, merges)


def keeping(source: SourceVocabulary, kept: Iterable[str]) -> Vocabulary:
    """The vocabulary with these tokens and all bytes."""
    chosen = sorted(source.symbols.keys() & (ALPHABET | set(kept)), key=source.symbols.__getitem__)
    symbols = [*SPECIALS, *sorted(ALPHABET - source.symbols.keys()), *chosen]
    ids = {symbol: number for number, symbol in enumerate(symbols)}
    merges = [pair for pair in source.merges if ids.keys() >= {*pair, "".join(pair)}]
    spec = msgspec.json.decode(untrained().to_str(), type=dict[str, Any])
    spec["model"] = source.model | {"vocab": ids, "merges": merges, "unk_token": None}
    spec["added_tokens"] = [{"id": number, "content": content} | SPECIAL for number, content in enumerate(SPECIALS)]
    return Vocabulary(msgspec.json.encode(spec), _origins(source, symbols))


def most_frequent(source: SourceVocabulary, size: int, corpus: Path) -> Vocabulary:
    """The vocabulary of at most `size` tokens that the corpus needs most, with those that they are merged from."""
    if size < LEAST:
        raise TrainingError(f"a vocabulary of {size} tokens: special tokens and bytes alone are {LEAST}; keep more")
    counts = _counts(corpus, source)
    made_of: dict[str, list[str]] = {}
    for pair in source.merges:
        made_of.setdefault("".join(pair), []).extend(pair)
    kept = set(ALPHABET)
    for symbol in sorted(source.symbols, key=counts.__getitem__, reverse=True):
        parts = _parts(symbol, made_of) - kept
        if len(SPECIALS) + len(kept) + len(parts) > size:
            break
        kept |= parts
    coverage = sum(number for symbol, number in counts.items() if symbol in kept) / max(1, sum(counts.values()))
    return structs.replace(keeping(source, kept), coverage=coverage)


def as_in(source: SourceVocabulary, path: Path) -> Vocabulary:
    """The vocabulary of a tokenizer file that was made from this source."""
    tokenizer = Tokenizer.load(path)
    symbols = [tokenizer.symbol(token) for token in range(tokenizer.vocabulary)]
    if foreign := sorted(set(symbols) - source.symbols.keys() - ALPHABET - set(SPECIALS)):
        raise TrainingError(f"{path}: the checkpoint has no token {foreign[0]!r}; name a tokenizer made from it")
    return Vocabulary(path.read_bytes(), _origins(source, symbols))


def _counts(corpus: Path, source: SourceVocabulary) -> dict[str, int]:
    """How often each token of the source occurs in what a corpus teaches."""
    shards, tokenizer = Corpus.open(corpus), Tokenizer(keeping(source, source.symbols).data)
    counts = np.zeros(tokenizer.vocabulary, np.int64)
    for number in shown("counting tokens", range(len(shards.train))):
        tokens = tokenizer.encode(shards.train.text(number, shards.tokenizer))
        counts += np.bincount(tokens, minlength=len(counts))
    by_symbol = {tokenizer.symbol(token): int(times) for token, times in enumerate(counts)}
    return {symbol: by_symbol[symbol] for symbol in source.symbols}


def _origins(source: SourceVocabulary, symbols: Iterable[str]) -> np.ndarray:
    likes = {ours: [source.special[name] for name in theirs if name in source.special] for ours, theirs in LIKE.items()}
    origins = source.symbols | {ours: ids[0] for ours, ids in likes.items() if ids}
    return np.array([origins.get(symbol, -1) for symbol in symbols])


def _parts(symbol: str, made_of: Mapping[str, list[str]]) -> set[str]:
    """The token and all those that it is merged from."""
    parts: set[str] = set()
    pending = [symbol]
    while pending:
        if (part := pending.pop()) not in parts:
            parts.add(part)
            pending += made_of.get(part, [])
    return parts
