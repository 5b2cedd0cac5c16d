"""Several places judged and written together say what each says by itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.decode.batching import run_unbatched
from mercury_engine.decode.rewriting import RegionAnswer, RegionQuestion, Rewriting
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.model.config import TINY
from mercury_engine.model.runtime import Rows
from mercury_engine.tokens.prefix import Prefix
from mercury_engine.tokens.vocabulary import EOM, INS, SPECIALS
from tests.engine.tiny import random_runtime

LIMIT = 12
PERMITTED_V = np.arange(TINY.vocabulary) >= len(SPECIALS)
PERMITTED_V[EOM] = True

text = st.lists(st.integers(len(SPECIALS), TINY.vocabulary - 1), max_size=6)
questions = st.builds(lambda asked, old: RegionQuestion([*asked, INS], [*old, EOM]), text, text)


def past(ids: list[int]) -> Prefix:
    return Prefix.of(ids, np.arange(len(ids), dtype=np.int32))


def rewriting(session: EngineSession, ids: list[int], asked: list[RegionQuestion]) -> Rewriting:
    return Rewriting(session, past(ids), asked, PERMITTED_V, LIMIT)


def written(rewriting: Rewriting, numbers: list[int] | None = None) -> list[RegionAnswer]:
    runtime = random_runtime()
    every = range(len(rewriting.questions))
    list(run_unbatched(runtime, rewriting.judge(every)))
    list(run_unbatched(runtime, rewriting.write(every if numbers is None else numbers)))
    return [rewriting.answers[number] for number in every]


def token_by_token(ids: list[int], question: RegionQuestion) -> RegionAnswer:
    """The likeliest answer, everything read anew for each token."""
    answer = RegionAnswer()
    old: list[int] = []
    for token in question.old:
        answer.log_kept += float(_logs([*ids, *question.question, *old])[token])
        old.append(token)
    while not answer.complete and len(answer.ids) < LIMIT:
        logs_V = _logs([*ids, *question.question, *answer.ids])
        token = int(np.where(PERMITTED_V, logs_V, -np.inf).argmax())
        answer.probabilities.append(float(np.exp(logs_V[token])))
        answer.complete = token == EOM
        answer.ids += [] if answer.complete else [token]
    return answer


def _logs(ids: list[int]) -> np.ndarray:
    runtime = random_runtime()
    forward = runtime.forward(Rows(np.array(ids, np.int32), np.arange(len(ids), dtype=np.int32)), runtime.cache())
    logits_V = np.asarray(forward.logits_WV, np.float64)[-1]
    return logits_V - logits_V.max() - np.log(np.exp(logits_V - logits_V.max()).sum())


def check(answers: list[RegionAnswer], ids: list[int], asked: list[RegionQuestion]) -> None:
    for answer, question in zip(answers, asked, strict=True):
        expected = token_by_token(ids, question)
        tokens = min(LIMIT, len(answer.ids))
        assert answer.ids[:LIMIT] == expected.ids[:tokens]
        assert answer.log_kept == pytest.approx(expected.log_kept, abs=1e-3)
        if answer.complete:
            assert answer.probabilities == pytest.approx(expected.probabilities, abs=1e-3)


@settings(max_examples=10, deadline=None)
@given(text.filter(bool), st.lists(questions, min_size=1, max_size=3))
def test_places_do_not_see_each_other(ids: list[int], asked: list[RegionQuestion]):
    check(written(rewriting(EngineSession(random_runtime().cache()), ids, asked)), ids, asked)


@settings(max_examples=10, deadline=None)
@given(text.filter(bool), text, st.lists(questions, min_size=1, max_size=3))
def test_past_is_read_once(ids: list[int], more: list[int], asked: list[RegionQuestion]):
    session = EngineSession(random_runtime().cache())
    written(rewriting(session, ids, asked))
    longer = rewriting(session, ids + more, asked)
    check(written(longer), ids + more, asked)
    sizes = sum(len(question.question) + len(question.old) - 1 for question in asked)
    assert longer.rows - sizes <= len(more) + 1 + len(asked) * LIMIT * 8


def test_judging_writes_old_lines_as_far_as_they_are_likeliest():
    ids = [len(SPECIALS) + 1]
    likeliest = token_by_token(ids, RegionQuestion([INS], [EOM])).ids
    judging = rewriting(EngineSession(random_runtime().cache()), ids, [RegionQuestion([INS], [*likeliest[:5], EOM])])
    assert written(judging, [])[0].ids == likeliest[:6]
    assert judging.passes == 1


def test_session_that_another_request_used_is_read_again():
    ids, asked = [len(SPECIALS) + 1, len(SPECIALS) + 2], [RegionQuestion([len(SPECIALS), INS], [EOM])]
    runtime, session = random_runtime(), EngineSession(random_runtime().cache())
    first = rewriting(session, ids, asked)
    list(run_unbatched(runtime, first.judge([0])))
    steps = run_unbatched(runtime, first.write([0]))
    next(steps)
    written(rewriting(session, [len(SPECIALS) + 7], asked))
    list(steps)
    check([first.answers[0]], ids, asked)
