"""`mercury-ls model use`: an editor that is running gets its next suggestion from the model that was chosen."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
import pytest_asyncio
from pytest_lsp import make_test_lsp_client

from bench.harness.tiny import checkpoint
from tests import tiny_model
from tests.e2e.conftest import Editor
from tests.e2e.environment import COMMAND, home, stop_engine

pytestmark = [pytest.mark.slow, pytest.mark.asyncio]

SETTINGS = '# mine\n[engine]\nmodel = "fake" # for now\nidle_exit_minutes = 1\n'


@pytest.fixture
def environment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("h")
    variables = home(folder, MERCURY_ENGINE_MODEL="")
    tiny_model.package(folder / "site")
    variables["PYTHONPATH"] = os.pathsep.join([str(folder / "site"), variables.get("PYTHONPATH", "")])
    (folder / "config/mercury-ls").mkdir(parents=True)
    (folder / "config/mercury-ls/config.toml").write_text(SETTINGS)
    yield variables
    stop_engine(variables)


@pytest_asyncio.fixture
async def editors(environment, tmp_path):
    """Starts editors with settings of their own."""
    clients = []

    async def start(**options):
        client = make_test_lsp_client()
        clients.append(client)
        await client.start_io(*COMMAND, "--stdio", env=environment)
        editor = Editor(client, tmp_path)
        await editor.initialize(**options)
        await editor.ready()
        return editor

    yield start
    for client in clients:
        await client.shutdown_session()
        await client.stop()


async def until_model(editor, name):
    """The fake engine goes by the name of the engine, all others by that of the model."""
    async with asyncio.timeout(30):
        while (last := editor.statuses[-1]).state != "ready" or name not in (last.engine, last.model):
            editor.heard.clear()
            await editor.heard.wait()


async def command(environment, *arguments):
    ran = await asyncio.to_thread(
        subprocess.run, [*COMMAND, "model", *arguments], env=environment, capture_output=True, text=True, timeout=60
    )
    return ran.returncode, ran.stdout, ran.stderr


async def test_running_editors_switch_without_a_restart(environment, editors, tmp_path):
    one, other = await editors(), await editors()
    await until_model(one, "fake")
    checkpoint(tmp_path / "Tiny")
    assert (await command(environment, "add", str(tmp_path / "Tiny"), "--yes"))[0] == 0
    code, said, errors = await command(environment, "use", "tiny")
    assert code == 0, errors
    assert said.startswith('engine.model = "tiny" in ~/config/mercury-ls/config.toml: tiny on ')
    file = Path(environment["XDG_CONFIG_HOME"]) / "mercury-ls/config.toml"
    assert file.read_text() == SETTINGS.replace("fake", "tiny")
    for editor in (one, other):
        await until_model(editor, "tiny")
        assert editor.statuses[-1].detail == ""
    code, said, _ = await command(environment, "remove", "tiny")
    assert (code, "the model that ships is chosen instead" in said) == (0, True)
    for editor in (one, other):
        await until_model(editor, tiny_model.NAME)


async def test_model_named_by_editor_is_said_to_win(environment, editors):
    await editors(engine={"model": "fake"})
    code, _, errors = await command(environment, "use", tiny_model.NAME)
    assert code == 1
    assert "an editor has started the engine with fake again" in errors
    assert "its own settings name engine.model" in errors


async def test_model_named_by_variable_is_said_to_win(environment):
    code, _, errors = await command({**environment, "MERCURY_ENGINE_MODEL": "fake"}, "use", tiny_model.NAME)
    assert code == 1
    assert 'environment MERCURY_ENGINE_MODEL sets engine.model = "fake", which wins' in errors


async def test_model_that_does_not_load_is_not_chosen(environment):
    code, _, errors = await command(environment, "use", "nothing")
    assert code == 1
    assert "'nothing' is neither an installed model" in errors
