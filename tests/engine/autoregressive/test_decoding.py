"""Caches, drafts, cancelling and interleaving change how fast an answer comes, and nothing else."""

from functools import cache
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.api import Gap
from tests.engine.autoregressive.models import TOKENIZER, decoded, engine, random_runtime
from tests.engine.tiny import FLAT, STEEP, gap

TEXT = """\
class Shape:
    def __init__(self, width, height):
        self.width = width
        self.height = height

    def area(self):
        return self.width * self.height
"""


def ask(place, typed="", block=False, **fields):
    return gap(f"{TEXT[:place]}{typed}$0{TEXT[place:]}", block=block, most_tokens=12, effort="medium", **fields)


@cache
def plain(place, typed, block):
    """Without a cache, without drafts."""
    *_, last = engine(random_runtime(), drafting=False).fill(ask(place, typed, block))
    return last


def check(found, place, typed, block):
    expected = plain(place, typed, block)
    assert (found.text, found.complete) == (expected.text, expected.complete)
    assert found.confidence == pytest.approx(expected.confidence, rel=1e-3, abs=1e-5)


places = st.sampled_from([0, 17, 47, 60, len(TEXT) // 2, len(TEXT)])
asked = st.tuples(places, st.sampled_from(["", "x", " self.w", "\n"]), st.booleans())


@settings(max_examples=30)
@given(
    st.lists(st.tuples(asked, st.none() | st.integers(0, 4)), min_size=1, max_size=5),
    st.sampled_from([FLAT, STEEP]),
)
def test_answers_do_not_depend_on_what_was_asked_before(sequence, costs):
    """Some of it cancelled after a few drafts."""
    answering = engine(random_runtime(), costs=costs)
    for one, stopped in sequence:
        drafts = answering.fill(ask(*one))
        found = list(islice(drafts, stopped))
        drafts.close()
        if stopped is None:
            check(found[-1], *one)


@settings(max_examples=30)
@given(asked, asked, st.lists(st.booleans(), max_size=20), st.booleans())
def test_answers_do_not_depend_on_what_is_asked_at_the_same_time(first, second, turns, together):
    answering = engine(random_runtime())
    running = [
        answering.fill(ask(*first, session="a")),
        answering.fill(ask(*second, session="a" if together else "b")),
    ]
    last = [None, None]
    for turn in [*turns, *[False] * 40, *[True] * 40]:
        last[turn] = next(running[turn], last[turn])
    check(last[0], *first)
    check(last[1], *second)


def test_repeated_question_takes_fewer_forwards():
    answering = engine(random_runtime())
    counts = []
    for _ in range(2):
        before = answering.report.forwards
        list(answering.fill(ask(60)))
        counts.append(answering.report.forwards - before)
    assert counts[1] < counts[0]


@settings(max_examples=20)
@given(st.sampled_from([0, 60, len(TEXT)]), st.sampled_from(["s", "sel", "self.wi", "é", "x = ", "re", "    "]))
def test_answer_begins_with_forced_text(place, typed):
    answer = decoded(engine(random_runtime()), ask(place, typed))
    spelled = TOKENIZER.decode_bytes(choice.token for choice in answer.choices)
    forced = answer.question.prompt.forced
    assert forced
    assert spelled.startswith(forced.encode())
    assert spelled.decode("utf-8", "replace").startswith(forced + answer.text)


@settings(max_examples=60)
@given(
    st.text(max_size=80) | st.text("ab(\n\t \ud800é日", max_size=80),
    st.text(max_size=40) | st.text("ab)\n\t \ud800é日", max_size=40),
    st.booleans(),
    st.sampled_from([0, 1]),
)
def test_any_text_is_answered(before, after, block, seed):
    asked = Gap(
        session="s",
        path="shapes.py",
        language="python",
        before=before,
        after=after,
        block=block,
        most_tokens=5,
        effort="medium",
        seed=seed,
    )
    *_, last = engine(random_runtime()).fill(asked)
    assert last.final
    assert "\ufffd" not in last.text
