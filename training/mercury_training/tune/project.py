"""A project to learn from: its files and its history, and the part of both that is held out."""

import math
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from msgspec import Struct

from mercury_engine.redaction import tells_secrets
from mercury_engine.tuning_data import File
from mercury_training.corpus import history
from mercury_training.corpus.contamination import code_runs
from mercury_training.corpus.dedup import Seen, digest, signature
from mercury_training.corpus.filters import reason_to_drop
from mercury_training.corpus.shards import EditRow
from mercury_training.corpus.sources import CorpusSource, git, language_of
from mercury_training.corpus.syntax import GRAMMARS
from mercury_training.errors import TrainingError
from mercury_training.rows.cuts import KINDS, PER_FILE, cuts, row_of, surroundings
from mercury_training.rows.fim_rows import FimRow

LEAST_FILES = 8
HELD_OUT = 0.12
LEAST_HELD_OUT = 3
"""The share of the files, and the maximum share of the text, to hold out."""

COMMITS = 400
FILES_A_COMMIT = 3
EDITS = 3000
LATER_EDITS = 64
PLACES = 96
SYNTHETIC = frozenset({"rename", "signature", "import"})


class ProjectFile(Struct, frozen=True):
    """A file worth learning from."""

    path: str
    language: str
    text: str
    licence: str = ""


class ProjectSplit(Struct, frozen=True):
    """Training never sees the files `held_out` in any state, nor the commits that `later` and `places` come from."""

    train: list[ProjectFile]
    held_out: list[ProjectFile]
    edits: list[EditRow]
    later: list[EditRow]
    places: list[FimRow]


@contextmanager
def history_of(root: Path) -> Iterator[CorpusSource | None]:
    """The history of a working tree, None if there is none.

    It is read through an empty repository of our own that borrows its objects, so that the project's configuration,
    which could name programs to run and places to fetch from, does not apply.
    """
    head = _asked(root, "rev-parse", "--verify", "--quiet", "HEAD")
    if head is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        kind = _asked(root, "rev-parse", "--show-object-format") or "sha1"
        git(folder, "init", "--bare", "--quiet", f"--object-format={kind}")
        objects = _asked(root, "rev-parse", "--path-format=absolute", "--git-path", "objects")
        (Path(folder) / "objects/info/alternates").write_text(f"{objects}\n", encoding="utf-8")
        shallow = Path(_asked(root, "rev-parse", "--path-format=absolute", "--git-path", "shallow") or "")
        if shallow.is_file():
            shutil.copyfile(shallow, Path(folder) / "shallow")
        source = CorpusSource(root.name, "git", folder, head)
        yield source if _is_readable(source) else None


def split(files: Sequence[File], source: CorpusSource | None, seed: int = 0) -> ProjectSplit:
    """The files of the latest small commits are held out, and some more; copies of them are not trained on either."""
    texts = _worthwhile(files)
    draw = random.Random(seed)
    chosen, commits = _held_out(texts, _commits(source), draw)
    fingerprints = Seen()
    held_out = [text for text in texts if text.path in chosen and not _is_copy(text, fingerprints)]
    train = [text for text in texts if text.path not in chosen and not _is_copy(text, fingerprints)]
    if len(held_out) + len(train) < LEAST_FILES or not train:
        raise TrainingError(
            f"{len(held_out) + len(train)} of {len(files)} readable files are distinct source code worth learning "
            f"from, at least {LEAST_FILES} needed: tune a larger project"
        )
    edits = [row for row in history.edit_rows(source, train, EDITS) if not _tells_secrets(row)] if source else []
    later = [row for row in _later(source, held_out, commits) if not _tells_secrets(row)] if source else []
    runs = {run for text in train for run in code_runs(text.text)}
    runs |= {run for row in edits for run in code_runs(row.window)}
    places = [row for row, near in _places(held_out, draw) if runs.isdisjoint(code_runs(near))]
    fresh = [row for row in later if runs.isdisjoint(code_runs("".join(change.text for change in row.expected)))]
    return ProjectSplit(train, held_out, edits, fresh[:LATER_EDITS], draw.sample(places, min(PLACES, len(places))))


def _worthwhile(files: Iterable[File]) -> list[ProjectFile]:
    """Files worth learning from, sorted by path, so that the same project is always split in the same way."""
    texts = []
    for file in sorted(files, key=lambda file: file.path):
        language, text = language_of(file.path), file.text.replace("\r\n", "\n")
        if language and reason_to_drop(file.path, language, text.encode("utf-8", "replace")) is None:
            texts.append(ProjectFile(file.path, language, text))
    return texts


def _held_out(
    texts: Sequence[ProjectFile], commits: Iterable[tuple[str, Sequence[str]]], draw: random.Random
) -> tuple[Set[str], Set[str]]:
    """The held-out paths, and the commits that changed no other known file: newest first, as long as there is room."""
    sizes = {text.path: len(text.text) for text in texts}
    limit, room = max(LEAST_HELD_OUT, int(HELD_OUT * len(texts))), HELD_OUT * sum(sizes.values())
    chosen: set[str] = set()
    later = set()
    for commit, touched in commits:
        wider = chosen | sizes.keys() & set(touched)
        if len(touched) <= FILES_A_COMMIT and len(wider) <= limit and sum(sizes[path] for path in wider) <= room:
            chosen = wider
            later.add(commit)
    remaining = sorted(sizes.keys() - chosen)
    for path in draw.sample(remaining, len(remaining)):
        fits = len(chosen) < limit and sizes[path] + sum(sizes[other] for other in chosen) <= room
        if fits or len(chosen) < LEAST_HELD_OUT:
            chosen.add(path)
    return chosen, later


def _commits(source: CorpusSource | None) -> Iterator[tuple[str, list[str]]]:
    """Commits, newest first, with the paths that they touch."""
    if source is None:
        return
    arguments = ("log", f"-{COMMITS}", "--name-only", "--no-renames", "--no-merges", "--format=%x01%H", source.revision)
    for entry in git(source.location, *arguments).decode("utf-8", "replace").split("\1")[1:]:
        commit, *paths = (line for line in entry.split("\n") if line)
        yield commit, paths


def _is_copy(text: ProjectFile, fingerprints: Seen) -> bool:
    data = text.text.encode("utf-8", "replace")
    return fingerprints.reason(digest(data), np.asarray(signature(data))) is not None


def _later(source: CorpusSource, held_out: Sequence[ProjectFile], commits: Set[str]) -> Iterator[EditRow]:
    """The actual changes of the held-out commits."""
    for row in history.edit_rows(source, held_out, EDITS):
        if row.commit in commits and row.expected and row.kind not in SYNTHETIC:
            yield row


def _places(texts: Sequence[ProjectFile], draw: random.Random) -> Iterator[tuple[FimRow, str]]:
    """Places to complete, each with the lines around it; more per file if there are few files."""
    parsed = [text for text in texts if text.language in GRAMMARS]
    rounds = math.ceil(2 * PLACES / max(1, PER_FILE * len(KINDS) * len(parsed)))
    for text in parsed:
        cuts_of_file = dict.fromkeys(cut for _ in range(rounds) for cut in cuts(text.language, text.text, draw))
        for cut in cuts_of_file:
            name = f"{text.path} {cut.start} {cut.stop}"
            row = row_of(
                text.text, cut, id=name, repo="", commit="", licence="", path=text.path, language=text.language
            )
            yield row, surroundings(text.text, cut)


def _tells_secrets(row: EditRow) -> bool:
    """True if anything in it looks like a key or a password: unlike current files, old states are not redacted."""
    texts = [row.window, *(change.text for change in row.expected)]
    texts += [text for edit in row.edits for text in (edit.before, edit.after)]
    return any(map(tells_secrets, texts))


def _is_readable(source: CorpusSource) -> bool:
    """False for partial clones, which keep most of their objects elsewhere and so have no history here."""
    try:
        list(_commits(source))
    except subprocess.CalledProcessError as error:
        lines = (error.stderr or b"").decode("utf-8", "replace").strip().splitlines()
        print(f"the history cannot be read and is left out: {lines[-1] if lines else error}", file=sys.stderr)
        return False
    return True


def _asked(root: Path, *arguments: str) -> str | None:
    """The output of git for a working tree; None without one or without git. These commands run nothing that a
    project names."""
    try:
        return git(str(root), *arguments).decode().strip()
    except (subprocess.CalledProcessError, FileNotFoundError):
        return None
