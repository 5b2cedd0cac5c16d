"""Looks at files that an untrusted party may have created, and reads them."""

import os
import stat


def stamp_of(path: str) -> tuple[int, int] | None:
    """The modification time and size, which change when the file does; None if it is not there."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size


def read_small(path: str, limit: int) -> bytes:
    """The content of a regular file. OSError for anything larger, for pipes and devices, and for impossible paths."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except ValueError as error:
        raise OSError(f"{path!r} is not a possible path: {error}") from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file")
        if status.st_size > limit:
            raise OSError(f"{path} is larger than {limit} bytes")
        return file.read(limit)
