"""Caches, drafts, cancelling and interleaving change how fast an answer comes, and nothing else."""

from functools import cache
from itertools import islice

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mercury_engine.api import InfillRequest, Span, Window
from tests.engine.autoregressive.models import TOKENIZER, decoded, engine, random_runtime
from tests.engine.tiny import FLAT, STEEP, request

TEXT = """\
class Shape:
    def __init__(self, width, height):
        self.width = width
        self.height = height

    def area(self):
        return self.width * self.height
"""


def ask(place, typed="", mode="line", **fields):
    return request(f"{TEXT[:place]}{typed}$0{TEXT[place:]}", mode=mode, budget=12, effort="medium", **fields)


@cache
def plain(place, typed, mode):
    """Without a cache, without drafts."""
    *_, last = engine(random_runtime(), drafting=False).infill(ask(place, typed, mode))
    return last.spans[0]


def check(found, place, typed, mode):
    expected = plain(place, typed, mode)
    assert (found.text, found.complete) == (expected.text, expected.complete)
    assert found.confidence == pytest.approx(expected.confidence, rel=1e-3, abs=1e-5)


places = st.sampled_from([0, 17, 47, 60, len(TEXT) // 2, len(TEXT)])
asked = st.tuples(places, st.sampled_from(["", "x", " self.w", "\n"]), st.sampled_from(["line", "block"]))


@settings(max_examples=30)
@given(
    st.lists(st.tuples(asked, st.none() | st.integers(0, 4)), min_size=1, max_size=5),
    st.sampled_from([FLAT, STEEP]),
)
def test_answers_do_not_depend_on_what_was_asked_before(sequence, costs):
    """Some of it cancelled after a few drafts."""
    answering = engine(random_runtime(), costs=costs)
    for one, stopped in sequence:
        drafts = answering.infill(ask(*one))
        found = [draft.spans[0] for draft in islice(drafts, stopped)]
        drafts.close()
        if stopped is None:
            check(found[-1], *one)


@settings(max_examples=30)
@given(asked, asked, st.lists(st.booleans(), max_size=20), st.booleans())
def test_answers_do_not_depend_on_what_is_asked_at_the_same_time(first, second, turns, together):
    answering = engine(random_runtime())
    running = [
        answering.infill(ask(*first, session="a")),
        answering.infill(ask(*second, session="a" if together else "b")),
    ]
    last = [None, None]
    for turn in [*turns, *[False] * 40, *[True] * 40]:
        last[turn] = next(running[turn], last[turn])
    check(last[0].spans[0], *first)
    check(last[1].spans[0], *second)


def test_repeated_question_takes_fewer_forwards():
    answering = engine(random_runtime())
    counts = []
    for _ in range(2):
        before = answering.report.forwards
        list(answering.infill(ask(60)))
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
    st.text(max_size=80) | st.text("ab(\r\n\t \ud800é日", max_size=80),
    st.text(max_size=40) | st.text("ab)\r\n\t \ud800é日", max_size=40),
    st.text("x\r\n日", max_size=6),
    st.sampled_from(["line", "block", "edit"]),
    st.sampled_from([0, 1]),
)
def test_any_text_is_answered(before, after, old, mode, seed):
    assume("\r\n" not in (before[-1:] + old[:1], old[-1:] + after[:1]))  # no edit begins or ends within a line break
    text = before + old + after
    span = Span(0, len(before), len(before) + (len(old) if mode == "edit" else 0), mode, 5)
    windows = (Window("shapes.py", "python", text),)
    asked = InfillRequest(session="s", windows=windows, spans=(span,), effort="medium", seed=seed)
    *_, last = engine(random_runtime()).infill(asked)
    assert last.final
    assert "\ufffd" not in last.spans[0].text.replace(old, "")
    if old and mode == "edit" and not last.spans[0].complete:
        assert last.spans[0].text == old.replace("\r\n", "\n")
