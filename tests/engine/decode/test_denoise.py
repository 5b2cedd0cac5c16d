"""Decoding by any mixture of actions says what plain autoregression of the same weights says."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mercury_engine.api import Filled
from mercury_engine.decode.confidence import Calibration
from mercury_engine.decode.costs import Costs
from mercury_engine.decode.ending import indentation, inside, once
from mercury_engine.model.torch_runtime import TorchRuntime
from mercury_engine.tokens.layout import freeze, lay_out
from mercury_engine.tokens.vocabulary import EOM, HOLES, SPECIALS
from tests.engine.tiny import BUDGET, DOCUMENT, FLAT, STEEP, TOKENIZER, engine, final, random_runtime, request

CPU = Costs((1, 8, 16, 32, 64), (4.5, 7.3, 12.0, 17.0, 29.0))
AVX2 = Costs((1, 2, 4, 8, 16, 32), (47.0, 51.0, 69.0, 117.0, 172.0, 287.0))

words = st.lists(st.sampled_from(["self", ".", "wi", "(", ")", " ", "return ", "é", "1", "\n    ", "="]), max_size=8)
code = words.map("".join)
cursors = st.tuples(code, code, st.sampled_from(["line", "block"])).map(
    lambda drawn: request(f"{drawn[0]}$0{drawn[1]}\n", mode=drawn[2], budget=16)
)
holes = st.lists(st.tuples(code, code), min_size=1, max_size=3).map(
    lambda drawn: request("".join(f"{text}[[{old}x]]" for text, old in drawn) + "\n", mode="edit", budget=10)
)
insertions = st.lists(code, min_size=2, max_size=3).map(
    lambda drawn: request("".join(f"{text}[[]]" for text in drawn) + "\n", mode="line", budget=10)
)


def plain(asked, seed=0):
    """The answers token by token, everything computed anew for each: slow, and written from the layout alone."""
    row = lay_out(TOKENIZER, asked, freeze(TOKENIZER, asked, BUDGET), BUDGET)
    end = row.holes[0].anchor + 1
    ids, positions = row.ids[:end].tolist(), row.positions[:end].tolist()
    answers = []
    for number, (hole, span) in enumerate(zip(row.holes, asked.spans, strict=True)):
        if number:
            ids += [] if ids[-1] == EOM else [EOM]
            ids.append(HOLES[number])
            positions += [positions[-1] + 1] * (len(ids) - len(positions) - 1) + [int(row.positions[hole.anchor])]
        said, probabilities = [], []
        while len(said) < span.budget and not ended(said, span.mode) and not within(asked, span, text_of(hole, said)):
            token, probability = next_token(random_runtime(seed).model, ids, positions, hole.part, said)
            said.append(token)
            probabilities.append(probability)
            ids.append(token)
            positions.append(positions[-1] + 1)
        answers.append((hole, span, said, probabilities))
    return [reference(asked, *answer) for answer in answers]


def ended(said, mode):
    return bool(said) and (said[-1] == EOM or (mode == "line" and b"\n" in TOKENIZER.token_bytes[said[-1]]))


def within(asked, span, text):
    """The text of an insertion that goes on outside of its place, or goes round in circles, and whether it is complete;
    None for any other."""
    if span.start != span.end:
        return None
    line = asked.windows[0].text[: span.start].rpartition("\n")[2]
    kept = inside(text, indentation(line))
    if kept != text:
        return kept, True
    return (once(text), False) if once(text) != text else None


def text_of(hole, said):
    kept = [token for token in said if token != EOM]
    return TOKENIZER.decode_bytes(kept)[len(hole.part.encode()) :].decode("utf-8", "replace").partition("\ufffd")[0]


def next_token(model, ids, positions, part, said):
    with torch.no_grad():
        hidden, _ = model(torch.tensor([ids]), torch.tensor([positions]))
        logits = model.logits(hidden[0, -1:])[0].numpy().astype(float)
    typed = part.encode()[len(TOKENIZER.decode_bytes(said)) :]
    spelling = [t for t, b in enumerate(TOKENIZER.token_bytes) if b and (b.startswith(typed) or typed.startswith(b))]
    permitted = spelling if typed else [EOM, *range(len(SPECIALS), TOKENIZER.vocabulary)]
    odds = np.exp(logits[permitted] - logits[permitted].max())
    best = int(odds.argmax())
    return permitted[best], float(odds[best] / odds.sum())


def reference(asked, hole, span, said, probabilities):
    old = asked.windows[0].text[span.start : span.end]
    complete = ended(said, span.mode)
    if old and not complete:
        return Filled(old)
    kept, text = [token for token in said if token != EOM], text_of(hole, said)
    if span.mode == "line":
        text = text.partition("\n")[0].removesuffix("\r")
    if found := within(asked, span, text):
        text, complete = found[0], complete or found[1]
        kept = kept[: covering(kept, len((hole.part + text).encode()))]
    return Filled(text, tuple(probabilities[: len(kept)]), 0.0, complete)


def covering(kept, size):
    """How many tokens spell so many bytes; one at least."""
    return next(count for count in range(1, len(kept) + 1) if len(TOKENIZER.decode_bytes(kept[:count])) >= size)


def with_effort(asked, effort):
    return replace(asked, effort=effort)


def check_close(found, expected):
    assert [filled.text for filled in found.spans] == [filled.text for filled in expected]
    for one, other in zip(found.spans, expected, strict=True):
        assert one.confidence == pytest.approx(other.confidence, abs=1e-3)
        assert one.complete == other.complete


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.one_of(cursors, holes, insertions),
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
@settings(max_examples=25)
@given(cursors, st.integers(0, 2), st.sampled_from([0.5, 0.7]))
@example(request("self.wi$0\n", budget=16), 0, 0.7)
def test_answer_given_up_while_somebody_types_would_not_be_shown(asked, seed, bar):
    quick, patient = (engine(random_runtime(seed), calibration=Calibration(bias=5.0), bar=0.45) for _ in range(2))
    found = final(quick, replace(asked, bar=bar)).spans[0]
    heard_out = final(patient, replace(asked, bar=bar, effort="medium")).spans[0]
    assert (found.text if found.p_accept >= bar else "") == (heard_out.text if heard_out.p_accept >= bar else "")
    assert quick.report.settled <= patient.report.settled


def test_answer_that_cannot_become_likely_is_given_up_at_its_first_token_while_somebody_types():
    settled = []
    for bar in (0.0, 0.7):
        answering = engine(random_runtime(), calibration=Calibration(bias=-2.0), bar=0.45)
        final(answering, request("self.wi$0\n", bar=bar))
        settled.append(answering.report.settled)
    assert settled[0] > settled[1] == 1


@pytest.mark.slow
@settings(max_examples=15)
@given(st.lists(cursors, min_size=2, max_size=5))
def test_session_answers_successive_requests_like_a_fresh_one(sequence):
    """Requests of one path share a cache, drafts and statistics."""
    answering = engine(random_runtime())
    for asked in sequence:
        list(answering.warm(asked))
        check_close(final(answering, with_effort(asked, "medium")), plain(asked))


@pytest.mark.slow
@settings(max_examples=15)
@given(st.one_of(cursors, holes, insertions), st.integers(0, 8), st.sampled_from(["instant", "low", "high"]))
def test_cancelling_anywhere_leaves_nothing_wrong_behind(asked, pauses, effort):
    answering = engine(random_runtime())
    drafts = answering.infill(with_effort(asked, effort))
    for _, draft in zip(range(pauses), drafts, strict=False):
        assert not draft.final or draft.step <= pauses
    drafts.close()
    check_close(final(answering, with_effort(asked, "medium")), plain(asked))


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.one_of(cursors, holes, insertions),
    st.sampled_from(["instant", "low", "medium", "high"]),
    st.integers(0, 2),
    st.sampled_from([0.0, 0.3]),
)
def test_drafts_end_in_one_final_and_never_show_a_special_token(asked, effort, seed, bar):
    drafts = list(engine(random_runtime(), bar=bar).infill(replace(asked, effort=effort, seed=seed)))
    assert [draft.final for draft in drafts] == [False] * (len(drafts) - 1) + [True]
    assert [draft.step for draft in drafts] == list(range(1, len(drafts) + 1))
    for draft in drafts:
        assert len(draft.spans) == len(asked.spans)
        for filled in draft.spans:
            assert not any(special in filled.text for special in SPECIALS)
            assert "\ufffd" not in filled.text
            assert 0 <= filled.p_accept <= 1


class Counting(TorchRuntime):
    forwards_run = 0

    def _batched(self, passes):
        self.forwards_run += 1
        return super()._batched(passes)


@pytest.mark.slow
@settings(max_examples=15)
@given(st.one_of(cursors, holes, insertions), st.sampled_from(["instant", "low", "medium", "high"]), st.integers(0, 2))
@example(request("$0\n"), "high", 1)
def test_cancelling_waits_for_one_forward_at_most(asked, effort, seed):
    runtime = Counting(random_runtime().model)
    answering = engine(runtime)
    text = long_document().replace("$0", "") + asked.windows[0].text
    moved = len(text) - len(asked.windows[0].text)
    spans = tuple(replace(span, start=span.start + moved, end=span.end + moved) for span in asked.spans)
    long = replace(asked, windows=(replace(asked.windows[0], text=text),), spans=spans, effort=effort, seed=seed)
    for steps in (answering.warm(long), answering.infill(long)):
        before = runtime.forwards_run
        for _ in steps:
            assert runtime.forwards_run - before <= 1
            before = runtime.forwards_run
        assert runtime.forwards_run - before <= 1


def long_document():
    return "".join(f"value_{i} = {i}\n" for i in range(40)) + "total = $0\n"


def test_context_is_read_in_chunks_with_a_pause_after_each():
    answering = engine(random_runtime())
    drafts = list(answering.infill(request(long_document(), effort="instant")))
    assert answering.report.actions == {"read": 1, "canvas": 1}
    assert [draft.final for draft in drafts] == [False, True]


def test_typed_token_is_not_read_twice():
    answering = engine(random_runtime())
    list(answering.infill(request(long_document(), effort="instant")))
    before = answering.report.rows
    list(answering.infill(request(long_document().replace("$0", "v$0"), effort="instant")))
    assert answering.report.rows - before <= 2 + 16


def test_requests_of_a_session_in_turn_do_not_disturb_each_other():
    one = request(DOCUMENT.replace("hypot", "hy$0"), effort="medium")
    two = request(DOCUMENT.replace("area", "ar$0"), effort="medium")
    answering = engine(random_runtime())
    first, second = answering.infill(one), answering.infill(two)
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
    check_close(drafts[id(first)], final(alone, one).spans)
    check_close(drafts[id(second)], final(alone, two).spans)


def test_begun_words_are_spelled_by_every_decoder():
    for part in ("wi", "widt", "self.h", "  re"):
        asked = request(f"x = {part}$0\n", effort="medium", budget=8)
        check_close(final(engine(random_runtime()), asked), plain(asked))


def test_answer_has_no_more_tokens_than_its_budget():
    for budget in (1, 3, 9):
        filled = final(engine(random_runtime()), request("x = $0", mode="block", effort="high", budget=budget))
        assert len(filled.spans[0].confidence) <= budget
        assert len(TOKENIZER.decode(TOKENIZER.encode(filled.spans[0].text))) == len(filled.spans[0].text)
