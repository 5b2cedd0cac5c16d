"""Decoding by any mixture of actions says what plain autoregression of the same weights says."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mercury_engine.api import Draft
from mercury_engine.decode.confidence import Calibration, splits_word
from mercury_engine.decode.costs import Costs
from mercury_engine.decode.ending import indentation, inside, once
from mercury_engine.model.torch_runtime import TorchRuntime
from mercury_engine.tokens.layout import freeze, lay_out
from mercury_engine.tokens.vocabulary import EOM, SPECIALS
from tests.engine.tiny import BUDGET, DOCUMENT, FLAT, STEEP, TOKENIZER, engine, final, gap, random_runtime

CPU = Costs((1, 8, 16, 32, 64), (4.5, 7.3, 12.0, 17.0, 29.0))
AVX2 = Costs((1, 2, 4, 8, 16, 32), (47.0, 51.0, 69.0, 117.0, 172.0, 287.0))

words = st.lists(st.sampled_from(["self", ".", "wi", "(", ")", " ", "return ", "é", "1", "\n    ", "="]), max_size=8)
code = words.map("".join)
gaps = st.tuples(code, code, st.booleans()).map(
    lambda drawn: gap(f"{drawn[0]}$0{drawn[1]}\n", block=drawn[2], most_tokens=16)
)


def plain(asked, seed=0):
    """The answer token by token, everything computed anew for each: slow, and written from the layout alone."""
    row = lay_out(TOKENIZER, asked, freeze(TOKENIZER, asked, BUDGET), BUDGET)
    said, probabilities = [], []
    while len(said) < asked.most_tokens and not ended(said, asked) and not within(asked, text_of(row.part, said)):
        token, probability = next_token(random_runtime(seed).model, row, said)
        said.append(token)
        probabilities.append(probability)
    return reference(asked, row.part, said, probabilities)


def ended(said, asked):
    return bool(said) and (said[-1] == EOM or (not asked.block and b"\n" in TOKENIZER.token_bytes[said[-1]]))


def within(asked, text):
    """The text of an answer that goes on outside of its place, or goes round in circles, and whether it is complete;
    None for any other."""
    kept = inside(text, indentation(asked.before.rpartition("\n")[2]))
    if kept != text:
        return kept, True
    return (once(text), False) if once(text) != text else None


def text_of(part, said):
    kept = [token for token in said if token != EOM]
    return TOKENIZER.decode_bytes(kept)[len(part.encode()) :].decode("utf-8", "replace").partition("\ufffd")[0]


def next_token(model, row, said):
    ids = [*row.ids.tolist(), *said]
    with torch.no_grad():
        hidden, _ = model(torch.tensor([ids]), torch.arange(len(ids))[None])
        logits = model.logits(hidden[0, -1:])[0].numpy().astype(float)
    typed = row.part.encode()[len(TOKENIZER.decode_bytes(said)) :]
    spelling = [t for t, b in enumerate(TOKENIZER.token_bytes) if b and (b.startswith(typed) or typed.startswith(b))]
    permitted = spelling if typed else [EOM, *range(len(SPECIALS), TOKENIZER.vocabulary)]
    odds = np.exp(logits[permitted] - logits[permitted].max())
    best = int(odds.argmax())
    return permitted[best], float(odds[best] / odds.sum())


def reference(asked, part, said, probabilities):
    complete = ended(said, asked)
    kept, text = [token for token in said if token != EOM], text_of(part, said)
    if not asked.block:
        text = text.partition("\n")[0].removesuffix("\r")
    if found := within(asked, text):
        text, complete = found[0], complete or found[1]
        kept = kept[: covering(kept, len((part + text).encode()))]
    return Draft(0, text, tuple(probabilities[: len(kept)]), 0.0, complete)


def covering(kept, size):
    """How many tokens spell so many bytes; one at least."""
    return next(count for count in range(1, len(kept) + 1) if len(TOKENIZER.decode_bytes(kept[:count])) >= size)


def with_effort(asked, effort):
    return replace(asked, effort=effort)


def check_close(found, expected):
    assert found.text == expected.text
    assert found.confidence == pytest.approx(expected.confidence, abs=1e-3)
    assert found.complete == expected.complete


@pytest.mark.slow
@settings(max_examples=12)
@given(
    gaps,
    st.sampled_from([FLAT, CPU, AVX2, STEEP]),
    st.integers(0, 2),
)
def test_verified_answers_are_those_of_plain_autoregression(asked, costs, seed):
    answering = engine(random_runtime(seed), costs=costs)
    expected = plain(asked, seed)
    check_close(final(answering, with_effort(asked, "medium")), expected)
    check_close(final(answering, with_effort(asked, "medium")), expected)
    check_close(final(engine(random_runtime(seed), decode="ar"), with_effort(asked, "medium")), expected)


@pytest.mark.slow
@settings(max_examples=12)
@given(gaps, st.integers(0, 2), st.sampled_from([0.5, 0.7]))
@example(gap("self.wi$0\n", most_tokens=16), 0, 0.7)
def test_answer_given_up_while_somebody_types_would_not_be_shown(asked, seed, bar):
    quick, patient = (engine(random_runtime(seed), calibration=Calibration(bias=5.0), bar=0.45) for _ in range(2))
    found = final(quick, replace(asked, bar=bar))
    heard_out = final(patient, replace(asked, bar=bar, effort="medium"))
    assert (found.text if found.p_accept >= bar else "") == (heard_out.text if heard_out.p_accept >= bar else "")
    assert quick.report.settled <= patient.report.settled


def test_answer_that_cannot_become_likely_is_given_up_at_its_first_token_while_somebody_types():
    settled = []
    for bar in (0.0, 0.7):
        answering = engine(random_runtime(), calibration=Calibration(bias=-2.0), bar=0.45)
        final(answering, gap("self.wi$0\n", bar=bar))
        settled.append(answering.report.settled)
    assert settled[0] > settled[1] == 1


@pytest.mark.slow
@settings(max_examples=6)
@given(st.lists(gaps, min_size=2, max_size=5))
def test_session_answers_successive_requests_like_a_fresh_one(sequence):
    """Requests of one path share a cache, drafts and statistics."""
    answering = engine(random_runtime())
    for asked in sequence:
        list(answering.warm(asked))
        check_close(final(answering, with_effort(asked, "medium")), plain(asked))


@pytest.mark.slow
@settings(max_examples=15)
@given(gaps, st.integers(0, 8), st.sampled_from(["instant", "low", "high"]))
def test_cancelling_anywhere_leaves_nothing_wrong_behind(asked, pauses, effort):
    answering = engine(random_runtime())
    drafts = answering.fill(with_effort(asked, effort))
    for _, draft in zip(range(pauses), drafts, strict=False):
        assert not draft.final or draft.step <= pauses
    drafts.close()
    check_close(final(answering, with_effort(asked, "medium")), plain(asked))


@pytest.mark.slow
@settings(max_examples=20)
@given(
    gaps,
    st.sampled_from(["instant", "low", "medium", "high"]),
    st.integers(0, 2),
    st.sampled_from([0.0, 0.3]),
)
def test_drafts_end_in_one_final_and_never_show_a_special_token(asked, effort, seed, bar):
    drafts = list(engine(random_runtime(), bar=bar).fill(replace(asked, effort=effort, seed=seed)))
    assert [draft.final for draft in drafts] == [False] * (len(drafts) - 1) + [True]
    assert [draft.step for draft in drafts] == list(range(1, len(drafts) + 1))
    for draft in drafts:
        assert not any(special in draft.text for special in SPECIALS)
        assert "\ufffd" not in draft.text
        assert 0 <= draft.p_accept <= 1


@pytest.mark.slow
@settings(max_examples=15)
@given(gaps, st.sampled_from(["low", "high"]), st.integers(0, 2), st.sampled_from([0.0, 0.3]), st.booleans())
def test_drafts_only_grow_and_end_behind_words(asked, effort, seed, bar, invoked):
    asked = replace(asked, effort=effort, seed=seed, invoked=invoked)
    *drafts, last = [draft.text for draft in engine(random_runtime(), bar=bar).fill(asked)]
    for earlier, later in pairwise(drafts):
        assert later.startswith(earlier)
        assert not splits_word(earlier.encode(), later[len(earlier) :].encode())
    is_cut = drafts and drafts[-1].startswith(last)  # what goes round in circles, or out of the block
    assert not drafts or is_cut or last.startswith(drafts[-1])


class Counting(TorchRuntime):
    forwards_run = 0

    def _batched(self, passes):
        self.forwards_run += 1
        return super()._batched(passes)


@pytest.mark.slow
@settings(max_examples=15)
@given(gaps, st.sampled_from(["instant", "low", "medium", "high"]), st.integers(0, 2))
@example(gap("$0\n"), "high", 1)
def test_cancelling_waits_for_one_forward_at_most(asked, effort, seed):
    runtime = Counting(random_runtime().model)
    answering = engine(runtime)
    long = replace(asked, before=long_document().replace("$0", "") + asked.before, effort=effort, seed=seed)
    for steps in (answering.warm(long), answering.fill(long)):
        before = runtime.forwards_run
        for _ in steps:
            assert runtime.forwards_run - before <= 1
            before = runtime.forwards_run
        assert runtime.forwards_run - before <= 1


def long_document():
    return "".join(f"value_{i} = {i}\n" for i in range(40)) + "total = $0\n"


def test_context_is_read_in_chunks_with_a_pause_after_each():
    answering = engine(random_runtime())
    drafts = list(answering.fill(gap(long_document(), effort="instant")))
    assert answering.report.actions == {"read": 1, "canvas": 1}
    assert [draft.final for draft in drafts] == [False, True]


def test_typed_token_is_not_read_twice():
    answering = engine(random_runtime())
    list(answering.fill(gap(long_document(), effort="instant")))
    before = answering.report.rows
    list(answering.fill(gap(long_document().replace("$0", "v$0"), effort="instant")))
    assert answering.report.rows - before <= 2 + 16


def test_requests_of_a_session_in_turn_do_not_disturb_each_other():
    one = gap(DOCUMENT.replace("hypot", "hy$0"), effort="medium")
    two = gap(DOCUMENT.replace("area", "ar$0"), effort="medium")
    answering = engine(random_runtime())
    first, second = answering.fill(one), answering.fill(two)
    drafts = {id(first): None, id(second): None}
    running = [first, second]
    while running:
        for drafting in list(running):
            draft = next(drafting, None)
            if draft is None:
                running.remove(drafting)
            else:
                drafts[id(drafting)] = draft
    alone = engine(random_runtime(), decode="ar")
    check_close(drafts[id(first)], final(alone, one))
    check_close(drafts[id(second)], final(alone, two))


def test_begun_words_are_spelled_by_every_decoder():
    for part in ("wi", "widt", "self.h", "  re"):
        asked = gap(f"x = {part}$0\n", effort="medium", most_tokens=8)
        check_close(final(engine(random_runtime()), asked), plain(asked))


def test_answer_has_no_more_tokens_than_its_budget():
    for budget in (1, 3, 9):
        filled = final(engine(random_runtime()), gap("x = $0", block=True, effort="high", most_tokens=budget))
        assert len(filled.confidence) <= budget
        assert len(TOKENIZER.decode(TOKENIZER.encode(filled.text))) == len(filled.text)
