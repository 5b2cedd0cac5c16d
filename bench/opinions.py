"""What a model's opinion of the edits that rules propose is worth, and its weight: fitted by logistic regression.

python -m bench.opinions ROWS.jsonl … --engine shipped|FOLDER [--write mercury_ls/next_edit/ranking.json]

ROWS are rows of git history with whole files. Of two halves, each is predicted by the fit to the other; then all rows
are used. Write only what was fitted to other rows than those that `bench.next_edit` measures.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from msgspec import Struct

from bench.next_edit.cases import Case, candidates_after, cases
from bench.next_edit.measure import Local, engine_of, is_exact, question_of
from mercury_ls.code.edits import TextEdit
from mercury_ls.completion.budgets import USUAL_BAR
from mercury_ls.completion.target import Silence
from mercury_ls.next_edit import opinion
from mercury_ls.next_edit.ranking import LEAST_LIKELIHOOD, log_odds
from mercury_training.fit.logistic import newton, sigmoid
from mercury_training.progress import shown

LEAST_CHANCE = 0.02
"""Of what is judged here, also where no opinion could make it likely enough to be asked about: by the weights as they
are, which must not choose what the next ones are fitted to."""
RIDGE = 1.0
NAMES = ("bias", "ranked", "likelihood")
BAR = 0.4
"""The chance at which an edit is shown that a model has judged. The bias is moved so that the ranking's bar is this
one."""
SCALE = np.array([1.0, 1.0, 0.1])
"""Of likelihoods, which are the largest numbers, so that the ridge holds all weights alike."""


class Judged(Struct, frozen=True):
    """A proposal: its chance by rule, what the model thinks of it, and whether the author made it."""

    ranked: float
    likelihood: float
    exact: bool

    @property
    def inputs(self) -> tuple[float, ...]:
        return 1.0, self.ranked, max(self.likelihood, LEAST_LIKELIHOOD)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("rows", type=Path, nargs="+")
    arguments.add_argument("--engine", default="shipped")
    arguments.add_argument("--write", type=Path, help="the ranking that gets the weights")
    given = arguments.parse_args()
    engine = engine_of(given.engine)
    if engine is None:
        raise SystemExit("--engine none has no opinion; name a model")
    rows = list(chain.from_iterable(map(cases, given.rows)))
    proposals = [list(judged(case, engine)) for case in shown("rows", rows)]
    print("\n".join(report(proposals)))
    weights = fit(list(chain.from_iterable(proposals)))
    print("weights:", weights)
    if given.write:
        ranking = json.loads(given.write.read_text(encoding="utf-8"))
        weights["bias"] = round(weights["bias"] + log_odds(ranking["bar"]) - log_odds(BAR), 3)
        given.write.write_text(json.dumps({**ranking, "opinion": weights}, indent=2) + "\n", encoding="utf-8")


def judged(case: Case, engine: Local) -> Iterator[Judged]:
    """The likeliest edits that the rules propose in a row."""
    question, wanted = question_of(case, USUAL_BAR, engine.engine), (*case.expected, *case.also_ok)
    found = candidates_after(question.situation)
    if isinstance(found, Silence):
        return
    somewhat_likely = [candidate for candidate in found if candidate.p_edit >= LEAST_CHANCE]
    bundles = opinion.by_lines(question, somewhat_likely)[: opinion.MOST_PROPOSALS]
    if not bundles:
        return
    *_, opinions = engine.engine.judge(opinion.proposals(question, bundles))
    for bundle, likelihood in zip(bundles, opinions.likelihoods, strict=True):
        assert likelihood is not None, "there is no limit of time here"
        edits = [TextEdit(candidate.start, candidate.end, candidate.text or "") for candidate in bundle]
        ranked = log_odds(opinion.chance_by_rule(bundle[0]))
        yield Judged(ranked, likelihood, is_exact(case.snapshot.text, edits, wanted))


def fit(proposals: Sequence[Judged], names: Sequence[str] = NAMES) -> dict[str, float]:
    """The weights of the first so many inputs."""
    scale = SCALE[: len(names)]
    inputs = np.array([proposal.inputs[: len(names)] for proposal in proposals]) * scale
    made = np.array([proposal.exact for proposal in proposals], float)
    weights = newton(inputs, made, np.zeros(len(names)), RIDGE) * scale
    return dict(zip(names, (round(float(weight), 3) for weight in weights), strict=True))


def report(proposals: Sequence[Sequence[Judged]]) -> list[str]:
    """How well the chances fit with and without the model, in nats a proposal."""
    halves = [list(chain.from_iterable(proposals[half::2])) for half in range(2)]
    count, made = sum(map(len, halves)), sum(proposal.exact for half in halves for proposal in half)
    lines = [f"{len(proposals)} rows, {count} proposals, {made} of them made by the author"]
    for title, names in (("by rule alone", NAMES[:2]), ("with the model", NAMES)):
        losses = [loss(proposal, fit(halves[1 - half], names)) for half in range(2) for proposal in halves[half]]
        lines.append(f"{title:16} log loss {sum(losses) / count:.3f}")
    return lines


def loss(proposal: Judged, weights: dict[str, float]) -> float:
    chance = float(sigmoid(np.dot(list(weights.values()), proposal.inputs[: len(weights)])))
    return -float(np.log(chance if proposal.exact else 1.0 - chance))


if __name__ == "__main__":
    main()
