"""Real Emacsen."""

from pathlib import Path

import pytest

from tests.editors.tools import found


@pytest.fixture
def emacs() -> Path:
    """The program."""
    program = found("emacs")
    if program is None:
        pytest.skip("Emacs is not here; `python -m tests.editors.tools emacs` brings it")
    return program
