"""The policy: what pays on which device, what it learns, and that it never bets against plain autoregression."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.decode.costs import MOST_ROWS, Costs
from mercury_engine.decode.drafts import DraftedTokens, growing_evidence, share_of
from mercury_engine.decode.policy import Acceptance, DraftSituation, Report, choose, foresee
from mercury_engine.tokens.vocabulary import CANVASES
from tests.engine.tiny import FLAT, STEEP

CPU = Costs((1, 8, 16, 32, 64), (4.5, 7.3, 12.0, 17.0, 29.0))
"""The default model on two cores."""

GPU = Costs((1, 128), (1.0, 1.0))

OPENVINO = (1, 2, *range(4, 65, 4), *range(72, 129, 8))
AVX2 = Costs((1, 2, 4, 8, 16, 32), (47.0, 51.0, 69.0, 117.0, 172.0, 287.0), OPENVINO)
VNNI = Costs((1, 4, 8, 16, 32, 128), (21.0, 22.0, 24.0, 34.0, 53.0, 204.0), OPENVINO)
VNNI_4_BITS = Costs((1, 4, 8, 16, 32, 128), (15.0, 15.0, 19.0, 30.0, 51.0, 197.0), OPENVINO)
ONE_CORE = Costs((1, 2, 4, 8, 16, 32, 64), (90.0, 95.0, 125.0, 215.0, 330.0, 560.0, 1060.0), OPENVINO)
H100 = Costs((1, 4, 16, 32, 64, 128), (0.8, 0.82, 0.9, 1.0, 1.15, 1.5), (1, 4, 16, 32, 64, 128))
"""A model of 400 million parameters: with 8-bit weights on two cores without and with instructions for dot products,
with 4-bit weights there, on one slow core, and on a GPU."""

MACHINES = [AVX2, VNNI, VNNI_4_BITS, ONE_CORE, H100]


def draft(count=12, source="copy", agreed=7):
    return DraftedTokens(source, tuple(range(70, 70 + count)), growing_evidence(source, agreed, count))


def canvas(*shares):
    evidence = tuple(share_of("canvas", share) for share in shares)
    return DraftedTokens("canvas", tuple(range(90, 90 + len(shares))), evidence)


def choice(costs=CPU, acceptance=None, *, pending=1, remaining=9.0, sizes=CANVASES, room=500, **situation):
    acceptance = acceptance or Acceptance()
    outlook = foresee(costs, acceptance, remaining, sizes)
    known = {"pending": pending, "sizes": sizes, "room": room, "outlook": outlook}
    return choose(DraftSituation(**known | situation), costs, acceptance)


def taught(source, right, wrong=0):
    acceptance = Acceptance()
    for level in range(4):
        for _ in range(right):
            acceptance.observe((source, level), True)
        for _ in range(wrong):
            acceptance.observe((source, level), False)
    return acceptance


def drawn(share, *, slots=63):
    """What is known after many canvases of which each slot was right with this probability."""
    acceptance = Acceptance()
    for _ in range(200):
        acceptance.drew([share_of("canvas", share)] * slots, ended=False)
    return acceptance


def test_canvases_are_drawn_where_they_pay():
    assert choice(FLAT).kind == "canvas"
    assert choice(acceptance=drawn(0.15)).kind == "step"
    action = choice(remaining=60.0, acceptance=drawn(0.99))
    assert (action.kind, action.anchors) == ("canvas", (0,))
    assert action.size >= 16
    assert choice(STEEP).kind == "step"


def test_good_copy_is_verified_as_far_as_it_pays():
    action = choice(proposals=[draft()], sizes=())
    assert action.kind == "verify"
    assert action.draft.ids == tuple(range(70, 70 + len(action.draft.ids)))
    doubtful = choice(proposals=[draft(agreed=0)], acceptance=taught("copy", right=10, wrong=10), sizes=())
    assert len(doubtful.draft.ids) < len(action.draft.ids)


def test_likeliest_of_several_drafts_is_verified_first():
    unsure = DraftedTokens("stale", (50, 51, 52), growing_evidence("stale", 0, 3))
    action = choice(Costs((1, 2, 3, 4), (1.0, 1.1, 5.0, 9.0)), proposals=[unsure, draft(source="previous")], sizes=())
    assert action.draft.ids == (70,)
    assert set(choice(GPU, proposals=[unsure, draft(source="previous")]).draft.ids) >= {50, 70, 81}


def test_draft_stands_behind_every_place_where_verification_may_stop_if_rows_cost_nothing():
    action = choice(GPU, proposals=[canvas(0.65, 0.65, 0.65)])
    assert action.kind == "redraft"
    assert action.anchors == (0, 1, 2, 3)
    assert choice(STEEP, proposals=[canvas(0.65, 0.65, 0.65)]).anchors == ()


def test_sure_copy_is_continued_at_its_end_only_if_rows_cost_something():
    dear = Costs((1, 24, 128), (1.0, 1.05, 8.0))
    action = choice(dear, taught("copy", 500), proposals=[draft(agreed=99)], remaining=60.0)
    assert (action.kind, action.anchors) == ("redraft", (12,))


def test_pass_that_redrafts_has_a_bounded_number_of_rows_and_stays_within_its_room():
    unsure = [canvas(*[0.65] * 40), draft(60, agreed=0)]
    action = choice(GPU, proposals=unsure)
    assert 1 + len(action.draft.ids) + len(action.anchors) * action.size <= MOST_ROWS
    close = choice(GPU, proposals=[draft(agreed=0)], room=9)
    assert not close.anchors or len(close.draft.ids) + close.size <= 9


def test_rows_that_must_be_encoded_anyway_tip_no_balance():
    assert choice(pending=200, acceptance=drawn(0.15)).kind == "step"
    assert choice(pending=200, acceptance=drawn(0.15), proposals=[draft()]).kind == "verify"


class Imagined:
    """A model that writes 0, 1, 2, … token by token, and whose canvases are right in each slot with the probability
    `accuracy` but say `claimed`."""

    def __init__(self, accuracy, claimed, seed):
        self.accuracy = accuracy
        self.claimed = claimed
        self.draw = random.Random(seed)

    def canvas(self, start, size):
        """The draft behind the token that the anchor itself predicts."""
        right = (self.draw.random() < self.accuracy for _ in range(size - 1))
        ids = tuple(at if is_right else 10_000 + at for at, is_right in enumerate(right, start=start))
        return DraftedTokens("canvas", ids, (share_of("canvas", self.claimed),) * len(ids))

    def speed(self, costs, answers, length):
        """Tokens per millisecond after as many answers in which it is learned what canvases are worth."""
        acceptance, settled, milliseconds = Acceptance(), 0, 0.0
        for number in range(2 * answers):
            outlook, at, proposals = foresee(costs, acceptance, length, CANVASES), 0, []
            while at < length:
                known = DraftSituation(pending=1, proposals=proposals, outlook=outlook, sizes=CANVASES, room=500)
                action = choose(known, costs, acceptance)
                before, token = at, -1
                while token is not None and at < length:
                    place, right = token, at
                    for evidence, is_right in action.draft.judged(token, right):
                        acceptance.observe(evidence, is_right)
                    token, at = action.draft.next(token, right), at + 1
                place = place if token is None else token
                proposals = []
                if place + 1 in action.anchors:
                    proposals = [self.canvas(at, action.size)]
                    acceptance.drew(proposals[0].evidence, ended=False)
                if number >= answers:
                    settled += at - before
                    rows = 1 + len(action.draft.ids) + action.size * len(action.anchors)
                    milliseconds += float(costs.of(rows))
            acceptance.answered("block", length)
        return settled / milliseconds


rates = st.lists(st.floats(0.0, 50.0), min_size=7, max_size=7).map(
    lambda more: Costs((1, 2, 4, 8, 16, 32, 64), tuple(5.0 + sum(more[:count]) for count in range(7)))
)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    st.one_of(st.sampled_from([GPU, CPU, *MACHINES, STEEP]), rates),
    st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]),
    st.sampled_from([0.1, 0.5, 0.9]),
    st.integers(0, 3),
)
def test_decoding_is_never_slower_than_autoregression(costs, accuracy, claimed, seed):
    assert Imagined(accuracy, claimed, seed).speed(costs, answers=20, length=24) >= 0.97 / costs.of(1)


def test_chains_of_drafts_settle_more_than_every_second_pass_where_rows_cost_nothing():
    """Of a geometric run with this accuracy, a canvas and a verification in turn would settle half as much again."""
    expected = 1 + sum(0.7**slot for slot in range(1, 60))
    assert Imagined(0.7, 0.7, 0).speed(GPU, answers=20, length=60) > 0.85 * expected


@pytest.mark.parametrize("costs", MACHINES)
def test_passes_fill_the_sizes_that_they_are_padded_to(costs):
    for proposals in ([], [canvas(0.5, 0.5, 0.5, 0.5, 0.5, 0.5)], [draft(3), canvas(0.9, 0.7)]):
        action = choice(costs, drawn(0.7), proposals=proposals)
        rows = 1 + len(action.draft.ids) + action.size * len(action.anchors)
        all_drafted = len(action.draft.ids) == len({token for drafted in proposals for token in drafted.ids})
        assert rows in costs.sizes or all_drafted


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


def test_length_of_answers_is_learned_by_kind():
    acceptance = Acceptance()
    for _ in range(100):
        acceptance.answered("line", 30)
    assert acceptance.length("line") == pytest.approx(30, abs=1)
    assert acceptance.length("block") == Acceptance().length("block")


def test_report_counts_actions():
    report = Report()
    for kind in ("step", "step", "step", "canvas"):
        report.count(kind, rows=1, settled=1)
    assert report.actions == {"canvas": 1, "step": 3}
    assert (report.forwards, report.settled) == (4, 4)


@pytest.mark.parametrize("ended", [False, True])
def test_largest_canvas_teaches_the_chances_of_all_its_slots(ended):
    acceptance = Acceptance()
    before = acceptance.survival()
    acceptance.drew([("canvas", 0)] * CANVASES[-1], ended=ended)
    assert len(before) == CANVASES[-1]
    assert (acceptance.survival() < before).all()
