"""The contents of a corpus: the manifest, its summary on the terminal, and the tables of the data card."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from mercury_training.corpus.shards import CorpusFile
from mercury_training.corpus.sources import CorpusSource

MARK = re.compile(r"(<!-- figures -->\n).*?(<!-- /figures -->)", re.DOTALL)


class SourceEntry(Struct, frozen=True, kw_only=True):
    """One source as it entered the corpus."""

    name: str
    revision: str
    licences: list[str]
    documents: int
    bytes: int
    tokens: int
    held_out: bool


class _Figures(Struct, frozen=True):
    documents: int
    bytes: int
    tokens: int


class Manifest(Struct, frozen=True, kw_only=True):
    """`languages` and `licences` count training documents; `dropped` counts files by reason; `edits` rows by kind."""

    tokens: dict[str, int]
    bytes: int
    bytes_per_token: float
    languages: dict[str, _Figures]
    licences: dict[str, _Figures]
    dropped: dict[str, int]
    contamination: dict[str, int]
    edits: dict[str, dict[str, int]]
    held_out: list[str]
    sources: list[SourceEntry]


def entry_of(
    source: CorpusSource, documents: Sequence[CorpusFile], sizes: Sequence[int], held_out: bool
) -> SourceEntry:
    return SourceEntry(
        name=source.name,
        revision=source.revision,
        licences=sorted({document.licence for document in documents}),
        documents=len(documents),
        bytes=sum(sizes),
        tokens=sum(document.stop - document.start for document in documents),
        held_out=held_out,
    )


def grouped(sized: Collection[tuple[CorpusFile, int]], field: str) -> dict[str, _Figures]:
    """Figures for each value of a document's field, most tokens first."""
    counts: dict[str, Counter[str]] = {}
    for document, size in sized:
        count = counts.setdefault(getattr(document, field), Counter())
        count.update(documents=1, bytes=size, tokens=document.stop - document.start)
    ordered = sorted(counts.items(), key=lambda entry: -entry[1]["tokens"])
    return {value: _Figures(**count) for value, count in ordered}


def report(manifest: Manifest) -> str:
    lines = [
        f"{name:<12} {counts.documents:>8,} files {counts.bytes / 1e6:>8.1f} MB {counts.tokens:>12,} tokens"
        for name, counts in manifest.languages.items()
    ]
    checked = manifest.contamination
    return "\n".join(
        [
            *lines,
            f"dropped files: {_listed(manifest.dropped)}",
            *(f"edit rows, {split}: {_listed(rows)}" for split, rows in manifest.edits.items()),
            f"evaluation rows touched by files, now left out: {checked['rows_touched']:,} of {checked['rows']:,}",
            f"{manifest.tokens['train']:,} training tokens, {manifest.bytes_per_token:.3f} bytes a token; "
            f"{manifest.tokens['held_out']:,} held out",
        ]
    )


def with_tables(card: str, manifest: Manifest) -> str:
    """The data card with its figures replaced by the manifest's."""
    total = manifest.tokens["train"]
    checked = manifest.contamination
    files = sum(figures.documents for figures in manifest.languages.values())
    sources = sum(not source.held_out for source in manifest.sources)
    tables = [
        f"{total / 1e6:.1f} million training tokens in {files:,} files of {sources} sources, "
        f"{manifest.bytes / 1e6:.0f} MB, {manifest.bytes_per_token:.2f} bytes a token; "
        f"{manifest.tokens['held_out'] / 1e6:.1f} million tokens held out.",
        _table(("language", "files", "MB", "million tokens", "share"), _rows(manifest.languages, total)),
        _table(("licence", "files", "MB", "million tokens", "share"), _rows(manifest.licences, total)),
        _table(("files dropped because", "files"), _counts(manifest.dropped)),
        f"Of {checked['rows']:,} evaluation rows, {checked['rows_touched']:,} shared a run of three code lines with "
        "some file; those files are out.",
        _table(("edit rows", *manifest.edits), _edit_rows(manifest.edits)),
        "Held out: " + ", ".join(manifest.held_out) + ".",
    ]
    figures = "\n" + "\n\n".join(tables) + "\n\n"
    return MARK.sub(lambda match: match[1] + figures + match[2], card)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _rows(figures: Mapping[str, _Figures], total: int) -> list[tuple[str, ...]]:
    return [
        (name, f"{f.documents:,}", f"{f.bytes / 1e6:.1f}", f"{f.tokens / 1e6:.2f}", f"{100 * f.tokens / total:.1f} %")
        for name, f in figures.items()
    ]


def _counts(counts: Mapping[str, int]) -> list[tuple[str, ...]]:
    return [(name, f"{count:,}") for name, count in sorted(counts.items(), key=lambda entry: -entry[1])]


def _edit_rows(edits: Mapping[str, Mapping[str, int]]) -> list[tuple[str, ...]]:
    kinds = sorted({kind for rows in edits.values() for kind in rows})
    return [(kind, *(f"{rows.get(kind, 0):,}" for rows in edits.values())) for kind in kinds]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, rule, *rows))
