from mercury_ls.completion.target import Silence, Target, at_cursor
from mercury_ls.settings.schema import SuggestSettings
from tests.marked import marked


def check(drawn: str, expected: str, language: str = "python", *, invoked=False, strong=False, **settings):
    """`expected` is "line" or "block", with what is replaced after a colon; or "-" and the reason's beginning."""
    snapshot, offset = marked(drawn, language)
    found = at_cursor(snapshot, offset, SuggestSettings(**settings), invoked=invoked, strong=strong)
    if isinstance(found, Silence):
        assert expected.startswith("- ")
        assert found.reason.startswith(expected[2:])
        return
    assert isinstance(found, Target)
    mode, _, replaced = expected.partition(":")
    assert (found.mode, snapshot.text[found.start : found.end]) == (mode, replaced)


def test_end_of_line_is_continued():
    check("x = comp$0\ny = 1\n", "line")
    check("x = $0", "line")


def test_blanks_after_the_cursor_are_replaced():
    check("x = 1$0  \ny = 2\n", "line:  ")


def test_closers_that_the_editor_put_stay_where_they_are():
    check("print($0)\n", "line")
    check("f(g($0)):\n", "line")
    check("x = [1, $0];\n", "line", "javascript")


def test_middle_of_a_line_or_word_is_left_alone_unless_invoked():
    check("x = $0 + y\n", "- code follows the cursor")
    check("x = foo$0bar\n", "- the cursor is inside a word")
    check("x = $0 + y\n", "line", invoked=True)
    check("x = foo$0bar\n", "line", invoked=True)


def test_comments_and_strings_are_left_alone_unless_wanted():
    check("# a note$0\n", "- inside a comment")
    check("x = 'some te$0'\n", "- inside a string")
    check("// a note$0\n", "- inside a comment", "javascript")
    check("# a note$0\n", "line", in_comments=True)
    check("x = 'some te$0'\n", "line", in_strings=True)
    check("# a note$0\n", "line", invoked=True)


def test_code_inside_a_string_is_code():
    check('x = f"{val$0}"\n', "line")


def test_block_is_asked_for_where_one_begins():
    check("def f(x):\n    $0\n", "block")
    check("def f(x):$0\n", "block")
    check("if (x) {\n    $0\n}\n", "block", "javascript")
    check("fn f() {\n    $0\n}\n", "block", "rust")


def test_line_is_asked_for_within_body():
    check("def f(x):\n    y = 1\n    $0\n", "line")
    check("def f(x):\n    y = $0\n    return y\n", "line")


def test_setting_decides_about_several_lines():
    check("def f(x):\n    $0\n", "line", multi_line="never")
    check("x = $0\n", "block", multi_line="always")
    check("x = $0 + 1\n", "line", multi_line="always", invoked=True)
