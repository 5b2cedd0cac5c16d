"""Files that are not open, with their text on the disk."""

from functools import lru_cache
from pathlib import Path

from mercury_ls.code.documents import CLOSED, Document, Snapshot


@lru_cache(maxsize=16)
def closed_file(path: str, text: str) -> Snapshot:
    return Document(Path(path).as_uri(), path, "", CLOSED, text).snapshot()
