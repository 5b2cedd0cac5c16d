"""Writes the files of a peer, in a process that has its packages."""

import sys
from pathlib import Path

__all__ = ["main"]


def main() -> None:
    path, kind, shape, source, quantisation = sys.argv[1:]
    if kind == "gguf":
        from bench.models.shapes import write_gguf

        write_gguf(Path(source), shape, Path(path), quantisation)
    else:
        from bench.models.stateful import write_stateful

        write_stateful(Path(source), Path(path))
