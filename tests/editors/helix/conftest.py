"""Real Helixes, each with a server of its own."""

import pytest

from tests.editors.tools import found


@pytest.fixture
def helix(environment, tmp_path):
    """Opens a file with this text."""
    from tests.editors.helix.helix import Helix

    program = found("helix")
    if program is None:
        pytest.skip("Helix is not here; `python -m tests.editors.tools helix` brings it")
    opened = []

    def opens(text: str) -> Helix:
        opened.append(Helix(program, environment, tmp_path, text))
        return opened[-1]

    yield opens
    for editor in opened:
        editor.close()
