"""Finished results, in memory and in a file, so that an interrupted evaluation continues where it stopped."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from mercury_training.errors import TrainingError
from mercury_training.evaluate.held_out import Reading
from mercury_training.evaluate.scores import Result


class Identity(Struct, frozen=True, tag="model"):
    """The model whose results a ledger holds."""

    model: str
    weights: str


class HeldOut(Struct, frozen=True, tag="held_out"):
    document: str
    reading: Reading


Entry = Identity | Result | HeldOut


class Ledger:
    """Owns the finished results, in a file if there is one, so that nothing is computed twice."""

    def __init__(self, path: Path | None, identity: Identity) -> None:
        self._path = path
        self.results: dict[tuple[str, str, str], Result] = {}
        self.readings: dict[str, Reading] = {}
        if path is None:
            return
        entries = _entries(path)
        found = next(entries, None)
        if found is None:
            self._write(identity)
        elif found != identity:
            raise TrainingError(f"{path}: holds results of {found}, not of {identity}; name another file")
        for entry in entries:
            self._take(entry)

    def add(self, entry: Result | HeldOut) -> None:
        self._take(entry)
        self._write(entry)

    def _take(self, entry: Entry) -> None:
        if isinstance(entry, Result):
            self.results[entry.set, entry.id, entry.by] = entry
        elif isinstance(entry, HeldOut):
            self.readings[entry.document] = entry.reading

    def _write(self, entry: Entry) -> None:
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(entry) + b"\n")


def _entries(path: Path) -> Iterator[Entry]:
    """The entries; a last line cut off while being written is dropped."""
    if not path.exists():
        return
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        path.write_bytes(whole)
    decoder = msgspec.json.Decoder(Entry)
    for line in whole.splitlines():
        yield decoder.decode(line)
