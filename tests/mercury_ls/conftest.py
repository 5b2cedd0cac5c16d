"""What tests of several packages are given."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mercury_engine import model_folders


@pytest.fixture(autouse=True)
def only_the_small_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the models that ship, whatever is installed beside this Python: no test waits for a large one."""
    monkeypatch.setattr(model_folders, "_packaged", tuple)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where nothing of the user's is read and nothing is left behind."""
    for name in ("HOME", "USERPROFILE", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    for kind in ("CONFIG", "STATE", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind.lower()))
    monkeypatch.setenv("MERCURY_LS_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.delenv("MERCURY_ENGINE_MODEL", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def directory() -> Iterator[Path]:
    """Short enough for a socket's path, which pytest's own directories need not be."""
    with tempfile.TemporaryDirectory(prefix="m") as path:
        yield Path(path)
