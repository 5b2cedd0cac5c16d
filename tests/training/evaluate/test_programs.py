"""Rows with answers in them are run in the sandbox, whatever form their tests have."""

import os
import platform

import msgspec
import pytest

from mercury_training.errors import TrainingError
from mercury_training.evaluate.programs import program
from mercury_training.evaluate.sandbox import Limits, Sandbox
from mercury_training.rows.fim_rows import read_humaneval
from tests.training.rows.test_fim_rows import ROW, written


@pytest.fixture(scope="module")
def sandbox():
    if platform.system() != "Linux" or os.geteuid() != 0:
        pytest.skip("namespaces need Linux and root")
    with Sandbox(Limits(seconds=20)) as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    ("middle", "passes"), [("    y = 2 * x", True), ("    y = x + x", True), ("    y = x", False), ("", False)]
)
def test_humaneval_rows_are_run(sandbox, tmp_path, middle, passes):
    (row,) = read_humaneval(written(tmp_path), "single-line")
    assert sandbox.run(program(row, middle)).passed is passes


def run_as(sandbox, middle, **how):
    source = "def double(x):\n    '''\n    >>> double(2)\n    4\n    '''\n    return "
    row = msgspec.structs.replace(ROW, prefix=source, exec={"module": "shapes", **how})
    return sandbox.run(program(row, middle)).passed


@pytest.mark.parametrize(
    ("middle", "passes"), [("2 * x", True), ("x + x", True), ("x", False), ("", False), ("(", False)]
)
def test_doctests_are_run(sandbox, middle, passes):
    assert run_as(sandbox, middle, type="doctest", object="double") is passes


def test_object_without_examples_does_not_pass(sandbox):
    assert not run_as(sandbox, "2 * x\n\ndef other(): pass", type="doctest", object="other")


TEST = """
import unittest, shapes

class Doubling(unittest.TestCase):
    def test_double(self):
        self.assertEqual(shapes.double(3), 6)
"""


@pytest.mark.parametrize(("middle", "passes"), [("2 * x", True), ("x", False), ("", False)])
def test_unittests_are_run(sandbox, middle, passes):
    assert run_as(sandbox, middle, type="unittest", test=TEST) is passes


@pytest.mark.parametrize(
    "tests", [{"tests": TEST}, {"tests": ["import os", TEST]}, {"test": "import os", "tests": [TEST]}]
)
def test_tests_may_be_one_or_several_texts(sandbox, tests):
    assert run_as(sandbox, "2 * x", type="unittest", **tests)
    assert not run_as(sandbox, "x", type="unittest", **tests)


def test_asserts_may_come_as_a_list(sandbox):
    how = {"type": "humaneval", "entry_point": "double"}
    tests = ["def check(candidate):\n    assert candidate(3) == 6", "assert double(4) == 8"]
    assert run_as(sandbox, "2 * x", tests=tests, **how)
    assert not run_as(sandbox, "x + 3", tests=tests, **how)


def test_missing_tests_do_not_pass(sandbox):
    assert not run_as(sandbox, "2 * x", type="unittest", test="")


def test_unknown_way_to_run_is_named():
    row = msgspec.structs.replace(ROW, exec={"type": "nose"})
    with pytest.raises(TrainingError, match=r"'nose'.*doctest"):
        program(row, "x")
