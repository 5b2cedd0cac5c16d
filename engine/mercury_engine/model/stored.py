"""Tensors in safetensors files: memory-mapped and read on demand; and such files written in parts."""

import math
import mmap
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, BinaryIO, Protocol

import msgspec
import numpy as np
from msgspec import Meta, Struct

from mercury_engine.model.config import ModelError

DTYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16, "I8": np.int8, "U8": np.uint8}
NAMES = {np.dtype(kind): name for name, kind in DTYPES.items() if name != "BF16"}
ALIGNED = 64
LONGEST_HEADER = 1 << 23
"""In bytes. A tensor's entry has about a hundred, and a file has some thousands at most."""

PIECE = 1 << 22
"""The number of values that are converted at a time, however a tensor is shaped."""


class FloatRows(Protocol):
    """A tensor in a mapped file, whatever it is stored as: `dtype` names that, `raw` is a view of its bytes."""

    @property
    def raw(self) -> np.ndarray: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def floats(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Some rows as float32."""
        ...


class StoredTensor(Struct, frozen=True, eq=False):
    """One tensor of a safetensors file. `raw` is a view of the mapped file, in which bfloat16 is uint16."""

    raw: np.ndarray
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.raw.shape

    def floats(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Some rows as float32: a copy, unless they are stored that way."""
        rows = self.raw[start:stop] if self.raw.ndim else self.raw
        if self.dtype == "BF16":
            return (rows.astype(np.uint32) << 16).view(np.float32)
        return rows.astype(np.float32) if self.dtype == "F16" else rows


class _Entry(Struct, frozen=True):
    dtype: str
    shape: Annotated[tuple[int, ...], Meta(max_length=8)]
    data_offsets: tuple[int, int]


def stored_tensors(path: Path, remedy: str) -> dict[str, StoredTensor]:
    """The tensors of a file by name; `remedy` ends the message about an unusable file."""
    try:
        raw = np.memmap(path, np.uint8, "c")
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read ({error}); {remedy}") from error
    length = int.from_bytes(raw[:8].tobytes(), "little")
    if length > LONGEST_HEADER:
        raise ModelError(f"{path}: its header has {length:,} bytes, more than {LONGEST_HEADER:,}; {remedy}")
    try:
        header = msgspec.json.decode(raw[8 : 8 + length].tobytes(), type=dict[str, msgspec.Raw])
        header.pop("__metadata__", None)
        entries = {name: msgspec.json.decode(entry, type=_Entry) for name, entry in header.items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelError(f"{path}: damaged header ({error}); {remedy}") from error
    data = raw[8 + length :]
    tensors = {name: _tensor(data, entry, f"{path}: {name}", remedy) for name, entry in entries.items()}
    if sum(tensor.raw.nbytes for tensor in tensors.values()) > len(data):
        raise ModelError(f"{path}: its tensors overlap; {remedy}")
    return tensors


def _tensor(data: np.ndarray, entry: _Entry, place: str, remedy: str) -> StoredTensor:
    if entry.dtype not in DTYPES:
        raise ModelError(f"{place} is {entry.dtype}; convert it to one of {', '.join(DTYPES)}")
    dtype = np.dtype(DTYPES[entry.dtype])
    start, stop = entry.data_offsets
    size = math.prod(entry.shape) * dtype.itemsize
    if min(entry.shape, default=1) < 1 or not 0 <= start <= stop <= len(data) or stop - start != size:
        raise ModelError(f"{place} does not fit the file, which is damaged or truncated; {remedy}")
    return StoredTensor(data[start:stop].view(dtype).reshape(entry.shape), entry.dtype)


def pieces(shape: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """The rows of a tensor, a few at a time: the first one and the one behind the last."""
    step = max(1, PIECE // math.prod(shape[1:]))
    return ((start, min(start + step, shape[0])) for start in range(0, shape[0], step))


def check_finite(rows: np.ndarray, place: str, remedy: str) -> None:
    """Refuse rows of a weight that the model could not compute with."""
    if not np.isfinite(rows).all():
        raise ModelError(f"{place} has values that are not numbers (NaN or infinite); {remedy}")


def forget_pages(arrays: Iterable[np.ndarray]) -> None:
    """Release the pages of mapped files; later reads read the file again. Arrays computed from a memmap are memmaps
    too, but without a file."""
    if sys.platform == "win32":
        return
    maps = {id(mapped): mapped for array in arrays if (mapped := getattr(array, "_mmap", None)) is not None}
    for mapped in maps.values():
        mapped.madvise(mmap.MADV_DONTNEED)


class TensorWriter:
    """Writes a file of tensors of known shapes, a few rows of any of them at a time.

    Wide types come first, so that each tensor is aligned to its type.
    """

    def __init__(self, file: BinaryIO, tensors: Mapping[str, tuple[np.dtype, tuple[int, ...]]]) -> None:
        self._file = file
        self._starts: dict[str, int] = {}
        entries, end = {}, 0
        for name, (dtype, shape) in sorted(tensors.items(), key=lambda item: -item[1][0].itemsize):
            self._starts[name], end = end, end + math.prod(shape) * dtype.itemsize
            entries[name] = _Entry(NAMES[dtype], shape, (self._starts[name], end))
        header = msgspec.json.encode(entries)
        header += b" " * (-(8 + len(header)) % ALIGNED)
        self._data = 8 + len(header)
        self.bytes = self._data + end
        self._rows = {name: math.prod(shape[1:]) * dtype.itemsize for name, (dtype, shape) in tensors.items()}
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(self.bytes)

    def write(self, name: str, start: int, rows: np.ndarray) -> None:
        self._file.seek(self._data + self._starts[name] + start * self._rows[name])
        self._file.write(np.ascontiguousarray(rows).data)
