"""Small commits of permissive repositories, one JSON line each: what `rows` makes rows of edits from.

    python -m mercury_training.edits.commits training/edits/sources.toml OUT

`OUT/train.jsonl` and `OUT/held_out.jsonl` hold whole files; they are not for publication. Repositories that are
reserved, or named as tests, are in neither.
"""

import argparse
import tomllib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct

from mercury_training.corpus import filters, licences
from mercury_training.corpus.history import Change, CommitSize, small_changes
from mercury_training.corpus.sources import (
    CorpusSource,
    blobs,
    discover,
    is_reserved,
    language_of,
    licence_of_folder,
    reserved_names,
    tree,
)
from mercury_training.errors import TrainingError, reported

COMMAND = "mercury_training.edits.commits"
LANGUAGES = frozenset(
    {"python", "javascript", "typescript", "tsx", "go", "rust", "c", "cpp", "java", "csharp", "kotlin"}
)
LIMITS = CommitSize(files=5, lines=120, hunk=20, line=200)
MOST_HUNKS = 24
SINGLE = 2.5
"""Of so many commits with a single hunk one is kept: such a hunk has no past, and only places where nothing is due."""


class EditSources(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the commits come from. `mirrors` holds bare repositories as `owner+name/repo`; of those, `held_out` are for
    the held-out loss, `tests` for neither, and all others are trained on. Paths are relative to the file."""

    reserved: str
    mirrors: str
    commits: int
    repositories: list[str]
    held_out: list[str]


class Commit(Struct, frozen=True):
    """A commit, its repository and the licences of its files."""

    repository: str
    licences: dict[str, str]
    change: Change


def build(sources: Path, out: Path) -> dict[str, int]:
    """Writes both files; returns the number of hunks in each."""
    settings = _read(sources)
    reserved = reserved_names((sources.parent / settings.reserved).read_text("utf-8"))
    available = {source.name: source for source in discover([str(sources.parent / settings.mirrors)], [], [], reserved)}
    out.mkdir(parents=True, exist_ok=True)
    counts = {}
    for name, repositories in (("train", settings.repositories), ("held_out", settings.held_out)):
        counts[name] = 0
        with (out / f"{name}.jsonl").open("wb") as file:
            for repository in repositories:
                source = available.get(repository)
                if source is None:
                    print(f"{repository}: no mirror below {settings.mirrors}, left out", flush=True)
                    continue
                commits = 0
                for commit in islice(_commits(source, reserved), settings.commits):
                    file.write(msgspec.json.encode(commit) + b"\n")
                    counts[name] += len(commit.change.hunks)
                    commits += 1
                print(f"{repository}: {commits} commits, {counts[name]} hunks so far", flush=True)
    return counts


def _read(path: Path) -> EditSources:
    try:
        return msgspec.convert(tomllib.loads(path.read_text("utf-8")), EditSources)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise TrainingError(f"{path}: {error}; see training/README.md") from error


def _commits(source: CorpusSource, reserved: frozenset[str]) -> Iterator[Commit]:
    paths = _Permitted(source, reserved)
    singles = 0.0
    for change in small_changes(source, paths, LIMITS):
        if len(change.hunks) > MOST_HUNKS:
            continue
        if len(change.hunks) == 1:
            singles += 1
            if singles < SINGLE:
                continue
            singles -= SINGLE
        yield Commit(source.name, {path: paths.licence(path) or "" for path in change.before}, change)


class _Permitted:
    """The paths of a repository that may be trained on, also those that no longer exist: code under a permissive
    licence, neither vendored nor generated, nor a copy of a reserved repository."""

    def __init__(self, source: CorpusSource, reserved: frozenset[str]) -> None:
        self._reserved = reserved
        entries = tree(source.location, source.revision)
        with blobs(source.location) as read:
            texts = {
                path: (read(name) or b"").decode("utf-8", "replace")
                for path, name in entries
                if licences.is_licence_file(PurePosixPath(path).name)
            }
        self.licence = licence_of_folder(texts, None)

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, str) or language_of(path) not in LANGUAGES or self.licence(path) is None:
            return False
        folders = {part.lower() for part in PurePosixPath(path).parts[:-1]}
        if not folders.isdisjoint(filters.VENDORED) or filters.GENERATED_NAME.search(path):
            return False
        return not is_reserved(path, self._reserved)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").split(":")[0])
    parser.add_argument("sources", type=Path, metavar="SOURCES.toml")
    parser.add_argument("out", type=Path, metavar="OUT")
    options = parser.parse_args(arguments)
    with reported(COMMAND):
        for name, hunks in build(options.sources, options.out).items():
            print(f"{name}: {hunks:,} hunks")


if __name__ == "__main__":
    main()
