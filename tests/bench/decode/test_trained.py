"""What the ways of decoding are asked: places to fill, and the lines of edits that are due."""

from bench.decode.trained import ratios, request
from bench.next_edit.cases import Case
from mercury_ls.code.documents import Document
from mercury_ls.code.edits import TextEdit
from mercury_ls.code.history import History


def test_edit_is_asked_for_with_lines_beside_it():
    text = "".join(f"line {number}\n" for number in range(100))
    snapshot = Document("file:///a.py", "a.py", "python", 1, text).snapshot()
    at = text.index("line 50")
    case = Case("repeat", snapshot, 0, History(), (TextEdit(at, at + 4, "row"),), ())
    asked = request(case, "session")
    (window,), (span,) = asked.windows, asked.spans
    assert window.text[span.start : span.end] == "line 49\nline 50\nline 51\n"
    assert span.mode == "edit"
    assert window.text.startswith("line 20\n")
    assert window.text.endswith("line 80\n")


def test_edit_at_end_of_file_covers_last_line_without_newline():
    snapshot = Document("file:///a.py", "a.py", "python", 1, "a\nb").snapshot()
    case = Case("repeat", snapshot, 0, History(), (TextEdit(2, 3, "c"),), ())
    asked = request(case, "session")
    assert asked.windows[0].text[asked.spans[0].start : asked.spans[0].end] == "a\nb"


def test_times_are_compared_row_by_row_with_the_better_rival():
    entries = [{"policy": 1.0, "ar": 4.0, "ar+copy": 2.0}, {"policy": 3.0, "ar": 2.0, "ar+copy": 6.0}]
    found = ratios({"edits": entries, "1-8": []})
    assert found["edits"] == {"n": 2, "policy_ms": 2.0, "ar_ms": 3.0, "ratio": 1.0}
    assert found["all"]["n"] == 2
    assert "1-8" not in found
