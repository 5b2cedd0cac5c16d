"""Which commits teach edits: small ones, of files under permissive licences, apart from what tests use."""

import pytest

from mercury_training import jsonl
from mercury_training.edits.commits import Commit, build
from mercury_training.errors import TrainingError
from tests.repositories import committed

LICENCE = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software " + "and " * 60
SOURCES = """\
reserved = "reserved.txt"
mirrors = "mirrors"
commits = 9
repositories = [{repositories}]
held_out = []
"""


def built(folder, states: list[dict[str, str]], repositories: str = '"some/where"') -> list[Commit]:
    for files in states:
        committed(folder / "mirrors/some+where/repo", {"LICENSE": LICENCE, **files})
    (folder / "reserved.txt").write_text("kept/apart\n")
    (folder / "sources.toml").write_text(SOURCES.format(repositories=repositories))
    build(folder / "sources.toml", folder / "out")
    return list(jsonl.read(folder / "out/train.jsonl", Commit))


def lines(*changed: int) -> str:
    return "".join(f"value_{number} = {'new' if number in changed else number}\n" for number in range(30))


def test_small_commit_is_kept_with_its_files_before_it(tmp_path):
    (commit,) = built(tmp_path, [{"a.py": lines()}, {"a.py": lines(3, 20)}])
    assert commit.licences == {"a.py": "MIT"}
    assert "".join(commit.change.before["a.py"]) == lines()
    assert [hunk.first for hunk in commit.change.hunks] == [3, 20]


def test_large_commit_is_left_out(tmp_path):
    assert built(tmp_path, [{"a.py": lines()}, {"a.py": lines(*range(30))}]) == []


def test_vendored_files_and_copies_of_reserved_repositories_are_left_out(tmp_path):
    states = [{"vendor/a.py": lines(), "apart/a.py": lines()}, {"vendor/a.py": lines(3), "apart/a.py": lines(3, 9)}]
    assert built(tmp_path, states) == []


def test_reserved_repository_is_left_out(tmp_path):
    committed(tmp_path / "mirrors/kept+apart/repo", {"LICENSE": LICENCE, "a.py": lines()})
    committed(tmp_path / "mirrors/kept+apart/repo", {"LICENSE": LICENCE, "a.py": lines(3, 20)})
    assert built(tmp_path, [{"a.py": lines()}], '"kept/apart"') == []


def test_wrong_sources_are_named(tmp_path):
    (tmp_path / "sources.toml").write_text("mirrors = 3\n")
    with pytest.raises(TrainingError, match=r"sources\.toml"):
        build(tmp_path / "sources.toml", tmp_path)
