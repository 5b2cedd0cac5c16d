"""An installation without a model: next edits come by rules, and it is said how to get completions."""

import os
import subprocess

import pytest

from tests.e2e.environment import COMMAND, home, stop_engine
from tests.e2e.raw import Raw
from tests.e2e.test_next_edit import AFTER, NOW, TEXT, applied, place

pytestmark = [pytest.mark.slow, pytest.mark.asyncio]

ABSENT = "from mercury_engine import model_folders\n\nmodel_folders._packaged = tuple\n"
"""What Python runs first in every process: no package brings a model."""
REMEDY = "pip install ./models/quicksilver"


@pytest.fixture
def variables(tmp_path):
    (tmp_path / "absent").mkdir()
    (tmp_path / "absent/sitecustomize.py").write_text(ABSENT)
    made = home(tmp_path, MERCURY_ENGINE_MODEL="auto")
    made["PYTHONPATH"] = f"{tmp_path / 'absent'}{os.pathsep}{made.get('PYTHONPATH', '')}"
    yield made
    stop_engine(made)


def doctor(variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, "doctor"], env=variables, capture_output=True, text=True)


async def test_doctor_says_what_is_missing_and_what_to_do(variables):
    told = doctor(variables)
    assert told.returncode == 1
    assert "none is installed: there are next edits by rules, and no completions" in told.stdout
    assert REMEDY in told.stdout
    assert told.stderr == ""


async def test_rename_is_carried_on_and_completions_are_explained(variables, project):
    async with Raw(variables, project) as server:
        await server.until("unavailable")
        uri = server.open("shapes.py", TEXT)
        server.replace(uri, (0, 4, 0, 8), "surface")
        answer = await server.request("mercury/nextEdit", place(uri, 2))
        assert applied(NOW, answer["edits"]) == AFTER
        assert REMEDY in await server.why(uri, 1, 25)
