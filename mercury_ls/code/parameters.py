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
        declared = DEFAULT.split(piece, maxsplit=1)[0]
        words = WORD.findall(declared if language in traits.TYPE_BEFORE_NAME else declared.partition(":")[0])
        if words and piece[0] not in "*/([{." and words[-1] not in SELVES:
            yield words[0 if language == "go" else -1]
