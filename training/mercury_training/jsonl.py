"""Files with a JSON value on each line."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from mercury_training.errors import TrainingError

T = TypeVar("T")


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
