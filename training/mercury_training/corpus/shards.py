"""The corpus on disk: every document's tokens end to end, memory-mapped, and an index of the documents.

    corpus = Corpus.open(Path("corpus/v1"))          # corpus.tokenizer, corpus.train, corpus.held_out
    corpus.train.tokens_of(12)                       # view of document 12: plain text, no special tokens
    corpus.train.documents[12]                       # repository, path, language, licence, start, stop
    corpus.train.repositories["pallets/flask"]       # range of document numbers: neighbours for snippets
    corpus.train.text(12, corpus.tokenizer)          # the file as it was
    for row in corpus.edits(): ...                   # `EditRow`s from git history, as text

A corpus folder holds `tokenizer.json`, `train.u16`, `train.index`, `held_out.u16`, `held_out.index`, `edits.jsonl.xz`,
`held_out_edits.jsonl.xz` and `manifest.json`. Documents of one repository are adjacent. Tokens have 16 bits; in files
that end in `.u32`, of vocabularies that need it, 32.
"""

import lzma
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from mercury_engine.api import Edit
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_training.errors import TrainingError

WIDE, NARROW = np.dtype(np.uint32), np.dtype(np.uint16)
SUFFIX = {WIDE: "u32", NARROW: "u16"}


class CorpusFile(Struct, frozen=True, array_like=True):
    """One file; its tokens are `start` to `stop` of its split."""

    repository: str
    path: str
    language: str
    licence: str
    start: int
    stop: int


class Replacement(Struct, frozen=True, array_like=True):
    """Lines `first` to `stop` (half-open) of the window become `text`; `first == stop` inserts before that line."""

    first: int
    stop: int
    text: str


class EditRow(Struct, frozen=True):
    """A file in the middle of a change: its current window, the previous edits, and the next ones.

    `first_line` is where the window begins in the file and `cursor` the line of the window where the last edit left
    the cursor (-1: outside). `expected` are replacements against the window, top to bottom; the first in time is
    number `next`. If there are none, silence is right. `kind`: first, propagate, repeat, other, none, and the
    synthetic rename, signature, import.
    """

    repository: str
    commit: str
    licence: str
    path: str
    language: str
    kind: str
    window: str
    first_line: int
    cursor: int
    edits: tuple[Edit, ...]
    expected: tuple[Replacement, ...]
    next: int = 0


class Split:
    """The documents of one split. Tokens are mapped, never loaded whole."""

    def __init__(self, tokens: np.ndarray, documents: Sequence[CorpusFile]) -> None:
        self.tokens = tokens
        self.documents = tuple(documents)
        self.repositories = _ranges(self.documents)

    @classmethod
    def open(cls, folder: Path, name: str) -> "Split":
        index = folder / f"{name}.index"
        try:
            documents = msgspec.msgpack.decode(index.read_bytes(), type=list[CorpusFile])
        except (OSError, msgspec.DecodeError) as error:
            raise TrainingError(
                f"{index}: cannot be read ({error}); name a corpus folder, or build it again"
            ) from error
        kind = WIDE if (folder / f"{name}.{SUFFIX[WIDE]}").exists() else NARROW
        path = folder / f"{name}.{SUFFIX[kind]}"
        size = path.stat().st_size // kind.itemsize
        if size != (documents[-1].stop if documents else 0):
            raise TrainingError(f"{path}: {size} tokens, but its index has another number; build the corpus again")
        return cls(np.memmap(path, kind, "r") if size else np.zeros(0, kind), documents)

    def __len__(self) -> int:
        return len(self.documents)

    def tokens_of(self, number: int) -> np.ndarray:
        document = self.documents[number]
        return self.tokens[document.start : document.stop]

    def text(self, number: int, tokenizer: Tokenizer) -> str:
        return tokenizer.decode(self.tokens_of(number).tolist())


class Corpus:
    """A corpus folder, opened for reading."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.train = Split.open(folder, "train")
        self.held_out = Split.open(folder, "held_out")
        self.tokenizer = Tokenizer.load(folder / "tokenizer.json")
        for split in (self.train, self.held_out):
            if len(split) and not _is_spelled_by(self.tokenizer, split.tokens_of(0)):
                raise TrainingError(
                    f"{folder / 'tokenizer.json'}: not the vocabulary of the tokens beside it; restore "
                    "that one, or build the corpus again"
                )

    @classmethod
    def open(cls, folder: Path) -> "Corpus":
        return cls(folder)

    def edits(self) -> Iterator[EditRow]:
        return read_edits(self.folder / "edits.jsonl.xz")

    def held_out_edits(self) -> Iterator[EditRow]:
        return read_edits(self.folder / "held_out_edits.jsonl.xz")


def token_type(vocabulary: int) -> np.dtype:
    """The width of the tokens of a corpus with this vocabulary."""
    return NARROW if vocabulary <= 1 << 16 else WIDE


def write_split(
    folder: Path, name: str, parts: Iterable[tuple[Path, Sequence[CorpusFile]]], kind: np.dtype = NARROW
) -> int:
    """Join token files, whose documents count from each file's beginning, into one split; returns its tokens."""
    documents: list[CorpusFile] = []
    offset = 0
    for suffix in SUFFIX.values():
        # Processes that have the old tokens mapped keep them.
        (folder / f"{name}.{suffix}").unlink(missing_ok=True)
    with (folder / f"{name}.{SUFFIX[kind]}").open("wb") as joined:
        for path, found in parts:
            tokens = path.read_bytes()
            joined.write(tokens)
            documents += [_moved(document, offset) for document in found]
            offset += len(tokens) // kind.itemsize
    (folder / f"{name}.index").write_bytes(msgspec.msgpack.encode(documents))
    return offset


def read_edits(path: Path) -> Iterator[EditRow]:
    decoder = msgspec.json.Decoder(EditRow)
    with damage_named(path), lzma.open(path) as lines:
        yield from map(decoder.decode, lines)


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Name the file in errors while compressed rows are read or unpacked."""
    try:
        yield
    except (OSError, EOFError, lzma.LZMAError, msgspec.DecodeError) as error:
        raise TrainingError(f"{path}: cannot be unpacked ({error}); make room, or build the corpus again") from error


def write_edits(path: Path, rows: Iterable[EditRow]) -> int:
    """Write the rows; return their number."""
    encoder = msgspec.json.Encoder()
    count = 0
    with lzma.open(path, "wb", preset=3) as lines:
        for row in rows:
            lines.write(encoder.encode(row) + b"\n")
            count += 1
    return count


def _is_spelled_by(tokenizer: Tokenizer, tokens: np.ndarray) -> bool:
    """True if a document's text encodes to these tokens."""
    is_in_vocabulary = not len(tokens) or int(tokens.max()) < tokenizer.vocabulary
    return is_in_vocabulary and tokenizer.encode(tokenizer.decode(tokens.tolist())) == tokens.tolist()


def _moved(document: CorpusFile, offset: int) -> CorpusFile:
    return msgspec.structs.replace(document, start=document.start + offset, stop=document.stop + offset)


def _ranges(documents: Sequence[CorpusFile]) -> dict[str, range]:
    ranges: dict[str, range] = {}
    for number, document in enumerate(documents):
        start = ranges[document.repository].start if document.repository in ranges else number
        ranges[document.repository] = range(start, number + 1)
    return ranges
