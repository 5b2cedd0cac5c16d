"""The likeliest changes of several places, judged and written together, are what each place says by itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mercury_engine.decode.batching import run_unbatched
from mercury_engine.decode.rewriting import RegionAnswer, RegionQuestion, Rewriting
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.model.config import TINY
from mercury_engine.model.runtime import Rows
from mercury_engine.tokens.vocabulary import EOM, INS, SPECIALS
from tests.engine.tiny import random_runtime

LIMIT = 12
PERMITTED_V = np.arange(TINY.vocabulary) >= len(SPECIALS)
PERMITTED_V[EOM] = True

text = st.lists(st.integers(len(SPECIALS), TINY.vocabulary - 1), max_size=6)
questions = st.builds(lambda asked, old: RegionQuestion([*asked, INS], [*old, EOM]), text, text)


def rewriting(session: EngineSession, ids: list[int], asked: list[RegionQuestion], least=-np.inf) -> Rewriting:
    return Rewriting(session, np.array(ids, np.int32), asked, PERMITTED_V, LIMIT, least)


def written(rewriting: Rewriting, count: int = 99) -> list[RegionAnswer]:
    runtime = random_runtime()
    list(run_unbatched(runtime, rewriting.judge(range(len(rewriting.questions)))))
    list(run_unbatched(runtime, rewriting.write(count)))
    return list(rewriting.answers.values())


def likeliest_change(ids: list[int], question: RegionQuestion) -> RegionAnswer:
    """Everything read anew for each token: from each token of the old lines on, the likeliest text with another one."""
    before = [*ids, *question.question]
    changes = [_parting(before, list(question.old), at) for at in range(len(question.old))]
    log_kept = sum(float(_logs([*before, *question.old[:at]])[token]) for at, token in enumerate(question.old))
    complete = [change for change in changes if change.complete]
    best = max(complete, key=lambda change: np.log(change.probabilities).sum(), default=RegionAnswer(0))
    return replace(best, log_kept=log_kept)


def _parting(before: list[int], old: list[int], at: int) -> RegionAnswer:
    ids: list[int] = []
    probabilities: list[float] = []
    while not ids or (ids[-1] != EOM and len(ids) <= LIMIT):
        place = len(ids)
        logs_V = _logs([*before, *ids])
        open_V = np.where(PERMITTED_V, logs_V, -np.inf)
        if place == at:
            open_V[old[at]] = -np.inf
        token = old[place] if place < at else int(open_V.argmax())
        ids.append(token)
        probabilities.append(float(np.exp(logs_V[token])))
    is_complete = ids[-1] == EOM
    return RegionAnswer(0, tuple(ids[: len(ids) - is_complete]), tuple(probabilities), complete=is_complete)


def _logs(ids: list[int]) -> np.ndarray:
    runtime = random_runtime()
    forward = runtime.forward(Rows(np.array(ids, np.int32), np.arange(len(ids), dtype=np.int32)), runtime.cache())
    logits_V = np.asarray(forward.logits_WV, np.float64)[-1]
    return logits_V - logits_V.max() - np.log(np.exp(logits_V - logits_V.max()).sum())


def check(answers: list[RegionAnswer], ids: list[int], asked: list[RegionQuestion]) -> None:
    for answer, question in zip(answers, asked, strict=True):
        expected = likeliest_change(ids, question)
        assert answer.log_kept == pytest.approx(expected.log_kept, abs=1e-3)
        if answer.complete and len(answer.ids) < LIMIT:
            assert answer.ids == expected.ids
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
    written(longer, 0)
    sizes = sum(len(question.question) + len(question.old) - 1 for question in asked)
    assert (longer.passes, longer.rows - sizes) <= (1, len(more) + 1)


def test_unlikely_changes_are_not_written():
    asked = [RegionQuestion([len(SPECIALS), INS], [EOM])]
    judging = rewriting(EngineSession(random_runtime().cache()), [len(SPECIALS) + 1], asked, least=-0.001)
    assert not written(judging)[0].complete
    assert judging.passes == 1


def test_session_that_another_request_used_is_read_again():
    ids, asked = [len(SPECIALS) + 1, len(SPECIALS) + 2], [RegionQuestion([len(SPECIALS), INS], [EOM])]
    runtime, session = random_runtime(), EngineSession(random_runtime().cache())
    first = rewriting(session, ids, asked)
    list(run_unbatched(runtime, first.judge([0])))
    steps = run_unbatched(runtime, first.write(1))
    next(steps)
    written(rewriting(session, [len(SPECIALS) + 7], asked))
    list(steps)
    check([first.answers[0]], ids, asked)
