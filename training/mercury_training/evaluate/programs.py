"""Checks answers by running them: a row with the answer in it becomes a Python program that passes or fails."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from mercury_training.errors import TrainingError
from mercury_training.evaluate.sandbox import Sandbox, SandboxError
from mercury_training.rows.fim_rows import FimRow

Execute = Callable[[FimRow, str], bool | None]
"""True if a row passes with this answer in it; None if it cannot be run."""


@contextmanager
def executor(rows: Iterable[FimRow]) -> Iterator[tuple[Execute, str]]:
    """A function that runs a row with an answer in it, and the reason if programs cannot be isolated here."""
    with ExitStack() as stack:
        sandbox, reason = None, ""
        if any(row.exec for row in rows):
            try:
                sandbox = stack.enter_context(Sandbox())
            except SandboxError as error:
                reason = str(error)
                print(f"not executed: {error}", file=sys.stderr)
        yield lambda row, answer: sandbox.run(program(row, answer)).passed if sandbox and row.exec else None, reason


def check(sets: dict[str, list[FimRow]]) -> str:
    """How many rows pass with their true middle, as all should, with an empty one, and with `pass`."""
    lines = []
    with Sandbox() as sandbox:
        for name, rows in sets.items():
            rows = [row for row in rows if row.exec]
            counts = [
                sum(sandbox.run(program(row, row.middle if middle is None else middle)).passed for row in rows)
                for middle in (None, "", "pass")
            ]
            lines.append(f"{name}: of {len(rows)}, true {counts[0]}, empty {counts[1]}, pass {counts[2]} passed")
    return "\n".join(lines)


def program(row: FimRow, middle: str) -> str:
    """A Python program that passes if the middle is right."""
    assert row.exec, f"{row.id} cannot be run"
    source = row.prefix + middle + row.suffix
    how = row.exec["type"]
    if how not in PROGRAMS:
        raise TrainingError(f"{row.id}: exec.type is {how!r}, not one of {', '.join(PROGRAMS)}")
    return PROGRAMS[how](source, row.exec)


def _humaneval(source: str, how: dict[str, Any]) -> str:
    return f"{source}\n{_tests(how)}\ncheck({how['entry_point']})\n"


def _doctest(source: str, how: dict[str, Any]) -> str:
    """A program that runs the examples of one object of the module, of which there must be some."""
    return f"""{_module(source, how["module"])}
import doctest
tested = module
for part in {how["object"]!r}.split("."):
    tested = getattr(tested, part)
runner = doctest.DocTestRunner(verbose=False)
for test in doctest.DocTestFinder().find(tested, {how["object"]!r}, module, globs=dict(vars(module))):
    runner.run(test)
assert runner.tries and not runner.failures
"""


def _unittest(source: str, how: dict[str, Any]) -> str:
    """A program that runs the tests in the text of a file that imports the module."""
    return f"""{_module(source, how["module"])}
import unittest
tests = types.ModuleType("tests")
exec(compile({_tests(how)!r}, "tests.py", "exec"), vars(tests))
result = unittest.TestResult()
unittest.defaultTestLoader.loadTestsFromModule(tests).run(result)
assert result.testsRun and result.wasSuccessful()
"""


def _tests(how: dict[str, Any]) -> str:
    """The text of `test`, or the one or several of `tests`."""
    several = how.get("tests", ())
    texts = [how.get("test", ""), *([several] if isinstance(several, str) else several)]
    return "\n\n".join(texts).strip("\n") + "\n"


def _module(source: str, name: str) -> str:
    return f"""import sys, types
module = types.ModuleType({name!r})
sys.modules[{name!r}] = module
exec(compile({source!r}, {name + ".py"!r}, "exec"), vars(module))"""


PROGRAMS = {"humaneval": _humaneval, "doctest": _doctest, "unittest": _unittest}
