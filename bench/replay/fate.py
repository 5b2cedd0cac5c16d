"""The fate of a suggestion: whether the user typed exactly that, and whether it was still there later."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

KEPT_MS = 30_000


class TypedEdit(Struct, frozen=True):
    """`[start, end)` of a text became `text`, `t` milliseconds into the session, by that many `keys`."""

    t: float
    start: int
    end: int
    text: str
    keys: int = 0


class ShownOffer(Struct, frozen=True):
    """`[start, end)` would become `text`, in the document after `after` edits."""

    after: int
    start: int
    end: int
    text: str
    rewrites: bool = False


class Fate(Struct, frozen=True):
    """`typed`: the user typed exactly this, with the edits up to `until` and this many `keys`. `line`: its first
    line is what that line was when the user left it. `kept`: it was there after 30 s.
    """

    after: int
    typed: bool = False
    until: int = 0
    keys: int = 0
    line: bool = False
    kept: bool = False


class EditRegion:
    """Tracks `[start, end)` of a text: typing at either edge is part of it. `gone` once an edge was cut off."""

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.gone = False

    def follow(self, edit: TypedEdit) -> bool:
        """True if the edit touched it."""
        grown = len(edit.text) - (edit.end - edit.start)
        if edit.start > self.end:
            return False
        if edit.end < self.start or edit.start < edit.end == self.start:
            self.start, self.end = self.start + grown, self.end + grown
            return False
        self.gone = self.gone or edit.start < self.start
        self.start = min(self.start, edit.start)
        self.end = self.end + grown if edit.end <= self.end else edit.start + len(edit.text)
        return True


class _OfferTrace:
    """One offer while its fate is open."""

    def __init__(self, offer: ShownOffer, text: str, deadline: float) -> None:
        self.offer = offer
        self.deadline = deadline
        self.region = EditRegion(offer.start, offer.end)
        self.fate = Fate(offer.after)
        self._line = _first_line(text[: offer.start] + offer.text + text[offer.end :], offer.start)
        self._keys = 0
        self._left = False

    def follow(self, number: int, edit: TypedEdit, before: str, after: str) -> None:
        region = self.region
        if not self._left and "\n" in before[min(edit.start, region.start) : max(edit.start, region.start)]:
            self._leave(before)
        touched = region.follow(edit)
        if touched:
            self._keys += edit.keys
        if touched and not self.fate.typed and not region.gone and self._made(after):
            self.fate = replace(self.fate, typed=True, until=number, keys=self._keys)

    def _made(self, text: str) -> bool:
        made, wanted = text[self.region.start : self.region.end], self.offer.text
        whole = self.offer.rewrites or self.offer.end > self.offer.start or not wanted
        return made == wanted if whole else made.startswith(wanted)

    def _leave(self, text: str) -> None:
        self._left = True
        line = not self.region.gone and _first_line(text, self.region.start) == self._line
        self.fate = replace(self.fate, line=line)

    def end(self, text: str) -> Fate:
        if not self._left:
            self._leave(text)
        made = text[self.region.start : self.region.end]
        kept = made.startswith(self.offer.text) if self.offer.text else not made
        return replace(self.fate, kept=kept and not self.region.gone)


def _first_line(text: str, offset: int) -> str:
    stop = text.find("\n", offset)
    return text[text.rfind("\n", 0, offset) + 1 : stop if stop >= 0 else len(text)].rstrip()


def fates(text: str, edits: Sequence[TypedEdit], offers: Iterable[ShownOffer]) -> list[Fate]:
    """The fate of each offer, in the order given; `text` is the document before the first edit."""
    waiting = sorted(enumerate(offers), key=lambda pair: pair[1].after)
    found: dict[int, Fate] = {}
    running: list[tuple[int, _OfferTrace]] = []
    for number, edit in enumerate([*edits, None]):
        while waiting and waiting[0][1].after <= number:
            at, offer = waiting.pop(0)
            running.append((at, _OfferTrace(offer, text, (edits[number - 1].t if number else 0.0) + KEPT_MS)))
        if edit is None:
            break
        found |= {at: trace.end(text) for at, trace in running if trace.deadline < edit.t}
        running = [(at, trace) for at, trace in running if at not in found]
        after = text[: edit.start] + edit.text + text[edit.end :]
        for _, trace in running:
            trace.follow(number + 1, edit, text, after)
        text = after
    found |= {at: trace.end(text) for at, trace in running}
    return [found[at] for at in sorted(found)]


def saved(made: Iterable[Fate]) -> int:
    """The characters saved: each offer that was typed costs one key, and none counts twice."""
    return sum(fate.keys - 1 for fate in _once(made))


def _once(made: Iterable[Fate]) -> Iterator[Fate]:
    reached = -1
    for fate in sorted((f for f in made if f.typed and f.keys > 1), key=lambda f: (f.after, -f.until)):
        if fate.after >= reached:
            reached = fate.until
            yield fate
