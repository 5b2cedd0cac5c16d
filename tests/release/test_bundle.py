"""What a bundle says where it does not fit, and what it asks pip for."""

import subprocess
import sys
import zipapp
from pathlib import Path

import pytest

from release import bundled

SOURCE = Path(bundled.__file__)


@pytest.fixture
def made(tmp_path):
    """A bundle without wheels, for a machine of this description."""

    def make(machine: str) -> Path:
        folder = tmp_path / "parts"
        folder.mkdir()
        (folder / "__main__.py").write_bytes(SOURCE.read_bytes())
        (folder / bundled.MADE_FOR).write_text(machine, encoding="utf-8")
        zipapp.create_archive(folder, tmp_path / "bundle.pyz")
        return tmp_path / "bundle.pyz"

    return make


def ended(bundle: Path, target: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, bundle, target], capture_output=True, text=True, check=False)


def test_bundle_for_another_python_says_so_and_installs_nothing(made, tmp_path):
    done = ended(made("beos-m68k, cpython 2.7"), tmp_path / "there")
    assert (done.returncode, done.stderr) == (
        1,
        f"this bundle is for beos-m68k, cpython 2.7, and this is {bundled.made_for()}: start it with that Python\n",
    )
    assert not (tmp_path / "there").exists()


@pytest.mark.slow
def test_bundle_asks_no_index(made, tmp_path):
    done = ended(made(bundled.made_for()), tmp_path / "there")
    assert done.stderr.endswith("not installed: pip ended with 1\n")
    assert "No matching distribution found for mercury-ls" in done.stderr
