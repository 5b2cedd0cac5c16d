"""Fits how likely an answer is to be right: `python -m mercury_training.calibrate --model FOLDER --set DIR`.

Writes `confidence.json` beside the weights. The rows are asked as they are when a model is evaluated, so they must be
other rows than those: a set cut with `evaluation_sets build --apart-from`. Half of them fit, the other half tells how
well that works; then all of them fit what is written.
"""

import argparse
import random
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from mercury_engine.confidence import CALIBRATION_FILE, Calibration, features
from mercury_engine.engine import BAR, TOKENIZER_FILE, MercuryEngine, open_runtime
from mercury_engine.export import seal
from mercury_engine.policy import calibrate as measure_costs
from mercury_engine.tokenizer import Tokenizer
from mercury_training.fim_rows import FimRow, read_rows, request
from mercury_training.logistic import newton
from mercury_training.metrics import ece, exact

__all__ = ["Observation", "fit", "main", "observe"]

RIDGE = 1.0
SEED = 0


class Observation(Struct, frozen=True):
    """What an answer looked like, and whether it was what stood there."""

    features: tuple[float, float, float, float]
    right: bool


class Watching:
    """Stands where a calibration stands: sees what it would judge, and finds everything unlikely."""

    def __init__(self) -> None:
        self.seen: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    def p_accept(self, probabilities: Sequence[float], *, complete: bool) -> float:
        if probabilities:
            self.seen = features(probabilities, complete=complete)
        return 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="mercury_training.calibrate", description=__doc__.split(":")[0])
    parser.add_argument("--model", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--set", type=Path, required=True, metavar="DIR", help="a folder with a fim.jsonl")
    parser.add_argument("--limit", type=int, metavar="N", help="N rows, drawn at random, always the same")
    options = parser.parse_args(arguments)
    rows = read_rows(options.set / "fim.jsonl")
    rows = random.Random(SEED).sample(rows, len(rows))[: options.limit]
    found = list(observe(options.model, rows))
    print(report(found))
    write(options.model, fit(found))


def observe(model: Path, rows: Iterable[FimRow]) -> Iterable[Observation]:
    """Each row's whole answer, and the beginning of it that is shown where the whole is unlikely."""
    runtime, tokenizer, watching = open_runtime(model), Tokenizer.load(model / TOKENIZER_FILE), Watching()
    costs = measure_costs(runtime)
    engines = {bar: MercuryEngine(runtime, tokenizer, calibration=watching, costs=costs, bar=bar) for bar in (0.0, BAR)}
    for row in rows:
        texts = []
        for bar, engine in engines.items():
            *_, last = engine.infill(request(row, f"{bar} {row.id}", "medium"))
            text = last.spans[0].text
            if text and text not in texts:
                right = exact(text, row.middle) if last.spans[0].complete else row.middle.startswith(text)
                yield Observation(watching.seen, right)
            texts.append(text)


def fit(observations: Sequence[Observation]) -> Calibration:
    """Held back towards the defaults, which few rows leave as they are."""
    inputs = np.array([[1.0, *each.features] for each in observations])
    right = np.array([each.right for each in observations], float)
    weights = newton(inputs, right, np.array(msgspec.structs.astuple(Calibration())), RIDGE)
    return Calibration(*(round(float(weight), 4) for weight in weights))


def report(observations: Sequence[Observation]) -> str:
    """Fitted on the one half and applied to the other, beside the defaults."""
    fitting, judged = observations[::2], observations[1::2]
    right = [each.right for each in judged]
    lines = [f"{len(observations)} answers, {sum(each.right for each in observations)} right"]
    for name, calibration in (("defaults", Calibration()), ("fitted", fit(fitting))):
        chances = [_chance(calibration, each) for each in judged]
        lines.append(f"{name}: expected calibration error {ece(chances, right):.3f} on {len(judged)} answers")
    return "\n".join(lines)


def write(model: Path, calibration: Calibration) -> None:
    path = model / CALIBRATION_FILE
    path.write_bytes(msgspec.json.format(msgspec.json.encode(calibration), indent=1) + b"\n")
    seal(model)
    print(f"{path}: {calibration}", file=sys.stderr)


def _chance(calibration: Calibration, observation: Observation) -> float:
    weights = np.array(msgspec.structs.astuple(calibration))
    return float(1 / (1 + np.exp(-(weights @ [1.0, *observation.features]))))


if __name__ == "__main__":
    main()
