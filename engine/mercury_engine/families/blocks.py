"""Continues a text block by block, forward by forward; encoded blocks stay as they are.

Shapes: R rows of a forward, C cached columns, V vocabulary.
"""

from collections.abc import Generator, Sequence

import numpy as np

from mercury_engine.families.context import Around
from mercury_engine.families.progress import Encoded, FamilyModel, FillProgress, FillTarget
from mercury_engine.families.slots import Settled, Slots
from mercury_engine.model.runtime import Rows

AT_ONCE = 128
"""Rows of one forward while a text is encoded; more would delay cancelling a request."""


def encode(
    model: FamilyModel, encoded: Encoded, ids: Sequence[int]
) -> Generator[FillProgress, None, np.ndarray | None]:
    """Encode the whole blocks of these ids, some at a time; return the logits after the last one where they count.

    Where logits are shifted, the last whole block is read in any case: it predicts the next token.
    """
    block, logits_V = model.family.block, None
    whole = len(ids) // block
    encoded.keep(min(encoded.common(ids) // block, max(0, whole - model.family.shift)) * block)
    while (start := len(encoded.ids)) < whole * block:
        logits_V = _store(model, encoded, ids[start : min(whole * block, start + max(1, AT_ONCE // block) * block)])
        yield FillProgress(unread=whole * block - len(encoded.ids))
    return logits_V


def proceed(model: FamilyModel, text: Around, target: FillTarget, encoded: Encoded) -> Generator[FillProgress]:
    """Continue a text block by block, until it ends or is long enough; each progress is one forward."""
    family, answer = model.family, FillProgress()
    typed, rank = text.typed, target.rank
    carried_V = yield from encode(model, encoded, text.before)
    begun = text.before[len(encoded.ids) :]
    while True:
        start, count = len(begun), family.block - len(begun)
        slots = Slots(model.vocabulary, count, limit=count, typed=typed, rank=rank, window=family.window, start=start)
        if carried_V is not None and not begun:
            slots.settle(carried_V[None], target.sure)
        before = answer
        while slots.open:
            slots.settle(_read_block(model, encoded, begun, slots), target.sure)
            answer = _until_end(before.settled, slots, model.vocabulary.ends, target.limit)
            yield answer
            if answer.done or len(answer.settled) >= target.limit:
                return
        carried_V = _store(model, encoded, [*begun, *slots.ids])
        yield answer
        begun, typed, rank = [], b"", 0


def _until_end(before: Sequence[Settled], slots: Slots, ends: frozenset[int], limit: int) -> FillProgress:
    """The settled tokens up to the first one that ends the text."""
    settled = [*before, *slots.leading][:limit]
    end = next((at for at, (token, _) in enumerate(settled) if token in ends), None)
    at_best = [*(probability for _, probability in before), *slots.at_best]
    drafted = [*before, *slots.all][: limit if end is None else end]
    return FillProgress(settled[:end], end is not None, slots.next, at_best, drafted)


def _read_block(model: FamilyModel, encoded: Encoded, begun: Sequence[int], slots: Slots) -> np.ndarray:
    """The logits of the open slots of a block that begins with tokens of the text."""
    wanted = [max(0, len(begun) + slot - model.family.shift) for slot in slots.open]
    rows = _block_rows(model, encoded, [*begun, *slots.ids], wanted)
    return model.runtime.forward(rows, encoded.cache).logits_WV


def _store(model: FamilyModel, encoded: Encoded, ids: Sequence[int]) -> np.ndarray | None:
    """Encode whole blocks that do not change any more."""
    rows = [len(ids) - 1] if model.family.shift else []
    forward = model.runtime.forward(_block_rows(model, encoded, ids, rows), encoded.cache)
    encoded.cache.append(forward, range(len(ids)))
    encoded.ids += ids
    return forward.logits_WV[0] if rows else None


def _block_rows(model: FamilyModel, encoded: Encoded, ids: Sequence[int], rows: list[int]) -> Rows:
    """The rows: each block sees the cache, the blocks before it and itself."""
    count, start = len(ids), encoded.cache.length
    block_R = np.arange(count) // model.family.block
    mask_RC = np.concatenate([np.ones((count, start), bool), block_R[:, None] >= block_R[None]], 1)
    positions = np.arange(start, start + count, dtype=np.int32)
    return Rows(np.array(ids, np.int32), positions, mask_RC=mask_RC, rows=rows)
