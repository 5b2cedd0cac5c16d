"""Line ends that models know: every place stays where it was."""

from hypothesis import given
from hypothesis import strategies as st

from mercury_engine.api import Edit, InfillRequest, Snippet, Span, Window
from mercury_engine.prompts.line_ends import with_line_feeds


def request(text, start, end, **fields):
    return InfillRequest(
        session="s", windows=(Window("a.py", "python", text),), spans=(Span(0, start, end, "edit"),), **fields
    )


def parts(asked):
    (window,), (span,) = asked.windows, asked.spans
    return window.text[: span.start], window.text[span.start : span.end], window.text[span.end :]


texts = st.text("a\n") | st.text("ab\r\n").map(lambda text: text.replace("\r", "\r\n"))


@given(texts, texts, texts)
def test_places_stay_between_the_same_texts(before, old, after):
    asked = request(before + old + after, len(before), len(before + old), cursor=len(before))
    found = with_line_feeds(asked)
    assert parts(found) == tuple(text.replace("\r\n", "\n") for text in (before, old, after))
    assert found.cursor == len(before.replace("\r\n", "\n"))


def test_related_texts_are_read_alike():
    asked = request(
        "a", 0, 1, snippets=(Snippet("b.py", "b\r\n"),), edits=(Edit("a.py", 0, "x\r\n", "y\r\n", "z\r\n"),)
    )
    found = with_line_feeds(asked)
    assert found.snippets == (Snippet("b.py", "b\n"),)
    assert found.edits == (Edit("a.py", 0, "x\n", "y\n", "z\n"),)
    assert found.cursor == -1


def test_request_without_carriage_returns_is_the_same():
    asked = request("a\rb\n", 1, 2)
    assert with_line_feeds(asked) is asked
