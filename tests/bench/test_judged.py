"""What is drawn from a program, and what each call has to pass afterwards."""

import ast
import random

import pytest

from bench.judged import Change, Declared, arguments_after, calls, parameter_changes
from mercury_ls.code.documents import Document

PROGRAM = """\
class Box:
    def resize(self, width, height=1):
        total = width + height
        return total


def area(first, second, third):
    return Box().resize(first, height=second)


SIZES = area(1, 2, 3)
"""


@pytest.mark.parametrize("seed", range(8))
def test_parameter_changes_leave_a_program(seed):
    program = Document("file:///a.py", "a.py", "python", 1, PROGRAM).snapshot()
    for change in parameter_changes(program, random.Random(seed)):
        after = PROGRAM[: change.start] + change.text + PROGRAM[change.end :]
        assert ast.parse(after)
        assert len(change.moved) == len(change.names) - (change.declared.kind == "removed")


@pytest.mark.parametrize(
    ("call", "moved", "due"),
    [
        ("f(1, 2)", (0, 2), ["1"]),
        ("f(1, 2, 3)", (1, 2), ["2", "3"]),
        ("f(1, 2, 3)", (1, 0, 2), ["2", "1", "3"]),
        ("f(1, b=2)", (0, 2), ["1"]),
        ("f(1, c=3)", (0, 2), ["1", "c=3"]),
        ("f(1)", (1, 2), []),
        ("f(*rest)", (1, 2), ["*rest"]),
        ("f(1, c=3, b=2)", (1, 0, 2), ["1", "c=3", "b=2"]),
    ],
)
def test_calls_pass_what_is_left_in_its_new_order(call, moved, due):
    change = Change(Declared("a.py", 0, "f", ""), 0, 0, "", ("a", "b", "c"), moved)
    [(at, node)] = calls(call, "f").items()
    assert at == 0
    assert arguments_after(node, change) == due
