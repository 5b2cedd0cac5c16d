"""Sets come from held-out repositories only, the same every time, without near copies of what is trained on."""

import json
import re

import msgspec
import pytest

from mercury_engine.api import Edit
from mercury_training.corpus.shards import CorpusFile, Replacement, write_edits, write_split
from mercury_training.errors import TrainingError
from mercury_training.evaluate import sets as evaluation_sets
from mercury_training.evaluate.sets import Training, build
from mercury_training.rows.fim_rows import read_rows
from tests.training.small import GOLDEN, TOKENIZER, edit_row, source


def shapes(seed):
    """With names long enough for three lines to be telling."""
    return re.sub(r"\b(area|count|total|width|scale|shape|value|index)\b", r"the_\1_of_all_things", source(seed))


HELD_OUT = {"team/a": [shapes(1), shapes(2)], "team/b": [shapes(3)]}
TRAIN = {"team/c": [shapes(9)]}


def repeated(repository, commit, number):
    lines = [f"    total_{number}_{i} = width_{number}_{i} * height_{number}_{i}\n" for i in range(8)]
    return edit_row(
        0,
        repository=repository,
        commit=commit,
        kind="repeat",
        window="".join(lines),
        cursor=0,
        edits=(Edit("shapes.py", 0, "    old = 1\n", lines[0]),),
        expected=(Replacement(3, 4, "    new = 1\n"),),
    )


def write_documents(folder, name, repositories):
    documents, tokens = [], []
    for repository, texts in repositories.items():
        for number, text in enumerate(texts):
            ids = TOKENIZER.encode(text)
            path = f"shapes{number}.py"
            documents.append(CorpusFile(repository, path, "python", "MIT", len(tokens), len(tokens) + len(ids)))
            tokens += ids
    (folder / "part").write_bytes(b"".join(token.to_bytes(2, "little") for token in tokens))
    write_split(folder, name, [(folder / "part", documents)])


def corpus(folder, train=TRAIN, edits=()):
    folder.mkdir()
    (folder / "tokenizer.json").write_bytes(GOLDEN.read_bytes())
    write_documents(folder, "train", train)
    write_documents(folder, "held_out", HELD_OUT)
    write_edits(folder / "edits.jsonl.xz", edits)
    rows = [repeated(name, commit, n) for n, (name, commit) in enumerate([("team/a", "older"), ("team/b", "bbb")])]
    write_edits(folder / "held_out_edits.jsonl.xz", rows)
    sources = [{"name": name, "revision": name[-1] * 3} for name in (*HELD_OUT, *train)]
    (folder / "manifest.json").write_text(json.dumps({"tokens": {"train": 1}, "sources": sources}))
    return folder


def test_rows_are_cut_from_held_out_files(tmp_path):
    manifest = build(corpus(tmp_path / "corpus"), tmp_path / "sets")
    rows = read_rows(tmp_path / "sets/fim.jsonl")
    texts = {text for found in HELD_OUT.values() for text in found}
    assert rows
    assert {row.prefix + row.middle + row.suffix for row in rows} <= texts
    assert {(row.repo, row.commit) for row in rows} == {("team/a", "aaa"), ("team/b", "bbb")}
    assert len({row.id for row in rows}) == len(rows) == sum(manifest["counts"]["fim"].values())
    assert manifest["repositories"] == {"team/a": "aaa", "team/b": "bbb"}


def test_edit_rows_come_from_real_commits(tmp_path):
    build(corpus(tmp_path / "corpus"), tmp_path / "sets")
    rows = [json.loads(line) for line in (tmp_path / "sets/next_edit.jsonl").read_text().splitlines()]
    assert [(row["repo"], row["commit"], row["class"]) for row in rows] == [("team/a", "older", "repeat")]


def test_same_corpus_gives_the_same_sets(tmp_path):
    folder = corpus(tmp_path / "corpus")
    for out in ("one", "two"):
        build(folder, tmp_path / out)
    for name in ("fim.jsonl", "next_edit.jsonl", "manifest.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_near_copies_of_training_stay_out(tmp_path):
    copied = HELD_OUT["team/b"][0].replace("import math", "import math, re")
    before = build(corpus(tmp_path / "clean"), tmp_path / "sets")
    after = build(corpus(tmp_path / "copied", {"fork/b": [copied]}, [repeated("fork/b", "x", 0)]), tmp_path / "less")
    assert "team/b" in before["repositories"]
    assert "team/b" not in after["repositories"]
    assert after["counts"]["next_edit"] == {}


def test_training_files_of_other_corpora_are_compared_too(tmp_path):
    other = corpus(tmp_path / "other", {"fork/b": HELD_OUT["team/b"]})
    found = build(corpus(tmp_path / "corpus"), tmp_path / "sets", [other])
    assert "team/b" not in found["repositories"]


def test_copy_of_three_lines_is_a_near_copy():
    lines = [f"total_{i} = width_{i} * height_{i} + depth_{i}" for i in range(9)]
    training = Training()
    training.mark("row", "\n".join(lines[:5]))
    training.read("\n".join([*lines[:2], "x = 1", *lines[2:4]]))
    assert training.seen == set()
    training.read("\n\n".join(lines[2:7]))
    assert training.seen == {"row"}


def test_sets_are_not_written_into_a_repository(tmp_path):
    (tmp_path / ".git").mkdir()
    with pytest.raises(TrainingError, match="outside of it"):
        build(corpus(tmp_path / "corpus"), tmp_path / "sets")


def test_group_has_no_more_rows_than_wanted(monkeypatch, tmp_path):
    monkeypatch.setattr(evaluation_sets, "PER_KIND", 2)
    manifest = build(corpus(tmp_path / "corpus"), tmp_path / "sets")
    assert max(manifest["counts"]["fim"].values()) == 2
    assert msgspec.json.decode((tmp_path / "sets/manifest.json").read_bytes()) == manifest


def test_set_apart_from_another_uses_none_of_its_files(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation_sets, "PER_KIND", 2)
    folder = corpus(tmp_path / "corpus")
    build(folder, tmp_path / "first")
    build(folder, tmp_path / "second", apart_from=[tmp_path / "first"])
    used = [{(row.repo, row.path) for row in read_rows(tmp_path / name / "fim.jsonl")} for name in ("first", "second")]
    assert all(used)
    assert not used[0] & used[1]
