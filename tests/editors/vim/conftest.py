"""Real Vims, each with a server of its own."""

import pytest

from tests.editors.tools import found


@pytest.fixture
def vim(environment, tmp_path):
    """Opens a file with this text."""
    from tests.editors.vim.vim import Vim

    program, node = found("vim"), found("node")
    if program is None or node is None:
        pytest.skip("Vim with coc.nvim is not here; `python -m tests.editors.tools vim node` brings it")
    opened = []

    def opens(text: str) -> Vim:
        opened.append(Vim(program, node, environment, tmp_path, text))
        return opened[-1]

    yield opens
    for editor in opened:
        editor.close()
