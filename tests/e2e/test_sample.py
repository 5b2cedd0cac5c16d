"""The sample file that the editors open for newcomers: its last line, and one like it, are completed."""

import re
from pathlib import Path

import pytest
import pytest_asyncio
from pytest_lsp import make_test_lsp_client

from tests.e2e.conftest import Editor
from tests.e2e.environment import COMMAND, home, stop_engine
from tests.editors.models import SHIPPED, named

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

EDITORS = Path(__file__).parents[2] / "editors"
SAMPLES = {
    "vscode/src/extension.ts": r"^const SAMPLE = `(.*?)`;$",
    "nvim/lua/mercury/welcome.lua": r"^local SAMPLE = \[\[\n(.*?)\]\]$",
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def newcomer(tmp_path_factory):
    environment = home(tmp_path_factory.mktemp("h"), MERCURY_ENGINE_MODEL=named(SHIPPED))
    client = make_test_lsp_client()
    await client.start_io(*COMMAND, "--stdio", env=environment)
    editor = Editor(client, tmp_path_factory.mktemp("project"))
    await editor.initialize()
    await editor.ready()
    yield editor
    await client.shutdown_session()
    await client.stop()
    stop_engine(environment)


@pytest.mark.parametrize("file", SAMPLES)
async def test_next_lines_are_suggested(newcomer, file):
    (text,) = re.findall(SAMPLES[file], (EDITORS / file).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    uri = newcomer.open(f"untitled:{Path(file).stem}", text)
    row, column = text.count("\n"), len(text.rpartition("\n")[2])
    newcomer.type(uri, row, column, " ")
    first, *_ = await newcomer.inline(uri, row, column + 1, invoked=True)
    assert first.insert_text == "weight"
    newcomer.type(uri, row, column + 1, "weight\n        self.price = ")
    second, *_ = await newcomer.inline(uri, row + 1, len("        self.price = "), invoked=True)
    assert second.insert_text == "price"
