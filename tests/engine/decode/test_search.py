"""Effort: each level does more; seeds give different answers."""

from itertools import accumulate, pairwise, product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mercury_engine import engine as engines
from mercury_engine.decode.search import LOW_TOKENS, branches
from mercury_engine.tokens.vocabulary import EOM
from tests.engine.tiny import TOKENIZER, engine, final, gap, random_runtime


def asked(marked="return self.wi$0\n", **options):
    return gap(marked, **{"effort": "medium", "block": True, "most_tokens": 24} | options)


def forwards(effort, **options):
    answering = engine(random_runtime())
    last = final(answering, asked(effort=effort, **options))
    return answering.report.forwards, last


def test_effort_levels_do_more_each():
    instant, low, medium = (forwards(effort, most_tokens=64)[0] for effort in ("instant", "low", "medium"))
    assert 1 == instant < low < medium


def test_low_says_what_medium_begins_with():
    low, medium = (forwards(effort, most_tokens=64)[1] for effort in ("low", "medium"))
    assert len(low.confidence) == LOW_TOKENS
    assert medium.text.startswith(low.text)


def test_low_gives_up_on_a_hopeless_answer_unless_all_is_to_be_shown():
    shy, bold = engine(random_runtime(), bar=0.3), engine(random_runtime(), bar=0.0)
    for answering in (shy, bold):
        list(answering.fill(asked(effort="low")))
    assert shy.report.forwards < bold.report.forwards


@pytest.mark.slow
@settings(max_examples=10)
@given(
    st.one_of(
        st.tuples(st.sampled_from(["low", "medium"]), st.sampled_from(["self.$0", "x = wi$0", "print($0)\n"])),
        st.tuples(st.just("instant"), st.sampled_from(["$0", "return $0", "x = 1\n$0y"])),
    ),
    st.booleans(),
    st.sampled_from([0.0, 0.3]),
)
def test_seeds_give_distinct_answers(effort_and_head, block, bar):
    effort, head = effort_and_head
    answers = [
        final(engine(random_runtime(), bar=bar), asked(head, effort=effort, block=block, seed=seed)).text
        for seed in range(4)
    ]
    shown = [answer for answer in answers if answer]  # random weights also say half characters, or nothing
    assert len(shown) >= 2
    assert len(set(shown)) == len(shown)


def test_seed_gives_the_same_answer_every_time():
    answering = engine(random_runtime())
    for effort in ("instant", "low", "high"):
        one, two, fresh = (
            final(which, asked(seed=2, effort=effort)).text
            for which in (answering, answering, engine(random_runtime()))
        )
        assert one == two == fresh


@pytest.fixture
def decodings(monkeypatch):
    """All that begin, in their order."""
    begun = []

    class Watched(engines.GapDecoding):
        def __init__(self, *args):
            super().__init__(*args)
            begun.append(self)

    monkeypatch.setattr(engines, "GapDecoding", Watched)
    return begun


def test_branches_spell_what_none_of_the_others_begins_with(decodings):
    list(engine(random_runtime()).fill(asked(seed=1)))
    spelled = [
        TOKENIZER.decode_bytes(forced.ids) + b"\xff" * (forced.ids[-1] == EOM)
        for forced in branches(decodings[:1], TOKENIZER)
    ]
    assert len(spelled) > 5
    assert not any(one.startswith(other) for one in spelled for other in spelled if one != other)


def test_passed_deadline_gives_text_as_it_stands():
    now = iter(range(1000))
    answering = engine(random_runtime(), clock=lambda: next(now))
    (only,) = answering.fill(replace(asked(), deadline_ms=10.0))
    assert (only.final, only.step, only.text) == (True, 0, "")


def test_copyable_text_is_an_answer_even_past_the_deadline():
    now = iter(range(1000))
    answering = engine(random_runtime(), clock=lambda: next(now))
    copied = "def area(w, h):\n    return w * h\n\ndef area(w, h):\n    $0\n"
    (only,) = answering.fill(replace(asked(copied), deadline_ms=10.0))
    assert (only.final, only.step, only.text) == (True, 1, "return w * h")
    assert answering.report.forwards == 0


def test_deadline_ends_work_with_best_so_far():
    now = iter(range(1000))
    answering = engine(random_runtime(), clock=lambda: next(now) / 1000)
    drafts = list(answering.fill(replace(asked(most_tokens=64), deadline_ms=5.0)))
    assert 1 < len(drafts) < 6
    assert drafts[-1].final
    whole = final(engine(random_runtime()), asked(most_tokens=64)).text
    assert drafts[-1].text.startswith(whole[:2])


def test_deadline_far_away_changes_nothing():
    answering = engine(random_runtime(), clock=lambda: 0.0)
    assert final(answering, replace(asked(), deadline_ms=1.0e4)) == final(engine(random_runtime()), asked())


def probability_of_first_line(decoding):
    choices = decoding.answer.choices
    spelled = accumulate(TOKENIZER.token_bytes[choice.token] for choice in choices)
    is_over = [b"\n" in text.lstrip() for text in spelled]
    return prod(choice.probability for choice in choices[: [*is_over, True].index(True) + 1])


HEADS = ("return $0", "x = $0", "self.$0", "if $0")


@pytest.mark.parametrize("block", [False, True])
def test_likeliest_first_line_is_searched_for_by_hand(decodings, block):
    probabilities = {True: [], False: []}
    for head, invoked in product(HEADS, (True, False)):
        list(engine(random_runtime()).fill(asked(f"{head}\n", block=block, most_tokens=4, invoked=invoked)))
        probabilities[invoked].append(probability_of_first_line(decodings[-1]))
    gains = [likeliest / greedy for likeliest, greedy in zip(*probabilities.values(), strict=True)]
    assert min(gains) > 0.999
    assert max(gains) > 1.5


def test_alternatives_depart_from_the_same_likeliest_line():
    for head in HEADS[:2]:
        texts = [final(engine(random_runtime()), asked(f"{head}\n", seed=seed, invoked=True)).text for seed in range(4)]
        assert len(set(texts)) == len(texts)


def test_empty_answers_are_no_departures(decodings):
    list(engine(random_runtime()).fill(asked("x = $0\n", most_tokens=4, invoked=True)))
    answer = decodings[-1].answer
    answer.choices[0] = replace(answer.choices[0], others=((EOM, 0.9), (TOKENIZER.encode(" \n")[0], 0.8)))
    assert not any(forced.ids[0] in (EOM, TOKENIZER.encode(" \n")[0]) for forced in branches(decodings[-1:], TOKENIZER))


def test_tried_lines_are_not_settled():
    drafts = [*engine(random_runtime()).fill(asked("x = $0\n", block=True, slots=True, invoked=True))]
    settled = [[slot.text for slot in draft.slots if slot.settled] for draft in drafts]
    assert settled[-1]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(settled))
