"""Selects the files to train on: each source is filtered and signed once, then duplicates are removed."""

import os
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from mercury_training.corpus import licences
from mercury_training.corpus.contamination import EvaluationRuns
from mercury_training.corpus.dedup import Seen, digest, signature
from mercury_training.corpus.filters import reason_to_drop
from mercury_training.corpus.sources import CorpusSource, files, is_reserved
from mercury_training.progress import shown


class FilteredFile(Struct, frozen=True, array_like=True):
    """A file that passed the filters."""

    path: str
    language: str
    licence: str
    text: str
    digest: bytes
    signature: bytes


class Collected(Struct, frozen=True):
    candidates: list[FilteredFile]
    dropped: dict[str, int]


class SelectedSource(Struct, frozen=True):
    """The selected files of a source, as numbers of its candidates."""

    source: CorpusSource
    numbers: list[int]


def collect(
    sources: Sequence[CorpusSource], stated: Mapping[str, str], reserved: frozenset[str], work: Path
) -> Counter[str]:
    """Filter every source that was not filtered before; dropped files are counted by reason."""
    dropped: Counter[str] = Counter()
    for source in shown("collect", sources):
        path = _path(work, source)
        if not path.exists():
            texts = filtered(source, stated.get(source.name), reserved)
            write(path, zlib.compress(msgspec.msgpack.encode(texts), 1))
        dropped.update(collected(work, source).dropped)
    return dropped


def filtered(source: CorpusSource, stated: str | None, reserved: frozenset[str]) -> Collected:
    candidates: list[FilteredFile] = []
    dropped: Counter[str] = Counter()
    for file in files(source, stated):
        if is_reserved(file.path, reserved):
            dropped["reserved"] += 1
        elif file.licence is None:
            dropped["licence"] += 1
        elif reason := reason_to_drop(file.path, file.language, file.data):
            dropped[reason] += 1
        elif (licence := licences.of_file(text := file.data.decode(), file.licence)) is None:
            dropped["licence"] += 1
        else:
            text = text.replace("\r\n", "\n")
            sign = signature(file.data).tobytes()
            candidates.append(FilteredFile(file.path, file.language, licence, text, digest(file.data), sign))
    return Collected(candidates, dict(dropped))


def select(
    sources: Sequence[CorpusSource],
    held_out: Collection[str],
    caps: Mapping[str, float],
    evaluation: EvaluationRuns,
    work: Path,
    dropped: Counter[str],
) -> list[SelectedSource]:
    """The selection without evaluation text and copies, and with no more of a language than its cap in million
    bytes.

    The first source of a copy keeps it. A cap takes files in a fixed random order, so that it thins all sources.
    """
    passed = []
    for source, number, candidate in _originals(sources, evaluation, work, dropped):
        order = zlib.crc32(f"{source.name}/{candidate.path}".encode())
        passed.append((order, source.name, number, candidate.language, len(candidate.text)))
    numbers: dict[str, list[int]] = {source.name: [] for source in sources}
    room = {language: cap * 1e6 for language, cap in caps.items()}
    for _, name, number, language, size in sorted(passed):
        if name in held_out:
            numbers[name].append(number)
        elif size <= room.get(language, size):
            room[language] = room.get(language, np.inf) - size
            numbers[name].append(number)
        else:
            dropped["over the language's cap"] += 1
    return [SelectedSource(source, sorted(numbers[source.name])) for source in sources if numbers[source.name]]


def texts(documents: SelectedSource, work: Path) -> Iterator[str]:
    candidates = collected(work, documents.source).candidates
    return (candidates[number].text for number in documents.numbers)


def collected(work: Path, source: CorpusSource) -> Collected:
    return msgspec.msgpack.decode(zlib.decompress(_path(work, source).read_bytes()), type=Collected)


def write(path: Path, data: bytes) -> None:
    """Write all or nothing, so that a file that exists is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(data)
    os.replace(partial, path)


def _originals(
    sources: Sequence[CorpusSource], evaluation: EvaluationRuns, work: Path, dropped: Counter[str]
) -> Iterator[tuple[CorpusSource, int, FilteredFile]]:
    fingerprints = Seen()
    for source in shown("select", sources):
        for number, candidate in enumerate(collected(work, source).candidates):
            if evaluation.touches(candidate.text):
                dropped["contamination"] += 1
            elif copy := fingerprints.reason(candidate.digest, np.frombuffer(candidate.signature, np.uint32)):
                dropped[copy] += 1
            else:
                yield source, number, candidate


def _path(work: Path, source: CorpusSource) -> Path:
    return work / "collected" / f"{source.key}.{source.revision[:12]}.zz"
