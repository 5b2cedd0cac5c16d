"""Fits P(accept) and the bar of a model: `python -m mercury_training.calibrate --model NAME --set SET`.

Writes `confidence.json` beside the weights. Use other rows than those that the model is evaluated on: a set cut with
`mercury_training.evaluate.sets build --apart-from`. A fit to half of the rows is tested on the other half; then all of
them are used. The bar is the lowest at which four of five completions that it lets through are right as far as they go.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from mercury_engine import model_folders
from mercury_engine.api import Draft, Engine, Gap
from mercury_engine.decode import confidence
from mercury_engine.decode.answer import GapAnswer, Presentation
from mercury_engine.decode.choice import Choice
from mercury_engine.decode.confidence import Calibration, read_calibration
from mercury_engine.decode.costs import measure_costs
from mercury_engine.decode.decoding import DEFAULT_OPTIONS, DecodingOptions
from mercury_engine.engine import START_BAR, MercuryEngine, open_runtime
from mercury_engine.model.config import CALIBRATION_FILE, TOKENIZER_FILE
from mercury_engine.model.export import seal
from mercury_engine.model.runtime import Runtime
from mercury_engine.opening import check_layout, open_model
from mercury_engine.record import read_record
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_training.errors import TrainingError, reported
from mercury_training.evaluate.metrics import ece
from mercury_training.fit.logistic import newton, sigmoid
from mercury_training.progress import shown
from mercury_training.rows.fim_rows import FimRow, gap, read_rows, sample

RIDGE, HELD = 1.0, 100.0
"""The strength of the prior: of the defaults, and of the coefficients that a model has from other rows."""
LEAST_SPREAD = 0.3
DEFAULTS = Calibration()
LINES = 2.0
"""The weight of a line, blocks being 1: most typing continues a line."""
SHOWN_RIGHT = 0.8
"""The share of what is shown that has to be right as far as it goes."""
BARS = tuple(percent / 100 for percent in range(round(START_BAR * 100), 96))


class Observation(Struct, frozen=True):
    """The features of a prediction, whether it was right, and its weight; of an answer also its row and length."""

    features: tuple[float, ...]
    right: bool
    weight: float = 1.0
    row: str = ""
    characters: int = 0


JudgedStart = tuple[Observation, float]
"""A start of an answer, and the chance that it is right."""


class _RecordingCalibration(Calibration, frozen=True):
    """Replaces a calibration: records the features that it gets, and finds every answer unlikely."""

    latest: list[float] = field(default_factory=list)

    def p_accept(self, probabilities: Sequence[float], *, complete: bool) -> float:
        self.latest[:] = confidence.features(probabilities, complete=complete) if probabilities else ()
        return 0.0


class _RecordingPresentation(Presentation, frozen=True, kw_only=True):
    """Keeps the features and the texts of all starts of the latest answer."""

    recording: _RecordingCalibration
    observed: list[tuple[tuple[float, ...], str]] = field(default_factory=list)

    def show(
        self,
        answer: GapAnswer,
        choices: Sequence[Choice],
        options: DecodingOptions = DEFAULT_OPTIONS,
        bar: float = 0.0,
    ) -> Draft:
        starts = self.starts(answer, choices, len(options.forced.ids), complete=answer.completes(choices))
        self.observed[:] = [(tuple(self.recording.latest), start.text.rstrip()) for start in starts]
        return super().show(answer, choices, options, bar)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="mercury_training.calibrate", description=(__doc__ or "").split(":")[0])
    parser.add_argument("--model", required=True, metavar="NAME|FOLDER")
    parser.add_argument("--set", type=Path, required=True, metavar="DIR", help="a folder with a fim.jsonl")
    parser.add_argument("--limit", type=int, metavar="N", help="N rows, drawn at random, always the same")
    options = parser.parse_args(arguments)
    with reported("mercury_training.calibrate"):
        _calibrate(options.model, options.set, options.limit)


def _calibrate(name: str, folder: Path, limit: int | None) -> None:
    # no editor asks for a span that ends within a line
    rows = sample([row for row in read_rows(folder / "fim.jsonl") if row.kind != "random_span"], limit)
    if (model := model_folders.resolve(name)) is None:
        raise TrainingError(f"{name} has no weights: name an installed model or its folder")
    halves = rows[::2], rows[1::2]
    is_added = read_record(model) is not None
    if is_added:
        engine = open_model(model)
        fitting, held_out = (list(_added_observations(engine, half)) for half in halves)
    else:
        check_layout(model)
        runtime, tokenizer = open_runtime(model), Tokenizer.load(model / TOKENIZER_FILE)
        fitting, held_out = (list(answer_observations(runtime, tokenizer, half)) for half in halves)
    if not fitting or not held_out:
        raise TrainingError(f"{folder}: {len(rows)} rows are too few; name a larger set")
    fitted = read_calibration(model)
    before, ridge = fitted or (confidence.UNCALIBRATED if is_added else DEFAULTS), HELD if fitted else RIDGE
    print(report(fitting, held_out, before, ridge))
    sides = ((fitting, held_out), (held_out, fitting))
    judged = [pair for fit, others in sides for pair in _judged(fit_confidence(fit, before, ridge), others)]
    bar = fit_bar(judged)
    print(f"bar {bar}: {shown_at(bar, judged)}")
    _write(model, replace(fit_confidence([*fitting, *held_out], before, ridge), bar=bar))
    if not is_added:
        seal(model)


def answer_observations(runtime: Runtime, tokenizer: Tokenizer, rows: Sequence[FimRow]) -> Iterator[Observation]:
    """The starts of whole words of each row's answer while typing, and whether they are right as far as they go. The
    weight of a row grows with the root of their number, since they are alike."""
    recording = _RecordingCalibration()
    watched = _RecordingPresentation(tokenizer, recording, 1.0, recording=recording)
    engine = MercuryEngine(runtime, tokenizer, costs=measure_costs(runtime), bar=1.0, presentation=watched)
    for row in shown("answers", rows):
        _answer(engine, replace(gap(row, row.id, "low"), invoked=False))
        starts = {text: features for features, text in reversed(watched.observed) if text and features}
        weight = (LINES if row.kind == "single_line" else 1.0) / max(1, len(starts)) ** 0.5
        for text, features in starts.items():
            yield Observation(features, row.middle.startswith(text), weight, row.id, len(text))


def _added_observations(engine: Engine, rows: Sequence[FimRow]) -> Iterator[Observation]:
    """Each row's answer while typing as it grows, and whether it is right as far as it goes; weighted alike."""
    for row in shown("answers", rows):
        drafts = _answer(engine, gap(row, row.id, "medium"))
        distinct = {draft.text.rstrip(): draft for draft in drafts if draft.text.strip() and draft.confidence}
        weight = (LINES if row.kind == "single_line" else 1.0) / max(1, len(distinct)) ** 0.5
        for text, draft in distinct.items():
            features = tuple(confidence.features(draft.confidence, complete=draft.complete))
            yield Observation(features, row.middle.startswith(text), weight, row.id, len(text))


def _answer(engine: Engine, question: Gap) -> list[Draft]:
    """Its drafts once all of the context is read, however slow the machine is."""
    for _ in engine.warm(question):
        pass
    return [*engine.fill(question)]


def fit_confidence(
    observations: Sequence[Observation], before: Calibration = DEFAULTS, ridge: float = RIDGE
) -> Calibration:
    """Fit the confidence, regularised towards the previous coefficients, which a few rows hardly change, each in
    units of its feature's spread; those of rewrites stay. Without the mean and the number of the tokens, by which no
    more keys were saved (docs/log/2026-Q4.md)."""
    before = replace(before, mean=0.0, length=0.0)
    with_bias = [replace(observation, features=_fitted(observation.features)) for observation in observations]
    spread = np.maximum(_table(with_bias)[0].std(axis=0), LEAST_SPREAD)
    scaled = [replace(observation, features=tuple(observation.features / spread)) for observation in with_bias]
    weights = np.array(list(_fit(scaled, spread * before.weights, ridge))) / spread
    return Calibration(*(round(float(weight), 4) for weight in weights), bar=before.bar, rewriting=before.rewriting)


def _fitted(features: Sequence[float]) -> tuple[float, ...]:
    _, least, _, *others = features
    return 1.0, 0.0, least, 0.0, *others


class Shown(Struct, frozen=True):
    """Of so many `rows` what is shown, and how often that is `right` as far as it goes."""

    rows: int
    shown: int
    right: int

    @property
    def share_right(self) -> float:
        return self.right / self.shown if self.shown else 1.0

    def __str__(self) -> str:
        right = f", of which {self.share_right:.0%} are right" if self.shown else ""
        return f"{self.shown} of {self.rows} rows get a completion{right}"


def fit_bar(judged: Sequence[JudgedStart]) -> float:
    """The lowest bar above which enough of what is shown is right."""
    return next((bar for bar in BARS if shown_at(bar, judged).share_right >= SHOWN_RIGHT), BARS[-1])


def shown_at(bar: float, judged: Sequence[JudgedStart]) -> Shown:
    """What is shown of starts with these chances: as `Presentation` has it, the one that saves most."""
    rows: dict[str, list[JudgedStart]] = {}
    for start in judged:
        rows.setdefault(start[0].row, []).append(start)
    likely = ([start for start in starts if start[1] >= bar] for starts in rows.values())
    chosen = [max(starts, key=lambda start: start[1] * start[0].characters)[0] for starts in likely if starts]
    return Shown(len(rows), len(chosen), sum(start.right for start in chosen))


def _judged(calibration: Calibration, observations: Sequence[Observation]) -> Iterator[JudgedStart]:
    for observation in observations:
        yield observation, float(sigmoid(np.dot(calibration.weights, (1.0, *observation.features))))


def report(
    fitting: Sequence[Observation],
    held_out: Sequence[Observation],
    before: Calibration = DEFAULTS,
    ridge: float = RIDGE,
) -> str:
    """The calibration fitted on some rows and applied to others, compared with the previous one."""
    right = [observation.right for observation in held_out]
    lines = [f"{len(fitting) + len(held_out)} answers, {sum(right) + sum(answer.right for answer in fitting)} right"]
    for name, calibration in (("before", before), ("fitted", fit_confidence(fitting, before, ridge))):
        chances = [chance for _, chance in _judged(calibration, held_out)]
        lines.append(f"{name}: expected calibration error {ece(chances, right):.3f} on {len(held_out)} answers")
    return "\n".join(lines)


def _fit(observations: Sequence[Observation], prior: Sequence[float], ridge: float = RIDGE) -> Iterator[float]:
    inputs, right = _table(observations)
    counts = np.array([observation.weight for observation in observations])
    return (float(weight) for weight in newton(inputs, right, np.array(prior), ridge, counts))


def _table(observations: Sequence[Observation]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([observation.features for observation in observations]), np.array(
        [observation.right for observation in observations], float
    )


def _write(folder: Path, calibration: Calibration) -> None:
    (folder / CALIBRATION_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(calibration), indent=1) + b"\n")
    print(f"{folder / CALIBRATION_FILE}: {calibration}", file=sys.stderr)


if __name__ == "__main__":
    main()
