"""A prompt before it is tokens: text, with the names of special tokens between."""

from msgspec import Struct

__all__ = ["Piece", "Prompt", "Special"]


class Special(str):
    """The name of one token of the model, `<|fim_prefix|>`. The same characters in a user's text are text."""

    __slots__ = ()


Piece = str | Special


class Prompt(Struct, frozen=True):
    """What a model reads, and how its answer begins and ends.

    The answer must begin with `forced`, which is not part of it for the user: the start of a word that the user has
    typed, taken back so that the model sees whole tokens. `stops` are texts that end the answer, beside the special
    tokens in `stop_tokens`. `copied` is text that the answer probably repeats, such as the lines to rewrite.
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
        return "".join(self.pieces)
