"""The search for an answer: one sketch or one verified answer, a likelier one, and others that depart from it."""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from mercury_engine.api import Effort
from mercury_engine.decode.answer import HoleAnswer
from mercury_engine.decode.batching import until_pause
from mercury_engine.decode.decoding import Decoding, Forced
from mercury_engine.decode.denoise import HoleDecoding
from mercury_engine.decode.drafts import DraftSource
from mercury_engine.model.runtime import Passes
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import EOM

LOW_TOKENS = 32
"""The longest insertion of *low*: as much as one canvas holds on any device."""

HOPELESS = 0.01
"""*low* gives up on an answer when its joint probability falls below this."""

SKETCH = {"line": 15, "block": 31, "edit": 31}
"""The canvases of *instant*, fixed so that its answer does not depend on measured costs."""

RUNNERS_UP = 2
FOLLOWED = 4
"""How many other starts are followed at most to find a likelier answer."""

END = b"\xff"
"""A byte that no text contains marks the end of an answer."""

Starter = Callable[..., HoleDecoding]
"""Creates a decoding; optionally with a `forced` start, with draft `sources` for each hole, of the first `line` alone,
and down to a `floor` of its probability."""


class Departure(Protocol):
    @property
    def probability(self) -> float: ...


Line = TypeVar("Line", bound=Decoding)
Start = TypeVar("Start", bound=Departure)


class LineSearch(Generic[Line, Start]):
    """The likeliest line: `best` at any time, `latest` the one being decoded.

    The token that is likelier at first may leave only unlikely ones, so the likeliest departures from the lines tried
    are followed, each while it is likelier than the best line.

    `departures` from lines, the likeliest first; `follow` one down to a probability.
    """

    def __init__(
        self,
        first: Line,
        departures: Callable[[Sequence[Line]], Sequence[Start]],
        follow: Callable[[Start, float], Line],
    ) -> None:
        self.best = self.latest = first
        self._departures = departures
        self._follow = follow

    def run(self) -> Passes[None]:
        yield from self.best.run()
        tried = [self.best]
        for _ in range(FOLLOWED):
            options = self._departures(tried)
            if not options or options[0].probability <= self.best.probability:
                return
            yield
            self.latest = self._follow(options[0], self.best.probability)
            tried.append(self.latest)
            yield from self.latest.run()
            if self.latest.probability > self.best.probability:
                self.best = self.latest


class Search:
    """The decodings of one request; `best` is the one to show at any time, `run` pauses between forwards. Each
    seed gives another answer.

    `departure`: how many tokens an alternative needs to differ from the first answer; these are always shown.
    """

    def __init__(self, tokenizer: Tokenizer, start: Starter) -> None:
        self.best = start()
        self.departure = 0
        self._tokenizer = tokenizer
        self._start = start

    def run(self, effort: Effort, seed: int, *, thorough: bool = False) -> Passes[None]:
        explore = self._sketch if effort == "instant" else HoleDecoding.run
        if thorough:
            yield from self._find_first_line()
        yield from explore(self.best)
        if not seed:
            return
        forced = self._departure(seed)
        if forced is None:
            return
        yield
        self.best = self._departing(forced)
        self.departure = len(forced.ids)
        yield from explore(self.best)

    def _find_first_line(self) -> Passes[None]:
        """The likeliest first line, from which the best answer then goes on."""
        mode = self.best.answers[0].mode
        search = LineSearch(
            self._start(line=True),
            lambda tried: branches(tried, self._tokenizer),
            lambda forced, floor: self._departing(forced, line=True, floor=floor),
        )
        self.best, passes = search.best, search.run()
        while (yield from until_pause(passes)):
            self.best = search.best
            yield
        self.best = search.best
        ids = self.best.answers[0].ids
        if mode != "line" and ids[-1] != EOM:
            self.best = self._start(forced=Forced(0, ids), sources=[[DraftSource("branch", ids)]])

    def _sketch(self, decoding: HoleDecoding) -> Passes[None]:
        size = max(SKETCH[answer.mode] for answer in decoding.answers)
        while not (yield from decoding.sketch(size)):
            yield

    def _departure(self, number: int) -> Forced | None:
        """For 1 the likeliest departure from the greedy answer, for 2 the next one, and so on."""
        options = branches([self.best], self._tokenizer)
        return options[(number - 1) % len(options)] if options else None

    def _departing(self, forced: Forced, *, line: bool = False, floor: float = 0.0) -> HoleDecoding:
        """Another decoding, which drafts from the best one behind the forced start."""
        sources = []
        for number in range(len(self.best.answers)):
            ids = self.best.decoded(number).ids
            if number == forced.number:
                ids = [*forced.ids, *ids[len(forced.ids) :]]
            sources.append([DraftSource("branch", ids)])
        return self._start(forced=forced, sources=sources, line=line, floor=floor)


def branches(decodings: Sequence[HoleDecoding], tokenizer: Tokenizer) -> list[Forced]:
    """Starts that depart from the committed tokens of some answers to the same holes, likeliest first.

    No two of them can continue to the same text, nor can one to an answer's: no spelling is a prefix of another.
    """
    beams: list[Forced] = []
    spelled: set[tuple[int, bytes]] = set()
    for decoding in decodings:
        before = 1.0
        for number, answer in enumerate(decoding.answers):
            spelled.add((number, _spelling(decoding.decoded(number).ids, answer, tokenizer)))
            for place, choice in enumerate(answer.choices):
                ids = answer.ids[:place]
                beams += [Forced(number, (*ids, token), before * p) for token, p in choice.others]
                before *= choice.probability
    distinct, answers = [], decodings[0].answers
    for forced in sorted(beams, key=lambda forced: -forced.probability):
        text = _spelling(forced.ids, answers[forced.number], tokenizer)
        alternatives = [other for number, other in spelled if number == forced.number]
        clash = any(other.startswith(text) or text.startswith(other) for other in alternatives)
        if not clash and _is_text(text.removesuffix(END)):
            spelled.add((forced.number, text))
            distinct.append(forced)
    return distinct


def _spelling(ids: Sequence[int], answer: HoleAnswer, tokenizer: Tokenizer) -> bytes:
    spelled = tokenizer.decode_bytes(ids)
    if not ids or not answer.ends(ids[-1]):
        return spelled
    return (spelled.partition(b"\n")[0] if answer.mode == "line" else spelled) + END


def _is_text(spelled: bytes) -> bool:
    """False for a departure inside a character, which would be invisible."""
    return "\ufffd" not in spelled.decode("utf-8", "replace")
