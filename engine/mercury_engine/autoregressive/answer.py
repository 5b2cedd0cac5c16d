"""One answer while it is decoded: its tokens, where it ends, what it says, and how sure the model is of it."""

import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher

import numpy as np
from msgspec import Struct

from mercury_engine.api import Draft, Rewritten, Slot
from mercury_engine.decode.choice import Choice, ids_of
from mercury_engine.decode.confidence import Calibration, is_hopeless, likely_start
from mercury_engine.decode.frames import slots_of
from mercury_engine.decode.names import KnownNames
from mercury_engine.decode.policy import AnswerKind
from mercury_engine.prompts.pieces import Prompt
from mercury_engine.tokens.pretrained import PretrainedTokenizer


class ReadAnswer(Struct, frozen=True):
    """What an answer says: a new text, whether that is complete, and if the old one stays, why."""

    text: str
    complete: bool
    refused: str = ""


Read = Callable[[str, bool], ReadAnswer]


class ContinuationQuestion(Struct, frozen=True, eq=False):
    """A gap, or a window to rewrite, as the model is asked about it.

    `read` makes a new text of the answer's, and of whether the model has ended it. `before` is the text before a gap,
    `old` that of a window.
    """

    prompt: Prompt
    ids: np.ndarray
    kind: AnswerKind
    read: Read
    before: str = ""
    old: str = ""


class Continuation:
    """Grows token by token until the model ends it, a stop is spelled, what it says is complete, or at the limit.

    What is shown ends before the first of the `names` that cannot exist.
    """

    def __init__(
        self,
        tokenizer: PretrainedTokenizer,
        question: ContinuationQuestion,
        limit: int,
        names: KnownNames | None = None,
    ) -> None:
        self.question = question
        self.limit = limit
        self.choices: list[Choice] = []
        self.names = names
        self.typed = question.prompt.forced.encode("utf-8", "replace")
        self.is_finished = False
        """Whether the model has ended it, by a token or a stop."""
        self._is_enough = False
        self._tokenizer = tokenizer
        self._forced = len(self.typed)
        self._spelled = bytearray()
        self._stop = re.compile("|".join(map(re.escape, question.prompt.stops)) or r"(?!)")

    @property
    def kind(self) -> AnswerKind:
        return self.question.kind

    @property
    def ended(self) -> bool:
        return self.is_finished or self._is_enough

    @property
    def done(self) -> bool:
        return self.ended or len(self.choices) >= self.limit

    @property
    def said(self) -> bytes:
        return bytes(self._spelled)

    @property
    def text(self) -> str:
        """What follows the forced start: valid characters, up to the first stop."""
        text, _ = _valid_start(self._spelled[self._forced :])
        stop = self._stop.search(text)
        return text[: stop.start()].removesuffix("\r") if stop else text

    def add(self, choice: Choice) -> None:
        self.choices.append(choice)
        self.typed = self._tokenizer.remaining(self.typed, choice.token)
        spelled = self._tokenizer.token_bytes[choice.token]
        self._spelled += spelled
        text, _ = _valid_start(self._spelled[self._forced :])
        self.is_finished = not spelled or bool(self._stop.search(text))
        self._is_enough = not self.is_finished and self._says_all(text)

    def draft(self, calibration: Calibration, bar: float = 0.0) -> Draft:
        """What there is for a gap: the start that is as likely as `bar`, if there is one."""
        read = self._read()
        text, complete = read.text, read.complete
        if self.names:
            text, complete = self.names.existing(text, complete=complete)
        return likely_start(text, [*self._shown(text)], calibration, bar=bar, complete=complete)

    def rewritten(self, calibration: Calibration) -> Rewritten:
        """What there is for a window: a complete answer, or the old text."""
        old = self.question.old
        if not self.done:
            return Rewritten(old)
        read = self._read()
        if read.refused or not read.complete:
            return Rewritten(old, complete=read.complete, refused=read.refused)
        judged, rewriting = self._judged(read.text), calibration.rewriting or calibration
        chance = rewriting.p_accept(judged, complete=True) if read.text != old else 0.0
        return Rewritten(read.text, tuple(judged), chance, complete=True)

    def _read(self) -> ReadAnswer:
        _, valid = _valid_start(self._spelled[self._forced :])
        return self.question.read(self.text, self.is_finished and valid)

    @property
    def slots(self) -> Iterator[Slot]:
        """What each token behind the forced start spells; all are settled."""
        spelled = self._tokenizer.token_bytes
        slots = [(spelled[choice.token], choice.probability, True) for choice in self.choices]
        return slots_of(slots, bytes(self._forced))

    def is_hopeless(self, bar: float) -> bool:
        """Whether it is given up while somebody types, to whom this bar applies."""
        return is_hopeless(self._judged(self.text), bar)

    def _says_all(self, text: str) -> bool:
        """Whether something else begins, so that nothing needs to be generated any more."""
        return "\n" in text and self.kind != "window" and self.question.read(text, False).complete

    def _judged(self, text: str) -> list[float]:
        """The probabilities of the tokens that matter: those shown and the end, or those that depart from what is
        copied."""
        if self.question.prompt.copied:
            return [self.choices[at].probability for at in self._departing()]
        return [probability for _, probability in self._shown(text)]

    def _shown(self, text: str) -> Iterator[tuple[int, float]]:
        """Where each of the tokens shown ends, in bytes behind the forced start, and its probability; and the end's."""
        last = len(text.encode()) + (self.ended and text == self.text)
        start = -self._forced
        for choice in self.choices:
            stop = start + len(self._tokenizer.token_bytes[choice.token])
            if start < last and max(start + 1, stop) > 0:
                yield stop, choice.probability
            start = stop

    def _departing(self) -> Iterator[int]:
        """Where tokens are new, or follow something that was left out."""
        prompt = self.question.prompt
        ids = ids_of(self.choices)
        matcher = SequenceMatcher(None, self._tokenizer.encode(prompt.forced + prompt.copied), ids, autojunk=False)
        for kind, _, _, start, stop in matcher.get_opcodes():
            if kind != "equal":
                yield from range(start, min(max(stop, start + 1), len(ids)))


def _valid_start(spelled: bytes | bytearray) -> tuple[str, bool]:
    """The text before the first bytes that are no character, or not yet, and whether that is all of it."""
    try:
        return spelled.decode(), True
    except UnicodeDecodeError as error:
        return spelled[: error.start].decode(), False
