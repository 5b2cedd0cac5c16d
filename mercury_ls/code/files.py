"""Reading files that others may have put there."""

import os
import stat

__all__ = ["read_small"]


def read_small(path: str, limit: int) -> bytes:
    """The content of a regular file, whole. OSError for pipes and devices, which never end, and for what is no path."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except ValueError as error:
        raise OSError(f"{path!r} cannot be a path: {error}") from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file")
        if status.st_size > limit:
            raise OSError(f"{path} is larger than {limit} bytes")
        return file.read(limit)
