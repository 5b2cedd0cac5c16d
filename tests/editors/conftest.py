"""What the tests of editors share: a home of their own, the server as a command on the path, one engine for all."""

import os
import sys
from collections.abc import Iterator

import pytest

from tests.e2e.environment import home, stop_engine


@pytest.fixture(scope="session")
def environment(tmp_path_factory) -> Iterator[dict[str, str]]:
    """With the fake engine, or the model folder that `MERCURY_ENGINE_MODEL` names."""
    folder = tmp_path_factory.mktemp("h")
    command = folder / "bin/mercury-ls"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mercury_ls "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    more = {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": os.getcwd()}
    variables = home(folder, MERCURY_ENGINE_MODEL=os.environ.get("MERCURY_ENGINE_MODEL", "fake"), **more)
    yield variables
    stop_engine(variables)


@pytest.fixture
def copies(environment) -> bool:
    """Whether the engine is the one that copies: then it is known, to the letter, what is suggested."""
    return environment["MERCURY_ENGINE_MODEL"] == "fake"
