"""Parameters are read from text that need not parse."""

from pathlib import Path

from mercury_ls.code.parameters import parameter_names
from tests.cases import Case, each_case


@each_case(Path(__file__).parent / "cases/parameters.txt")
def test_parameters_have_names(case: Case):
    assert " ".join(parameter_names(case.drawn.rstrip("\n"), case.key)) == case.expected
