"""What made-up users see of made-up servers, in the first hour and after some hundred answers."""

import pytest

from tests.mercury_ls.completion.made_up_users import BLOCK_TOKENS, SERVERS, measured

EACH_SERVER = pytest.mark.parametrize("server", SERVERS)


@EACH_SERVER
def test_perfect_model_is_shown_from_the_first_answer(server):
    seeds = range(5)
    lines = [measured(server, 1.0, 0, seed).shown for seed in seeds]
    blocks = [measured(server, 1.0, 0, seed, BLOCK_TOKENS).shown for seed in seeds]
    assert sum(lines) / len(lines) >= 0.97
    assert sum(blocks) / len(blocks) >= 0.97


def test_telling_log_probabilities_are_used_from_the_first_answer():
    fresh = measured("informative", 0.5, 0)
    assert fresh.right_when_shown >= 0.85
    assert fresh.worth_showing_shown >= 0.97


@EACH_SERVER
def test_user_keeping_thirty_percent_sees_what_is_worth_it(server):
    assert measured(server, 0.3).worth_showing_shown >= 0.9


@EACH_SERVER
def test_user_keeping_five_percent_sees_little(server):
    assert measured(server, 0.05, 150).shown <= 0.12
