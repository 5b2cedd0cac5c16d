"""Columns of one line, counted in code points here and in the units an editor negotiated there."""

from typing import Literal

__all__ = ["Encoding", "column", "units"]

Encoding = Literal["utf-8", "utf-16", "utf-32"]


def units(line: str, column: int, encoding: Encoding) -> int:
    """`units("a😀b", 2, "utf-16") == 3`: what a client calls the place after `column` code points."""
    if encoding == "utf-32" or line.isascii():
        return min(column, len(line))
    return len(encode(line[:column], encoding)) // unit_bytes(encoding)


def column(line: str, units: int, encoding: Encoding) -> int:
    """`column("a😀b", 2, "utf-16") == 1`: inside a character is its start, past the end is the end."""
    if encoding == "utf-32" or line.isascii():
        return min(units, len(line))
    reached = encode(line[:units], encoding)[: units * unit_bytes(encoding)]
    return len(reached.decode(codec(encoding), "ignore"))


def encode(text: str, encoding: Encoding) -> bytes:
    return text.encode(codec(encoding), "surrogatepass")


def codec(encoding: Encoding) -> str:
    return "utf-8" if encoding == "utf-8" else "utf-16-le"


def unit_bytes(encoding: Encoding) -> int:
    return 1 if encoding == "utf-8" else 2
