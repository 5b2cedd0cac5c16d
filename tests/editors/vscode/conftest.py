"""One real VS Code for all tests that need one: a server, a browser, and a window for each module."""

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.environment import COMMAND, home, stop_engine
from tests.editors.tools import found
from tests.editors.vscode.codeserver import CodeServer, Window, brought
from tests.editors.vscode.package import made

SCRIPTED = str(Path(__file__).parents[1] / "nvim/scripted_server.py")


@pytest.fixture(scope="session")
def model() -> str:
    """The engine model under test: the fake one, or what `MERCURY_TEST_MODEL` names."""
    return os.environ.get("MERCURY_TEST_MODEL", "fake")


@pytest.fixture(scope="session")
def environment(tmp_path_factory, model) -> dict[str, str]:
    return home(tmp_path_factory.mktemp("h"), PYTHONPATH=os.getcwd(), MERCURY_ENGINE_MODEL=model)


@pytest.fixture(scope="session")
def package() -> Path:
    if missing := brought():
        pytest.skip(missing)
    return made()


@pytest.fixture(scope="session")
def browser(package):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=str(found("chromium")))


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("project").resolve()
    (root / ".git").mkdir()
    return root


@pytest.fixture(scope="module")
def real(browser, environment, project, tmp_path_factory) -> Iterator[Window]:
    """A window whose server is ours."""
    yield from windows(browser, environment, project, tmp_path_factory.mktemp("vs"), COMMAND)
    stop_engine(environment)


@pytest.fixture(scope="module")
def told(browser, environment, project, tmp_path_factory) -> Iterator[Window]:
    """A window whose server says only what a test has written down."""
    command = [sys.executable, SCRIPTED, str(project)]
    yield from windows(browser, environment, project, tmp_path_factory.mktemp("vs"), command)


def windows(browser, environment, project, folder, command) -> Iterator[Window]:
    with (
        closing(CodeServer(folder, environment, command=command)) as server,
        closing(server.window(browser, project)) as window,
    ):
        yield window
