"""`:Mercury install` shows its command and asks first; an older server is told from the plugin's own version."""

import stat

import pytest

pytestmark = [pytest.mark.editor, pytest.mark.slow]

INSTALLER = '#!/bin/sh\necho "$0 $*" >> "{log}"\nexit {code}\n'
ANSWER = "local answer = ...; vim.fn.confirm = function(text) _G.confirmed = text; return answer end"


@pytest.fixture
def installers(bare, tmp_path):
    """Makes programs that only write down how they were called, alone on the path; gives what they wrote."""

    def make(*names: str, code: int = 0):
        folder = tmp_path / "programs"
        folder.mkdir()
        log = tmp_path / "calls"
        log.touch()
        for name in names:
            (folder / name).write_text(INSTALLER.format(log=log, code=code))
            (folder / name).chmod(stat.S_IRWXU)
        bare.lua("vim.env.PATH = ...", str(folder))
        return log

    return make


def test_command_is_shown_and_nothing_runs_without_yes(bare, installers):
    log = installers("uv", "pipx")
    bare.lua(ANSWER, 2)
    bare.command("Mercury install")
    bare.says("nothing is installed")
    assert bare.lua("return _G.confirmed").startswith("uv tool install --force /")
    assert log.read_text() == ""


@pytest.mark.parametrize(
    ("names", "call"),
    [
        (("uv", "pipx"), "uv tool install --force "),
        (("pipx", "python3"), "pipx install --force "),
        (("pipx", "python3"), "pipx inject --force mercury-ls "),
        (("python3",), "python3 -m pip install --upgrade "),
    ],
    ids=["uv", "pipx", "and its model", "pip"],
)
def test_best_installer_runs_once_agreed(bare, installers, names, call):
    log = installers(*names)
    bare.lua(ANSWER, 1)
    bare.command("Mercury install")
    bare.says("the server is installed")
    assert call in log.read_text()
    assert log.read_text().endswith("/models/quicksilver\n")


def test_failed_installation_is_reported(bare, installers):
    installers("uv", code=7)
    bare.lua(ANSWER, 1)
    bare.command("Mercury install")
    bare.says("uv ended with 7")


def test_without_an_installer_it_says_which_to_get(bare, installers):
    installers()
    bare.command("Mercury install")
    bare.says("install uv, pipx or Python first")


@pytest.mark.parametrize(
    ("server", "is_told"), [("0.0.9", True), ("99.0.0", False), ("newest", False), (None, False)], ids=str
)
def test_server_older_than_plugin_is_named(bare, server, is_told):
    told = bare.lua("return require('mercury.version').complaint({ version = ... })", server)
    assert bool(told) == is_told
    assert not told or ("0.0.9" in told and ":Mercury install" in told)
