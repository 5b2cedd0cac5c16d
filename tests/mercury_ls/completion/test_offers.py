"""What is offered, in the texts as they are now, and how it is described."""

import pytest

from mercury_ls.code.documents import CLOSED, Document, Snapshot
from mercury_ls.code.edits import TextEdit
from mercury_ls.completion.offers import Offer, summary


def text_of(text: str, version: int = 1, uri: str = "u") -> Snapshot:
    return Document(uri, "/a.py", "python", version, text).snapshot()


def offer() -> Offer:
    """`one` becomes `1`, `three` becomes `3`."""
    return Offer((TextEdit(0, 3, "1", "u"), TextEdit(8, 13, "3", "u")), 0.5, {"u": text_of("one\ntwo\nthree\n")}, "id")


def check(text: str, expected: list[str] | None) -> None:
    left = offer().on({"u": text_of(text, 2)})
    if expected is None:
        assert left is None
        return
    assert [left.old_text(edit) for edit in left.edits] == expected
    assert (left.id, left.version("u")) == ("id", 2)


def test_offer_is_for_texts_as_they_are_now():
    check("zero\none\ntwo\nthree\n", ["one", "three"])
    check("one\ntwo\n3\n", ["one"])
    check("1\ntwo\n3\n", [])
    check("ane\ntwo\nthree\n", None)
    assert offer().on({}) is None


def test_change_is_recognized_wherever_edit_stands_by_now():
    assert offer().makes("u", "zero\none\n", TextEdit(5, 8, "1"))
    assert not offer().makes("u", "zero\none\n", TextEdit(0, 4, "1"))
    assert not offer().makes("v", "one\n", TextEdit(0, 3, "1"))


def test_closed_file_has_no_version():
    assert Offer((), 0.5, {"u": text_of("", CLOSED)}).version("u") is None


@pytest.mark.parametrize(
    ("uris", "expected"),
    [
        (["file:///p/here.py"] * 5, "5 here"),
        (["file:///p/here.py"] * 5 + ["file:///p/my%20models.py"] * 4, "5 here, 4 in my models.py"),
        (["file:///p/here.py"] * 2 + [f"file:///p/{n}.py" for n in "abc"] * 3, "2 here, 9 in 3 other files"),
        (["file:///p/a.py"], "1 in a.py"),
        (["file:///p/a.py", "file:///q/a.py"], "2 in 2 files"),
    ],
)
def test_edit_places_are_described_as_seen_from_the_cursor(uris, expected):
    assert summary([TextEdit(0, 1, "x", uri) for uri in uris], "file:///p/here.py") == expected


def test_summary_tells_a_file_of_the_same_name_by_its_folder():
    edits = [TextEdit(0, 1, "x", uri) for uri in ("file:///p/__init__.py", "file:///p/shop/__init__.py")]
    assert summary(edits, "file:///p/shop/__init__.py") == "1 here, 1 in p/__init__.py"
