"""The bytes of each token of a vocabulary, and which tokens can spell a given text (token healing)."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

import numpy as np

CACHED_CONSTRAINTS = 1 << 10


class Spelling:
    """The bytes of every token; special tokens have none."""

    def __init__(self, token_bytes: Sequence[bytes]) -> None:
        self.token_bytes: tuple[bytes, ...] = tuple(token_bytes)
        self.allowed = lru_cache(CACHED_CONSTRAINTS)(self._allowed)

    @property
    def vocabulary(self) -> int:
        return len(self.token_bytes)

    @cached_property
    def silent(self) -> int:
        """A token without bytes."""
        return self.token_bytes.index(b"")

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The exact bytes of the ids."""
        return b"".join(self.token_bytes[token] for token in ids)

    def decode(self, ids: Iterable[int]) -> str:
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def remaining(self, typed: bytes, token: int) -> bytes:
        """The bytes of `typed` that are left to spell after `token`."""
        return typed[len(self.token_bytes[token]) :]

    def _allowed(self, typed: bytes) -> np.ndarray:
        """The ids that a slot may take while `typed` is left to spell, ascending: tokens that start with all of it,
        and tokens that it starts with. The sorted vocabulary is the trie."""
        assert typed, "a slot is constrained only while typed bytes are left to spell"
        order, spelled = self._sorted
        behind = typed[:-1] + bytes([typed[-1] + 1])  # no character ends with the last byte of all
        spans = [order[bisect_left(spelled, typed) : bisect_left(spelled, behind)]]
        for length in range(1, len(typed)):
            spans.append(order[bisect_left(spelled, typed[:length]) : bisect_right(spelled, typed[:length])])
        ids = np.sort(np.concatenate(spans))
        ids.setflags(write=False)
        return ids

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, list[bytes]]:
        spelling = (token for token, spelled in enumerate(self.token_bytes) if spelled)
        order = sorted(spelling, key=self.token_bytes.__getitem__)
        return np.array(order, np.int32), [self.token_bytes[token] for token in order]


def valid(text: str) -> str:
    """The text with each lone surrogate, which editors send and UTF-8 cannot encode, replaced by one `?`, keeping
    offsets."""
    return text.encode("utf-8", "replace").decode()


def byte_of_symbol() -> dict[str, int]:
    """GPT-2's byte-level alphabet: printable bytes stand for themselves, all others for U+0100 and up."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    unprintable = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(unprintable)}
