"""Errors of the syntax are found in each language that has a grammar."""

import pytest

from mercury_training.corpus.syntax import count_errors


@pytest.mark.parametrize(
    ("language", "good", "bad"),
    [
        ("python", "def f():\n    return 1\n", "def f(:\n    return 1\n"),
        ("typescript", "const x: number = 1;\n", "const x: = ;\n"),
        ("tsx", "const x = <div>1</div>;\n", "const x = <div>1</di;\n"),
        ("javascript", "let x = 1;\n", "let = = 1;\n"),
        ("go", "package a\n\nfunc f() {}\n", "package a\n\nfunc f( {}\n"),
        ("rust", "fn f() {}\n", "fn f( {}\n"),
        ("c", "int f(void) { return 1; }\n", "int f(void) { return 1; \n"),
        ("cpp", "int f() { return 1; }\n", "int f() { return 1; \n"),
        ("java", "class A {}\n", "class A {\n"),
        ("bash", "echo 1\n", "if true; then\n"),
        ("lua", "local x = 1\n", "local = = 1\n"),
    ],
)
def test_errors_are_counted(language, good, bad):
    assert count_errors(language, good) == 0
    assert count_errors(language, bad) > 0


def test_language_without_grammar_is_not_judged():
    assert count_errors("brainfuck", "+") is None
