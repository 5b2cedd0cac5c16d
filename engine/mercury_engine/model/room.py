"""The memory needed to read a text, and whether it is available: every reader asks here."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from mercury_engine.api import TooLongError
from mercury_engine.model.runtime import Cache, Resources, Runtime, on_cpu, weight_bytes

CACHE_MEMORY = 256 << 20
"""The minimum memory for caches, in bytes: several contexts of a small model, one of a large one."""

CHUNK = 256
"""Rows of context encoded in one forward: the longest forward that a keystroke has to wait for."""

SCORES = 1 << 22
"""Pairs of a row and a column in one forward: after a long text chunks are shorter, so that the time and memory of
each stay bounded."""

SHORTEST_CHUNK = 32

TOKEN = 256
"""Bytes per token besides its keys and values: its text, its ids, and its previous position."""

CHARACTERS = 16
"""Of a token, on average, at most: code has four."""
LESS = "send less text (in an editor by a lower context.budget_tokens)"


def chunk_at(cached: int, chunk: int = CHUNK) -> int:
    return min(chunk, max(SHORTEST_CHUNK, SCORES // max(1, cached)))


def reading_bytes(runtime: Runtime, cache: Cache, tokens: int, *, at_once: bool = False) -> int:
    """The bytes for this many tokens with their keys and values, and the largest forward: a chunk, or all of them
    `at_once`."""
    steps = [(tokens, tokens)] if at_once else [(chunk_at(at), at) for at in (min(tokens, SCORES // CHUNK), tokens)]
    return _kept_bytes(cache, tokens) + max(runtime.pass_bytes(min(rows, at), at) for rows, at in steps)


class Room(Struct, frozen=True, eq=False):
    """The longest text that a model may read: within its context, within the `memory` that the settings leave for
    caches beside the `weights`, and within what is `free` on its device and not `promised` to texts being read. 0
    bytes mean no limit."""

    runtime: Runtime
    name: str
    memory: int = 0
    weights: int = 0
    free: Callable[[], int] = int
    promised: list[tuple[Cache, int]] = []

    @property
    def caches(self) -> int:
        """Bytes for everything that stays encoded."""
        return self.memory or CACHE_MEMORY

    @contextmanager
    def reserved(
        self, tokens: int, asked_tokens: int, cache: Cache, *, canvas: int = 0, at_once: bool = False, remedy: str = ""
    ) -> Iterator[int]:
        """Like `allow`, and reserve the memory meanwhile."""
        allowed = self.allow(tokens, asked_tokens, cache, canvas=canvas, at_once=at_once, remedy=remedy)
        promise = cache, _kept_bytes(cache, tokens + canvas + allowed)
        self.promised.append(promise)
        try:
            yield allowed
        finally:
            self.promised.remove(promise)

    def allow(
        self, tokens: int, asked_tokens: int, cache: Cache, *, canvas: int = 0, at_once: bool = False, remedy: str = ""
    ) -> int:
        """How many of the `asked_tokens` may follow this many, which are read into this cache, with a `canvas`
        behind.

        Raise `TooLongError` if none may, with the usual remedies and this one. Nothing has been read yet.
        """
        context = self.runtime.config.context
        limit = min(asked_tokens, context - tokens - canvas)
        if limit < 1:
            raise TooLongError(f"{self.name}: {tokens} tokens and an answer exceed its context of {context}: {LESS}")

        def needed(count: int) -> int:
            return reading_bytes(self.runtime, cache, count, at_once=at_once)

        free, asked = self.free(), tokens + canvas
        limits = [limit for limit in (self.memory, free and max(1, free - self._awaited(cache)) + cache.bytes) if limit]
        available = min(limits, default=0)
        if not limits or needed(asked + limit) <= available:
            return limit
        fits = bisect_right(range(asked + limit), available, key=needed) - 1
        if fits > asked:
            return fits - asked
        raise TooLongError(self._refusal(tokens, needed(asked + 1), available, max(0, fits), remedy))

    def check_characters(self, count: int) -> None:
        """Raises `TooLongError` for a text that need not be cut into tokens, which takes long, to be known to have too
        many."""
        context = self.runtime.config.context
        if count > context * CHARACTERS:
            raise TooLongError(f"{self.name}: {count} characters, and its context is {context} tokens: {LESS}")

    def _awaited(self, cache: Cache) -> int:
        """Bytes promised to other texts and not used yet."""
        return sum(max(0, size - other.bytes) for other, size in self.promised if other is not cache)

    def _refusal(self, tokens: int, needed: int, available: int, fits: int, remedy: str) -> str:
        if available == self.memory:
            limit, first = "engine.memory_mb leaves {} MiB", f"raise it to {_mib(self.weights + needed)}"
        else:
            limit, first = f"{{}} MiB are free on {self.runtime.device}", "end what else uses it"
            if self.promised:
                limit, first = f"{limit} besides what other texts will take", "ask again when they are answered"
        remedies = ", ".join(filter(None, (first, remedy, LESS)))
        return (
            f"{self.name}: {tokens} tokens and an answer take {_mib(needed)} MiB besides the weights, but "
            f"{limit.format(available >> 20)}, enough for {fits} tokens: {remedies}, or choose a smaller model"
        )


def room_of(runtime: Runtime, name: str, folder: Path, resources: Resources) -> Room:
    weights = weight_bytes(folder)
    memory = max(CACHE_MEMORY, resources.memory - weights) if resources.memory else 0
    return Room(runtime, name, memory, weights, resources.free if on_cpu(runtime) else _free_on_gpu)


def _kept_bytes(cache: Cache, tokens: int) -> int:
    return TOKEN * tokens + cache.bytes_for(tokens)


def _free_on_gpu() -> int:
    """Memory that is free, and torch's reserve."""
    import torch

    return torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()


def _mib(size: int) -> int:
    return -(-size >> 20)
