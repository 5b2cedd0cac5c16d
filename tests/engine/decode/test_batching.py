"""Requests that take turns share their forwards, and nobody can tell from an answer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mercury_engine.api import EngineError
from mercury_engine.decode.batching import ForwardBatcher
from mercury_engine.model.runtime import Pass
from mercury_engine.model.torch_runtime import TorchRuntime
from tests.engine.tiny import DOCUMENT, engine, final, gap, random_runtime


class Device:
    """Answers each pass with its rows, and remembers which went together. Some rows it cannot compute."""

    def __init__(self, batch=3):
        self.batch = batch
        self.computed = []

    def forward(self, rows, cache):
        self.computed.append([rows])
        return self._answer(rows)

    def forwards(self, passes):
        self.computed.append([one.rows for one in passes])
        return [self._answer(one.rows) for one in passes]

    def _answer(self, rows):
        if "bad" in rows:
            raise ZeroDivisionError(rows)
        return rows.upper()


def steps(name, passes, log=None):
    """Says what each of its passes was answered with."""
    try:
        for number in range(passes):
            yield (yield Pass(f"{name}{number}", None))
    finally:
        if log is not None:
            log.append(name)


def opened(device, *names, passes=3, log=None):
    batcher = ForwardBatcher(device)
    return [batcher.run(steps(name, passes, log), session=name) for name in names]


def test_single_request_goes_on_pass_by_pass():
    device = Device()
    (only,) = opened(device, "a")
    assert list(only) == ["A0", "A1", "A2"]
    assert device.computed == [["a0"], ["a1"], ["a2"]]


def test_requests_in_turn_share_their_passes_from_the_second_on():
    device = Device()
    a, b = opened(device, "a", "b")
    said = [next(one) for _ in range(3) for one in (a, b)]
    assert said == ["A0", "B0", "A1", "B1", "A2", "B2"]
    assert [len(together) for together in device.computed] == [1, 2, 2, 1]


def test_requests_are_at_most_one_pass_ahead():
    device = Device()
    waits, goes = opened(device, "a", "b", passes=5)
    next(waits)
    assert list(goes) == [f"B{number}" for number in range(5)]
    assert [rows for together in device.computed for rows in together if rows.startswith("a")] == ["a0", "a1"]
    assert next(waits) == "A1"


def test_batch_is_limited_by_the_device_and_its_last_to_pause_goes_first():
    device = Device(batch=2)
    a, b, c = opened(device, "a", "b", "c")
    for one in (a, b):
        next(one)
    next(c)
    assert device.computed == [["a0"], ["b0", "a1"], ["c0", "b1"]]
    assert list(a) == ["A1", "A2"]
    assert all(len(together) <= 2 for together in device.computed)


def test_two_of_one_session_never_go_batched():
    device = Device()
    batcher = ForwardBatcher(device)
    one, other = (batcher.run(steps(name, 2), session="same") for name in "ab")
    said = [next(turn) for _ in range(2) for turn in (one, other)]
    assert said == ["A0", "B0", "A1", "B1"]
    assert all(len(together) == 1 for together in device.computed)


def test_closed_request_has_ended_and_is_missing_from_the_next_batch():
    device, log = Device(), []
    a, b, c = opened(device, "a", "b", "c", log=log)
    for one in (a, b, c):
        next(one)
    b.close()
    assert log == ["b"]
    assert [next(a), next(c), next(a), next(c)] == ["A1", "C1", "A2", "C2"]
    assert "b2" not in [rows for together in device.computed for rows in together]


def test_error_is_raised_in_the_request_it_belongs_to():
    device, log = Device(), []
    a, bad = opened(device, "a", "bad", log=log)
    assert next(a) == "A0"
    with pytest.raises(ZeroDivisionError, match="bad0"):
        next(bad)
    assert log == ["bad"]
    assert list(a) == ["A1", "A2"]


def test_error_between_passes_is_raised_in_the_request_it_belongs_to():
    def failing():
        yield (yield Pass("f0", None))
        raise EngineError("no")

    device = Device()
    batcher = ForwardBatcher(device)
    a, f = batcher.run(steps("a", 3), session="a"), batcher.run(failing(), session="f")
    assert [next(a), next(f), next(a)] == ["A0", "F0", "A1"]
    with pytest.raises(EngineError, match="no"):
        next(f)
    assert list(a) == ["A2"]


# With a model


def batching(batch=4, seed=0, **options):
    return engine(TorchRuntime(random_runtime(seed).model, batch=batch), **options)


def check_close(found, expected):
    assert (found.text, found.complete) == (expected.text, expected.complete)
    assert found.confidence == pytest.approx(expected.confidence, abs=1e-3)


def taking_turns(answering, asked, order=lambda open_: open_):
    """The last draft of each, one draft at a time."""
    drafting = {number: answering.fill(one) for number, one in enumerate(asked)}
    last = {}
    while drafting:
        for number in order(list(drafting)):
            draft = next(drafting[number], None)
            if draft is None:
                del drafting[number]
            else:
                last[number] = draft
    return [last[number] for number in range(len(asked))]


code = st.lists(st.sampled_from(["self", ".", "wi", "(", ")", " ", "return ", "é", "1", "\n    ", "="]), max_size=8)
gaps = st.tuples(st.integers(0, 40), code, st.booleans()).map(
    lambda drawn: gap(f"x = {drawn[0]}\n" * drawn[0] + f"{''.join(drawn[1])}$0\n", block=drawn[2], most_tokens=12)
)
asked_together = st.lists(
    st.tuples(gaps, st.sampled_from(["instant", "low", "medium", "high"])),
    min_size=2,
    max_size=5,
)


@pytest.mark.slow
@settings(max_examples=5)
@given(asked_together, st.integers(2, 4), st.integers(0, 2), st.randoms(use_true_random=False))
def test_answers_are_those_of_requests_that_come_alone(drawn, batch, seed, random):
    asked = [replace(one, session=str(n), effort=effort) for n, (one, effort) in enumerate(drawn)]
    found = taking_turns(batching(batch, seed), asked, lambda open_: random.sample(open_, len(open_)))
    for one, last in zip(asked, found, strict=True):
        check_close(last, final(engine(random_runtime(seed)), one))


@pytest.mark.slow
@settings(max_examples=5)
@given(asked_together, st.integers(0, 6))
def test_cancelling_one_leaves_the_others_as_they_are(drawn, pauses):
    asked = [replace(one, session=str(n), effort=effort) for n, (one, effort) in enumerate(drawn)]
    answering = batching()
    cancelled = answering.fill(replace(asked[0], session="cancelled"))
    drafting = [answering.fill(one) for one in asked]
    for _ in range(pauses):
        for one in (cancelled, *drafting):
            next(one, None)
    cancelled.close()
    again = replace(asked[0], effort="medium")
    check_close(final(answering, replace(again, session="cancelled")), final(engine(random_runtime()), again))


def documents(count):
    """Completions in files of different lengths, each of a client of its own."""
    texts = ["".join(f"value_{n}_{i} = {i}\n" for i in range(5 * n + 1)) + DOCUMENT for n in range(count)]
    return [gap(text.replace("hypot", "hy$0"), effort="medium", session=str(n)) for n, text in enumerate(texts)]


@pytest.mark.slow
def test_four_clients_take_hardly_more_forwards_than_one():
    calls = []

    class Counting(TorchRuntime):
        def _batched(self, passes):
            calls.append(len(passes))
            return super()._batched(passes)

    answering = engine(Counting(random_runtime().model, batch=4))
    alone = []
    for asked in documents(4):
        calls.clear()
        list(engine(Counting(random_runtime().model)).fill(asked))
        alone.append(len(calls))
    calls.clear()
    taking_turns(answering, documents(4))
    assert len(calls) <= max(alone) + 4
    assert max(calls) == 4


@pytest.mark.slow
def test_warming_between_the_drafts_of_others_disturbs_nobody():
    answering = batching()
    first, second, warmed = documents(3)
    drafting = [answering.fill(first), answering.fill(second)]
    warming = answering.warm(warmed)
    for _ in range(3):
        for one in (*drafting, warming):
            next(one, None)
    lasts = [list(one)[-1] for one in drafting]
    for last, asked in zip(lasts, (first, second), strict=True):
        check_close(last, final(engine(random_runtime()), asked))
