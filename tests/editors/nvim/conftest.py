"""Real Neovims, each with a server of its own: alone, beside an engine, or with ghost text by each of its faces."""

from pathlib import Path

import pytest

from tests.e2e.environment import home
from tests.editors.models import SHIPPED, parameter
from tests.editors.tools import found

OLDEST, NEWEST = "0.11", "0.12"
FACES = [(OLDEST, "own"), (NEWEST, "native")]
"""Each version with the face that it has by default."""


def pytest_generate_tests(metafunc):
    if "face" in metafunc.fixturenames:
        metafunc.parametrize(("version", "face"), FACES)
    elif "version" in metafunc.fixturenames:
        is_any = any(mark.name == "any_version" for mark in metafunc.definition.iter_markers())
        metafunc.parametrize("version", [NEWEST] if is_any else [OLDEST, NEWEST])


def pytest_collection_modifyitems(items):
    """Without what the shipped model need not go through as well: it meets each editor and each face once."""
    items[:] = [item for item in items if not is_repeated(item)]


def is_repeated(item) -> bool:
    return [parameter(item, name) for name in ("model", "version", "face")] == [SHIPPED, OLDEST, None]


@pytest.fixture
def program(version) -> Path:
    path = found(f"neovim-{version}")
    if path is None:
        pytest.skip(f"Neovim {version} is not here; `python -m tests.editors.tools` brings it")
    return path


@pytest.fixture
def bare(program, tmp_path):
    """An editor with the plugin in which no server was enabled yet, and without an engine."""
    from tests.editors.nvim.neovim import Neovim

    house = tmp_path / "home"
    house.mkdir()
    editor = Neovim(program, home(house), tmp_path)
    yield editor
    editor.close()


@pytest.fixture
def served(program, environment, tmp_path):
    """The same beside an engine, for the real server."""
    from tests.editors.nvim.neovim import Neovim

    editor = Neovim(program, environment, tmp_path)
    yield editor
    editor.close()


@pytest.fixture
def editor(served, face):
    """An editor whose ghost text has this face."""
    served.face = face
    served.start(ghost=face)
    return served
