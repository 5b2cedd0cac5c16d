"""The tuner's input and its report: plain data between two processes."""

import os
from threading import Thread
from typing import BinaryIO

import msgspec
from msgspec import Struct

SIZE_BYTES = 8


class File(Struct, frozen=True):
    """A file that may be read; secrets in its text are masked."""

    path: str
    text: str


class Material(Struct, frozen=True):
    """A project: its folder, for the history, and its readable files."""

    root: str
    files: list[File]


class Figure(Struct, frozen=True):
    """One metric on held-out data before and after, with the 95 % CI of the difference."""

    name: str
    count: int
    before: float
    after: float
    low: float
    high: float


class Tuning(Struct, frozen=True, kw_only=True):
    """The result of tuning a model for a project; if it is not `better`, `reason` says why.

    `base` is the identity of the weights that were tuned. `files` and `edits` count what was learned from.
    """

    root: str
    model: str
    base: str
    made: str
    method: str
    files: int
    edits: int
    steps: int
    minutes: float
    figures: tuple[Figure, ...]
    better: bool
    reason: str


def send(material: Material, stream: BinaryIO) -> None:
    """Keep the stream open as long as the result is wanted: see `receive`."""
    body = msgspec.msgpack.encode(material)
    stream.write(len(body).to_bytes(SIZE_BYTES))
    stream.write(body)
    stream.flush()


def receive(stream: BinaryIO) -> Material:
    """The material. From now on this process ends with its sender: the system closes the stream however that ends."""
    size = int.from_bytes(stream.read(SIZE_BYTES))
    material = msgspec.msgpack.decode(stream.read(size), type=Material)
    Thread(target=_end_with, args=(stream.fileno(),), daemon=True).start()
    return material


def _end_with(descriptor: int) -> None:
    """End the process, bypassing the stream's buffer, whose lock would still be held when this process ends by
    itself."""
    os.read(descriptor, 1)
    os._exit(1)
