"""What the tuner is given of a project, and what it reports: plain data between two processes."""

import os
from threading import Thread
from typing import BinaryIO

import msgspec
from msgspec import Struct

__all__ = ["Figure", "File", "Material", "Tuning", "receive", "send"]

SIZE_BYTES = 8


class File(Struct, frozen=True):
    """A file that may be read, as it stands; what looks like a secret is no longer in its text."""

    path: str
    text: str


class Material(Struct, frozen=True):
    """The project's folder, for its history, and its files as far as they may be read."""

    root: str
    files: list[File]


class Figure(Struct, frozen=True):
    """One measure on what was kept back: before and after, and the interval of the difference (95 %)."""

    name: str
    count: int
    before: float
    after: float
    low: float
    high: float


class Tuning(Struct, frozen=True, kw_only=True):
    """What was done to which model for which project, and whether it is `better`; else `reason` says why not.

    `base` is the identity of the weights that were tuned; `files` and `edits` were learned from, in so many `steps`.
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
    """The stream stays open for as long as the result is wanted: see `receive`."""
    body = msgspec.msgpack.encode(material)
    stream.write(len(body).to_bytes(SIZE_BYTES))
    stream.write(body)
    stream.flush()


def receive(stream: BinaryIO) -> Material:
    """What was sent. From then on this process ends with the one that sent it: the system closes the stream, however
    that one is ended."""
    size = int.from_bytes(stream.read(SIZE_BYTES))
    material = msgspec.msgpack.decode(stream.read(size), type=Material)
    Thread(target=_end_with, args=(stream.fileno(),), daemon=True).start()
    return material


def _end_with(descriptor: int) -> None:
    """Without the buffer of the stream, whose lock would be held when this process ends by itself."""
    os.read(descriptor, 1)
    os._exit(1)
