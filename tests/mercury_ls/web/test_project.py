"""What is asked about a file of a project that the server was told of."""

import asyncio
from contextlib import suppress

import pytest

from mercury_engine.fake import FakeEngine
from mercury_ls.web.service import ApiClient, Wish
from mercury_ls.web.text import Text
from tests.mercury_ls.web.serving import served

UNITS = "def meters(feet):\n    return feet * 0.3048\n"
USES = "from units import meters\n\nlength = meters("


class Told(FakeEngine):
    """Remembers what it was asked."""

    request = None

    def fill(self, gap):
        self.gap = gap
        yield from super().fill(gap)


@pytest.fixture
def project(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "units.py").write_text(UNITS)
    (tmp_path / "plan.py").write_text(USES)
    (tmp_path / ".env").write_text("meters = 1")
    return tmp_path


async def asked(engine, project, path, **more):
    async with served(engine, roots=[str(project)], **more) as (service, _):
        reading = asyncio.create_task(service.read_projects())
        while service.workspace.step(0.0):
            await asyncio.sleep(0)
        text = Text(path, USES, len(USES))
        answers = [each async for each in service.complete(text, Wish(invoked=True), ApiClient())]
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading
    return answers[-1]


@pytest.mark.parametrize("path", ["plan.py", "new.py", "{project}/plan.py"])
async def test_definitions_of_other_files_are_context(project, path):
    engine = Told()
    await asked(engine, project, path.format(project=project))
    assert [(each.path, each.text) for each in engine.gap.snippets] == [("units.py", UNITS.rstrip())]
    assert str(project) not in engine.gap.path


async def test_private_file_stays_hidden(project):
    answer = await asked(FakeEngine(), project, ".env")
    assert "private" in answer.silence


async def test_without_a_project_nothing_is_read(tmp_path):
    engine = Told()
    async with served(engine) as (service, _):
        await service.read_projects()
        async for _ in service.complete(Text("plan.py", USES, len(USES)), Wish(invoked=True), ApiClient()):
            pass
    assert engine.gap.snippets == ()
