"""The committed evaluation rows: cuts of this project's own code, and edits of its own history.

    python -m bench.own_rows --repository . --revision COMMIT --out bench/sets

The sets are small, so that the ratchet needs nothing beyond a clone; no model has been trained on them. They tell a
better program from a worse one, but little about a model: for that there are the larger sets of
`mercury_training.evaluate.sets`. The same revision gives the same rows.
"""

import argparse
import hashlib
import random
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from mercury_training import jsonl
from mercury_training.corpus.history import commit_rows, edit_rows, made_up
from mercury_training.corpus.shards import EditRow
from mercury_training.corpus.sources import CorpusSource, git, language_of
from mercury_training.rows.cuts import Cut, cuts, row_of
from mercury_training.rows.fim_rows import FimRow
from mercury_training.rows.next_edit_rows import next_edit_row
from mercury_training.tune.project import ProjectFile

NAME, LICENCE = "mercury-ls", "Apache-2.0"
PER_KIND = {"python": 15, "lua": 5}
PER_CLASS = {"repeat": 10, "propagate": 10, "other": 4, "none": 10}
LARGEST_FILE = 7_000
MOST_EDITS = 4_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", default=".")
    parser.add_argument("--revision", default="HEAD")
    parser.add_argument("--out", type=Path, default=Path("bench/sets"))
    given = parser.parse_args()
    for path, count in build(given.repository, given.revision, given.out).items():
        print(f"{path}: {count} rows")


def build(repository: str, revision: str, out: Path) -> dict[Path, int]:
    commit = git(repository, "rev-parse", revision).decode().strip()
    found = list(_files(repository, commit))
    rows = {
        "fim.jsonl": fim_rows(found, commit),
        "next_edit.jsonl": next_edit_rows(CorpusSource(NAME, "git", repository, commit), found),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, members in rows.items():
        jsonl.write(out / name, members)
    return {out / name: len(members) for name, members in rows.items()}


def _files(repository: str, commit: str) -> Iterator[ProjectFile]:
    for path in git(repository, "ls-tree", "-r", "--name-only", commit).decode().splitlines():
        if (language := language_of(path)) in PER_KIND:
            yield ProjectFile(path, language, git(repository, "show", f"{commit}:{path}").decode(), LICENCE)


def fim_rows(found: Sequence[ProjectFile], commit: str) -> list[FimRow]:
    """The same number of each kind and language, at most one of a kind per file, from randomly drawn files."""
    small = [file for file in found if len(file.text) <= LARGEST_FILE]
    rows: dict[tuple[str, str], list[FimRow]] = {}
    for file in random.Random(0).sample(small, len(small)):
        for cut in _one_of_each(cuts(file.language, file.text, random.Random(file.path))):
            members = rows.setdefault((file.language, cut.kind), [])
            if len(members) < PER_KIND[file.language]:
                members.append(_fim_row(file, cut, commit))
    return [row for _, members in sorted(rows.items()) for row in members]


def _one_of_each(found: Sequence[Cut]) -> list[Cut]:
    return list({cut.kind: cut for cut in found}.values())


def _fim_row(file: ProjectFile, cut: Cut, commit: str) -> FimRow:
    key = f"{file.path} {cut.start} {cut.stop}".encode()
    return row_of(
        file.text,
        cut,
        id=f"own-{cut.kind}-{hashlib.sha256(key).hexdigest()[:12]}",
        repo=NAME,
        commit=commit,
        licence=file.licence,
        path=file.path,
        language=file.language,
    )


def next_edit_rows(source: CorpusSource, found: Sequence[ProjectFile]) -> list[dict]:
    """The newest commits first; if they are too few, synthetic changes, whose rows name only the revision."""
    taken: dict[str, dict[str, dict]] = {name: {} for name in PER_CLASS}
    for row in chain(edit_rows(source, found, MOST_EDITS), _made_up_rows(source, found)):
        written = next_edit_row(row) if row.cursor >= 0 and row.edits else None
        members = taken.get(written["class"]) if written else None
        if members is not None and len(members) < PER_CLASS[written["class"]]:
            members[written["id"]] = written
    return [row for members in taken.values() for row in members.values()]


def _made_up_rows(source: CorpusSource, found: Sequence[ProjectFile]) -> Iterator[EditRow]:
    """The beginning and the end of each synthetic change."""
    draw = random.Random(0)
    for made in made_up(source, found, draw):
        rows = list(commit_rows(made.change, made.make, draw))
        yield from (rows[0], rows[-1])


if __name__ == "__main__":
    main()
