"""The text around a gap as the ids that a family reads: as much as fits, in whole lines."""

import math
from collections.abc import Callable

from msgspec import Struct

from mercury_engine.families.family import Family
from mercury_engine.families.vocabulary import FamilyVocabulary
from mercury_engine.tokens.pretrained import PretrainedTokenizer

SUFFIX_SHARE = 3
"""The text after the gap gets this part of the room, plus what the text before it leaves."""

STEPS = 8
"""A text before a gap loses its head in steps of this part of the room, so that the encoded part lasts."""

Count = Callable[[str], int]


class Around(Struct, frozen=True):
    """The text before and after a gap, with the tokens around the prompt; the answer begins with `typed`."""

    before: list[int]
    after: list[int]
    typed: bytes


def around(
    family: Family, vocabulary: FamilyVocabulary, tokens: PretrainedTokenizer, before: str, after: str, room: int
) -> Around:
    """The text around a gap, at most `room` tokens in all."""
    tokens_kept, typed = _split(tokens, before)
    room -= len(vocabulary.bos) + len(vocabulary.eos)

    def count(text: str) -> int:
        return len(tokens.encode(text))

    step = max(1, room // STEPS)
    if family.length == "continue":
        head = tokens.encode(last_lines(tokens_kept, room, count, step=step))
        return Around([*vocabulary.bos, *_last(head, room)], [], typed)
    tail = tokens.encode(first_lines(after, room, count))
    head = tokens.encode(last_lines(tokens_kept, room, count, step=step))
    behind = max(room // SUFFIX_SHARE, room - len(head))
    if len(tail) > behind:
        tail = tokens.encode(first_lines(after, behind, count))[:behind]
    if len(head) > room - len(tail):
        head = _last(tokens.encode(last_lines(tokens_kept, room - len(tail), count, step=step)), room - len(tail))
    return Around([*vocabulary.bos, *head], [*tail, *vocabulary.eos], typed)


def last_lines(text: str, room: int, count: Count, *, step: int = 1) -> str:
    """The end of a text without the leading lines that hold the excess tokens, in multiples of `step`.

    The last line is kept, however long it is.
    """
    lines = text.splitlines(keepends=True)
    counts = [count(line) for line in lines]
    excess = math.ceil((sum(counts) - room) / step) * step
    first = 0
    while excess > 0 and first < len(lines) - 1:
        excess -= counts[first]
        first += 1
    return "".join(lines[first:])


def first_lines(text: str, room: int, count: Count) -> str:
    """The start of a text: its first line and those after it that fit."""
    lines = []
    for line in text.splitlines(keepends=True):
        room -= count(line)
        if lines and room < 0:
            break
        lines.append(line)
    return "".join(lines)


def _split(tokens: PretrainedTokenizer, before: str) -> tuple[str, bytes]:
    """The text before a gap without the partial word that the answer spells again, and that word."""
    head = before.rpartition("\n")[2]
    part = tokens.split(head)[1] if head else ""
    return before[: len(before) - len(part)], part.encode("utf-8", "replace")


def _last(ids: list[int], count: int) -> list[int]:
    return ids[max(0, len(ids) - count) :]
