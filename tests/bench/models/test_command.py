"""The benchmark of other people's models: its table, its prompts, and contestants that die."""

import sys

import numpy as np

from bench.models.command import PROMPT, SUFFIX, Contestant, measured, prompts, summary, table
from bench.models.shapes import SHAPES, config_of


def test_a_prompt_that_changed_differs_by_one_token():
    cold, warm, suffix = prompts(0)
    assert (len(cold), len(warm), len(suffix)) == (PROMPT, PROMPT + 1, PROMPT + 1)
    assert np.array_equal(warm[:-1], cold)
    assert np.array_equal(np.delete(suffix, PROMPT - SUFFIX), cold)
    assert not np.array_equal(prompts(1)[0], cold)


def test_the_shapes_are_the_real_ones():
    found = {name: (config.layers, config.width, config.head_width) for name in SHAPES for config in [config_of(name)]}
    assert found == {"qwen2.5-coder-0.5b": (24, 896, 64), "qwen2.5-coder-1.5b": (28, 1536, 128)}


def test_a_contestant_that_dies_is_reported_and_ends_nothing():
    nobody = Contestant("nobody", "nothing", "nowhere", sys.executable)
    found = measured([nobody, nobody], threads=1, rounds=2)
    assert "KeyError: 'nothing'" in found["nobody"]["died"]
    assert "died: exit status 1" in table(found)


def test_a_cell_has_the_median_and_the_spread():
    answers = [{"whole": whole, "first": whole / 10} for whole in (0.3, 0.1, 0.2)]
    assert summary(answers) == "200 (100-300) · 20"
    assert summary([]) == "-"
