"""Every test of mercury-tests.el, each in an Emacs of its own that is configured as the README says."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.editors.documented import blocks
from tests.editors.scenes import BLOCK, RENAMED, SHAPES, SHOP

pytestmark = [pytest.mark.editor, pytest.mark.slow]

FILE = Path(__file__).with_name("mercury-tests.el")
TESTS = re.findall(r"^\(ert-deftest (\S+)", FILE.read_text(encoding="utf-8"), re.MULTILINE)
SCENES = {
    "shop": SHOP._asdict(),
    "block": BLOCK._asdict(),
    "shapes": SHAPES,
    "renamed": RENAMED,
    "carried": SHAPES.replace("area", "surface"),
}


@pytest.mark.parametrize("name", TESTS)
def test_emacs(emacs, environment, tmp_path, name):
    eglot, lsp_mode = blocks("emacs", "elisp")
    init = tmp_path / "init.el"
    init.write_text(lsp_mode if "lsp-mode" in name else eglot, encoding="utf-8")
    (tmp_path / ".git").mkdir()
    more = {"MERCURY_TEST_FOLDER": str(tmp_path), "MERCURY_TEST_SCENES": json.dumps(SCENES)}
    command = [emacs, "-Q", "--batch", "-l", init, "-l", FILE, "--eval", f"(ert-run-tests-batch-and-exit '{name})"]
    ran = subprocess.run(command, env=environment | more, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
