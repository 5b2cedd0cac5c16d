"""Fit the ranking of next edits: P(the author makes this edit) from what is known of it, by logistic regression.

python -m mercury_training.rank_edits TRAIN.jsonl HELD_OUT.jsonl --out mercury_ls/ranking.json [--checked ROWS.jsonl]
                                       [--known RANKING.json]

The rows are candidates as `bench.edit_candidates` writes them. The bar is the least probability at which the
held-out rows that expect no edit stay silent often enough. `--checked` are rows with a model's opinion (`--engine`):
from them it is learned how much the model's word counts; without them a cautious guess stands, and the file says so.
`--known` is an earlier ranking, fitted on other rows: where these say little, its weights stay.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from mercury_training.logistic import newton, sigmoid

__all__ = ["Candidate", "Fit", "area", "bar_for", "candidates_in", "fit", "fit_check", "log_loss", "predict", "read"]

RIDGE = 1.0
QUIET = 0.955
MODEL_FREE = frozenset({"call", "line"})
"""Kinds that say where and not what: without a model they show nothing."""
GUESS = {"bias": 0.0, "ranked": 1.0, "model": 0.0, "agreement": 0.25, "own": -1.0, "own ranked": -0.5, "own model": 0.9}
"""How a model's word counts until it is known: a weak one must not silence the rules. `own` is by what its own edits
differ from those that a rule proposes."""
CHECK_RIDGE = 10.0
UNSEEN = {"diagnosed": 3.0, "line diagnosed": 1.5}
"""What the weights of complaints of language servers are: history has none, so that nothing can be learned."""


class Candidate(Struct, frozen=True):
    row: int
    row_kind: str
    kind: str
    features: dict[str, float]
    right: bool
    exact: bool = False
    p_edit: float = 0.0
    p_model: float | None = None
    agreement: float = 0.0


class Fit(Struct, frozen=True):
    """Intercepts by kind and weights by feature."""

    kinds: dict[str, float]
    weights: dict[str, float]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("train", type=Path)
    arguments.add_argument("held_out", type=Path)
    arguments.add_argument("--checked", type=Path)
    arguments.add_argument("--known", type=Path)
    arguments.add_argument("--out", type=Path, required=True)
    given = arguments.parse_args()
    train, held_out = candidates_in(read(given.train)), read(given.held_out)
    silent = len({each.row for each in held_out if each.row_kind == "none"})
    held_out = candidates_in(held_out)
    found = fit(train, known=msgspec.json.decode(given.known.read_bytes(), type=Fit) if given.known else None)
    checked = read(given.checked) if given.checked else []
    report = {
        "method": "logistic regression on edits proposed in commits; bar and figures are of held-out projects",
        "silent rows kept quiet at the bar": QUIET,
        "opinions of a model": len(checked),
        **measured(train, held_out, found),
    }
    check = fit_check(candidates_in(checked))
    bars = {"bar": bar_for(held_out, predict(found, held_out), silent), "checked_bar": checked_bar(checked, check)}
    for name, value in report.items():
        print(f"{name}: {value}")
    written = {**rounded(found), "check": check, **bars, "fitted": report}
    given.out.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")


def read(path: Path) -> list[Candidate]:
    decoder = msgspec.json.Decoder(Candidate)
    with path.open("rb") as lines:
        return [decoder.decode(line) for line in lines]


def candidates_in(rows: Sequence[Candidate]) -> list[Candidate]:
    """Without the marks of rows that have none."""
    return [each for each in rows if each.kind != "nothing"]


def fit(candidates: Sequence[Candidate], ridge: float = RIDGE, known: Fit | None = None) -> Fit:
    """By Newton's method. The ridge keeps what was hardly seen near nothing, or near what is known of it."""
    kinds = sorted({each.kind for each in candidates})
    names = sorted({name for each in candidates for name in each.features})
    inputs, right = matrix(candidates, kinds, names), np.array([each.right for each in candidates], float)
    known = known or Fit({}, {})
    prior = [*(known.kinds.get(kind, 0.0) for kind in kinds), *(known.weights.get(name, 0.0) for name in names)]
    weights = newton(inputs, right, np.array(prior), ridge)
    return Fit(
        dict(zip(kinds, weights[: len(kinds)].tolist(), strict=True)),
        dict(zip(names, weights[len(kinds) :].tolist(), strict=True)),
    )


def fit_check(opinions: Sequence[Candidate]) -> dict[str, float]:
    """How the chances of the ranking and of the model are joined; the guess, as far as nothing speaks against it."""
    guess = np.array(list(GUESS.values()))
    if not opinions:
        return GUESS
    inputs = np.array([said(each) for each in opinions])
    weights = newton(inputs, np.array([each.right for each in opinions], float), guess, CHECK_RIDGE)
    return {name: round(float(value), 3) for name, value in zip(GUESS, weights, strict=True)}


def said(opinion: Candidate) -> list[float]:
    """In the order of the guess."""
    ranked, model, own = log_odds(opinion.p_edit), log_odds(opinion.p_model or 0.0), float(opinion.agreement == 0)
    return [1.0, ranked, model, opinion.agreement, own, own * ranked, own * model]


def log_odds(probability: float) -> float:
    """Bounded as the ranking bounds it."""
    bounded = min(max(probability, 0.001), 0.999)
    return float(np.log(bounded / (1 - bounded)))


def predict(found: Fit, candidates: Sequence[Candidate]) -> np.ndarray:
    """A kind or feature that the fit has not seen says nothing."""
    kinds, names = list(found.kinds), list(found.weights)
    weights = np.array([*found.kinds.values(), *found.weights.values()])
    return sigmoid(matrix(candidates, kinds, names) @ weights)


def matrix(candidates: Sequence[Candidate], kinds: Sequence[str], names: Sequence[str]) -> np.ndarray:
    column = {name: at for at, name in enumerate([*(("kind", kind) for kind in kinds), *names])}
    inputs = np.zeros((len(candidates), len(column)))
    for at, each in enumerate(candidates):
        if ("kind", each.kind) in column:
            inputs[at, column["kind", each.kind]] = 1.0
        for name, value in each.features.items():
            if name in column:
                inputs[at, column[name]] = value
    return inputs


def log_loss(chance: np.ndarray, right: np.ndarray) -> float:
    chance = np.clip(chance, 1e-6, 1 - 1e-6)
    return float(-np.mean(np.where(right, np.log(chance), np.log(1 - chance))))


def area(chance: np.ndarray, right: np.ndarray) -> float | None:
    """The chance that a right candidate ranks above a wrong one; None where there is only one sort."""
    order = np.argsort(chance, kind="stable")
    ranks = np.empty(len(order))
    ranks[order] = np.arange(1, len(order) + 1)
    positive = int(right.sum())
    negative = len(right) - positive
    if not positive or not negative:
        return None
    return float((ranks[right].sum() - positive * (positive + 1) / 2) / (positive * negative))


def bar_for(candidates: Sequence[Candidate], chance: np.ndarray, silent: int) -> float:
    """The lowest bar at which enough of the `silent` rows keep quiet; those without a candidate do so anyway."""
    best: dict[int, float] = {}
    for each, p in zip(candidates, chance, strict=True):
        if each.row_kind == "none" and each.kind not in MODEL_FREE:
            best[each.row] = max(best.get(each.row, 0.0), float(p))
    loudest = sorted(best.values(), reverse=True)
    allowed = int((1 - QUIET) * silent)
    return round(loudest[allowed] + 1e-3, 3) if allowed < len(loudest) else 0.0


def checked_bar(opinions: Sequence[Candidate], check: dict[str, float]) -> float | None:
    """The same for what a model has checked or written; None where there is none."""
    found = candidates_in(opinions)
    if not found:
        return None
    weights = np.array([check[name] for name in GUESS])
    chance = sigmoid(np.array([said(each) for each in found]) @ weights)
    # Its own edits are shown, unlike the places that it was asked about.
    shown = [replace(each, kind="own") for each in found]
    return bar_for(shown, chance, len({each.row for each in opinions if each.row_kind == "none"}))


def measured(train: Sequence[Candidate], held_out: Sequence[Candidate], found: Fit) -> dict:
    report: dict = {"train candidates": len(train), "held-out candidates": len(held_out), "ridge": RIDGE}
    right = np.array([each.right for each in held_out])
    chance = predict(found, held_out)
    for name, chosen in groups(held_out):
        report[f"held-out {name}"] = {
            "n": int(chosen.sum()),
            "right": round(float(right[chosen].mean()), 3),
            "log loss": round(log_loss(chance[chosen], right[chosen]), 4),
            "area": rounded_or_none(area(chance[chosen], right[chosen])),
        }
    return report


def rounded_or_none(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def groups(candidates: Sequence[Candidate]) -> Iterator[tuple[str, np.ndarray]]:
    kinds = np.array([each.kind for each in candidates])
    yield "all but line", kinds != "line"
    for kind in sorted(set(kinds.tolist())):
        yield kind, kinds == kind


def rounded(found: Fit) -> dict[str, dict[str, float]]:
    return {
        "kinds": {name: round(value, 3) for name, value in found.kinds.items()},
        "weights": {**{name: round(value, 3) for name, value in found.weights.items()}, **UNSEEN},
    }


if __name__ == "__main__":
    main()
