"""The contents of every slot of a draft after a forward, for watching it being denoised."""

from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Slot

Held = tuple[bytes, float, bool]
"""The text of a slot's token, its probability, and whether it is settled."""

MASKED = Slot("")

Decoder = getincrementaldecoder("utf-8")


def slots_of(guesses: Iterable[Held | None], typed: bytes = b"") -> Iterator[Slot]:
    """The slots of tokens, None where one is masked. Tokens that only spell what is `typed` already have no slot;
    one that does not complete a character has the text ""."""
    skipped, decoder = len(typed), Decoder("replace")
    for token in guesses:
        if token is None:
            decoder.reset()
            yield MASKED
            continue
        spelled, probability, settled = token
        new, skipped = spelled[skipped:], max(0, skipped - len(spelled))
        if new:
            yield Slot(decoder.decode(new), probability, settled)


class Frames(Struct, eq=False):
    """The slots of an answer after each forward; remembers those `before`."""

    before: Sequence[Slot] = ()

    def next(self, slots: Iterable[Slot]) -> tuple[Slot, ...]:
        """The slots, with those marked that have held another token."""
        before = self.before
        frame = tuple(
            replace(slot, revised=_is_revised(slot, before[at])) if at < len(before) else slot
            for at, slot in enumerate(slots)
        )
        self.before = (*frame, *before[len(frame) :])
        return frame


def _is_revised(slot: Slot, before: Slot) -> bool:
    return before.revised or bool(before.text and before.text != slot.text)
