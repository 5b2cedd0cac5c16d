"""In the interpreter every launch is watched."""

import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest


@pytest.fixture(autouse=True)
def only_own_memory() -> Iterator[None]:
    if os.environ.get("TRITON_INTERPRET") != "1" or find_spec("triton") is None:
        yield
        return
    from tests.kernels.watched import watched

    with watched():
        yield
