"""Fits the ranking of next edits: P(the author makes this edit) from its features, by logistic regression.

python -m bench.edit_candidates CORPUS/edits.jsonl.xz windows.jsonl --balanced --every 16
python -m bench.edit_candidates CORPUS/edits.jsonl.xz files.jsonl --balanced --every 97 --mirrors MIRRORS
python -m bench.edit_candidates SETS/next_edit.jsonl held_out.jsonl
python -m mercury_training.fit.rank_edits windows.jsonl files.jsonl held_out.jsonl \
                                      --known mercury_ls/next_edit/ranking.json \
                                      --out mercury_ls/next_edit/ranking.json

The bar is the lowest probability at which enough of the held-out rows (of the last file) without an edit due stay
silent, and what is complete, less what is not, comes to nearly the most that it can. `--known` is an earlier ranking,
fitted on other rows: its weights stay for whatever these rows lack.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from mercury_training import jsonl
from mercury_training.fit.logistic import newton, sigmoid

RIDGE = 1.0
KNOWN_RIDGE = 200.0
"""By the held-out log loss any value from 60 to 10,000 is as good, if the earlier fit saw ten times as many rows."""
QUIET = 0.95
NEARLY = 0.93
"""From .9 to .97 development rows are served about as well: the lower, the more is shown."""
MODEL_FREE = frozenset({"call"})
"""Kinds that know where an edit is due but not its text: without a model they show nothing."""
RARE = {"align": 1.5}
"""Intercepts of kinds that are too rare to fit, until there are enough rows."""
LEADING = 0.1
DUE_RIDGE = 30.0
MADE = frozenset({"first", "import", "rename", "signature"})
"""Synthetic rows, in all of which an edit is due."""


class LabelledEdit(Struct, frozen=True):
    """One candidate, or "nothing" for a row without any: its row, its features, whether the author made this edit,
    and whether it alone completes a line as the author did."""

    row: int
    row_kind: str
    kind: str
    features: dict[str, float]
    right: bool
    exact: bool = False


class Fit(Struct, frozen=True):
    """Intercepts by kind and weights by feature."""

    kinds: dict[str, float]
    weights: dict[str, float]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("train", type=Path, nargs="+")
    arguments.add_argument("held_out", type=Path)
    arguments.add_argument("--known", type=Path)
    arguments.add_argument("--out", type=Path, required=True)
    options = arguments.parse_args()
    train, held_out = candidates_in(joined(map(read, options.train))), read(options.held_out)
    silent = len({candidate.row for candidate in held_out if candidate.row_kind == "none"})
    held_out = candidates_in(held_out)
    fitted = fit(
        train,
        before=unseen(msgspec.json.decode(options.known.read_bytes(), type=Fit), train) if options.known else None,
    )
    report = {
        "method": "logistic regression on edits proposed in commits; bar and figures are of held-out projects",
        "silent rows kept quiet at the bar": QUIET,
        **_measured(train, held_out, fitted),
    }
    due = fit_due(train, predict(fitted, train))
    worth = predict(fitted, held_out) * due_chances(due, held_out, predict(fitted, held_out))
    for name, value in report.items():
        print(f"{name}: {value}")
    bar = max(bar_for(held_out, worth, silent), paying_bar(held_out, worth))
    known = json.loads(options.known.read_bytes()) if options.known else {}
    parameters = {**_rounded(fitted), "due": due, "opinion": known.get("opinion", {}), "bar": bar, "fitted": report}
    options.out.write_text(json.dumps(parameters, indent=2) + "\n", encoding="utf-8")


def read(path: Path) -> list[LabelledEdit]:
    return list(jsonl.read(path, LabelledEdit))


def joined(files: Iterable[Sequence[LabelledEdit]]) -> list[LabelledEdit]:
    """The candidates of several files, with row numbers made distinct."""
    candidates: list[LabelledEdit] = []
    for rows in files:
        first = candidates[-1].row + 1 if candidates else 0
        candidates += [replace(row, row=first + row.row) for row in rows]
    return candidates


def unseen(fitted: Fit, rows: Sequence[LabelledEdit]) -> Fit:
    """The part of an earlier fit on kinds that these rows lack, and on features that are 0 in all of them."""
    kinds = {row.kind for row in rows}
    kinds_left = {kind: value for kind, value in fitted.kinds.items() if kind not in kinds}
    largest = {name: max(abs(row.features.get(name, 0.0)) for row in rows) for name in fitted.weights}
    names = {name for row in rows for name in row.features}
    return Fit(
        kinds_left,
        {
            name: value
            for name, value in fitted.weights.items()
            if not largest[name] and (name in names or name.startswith(tuple(f"{kind} " for kind in kinds_left)))
        },
    )


def candidates_in(rows: Sequence[LabelledEdit]) -> list[LabelledEdit]:
    """Without the markers of rows that have no candidate."""
    return [row for row in rows if row.kind != "nothing"]


def fit(candidates: Sequence[LabelledEdit], ridge: float = RIDGE, before: Fit | None = None) -> Fit:
    """Fit the weights. The ridge keeps weights of rare features near zero; a higher one keeps known weights near
    their value."""
    before = Fit({**RARE, **before.kinds}, before.weights) if before else Fit(RARE, {})
    kinds = sorted({candidate.kind for candidate in candidates} | before.kinds.keys())
    names = sorted({name for candidate in candidates for name in candidate.features} | before.weights.keys())
    inputs, right = _matrix(candidates, kinds, names), np.array([candidate.right for candidate in candidates], float)
    priors = [*map(before.kinds.get, kinds), *map(before.weights.get, names)]
    prior = np.array([prior_value or 0.0 for prior_value in priors])
    # Scaling the inputs gives each weight its own ridge.
    ridges = np.sqrt([ridge if prior_value is None else max(ridge, KNOWN_RIDGE) for prior_value in priors])
    weights = newton(inputs / ridges, right, prior * ridges, 1.0) / ridges
    return Fit(
        dict(zip(kinds, weights[: len(kinds)].tolist(), strict=True)),
        dict(zip(names, weights[len(kinds) :].tolist(), strict=True)),
    )


def fit_due(candidates: Sequence[LabelledEdit], chance: np.ndarray) -> dict[str, float]:
    """Whether any edit is due, fitted on the likeliest edit of each row in which one is somewhat likely."""
    best: dict[int, int] = {}
    for at, candidate in enumerate(candidates):
        is_ranked = candidate.kind not in MODEL_FREE and candidate.row_kind not in MADE
        if is_ranked and chance[at] >= chance[best.get(candidate.row, at)]:
            best[candidate.row] = at
    leading = [at for at in best.values() if chance[at] > LEADING]
    if not leading:
        return {}
    leaders = [candidates[at] for at in leading]
    names = sorted({name for leader in leaders for name in _due_inputs(leader, 0.5)})
    inputs = np.array([_due_row(leader, p, names) for leader, p in zip(leaders, chance[leading], strict=True)])
    is_due = np.array([leader.row_kind != "none" for leader in leaders], float)
    weights = newton(inputs, is_due, np.zeros(len(names)), DUE_RIDGE)
    return {name: round(float(value), 3) for name, value in zip(names, weights, strict=True)}


def due_chances(due: dict[str, float], candidates: Sequence[LabelledEdit], chance: np.ndarray) -> np.ndarray:
    names, weights = list(due), np.array(list(due.values()))
    rows = [_due_row(candidate, p, names) for candidate, p in zip(candidates, chance, strict=True)]
    return sigmoid(np.array(rows).reshape(len(rows), len(names)) @ weights) if due else np.ones(len(candidates))


def _due_row(candidate: LabelledEdit, chance: float, names: Sequence[str]) -> list[float]:
    inputs = _due_inputs(candidate, chance)
    return [inputs.get(name, 0.0) for name in names]


def _due_inputs(candidate: LabelledEdit, chance: float) -> dict[str, float]:
    """The inputs as the ranking computes them."""
    return {"bias": 1.0, "ranked": log_odds(chance), **candidate.features}


def log_odds(probability: float) -> float:
    """The log odds, bounded as the ranking bounds them."""
    bounded = min(max(probability, 0.001), 0.999)
    return float(np.log(bounded / (1 - bounded)))


def predict(fitted: Fit, candidates: Sequence[LabelledEdit]) -> np.ndarray:
    """The predictions; kinds and features that the fit has not seen are ignored."""
    kinds, names = list(fitted.kinds), list(fitted.weights)
    weights = np.array([*fitted.kinds.values(), *fitted.weights.values()])
    return sigmoid(_matrix(candidates, kinds, names) @ weights)


def _matrix(candidates: Sequence[LabelledEdit], kinds: Sequence[str], names: Sequence[str]) -> np.ndarray:
    column = {name: at for at, name in enumerate([*(("kind", kind) for kind in kinds), *names])}
    inputs = np.zeros((len(candidates), len(column)))
    for at, candidate in enumerate(candidates):
        if ("kind", candidate.kind) in column:
            inputs[at, column["kind", candidate.kind]] = 1.0
        for name, value in candidate.features.items():
            if name in column:
                inputs[at, column[name]] = value
    return inputs


def _log_loss(chance: np.ndarray, right: np.ndarray) -> float:
    chance = np.clip(chance, 1e-6, 1 - 1e-6)
    return float(-np.mean(np.where(right, np.log(chance), np.log(1 - chance))))


def area(chance: np.ndarray, right: np.ndarray) -> float | None:
    """The area under the ROC curve; None unless there are right and wrong candidates."""
    order = np.argsort(chance, kind="stable")
    ranks = np.empty(len(order))
    ranks[order] = np.arange(1, len(order) + 1)
    positive = int(right.sum())
    negative = len(right) - positive
    if not positive or not negative:
        return None
    return float((ranks[right].sum() - positive * (positive + 1) / 2) / (positive * negative))


def bar_for(candidates: Sequence[LabelledEdit], chance: np.ndarray, silent: int) -> float:
    """The lowest bar at which enough of the `silent` rows stay quiet; rows without a candidate always do."""
    best: dict[int, float] = {}
    for candidate, p in zip(candidates, chance, strict=True):
        if candidate.row_kind == "none" and candidate.kind not in MODEL_FREE:
            best[candidate.row] = max(best.get(candidate.row, 0.0), float(p))
    loudest = sorted(best.values(), reverse=True)
    allowed = int((1 - QUIET) * silent)
    return round(loudest[allowed] + 1e-3, 3) if allowed < len(loudest) else 0.0


def paying_bar(candidates: Sequence[LabelledEdit], chance: np.ndarray) -> float:
    """The lowest bar at which rows whose likeliest edit is shown and complete, less those in which it is not, come to
    nearly the most."""
    best: dict[int, int] = {}
    for at, candidate in enumerate(candidates):
        if candidate.kind not in MODEL_FREE and chance[at] >= chance[best.get(candidate.row, at)]:
            best[candidate.row] = at
    loudest = sorted(best.values(), key=lambda at: -chance[at])
    net = np.cumsum([1 if candidates[at].exact else -1 for at in loudest])
    if not len(net) or net.max() <= 0:
        return 1.0
    return round(float(chance[loudest[np.flatnonzero(net >= NEARLY * net.max())[-1]]]), 3)


def _measured(train: Sequence[LabelledEdit], held_out: Sequence[LabelledEdit], fitted: Fit) -> dict:
    report: dict = {"train candidates": len(train), "held-out candidates": len(held_out), "ridge": RIDGE}
    right = np.array([candidate.right for candidate in held_out])
    chance = predict(fitted, held_out)
    for name, chosen in _groups(held_out):
        report[f"held-out {name}"] = {
            "n": int(chosen.sum()),
            "right": round(float(right[chosen].mean()), 3),
            "log loss": round(_log_loss(chance[chosen], right[chosen]), 4),
            "area": _rounded_or_none(area(chance[chosen], right[chosen])),
        }
    return report


def _rounded_or_none(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _groups(candidates: Sequence[LabelledEdit]) -> Iterator[tuple[str, np.ndarray]]:
    kinds = np.array([candidate.kind for candidate in candidates])
    yield "all", kinds != ""
    for kind in sorted(set(kinds.tolist())):
        yield kind, kinds == kind


def _rounded(fitted: Fit) -> dict[str, dict[str, float]]:
    return {
        "kinds": {name: round(value, 3) for name, value in fitted.kinds.items()},
        "weights": {name: round(value, 3) for name, value in fitted.weights.items()},
    }


if __name__ == "__main__":
    main()
