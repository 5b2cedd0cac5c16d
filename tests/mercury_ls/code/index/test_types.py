"""The types that a written type stands for."""

import pytest

from mercury_ls.code.documents import Document
from mercury_ls.code.index.types import LONGEST_TYPE, Type

FILE = Document("", "/p/a.py", "", 0, "").snapshot()


def check(text: str, *alternatives: str) -> None:
    assert [kind.text for kind in Type(FILE, text).alternatives] == [*alternatives]


@pytest.mark.parametrize(
    ("text", "alternatives"),
    [
        ("A", ["A"]),
        ("A | None", ["A"]),
        ("None", []),
        ("A | B | C", ["A", "B", "C"]),
        ('"A | dict[str, B | C]"', ["A", "dict[str, B | C]"]),
        ("Optional[A | B]", ["A", "B"]),
        ("Optional[Optional[A]] | Box<B>", ["A", "B"]),
        ("Optional[]", ["Optional[]"]),
        (": typing.Annotated[A, 1]", ["A"]),
        ("&'a mut A", ["A"]),
        ("list[A]", ["list[A]"]),
    ],
)
def test_written_type_stands_for_its_alternatives(text, alternatives):
    check(text, *alternatives)


@pytest.mark.parametrize(
    "text",
    [
        f'"{" " * 60_000}A"',
        "Optional[" * 1500 + "A" + "]" * 1500,
        " | ".join(["A"] * LONGEST_TYPE),
    ],
)
def test_written_type_of_great_length_is_one(text):
    check(text, text)


def test_written_type_of_many_layers_stands_for_the_innermost():
    check("Optional[" * 99 + "A" + "]" * 99, "A")
