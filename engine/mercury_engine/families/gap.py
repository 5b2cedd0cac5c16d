"""Denoising a gap of unknown length between two texts, forward by forward.

Shapes: R rows of a forward, C cached columns, O open slots, V vocabulary.
"""

from collections.abc import Generator

import numpy as np

from mercury_engine.families.context import Around
from mercury_engine.families.progress import NOTHING_YET, Encoded, FamilyModel, FillProgress, FillTarget
from mercury_engine.families.slots import Slots
from mercury_engine.model.runtime import Rows

FIRST_SLOTS = 4
"""The number of masks with which a family that resizes a gap begins."""

LENGTHS = {"line": (16, 32, 8, 4), "inside": (8, 16, 4), "block": (32, 64, 16)}
"""The first fits most answers: one too long for a line is cut at its end. The others are compared with it, longer
ones first."""

BYTES_A_TOKEN = 4
"""The minimum share of a partial word that a token must spell to count as spelling it well."""

SURE_ENOUGH = -0.1
"""The mean log probability from which an answer is shown without trying other lengths."""

PATCHED = 32
"""The number of typed tokens after which the text before a gap is read again, since it sees everything after it."""


class CanvasGap:
    """The text around a gap, and the slots in it.

    With `encoded`, keys and values of the text before the gap are kept, and those of the text after it while the gap
    keeps its length: an approximation, since each would see the gap change (Fast-dLLM's dual cache, Wu et al. 2025).
    Without, each forward reads everything.
    """

    def __init__(self, model: FamilyModel, text: Around, slots: Slots, encoded: Encoded | None = None) -> None:
        self.slots = slots
        self._model = model
        self._text = text
        self._encoded = encoded
        self._lasting = text.before[: len(text.before) - model.family.shift]
        if encoded is not None:
            self._keep(encoded)

    @property
    def is_read(self) -> bool:
        """True if everything except the gap is encoded."""
        encoded = self._encoded
        if encoded is None or encoded.ids != self._lasting:
            return False
        return encoded.behind == self._behind and encoded.after == self._text.after

    def read(self) -> np.ndarray:
        """The logits of the open slots after one forward.

        Where logits are shifted, the token before the gap is read each time, because it predicts the first slot.
        """
        encoded, before, after = self._encoded, self._text.before, self._text.after
        start, alone = len(encoded.ids) if encoded else 0, self.is_read
        cache = encoded.cache if encoded else self._model.runtime.cache()
        if encoded and not alone:
            encoded.keep(start)
        ids = np.array([*before[start:], *self.slots.ids, *(() if alone else after)], np.int32)
        count, first = len(ids), len(before) - start
        rows = Rows(
            ids,
            np.arange(start, start + count, dtype=np.int32),
            mask_RC=np.ones((count, cache.length + count), bool),
            rows=[max(0, first + slot - self._model.family.shift) for slot in self.slots.open],
        )
        forward = self._model.runtime.forward(rows, cache)
        if encoded and not alone:
            cache.append(forward, [*range(len(self._lasting) - start), *range(count - len(after), count)])
            encoded.ids, encoded.after, encoded.behind = [*self._lasting], after, self._behind
        return forward.logits_WV

    @property
    def _behind(self) -> int:
        return len(self._text.before) + len(self.slots)

    def _keep(self, encoded: Encoded) -> None:
        """Encode what was typed since on top of the rest, until it is too much or something else has changed."""
        common, after = encoded.common(self._lasting), self._text.after
        shared = max(0, min(len(encoded.after), len(after)) - 1)  # the last may be the end of the text
        new = len(self._lasting) - common
        if encoded.patched + new > PATCHED or encoded.after[:shared] != after[:shared]:
            common, new = 0, -encoded.patched
        encoded.patched += new
        if common < len(encoded.ids):
            encoded.keep(common)


def fill(
    model: FamilyModel, text: Around, target: FillTarget, encoded: Encoded | None = None
) -> Generator[FillProgress]:
    """Denoise a gap; each progress is one forward."""
    gap = CanvasGap(model, text, _slots(model, text, target, _lengths(model, text, target)[0]), encoded)
    logits_OV = gap.read()
    if model.family.length == "try" and target.compare:
        logits_OV = yield from _at_best_length(model, text, target, gap, logits_OV)
    while True:
        gap.slots.settle(logits_OV, target.sure)
        yield FillProgress(gap.slots.leading, not gap.slots.open, gap.slots.next, gap.slots.at_best, gap.slots.all)
        if not gap.slots.open:
            return
        logits_OV = gap.read()


def read_ahead(model: FamilyModel, text: Around, target: FillTarget, encoded: Encoded) -> Generator[FillProgress]:
    """Encode the text around a gap, unless it is encoded; at most one forward."""
    gap = CanvasGap(model, text, _slots(model, text, target, _lengths(model, text, target)[0]), encoded)
    if not gap.is_read:
        gap.read()
        yield NOTHING_YET


def _slots(model: FamilyModel, text: Around, target: FillTarget, count: int) -> Slots:
    return Slots(model.vocabulary, count, limit=target.limit, typed=text.typed, rank=target.rank)


def _lengths(model: FamilyModel, text: Around, target: FillTarget) -> list[int]:
    """The lengths to try, the first one first; each has room for the partial word."""
    spelled = len(text.typed) // BYTES_A_TOKEN
    if model.family.length == "expand":
        return [min(FIRST_SLOTS + spelled, target.limit)]
    return [length for length in LENGTHS[target.what] if spelled < length <= target.limit] or [target.limit]


def _at_best_length(
    model: FamilyModel, text: Around, target: FillTarget, gap: CanvasGap, logits_OV: np.ndarray
) -> Generator[FillProgress, None, np.ndarray]:
    """Give the gap the length at which the first forward is surest on average (CAL): the model knows from the text
    after it how much is missing. Longer ones are tried, or else shorter ones, as long as they are better; return the
    logits."""
    best, slots = _sureness(model, logits_OV), gap.slots
    first, *lengths = _lengths(model, text, target)
    for direction in ([n for n in lengths if n > first], [n for n in lengths if n < first]):
        for length in direction:
            if best > SURE_ENOUGH:
                break
            yield NOTHING_YET
            gap.slots = _slots(model, text, target, length)
            found_OV = gap.read()
            sureness = _sureness(model, found_OV)
            if sureness <= best:
                break
            best, slots, logits_OV = sureness, gap.slots, found_OV
        if len(slots) != first:
            break
    gap.slots = slots
    return logits_OV


def _sureness(model: FamilyModel, logits_OV: np.ndarray) -> float:
    _, probabilities_O = model.vocabulary.choose(logits_OV)
    return float(np.log(probabilities_O).mean())
