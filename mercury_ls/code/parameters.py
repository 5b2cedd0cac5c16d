"""The names of parameters, read from text, since code that is being written parses badly."""

import re
from collections.abc import Iterator

from mercury_ls.code import traits
from mercury_ls.code.brackets import split
from mercury_ls.code.differences import WORD
from mercury_ls.code.symbols import SELVES

DEFAULT = re.compile(r"=(?!>)")


def parameter_names(text: str, language: str) -> Iterator[str]:
    """Those that a text lists, without the object itself, those that collect the rest, and patterns."""
    for piece in filter(None, map(str.strip, split(text, types=True))):
        if piece[0] in "*/([{.":
            continue
        declared = DEFAULT.split(piece, maxsplit=1)[0]
        if language not in traits.TYPE_BEFORE_NAME:
            declared = declared.partition(":")[0]
        words = WORD.findall(declared)
        if words and words[-1] not in SELVES:
            yield words[0 if language == "go" else -1]
