"""What each level of effort costs and gains, and what revising a draft is worth.

    python -m bench.effort FILE … [--limit 60] [--model FOLDER] [--threads 2]

*Levels*: rows are asked through the language server's own sessions, on explicit request, at each effort in turn, and
answers are shown whole, however unlikely.
Forwards and milliseconds are an answer's once its context is read. *Drafts*: one canvas that nothing verifies, and the
same one after revisions that see all of it. Then true answers in which one token in ten, or in four, is replaced by a
random one, before and after what is improbable among the others was masked and drafted again. Intervals are 95 %; the
last line is JSON.
"""

import argparse
import asyncio
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from bench.harness.measures import machine
from bench.quality import editor
from bench.quality.editor import Contender, Metered
from bench.quality.figures import bounds, share
from mercury_engine.api import Draft, Effort, InfillRequest
from mercury_engine.decode.answer import HoleAnswer
from mercury_engine.decode.batching import run_unbatched
from mercury_engine.decode.canvas import Canvas, fuse
from mercury_engine.decode.choice import Chooser
from mercury_engine.decode.costs import Costs
from mercury_engine.decode.denoise import Decoder, Decoding
from mercury_engine.decode.policy import Acceptance, Report
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.engine import MercuryEngine, Resources, open_engine, open_runtime
from mercury_engine.model.config import TOKENIZER_FILE
from mercury_engine.tokens.layout import answer_ids, budget_for, filled_text, freeze, lay_out, until_end
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import EOM, MASK, SPECIALS
from mercury_ls.serve.in_process import InProcessClient
from mercury_ls.session.session import InlineRequest
from mercury_training.evaluate.contestants import Suggestion, shipped
from mercury_training.evaluate.metrics import bootstrap, chrf, similarity
from mercury_training.evaluate.scores import Result, score
from mercury_training.rows.fim_rows import FimRow, read_rows, request, sample

__all__ = ["main"]

LEVELS: tuple[Effort, ...] = ("instant", "low", "medium", "high")
REVISED = (1, 2, 4, 8)
WRONG = (0.1, 0.25)
IMPROBABLE = 0.01
"""A token that the model finds less likely than this, given all the others, is masked."""

KINDS = {"line": ("single_line",), "block": ("multi_line",)}
CANVAS = {"line": 16, "block": 32}

MEASURES: dict[str, Callable[[str, FimRow], float]] = {
    "similarity": lambda text, row: similarity(text, row.middle),
    "chrF": lambda text, row: chrf(text, row.middle),
}


class Answered(Struct, frozen=True):
    """One answer of one level: what it cost, and its scores."""

    result: Result
    forwards: int
    milliseconds: float


class Cost(Struct, frozen=True):
    forwards: int
    milliseconds: float


class Counting(Metered):
    """The cost of each request of one answer: the first, and those that search for one that parses."""

    def __init__(self, engine: MercuryEngine) -> None:
        super().__init__(engine)
        self.costs: list[Cost] = []

    def infill(self, request: InfillRequest) -> Iterator[Draft]:
        for draft in super().infill(request):
            if draft.final and (cost := self.taken()):
                self.costs.append(Cost(cost.passes, cost.milliseconds))
            yield draft


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="rows without their middle")
    parser.add_argument("--limit", type=int, default=60, help="rows of each kind, drawn at random, always the same")
    parser.add_argument("--model", default=shipped(), help="a model's folder")
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    rows = [row for path in given.files for row in read_rows(path)]
    chosen = {name: sample([r for r in rows if r.kind in kinds], given.limit) for name, kinds in KINDS.items()}
    resources = Resources(threads=given.threads)
    found = {"machine": machine(), "levels": {}, "drafts": {}, "repaired": {}}
    for name, own in chosen.items():
        found["levels"][name] = asyncio.run(levels(own, Path(given.model), resources))
        found["drafts"][name], found["repaired"][name] = revisions(own, name, Path(given.model), resources)
    print("\n".join(tables(found)))
    print(json.dumps(found))


async def levels(rows: Sequence[FimRow], folder: Path, resources: Resources) -> dict[str, Any]:
    meter = Counting(open_engine(folder, resources, bar=0.0))
    client = InProcessClient(meter)
    await client.start()
    contender = Contender("ours", client, meter)
    answers: dict[str, list[Answered]] = {level: [] for level in LEVELS}
    for number, row in enumerate(rows):
        for level in LEVELS if number % 2 else reversed(LEVELS):
            text = await asked(contender, row, level)
            answers[level].append(answered(row, text, meter.costs))
            meter.costs = []
    await client.close()
    return {level: level_figures(own, answers["low"]) for level, own in answers.items()}


async def asked(contender: Contender, row: FimRow, level: Effort) -> str:
    session, uri = await editor.opened(contender, row.path, row.language, row.prefix + row.suffix)
    session.questions.settings = replace(session.settings, engine=replace(session.settings.engine, effort=level))
    latest = await editor.last_answer(session, InlineRequest(uri=uri, offset=len(row.prefix), invoked=True))
    return editor.filled(row, latest.offer.edit) if latest.offer else ""


def answered(row: FimRow, text: str, costs: Sequence[Cost]) -> Answered:
    result = score("", "", row, Suggestion(text, 0.0, True, 0.0, 0.0), None)
    return Answered(result, sum(cost.forwards for cost in costs), sum(cost.milliseconds for cost in costs))


def level_figures(found: Sequence[Answered], low: Sequence[Answered]) -> dict[str, Any]:
    results = [each.result for each in found]
    given = [each for each in results if each.suggestion.text]
    parsed = [each.parses for each in given if each.parses is not None]
    against = [each.result.similarity - other.result.similarity for each, other in zip(found, low, strict=True)]
    return {
        "n": len(found),
        "forwards": round(statistics.fmean(each.forwards for each in found), 1),
        "milliseconds": round(statistics.median(each.milliseconds for each in found), 1),
        "given": share(len(given), len(results)),
        "parses": share(sum(parsed), len(results)),
        "exact": share(sum(each.exact for each in results), len(results)),
        "first_line": share(sum(each.first_line for each in results), len(results)),
        "similarity": interval([each.similarity for each in results]),
        "chrF": interval([each.chrf for each in results]),
        "similarity_over_low": interval(against),
    }


def interval(values: Sequence[float]) -> list[float] | None:
    return bounds(bootstrap(values, statistics.fmean))


class Place:
    """One row with its context read, and forwards of canvases behind it."""

    def __init__(self, decoder: Decoder, row: FimRow) -> None:
        asked, tokenizer = request(row, row.id, "medium"), decoder.tokenizer
        budget = budget_for(decoder.runtime.config.context)
        self.row = lay_out(tokenizer, asked, freeze(tokenizer, asked, budget), budget)
        self.answer = HoleAnswer(tokenizer, self.row.holes[0], asked.spans[0], asked.spans[0].budget)
        self._decoder, self._session = decoder, EngineSession(decoder.runtime.cache())

    def decoding(self) -> Decoding:
        return Decoding(self._decoder, self._session, self.row, [self.answer], [[]])

    def drafted(self, size: int, passes: int) -> str:
        decoding = self.decoding()
        for _ in run_unbatched(self._decoder.runtime, decoding.denoise(size, passes)):
            pass
        return filled_text(self._decoder.tokenizer, self.row.holes[0], until_end(decoding.draft)[0]).partition(
            "\ufffd"
        )[0]

    def logits(self, inputs: np.ndarray) -> np.ndarray:
        prefix = self.decoding().prefix
        cached = self._session.align(prefix)
        anchor = len(prefix) - cached - 1
        fused = fuse(cached, prefix, anchor, [Canvas(anchor, inputs)])
        return fused.slots(self._decoder.runtime.forward(fused.rows, self._session.cache).logits_WV, 0)

    def repaired(self, draft: np.ndarray, count: int) -> np.ndarray:
        """The draft with the improbable ones of its first tokens masked and drafted again, all but the very first."""
        chooser, logits_SV = self._decoder.chooser, self.logits(draft)
        own = [chooser.log_probabilities(row_V, b"")[token] for row_V, token in zip(logits_SV, draft, strict=True)]
        weak = [slot for slot in range(1, count) if own[slot] < np.log(IMPROBABLE)]
        if not weak:
            return draft
        inputs, mended = draft.copy(), draft.copy()
        inputs[weak] = MASK
        mended[weak] = chooser.slots(self.logits(inputs), b"")[0][weak]
        return mended


def revisions(
    rows: Sequence[FimRow], name: str, folder: Path, resources: Resources
) -> tuple[dict[str, Any], dict[str, Any]]:
    runtime, tokenizer = open_runtime(folder, resources), Tokenizer.load(folder / TOKENIZER_FILE)
    chooser = Chooser(tokenizer, runtime.config.vocabulary)
    decoder = Decoder(runtime, tokenizer, chooser, Costs((1, 64), (1.0, 1.0)), Acceptance(), Report(), "policy", False)
    draw, size = np.random.default_rng(0), CANVAS[name]
    scores = {passes: {measure: [] for measure in MEASURES} for passes in REVISED}
    right: dict[float, list[tuple[float, float]]] = {rate: [] for rate in WRONG}
    for row in rows:
        place = Place(decoder, row)
        if int(place.row.positions[place.row.holes[0].anchor]) + size + 1 >= runtime.config.context:
            continue
        for passes in REVISED:
            text = place.drafted(size, passes)
            for measure, of in MEASURES.items():
                scores[passes][measure].append(of(text, row))
        truth = np.array(answer_ids(tokenizer, place.row.holes[0], row.middle), np.int32)
        if 4 <= len(truth) <= size:
            for rate in WRONG:
                right[rate].append(corrupted(place, truth, size, rate, tokenizer.vocabulary, draw))
    drafts = {
        str(passes): {measure: interval(values) for measure, values in own.items()}
        | {"gain": interval(differences(scores[1]["chrF"], own["chrF"]))}
        for passes, own in scores.items()
    }
    repaired = {
        str(rate): {
            "n": len(pairs),
            "before": interval([before for before, _ in pairs]),
            "after": interval([after for _, after in pairs]),
            "gain": interval([after - before for before, after in pairs]),
        }
        for rate, pairs in right.items()
    }
    return drafts, repaired


def differences(before: Sequence[float], after: Sequence[float]) -> list[float]:
    return [new - old for old, new in zip(before, after, strict=True)]


def corrupted(
    place: Place, truth: np.ndarray, size: int, rate: float, vocabulary: int, draw: np.random.Generator
) -> tuple[float, float]:
    """The share of right tokens before and after, of a true answer with at least one wrong token."""
    count = len(truth)
    wrong = draw.random(count) < rate
    wrong[[0, -1]] = False
    if not wrong.any():
        wrong[int(draw.integers(1, count - 1))] = True
    draft = np.full(size, EOM, np.int32)
    draft[:count] = np.where(wrong, draw.integers(len(SPECIALS), vocabulary, count), truth)
    mended = place.repaired(draft, count)
    return float((draft[:count] == truth).mean()), float((mended[:count] == truth).mean())


def tables(found: dict[str, Any]) -> Iterator[str]:
    yield f"{found['machine']}"
    for name, own in found["levels"].items():
        head = f"{'exact':20}{'similarity':20}{'chrF':19}{'parses':22}over low"
        yield f"\n{name:16}{'n':>4}{'forwards':>9}{'ms':>8}  {head}"
        for level, each in own.items():
            yield (
                f"{level:16}{each['n']:4}{each['forwards']:9}{each['milliseconds']:8}  {percent(each['exact']):20}"
                f"{plain(each['similarity']):20}{plain(each['chrF'], 1):19}{percent(each['parses']):22}"
                f"{plain(each['similarity_over_low'])}"
            )
    for name, own in found["drafts"].items():
        yield f"\n{name}: a draft of one canvas, and after revisions that see all of it"
        for passes, each in own.items():
            gain = f"chrF {plain(each['gain'], 1)} over the first" if passes != "1" else ""
            yield f"{passes:>3} forwards  {plain(each['similarity']):20}{plain(each['chrF'], 1):20}{gain}"
    for name, own in found["repaired"].items():
        yield f"\n{name}: right tokens of true answers with wrong ones, before and after they were revised"
        for rate, each in own.items():
            before, after, gain = (percent(each[part]) for part in ("before", "after", "gain"))
            yield f"{rate:>5}  n {each['n']:3}  {before:22}{after:22}{gain}"


def percent(found: Sequence[float] | None) -> str:
    return "{:.1%} [{:.1%} {:.1%}]".format(*found) if found else ""


def plain(found: Sequence[float] | None, digits: int = 3) -> str:
    return " [".join(("{:.{d}f}", "{:.{d}f} {:.{d}f}]")).format(*found, d=digits) if found else ""


if __name__ == "__main__":
    main()
