"""The answer to a gap: its tokens while they are decoded, and the text shown for them."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from msgspec import Struct

from mercury_engine.api import Draft
from mercury_engine.decode.choice import Choice, ids_of, probabilities_of
from mercury_engine.decode.confidence import Calibration, confident, splits_word
from mercury_engine.decode.decoding import DEFAULT_OPTIONS, DecodingOptions
from mercury_engine.decode.ending import inside, once
from mercury_engine.decode.names import KnownNames
from mercury_engine.decode.policy import AnswerKind
from mercury_engine.tokens.layout import filled_text, until_end
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import EOM

UNSURE = 0.3
"""For explicit requests, an answer without a likely start keeps as many words as together reach this probability."""


class GapAnswer(Struct, eq=False):
    """Grows token by token until it ends, its line ends unless it is a `block`, code outside of it follows, it loops,
    or it reaches the limit.

    It begins by spelling the `part` of a word before the cursor again. `margin` is the indentation of its line; lines
    indented less are outside of it.
    """

    tokenizer: Tokenizer
    part: str
    limit: int
    block: bool
    margin: int
    one_line: bool = False
    typed: bytes = b""
    choices: list[Choice] = []
    complete: bool = False
    circles: bool = False
    starts: dict[int, Draft] = {}
    """What its committed tokens show up to each of them: that stays as it is."""

    def __post_init__(self) -> None:
        self.typed = self.part.encode("utf-8", "replace")

    @property
    def kind(self) -> AnswerKind:
        return "block" if self.block else "line"

    @property
    def done(self) -> bool:
        stops = self.one_line and b"\n" in self.said.lstrip()
        return self.complete or self.circles or stops or len(self.choices) >= self.limit

    @property
    def ids(self) -> list[int]:
        return ids_of(self.choices)

    @property
    def said(self) -> bytes:
        return self.tokenizer.decode_bytes(self.ids)

    def add(self, choice: Choice) -> None:
        self.choices.append(choice)
        self.typed = self.tokenizer.remaining(self.typed, choice.token)
        self.complete = self.ends(choice.token)
        if not self.complete:
            text = filled_text(self.tokenizer, self.part, self.ids).partition("\ufffd")[0]
            bounded_text, self.complete = self.bounded(text)
            self.circles = bounded_text != text and not self.complete

    def bounded(self, text: str) -> tuple[str, bool]:
        """The part of a text that belongs to the answer, and whether code outside of it follows."""
        bounded_text = inside(text, self.margin)
        return (bounded_text, True) if bounded_text != text else (once(text), False)

    def ends(self, token: int) -> bool:
        ends_line = not self.block and b"\n" in self.tokenizer.token_bytes[token]
        return token == EOM or ends_line

    def completes(self, choices: Sequence[Choice]) -> bool:
        """Whether the last of all that is decoded, committed or not, ends the answer."""
        return bool(choices) and (self.complete or self.ends(choices[-1].token))


class Presentation(Struct, frozen=True):
    """Turns tokens into the text to show: if possible, a start of the answer that is at least as likely as `bar`, or as
    the request's, if that is higher."""

    tokenizer: Tokenizer
    calibration: Calibration
    bar: float

    def show(
        self,
        answer: GapAnswer,
        choices: Sequence[Choice],
        options: DecodingOptions = DEFAULT_OPTIONS,
        bar: float = 0.0,
    ) -> Draft:
        """The start that saves most keystrokes on average; if none is likely, a confident one. It goes beyond what was
        forced, and ends before the first of the names that cannot exist."""
        least, complete = len(options.forced.ids), answer.completes(choices)
        if options.names:
            count = self._existing(choices, options.names, complete=complete)
            choices, complete = choices[:count], complete and count == len(choices)
        if not self.bar:
            return self._fill(answer, choices, complete=complete)
        bar = max(self.bar, bar)
        likely = [start for start in self.starts(answer, choices, least, complete=complete) if start.p_accept >= bar]
        if likely:
            return max(likely, key=lambda start: start.p_accept * len(start.text))
        count = max(least, self._whole_words(choices, confident(probabilities_of(choices), min(bar, UNSURE))))
        return self._fill(answer, choices[:count], complete=complete and count >= len(choices))

    def settled(self, answer: GapAnswer) -> Sequence[Choice]:
        """The committed tokens up to the last word, which may go on."""
        choices, spelled = answer.choices, self.tokenizer.token_bytes
        if answer.done or not choices or not splits_word(spelled[choices[-1].token], b"_"):
            return choices
        return choices[: self._whole_words(choices, len(choices) - 1)]

    def starts(self, answer: GapAnswer, choices: Sequence[Choice], least: int, *, complete: bool) -> Iterator[Draft]:
        """The whole answer, and its starts of whole words and at least `least` tokens, longest first."""
        count, committed = len(choices), len(answer.choices)
        if count >= max(1, least):
            yield self._fill(answer, choices, complete=complete)
        while (count := self._whole_words(choices, count - 1)) >= max(1, least):
            start = answer.starts.get(count)
            if start is None:
                start = self._fill(answer, choices[:count], complete=False)
                if count <= committed:
                    answer.starts[count] = start
            yield start

    def may_show(self, answer: GapAnswer, bar: float) -> bool:
        """Whether a longer start than what is committed can be as likely as the bar. Blanks at the end of a block do
        not count yet: code outside the answer may follow them."""
        count = len(answer.ids)
        if answer.block:
            count = self._covering(answer.ids, len(answer.said.rstrip()))
        own = probabilities_of(answer.choices[:count])
        return min((self.calibration.at_best(own, answer.limit), *own)) >= max(self.bar, bar)

    def _decoded(self, answer: GapAnswer, ids: Sequence[int]) -> str:
        text = filled_text(self.tokenizer, answer.part, ids).partition("\ufffd")[0]
        return text if answer.block else text.partition("\n")[0].removesuffix("\r")

    def _fill(self, answer: GapAnswer, choices: Sequence[Choice], *, complete: bool) -> Draft:
        ids, _ = until_end(ids_of(choices))
        decoded_text, probabilities = self._decoded(answer, ids), probabilities_of(choices)
        text, is_over = answer.bounded(decoded_text)
        if text != decoded_text:
            size = len((answer.part + text).encode("utf-8", "replace"))
            ids = probabilities = probabilities[: self._covering(ids, size)]
        complete = complete or is_over
        # A fit to whole answers overrates those of which only one token is in doubt.
        sure = min((self.calibration.p_accept(probabilities, complete=complete), *probabilities[: len(ids)]))
        return Draft(0, text, probabilities[: len(ids)], sure * bool(text), complete)

    def _covering(self, ids: Sequence[int], size: int) -> int:
        """The number of tokens that spell the first `size` bytes."""
        ends = accumulate(len(self.tokenizer.token_bytes[token]) for token in ids)
        return next((count for count, end in enumerate(ends, 1) if end >= size), len(ids))

    def _existing(self, choices: Sequence[Choice], names: KnownNames, *, complete: bool) -> int:
        """The number of tokens before the first name that cannot exist."""
        ids = ids_of(choices)
        spelled = self.tokenizer.decode(ids)
        fitting = names.fitting(spelled, complete=complete)
        if fitting == len(spelled):
            return len(ids)
        room, count = len(spelled[:fitting].encode()), 0
        while count < len(ids) and (room := room - len(self.tokenizer.token_bytes[ids[count]])) >= 0:
            count += 1
        return count

    def _whole_words(self, choices: Sequence[Choice], count: int) -> int:
        """At most `count` tokens, cut so that no word is split."""
        spelled = self.tokenizer.token_bytes
        while 0 < count < len(choices):
            before, after = choices[count - 1 : count + 1]
            if not splits_word(spelled[before.token], spelled[after.token]):
                break
            count -= 1
        return count
