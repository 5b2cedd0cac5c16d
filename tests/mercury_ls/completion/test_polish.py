from mercury_ls.code.edits import TextEdit
from mercury_ls.code.history import History
from mercury_ls.completion.polish import first_lines, polish
from mercury_ls.completion.target import Silence, Target
from tests.marked import marked

REPEATS = "- the suggestion repeats what is written already"


def check(
    drawn: str, text: str, expected: str, mode: str = "line", language: str = "python", *, complete: bool = True
) -> None:
    """`expected` is the document afterwards with the suggestion in «»; or "-" and the reason's beginning."""
    snapshot, offset = marked(drawn, language)
    found = polish(snapshot, Target(offset, offset, mode), text, History(), complete=complete)
    if isinstance(found, Silence):
        assert expected.startswith("- "), found.reason
        assert found.reason.startswith(expected[2:]), found.reason
        return
    assert isinstance(found, TextEdit)
    before, after = snapshot.text[: found.start], snapshot.text[found.end :]
    assert f"{before}«{found.text}»{after}" == expected


def test_good_suggestion_passes_as_it_is():
    check("x = $0\n", "compute(y)", "x = «compute(y)»\n")


def test_blanks_at_the_end_and_empty_suggestions():
    check("x = $0\n", "1   ", "x = «1»\n")
    check("x = $0\n", "  \n", "- nothing is left")
    check("x = $0\n", "", "- nothing is left")


def test_control_characters_are_never_shown():
    check("x = $0\n", "\x16\x16\x16\x16", "- nothing is left")
    check("x = $0\n", "\x1b\x07", "- nothing is left")


def test_line_ends_at_its_end():
    check("x = $0\n", "1\ny = 2", "x = «1»\n")


def test_block_ends_where_it_dedents():
    check(
        "def f():\n    $0\n\nz = 1\n",
        "a = 1\n    return a\n\ndef g():\n    pass",
        "def f():\n    «a = 1\n    return a»\n\nz = 1\n",
        "block",
    )


def test_sentinels_are_cut_off_with_what_follows():
    check("x = $0\n", "1<|endoftext|>junk", "x = «1»\n")
    check("x = $0\n", "1<fim_suffix>junk", "x = «1»\n")
    check("x = $0\n", "░░", "- nothing is left")
    check("a = '<|end|>'\nx = $0\n", "'<|end|>'", "a = '<|end|>'\nx = «'<|end|>'»\n")


def test_text_after_the_cursor_is_not_written_again():
    check("print($0)\n", "value)", "print(«value»)\n")
    check("x = [1, $0]\n", "2]", "x = [1, «2»]\n")
    check('x = "$0"\n', 'text"', 'x = "«text»"\n')
    check("f(a, $0):\n", "b):", "f(a, «b»):\n")


def test_complete_call_keeps_its_bracket():
    check("print($0)\n", "len(x)", "print(«len(x)»)\n")
    check("print($0)\n", "len(x))", "print(«len(x)»)\n")


def test_lines_that_follow_are_not_written_again():
    check(
        "def f():\n    $0\n    return a\n",
        "a = 1\n    return a",
        "def f():\n    «a = 1»\n    return a\n",
        "block",
    )


def test_brackets_that_close_nothing_are_cut():
    check("x = 1 + $0\n", "2) + 3", "x = 1 + «2»\n")
    check("x = (1 + $0\n", "2) + 3", "x = (1 + «2) + 3»\n")


def test_stutter_is_cut():
    check("x = $0\n", "a + b, a + b, a + b, a + b, a + b, ", "x = «a + b,»\n")
    check(
        "def f():\n    $0\n",
        "go()\n    run()\n    run()\n    run()\n    run()",
        "def f():\n    «go()\n    run()»\n",
        "block",
    )


def test_neighbouring_line_is_no_suggestion():
    check("    $0\n    return value\n", "return value", REPEATS)
    check("self.total = total\n$0\n", "self.total = total", REPEATS)


def test_name_is_declared_once_in_its_block():
    check("class A:\n    def f(self): ...\n\n    x = 1\n    $0\n", "def f(self, y):", REPEATS)
    check("class A:\n    $0\n\n    def f(self): ...\n", "def f(self, y):", REPEATS)
    check(
        "class A:\n    def f(self): ...\nclass B:\n    $0\n",
        "def f(self):",
        "class A:\n    def f(self): ...\nclass B:\n    «def f(self):»\n",
    )
    check(
        "class A:\n    def f(self): ...\n    $0\n",
        "def fg(self):",
        "class A:\n    def f(self): ...\n    «def fg(self):»\n",
    )
    check("impl A {\n    fn f(&self) {\n    }\n    fn $0\n}\n", "f(&self) -> u8 {", REPEATS, language="rust")


def test_decorated_name_may_be_declared_again():
    getter = "class A:\n    @property\n    def f(self): ...\n    @f.setter\n    "
    check(f"{getter}$0\n", "def f(self, value):", f"{getter}«def f(self, value):»\n")


def test_chain_asks_for_condition_once():
    check("if x == 1:\n    a()\nelif x == 2:\n    b()\nelif $0\n", "x == 1:", REPEATS)
    check("if x == 1:\n    a()\nelif x == 2:\n    b()\nelif $0\n", "x == 2:", REPEATS)
    check("if x == 1:\n    a()\nelif $0\n", "x == 2:", "if x == 1:\n    a()\nelif «x == 2:»\n")
    check("match x:\n    case 1:\n        a()\n    $0\n", "case 1:", REPEATS)
    other = "if x == 1:\n    a()\nif y:\n    b()\n"
    check(f"{other}elif $0\n", "x == 1:", f"{other}elif «x == 1:»\n")


def test_indentation_of_file_is_kept():
    check(
        "if x:\n\ty = 1\n\tif y:\n\t\t$0\n",
        "a = 1\n        b = 2",
        "if x:\n\ty = 1\n\tif y:\n\t\t«a = 1\n\t\tb = 2»\n",
        "block",
    )
    check(
        "if x:\n    if y:\n        $0\n",
        "a = 1\n\t\tb = 2",
        "if x:\n    if y:\n        «a = 1\n        b = 2»\n",
        "block",
    )


def test_line_ends_of_file_are_kept():
    check("if x:\r\n    $0\r\n", "a = 1\n    b = 2", "if x:\r\n    «a = 1\r\n    b = 2»\r\n", "block")


def test_most_of_the_lines_decide_how_lines_end():
    drawn = "a = 1\r\nb = 2\nif x:\n    $0\n"
    check(drawn, "a = 1\n    b = 2", drawn.replace("$0", "«a = 1\n    b = 2»"), "block")


def test_suggestion_that_breaks_the_file_is_dropped():
    check("def f(a):\n    return a\n\nx = a$0\n", " = = b", "- the file would have more syntax errors")
    check("function f() {\n    $0\n}\n", "return (", "- the file would have more syntax errors", language="javascript")


def test_beginning_of_something_is_no_statement_yet():
    drawn = "def test_it():\n    $0\n"
    check(drawn, "with pytest.raises", "- the file would have more syntax errors")
    check(drawn, "with pytest.raises", drawn.replace("$0", "«with pytest.raises»"), complete=False)


def test_unfinished_file_may_stay_unfinished():
    check("foo(a, $0\n", "b", "foo(a, «b»\n")


def test_user_deletion_is_not_undone():
    before = "x = call(a, b)\n"
    history = History()
    history.record("/project/file.py", before, TextEdit(len("x = call(a"), len("x = call(a, b"), ""), 0.0)
    snapshot, offset = marked("x = call(a$0)\n")
    found = polish(snapshot, Target(offset, offset, "line"), ", b", history)
    assert isinstance(found, Silence)
    assert "undo" in found.reason


def test_scraps_are_not_shown():
    check("if x $0\n", "{", "- only the end", language="javascript")
    check("e$0\n", "lse", "- only the end")
    check("x = f$0\n", "(", "- only the end")
    check("x = f$0\n", "()", "- only the end")
    check("import beets.librar$0\n", "y", "- only the end")
    check("foo(a$0\n", ")", "- only the end")


def test_short_suggestion_that_is_a_word_is_shown():
    check("x = $0\n", "1", "x = «1»\n")
    check("for i $0\n", "in a", "for i «in a»\n", complete=False)
    check("return$0\n", " x", "return« x»\n", complete=False)
    check("self$0\n", ".x", "self«.x»\n")
    check("e$0\n", "lse:", "e«lse:»\n", complete=False)


def test_suggestion_does_not_go_on_behind_an_argument():
    check("serve(request, root$0\n", ", media_list,", "- the suggestion continues after", complete=False)
    check("serve(root[0]$0\n", ", media_list)", "- the suggestion continues after")
    check("serve('a'$0\n", ") + tail", "- the suggestion continues after")
    check("def serve(request$0\n", ", media_list):", "- the suggestion continues after", complete=False)
    check("serve(\n    one,\n    two$0\n", ", media_list)", "- the suggestion continues after")


def test_elsewhere_a_comma_or_bracket_may_come_first():
    check("serve(request,$0\n", " root)", "serve(request,« root)»\n")
    check("serve(root$0\n", ".media, 1)", "serve(root«.media, 1)»\n")
    check("x = a$0\n", ", other", "x = a«, other»\n")
    check("x = [a$0\n", ", other]", "x = [a«, other]»\n")
    check("x = (a$0\n", ", other)", "x = (a«, other)»\n")
    check("serve([a$0\n", ", other])", "serve([a«, other])»\n")


def test_first_lines_of_long_rest_are_those_of_all_of_it():
    for text in ("a\n\n  b \nc\n", "\n" * 5000 + "a\nb\n", "a" * 9000 + "\nb\nc", "a = 1\r\n" * 3000, ""):
        assert first_lines(text, 2) == [line.rstrip() for line in text.splitlines() if line.strip()][:2]
