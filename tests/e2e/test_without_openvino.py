"""A machine for which there is no OpenVINO: what needs no local engine works, and what needs one says what to do."""

import os
import subprocess

import pytest

from bench.harness.servers import document, serving
from mercury_engine.record import ModelRecord, write_record
from tests import tiny_model
from tests.e2e.environment import COMMAND, home, stop_engine
from tests.e2e.raw import Raw
from tests.e2e.test_next_edit import AFTER, NOW, TEXT, applied, place

pytestmark = [pytest.mark.slow, pytest.mark.asyncio]

ABSENT = 'import sys\n\nsys.modules["openvino"] = None\n'
"""What Python runs first in every process: importing and finding it fail as they do where it is not installed."""


@pytest.fixture
def machine(tmp_path):
    """Makes the environment of a user there, whose `engine.model` is this one."""
    (tmp_path / "absent").mkdir()
    (tmp_path / "absent/sitecustomize.py").write_text(ABSENT)
    made = []

    def environment(model: str) -> dict[str, str]:
        variables = home(tmp_path, MERCURY_ENGINE_MODEL=model)
        variables["PYTHONPATH"] = f"{tmp_path / 'absent'}{os.pathsep}{variables.get('PYTHONPATH', '')}"
        made.append(variables)
        return variables

    yield environment
    for variables in made:
        stop_engine(variables)


def doctor(variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, "doctor"], env=variables, capture_output=True, text=True)


@pytest.fixture
def ours(tmp_path):
    return str(tiny_model.write(tmp_path / "models"))


async def test_doctor_says_what_is_missing_and_what_to_do(machine, ours):
    told = doctor(machine(ours))
    assert "✗ device" in told.stdout
    assert "OpenVINO" in told.stdout
    assert "mercury-ls model add http" in told.stdout
    assert told.stderr == ""


async def test_rename_is_carried_on_without_engine(machine, ours, project):
    async with Raw(machine(ours), project) as server:
        await server.until("unavailable")
        uri = server.open("shapes.py", TEXT)
        server.replace(uri, (0, 4, 0, 8), "surface")
        answer = await server.request("mercury/nextEdit", place(uri, 2))
        assert applied(NOW, answer["edits"]) == AFTER
        assert "mercury-ls model add http" in await server.why(uri, 1, 25)


async def test_server_completes(machine, project, tmp_path):
    choice = {"text": "width * height", "finish_reason": "stop"}
    with serving({"/v1/completions": document({"choices": [choice]})}) as theirs:
        (tmp_path / "theirs").mkdir()
        record = ModelRecord(name="theirs", kind="server", prompt="qwen", protocol="openai", address=theirs.address)
        write_record(record, tmp_path / "theirs")
        variables = machine(str(tmp_path / "theirs"))
        async with Raw(variables, project) as server:
            await server.until("ready")
            uri = server.open("remote.py", "def area(width, height):\n    return \n")
            assert [item["insertText"] for item in await server.inline(uri, 1, 11)] == ["width * height"]
        told = doctor(variables)
        assert told.returncode == 0, told.stdout
