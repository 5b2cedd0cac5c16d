"""A conversation as a model reads it: the encoded part, and the forwards over the slots after it.

Shapes: R rows of a forward, C cached columns, S slots, V vocabulary.
"""

from collections.abc import Generator, Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.model.room import chunk_at
from mercury_engine.model.runtime import Cache, Rows, Runtime
from mercury_engine.tokens.prefix import common_length

CANVAS = 32
"""Slots written together by a model without its own blocks (LLaDA is evaluated with this size)."""


class Manner(Struct, frozen=True):
    """How a model reads and writes. Each `block` of tokens sees itself and what is before it; with 0, everything
    sees everything, and 1 is left to right. `shift`: the logits of a row are for the token after it. Slots in a
    later `window` of a block wait. `mask` is the token of an open slot."""

    block: int = 0
    shift: bool = False
    window: int = 0
    mask: int = -1


class CachedConversation(Struct, eq=False):
    """The encoded part of a conversation between turns: `ids` in the cache; and `tokens`, the whole conversation
    when it stood as `text`, because a model's output is not always spelled as its tokenizer would. `read` counts the
    rows of forwards."""

    cache: Cache
    ids: list[int] = []
    text: str = ""
    asked: str = ""
    tokens: list[int] = []
    read: int = 0

    def keep(self, count: int) -> None:
        self.cache.truncate(count)
        del self.ids[count:]


class ConversationCanvas(Struct, eq=False):
    """The slots after a conversation.

    Where everything sees everything, the encoded part is kept all the same, although it would see later messages:
    the prefix cache of Fast-dLLM (Wu et al. 2025). With `exact`, each forward reads everything.
    """

    runtime: Runtime
    manner: Manner
    conversation: CachedConversation
    exact: bool = False
    carried_V: np.ndarray | None = None

    def begin(self, ids: Sequence[int]) -> None:
        """Keep the encoded part of a conversation that now has these tokens."""
        read, block = common_length(self.conversation.ids, ids), self.manner.block
        lasting = self._lasting(ids)
        limit = lasting - block if block and self.manner.shift and lasting == len(ids) else lasting
        self.conversation.keep(max(0, min(read, limit)) // (block or 1) * (block or 1) if not self.exact else 0)

    def catch_up(self, ids: Sequence[int]) -> Generator[None]:
        """Encode everything except what fits into the forward that reads the slots; each yield is a forward."""
        block = self.manner.block or 1
        while not self.exact:
            start = len(self.conversation.ids)
            chunk = max(1, chunk_at(start) // block) * block
            if self._lasting(ids) - start <= chunk:
                return
            self._forward(ids[start : start + chunk], [], [])
            yield

    def slots(self, ids: Sequence[int]) -> int:
        block = self.manner.block
        return block - len(ids) % block if block else CANVAS

    def logits(self, ids: Sequence[int], slots: Sequence[int]) -> np.ndarray:
        """The logits of each slot after the conversation `ids`; negative slots are open."""
        manner, start = self.manner, len(self.conversation.ids)
        lasting = start if self.exact else self._lasting(ids)
        new, head = ids[start:lasting], ids[lasting:]
        drafted = [] if manner.block == 1 else [manner.mask if slot < 0 else slot for slot in slots]
        first = len(new) + len(head) - manner.shift
        rows = [row for row in range(first, first + len(slots)) if row >= 0]
        logits_WV = self._forward(new, [*head, *drafted], rows)
        if first < 0:
            assert self.carried_V is not None, "the slots before were read first"
            return np.concatenate([self.carried_V[None], logits_WV])
        if manner.shift and not head:
            self.carried_V = logits_WV[0].copy()
        return logits_WV

    def _lasting(self, ids: Sequence[int]) -> int:
        """The number of tokens that can be encoded for good: whole blocks, or all but the one that predicts the
        first slot."""
        block = self.manner.block
        return len(ids) // block * block if block else len(ids) - self.manner.shift

    def _forward(self, new: Sequence[int], tail: Sequence[int], rows: Sequence[int]) -> np.ndarray:
        """`new` tokens are kept, the `tail` is not; slots see both."""
        cache = self.conversation.cache
        ids = np.array([*new, *tail], np.int32)
        positions = np.arange(cache.length, cache.length + len(ids), dtype=np.int32)
        block, mask_RC = self.manner.block, None
        if block != 1:
            group_R = positions // block if block else np.arange(len(ids)) >= len(new)
            mask_RC = np.concatenate([np.ones((len(ids), cache.length), bool), group_R[:, None] >= group_R[None]], 1)
        forward = self.runtime.forward(Rows(ids, positions, mask_RC=mask_RC, rows=list(rows)), cache)
        if new:
            cache.append(forward, range(len(new)))
            self.conversation.ids += new
        self.conversation.read += len(ids)
        return forward.logits_WV
