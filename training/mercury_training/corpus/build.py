"""From sources to token shards.

Four steps, each of which keeps what it has finished, so that an interrupted build continues where it stopped:
collect (filter each source's files, sign them), select (evaluation sets, duplicates, the mix of languages),
encode (train the tokenizer once, then tokens per source), and join (splits, edit rows, manifest).
"""

import hashlib
import os
import random
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from glob import glob
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_training.corpus import history, shards
from mercury_training.corpus.collection import SelectedSource, collect, collected, select, texts, write
from mercury_training.corpus.contamination import EvaluationRuns
from mercury_training.corpus.manifest import Manifest, entry_of, grouped
from mercury_training.corpus.shards import CorpusFile
from mercury_training.corpus.sources import CorpusSource, discover, reserved_names
from mercury_training.corpus.tokenizer_training import train_tokenizer
from mercury_training.errors import TrainingError
from mercury_training.progress import shown

SAMPLE = 64_000_000
"""The number of characters that the tokenizer learns from."""


class NamedFolder(Struct, frozen=True, forbid_unknown_fields=True):
    """A folder of files under one name; `revision` identifies its state."""

    name: str
    path: str
    revision: str


class SourcesFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A sources file. Paths are relative to the file's folder.

    `caps`: the maximum million bytes of a language. `held_out`: sources for evaluation only. `stated`: licences of
    sources whose own files are ambiguous. `tokenizer`: an existing vocabulary to keep; trained if empty.
    """

    reserved: str
    evaluation: list[str]
    mirrors: list[str] = []
    folders: list[NamedFolder] = []
    site_packages: list[str] = []
    wheels: list[str] = []
    held_out: list[str] = []
    leave_out: list[str] = []
    stated: dict[str, str] = {}
    caps: dict[str, float] = {}
    tokenizer: str = ""
    edits_per_repository: int = 2000

    @classmethod
    def load(cls, path: Path) -> "SourcesFile":
        try:
            return msgspec.convert(tomllib.loads(path.read_text("utf-8")), cls)
        except (OSError, ValueError) as error:
            raise TrainingError(f"{path}: cannot be read ({error}); training/README.md shows a sources file") from error


class _EncodedSource(Struct, frozen=True):
    """The documents of one source, and a digest of their inputs."""

    state: str
    documents: list[CorpusFile]


def build(sources_file: Path, out: Path, work: Path) -> Manifest:
    """Run all steps; the manifest is also written to `out`."""
    recipe, root = SourcesFile.load(sources_file), sources_file.parent
    _check(recipe, root)
    reserved = reserved_names((root / recipe.reserved).read_text("utf-8"))
    sources = _sources(recipe, root, reserved)
    if not sources:
        raise TrainingError(
            f"{sources_file}: the folders that it names hold no source; mirrors are laid out as owner+name/repo"
        )
    out.mkdir(parents=True, exist_ok=True)
    dropped = collect(sources, recipe.stated, reserved, work)
    evaluation = EvaluationRuns(path for pattern in recipe.evaluation for path in _matching(root, pattern))
    selected = select(sources, recipe.held_out, recipe.caps, evaluation, work, dropped)
    tokenizer = _tokenizer(recipe, root, out, selected, work)
    encoded = [(source, _encode(source, tokenizer, out, work)) for source in shown("encode", selected)]
    tokens = _splits(recipe, encoded, out, work)
    rows = _edits(encoded, recipe, evaluation, out, work)
    manifest = _manifest(recipe, encoded, tokens, rows, evaluation, dropped, work)
    (out / "manifest.json").write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
    return manifest


def _matching(root: Path, pattern: str) -> list[Path]:
    """Relative to the root, or absolute."""
    return sorted(map(Path, glob(str(root / pattern), recursive=True)))


def _check(recipe: SourcesFile, root: Path) -> None:
    """Every named path must exist: a mistyped name must not let evaluation rows into the corpus."""
    named = [recipe.reserved, *recipe.mirrors, *recipe.site_packages, *recipe.wheels]
    named += [folder.path for folder in recipe.folders] + [recipe.tokenizer] * bool(recipe.tokenizer)
    missing = [name for name in named if not (root / name).exists()]
    missing += [pattern for pattern in recipe.evaluation if not _matching(root, pattern)]
    if missing:
        raise TrainingError(
            f"{root / missing[0]}: does not exist; correct the sources file, whose paths are relative to it"
        )


def _sources(recipe: SourcesFile, root: Path, reserved: frozenset[str]) -> list[CorpusSource]:
    """Held-out sources first, so that near copies are removed from training; packages made from them are left out."""
    mirrors, site_packages, wheels = (
        [str(root / folder) for folder in folders] for folders in (recipe.mirrors, recipe.site_packages, recipe.wheels)
    )
    left_out = {name.lower() for name in recipe.leave_out}
    left_out |= {f"pypi/{name.lower().rpartition('/')[2]}" for name in recipe.held_out}
    sources = [
        *discover(mirrors, site_packages, wheels, reserved),
        *(CorpusSource(folder.name, "folder", str(root / folder.path), folder.revision) for folder in recipe.folders),
    ]
    sources = [source for source in sources if source.name.lower() not in left_out]
    if missing := set(recipe.held_out) - {source.name for source in sources}:
        raise TrainingError(f"held_out: {sorted(missing)} are not sources; correct their names or add their mirrors")
    return sorted(sources, key=lambda source: source.name not in recipe.held_out)


def _tokenizer(recipe: SourcesFile, root: Path, out: Path, selected: list[SelectedSource], work: Path) -> Tokenizer:
    path = out / "tokenizer.json"
    if not path.exists() and recipe.tokenizer:
        write(path, (root / recipe.tokenizer).read_bytes())
    elif not path.exists():
        train_tokenizer(
            _sample([documents for documents in selected if documents.source.name not in recipe.held_out], work), path
        )
    return Tokenizer.load(path)


def _sample(selected: list[SelectedSource], work: Path) -> Iterator[str]:
    """An even share of every source, in a fixed order."""
    size = sum(len(text) for documents in selected for text in texts(documents, work))
    draw = random.Random(0)
    for documents in selected:
        yield from (text for text in texts(documents, work) if draw.random() < SAMPLE / size)


def _encode(kept: SelectedSource, tokenizer: Tokenizer, out: Path, work: Path) -> _EncodedSource:
    """Tokens of one source, kept as long as vocabulary and selection stay."""
    index = _tokens_path(work, kept).with_suffix(".index")
    state = hashlib.sha256((out / "tokenizer.json").read_bytes() + msgspec.msgpack.encode(kept)).hexdigest()
    if index.exists():
        encoded = msgspec.msgpack.decode(index.read_bytes(), type=_EncodedSource)
        if encoded.state == state:
            return encoded
    candidates = collected(work, kept.source).candidates
    documents, parts, start = [], [], 0
    for candidate in (candidates[number] for number in kept.numbers):
        tokens = np.array(tokenizer.encode(candidate.text), np.uint16)
        stop = start + len(tokens)
        documents.append(
            CorpusFile(kept.source.name, candidate.path, candidate.language, candidate.licence, start, stop)
        )
        parts.append(tokens.tobytes())
        start = stop
    encoded = _EncodedSource(state, documents)
    write(_tokens_path(work, kept), b"".join(parts))
    write(index, msgspec.msgpack.encode(encoded))
    return encoded


def _tokens_path(work: Path, documents: SelectedSource) -> Path:
    return work / "encoded" / f"{documents.source.key}.u16"


def _splits(
    recipe: SourcesFile, encoded: list[tuple[SelectedSource, _EncodedSource]], out: Path, work: Path
) -> dict[str, int]:
    """The number of tokens in each split."""
    tokens = {}
    for split, held_out in (("train", False), ("held_out", True)):
        members = [member for member in encoded if (member[0].source.name in recipe.held_out) == held_out]
        parts = ((_tokens_path(work, documents), encoded.documents) for documents, encoded in members)
        tokens[split] = shards.write_split(out, split, parts)
    return tokens


def _edits(
    encoded: list[tuple[SelectedSource, _EncodedSource]],
    recipe: SourcesFile,
    evaluation: EvaluationRuns,
    out: Path,
    work: Path,
) -> dict[str, dict[str, int]]:
    """Edit rows of the kept files of every repository; the number of each kind in each split."""
    repositories = [member for member in encoded if member[0].source.kind == "git"]
    edit_shards = [
        (
            documents.source.name,
            _rows_of(documents.source, recipe, work),
            {document.path for document in repository.documents},
        )
        for documents, repository in shown("edits", repositories)
    ]
    rows = {}
    for split, name, held_out in (("train", "edits", False), ("held_out", "held_out_edits", True)):
        kinds: Counter[str] = Counter()
        members = [(path, counts) for source, path, counts in edit_shards if (source in recipe.held_out) == held_out]
        shards.write_edits(out / f"{name}.jsonl.xz", _counted(kinds, members, evaluation))
        rows[split] = dict(sorted(kinds.items()))
    return rows


def _rows_of(source: CorpusSource, recipe: SourcesFile, work: Path) -> Path:
    """One repository's edit rows, kept between builds."""
    limit = recipe.edits_per_repository
    path = work / "edits" / f"{source.key}.{source.revision[:12]}.{limit}.jsonl.xz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = history.edit_rows(source, collected(work, source).candidates, limit)
        partial = path.with_suffix(".partial")
        shards.write_edits(partial, rows)
        os.replace(partial, path)
    return path


def _counted(
    kinds: Counter[str], members: Iterable[tuple[Path, Set[str]]], evaluation: EvaluationRuns
) -> Iterator[shards.EditRow]:
    """The rows of these files. Those kept between builds may be older than the selection and the evaluation sets."""
    for path, counts in members:
        for row in shards.read_edits(path):
            if row.path in counts and not any(map(evaluation.touches, _texts(row))):
                kinds[row.kind] += 1
                yield row


def _texts(row: shards.EditRow) -> Iterator[str]:
    yield row.window
    yield from (change.text for change in row.expected)
    yield from (text for edit in row.edits for text in (edit.before, edit.after))


def _manifest(
    recipe: SourcesFile,
    encoded: list[tuple[SelectedSource, _EncodedSource]],
    tokens: dict[str, int],
    rows: dict[str, dict[str, int]],
    evaluation: EvaluationRuns,
    dropped: Counter[str],
    work: Path,
) -> Manifest:
    entries, trained = [], []
    for documents, encoded_documents in encoded:
        sizes = [len(text.encode()) for text in texts(documents, work)]
        held_out = documents.source.name in recipe.held_out
        entries.append(entry_of(documents.source, encoded_documents.documents, sizes, held_out))
        if not held_out:
            trained += zip(encoded_documents.documents, sizes, strict=True)
    size = sum(size for _, size in trained)
    return Manifest(
        tokens=tokens,
        bytes=size,
        bytes_per_token=round(size / max(1, tokens["train"]), 4),
        languages=grouped(trained, "language"),
        licences=grouped(trained, "licence"),
        dropped=dict(sorted(dropped.items())),
        contamination={"rows": evaluation.rows, "rows_touched": len(evaluation.touched)},
        edits=rows,
        held_out=sorted(recipe.held_out),
        sources=sorted(entries, key=lambda entry: entry.name.lower()),
    )
