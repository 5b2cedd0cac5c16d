"""Converts columns between code points, used throughout, and the code units that a client has negotiated."""

from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]

CODECS: dict[Encoding, tuple[str, int]] = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2)}
"""Python's names of those in which a character may be several units, and the bytes of a unit."""


def units(line: str, column: int, encoding: Encoding) -> int:
    """The column in code units: `units("a😀b", 2, "utf-16") == 3`."""
    if encoding == "utf-32" or line.isascii():
        return min(column, len(line))
    codec, size = CODECS[encoding]
    return len(line[:column].encode(codec, "surrogatepass")) // size


def column(line: str, units: int, encoding: Encoding) -> int:
    """The column in code points, clamped to character starts and the line: `column("a😀b", 2, "utf-16") == 1`."""
    if encoding == "utf-32" or line.isascii():
        return min(units, len(line))
    codec, size = CODECS[encoding]
    reached = line[:units].encode(codec, "surrogatepass")[: units * size]
    return len(reached.decode(codec, "ignore"))
