"""Rows are asked among the files of their commit."""

import asyncio
import subprocess

import pytest

from bench.quality.editor import Contender, complete
from bench.quality.projects import Projects
from mercury_engine.fake import FakeEngine
from mercury_ls.serve.in_process import InProcessClient
from mercury_training.rows.fim_rows import FimRow


class Witness(FakeEngine):
    def infill(self, request):
        self.request = request
        return super().infill(request)


def git(folder, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    found = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return found.stdout.strip()


@pytest.fixture
def row(tmp_path):
    clone = tmp_path / "clone"
    (clone / "src").mkdir(parents=True)
    git(clone, "init", "-q")
    for name, text in {"src/a.py": "x = area(2, 3)\n", "src/b.py": "def area(width, height): ...\n"}.items():
        (clone / name).write_text(text)
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "first")
    commit = git(clone, "rev-parse", "HEAD")
    (clone / "src/b.py").write_text("def area(later): ...\n")
    git(clone, "commit", "-qam", "second")
    git(tmp_path, "clone", "-q", "--bare", str(clone), "mirrors/some+where/repo")
    known = {"id": "1", "licence": "MIT", "path": "src/a.py", "language": "python", "kind": "single_line"}
    return FimRow(repo="some/where", commit=commit, prefix="x = area(", suffix=")\n", middle="2, 3", **known)


def test_a_row_is_asked_among_the_files_of_its_commit_as_they_were(row, tmp_path):
    projects, engine = Projects(tmp_path / "mirrors", tmp_path / "out"), Witness({"area(": "2, 3"})

    async def asked():
        client = InProcessClient(engine)
        await client.start()
        found = await complete(Contender("us", client), row, projects.of(row))
        await client.close()
        return found

    assert asyncio.run(asked()).answer == "2, 3"
    assert [(snippet.path, snippet.text) for snippet in engine.request.snippets] == [
        ("src/b.py", "def area(width, height): ..."),
    ]
    assert engine.request.windows[0].path == "src/a.py"
    assert projects.of(row) is projects.of(row)


def test_a_project_that_is_not_there_is_named(row, tmp_path):
    with pytest.raises(ValueError, match=r"nowhere/some\+where/repo: no clone of some/where here"):
        Projects(tmp_path / "nowhere", tmp_path / "out").of(row)
