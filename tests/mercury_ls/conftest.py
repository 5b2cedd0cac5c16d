"""What tests of several packages are given."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def directory() -> Iterator[Path]:
    """Short enough for a socket's path, which pytest's own directories need not be."""
    with tempfile.TemporaryDirectory(prefix="m") as path:
        yield Path(path)
