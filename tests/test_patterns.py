"""Every regular expression takes time in proportion to the text, however a file or a message was made to be hard."""

import re
import subprocess
import sys

import pytest

from tests.patterns import ROOT, hard_texts


@pytest.mark.slow
def test_patterns_are_linear():
    checked = subprocess.run([sys.executable, "-m", "tests.patterns"], cwd=ROOT, capture_output=True, text=True)
    *_, pattern = [line for line in checked.stderr.splitlines() if line.startswith(("mercury_ls/", "engine/"))]
    assert (checked.returncode, checked.stdout.strip()) == (0, ""), f"the last one tried is that of {pattern}"


@pytest.mark.parametrize(
    ("pattern", "unit"),
    [(r"\((?:[^)#]|#[^\n]*)*\)", "#"), (r"\s+$", " "), (r"(?:a|b)+c", "ab"), (r"(?i)x(?:\\.|[^\"])*\"", "\\")],
)
def test_hard_texts_repeat_what_a_pattern_repeats(pattern, unit):
    assert unit in [text.unit for text in hard_texts(re.compile(pattern))]
