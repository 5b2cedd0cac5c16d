import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_ls.code import syntax
from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.code.languages import LANGUAGES
from tests.cases import Case, drawn_with, each_case

COMMON = ["python", "javascript", "typescript", "rust", "go", "c", "java"]
BRACES = [language for language in COMMON if language != "python"]
QUOTED = [language for language in COMMON if language != "rust"]


CASES = Path(__file__).parent / "cases"


def drawn(text: str, language: str) -> tuple[Snapshot, int]:
    offset = text.index("$0")
    text = text.replace("$0", "", 1)
    return Document("file:///a", "a", language, 1, text).snapshot(), offset


def undrawn(case: Case) -> Snapshot:
    """Its document without the spans that are drawn in it."""
    return Document("file:///a", "a", case.key, 1, re.sub(r"«(?:\w+\|)?|»|\$0", "", case.drawn)).snapshot()


def check_inside(language: str, text: str, expected: str | None):
    assert syntax.inside(*drawn(text, language)) == expected


def check_block(language: str, text: str, expected: bool):
    assert syntax.block_expected(*drawn(text, language)) is expected


@each_case(CASES / "inside.txt")
def test_comments_and_strings_are_told_from_code(case: Case):
    assert (syntax.inside(*drawn(case.drawn, case.key)) or "code") == case.expected


@each_case(CASES / "blocks.txt")
def test_blocks_are_expected_where_bodies_begin(case: Case):
    check_block(case.key, case.drawn, case.expected == "yes")


@each_case(CASES / "headers.txt")
def test_headers_are_signatures_around_the_cursor(case: Case):
    snapshot = undrawn(case)
    spans = [
        (start, end, "")
        for start, end in syntax.headers(snapshot, case.drawn.replace("«", "").replace("»", "").index("$0"))
    ]
    assert drawn_with(snapshot.text, spans) == case.drawn.replace("$0", "")


@each_case(CASES / "definitions.txt")
def test_definitions_have_names_and_signatures(case: Case):
    """Each is drawn as `«name|signature»`."""
    snapshot = undrawn(case)
    spans = [(each.start, each.signature_end, f"{each.name}|") for each in syntax.definitions(snapshot)]
    assert drawn_with(snapshot.text, spans) == case.drawn


@each_case(CASES / "imports.txt")
def test_imports_of_a_file_are_found(case: Case):
    snapshot = undrawn(case)
    spans = [(start, end, "") for start, end in syntax.imports(snapshot)]
    assert drawn_with(snapshot.text, spans).replace("\n»", "»\n") == case.drawn


COMMENT = {"python": "#", "ruby": "#", "bash": "#", "lua": "--"}


@pytest.mark.parametrize("language", [*COMMON, "cpp", "csharp", "ruby", "bash", "lua"])
def test_line_comment_reaches_to_the_end_of_its_line(language: str):
    mark = COMMENT.get(language, "//")
    check_inside(language, f"{mark}$0\n", "comment")
    check_inside(language, f"{mark} a $0b\n", "comment")
    check_inside(language, f"{mark} a$0\n", "comment")
    check_inside(language, f"{mark} a $0", "comment")
    check_inside(language, f"{mark} a\n$0", None)
    check_inside(language, f"$0{mark} a\n", None)


@pytest.mark.parametrize("language", [*BRACES, "cpp", "csharp", "css"])
def test_block_comment_ends_where_it_is_closed(language: str):
    check_inside(language, "/* a $0 */", "comment")
    check_inside(language, "/* a\n $0\n */", "comment")
    check_inside(language, "/* a */$0\n", None)
    check_inside(language, "/* a $0", "comment")
    check_inside(language, "/*$0", "comment")
    check_inside(language, "/* a\n * b\n$0", "comment")


@pytest.mark.parametrize("language", [*COMMON, "cpp", "csharp", "ruby", "bash", "lua"])
def test_unclosed_string_at_cursor_is_a_string(language: str):
    check_inside(language, 'x = "abc$0', "string")
    check_inside(language, 'f(a, "$0', "string")
    check_inside(language, 'f(a, "b\\"$0', "string")
    check_inside(language, 'f(a, "b"$0', None)


@pytest.mark.parametrize("language", QUOTED)
def test_unclosed_string_ends_with_its_line(language: str):
    check_inside(language, 'x = "abc$0\ny = 1\n', "string")
    check_inside(language, 'x = "abc\ny = 1$0\n', None)
    check_inside(language, "x = '$0\n", "string")


FUNCTION = {
    "javascript": "function f(a) {%s",
    "typescript": "function f(a: string): number {%s",
    "rust": "fn f(a: &str) -> i32 {%s",
    "go": "package a\n\nfunc f(a string) int {%s",
    "c": "int f(char *a) {%s",
    "cpp": "int A::f(const std::string& a) const {%s",
    "java": "class A {\n    int f(String a) {%s\n}\n",
    "csharp": "class A {\n    int f(string a) {%s\n}\n",
    "php": "<?php\nfunction f($a) {%s",
}


@pytest.mark.parametrize("language", FUNCTION)
def test_body_begins_after_brace(language: str):
    check_block(language, FUNCTION[language] % "\n        $0\n    }\n", True)
    check_block(language, FUNCTION[language] % "$0}\n", True)
    check_block(language, FUNCTION[language] % "$0\n", True)
    check_block(language, FUNCTION[language] % "\n        $0\n", True)
    check_block(language, FUNCTION[language] % "\n        x;\n        $0\n    }\n", False)


def test_problems_are_errors_and_missing_pieces():
    def count(text: str, language: str = "python") -> int:
        return syntax.problems(drawn(text + "$0", language)[0].tree)

    assert count("x = 1\n") == 0
    assert count("x = = 1\n") == 1
    assert count("function f() {\n", "javascript") == 1
    assert count("x = = 1\ny = = 2\n") == 2
    assert syntax.problems(None) == 0


def test_problems_after_an_edit_leave_the_snapshot_alone():
    snapshot, offset = drawn("x = foo($0\ny = 1\n", "python")
    before = syntax.problems(snapshot.tree)
    assert before > 0
    assert syntax.problems_after(snapshot, offset, offset, "1)") == 0
    assert syntax.problems_after(snapshot, 0, len(snapshot.text), "def f(:\n") > 0
    assert syntax.problems(snapshot.tree) == before


def test_deep_nesting_is_counted_without_recursion():
    snapshot, _ = drawn("x = " + "[" * 1500 + "$0", "python")
    assert syntax.problems(snapshot.tree) > 0


def test_identifiers_come_in_order_without_the_commonest_keywords():
    assert syntax.identifiers("def foo(self, x1): return x1 + größe") == ["foo", "x1", "x1", "größe"]
    assert syntax.identifiers("1e5 'a b'") == ["a", "b"]


def test_without_a_tree_every_answer_is_neutral():
    snapshot, offset = drawn("# def f():$0", "plaintext")
    assert syntax.inside(snapshot, offset) is None
    assert syntax.block_expected(snapshot, offset) is False
    assert syntax.problems_after(snapshot, 0, 0, "(") == 0
    assert syntax.headers(snapshot, offset) == syntax.imports(snapshot) == syntax.definitions(snapshot) == []


SIGNS = r"""" ' ` { } ( ) : # // /* */ ${ #{ function = é 😀 \ end do x"""
PIECES = ["\n", "\r\n", " ", "    ", "def f", "class A", "fn f", "import a", *SIGNS.split()]


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.id)
@given(text=st.lists(st.sampled_from(PIECES), max_size=20).map("".join), data=st.data())
@settings(max_examples=40)
def test_any_text_gets_answers_that_lie_in_it(language, text: str, data):
    snapshot = Document("file:///a", "a", language.id, 1, text).snapshot()
    offset = data.draw(st.integers(0, len(text)))
    syntax.inside(snapshot, offset)
    syntax.block_expected(snapshot, offset)
    ranges = syntax.headers(snapshot, offset) + syntax.imports(snapshot)
    ranges += [(each.start, each.end) for each in syntax.definitions(snapshot)]
    assert all(0 <= start <= end <= len(text) for start, end in ranges)
    assert all(end < offset for _, end in syntax.headers(snapshot, offset))


def test_without_the_time_for_a_tree_the_characters_answer():
    text = "def f():\n    x = 'some text'\n    # note\n    if x:\n"
    document = Document("file:///a.py", "/a.py", "python", 1, text + "v = f(1)\n" * 5000, patience=-1.0)
    assert document.snapshot().tree is not None
    document.apply([((4, 0, 4, 0), "        \ny = (\n")], 2, "utf-16")
    snapshot, cursor = document.snapshot(), len(text) + 8
    assert snapshot.tree is None
    assert syntax.inside(snapshot, text.index("text")) == "string"
    assert syntax.inside(snapshot, text.index("note")) == "comment"
    assert syntax.inside(snapshot, text.index("x =")) is None
    assert syntax.block_expected(snapshot, cursor)
    assert [snapshot.text[a:b] for a, b in syntax.headers(snapshot, cursor)] == ["def f():"]
    assert syntax.definitions(snapshot) == []
    assert syntax.imports(snapshot) == []
    assert syntax.problems_after(snapshot, 0, 0, "(") == 0


LEXEMES = ['"', "'", "`", '"""', "/*", "*/", "//", "#", "\n", "\r\n", "\\", "{", "}", "${", 'f"', "'a'", "x = 1 ", " "]


@given(st.sampled_from(LANGUAGES), st.lists(st.sampled_from(LEXEMES), max_size=80), st.data())
def test_code_that_does_not_parse_is_walked_once_with_the_same_answers(language, pieces, data):
    document = Document("", "a", language.id, 1, "".join(pieces))
    for version in range(2, 5):
        snapshot = document.snapshot()
        for offset in data.draw(st.lists(st.integers(0, len(snapshot.text)), max_size=6)):
            start = syntax.closed_before(snapshot, language, offset)
            found = syntax.open_at(snapshot.text, language, start, offset)
            assert found == syntax.open_at_end(snapshot.text[:offset], language)
        place = snapshot.position(data.draw(st.integers(0, len(snapshot.text))), "utf-32")
        document.apply([((*place, *place), data.draw(st.sampled_from(LEXEMES)))], version, "utf-32")


def test_line_that_does_not_parse_is_not_sought_from_top_each_time():
    text = "broken = (\n" + 'a = "b"  # c\n' * 2000 + 'd = "e'
    snapshot = Document("file:///a.py", "a.py", "python", 1, text).snapshot()
    assert syntax.inside(snapshot, len(text)) == "string"
    assert len(snapshot.closed) > 50
    known = [*snapshot.closed]
    assert syntax.inside(snapshot, len(text) - 4) is None
    assert snapshot.closed == known


def test_very_deep_nesting_is_judged_by_characters():
    text = "".join(f"function f{n}() {{\n" for n in range(3000)) + "// $0here\n" + "}\n" * 3000
    check_inside("javascript", text, "comment")
    check_inside("javascript", text.replace("// $0here", '"$0here"'), "string")
    assert syntax.headers(*drawn(text, "javascript")) == []
