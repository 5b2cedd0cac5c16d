"""Exact and near-duplicate removal: MinHash over 7-token shingles, 64 permutations, Jaccard 0.75."""

import hashlib
import re
import zlib

import numpy as np

PERMUTATIONS = 64
SHINGLE = 7
BANDS = 16
JACCARD = 0.75
CHUNK = 1 << 14
TOKEN = re.compile(rb"\w+|[^\w\s]")

_draw = np.random.Generator(np.random.PCG64(20240601))
MULTIPLIERS = _draw.integers(1, 1 << 63, PERMUTATIONS, np.uint64) | np.uint64(1)
OFFSETS = _draw.integers(0, 1 << 63, PERMUTATIONS, np.uint64)
POWERS = np.uint64(0x9E3779B97F4A7C15) ** np.arange(SHINGLE, dtype=np.uint64)


def digest(data: bytes) -> bytes:
    """A digest of the text without its blanks, so that re-indented copies are exact copies."""
    return hashlib.blake2b(b"".join(data.split()), digest_size=16).digest()


def signature(data: bytes) -> np.ndarray:
    """uint32 of shape (64,): for each permutation the smallest hash of any shingle."""
    hashes = np.array([zlib.crc32(token) for token in TOKEN.findall(data)] or [0], np.uint64)
    count = max(1, len(hashes) - SHINGLE + 1)
    padded = np.concatenate([hashes, np.zeros(max(0, SHINGLE - len(hashes)), np.uint64)])
    shingles = np.zeros(count, np.uint64)
    for place, power in enumerate(POWERS):
        shingles += padded[place : place + count] * power
    shingles = np.unique(shingles)
    smallest = np.full(PERMUTATIONS, np.iinfo(np.uint32).max, np.uint32)
    for start in range(0, len(shingles), CHUNK):
        mixed = (shingles[None, start : start + CHUNK] * MULTIPLIERS[:, None] + OFFSETS[:, None]) >> np.uint64(32)
        smallest = np.minimum(smallest, mixed.min(axis=1).astype(np.uint32))
    return smallest


class Seen:
    """Owns the documents kept so far; the first of several similar ones stays."""

    def __init__(self) -> None:
        self._digests: set[bytes] = set()
        self._buckets: dict[bytes, list[int]] = {}
        self._signatures: list[np.ndarray] = []

    def reason(self, digest: bytes, signature: np.ndarray) -> str | None:
        """Why the document is a copy; None if it is not, and then it is remembered."""
        if digest in self._digests:
            return "exact duplicate"
        bands = [bytes([band]) + rows.tobytes() for band, rows in enumerate(signature.reshape(BANDS, -1))]
        candidates = {number for band in bands for number in self._buckets.get(band, ())}
        if any(np.mean(self._signatures[number] == signature) >= JACCARD for number in candidates):
            return "near duplicate"
        self._digests.add(digest)
        for band in bands:
            self._buckets.setdefault(band, []).append(len(self._signatures))
        self._signatures.append(signature)
        return None
