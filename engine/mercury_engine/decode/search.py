"""How each effort searches: one sketch, one verified answer, or the best of several answers."""

from collections.abc import Callable, Collection, Sequence

import numpy as np

from mercury_engine.api import Effort
from mercury_engine.decode.answer import HoleAnswer
from mercury_engine.decode.canvas import Canvas, canvas_for, fuse
from mercury_engine.decode.denoise import Decoder, Decoding, Forced
from mercury_engine.decode.drafts import DraftSource
from mercury_engine.decode.prefill import prefill
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.model.runtime import Pass, Passes
from mercury_engine.tokens.layout import until_end
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import CANVASES, EOM, MASK

__all__ = ["HOPELESS", "LOW_TOKENS", "RUNNERS_UP", "SKETCH", "Search", "branches"]

LOW_TOKENS = 32
"""The longest insertion of *low*: as much as one canvas holds on any device."""

HOPELESS = 0.01
"""*low* gives up on an answer when its joint probability falls below this."""

SKETCH = {"line": 16, "block": 32, "edit": 32}
"""The canvases of *instant*, fixed so that its answer does not depend on measured costs."""

RUNNERS_UP = 2
ALTERNATIVES = 2
REVISED = (4, 2)
"""*high* drafts the least certain quarter of an answer's tokens again, then the least certain half."""

END = b"\xff"
"""A byte that no text contains: it marks the end of an answer."""

Start = Callable[..., Decoding]
"""Makes a decoding; optionally with a `forced` start, and with draft `sources` for each hole."""


class Search:
    """The decodings of one request; `best` is the one to show at any time, `current` the one at work, `run` pauses
    between forwards.

    `departure`: how many tokens an alternative needs to differ from the first answer; these are always shown.
    """

    def __init__(self, decoder: Decoder, session: EngineSession, start: Start) -> None:
        self.best = self.current = start()
        self.departure = 0
        self._decoder = decoder
        self._session = session
        self._start = start

    def run(self, effort: Effort, seed: int) -> Passes[None]:
        explore = self._sketch if effort == "instant" else self._decode
        yield from explore(self.best)
        if seed:
            yield from self._alternative(seed, explore)
        elif effort == "high":
            yield from self._improve()

    def _sketch(self, decoding: Decoding) -> Passes[None]:
        size = max(SKETCH[answer.span.mode] for answer in decoding.answers)
        while not (yield from decoding.sketch(size)):
            yield

    def _decode(self, decoding: Decoding) -> Passes[None]:
        yield from decoding.advance()
        while not decoding.done:
            yield
            yield from decoding.advance()

    def _alternative(self, seed: int, explore: Callable[[Decoding], Passes[None]]) -> Passes[None]:
        """The likeliest departure from the greedy answer for the first seed, the next one for the second, and so on."""
        options = branches(self.best, self._decoder.tokenizer)
        if not options:
            return
        forced = options[(seed - 1) % len(options)]
        yield
        self.best = self.current = self._departing(forced)
        self.departure = len(forced.ids)
        yield from explore(self.best)

    def _improve(self) -> Passes[None]:
        """Try the likeliest departures, then revisions of the best answer; the most probable answer wins."""
        for forced in branches(self.best, self._decoder.tokenizer)[:ALTERNATIVES]:
            yield
            yield from self._compete(forced, "branch")
        for part in REVISED:
            yield
            forced = yield from self._revised(part)
            if forced is not None:
                yield
                yield from self._compete(forced, "revision")

    def _compete(self, forced: Forced, kind: str) -> Passes[None]:
        rival = self.current = self._departing(forced)
        yield from self._decode(rival)
        won = _rank(rival) > _rank(self.best)
        self._decoder.report.competed(kind, won)
        if won:
            self.best = rival
        self.current = self.best

    def _departing(self, forced: Forced) -> Decoding:
        """Another decoding, which drafts from the best one behind the forced start."""
        sources = []
        for number in range(len(self.best.answers)):
            ids = self.best.decoded(number).ids
            if number == forced.number:
                ids = [*forced.ids, *ids[len(forced.ids) :]]
            sources.append([DraftSource("branch", ids)])
        return self._start(forced=forced, sources=sources)

    def _revised(self, part: int) -> Passes[Forced | None]:
        """The answer with the least certain token, with its least certain tokens drafted again.

        Unlike a fresh draft, this one sees the tokens on both sides.
        """
        best, decoder = self.best, self._decoder
        number = min(range(len(best.answers)), key=lambda n: min(_probabilities(best.answers[n])))
        answer, start = best.answers[number], best.starts[number]
        weak = _weakest(answer, decoder.tokenizer, part)
        inputs = _provisional(answer, weak)
        prefix = best.prefix.upto(start)
        if not weak or int(prefix.positions_R[-1]) + len(inputs) >= decoder.runtime.config.context:
            return None
        while (yield from prefill(self._session, prefix, decoder.report)):
            yield
        cached = self._session.align(prefix)
        canvas = Canvas(start - cached - 1, inputs)
        fused = fuse(cached, prefix, canvas.anchor, [canvas])
        forward = yield Pass(fused.rows, self._session.cache)
        self._session.keep(forward, prefix)
        decoder.report.count("revise", rows=len(fused.rows.ids_R), settled=0)
        drafted, _ = decoder.chooser.slots(fused.slots(forward.logits_WV, 0), b"")
        revised = [int(drafted[i]) if i in weak else token for i, token in enumerate(answer.ids)]
        before_end, ended = until_end(revised)
        forced = [*before_end, EOM] if ended else before_end
        return None if forced == answer.ids else Forced(number, forced)


def branches(decoding: Decoding, tokenizer: Tokenizer) -> list[Forced]:
    """Starts that depart from the committed tokens of an answer, the likeliest first.

    No two of them can continue to the same text, nor can one to the answer's: no spelling is a prefix of another.
    """
    found = []
    before = 1.0
    for number, answer in enumerate(decoding.answers):
        for place, choice in enumerate(answer.choices):
            ids = answer.ids[:place]
            found += [(before * p, Forced(number, (*ids, token))) for token, p in choice.others]
            before *= choice.probability
    spelled = {
        (number, _spelling(decoding.decoded(number).ids, answer, tokenizer))
        for number, answer in enumerate(decoding.answers)
    }
    distinct = []
    for _, forced in sorted(found, key=lambda option: -option[0]):
        text = _spelling(forced.ids, decoding.answers[forced.number], tokenizer)
        others = [other for number, other in spelled if number == forced.number]
        clash = any(other.startswith(text) or text.startswith(other) for other in others)
        if not clash and _is_text(text.removesuffix(END)):
            spelled.add((forced.number, text))
            distinct.append(forced)
    return distinct


def _spelling(ids: Sequence[int], answer: HoleAnswer, tokenizer: Tokenizer) -> bytes:
    spelled = tokenizer.decode_bytes(ids)
    if not ids or not answer.ends(ids[-1]):
        return spelled
    return (spelled.partition(b"\n")[0] if answer.span.mode == "line" else spelled) + END


def _is_text(spelled: bytes) -> bool:
    """A departure inside a character would be invisible."""
    return "\ufffd" not in spelled.decode("utf-8", "replace")


def _rank(decoding: Decoding) -> tuple[bool, float]:
    return all(answer.complete for answer in decoding.answers), decoding.probability


def _probabilities(answer: HoleAnswer) -> Sequence[float]:
    return answer.decoded().probabilities


def _weakest(answer: HoleAnswer, tokenizer: Tokenizer, part: int) -> set[int]:
    """The least certain of an answer's tokens, one in `part`, but none that spell the partial word."""
    typed = len(answer.hole.part.encode("utf-8", "replace"))
    lengths = np.cumsum([len(tokenizer.token_bytes[token]) for token in answer.ids])
    free = int(np.searchsorted(lengths, typed)) + 1 if typed else 0
    places = range(free, min(len(answer.ids), CANVASES[-1]))
    ranked = sorted(places, key=lambda place: answer.choices[place].probability)
    return set(ranked[: max(1, len(ranked) // part)])


def _provisional(answer: HoleAnswer, weak: Collection[int]) -> np.ndarray:
    """The answer as a canvas, with masks where it is weak; the rest are ends, or masks if it is incomplete."""
    size = canvas_for(len(answer.ids))
    inputs = np.full(size, EOM if answer.complete else MASK, np.int32)
    inputs[: len(answer.ids)] = answer.ids[:size]
    inputs[list(weak)] = MASK
    return inputs
