"""Larger evaluation sets, from the held-out repositories of a corpus.

    python -m mercury_training.evaluate.sets build --corpus DIR --out DIR

Writes `fim.jsonl` and `next_edit.jsonl` in the format of the development sets, and `manifest.json`. The same corpus
gives the same rows. Rows whose surroundings share three consecutive lines of code with training are left out.
"""

import argparse
import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from mercury_training import jsonl
from mercury_training.corpus.contamination import code_runs
from mercury_training.corpus.shards import Corpus, CorpusFile, EditRow, Split
from mercury_training.errors import TrainingError, reported
from mercury_training.progress import shown
from mercury_training.rows.cuts import KINDS, Cut, cuts, row_of, surroundings
from mercury_training.rows.fim_rows import FimRow
from mercury_training.rows.next_edit_rows import class_of, next_edit_row

T = TypeVar("T")

LANGUAGES = {"python": "python", "typescript": "typescript", "tsx": "typescript", "go": "go", "rust": "rust"}
"""Languages, and the one of four that each counts as."""

FILES = ("fim.jsonl", "next_edit.jsonl")

PER_KIND = 180
"""Rows of each kind in each of the four languages."""

PER_CLASS = {"repeat": 52, "repeat_delete": 4, "propagate": 52, "other": 20, "none": 26}
"""Next-edit rows of each class in each language, in the proportions of the development set."""

SURPLUS = 1.5

APART = "another set, whose files are not cut again: one to fit with, one to judge by"
AGAINST = "a further training corpus, whose files rows may not resemble"


class _Revision(Struct, frozen=True):
    name: str
    revision: str


class _Sources(Struct, frozen=True):
    """The part of a corpus manifest that is needed here."""

    tokens: dict[str, int]
    sources: list[_Revision]


class _TakenRows(Struct, frozen=True):
    """The files from which rows were cut."""

    repo: str
    path: str


class Training:
    """Finds the marked places with a near copy in training. `mark` all of them, then `read` the corpus."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._owners: dict[int, list[str]] = {}

    def mark(self, name: str, text: str) -> None:
        for run in code_runs(text):
            self._owners.setdefault(run, []).append(name)

    def read(self, text: str) -> None:
        for run in code_runs(text):
            self.seen.update(self._owners.get(run, ()))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="mercury_training.evaluate.sets", description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("build", help="make the sets of a corpus' held-out repositories")
    command.add_argument("--corpus", type=Path, required=True, metavar="DIR")
    command.add_argument("--out", type=Path, required=True, metavar="DIR")
    command.add_argument("--against", type=Path, action="append", default=[], metavar="DIR", help=AGAINST)
    command.add_argument("--apart-from", type=Path, action="append", default=[], metavar="SET", help=APART)
    command.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    with reported("mercury_training.evaluate.sets"):
        manifest = build(options.corpus, options.out, options.against, options.apart_from, options.seed)
    print(json.dumps(manifest["counts"], indent=1))


def build(
    folder: Path, out: Path, against: Sequence[Path] = (), apart_from: Sequence[Path] = (), seed: int = 0
) -> dict:
    """Build the sets; return the manifest, which is also written. `against`: further corpora whose training files
    are compared; `apart_from`: other sets, whose files are not used again."""
    if repository := next((str(parent) for parent in out.resolve().parents if (parent / ".git").exists()), None):
        raise TrainingError(f"{out}: lies in the repository {repository}; choose a folder outside of it")
    corpus = Corpus.open(folder)
    sources = msgspec.json.decode((folder / "manifest.json").read_bytes(), type=_Sources)
    commits = {source.name: source.revision for source in sources.sources}
    used = set().union(*map(_files_of, apart_from))
    fim, training = fim_rows(corpus, commits, seed, used)
    fresh = (row for row in corpus.held_out_edits() if (row.repository, row.path) not in used)
    edits = next_edit_rows(fresh, commits, seed)
    for row in edits:
        training.mark(row["id"], row["file_now"])
    _read_files([corpus, *map(Corpus.open, against)], training)
    for row in corpus.edits():
        training.read(row.window)
    fim = _first((row for row in fim if row.id not in training.seen), _fim_group, lambda group: PER_KIND)
    fresh = (row for row in edits if row["id"] not in training.seen)
    edits = _first(fresh, _edit_group, lambda group: PER_CLASS[group[1]])
    files: dict[str, bytes] = dict(zip(FILES, (jsonl.encode(fim), jsonl.encode(edits)), strict=True))
    manifest = {
        "corpus": {"tokens": sources.tokens, "sha256": _digest((folder / "manifest.json").read_bytes())},
        "seed": seed,
        "repositories": {name: commits[name] for name in sorted({row.repo for row in fim})},
        "apart_from": [_digest((folder / "manifest.json").read_bytes()) for folder in apart_from],
        "against": [_digest((folder / "train.index").read_bytes()) for folder in against],
        "near_copies_left_out": len(training.seen),
        "counts": {"fim": _counts(map(_fim_group, fim)), "next_edit": _counts(map(_edit_group, edits))},
        "sha256": {name: _digest(data) for name, data in files.items()},
    }
    out.mkdir(parents=True, exist_ok=True)
    files["manifest.json"] = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
    for name, data in files.items():
        (out / name).write_bytes(data)
    return manifest


def fim_rows(
    corpus: Corpus, commits: dict[str, str], seed: int, used: Set[tuple[str, str]] = frozenset()
) -> tuple[list[FimRow], Training]:
    """More rows than are needed, in order of preference; the code around each middle is marked."""
    split = corpus.held_out
    rows: list[FimRow] = []
    training = Training()
    missing = dict.fromkeys(((language, kind) for language in set(LANGUAGES.values()) for kind in KINDS), 0)
    for number in _in_turn(split, random.Random(seed)):
        document = split.documents[number]
        group = LANGUAGES.get(document.language)
        if (document.repository, document.path) in used:
            continue
        if group is None or all(missing[group, kind] >= PER_KIND * SURPLUS for kind in KINDS):
            continue
        text = split.text(number, corpus.tokenizer)
        for cut in cuts(document.language, text, random.Random(f"{seed} {document.repository} {document.path}")):
            if missing[group, cut.kind] < PER_KIND * SURPLUS:
                missing[group, cut.kind] += 1
                row = _fim_row(document, commits[document.repository], text, cut)
                rows.append(row)
                training.mark(row.id, surroundings(text, cut))
    return rows, training


def next_edit_rows(rows: Iterable[EditRow], commits: dict[str, str], seed: int) -> list[dict]:
    """More rows than needed, of real commits only (synthetic rows name the commit that was collected), each once."""
    groups: dict[tuple[str, str], list[EditRow]] = {}
    for row in rows:
        language, name = LANGUAGES.get(row.language), class_of(row)
        real = row.edits and row.cursor >= 0 and row.commit != commits[row.repository]
        if real and language and name in PER_CLASS:
            groups.setdefault((language, name), []).append(row)
    found: dict[str, dict] = {}
    for (_, name), members in sorted(groups.items()):
        members = _in_turn_by(members, lambda row: row.repository, random.Random(seed))
        rows_written = (rows_written for row in members if (rows_written := next_edit_row(row)))
        limit = range(int(PER_CLASS[name] * SURPLUS))
        found |= {row["id"]: row for row, _ in zip(rows_written, limit, strict=False)}
    return list(found.values())


def _fim_row(document: CorpusFile, commit: str, text: str, cut: Cut) -> FimRow:
    key = f"{document.repository} {commit} {document.path} {cut.start} {cut.stop}"
    return row_of(
        text,
        cut,
        id=f"held-{cut.kind}-{_digest(key.encode())[:12]}",
        repo=document.repository,
        commit=commit,
        licence=document.licence,
        path=document.path,
        language=document.language,
    )


def _files_of(folder: Path) -> set[tuple[str, str]]:
    """The repository and path of every row of a set."""
    return {(row.repo, row.path) for name in FILES for row in jsonl.read(folder / name, _TakenRows)}


def _read_files(corpora: Sequence[Corpus], training: Training) -> None:
    for corpus in corpora:
        for number in shown("compare with training", range(len(corpus.train))):
            training.read(corpus.train.text(number, corpus.tokenizer))


def _in_turn(split: Split, draw: random.Random) -> Iterator[int]:
    """Document numbers, taken from the repositories in turn, so that large ones do not fill a set."""
    groups = [draw.sample(list(numbers), len(numbers)) for _, numbers in sorted(split.repositories.items())]
    return (number for turn in zip_longest(*groups) for number in turn if number is not None)


def _in_turn_by(members: Sequence[T], group: Callable[[T], str], draw: random.Random) -> list[T]:
    groups: dict[str, list[T]] = {}
    for member in draw.sample(list(members), len(members)):
        groups.setdefault(group(member), []).append(member)
    turns = zip_longest(*(groups_in_order for _, groups_in_order in sorted(groups.items())))
    return [member for turn in turns for member in turn if member is not None]


def _first(
    rows: Iterable[T], group: Callable[[T], tuple[str, str]], limit: Callable[[tuple[str, str]], int]
) -> list[T]:
    """The requested number from each group, sorted by group and then in the order found."""
    by_kind: dict[tuple[str, str], list[T]] = {}
    for row in rows:
        members = by_kind.setdefault(group(row), [])
        if len(members) < limit(group(row)):
            members.append(row)
    return [row for _, members in sorted(by_kind.items()) for row in members]


def _fim_group(row: FimRow) -> tuple[str, str]:
    return LANGUAGES[row.language], row.kind


def _edit_group(row: dict) -> tuple[str, str]:
    return LANGUAGES[row["language"]], row["class"]


def _counts(groups: Iterable[tuple[str, str]]) -> dict[str, int]:
    return dict(sorted(Counter(map("/".join, groups)).items()))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


if __name__ == "__main__":
    main()
