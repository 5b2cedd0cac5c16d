"""From nothing to the first suggestion, as the README says it, on a bare machine too, and in a stranger's folder."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mercury_ls.serve.models import FAKE
from tests.editors.scenes import SHOP
from tests.editors.tools import found
from tests.editors.vscode.codeserver import DRIVER, CodeServer, install
from tests.editors.vscode.package import EXTENSION

pytestmark = [pytest.mark.editor, pytest.mark.slow]

TOOLS = "/usr/bin:/bin"
WITH_THE_FAKE_ENGINE = pytest.mark.parametrize("model", [FAKE], indirect=True)


@pytest.fixture
def start(browser, environment, tmp_path):
    """Starts an editor in a folder of its own, with everything of it in place of the user's."""
    opened = []
    variables = {**environment, "HOME": str(tmp_path / "home"), "PATH": TOOLS, "SHELL": "/bin/bash"}
    (tmp_path / "home/.local/bin").mkdir(parents=True)
    (tmp_path / "project/.git").mkdir(parents=True)

    def started(path: str = TOOLS, **options):
        (tmp_path / "home/.profile").write_text(f"PATH={path}\n", encoding="utf-8")  # VS Code asks the login shell
        server = CodeServer(tmp_path / "vs", variables, command=(), **options)
        opened.append(server)
        window = server.window(browser, tmp_path / "project")
        opened.insert(0, window)
        return window

    yield started
    for one in opened:
        one.close()


def suggests(window) -> None:
    window.ready()
    window.open(SHOP.before[:-1])
    window.type(SHOP.before[-1])
    assert window.first_ghost(SHOP.before[-1])


def script(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n", encoding="utf-8")
    path.chmod(0o755)


def test_three_steps_lead_to_the_first_suggestion(start, tmp_path):
    steps = re.findall(r"^\d\. .*(?:\n   .*)*", (EXTENSION / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(steps) == 3
    installed = Path(sys.executable).with_name("mercury-ls")
    assert "pip install ." in steps[0]
    assert installed.exists()
    package = EXTENSION.parents[1] / re.search(r"--install-extension (\S+)`", steps[1])[1]
    target = f"--extensions-dir={tmp_path / 'vs/extensions'}"
    install(DRIVER, tmp_path / "vs/extensions")  # what is there before is registered, what comes later is not
    told = subprocess.run(
        [found("code-server"), target, "--install-extension", package], capture_output=True, text=True, check=True
    )
    assert "successfully installed" in told.stdout
    suggests(start(f"{installed.parent}:{TOOLS}", package=False, **{"chat.disableAIFeatures": False}))


@WITH_THE_FAKE_ENGINE
def test_without_a_server_it_is_installed_only_after_the_exact_command_was_agreed_to(start, tmp_path):
    tools, ran = tmp_path / "home/.local/bin", tmp_path / "ran"
    server = f'exec {sys.executable} -m mercury_ls "$@"'
    install = [f"printf '%s' \"$*\" > {ran}", f"printf '#!/bin/sh\\n{server}\\n' > {tools}/mercury-ls"]
    script(tools / "uv", *install, f"chmod +x {tools}/mercury-ls")
    window = start(machine={"mercury-ls.server.package": "/the clone"})
    window.until(lambda: "not found" in window.status, "the status")
    window.answer("Install with uv…")
    dialog = window.page.locator(".monaco-dialog-box")
    dialog.wait_for()
    assert f"{tools}/uv tool install /the clone" in dialog.inner_text()
    assert not ran.exists()
    dialog.get_by_role("button", name="Run").click()
    suggests(window)
    assert ran.read_text(encoding="utf-8") == "tool install /the clone"


@WITH_THE_FAKE_ENGINE
def test_a_folder_that_is_not_trusted_names_no_program(start, tmp_path):
    marker = tmp_path / "ran"
    script(tmp_path / "project/.venv/bin/mercury-ls", f"touch {marker}")
    trust = {"security.workspace.trust.enabled": True, "security.workspace.trust.startupPrompt": "never"}
    window = start(**trust)
    window.until(lambda: "not found" in window.status, "the status")
    assert window.js("return vscode.workspace.isTrusted") is False
    assert not marker.exists()
