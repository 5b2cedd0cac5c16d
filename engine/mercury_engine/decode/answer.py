"""The answer to one hole: its tokens while they are decoded, and the text shown for them."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from msgspec import Struct

from mercury_engine.api import Filled, Span, SpanMode
from mercury_engine.decode.choice import Choice
from mercury_engine.decode.confidence import NO_NAMES, Calibration, Names, confident, splits_word
from mercury_engine.decode.ending import inside, once
from mercury_engine.decode.names import KnownNames
from mercury_engine.tokens.layout import Hole, filled_text, until_end
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import EOM

UNSURE = 0.3
"""For explicit requests, an answer without a likely start keeps as many words as together reach this probability."""


class DecodedAnswer(Struct, frozen=True):
    """Tokens with their probabilities; `complete` if the last one ends the answer. `names` were chosen among
    existing ones."""

    ids: Sequence[int]
    probabilities: Sequence[float]
    complete: bool
    names: Names = NO_NAMES

    def start(self, count: int) -> "DecodedAnswer":
        if count >= len(self.ids):
            return self
        return DecodedAnswer(self.ids[:count], self.probabilities[:count], False, self.names)


class Carried(Struct, frozen=True):
    """The start of an answer that previous rows have decoded."""

    text: str = ""
    probabilities: tuple[float, ...] = ()


NOTHING_CARRIED = Carried()


class HoleAnswer:
    """Grows token by token until it ends, its line ends, code outside of it follows, it loops, or it reaches the
    limit.

    For an insertion, `margin` is the indentation of its line; lines indented less are outside of it. It is -1 for
    text that replaces other text, which may do anything. With `one_line` it stops behind its first line that is not
    blank, complete or not.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        hole: Hole,
        span: Span,
        limit: int,
        carried: Carried = NOTHING_CARRIED,
        margin: int = -1,
        *,
        one_line: bool = False,
    ) -> None:
        self.hole = hole
        self.span = span
        self.limit = limit
        self.carried = carried
        self.choices: list[Choice] = []
        self.typed = hole.part.encode("utf-8", "replace")
        self.complete = False
        self.circles = False
        self.starts: dict[int, Filled] = {}
        """What its committed tokens show up to each of them: that stays as it is."""
        self._margin = margin
        self.one_line = one_line
        self._tokenizer = tokenizer

    @property
    def mode(self) -> SpanMode:
        return self.span.mode

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
        if not self.complete and self._margin >= 0:
            text = filled_text(self._tokenizer, self.hole, self.ids).partition("\ufffd")[0]
            bounded_text, self.complete = self.bounded(text)
            self.circles = bounded_text != text and not self.complete

    def bounded(self, text: str) -> tuple[str, bool]:
        """The part of a text that belongs to the answer, and whether code outside of it follows."""
        bounded_text = inside(text, self._margin)
        return (bounded_text, True) if bounded_text != text else (once(text) if self._margin >= 0 else text, False)

    def ends(self, token: int) -> bool:
        ends_line = self.mode == "line" and b"\n" in self._tokenizer.token_bytes[token]
        return token == EOM or ends_line

    def decoded(self) -> DecodedAnswer:
        names = {at: choice.name for at, choice in enumerate(self.choices) if choice.name}
        return DecodedAnswer(self.ids, [choice.probability for choice in self.choices], self.complete, names)


class Presentation(Struct, frozen=True):
    """Turns tokens into the text to show: if possible, a start of the answer that is at least as likely as `bar`, or as
    the request's, if that is higher."""

    tokenizer: Tokenizer
    calibration: Calibration
    bar: float

    def show(
        self,
        answer: HoleAnswer,
        decoded: DecodedAnswer,
        old: str,
        least: int = 0,
        names: KnownNames | None = None,
        bar: float = 0.0,
    ) -> Filled:
        """The start of at least `least` tokens that saves most keystrokes on average; if none is likely, a confident
        one. It ends before the first of the `names` that cannot exist.

        Old text is replaced by a complete answer or not at all.
        """
        if names:
            decoded = self._existing(decoded, names)
        if old and not decoded.complete:
            return Filled(old)
        if old or not self.bar:
            return self._fill(answer, decoded, old)
        bar = max(self.bar, bar)
        likely = [start for start in self.starts(answer, decoded, least) if start.p_accept >= bar]
        if likely:
            return max(likely, key=lambda start: start.p_accept * len(start.text))
        count = max(least, self._whole_words(decoded.ids, confident(decoded.probabilities, min(bar, UNSURE))))
        return self._fill(answer, decoded.start(count), old)

    def starts(self, answer: HoleAnswer, decoded: DecodedAnswer, least: int) -> Iterator[Filled]:
        """The whole answer, and its starts of whole words and at least `least` tokens, longest first."""
        count, committed = len(decoded.ids), len(answer.choices)
        while count >= max(1, least):
            start = answer.starts.get(count) if count < len(decoded.ids) else None
            if start is None:
                start = self._fill(answer, decoded.start(count), "")
                if count < len(decoded.ids) and count <= committed:
                    answer.starts[count] = start
            yield start
            count = self._whole_words(decoded.ids, count - 1)

    def may_show(self, answer: HoleAnswer, bar: float) -> bool:
        """Whether a longer start than what is committed can be as likely as the bar. Blanks at the end of a block do
        not count yet: code outside the answer may follow them."""
        count = len(answer.ids)
        if answer.mode != "line":
            count = self._covering(answer.ids, len(answer.said.rstrip()))
        own = [choice.probability for choice in answer.choices[:count]]
        most = len(answer.carried.probabilities) + answer.limit
        return self.calibration.at_best([*answer.carried.probabilities, *own], most) >= max(self.bar, bar)

    def text(self, answer: HoleAnswer, ids: Sequence[int]) -> str:
        """The text that these tokens add to the carried text: whole characters, in line mode up to the end of the
        line."""
        return answer.bounded(self._decoded(answer, ids))[0]

    def _decoded(self, answer: HoleAnswer, ids: Sequence[int]) -> str:
        text = filled_text(self.tokenizer, answer.hole, until_end(ids)[0]).partition("\ufffd")[0]
        return text.partition("\n")[0].removesuffix("\r") if answer.mode == "line" else text

    def _fill(self, answer: HoleAnswer, decoded: DecodedAnswer, old: str) -> Filled:
        ids, _ = until_end(decoded.ids)
        decoded_text, own = self._decoded(answer, ids), decoded.probabilities
        text, is_over = answer.bounded(decoded_text)
        if text != decoded_text:
            ids = own = own[: self._covering(ids, len((answer.hole.part + text).encode("utf-8", "replace")))]
        complete = decoded.complete or is_over
        probabilities = (*answer.carried.probabilities, *own)
        before = len(answer.carried.probabilities)
        names = {before + at: name for at, name in decoded.names.items()}
        judge = (old and self.calibration.rewriting) or self.calibration
        sure = judge.p_accept(probabilities, complete=complete, names=names)
        text = answer.carried.text + text
        visible = len(answer.carried.probabilities) + len(ids)
        return Filled(text, probabilities[:visible], sure * (text != old), complete)

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
