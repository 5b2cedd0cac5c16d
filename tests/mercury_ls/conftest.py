"""What tests of several packages are given."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mercury_engine import model_folders
from tests import tiny_model


@pytest.fixture(scope="session")
def tiny_model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model.write(tmp_path_factory.mktemp("models"))


@pytest.fixture(autouse=True)
def only_a_tiny_model(monkeypatch: pytest.MonkeyPatch, tiny_model_folder: Path) -> None:
    """Whatever is installed beside this Python: no test waits for a large one."""
    monkeypatch.setattr(model_folders, "_packaged", lambda: (tiny_model_folder,))


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
