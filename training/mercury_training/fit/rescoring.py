"""Fits how likely the edits are that a model writes, and writes that beside its weights.

python -m mercury_training.fit.rescoring WRITTEN.jsonl --model FOLDER [--ranking mercury_ls/next_edit/ranking.json]

The rows are edits that the model wrote, as `bench.edit_candidates --engine FOLDER` writes them, preferably of
whole files, for which the ranking is calibrated. `--ranking` is the server's ranking; with it, and with enough rows in
which nothing is due, the threshold for showing an edit is fitted, too. If a fit to half of the rows does not predict
the other half better than the cautious defaults do, the defaults stay.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import astuple, replace

from mercury_engine.api import RescoringWeights
from mercury_engine.model.export import seal
from mercury_engine.model.fitted import RESCORING_FILE, write_fitted
from mercury_training.fit.logistic import newton, sigmoid
from mercury_training.fit.rank_edits import LabelledEdit, bar_for, candidates_in, due_chances, log_odds, read

RIDGE = 10.0
SUREST_QUANTILE = 0.95
LEAST_SILENT = 300
COEFFICIENTS = 6
MIN_GAIN = 0.002
"""Nats that the fit must save per edit, on average, for the fit to count."""


class _Due(Struct, frozen=True):
    """The part of a ranking that decides whether any edit is due."""

    due: dict[str, float] = {}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("written", type=Path)
    parser.add_argument("--model", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--ranking", type=Path)
    options = parser.parse_args(arguments)
    rows = read(options.written)
    due = msgspec.json.decode(options.ranking.read_bytes(), type=_Due).due if options.ranking else {}
    edits = candidates_in(rows)
    fitted = fit_rescoring(edits)
    better = predicts_better(edits)
    found = (
        replace(fitted, bar=fit_bar(rows, fitted, due)) if better else replace(RescoringWeights(), surest=fitted.surest)
    )
    write_fitted(options.model, RESCORING_FILE, found)
    seal(options.model)
    verdict = "fitted" if better else "the defaults, since a fit does not predict other rows better"
    print(f"{options.model / RESCORING_FILE}, from {len(edits)} edits: {verdict}: {found}")


def fit_rescoring(edits: Sequence[LabelledEdit]) -> RescoringWeights:
    """The weights that join the probabilities of the ranking and of the model, regularised towards the defaults."""
    if not edits:
        return RescoringWeights()
    prior = np.array(astuple(RescoringWeights())[:COEFFICIENTS])
    inputs = np.array([feature_vector(edit) for edit in edits])
    weights = newton(inputs, np.array([edit.right for edit in edits], float), prior, RIDGE)
    surest = np.quantile([edit.p_model or 0.0 for edit in edits], SUREST_QUANTILE)
    return RescoringWeights(*(round(float(weight), 3) for weight in weights), surest=round(float(surest), 3))


def predicts_better(edits: Sequence[LabelledEdit]) -> bool:
    """Whether a fit to either half of the rows predicts the other half better than the defaults do."""
    halves = [[edit for edit in edits if edit.row % 2 == half] for half in (0, 1)]
    if not all(halves):
        return False
    return all(
        _cross_entropy(RescoringWeights(), judged) - _cross_entropy(fit_rescoring(fitting), judged) > MIN_GAIN
        for fitting, judged in (halves, halves[::-1])
    )


def _cross_entropy(fitted: RescoringWeights, edits: Sequence[LabelledEdit]) -> float:
    """Mean cross entropy, in nats."""
    scores = np.array([feature_vector(edit) for edit in edits]) @ np.array(astuple(fitted)[:COEFFICIENTS])
    return float(np.mean(np.logaddexp(0, scores) - np.array([edit.right for edit in edits]) * scores))


def fit_bar(rows: Sequence[LabelledEdit], fitted: RescoringWeights, due: dict[str, float]) -> float | None:
    """The lowest probability at which enough rows without an edit due stay quiet; None if there are too few of them."""
    candidates, silent = candidates_in(rows), len({row.row for row in rows if row.row_kind == "none"})
    if silent < LEAST_SILENT:
        return None
    weights = np.array(astuple(fitted)[:COEFFICIENTS])
    chance = sigmoid(np.array([feature_vector(candidate) for candidate in candidates]) @ weights)
    chance *= due_chances(due, candidates, np.array([candidate.p_edit for candidate in candidates]))
    # Edits that the model proposes are shown, unlike places that it was only asked about.
    return bar_for([replace(candidate, kind="own") for candidate in candidates], chance, silent)


def feature_vector(edit: LabelledEdit) -> list[float]:
    """The features of an edit that the model wrote, in the order of the coefficients."""
    ranked, model = log_odds(edit.p_edit), log_odds(edit.p_model or 0.0)
    return [1.0, ranked, model, 1.0, ranked, model]


if __name__ == "__main__":
    main()
