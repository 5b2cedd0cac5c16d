"""What the tests of editors share: the engines, a home of their own, the server as a command on the path.

Every test that talks to the real server runs with each model of `models.py`, unless it is marked `any_model`.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.environment import home, stop_engine
from tests.editors.models import FAKE, MODELS, SHIPPED, STEADY, named, parameter
from tests.editors.tools import found


def pytest_collection_modifyitems(items):
    items[:] = [
        item for item in items if parameter(item, "model") != SHIPPED or not item.get_closest_marker("any_model")
    ]


@pytest.fixture(scope="session", params=MODELS)
def model(request) -> str:
    """The setting `engine.model`."""
    return named(request.param)


@pytest.fixture(scope="session")
def environment(tmp_path_factory, model) -> Iterator[dict[str, str]]:
    """One engine for all tests with this model; `mercury-ls` is what was installed beside this Python."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    more = {**STEADY, "MERCURY_ENGINE_MODEL": model, "PATH": path, "PYTHONPATH": os.getcwd()}
    variables = home(tmp_path_factory.mktemp("h"), **more)
    yield variables
    stop_engine(variables)


@pytest.fixture
def copies(model) -> bool:
    """Whether the engine is the one that copies: then it is known, to the letter, what is suggested."""
    return model == FAKE


@pytest.fixture(scope="session")
def browser():
    """One for all tests that need one: Playwright starts once in a process."""
    if found("chromium") is None:
        pytest.skip("Chromium is not there: run `make test-editors`")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=str(found("chromium")))
