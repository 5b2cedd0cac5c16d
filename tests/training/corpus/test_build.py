"""A build from sources to shards: what goes in, what stays out, what is kept, and the trip in one file."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from mercury_training.corpus import build as corpus
from mercury_training.corpus import collection, manifest
from mercury_training.corpus.command import main
from mercury_training.corpus.contamination import code_runs
from mercury_training.corpus.shards import Corpus
from mercury_training.errors import TrainingError
from tests.repositories import committed

MIT = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software. " * 4

RECIPE = """
reserved = "reserved.txt"
evaluation = ["rows.jsonl"]
mirrors = ["mirrors"]
held_out = ["quiet/held"]
leave_out = ["left/out"]
edits_per_repository = 40
[caps]
markdown = 0.001
[[folders]]
name = "plain/folder"
path = "folder"
revision = "1"
"""

LEAKED = """def answer_to(question):
    considered = sorted(question.split())
    return considered[len(considered) // 2]
"""

VERB = """def {name}_{verb}(values):
    {verb}ed = [{name} for {name} in values if {name}.{verb}]
    return {verb}ed
"""


def module(name: str) -> str:
    stems = ("walk", "talk", "jump", "push", "pull")
    return "\n\n".join(VERB.format(name=name, verb=name + stem) for stem in stems)


def repository(folder: Path, contents: dict[str, str], then: dict[str, str]) -> None:
    committed(folder, {"LICENSE": MIT, **contents})
    committed(folder, then)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("corpus")
    (root / "recipe.toml").write_text(RECIPE)
    (root / "reserved.txt").write_text("reserved/thing\n")
    (root / "rows.jsonl").write_bytes(msgspec.json.encode({"prefix": "", "middle": LEAKED, "suffix": ""}) + b"\n")
    mirrors = root / "mirrors"
    open_code = {
        "one.py": module("cat"),
        "two.py": module("dog"),
        "leak.py": LEAKED,
        "notes.md": "Words to read.\n" * 20,
    }
    changed = module("cat").replace("cat_catwalk(", "cat_stroll(").replace("catjump", "catleap")
    repository(mirrors / "open+code" / "repo", open_code, {"one.py": changed, "more.md": "Other words here.\n" * 80})
    repository(mirrors / "quiet+held" / "repo", {"held.py": module("owl")}, {})
    repository(mirrors / "reserved+thing" / "repo", {"never.py": module("fox")}, {})
    repository(mirrors / "left+out" / "repo", {"out.py": module("elk")}, {})
    (root / "folder").mkdir()
    (root / "folder" / "LICENSE").write_text(MIT)
    (root / "folder" / "copy.py").write_text(module("owl") + "\n")
    (root / "folder" / "third.py").write_text(module("bee"))
    main(["build", str(root / "recipe.toml"), "--out", str(root / "out")])
    return root


def paths(split) -> list[str]:
    return [f"{document.repository}:{document.path}" for document in split.documents]


def test_documents_decode_to_their_files_without_copies_of_held_out_ones(built):
    found = Corpus.open(built / "out")
    assert paths(found.train) == ["open/code:notes.md", "open/code:one.py", "open/code:two.py", "plain/folder:third.py"]
    assert paths(found.held_out) == ["quiet/held:held.py"]
    assert found.train.text(2, found.tokenizer) == module("dog")
    assert found.train.documents[2].licence == "MIT"


def test_manifest_counts_included_and_excluded_files(built):
    made = msgspec.json.decode((built / "out" / "manifest.json").read_bytes(), type=manifest.Manifest)
    found = Corpus.open(built / "out")
    assert made.tokens == {"train": len(found.train.tokens), "held_out": len(found.held_out.tokens)}
    assert made.dropped == {"contamination": 1, "exact duplicate": 1, "over the language's cap": 1}
    assert made.contamination == {"rows": 1, "rows_touched": 1}
    assert {name: figures.documents for name, figures in made.languages.items()} == {"python": 3, "markdown": 1}
    assert [(source.name, source.licences, source.held_out) for source in made.sources] == [
        ("open/code", ["MIT"], False),
        ("plain/folder", ["MIT"], False),
        ("quiet/held", ["MIT"], True),
    ]
    assert str(built) not in (built / "out" / "manifest.json").read_text()


def test_card_figures_are_those_of_the_manifest(built, tmp_path):
    card = tmp_path / "DATA.md"
    card.write_text("# Data\n\n<!-- figures -->\nold\n<!-- /figures -->\n\nThe end.\n")
    main(["card", str(built / "out" / "manifest.json"), str(card)])
    text = card.read_text()
    assert "old" not in text
    assert "| python | 3 |" in text
    assert "| contamination | 1 |" in text
    assert "Held out: quiet/held." in text
    assert text.endswith("The end.\n")


def test_edit_rows_come_from_the_history(built):
    rows = list(Corpus.open(built / "out").edits())
    assert {"none"} < {row.kind for row in rows}
    assert {row.repository for row in rows} == {"open/code"}


def test_second_build_filters_nothing_again_and_makes_the_same(built, monkeypatch):
    names = ("train.u16", "train.index", "edits.jsonl.xz", "manifest.json")
    before = [(built / "out" / name).read_bytes() for name in names]
    monkeypatch.setattr(collection, "filtered", None)
    corpus.build(built / "recipe.toml", built / "out", built / "out" / "work")
    assert [(built / "out" / name).read_bytes() for name in names] == before


def test_edit_rows_come_of_kept_files_alone_and_never_from_evaluation_rows(built, tmp_path):
    """Also where a build before did not know of them: rows are kept between builds, what is left out is not."""
    work = built / "out" / "work"
    rows = list(Corpus.open(built / "out").edits())
    lines = max((row.window for row in rows), key=len)
    (built / "more.jsonl").write_bytes(msgspec.json.encode({"prefix": lines, "middle": "", "suffix": ""}) + b"\n")
    recipe = (built / "recipe.toml").read_text()
    (built / "stricter.toml").write_text(recipe.replace('"rows.jsonl"', f'"rows.jsonl", "{built}/more.jsonl"'))
    corpus.build(built / "stricter.toml", tmp_path / "out", work)
    found = Corpus.open(tmp_path / "out")
    kept = {document.path for document in found.train.documents}
    assert {row.path for row in found.edits()} <= kept
    assert not any(set(code_runs(row.window)) & set(code_runs(lines)) for row in found.edits())
    assert {row.path for row in rows} - kept, "the file of that row is out, and its history was kept between builds"


@pytest.mark.parametrize(
    ("named", "instead", "message"),
    [
        ("quiet/held", "quiet/hold", "quiet/hold"),
        ('"rows.jsonl"', '"raws*.jsonl"', "raws.*does not exist"),
        ('["mirrors"]', '["mirror"]', "mirror: does not exist"),
        ("mirrors =", "mirors =", "mirors.*README"),
    ],
)
def test_recipe_naming_unknown_things_is_refused(built, named, instead, message):
    """A mistyped name would leave sources out, or evaluation rows in."""
    (built / "wrong.toml").write_text((built / "recipe.toml").read_text().replace(named, instead))
    with pytest.raises(SystemExit, match=message):
        main(["build", str(built / "wrong.toml"), "--out", str(built / "other")])


def test_recipe_without_source_is_refused(built, tmp_path):
    (tmp_path / "reserved.txt").write_text("")
    (tmp_path / "mirrors").mkdir()
    (tmp_path / "empty.toml").write_text('reserved = "reserved.txt"\nevaluation = []\nmirrors = ["mirrors"]\n')
    with pytest.raises(TrainingError, match="no source"):
        corpus.build(tmp_path / "empty.toml", tmp_path / "out", tmp_path / "work")


def test_packed_corpus_unpacks_to_the_same_documents(built, tmp_path):
    main(["pack", str(built / "out"), str(tmp_path / "corpus.tar"), "--mebibytes", "3"])
    assert (tmp_path / "corpus.tar").stat().st_size <= 3 * 2**20
    without_grammars = "import sys; sys.modules['tree_sitter'] = None; from mercury_training.corpus import command"
    call = [sys.executable, "-c", f"{without_grammars}; command.main()", "unpack"]
    subprocess.run([*call, tmp_path / "corpus.tar", tmp_path / "again"], check=True, capture_output=True, timeout=120)
    original, again = Corpus.open(built / "out"), Corpus.open(tmp_path / "again")
    assert {d.path: again.train.text(n, again.tokenizer) for n, d in enumerate(again.train.documents)} == {
        d.path: original.train.text(n, original.tokenizer) for n, d in enumerate(original.train.documents)
    }
    assert sorted(map(repr, again.edits())) == sorted(map(repr, original.edits()))
