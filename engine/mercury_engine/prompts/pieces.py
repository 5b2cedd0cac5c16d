"""A prompt before it is tokens: text, with the names of special tokens between."""

import re
from collections.abc import Callable, Iterable
from itertools import groupby

from msgspec import Struct


class Special(str):
    """The name of one token of the model, `<|fim_prefix|>`. The same characters in a user's text are text."""

    __slots__ = ()


class Begin(Special):
    """The token that every text of the model begins with. Servers add it themselves."""

    __slots__ = ()


class Mark(Special):
    """A token for the models that have it, and plain text for the others that were trained with it."""

    __slots__ = ()


ANSWERED = re.compile(r"<\|(?:marker_\d+|user_cursor(?:_is_here)?|editable_region_(?:start|end)|cursor)\|>")
"""Marks that models write in their answers too: where one is a token, it is read by its name."""

Piece = str | Special


class Prompt(Struct, frozen=True):
    """What a model reads, and how its answer begins and ends.

    The answer must begin with `forced`, which is not part of it for the user: the start of a word that the user has
    typed, taken back so that the model sees whole tokens. `stops` are texts that end the answer, beside the special
    tokens in `stop_tokens`, the likeliest first; one that a model's tokenizer lacks ends nothing. `copied` is text that
    the answer probably repeats, such as the lines to rewrite.
    """

    pieces: tuple[Piece, ...]
    forced: str = ""
    stops: tuple[str, ...] = ()
    stop_tokens: tuple[Special, ...] = ()
    most_tokens: int = 64
    copied: str = ""

    @property
    def text(self) -> str:
        """As one string, for servers that read special tokens in it."""
        return "".join(piece for piece in self.pieces if not isinstance(piece, Begin))


def joined(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Neighbouring texts as one, so that they are encoded as one, and none that is empty."""

    merged: list[Piece] = []
    for is_special, group in groupby(pieces, lambda piece: isinstance(piece, Special)):
        found = [*group]
        merged += found if is_special else filter(None, ["".join(found)])
    return tuple(merged)


def tokens_of(pieces: Iterable[Piece], count: Callable[[str], int]) -> int:
    """How many tokens these are at most."""
    return sum(1 if isinstance(piece, Special) and not isinstance(piece, Mark) else count(piece) for piece in pieces)


def split_into(tokens: int) -> str:
    """What a file does that has lost a special token, as some conversions to GGUF do."""
    return (
        f"this file splits it into {tokens} tokens; if the model was trained with it, the conversion is at fault: take "
        "another, or the published checkpoint"
    )
