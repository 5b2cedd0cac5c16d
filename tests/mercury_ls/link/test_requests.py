"""What a model is told of files and texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercury_engine.api import Diagnostic, Edit, InfillRequest, Snippet, Span, Window
from mercury_ls.link.requests import normalized
from mercury_ls.link.wire import encode


@pytest.mark.parametrize(
    ("roots", "window", "snippet"),
    [
        (["/home/me/project"], "src/a.py", "lib/b.py"),
        (["/home/me/project", "/home/me/project/src/"], "a.py", "lib/b.py"),
        (["/home/me/pro"], "a.py", "lib/b.py"),
        ([], "a.py", "lib/b.py"),
    ],
)
def test_model_is_told_where_file_lies_in_its_project(roots, window, snippet):
    path = "/home/me/project/src/a.py"
    request = InfillRequest(
        session="",
        windows=(Window(path, "python", ""),),
        spans=(),
        snippets=(Snippet("/home/other/lib/b.py", ""),),
        edits=(Edit(path, 0, "", "x"),),
        diagnostics=(Diagnostic(path, 0, 0, "unknown"),),
    )
    told = normalized(request, roots)
    assert (told.windows[0].path, told.snippets[0].path) == (window, snippet)
    assert told.edits[0].path == told.diagnostics[0].path == told.windows[0].path
    assert told.root + told.windows[0].path == path


@given(st.text("a\r\n", max_size=12), st.data())
def test_model_reads_line_feeds_and_places_stay(text, data):
    ends = [at for at in range(len(text) + 1) if text[at - 1 : at + 1] != "\r\n"]
    start, end = sorted((data.draw(st.sampled_from(ends)), data.draw(st.sampled_from(ends))))
    request = InfillRequest(
        session="",
        windows=(Window("a.py", "python", "\r\n"), Window("b.py", "python", text)),
        spans=(Span(1, start, end, "edit"),),
        cursor=end,
        snippets=(Snippet("c.py", "x\r\n"),),
        edits=(Edit("b.py", 0, "a\r\n", "", "x\r\n", "y\r\n", True),),
    )
    told = normalized(request, [])
    (span,), lines = told.spans, told.windows[1].text
    assert "\r" not in lines + told.windows[0].text + told.snippets[0].text
    assert told.edits == (Edit("b.py", 0, "a\n", "", "x\n", "y\n", True),)
    assert told.cursor == span.end
    pieces = lines[: span.start], lines[span.start : span.end], lines[span.end :]
    given = text[:start], text[start:end], text[end:]
    assert pieces == tuple(each.replace("\r\n", "\n").replace("\r", "\n") for each in given)


def test_names_that_are_no_unicode_can_be_sent_to_the_engine():
    request = InfillRequest(
        session="",
        windows=(Window("/p\udcff/a\udce9.py", "\ud800", ""),),
        spans=(Span(0, 0, 0, "line"),),
        snippets=(Snippet("/p\udcff/b\udce9.py", ""),),
    )
    assert b"a?.py" in encode(normalized(request, ["/p\udcff"]))
