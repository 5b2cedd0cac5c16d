"""One hole's answer: the tokens as they are settled, and the text that a user is shown for them."""

from collections.abc import Sequence

from msgspec import Struct

from mercury_engine.api import Filled, Span
from mercury_engine.decode.choice import Choice
from mercury_engine.decode.confidence import Calibration, confident
from mercury_engine.tokens.layout import Hole, filled_text, until_end
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import EOM

__all__ = ["NOTHING", "Answer", "Earlier", "Presentation", "Spoken"]


class Spoken(Struct, frozen=True):
    """Tokens with their probabilities; `complete` if the last one ends the answer."""

    ids: Sequence[int]
    probabilities: Sequence[float]
    complete: bool


class Earlier(Struct, frozen=True):
    """What an answer has said already, in rows before this one."""

    text: str = ""
    probabilities: tuple[float, ...] = ()


NOTHING = Earlier()


class Answer:
    """Grows token by token until it ends, its line ends, or the limit is reached."""

    def __init__(self, tokenizer: Tokenizer, hole: Hole, span: Span, limit: int, earlier: Earlier = NOTHING) -> None:
        self.hole = hole
        self.span = span
        self.limit = limit
        self.earlier = earlier
        self.choices: list[Choice] = []
        self.typed = hole.part.encode("utf-8", "replace")
        self.complete = False
        self._tokenizer = tokenizer

    @property
    def done(self) -> bool:
        return self.complete or len(self.choices) >= self.limit

    @property
    def ids(self) -> list[int]:
        return [choice.token for choice in self.choices]

    def add(self, choice: Choice) -> None:
        self.choices.append(choice)
        self.typed = self._tokenizer.remaining(self.typed, choice.token)
        self.complete = self.ends(choice.token)

    def ends(self, token: int) -> bool:
        ends_line = self.span.mode == "line" and b"\n" in self._tokenizer.token_bytes[token]
        return token == EOM or ends_line

    def spoken(self) -> Spoken:
        return Spoken(self.ids, [choice.probability for choice in self.choices], self.complete)


class Presentation(Struct, frozen=True):
    """Turns tokens into what is shown; `bar` is how probable the shown part of an unlikely answer must be."""

    tokenizer: Tokenizer
    calibration: Calibration
    bar: float

    def show(self, answer: Answer, spoken: Spoken, old: str, least: int = 0) -> Filled:
        """The whole answer if it is likely, else its confident beginning, of `least` tokens or more.

        Text is replaced by a whole answer or not at all.
        """
        if old and not spoken.complete:
            return Filled(old)
        whole = self._fill(answer, spoken, old)
        if old or whole.p_accept >= self.bar:
            return whole
        count = max(least, self._whole_words(spoken.ids, confident(spoken.probabilities, self.bar)))
        if count >= len(spoken.ids):
            return whole
        return self._fill(answer, Spoken(spoken.ids[:count], spoken.probabilities[:count], False), old)

    def text(self, answer: Answer, ids: Sequence[int]) -> str:
        """What these tokens add behind what was said earlier: whole characters, in line mode up to the line's end."""
        text = filled_text(self.tokenizer, answer.hole, until_end(ids)[0]).partition("\ufffd")[0]
        return text.partition("\n")[0].removesuffix("\r") if answer.span.mode == "line" else text

    def _fill(self, answer: Answer, spoken: Spoken, old: str) -> Filled:
        ids, _ = until_end(spoken.ids)
        text = answer.earlier.text + self.text(answer, ids)
        probabilities = (*answer.earlier.probabilities, *spoken.probabilities)
        sure = self.calibration.p_accept(probabilities, complete=spoken.complete)
        changes = text != old
        shown = len(answer.earlier.probabilities) + len(ids)
        return Filled(text, probabilities[:shown], sure * changes, spoken.complete)

    def _whole_words(self, ids: Sequence[int], count: int) -> int:
        """At most `count` tokens, so many that none of them is a word that goes on behind them."""
        while 0 < count < len(ids) and self._inside_word(ids[count - 1], ids[count]):
            count -= 1
        return count

    def _inside_word(self, before: int, after: int) -> bool:
        left, right = self.tokenizer.token_bytes[before][-1:], self.tokenizer.token_bytes[after][:1]
        return _joins(left) and _joins(right)


def _joins(byte: bytes) -> bool:
    return byte.isalnum() or byte == b"_" or byte >= b"\x80"
