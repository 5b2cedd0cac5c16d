"""Denoising, forward by forward: of a gap between two texts, and of what continues a text block by block.

Shapes: R rows of a forward, C cached columns, O open slots, V vocabulary.
"""

from collections.abc import Generator, Iterator, Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.families.context import Around
from mercury_engine.families.family import Family
from mercury_engine.families.slots import SURE, Settled, Slots
from mercury_engine.families.vocabulary import FamilyVocabulary
from mercury_engine.model.runtime import Cache, Rows, Runtime

__all__ = ["Asked", "Encoded", "FamilyModel", "Gap", "Progress", "encode", "fill", "proceed", "read_block"]

FIRST_SLOTS = 4
"""With how many masks a family that resizes a gap begins."""

LENGTHS = {"line": (4, 8, 16, 32), "block": (16, 32, 64)}
"""The lengths that may be tried; the second one is tried first."""

BYTES_A_TOKEN = 4
"""How much of a begun word a token spells, at the least if it is spelled well."""

AT_ONCE = 128
"""Rows of one forward while a text is encoded; more would keep a request from stopping."""


class FamilyModel(Struct, frozen=True, eq=False):
    runtime: Runtime
    family: Family
    vocabulary: FamilyVocabulary


class Asked(Struct, frozen=True):
    """At most `limit` tokens; those `sure` are settled together; `rank` asks for another answer than the likeliest.

    `reread`: whether each forward reads the text around the gap anew, as it sees the gap. Else the keys and values of
    what is before it last, and of what is behind it while the gap keeps its length (Fast-dLLM's dual cache, Wu et al.
    2025).
    """

    mode: str
    limit: int
    sure: float = SURE
    rank: int = 0
    reread: bool = True


class Progress(Struct, frozen=True):
    """After a forward: the tokens that are settled from the left on, whether they are the whole answer, and the
    probabilities of its tokens if all that is open turns out certain."""

    settled: Sequence[Settled] = ()
    done: bool = False
    at_best: Sequence[float] = ()


NOTHING_YET = Progress()


class Gap:
    """The text around a gap with the slots in it, and what lasts of its encoding from one forward to the next."""

    def __init__(self, model: FamilyModel, text: Around, slots: Slots, *, reread: bool) -> None:
        self.slots = slots
        self._model = model
        self._text = text
        self._reread = reread
        self._kept = len(text.before) - int(model.family.shift and bool(text.before))
        self._cached: Cache | None = None
        self._length = 0

    def read(self) -> np.ndarray:
        """The logits of the open slots after one forward: over everything, over the gap and what is behind it where the
        gap has another length than before, or over the gap alone.

        Where logits are shifted, the token before the gap is read each time, because it predicts the first slot.
        """
        runtime, ids, after = self._model.runtime, self.slots.ids, self._text.after
        cache, start = self._cached or runtime.cache(), self._kept if self._cached else 0
        moved = self._cached is None or self._length != len(ids)
        if moved and self._cached:
            cache.truncate(self._kept)
        row_ids = np.array([*self._text.before[start:], *ids, *(after if moved else ())], np.int32)
        count, first = len(row_ids), len(self._text.before) - start
        rows = Rows(
            row_ids,
            np.arange(start, start + count, dtype=np.int32),
            mask_RC=np.ones((count, cache.length + count), bool),
            wanted=[max(0, first + slot - self._model.family.shift) for slot in self.slots.open],
        )
        forward = runtime.forward(rows, cache)
        if moved and not self._reread:
            cache.append(forward, [*range(self._kept - start), *range(count - len(after), count)])
            self._cached, self._length = cache, len(ids)
        return forward.logits_WV


def fill(model: FamilyModel, text: Around, asked: Asked) -> Iterator[Progress]:
    """Denoise a gap of unknown length; each progress is one forward."""
    if model.family.length == "expand":
        count = min(FIRST_SLOTS + len(text.typed) // BYTES_A_TOKEN, asked.limit)
        gap = Gap(model, text, _slots(model, text, asked, count), reread=asked.reread)
        logits_OV = gap.read()
    else:
        gap, logits_OV = yield from _of_best_length(model, text, asked)
    while True:
        gap.slots.settle(logits_OV, asked.sure)
        yield Progress(gap.slots.leading, not gap.slots.open, gap.slots.at_best)
        if not gap.slots.open:
            return
        logits_OV = gap.read()


def _slots(model: FamilyModel, text: Around, asked: Asked, count: int) -> Slots:
    return Slots(model.vocabulary, count, limit=asked.limit, typed=text.typed, rank=asked.rank)


def _of_best_length(
    model: FamilyModel, text: Around, asked: Asked
) -> Generator[Progress, None, tuple[Gap, np.ndarray]]:
    """The length at which the first forward is surest on average, with its logits (CAL): the model knows from what
    follows how much is missing. From a usual length on, longer ones are tried, or else shorter ones, as long as they
    are better."""
    least = len(text.typed) // BYTES_A_TOKEN
    lengths = [length for length in LENGTHS[asked.mode] if least < length <= asked.limit] or [asked.limit]
    first = min(1, len(lengths) - 1)
    gap = Gap(model, text, _slots(model, text, asked, lengths[first]), reread=asked.reread)

    def look(length: int) -> tuple[float, Slots, np.ndarray]:
        gap.slots = _slots(model, text, asked, length)
        logits_OV = gap.read()
        _, probabilities_O = model.vocabulary.choose(logits_OV)
        return float(np.log(probabilities_O).mean()), gap.slots, logits_OV

    best = start = look(lengths[first])
    for others in (lengths[first + 1 :], lengths[:first][::-1]):
        for length in others:
            yield NOTHING_YET
            found = look(length)
            if found[0] <= best[0]:
                break
            best = found
        if best is not start:
            break
    gap.slots = best[1]
    return gap, best[2]


class Encoded:
    """What is encoded of a text that is continued: whole blocks, from its start on."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.ids: list[int] = []

    def keep(self, ids: Sequence[int], family: Family) -> None:
        """Forget what these ids do not begin with. Where logits are shifted, the last whole block is read again: it
        predicts the next token."""
        both = zip(self.ids, ids, strict=False)
        common = next((at for at, (old, new) in enumerate(both) if old != new), min(len(self.ids), len(ids)))
        blocks = min(common // family.block, max(0, len(ids) // family.block - family.shift))
        self.cache.truncate(blocks * family.block)
        del self.ids[blocks * family.block :]


def encode(model: FamilyModel, encoded: Encoded, ids: Sequence[int]) -> Generator[Progress, None, np.ndarray | None]:
    """Encode the whole blocks of these ids, some at a time; returns the logits behind the last one where they count."""
    block, logits_V = model.family.block, None
    encoded.keep(ids, model.family)
    whole = len(ids) // block * block
    while (start := len(encoded.ids)) < whole:
        logits_V = _store(model, encoded, ids[start : min(whole, start + max(1, AT_ONCE // block) * block)])
        yield NOTHING_YET
    return logits_V


def proceed(model: FamilyModel, encoded: Encoded, text: Around, asked: Asked) -> Iterator[Progress]:
    """Continue a text block by block, until it ends or is long enough; each progress is one forward."""
    family, answer = model.family, Progress()
    typed, rank = text.typed, asked.rank
    carried_V = yield from encode(model, encoded, text.before)
    begun = text.before[len(encoded.ids) :]
    while True:
        start, count = len(begun), family.block - len(begun)
        slots = Slots(model.vocabulary, count, limit=count, typed=typed, rank=rank, window=family.window, start=start)
        if carried_V is not None and not begun:
            slots.settle(carried_V[None], asked.sure)
        before = answer
        while slots.open:
            slots.settle(read_block(model, encoded, begun, slots), asked.sure)
            answer = _until_end(before.settled, slots, model.vocabulary.ends, asked.limit)
            yield answer
            if answer.done or len(answer.settled) >= asked.limit:
                return
        carried_V = _store(model, encoded, [*begun, *slots.ids])
        yield answer
        begun, typed, rank = [], b"", 0


def _until_end(before: Sequence[Settled], slots: Slots, ends: frozenset[int], limit: int) -> Progress:
    """What is settled up to the first token that ends the text."""
    settled = [*before, *slots.leading][:limit]
    end = next((at for at, (token, _) in enumerate(settled) if token in ends), None)
    at_best = [*(probability for _, probability in before), *slots.at_best]
    return Progress(settled[:end], end is not None, at_best)


def read_block(model: FamilyModel, encoded: Encoded, begun: Sequence[int], slots: Slots) -> np.ndarray:
    """The logits of the open slots of a block that begins with tokens of the text."""
    wanted = [max(0, len(begun) + slot - model.family.shift) for slot in slots.open]
    rows = _block_rows(model, encoded, [*begun, *slots.ids], wanted)
    return model.runtime.forward(rows, encoded.cache).logits_WV


def _store(model: FamilyModel, encoded: Encoded, ids: Sequence[int]) -> np.ndarray | None:
    """Encode whole blocks that do not change any more."""
    wanted = [len(ids) - 1] if model.family.shift else []
    forward = model.runtime.forward(_block_rows(model, encoded, ids, wanted), encoded.cache)
    encoded.cache.append(forward, range(len(ids)))
    encoded.ids += ids
    return forward.logits_WV[0] if wanted else None


def _block_rows(model: FamilyModel, encoded: Encoded, ids: Sequence[int], wanted: list[int]) -> Rows:
    """Each block sees the cache, the blocks before it and itself."""
    count, start = len(ids), encoded.cache.length
    block_R = np.arange(count) // model.family.block
    mask_RC = np.concatenate([np.ones((count, start), bool), block_R[:, None] >= block_R[None]], 1)
    positions = np.arange(start, start + count, dtype=np.int32)
    return Rows(np.array(ids, np.int32), positions, mask_RC=mask_RC, wanted=wanted)
