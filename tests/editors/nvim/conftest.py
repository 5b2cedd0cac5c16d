"""Real Neovims, each with a server of its own: alone, beside an engine, or with ghost text by each of its faces."""

from pathlib import Path

import pytest

from tests.e2e.environment import home
from tests.editors.models import SHIPPED
from tests.editors.tools import found

FACES = [("0.11", "own"), ("0.12", "native")]
"""Each version with the face that it has by default."""
REPEATED = [("0.11", None)]
"""What the shipped model need not go through as well: it meets each editor and each face once."""
WHATEVER_IS_SHOWN = {"test_beside.py", "test_keys.py", "test_quiet.py"}
"""Where it makes no difference which model has made a suggestion."""


def pytest_generate_tests(metafunc):
    if "face" in metafunc.fixturenames:
        metafunc.parametrize(("version", "face"), FACES)
    elif "version" in metafunc.fixturenames:
        metafunc.parametrize("version", ["0.11", "0.12"])


def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if not repeats(item)]


def repeats(item) -> bool:
    given = item.callspec.params if hasattr(item, "callspec") else {}
    place = given.get("version"), given.get("face")
    return given.get("model") == SHIPPED and (place in REPEATED or item.path.name in WHATEVER_IS_SHOWN)


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
