"""Rows are asked among the files of their commit."""

import asyncio

import pytest

from bench.harness.in_process import InProcessClient
from bench.quality.editor import Contender, Metered, complete
from bench.quality.projects import Projects
from mercury_engine.fake import FakeEngine
from mercury_training.rows.fim_rows import FimRow
from tests.repositories import committed, git


class Witness(FakeEngine):
    def fill(self, gap):
        self.gap = gap
        return super().fill(gap)


@pytest.fixture
def row(tmp_path):
    clone = tmp_path / "clone"
    commit = committed(clone, {"src/a.py": "x = area(2, 3)\n", "src/b.py": "def area(width, height): ...\n"})
    committed(clone, {"src/b.py": "def area(later): ...\n"})
    git(tmp_path, "clone", "-q", "--bare", str(clone), "mirrors/some+where/repo")
    known = {"id": "1", "licence": "MIT", "path": "src/a.py", "language": "python", "kind": "single_line"}
    return FimRow(repo="some/where", commit=commit, prefix="x = area(", suffix=")\n", middle="2, 3", **known)


def test_row_is_asked_among_files_of_its_commit_as_they_were(row, tmp_path):
    projects, engine = Projects(tmp_path / "mirrors", tmp_path / "out"), Witness({"area(": "2, 3"})

    async def asked():
        client = InProcessClient(engine)
        await client.start()
        found = await complete(Contender("us", client, Metered(engine)), row, projects.of(row))
        await client.close()
        return found

    assert asyncio.run(asked()).answer == "2, 3"
    assert [(snippet.path, snippet.text) for snippet in engine.gap.snippets] == [
        ("src/b.py", "def area(width, height): ..."),
    ]
    assert engine.gap.path == "src/a.py"
    assert projects.of(row) is projects.of(row)


def test_missing_project_is_named(row, tmp_path):
    with pytest.raises(ValueError, match=r"nowhere/some\+where/repo: no clone of some/where, which rows come from"):
        Projects(tmp_path / "nowhere", tmp_path / "out").of(row)
