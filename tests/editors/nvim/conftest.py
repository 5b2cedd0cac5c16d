"""Real Neovims, each with a server of its own; all share one fake engine."""

import os
from collections.abc import Iterator

import pytest

from tests.e2e.environment import home, stop_engine
from tests.editors.tools import found

FACES = [("0.11", "own"), ("0.12", "own"), ("0.12", "native")]


@pytest.fixture(scope="session")
def environment(tmp_path_factory) -> Iterator[dict[str, str]]:
    variables = home(tmp_path_factory.mktemp("h"))
    variables["PYTHONPATH"] = os.getcwd()
    yield variables
    stop_engine(variables)


def neovim(version: str, environment, folder):
    from tests.editors.nvim.neovim import Neovim

    program = found(f"neovim-{version}")
    if program is None:
        pytest.skip(f"Neovim {version} is not here; `python -m tests.editors.tools` brings it")
    return Neovim(program, environment, folder)


@pytest.fixture(params=["0.11", "0.12"])
def bare(request, environment, tmp_path):
    """An editor with the plugin in which no server was enabled yet."""
    editor = neovim(request.param, environment, tmp_path)
    yield editor
    editor.close()


@pytest.fixture(params=FACES, ids=["-".join(face) for face in FACES])
def editor(request, environment, tmp_path):
    """An editor with the plugin, by each face that ghost text has."""
    version, face = request.param
    made = neovim(version, environment, tmp_path)
    made.face = face
    made.start(ghost=face)
    yield made
    made.close()
