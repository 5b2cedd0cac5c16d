"""Exact answers are those that greedy decoding writes, and the old lines' probability tells where a change is due."""

import math

import torch

from mercury_training.edits.judge import AnswerVerdict, judge, likeliest_change, score
from mercury_training.edits.rows import AnswerSpan
from mercury_training.edits.teacher import Teacher
from tests.training.edits.test_rows import AFTER, BEFORE, commit
from tests.training.edits.test_teacher import folder as folder
from tests.training.small import TOKENIZER


def verdict(
    log_probability: float, *, due: bool, repeats: bool, exact: bool = False, inferable: bool = True
) -> AnswerVerdict:
    return AnswerVerdict(AnswerSpan(0, 1, 0, due, repeats), log_probability, exact, inferable)


def test_scores_count_exact_answers_and_order_places():
    result = score(
        [
            verdict(-1, due=True, repeats=False, exact=True),
            verdict(-1, due=True, repeats=False, inferable=False),
            verdict(-9, due=True, repeats=True),
            verdict(-2, due=True, repeats=True),
            verdict(-1, due=False, repeats=True),
            verdict(-3, due=False, repeats=True),
        ]
    )
    assert (result.due, result.exact, result.inferable, result.inferable_exact) == (2, 1, 1, 1)
    assert result.area == 0.75


def test_scores_without_places_have_no_area():
    assert math.isnan(score([verdict(-1, due=True, repeats=False)]).area)


def logs(*rows: tuple[float, ...]) -> torch.Tensor:
    return torch.tensor(rows).log()


def test_likeliest_change_leaves_the_old_lines_where_another_token_is_likeliest():
    old, behind_old = torch.tensor([0, 1, 2]), logs((0.9, 0.1, 0.0), (0.3, 0.6, 0.1), (0.1, 0.1, 0.8))
    behind_new = logs((0.9, 0.1, 0.0), (0.3, 0.6, 0.1), (0.1, 0.7, 0.2))
    assert likeliest_change(torch.tensor([0, 0, 1]), behind_new, old, behind_old)
    assert not likeliest_change(torch.tensor([0, 0, 2]), behind_new, old, behind_old)
    assert not likeliest_change(torch.tensor([1, 0, 1]), behind_new, old, behind_old)
    assert not likeliest_change(old, behind_old, old, behind_old)


def test_model_that_has_learned_an_answer_writes_it(folder):
    torch.manual_seed(0)
    teacher = Teacher(folder, 4)
    verdicts = [*judge(teacher, TOKENIZER, [commit(BEFORE, AFTER)])]
    assert {answer.due for answer in (verdict.answer for verdict in verdicts)} >= {True}
    assert all(verdict.log_probability < 0 for verdict in verdicts)
    assert score(verdicts).exact == 0
