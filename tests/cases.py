"""Cases that are read from text files, so that whoever adds one writes no Python.

`=== ` says what is true of the documents below it, and `--- KEY: EXPECTED` begins each document; `$0` is its cursor,
and `«…»` is what should be found. Without an `EXPECTED`, what is drawn says all. Blank lines at the end do not count.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from msgspec import Struct

TITLE = re.compile(r"^=== (.*)\n", re.MULTILINE)
DOCUMENT = re.compile(r"^--- ([^:\n]*)(?:: (.*))?\n", re.MULTILINE)


class Case(Struct, frozen=True):
    """`key` is mostly the language of the document, `number` its place below its title."""

    title: str
    number: int
    key: str
    expected: str
    drawn: str

    def __str__(self) -> str:
        return f"{self.title} {self.number}"


def each_case(file: Path):
    """Runs a test for each `case` of a file."""
    return pytest.mark.parametrize("case", [*_read(file.read_text(encoding="utf-8"))], ids=str)


def files_in(text: str) -> dict[str, str]:
    """Files of a project, of which each begins with `--- path`."""
    _, *parts = re.split(r"^--- (\S+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def drawn_with(text: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """The text with each span, from its start to its end and with what is said of it, as a case draws it."""
    for start, end, label in sorted(spans, reverse=True):
        text = f"{text[:start]}«{label}{text[start:end]}»{text[end:]}"
    return text


def _read(text: str) -> Iterator[Case]:
    _, *titled = TITLE.split(text)
    for title, body in zip(titled[::2], titled[1::2], strict=True):
        _, *documents = DOCUMENT.split(body)
        for number, at in enumerate(range(0, len(documents), 3), 1):
            key, expected, drawn = documents[at : at + 3]
            yield Case(title, number, key, expected or "", drawn.rstrip("\n") + "\n")
