"""The answer to a gap: its tokens while they are decoded, and the text shown for them."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from msgspec import Struct

from mercury_engine.api import Draft
from mercury_engine.decode.choice import Choice
from mercury_engine.decode.confidence import Calibration, confident, splits_word
from mercury_engine.decode.ending import inside, once
from mercury_engine.decode.names import KnownNames
from mercury_engine.decode.policy import AnswerKind
from mercury_engine.tokens.layout import filled_text, until_end
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import EOM

UNSURE = 0.3
"""For explicit requests, an answer without a likely start keeps as many words as together reach this probability."""


class DecodedAnswer(Struct, frozen=True):
    """Tokens with their probabilities; `complete` if the last one ends the answer."""

    ids: Sequence[int]
    probabilities: Sequence[float]
    complete: bool

    def start(self, count: int) -> "DecodedAnswer":
        if count >= len(self.ids):
            return self
        return DecodedAnswer(self.ids[:count], self.probabilities[:count], False)


NOTHING = DecodedAnswer((), (), complete=False)


class GapAnswer:
    """Grows token by token until it ends, its line ends unless it is a `block`, code outside of it follows, it loops,
    or it reaches the limit.

    It begins by spelling the `part` of a word before the cursor again. `margin` is the indentation of its line; lines
    indented less are outside of it. With `one_line` it stops behind its first line that is not blank, complete or not.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        part: str,
        limit: int,
        *,
        block: bool,
        margin: int,
        one_line: bool = False,
    ) -> None:
        self.part = part
        self.block = block
        self.limit = limit
        self.choices: list[Choice] = []
        self.typed = part.encode("utf-8", "replace")
        self.complete = False
        self.circles = False
        self.starts: dict[int, Draft] = {}
        """What its committed tokens show up to each of them: that stays as it is."""
        self._margin = margin
        self.one_line = one_line
        self._tokenizer = tokenizer

    @property
    def kind(self) -> AnswerKind:
        return "block" if self.block else "line"

    @property
    def done(self) -> bool:
        stops = self.one_line and b"\n" in self.said.lstrip()
        return self.complete or self.circles or stops or len(self.choices) >= self.limit

    @property
    def ids(self) -> list[int]:
        return [choice.token for choice in self.choices]

    @property
    def said(self) -> bytes:
        return self._tokenizer.decode_bytes(self.ids)

    def add(self, choice: Choice) -> None:
        self.choices.append(choice)
        self.typed = self._tokenizer.remaining(self.typed, choice.token)
        self.complete = self.ends(choice.token)
        if not self.complete:
            text = filled_text(self._tokenizer, self.part, self.ids).partition("\ufffd")[0]
            bounded_text, self.complete = self.bounded(text)
            self.circles = bounded_text != text and not self.complete

    def bounded(self, text: str) -> tuple[str, bool]:
        """The part of a text that belongs to the answer, and whether code outside of it follows."""
        bounded_text = inside(text, self._margin)
        return (bounded_text, True) if bounded_text != text else (once(text), False)

    def ends(self, token: int) -> bool:
        ends_line = not self.block and b"\n" in self._tokenizer.token_bytes[token]
        return token == EOM or ends_line

    def decoded(self) -> DecodedAnswer:
        return DecodedAnswer(self.ids, [choice.probability for choice in self.choices], self.complete)


class Presentation(Struct, frozen=True):
    """Turns tokens into the text to show: if possible, a start of the answer that is at least as likely as `bar`, or as
    the request's, if that is higher."""

    tokenizer: Tokenizer
    calibration: Calibration
    bar: float

    def show(
        self,
        answer: GapAnswer,
        decoded: DecodedAnswer,
        least: int = 0,
        names: KnownNames | None = None,
        bar: float = 0.0,
    ) -> Draft:
        """The start of at least `least` tokens that saves most keystrokes on average; if none is likely, a confident
        one. It ends before the first of the `names` that cannot exist."""
        if names:
            decoded = self._existing(decoded, names)
        if not self.bar:
            return self._fill(answer, decoded)
        bar = max(self.bar, bar)
        likely = [start for start in self.starts(answer, decoded, least) if start.p_accept >= bar]
        if likely:
            return max(likely, key=lambda start: start.p_accept * len(start.text))
        count = max(least, self._whole_words(decoded.ids, confident(decoded.probabilities, min(bar, UNSURE))))
        return self._fill(answer, decoded.start(count))

    def settled(self, answer: GapAnswer) -> DecodedAnswer:
        """The committed tokens up to the last word, which may go on."""
        decoded, spelled = answer.decoded(), self.tokenizer.token_bytes
        if answer.done or not decoded.ids or not splits_word(spelled[decoded.ids[-1]], b"_"):
            return decoded
        return decoded.start(self._whole_words(decoded.ids, len(decoded.ids) - 1))

    def starts(self, answer: GapAnswer, decoded: DecodedAnswer, least: int) -> Iterator[Draft]:
        """The whole answer, and its starts of whole words and at least `least` tokens, longest first."""
        count, committed = len(decoded.ids), len(answer.choices)
        while count >= max(1, least):
            start = answer.starts.get(count) if count < len(decoded.ids) else None
            if start is None:
                start = self._fill(answer, decoded.start(count))
                if count < len(decoded.ids) and count <= committed:
                    answer.starts[count] = start
            yield start
            count = self._whole_words(decoded.ids, count - 1)

    def may_show(self, answer: GapAnswer, bar: float) -> bool:
        """Whether a longer start than what is committed can be as likely as the bar. Blanks at the end of a block do
        not count yet: code outside the answer may follow them."""
        count = len(answer.ids)
        if answer.block:
            count = self._covering(answer.ids, len(answer.said.rstrip()))
        own = [choice.probability for choice in answer.choices[:count]]
        return self.calibration.at_best(own, answer.limit) >= max(self.bar, bar)

    def _decoded(self, answer: GapAnswer, ids: Sequence[int]) -> str:
        text = filled_text(self.tokenizer, answer.part, ids).partition("\ufffd")[0]
        return text if answer.block else text.partition("\n")[0].removesuffix("\r")

    def _fill(self, answer: GapAnswer, decoded: DecodedAnswer) -> Draft:
        ids, _ = until_end(decoded.ids)
        decoded_text, probabilities = self._decoded(answer, ids), tuple(decoded.probabilities)
        text, is_over = answer.bounded(decoded_text)
        if text != decoded_text:
            size = len((answer.part + text).encode("utf-8", "replace"))
            ids = probabilities = probabilities[: self._covering(ids, size)]
        complete = decoded.complete or is_over
        sure = self.calibration.p_accept(probabilities, complete=complete)
        return Draft(0, text, probabilities[: len(ids)], sure * bool(text), complete)

    def _covering(self, ids: Sequence[int], size: int) -> int:
        """The number of tokens that spell the first `size` bytes."""
        ends = accumulate(len(self.tokenizer.token_bytes[token]) for token in ids)
        return next((count for count, end in enumerate(ends, 1) if end >= size), len(ids))

    def _existing(self, decoded: DecodedAnswer, names: KnownNames) -> DecodedAnswer:
        spelled = self.tokenizer.decode(decoded.ids)
        fitting = names.fitting(spelled, complete=decoded.complete)
        if fitting == len(spelled):
            return decoded
        room, count = len(spelled[:fitting].encode()), 0
        while count < len(decoded.ids) and (room := room - len(self.tokenizer.token_bytes[decoded.ids[count]])) >= 0:
            count += 1
        return decoded.start(count)

    def _whole_words(self, ids: Sequence[int], count: int) -> int:
        """At most `count` tokens, cut so that no word is split."""
        spelled = self.tokenizer.token_bytes
        while 0 < count < len(ids) and splits_word(spelled[ids[count - 1]], spelled[ids[count]]):
            count -= 1
        return count
