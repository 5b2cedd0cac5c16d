"""The search for an answer: one sketch or one verified answer, a likelier one, and others that depart from it."""

from collections.abc import Callable, Generator, Sequence

from msgspec.structs import replace

from mercury_engine.api import Effort, Gap
from mercury_engine.decode.answer import GapAnswer
from mercury_engine.decode.batching import Steps, until_pause
from mercury_engine.decode.choice import Choice, ids_of
from mercury_engine.decode.decoding import DecodingOptions, Forced
from mercury_engine.decode.denoise import GapDecoding
from mercury_engine.decode.drafts import DraftSource
from mercury_engine.decode.policy import AnswerKind
from mercury_engine.model.runtime import Forward, Pass, Passes
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

Shown = tuple[GapDecoding, bool]
"""The decoding to show, and whether it is the last one."""

Begin = Callable[[DecodingOptions, Sequence[DraftSource], Sequence[Choice]], GapDecoding]
"""Begins a decoding of the gap, with draft sources of its own, or behind first choices that were made elsewhere."""


def search(best: GapDecoding, begin: Begin, gap: Gap, tokenizer: Tokenizer) -> Steps[Shown]:
    """Shows the best decoding at each pause between forwards, and at the end. Each seed gives another answer. If the
    first decoding is of one line alone, the answer begins with the likeliest line."""
    if best.options.one_line:
        best = yield from _likeliest_line(best, begin, tokenizer)
        yield best, False
    best.is_settled = not gap.seed
    yield from _showing(best, _exploring(best, gap.effort))
    departures = branches([best], tokenizer) if gap.seed else []
    if departures:
        yield best, False
        best = _departing(best, begin, replace(best.options, forced=departures[(gap.seed - 1) % len(departures)]))
        best.is_settled = True
        yield from _showing(best, _exploring(best, gap.effort))
    yield best, True


def _likeliest_line(
    first: GapDecoding, begin: Begin, tokenizer: Tokenizer
) -> Generator[Pass | Shown, Forward, GapDecoding]:
    """The answer behind its likeliest first line. The token that is likelier at first may leave only unlikely ones,
    so the likeliest departures are followed, each until it is less likely than the best line."""
    yield from _showing(first, first.run())
    best, tried = first, [first]
    for _ in range(FOLLOWED):
        departures = branches(tried, tokenizer, RUNNERS_UP)
        if not departures or departures[0].probability <= best.probability:
            break
        yield best, False
        tried.append(_departing(best, begin, replace(best.options, forced=departures[0], floor=best.probability)))
        yield from _showing(best, tried[-1].run())
        best = max(best, tried[-1], key=lambda decoding: decoding.probability)
    return begin(replace(first.options, one_line=False), (), best.answer.choices)


def _showing(best: GapDecoding, passes: Passes[None]) -> Steps[Shown]:
    """Run the passes, which may be another decoding's."""
    while (yield from until_pause(passes)):
        yield best, False


def _exploring(decoding: GapDecoding, effort: Effort) -> Passes[None]:
    return decoding.sketch(SKETCH[decoding.answer.kind]) if effort == "instant" else decoding.run()


def _departing(best: GapDecoding, begin: Begin, options: DecodingOptions) -> GapDecoding:
    """Another decoding, which drafts from the best one behind its forced start."""
    forced = options.forced.ids
    ids = [*forced, *ids_of(best.decoded())[len(forced) :]]
    return begin(options, [DraftSource("branch", ids)], ())


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
