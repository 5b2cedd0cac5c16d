"""The policy: what pays on which device, what it learns, and that it never bets against plain autoregression."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercury_engine.decode.costs import Costs
from mercury_engine.decode.drafts import Proposal, growing_evidence
from mercury_engine.decode.policy import Acceptance, DraftSituation, Report, choose
from tests.engine.tiny import FLAT, STEEP

CPU = Costs((1, 8, 16, 32, 64), (4.5, 7.3, 12.0, 17.0, 29.0))
"""The default model on two cores."""


def draft(count=12, source="copy", agreed=7):
    return Proposal(source, tuple(range(70, 70 + count)), growing_evidence(source, agreed, count))


def choice(costs=CPU, acceptance=None, **situation):
    known = {"pending": 1, "remaining": 9.0, "canvas_sizes": (8, 16, 32, 64)}
    return choose(DraftSituation(**known | situation), costs, acceptance or Acceptance())


def taught(source, right, wrong=0):
    acceptance = Acceptance()
    for level in range(4):
        for _ in range(right):
            acceptance.observe((source, level), True)
        for _ in range(wrong):
            acceptance.observe((source, level), False)
    return acceptance


def test_canvases_are_drawn_where_they_pay():
    assert choice(acceptance=taught("canvas", right=20, wrong=30)).kind == "step"
    assert choice(FLAT).kind == "canvas"
    action = choice(remaining=60.0, acceptance=taught("canvas", right=100))
    assert (action.kind, action.size) == ("canvas", 32)
    assert choice(acceptance=taught("canvas", right=0, wrong=200), remaining=60.0).kind == "step"
    assert choice(STEEP).kind == "step"


def test_good_copy_is_verified_as_far_as_it_pays():
    action = choice(proposals=[draft()])
    assert action.kind == "verify"
    assert action.proposal.ids == tuple(range(70, 70 + len(action.proposal.ids)))
    doubtful = choice(proposals=[draft(agreed=0)], acceptance=taught("copy", right=10, wrong=10))
    assert len(doubtful.proposal.ids) < len(action.proposal.ids)


def test_most_promising_of_several_drafts_is_verified():
    action = choice(proposals=[draft(source="stale", agreed=0), draft(source="previous")])
    assert action.proposal.source == "previous"


def test_redrafting_pays_where_rows_cost_nothing_and_the_draft_is_sure():
    sure = {"proposals": [draft(agreed=99)], "redraft_sizes": (8, 16, 32), "remaining": 60.0}
    assert choice(FLAT, **sure).kind == "redraft"
    assert choice(STEEP, **sure).kind != "redraft"


def test_rows_that_must_be_encoded_anyway_tip_no_balance():
    acceptance = taught("canvas", right=20, wrong=30)
    assert choice(pending=200, acceptance=acceptance).kind == "step"
    assert choice(pending=200, acceptance=acceptance, proposals=[draft()]).kind == "verify"


rates = st.lists(st.floats(0.1, 50.0), min_size=5, max_size=5).map(lambda costs: tuple(np.cumsum(costs).tolist()))


@given(rates, st.integers(1, 300), st.floats(1.0, 100.0), st.integers(0, 12), st.integers(0, 20))
def test_actions_are_expected_to_be_no_slower_than_autoregression(times, pending, remaining, agreed, wrong):
    costs = Costs((1, 8, 16, 32, 64), times)
    action = choice(
        costs,
        taught("copy", 5, wrong),
        pending=pending,
        remaining=remaining,
        proposals=[draft(agreed=agreed)],
        redraft_sizes=(8, 16),
    )
    assert action.rate >= 1 / costs.of(1) - 1e-9


def test_costs_are_interpolated_and_grow_on_behind_the_last_measurement():
    assert CPU.of(1) == 4.5
    assert CPU.of(24) == pytest.approx(14.5)
    assert CPU.of(128) == pytest.approx(58.0)


def test_acceptance_starts_at_a_prior_moves_with_what_is_seen_and_forgets():
    acceptance = Acceptance()
    evidence = ("copy", 2)
    before = acceptance.of(evidence)
    for _ in range(50):
        acceptance.observe(evidence, False)
    low = acceptance.of(evidence)
    assert low < before / 2
    for _ in range(400):
        acceptance.answered("line", 9)
    assert low < acceptance.of(evidence)
    assert acceptance.of(evidence) == pytest.approx(before, abs=0.02)


def test_length_of_answers_is_learned_by_mode():
    acceptance = Acceptance()
    for _ in range(100):
        acceptance.answered("line", 30)
    assert acceptance.length("line") == pytest.approx(30, abs=1)
    assert acceptance.length("block") == Acceptance().length("block")


def test_report_shares_out_actions():
    report = Report()
    for kind in ("step", "step", "step", "canvas"):
        report.count(kind, rows=1, settled=1)
    assert report.shares() == {"canvas": 0.25, "step": 0.75}
    assert (report.forwards, report.settled) == (4, 4)
