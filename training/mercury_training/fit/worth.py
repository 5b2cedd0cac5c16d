"""Fit what a model's word on edits counts, and write that beside its weights.

python -m mercury_training.fit.worth OPINIONS.jsonl --model FOLDER [--ranking mercury_ls/next_edit/ranking.json]

The rows are edits with the model's opinion, as `bench.edit_candidates --engine FOLDER` writes them; best of whole
files, for which the ranking's chances hold. `--ranking` is what the server ranks edits by; with it, and enough rows in
which nothing is due, the least chance of what is shown is found. Where half of the rows do not tell more of the other
half than a cautious guess does, the guess stands: the ranking says what is shown, and the model is not waited for.
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
from mercury_training.fit.rank_edits import Candidate, bar_for, candidates_in, due_chances, log_odds, read

__all__ = ["fit_bar", "fit_worth", "main", "tells_more"]

RIDGE = 10.0
SURE = 0.95
LEAST_SILENT = 300
COEFFICIENTS = 7
TELLING = 0.002
"""Nats by which an opinion must become less surprising for a model to be listened to."""


class Due(Struct, frozen=True):
    """Of a ranking, what tells whether anything is due."""

    due: dict[str, float] = {}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("opinions", type=Path)
    parser.add_argument("--model", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--ranking", type=Path)
    given = parser.parse_args(arguments)
    rows = read(given.opinions)
    due = msgspec.json.decode(given.ranking.read_bytes(), type=Due).due if given.ranking else {}
    opinions = candidates_in(rows)
    fitted = fit_worth(opinions)
    heard = tells_more(opinions)
    found = (
        replace(fitted, bar=fit_bar(rows, fitted, due)) if heard else replace(RescoringWeights(), surest=fitted.surest)
    )
    write_fitted(given.model, RESCORING_FILE, found)
    seal(given.model)
    said = "its word counts" if heard else "its word tells nothing that the ranking does not know"
    print(f"{given.model / RESCORING_FILE}, from {len(opinions)} opinions: {said}: {found}")


def fit_worth(opinions: Sequence[Candidate]) -> RescoringWeights:
    """How the chances of the ranking and of the model are joined; the guess, as far as nothing speaks against it."""
    if not opinions:
        return RescoringWeights()
    guess = np.array(astuple(RescoringWeights())[:COEFFICIENTS])
    inputs = np.array([said(each) for each in opinions])
    weights = newton(inputs, np.array([each.right for each in opinions], float), guess, RIDGE)
    surest = np.quantile([each.p_model or 0.0 for each in opinions], SURE)
    return RescoringWeights(*(round(float(weight), 3) for weight in weights), surest=round(float(surest), 3))


def tells_more(opinions: Sequence[Candidate]) -> bool:
    """Whether what is fitted to the one half of the rows says more of the other half than the guess, both ways."""
    halves = [[each for each in opinions if each.row % 2 == half] for half in (0, 1)]
    if not all(halves):
        return False
    return all(
        surprise(RescoringWeights(), judged) - surprise(fit_worth(fitting), judged) > TELLING
        for fitting, judged in (halves, halves[::-1])
    )


def surprise(worth: RescoringWeights, opinions: Sequence[Candidate]) -> float:
    """Nats an opinion."""
    scores = np.array([said(each) for each in opinions]) @ np.array(astuple(worth)[:COEFFICIENTS])
    return float(np.mean(np.logaddexp(0, scores) - np.array([each.right for each in opinions]) * scores))


def fit_bar(rows: Sequence[Candidate], worth: RescoringWeights, due: dict[str, float]) -> float | None:
    """The least chance at which rows in which nothing is due keep quiet; None where too few are there to tell."""
    found, silent = candidates_in(rows), len({each.row for each in rows if each.row_kind == "none"})
    if silent < LEAST_SILENT:
        return None
    weights = np.array(astuple(worth)[:COEFFICIENTS])
    chance = sigmoid(np.array([said(each) for each in found]) @ weights)
    chance *= due_chances(due, found, np.array([each.p_edit for each in found]))
    # Its own edits are shown, unlike the places that it was asked about.
    return bar_for([replace(each, kind="own") for each in found], chance, silent)


def said(opinion: Candidate) -> list[float]:
    """In the order of the coefficients."""
    ranked, model, own = log_odds(opinion.p_edit), log_odds(opinion.p_model or 0.0), float(opinion.agreement == 0)
    return [1.0, ranked, model, opinion.agreement, own, own * ranked, own * model]


if __name__ == "__main__":
    main()
