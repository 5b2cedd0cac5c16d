"""A question to a next-edit model, and how its answer becomes the window's new text."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from mercury_engine.api import EngineError, Region, Regions
from mercury_engine.prompts.pieces import Piece, Prompt, joined, tokens_of

MOST_EXTRA_LINES = 20
"""An answer that adds more has gone astray."""

REJOINED_LINES = 3
"""So many lines of the old text, with words in them, show that an answer has made its edit and only copies the rest."""
WORD = re.compile(r"\w")

MARKS = re.compile(r"<\|/?[\w▁.]+\|>|<\[[\w▁-]+\]>|^(?:<{7}|>{7}) (?:CURRENT|UPDATED)$", re.MULTILINE)
"""Tokens and marks of any format: an answer with one that the text has not was written in another format."""
FENCE = re.compile(r"\A\s*+```.*$|^[^\S\n]*+```\s*+\Z", re.MULTILINE)
"""Around an answer: blocks of code in the middle of a text may be its own."""

Item = TypeVar("Item")


class Refused(Struct, frozen=True):
    """What is wrong with an answer that cannot be used, as the rest of a sentence about it."""

    reason: str


Taken = str | Refused | None
"""A new text, or why an answer gives none; None where it says that nothing is to be changed."""

MARKED = Refused("it has marks of a format of prompts in it")
CUT = Refused("it was cut off before its end")


class EditPrompt(Struct, frozen=True):
    """`prompt` asks for a new text of `window[start:end]`; `take` finds it in the answer. It
    ends with as many line feeds as before, which models are careless about. An answer that contains one of `ends` is
    whole, whatever follows. With `closing` behind them, the first lines of an answer can be taken too; None where they
    mean nothing alone."""

    prompt: Prompt
    window: str
    start: int
    end: int
    take: Callable[[str], Taken]
    ends: tuple[str, ...] = ()
    closing: str | None = ""

    def read(self, text: str, finished: bool) -> Taken:
        """The window's whole new text."""
        return self._with(self.take(text)) if self.is_whole(text, finished) else CUT

    def is_whole(self, text: str, finished: bool) -> bool:
        return finished or any(end in text for end in self.ends)

    def rejoined(self, text: str, least: int = REJOINED_LINES) -> str | None:
        """The same for an answer that is still being written, once it has changed something and then repeats at least
        that many lines of the old text: all that follows is taken from there. None as long as that is not so."""
        lines = text.rpartition("\n")[0]
        taken = self.take(lines + self.closing) if lines and self.closing is not None else None
        if not taken or isinstance(taken, Refused):
            return None
        old, new = self.window[self.start : self.end].split("\n"), taken.split("\n")
        at = _rejoins(old, new, least)
        whole = self._with("\n".join([*new, *old[at:]])) if at else None
        return None if isinstance(whole, Refused) else whole

    def _with(self, taken: Taken) -> Taken:
        old = self.window[self.start : self.end]
        body = old.rstrip("\n")
        if taken is None or isinstance(taken, Refused):
            return taken
        if not taken.strip():
            return Refused("it is empty") if body.strip() else None
        new = taken.rstrip("\n") + old[len(body) :]
        if new == old:
            return None
        return _astray(old, new) or self.window[: self.start] + new + self.window[self.end :]


def _rejoins(old: Sequence[str], new: Sequence[str], least: int) -> int:
    """Behind which of the old lines the new ones have arrived again, 0 if they have not: they end with some that are
    not blank and stand only once below the first difference."""
    old, new = ([line.rstrip() for line in lines] for lines in (old, new))
    head = next((n for n, (old_line, other) in enumerate(zip(old, new, strict=False)) if old_line != other), None)
    if head is None:
        return 0
    below, tail = old[head:], new[head:]
    lines_of_words = [n for n, line in enumerate(tail) if WORD.search(line)]
    if len(lines_of_words) < least:
        return 0
    tail = tail[lines_of_words[-least] :]
    places = [n for n in range(len(below) - len(tail) + 1) if below[n : n + len(tail)] == tail]
    return head + places[0] + len(tail) if len(places) == 1 else 0


def _astray(old: str, new: str) -> Refused | None:
    added = new.count("\n") - old.count("\n")
    if added > MOST_EXTRA_LINES:
        return Refused(f"it adds {added} lines, and {MOST_EXTRA_LINES} are the most")
    if added < -1 and old.startswith(new.rstrip("\n")):
        return Refused("it stops in the middle of what it copies")
    return MARKED if has_marks(new, old) else None


def has_marks(new: str, old: str) -> bool:
    """Whether the new text has marks of a format of prompts in it, or a fence around it, that the old one has not."""
    return any(mark not in old for mark in MARKS.findall(new)) or (bool(FENCE.search(new)) and not FENCE.search(old))


class EditAsk(Protocol):
    def __call__(self, regions: Regions, *, budget: int, count: Callable[[str], int]) -> EditPrompt:
        """A prompt of at most `budget` tokens about the window."""
        ...


class EditFormat(Struct, frozen=True):
    """`names` is a regular expression for the names of models that were trained with it: they have all its `tokens`."""

    name: str
    names: str
    ask: EditAsk
    tokens: tuple[str, ...] = ()


def window_of(regions: Regions) -> Region:
    """The window that these models rewrite."""
    if len(regions.regions) != 1:
        raise EngineError(f"{len(regions.regions)} regions: a next-edit model rewrites one window at a time; send one")
    return regions.regions[0]


def refuse(marks: Sequence[str], text: str, name: str) -> None:
    """An answer about a text that contains the format's own marks could mean anything."""
    for mark in marks:
        if mark in text:
            raise EngineError(
                f"the text around the cursor contains {mark!r}, a mark of the {name} format: no next edit here"
            )


class PromptRoom(Struct, eq=False):
    """What is left of the budget of a prompt in tokens, as `count` says."""

    name: str
    left: int
    count: Callable[[str], int]

    def largest(self, sizes: Iterable[Item], render: Callable[[Item], Sequence[Piece]]) -> Item:
        """The first of these, from large to small, that there is room for."""
        for size in sizes:
            if (needed := tokens_of(joined(render(size)), self.count)) <= self.left:
                self.left -= needed
                return size
        raise EngineError(f"the lines around the cursor do not fit into the {self.left} tokens of a {self.name} prompt")

    def fitting(
        self, items: Sequence[Item], render: Callable[[Sequence[Item]], Sequence[Piece]], most: int | None = None
    ) -> Sequence[Piece]:
        """The items, the first before the others, that there is room for, rendered together; nothing if there are none.
        Each is counted alone, so that `count` sees the same texts again. `most`: tokens."""
        room = self.left if most is None else min(most, self.left)
        kept: list[Item] = []
        for item in items:
            size = tokens_of(joined(render([item])), self.count)
            if size <= room:
                kept.append(item)
                room -= size
        pieces = joined(render(kept)) if kept else ()
        self.left -= tokens_of(pieces, self.count)
        return pieces
