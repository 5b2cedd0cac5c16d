"""Text to tokens and back: a byte-level BPE whose pre-tokens never cross a line end, and token healing."""

import re
from functools import cached_property, lru_cache
from pathlib import Path
from typing import cast

import tokenizers
from tokenizers import Regex, decoders, models, pre_tokenizers

from mercury_engine.api import EngineError
from mercury_engine.tokens.spelling import Spelling, byte_of_symbol, valid
from mercury_engine.tokens.vocabulary import MAXIMUM_PART, SPECIALS

PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)"
    r"|[^\r\n\p{L}\p{N}]?\p{L}+"
    r"|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+(?:\r?\n)?"
    r"|[^\S\r\n]*\r?\n"
    r"|[^\S\r\n]+(?!\S)"
    r"|\s"
)
"""Splits like cl100k, but into single digits and never across a line end. Encoding a text is therefore encoding its
lines, and a finished line is appended to the context without changing the tokens before it."""

LINE = re.compile(r"[^\n]*\n|[^\n]+")
CACHED_LINES = 1 << 14


def untrained() -> tokenizers.Tokenizer:
    """The pipeline without a vocabulary. Training fills it: `SPECIALS`, the byte alphabet, the merges."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


class Tokenizer(Spelling):
    """Owns the vocabulary and caches encoded lines, so that an unchanged line costs a look-up."""

    def __init__(self, data: bytes, source: str = "tokenizer.json") -> None:
        self._rust = _parse(data, source)
        symbols = [cast("str", self._rust.id_to_token(token)) for token in range(self._rust.get_vocab_size())]
        _check(symbols, self._rust, source)
        super().__init__(_vocabulary_bytes(symbols))
        self._symbols: list[str] = symbols
        self.byte_ids: tuple[int, ...] = tuple(self.token_bytes.index(bytes([byte])) for byte in range(256))
        self._line = lru_cache(CACHED_LINES)(self._encode_line)

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        try:
            return cls(path.read_bytes(), str(path))
        except OSError as error:
            raise EngineError(f"{path}: cannot read the tokenizer ({error}); install the model again") from error

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, never a special one: a literal `<mask>` is text."""
        return [token for line in LINE.findall(text) for token in self._line(line)]

    @cached_property
    def line_ends(self) -> dict[int, tuple[int, ...]]:
        """For each token with a line end, the tokens that spell the text before it."""
        ending = (token for token, spelled in enumerate(self.token_bytes) if b"\n" in spelled)
        return {token: tuple(self.encode(self.decode([token]).partition("\n")[0])) for token in ending}

    def symbol(self, token: int) -> str:
        """The token in golden files: `Ġ` for a space and `Ċ` for a line end."""
        return self._symbols[token]

    def split_part(self, head: str) -> tuple[list[int], str]:
        """The tokens of a line's head up to its last pre-token, and that pre-token as text: the part that is healed.

        The next letter can change the last pre-token and nothing before it. Of a run of blanks only the last one can
        still join a word. A pre-token longer than `MAXIMUM_PART` bytes loses its start, so that a canvas can spell the
        rest.
        """
        if not head:
            return [], ""
        encoding = self._rust.encode(valid(head), add_special_tokens=False)
        words = encoding.word_ids
        stable = [token for token, word in zip(encoding.ids, words, strict=True) if word != words[-1]]
        last = self.decode_bytes(encoding.ids[len(stable) :]).decode()
        settled = len(last) - 1 if last.isspace() else _overlong(last)
        return stable + self.encode(last[:settled]), last[settled:]

    def spell(self, part: str) -> list[int]:
        """One byte token for each byte of the part."""
        return [self.byte_ids[byte] for byte in valid(part).encode()]

    def _encode_line(self, line: str) -> tuple[int, ...]:
        return tuple(self._rust.encode(valid(line), add_special_tokens=False).ids)


def _overlong(part: str) -> int:
    """The number of leading characters to drop so that the rest fits into `MAXIMUM_PART` bytes."""
    return len(part) - len(part.encode()[-MAXIMUM_PART:].decode(errors="ignore"))


def _parse(data: bytes, source: str) -> tokenizers.Tokenizer:
    try:
        tokenizer = tokenizers.Tokenizer.from_str(data.decode())
    except Exception as error:  # the binding raises plain Exception
        raise EngineError(f"{source}: not a tokenizer file ({error}); install the model again") from error
    tokenizer.encode_special_tokens = True
    return tokenizer


def _check(symbols: list[str], tokenizer: tokenizers.Tokenizer, source: str) -> None:
    for token, expected in enumerate(SPECIALS):
        found = symbols[token] if token < len(symbols) else "nothing"
        if found != expected:
            raise EngineError(
                f"{source}: id {token} is {found!r}, the layout has {expected!r}; train the tokenizer again"
            )
    alphabet = set(pre_tokenizers.ByteLevel.alphabet())
    if missing := alphabet - set(symbols):
        raise EngineError(
            f"{source}: {len(missing)} of 256 byte symbols are missing; train the tokenizer with the alphabet"
        )
    for token, symbol in enumerate(symbols[len(SPECIALS) :], len(SPECIALS)):
        if not alphabet.issuperset(symbol):
            raise EngineError(
                f"{source}: id {token} is {symbol!r}, not spelled in bytes; train the tokenizer without added tokens"
            )
    if tokenizer.normalizer is not None:
        raise EngineError(f"{source}: a normalizer changes the text; train the tokenizer without one")
    splitter = tokenizer.pre_tokenizer
    pieces = [piece for piece, _ in splitter.pre_tokenize_str("a\n\n12")] if splitter else None
    if pieces != ["a", "Ċ", "Ċ", "1", "2"]:
        raise EngineError(
            f"{source}: does not split lines and digits as the layout does; train the tokenizer with PATTERN"
        )


def _vocabulary_bytes(symbols: list[str]) -> tuple[bytes, ...]:
    byte_of = byte_of_symbol()
    plain = (bytes(byte_of[character] for character in symbol) for symbol in symbols[len(SPECIALS) :])
    return (*[b""] * len(SPECIALS), *plain)
