"""One real VS Code for all tests that need one: a browser, and a window for each server that may be behind it."""

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.environment import COMMAND, home
from tests.editors.vscode.codeserver import CodeServer, Window, brought
from tests.editors.vscode.package import made

SCRIPTED = str(Path(__file__).parents[1] / "nvim/scripted_server.py")


@pytest.fixture(scope="session")
def package() -> Path:
    if missing := brought():
        pytest.skip(missing)
    return made()


@pytest.fixture(scope="session")
def real(package, browser, environment, tmp_path_factory) -> Iterator[Window]:
    """A window whose server is ours."""
    folder = tmp_path_factory.mktemp("vs")
    yield from windows(browser, environment, folder, COMMAND)


@pytest.fixture(scope="session")
def told(package, browser, tmp_path_factory) -> Iterator[Window]:
    """A window whose server says only what a test has written down."""
    folder = tmp_path_factory.mktemp("vs")
    command = [sys.executable, SCRIPTED, str(folder.resolve() / "project")]
    yield from windows(browser, home(folder, PYTHONPATH=os.getcwd()), folder, command)


def windows(browser, environment, folder, command) -> Iterator[Window]:
    project = folder.resolve() / "project"
    (project / ".git").mkdir(parents=True)
    with (
        closing(CodeServer(folder / "vs", environment, command=command)) as server,
        closing(server.window(browser, project)) as window,
    ):
        yield window
