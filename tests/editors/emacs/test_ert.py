"""Every test of mercury-tests.el, each in an Emacs of its own that is configured as the README says."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.environment import home
from tests.editors.documented import blocks
from tests.editors.scenes import BLOCK, CARRIED, RENAMED, SHAPES, SHOP

pytestmark = [pytest.mark.editor, pytest.mark.slow]

FILE = Path(__file__).with_name("mercury-tests.el")
TESTS = re.findall(r"^\(ert-deftest (\S+)", FILE.read_text(encoding="utf-8"), re.MULTILINE)
SERVERLESS = [name for name in TESTS if name.startswith("mercury-tab-")]
SCENES = {
    "shop": SHOP._asdict(),
    "block": BLOCK._asdict(),
    "shapes": SHAPES,
    "renamed": RENAMED,
    "carried": CARRIED,
}


@pytest.mark.any_model
@pytest.mark.parametrize("name", [name for name in TESTS if name not in SERVERLESS])
def test_with_a_server(emacs, environment, tmp_path, name):
    check(emacs, environment, tmp_path, name)


@pytest.mark.parametrize("name", SERVERLESS)
def test_without_a_server(emacs, tmp_path, name):
    check(emacs, home(tmp_path), tmp_path, name)


def check(emacs: Path, environment: dict[str, str], folder: Path, name: str) -> None:
    eglot, lsp_mode = blocks("emacs", "elisp")
    init = folder / "init.el"
    init.write_text(eglot if "eglot" in name else lsp_mode, encoding="utf-8")
    (folder / ".git").mkdir()
    more = {"MERCURY_TEST_FOLDER": str(folder), "MERCURY_TEST_SCENES": json.dumps(SCENES)}
    command = [emacs, "-Q", "--batch", "-l", init, "-l", FILE, "--eval", f"(ert-run-tests-batch-and-exit '{name})"]
    ran = subprocess.run(command, env=environment | more, cwd=folder, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
