"""Files with a JSON value on each line."""

import mmap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
import numpy as np

from mercury_training.errors import TrainingError

T = TypeVar("T")


class JsonTable(Generic[T]):
    """The values of a file, decoded one by one when they are asked for."""

    def __init__(self, path: Path, kind: type[T]) -> None:
        self._decoder = msgspec.json.Decoder(kind)
        self._lines = np.zeros(1, np.int64)
        if path.stat().st_size:
            with path.open("rb") as file:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            ends = np.flatnonzero(np.frombuffer(self._data, np.uint8) == ord("\n")) + 1
            self._lines = np.append(self._lines, ends)

    def __len__(self) -> int:
        return len(self._lines) - 1

    def __getitem__(self, number: int) -> T:
        return self._decoder.decode(self._data[self._lines[number] : self._lines[number + 1]])


def read(path: Path, kind: type[T]) -> Iterator[T]:
    """The values of the lines; an error names the line that has the wrong form."""
    decoder = msgspec.json.Decoder(kind)
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield decoder.decode(line)
                except msgspec.DecodeError as error:
                    raise TrainingError(f"{path}:{number}: {error}; name a file in the expected format") from error
    except OSError as error:
        raise TrainingError(f"{path}: cannot be read ({error.strerror}); name a file with rows") from error


def write(path: Path, values: Iterable[object]) -> None:
    path.write_bytes(encode(values))


def encode(values: Iterable[object]) -> bytes:
    return b"".join(msgspec.json.encode(value) + b"\n" for value in values)
