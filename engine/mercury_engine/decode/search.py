"""The search for an answer: one sketch or one verified answer, a likelier one, and others that depart from it."""

from collections.abc import Callable, Sequence

from mercury_engine.api import Effort
from mercury_engine.decode.answer import GapAnswer
from mercury_engine.decode.choice import ids_of
from mercury_engine.decode.decoding import Forced
from mercury_engine.decode.denoise import GapDecoding
from mercury_engine.decode.drafts import DraftSource
from mercury_engine.decode.policy import AnswerKind
from mercury_engine.model.runtime import Passes
from mercury_engine.tokens.tokenizer import Tokenizer

LOW_TOKENS = 32
"""The longest insertion of *low*: as much as one canvas holds on any device."""

HOPELESS = 0.01
"""*low* gives up on an answer when its joint probability falls below this."""

SKETCH: dict[AnswerKind, int] = {"line": 15, "block": 31}
"""The canvases of *instant*, fixed so that its answer does not depend on measured costs."""

RUNNERS_UP = 2
FOLLOWED = 4
"""How many other starts are followed at most to find a likelier answer."""

END = b"\xff"
"""A byte that no text contains marks the end of an answer."""

Start = Callable[..., GapDecoding]
"""Creates a decoding; optionally with a `forced` or `chosen` start, with draft `sources`, of `one_line`
alone, and down to a `floor` of its probability."""


class Search:
    """The decodings of one request; `best` is the one to show at any time, `run` pauses between forwards. Each
    seed gives another answer.

    `departure`: how many tokens an alternative needs to differ from the first answer; these are always shown. If it is
    `thorough`, the answer begins with the likeliest line. Once it `is_settled`, the best answer only grows.
    """

    def __init__(self, tokenizer: Tokenizer, start: Start, *, thorough: bool = False) -> None:
        self.best = start(one_line=thorough)
        self._thorough = thorough
        self.departure = 0
        self.is_settled = False
        self._tokenizer = tokenizer
        self._start = start

    def run(self, effort: Effort, seed: int) -> Passes[None]:
        explore = self._sketch if effort == "instant" else GapDecoding.run
        if self._thorough:
            yield from self._find_first_line()
            yield
        self.is_settled = not seed
        yield from explore(self.best)
        if not seed:
            return
        forced = self._departure(seed)
        if forced is None:
            return
        yield
        self.best = self._departing(forced)
        self.departure = len(forced.ids)
        self.is_settled = True
        yield from explore(self.best)

    def _find_first_line(self) -> Passes[None]:
        """Begin the answer with its likeliest line. The token that is likelier at first may leave only unlikely ones,
        so the likeliest departures are followed, each until it is less likely than the best line."""
        yield from self.best.run()
        tried = [self.best]
        for _ in range(FOLLOWED):
            options = branches(tried, self._tokenizer, RUNNERS_UP)
            if not options or options[0].probability <= self.best.probability:
                break
            yield
            tried.append(self._departing(options[0], one_line=True, floor=self.best.probability))
            yield from tried[-1].run()
            if tried[-1].probability > self.best.probability:
                self.best = tried[-1]
        self.best = self._start(chosen=self.best.answer.choices)

    def _sketch(self, decoding: GapDecoding) -> Passes[None]:
        while not (yield from decoding.sketch(SKETCH[decoding.answer.kind])):
            yield

    def _departure(self, number: int) -> Forced | None:
        """For 1 the likeliest departure from the greedy answer, for 2 the next one, and so on."""
        options = branches([self.best], self._tokenizer)
        return options[(number - 1) % len(options)] if options else None

    def _departing(self, forced: Forced, *, one_line: bool = False, floor: float = 0.0) -> GapDecoding:
        """Another decoding, which drafts from the best one behind the forced start."""
        ids = [*forced.ids, *ids_of(self.best.decoded())[len(forced.ids) :]]
        return self._start(forced=forced, sources=[DraftSource("branch", ids)], one_line=one_line, floor=floor)


def branches(decodings: Sequence[GapDecoding], tokenizer: Tokenizer, runners_up: int | None = None) -> list[Forced]:
    """Starts that depart from the committed tokens of some answers to the same gap, likeliest first. None of them is
    an empty answer.

    No two of them can continue to the same text, nor can one to an answer's: no spelling is a prefix of another.
    """
    beams: list[Forced] = []
    spelled: set[bytes] = set()
    for decoding in decodings:
        before, answer = 1.0, decoding.answer
        spelled.add(_spelling(ids_of(decoding.decoded()), answer, tokenizer))
        for place, choice in enumerate(answer.choices):
            ids = answer.ids[:place]
            others = choice.others if runners_up is None else choice.others[:runners_up]
            beams += [Forced((*ids, token), before * p) for token, p in others]
            before *= choice.probability
    distinct = []
    for forced in sorted(beams, key=lambda forced: -forced.probability):
        text = _spelling(forced.ids, decodings[0].answer, tokenizer)
        clash = any(other.startswith(text) or text.startswith(other) for other in spelled)
        is_empty = text.endswith(END) and not text.removesuffix(END).strip()
        if not (clash or is_empty) and _is_text(text.removesuffix(END)):
            spelled.add(text)
            distinct.append(forced)
    return distinct


def _spelling(ids: Sequence[int], answer: GapAnswer, tokenizer: Tokenizer) -> bytes:
    spelled = tokenizer.decode_bytes(ids)
    if not ids or not answer.ends(ids[-1]):
        return spelled
    return (spelled if answer.block else spelled.partition(b"\n")[0]) + END


def _is_text(spelled: bytes) -> bool:
    """False for a departure inside a character, which would be invisible."""
    return "\ufffd" not in spelled.decode("utf-8", "replace")
