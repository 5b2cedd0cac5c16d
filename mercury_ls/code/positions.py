"""Converts columns between code points, used throughout, and the code units that a client has negotiated."""

from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]


def units(line: str, column: int, encoding: Encoding) -> int:
    """The column in code units: `units("a😀b", 2, "utf-16") == 3`."""
    if encoding == "utf-32" or line.isascii():
        return min(column, len(line))
    return len(_encode(line[:column], encoding)) // _unit_bytes(encoding)


def column(line: str, units: int, encoding: Encoding) -> int:
    """The column in code points, clamped to character starts and the line: `column("a😀b", 2, "utf-16") == 1`."""
    if encoding == "utf-32" or line.isascii():
        return min(units, len(line))
    reached = _encode(line[:units], encoding)[: units * _unit_bytes(encoding)]
    return len(reached.decode(_codec(encoding), "ignore"))


def _encode(text: str, encoding: Encoding) -> bytes:
    return text.encode(_codec(encoding), "surrogatepass")


def _codec(encoding: Encoding) -> str:
    return "utf-8" if encoding == "utf-8" else "utf-16-le"


def _unit_bytes(encoding: Encoding) -> int:
    return 1 if encoding == "utf-8" else 2
