"""From nothing to the first suggestion, as the README says it, on a bare machine, in a stranger's folder, once more."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mercury_engine.model_folders import FAKE
from tests.editors.scenes import SHOP
from tests.editors.tools import found
from tests.editors.vscode.codeserver import DRIVER, CodeServer, install
from tests.editors.vscode.package import EXTENSION

pytestmark = [pytest.mark.editor, pytest.mark.slow]

TOOLS = "/usr/bin:/bin"
WITH_THE_FAKE_ENGINE = pytest.mark.parametrize("model", [FAKE], indirect=True)


@pytest.fixture
def start(package, browser, environment, tmp_path):
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


def servers(window) -> list[str]:
    parent = window.js("return process.pid")
    listed = subprocess.run(["ps", "-A", "-o", "ppid=,args="], capture_output=True, text=True, check=True).stdout
    children = [line.split(maxsplit=1)[1] for line in listed.splitlines() if line.split()[0] == str(parent)]
    return [child for child in children if "--stdio" in child]


def script(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n", encoding="utf-8")
    path.chmod(0o755)


def test_three_steps_lead_to_the_first_suggestion(start, tmp_path):
    page = (EXTENSION / "README.md").read_text(encoding="utf-8")
    steps = re.findall(r"^\d\. .*(?:\n   .*|\n(?=\n   ))*", page, re.MULTILINE)
    assert len(steps) == 3
    installed = Path(sys.executable).with_name("mercury-ls")
    assert "pip install ." in steps[0]
    assert installed.exists()
    package = EXTENSION.parents[1] / re.search(r"--install-extension /path/to/mercury-ls/(\S+)", steps[1])[1]
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
def test_untrusted_folder_names_no_program_and_sets_nothing(start, tmp_path):
    marker, settings = tmp_path / "ran", tmp_path / "project/.vscode/settings.json"
    script(tmp_path / "project/.venv/bin/mercury-ls", f"touch {marker}")
    settings.parent.mkdir()
    theirs = {"mercury-ls.nextEdit.enabled": False, "mercury.suggest.delayMs": 4000}
    settings.write_text(json.dumps(theirs), encoding="utf-8")
    trust = {"security.workspace.trust.enabled": True, "security.workspace.trust.startupPrompt": "never"}
    window = start(**trust)
    window.until(lambda: "not found" in window.status, "the status")
    assert window.js("return vscode.workspace.isTrusted") is False
    assert not marker.exists()
    assert window.js("return vscode.workspace.getConfiguration('mercury-ls').get('nextEdit.enabled')") is True
    assert window.js("return vscode.workspace.getConfiguration('mercury').get('suggest.delayMs')") < 4000


def told(tmp_path: Path) -> str:
    """What the output channel holds."""
    logs = (tmp_path / "vs").rglob("Mercury.log")
    return "\n".join(log.read_text(encoding="utf-8") for log in logs)


@WITH_THE_FAKE_ENGINE
@pytest.mark.parametrize("named", ["by its folder", "by the setting of the Python extension"])
def test_projects_server_is_started_once_the_user_agrees(start, tmp_path, named):
    folder = tmp_path / ("project/.venv" if named == "by its folder" else "elsewhere")
    program = folder / "bin/mercury-ls"
    script(program, f'exec {sys.executable} -m mercury_ls "$@"')
    settings = {} if named == "by its folder" else {"python.defaultInterpreterPath": str(folder / "bin/python")}
    window = start(**settings)
    window.until(lambda: "in this project" in window.status, "the question")
    window.until(lambda: any(str(program) in message for message in window.messages), "the file")
    assert servers(window) == []
    window.answer("Start It")
    window.ready()
    window.until(lambda: f"the server is {program}" in told(tmp_path), "the log")
    assert "looked for the server: PATH: not in " in told(tmp_path)
    window.run("mercury-ls.restart")
    window.ready()
    assert window.messages == []


@WITH_THE_FAKE_ENGINE
def test_projects_server_is_not_started_without_consent(start, tmp_path):
    marker = tmp_path / "ran"
    script(tmp_path / "project/.venv/bin/mercury-ls", f"touch {marker}")
    window = start()
    window.until(lambda: "in this project" in window.status, "the question")
    window.answer("Not This One")
    window.until(lambda: "not found" in window.status, "the status")
    assert not marker.exists()


@WITH_THE_FAKE_ENGINE
def test_why_and_the_statistics_speak_of_next_edits_too(real):
    suggests(real)
    real.run("mercury-ls.why")
    real.until(lambda: any("next edit:" in message for message in real.messages), "both reasons")
    real.run("notifications.clearAll")
    real.run("mercury-ls.stats")
    real.until(lambda: "Preview Mercury statistics" in tabs(real), "the page")
    real.run("mercury-ls.metrics")
    real.until(lambda: "today       python, inline: " in real.text, "today")


def tabs(window) -> str:
    return window.js("return vscode.window.tabGroups.activeTabGroup.tabs.map((tab) => tab.label).join()")


@WITH_THE_FAKE_ENGINE
@pytest.mark.parametrize("times", [2, 3])
def test_restarts_at_once_leave_one_server(real, times):
    real.ready()
    restart = "() => vscode.commands.executeCommand('mercury-ls.restart')"
    real.js(f"await Promise.all(Array.from({{ length: {times} }}, {restart}))")
    suggests(real)
    real.until(lambda: len(servers(real)) == 1, "one server")


@WITH_THE_FAKE_ENGINE
@pytest.mark.parametrize(("answers", "left"), [(True, "0\n"), (False, "")])
def test_starting_server_is_stopped_before_another_starts(start, tmp_path, answers, left):
    """The first one takes its time until it is let go, if it ever is; then it leaves how it went."""
    first, go, ended = tmp_path / "first", tmp_path / "go", tmp_path / "ended"
    serve = f'{sys.executable} -m mercury_ls "$@"'
    held = f"while [ ! -e {go} ]; do sleep 0.1; done"
    lines = (f"mkdir {first} || exec {serve}", held, serve, f"echo $? > {ended}")
    script(tmp_path / "home/.local/bin/mercury-ls", *lines)
    window = start()
    window.until(first.exists, "the first server")
    window.js("void vscode.commands.executeCommand('mercury-ls.restart')")
    if answers:
        go.touch()
    suggests(window)
    window.until(lambda: len(servers(window)) == 1, "one server")
    window.until(lambda: (ended.read_text(encoding="utf-8") if ended.exists() else "") == left, "the first to end")
