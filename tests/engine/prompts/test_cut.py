"""An answer is cut at one line, or at one statement with its block, and repeats nothing that follows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercury_engine.prompts.cut import cut


def check(text, answer, shown, complete=True, *, mode="block", language="python", finished=False):
    before, _, after = text.partition("$0")
    assert cut(before, answer, after, language=language, mode=mode, finished=finished) == (shown, complete)


@pytest.mark.parametrize(
    ("text", "answer", "shown", "complete"),
    [
        ("x = $0\n", "1 + 2\ny = 3\n", "1 + 2", True),
        ("x = $0\n", "1 + 2", "1 + 2", False),
        ("x = $0\n", "\ny", "", True),
        ("print($0)\n", "x)\n", "x", True),
        ("print($0)\n", "f(x))\n", "f(x)", True),
        ("bar(foo(a$0)\n", ")\n", ")", True),
        ("foo(a, b$0)\n", ")\n", "", True),
        ("d = {'a': $0}\n", "{}}\n", "{}", True),
        ("name = ma$0xim\n", "xim\n", "", True),
        ("f(')', $0)\n", "b)\n", "b", True),
    ],
)
def test_line_ends_with_its_line_and_does_not_repeat_the_rest(text, answer, shown, complete):
    check(text, answer, shown, complete, mode="line")


def test_answer_that_the_model_has_not_ended_is_not_complete():
    check("x = $0\n", "1", "1", True, mode="line", finished=True)
    check("print($0)\n", "x)", "x)", False, mode="line")


PYTHON = [
    ("$0\n", "x = 1\ny = 2\n", "x = 1"),
    ("if a:\n    b()\n    $0\n", "c()\n    d()\n\ne()\n", "c()\n    d()"),
    ("if a:\n    b()\n    $0\n    e()\n", "c()\n    d()\n", "c()"),
    (
        "def mean(xs):\n    $0\n",
        "total = sum(xs)\n    return total\n\n    x\ndef f",
        "total = sum(xs)\n    return total",
    ),
    ("def mean(xs):\n    $0\n    return total\n", "total = sum(xs)\n    n = 1\n", "total = sum(xs)"),
    ("def mean(xs):$0\n", "\n    return sum(xs)\n\n\ndef f():\n", "\n    return sum(xs)"),
    (
        "$0\n",
        "for x in xs:\n    if x:\n        y()\n\n    z()\nprint()\n",
        "for x in xs:\n    if x:\n        y()\n\n    z()",
    ),
    (
        "$0\n",
        "if a:\n    b()\nelif c:\n    d()\nelse:\n    e()\nf()\n",
        "if a:\n    b()\nelif c:\n    d()\nelse:\n    e()",
    ),
    ("$0\n", "try:\n    a()\nexcept E:\n    b()\nx = 1\n", "try:\n    a()\nexcept E:\n    b()"),
    ("$0\n", "x = foo(\n    a,\n    b,\n)\ny = 1\n", "x = foo(\n    a,\n    b,\n)"),
    ("$0\n", "def f(\n    a,\n) -> int:\n    return a\nb = 1\n", "def f(\n    a,\n) -> int:\n    return a"),
    ("$0\n", "@cache\ndef f():\n    return 1\nf()\n", "@cache\ndef f():\n    return 1"),
    ("$0\n", "# how many\ncount = 1\nx = 2\n", "# how many\ncount = 1"),
    ("# how$0\n", " many\ncount = 1\n", " many"),
    ("$0\n", "x = 1 + \\\n2\ny = 3\n", "x = 1 + \\\n2"),
    ("x = 1$0\n", "\ny = 2\nz = 3\n", "\ny = 2"),
    ("x = foo($0\n", "a, b)\ny = 2\n", "a, b)"),
    ("$0\nprint(x)\n", "x = [\n    1,\n    2]\nprint(x)\n", "x = [\n    1,\n    2]"),
    ("if a:\n    $0\nprint(x)\n", "b()\nprint(x)\n", "b()"),
]
OTHERS = [
    ("typescript", "$0\n", "if (a) {\n  b();\n} else {\n  c();\n}\nd();\n", "if (a) {\n  b();\n} else {\n  c();\n}"),
    ("typescript", "$0\n", "foo(() => {\n  b();\n});\nd();\n", "foo(() => {\n  b();\n});"),
    ("typescript", "$0\n", "a\n.then(b)\n.then(c);\nd();\n", "a\n.then(b)\n.then(c);"),
    ("csharp", "$0\n", "void F()\n{\n    G();\n}\nint x;\n", "void F()\n{\n    G();\n}"),
    ("go", "$0\n", "if err != nil {\n\treturn err\n}\nx := 1\n", "if err != nil {\n\treturn err\n}"),
    (
        "rust",
        "$0\n",
        "#[test]\nfn a<'a>(x: &'a str) {\n    b();\n}\nfn c\n",
        "#[test]\nfn a<'a>(x: &'a str) {\n    b();\n}",
    ),
    (
        "rust",
        "$0\n",
        "fn a<T>(x: T)\nwhere\n    T: B,\n{\n    c();\n}\nd();\n",
        "fn a<T>(x: T)\nwhere\n    T: B,\n{\n    c();\n}",
    ),
    ("typescript", "$0\n", "type A = B<\n  C,\n  D\n>;\nx;\n", "type A = B<\n  C,\n  D\n>;"),
    ("typescript", "$0\n", "const a = `x\n(\ny`;\nb;\n", "const a = `x\n(\ny`;"),
    ("python", "$0\n", 'a = """x\n(\n\ny"""\nb\n', 'a = """x\n(\n\ny"""'),
    ("ruby", "$0\n", "def a\n  b\nend\nc = 1\n", "def a\n  b\nend"),
    ("ruby", "$0\n", "begin\n  a\nrescue\n  b\nend\nc = 1\n", "begin\n  a\nrescue\n  b\nend"),
    ("lua", "$0\n", "if a then\n  b()\nelse\n  c()\nend\nd()\n", "if a then\n  b()\nelse\n  c()\nend"),
    ("shellscript", "$0\n", "for x in y; do\n  echo\ndone\nls -l\n", "for x in y; do\n  echo\ndone"),
    ("html", "<ul>\n  $0\n</ul>\n", "<li>\n    a\n  </li>\n</ul>\n", "<li>\n    a\n  </li>"),
    ("html", "<p>x</p>\n$0\n", "<ul>\n  <li>\n</ul>\n<p>\n", "<ul>\n  <li>\n</ul>"),
    ("yaml", "$0\n", "jobs:\n  a: 1\nname: x\n", "jobs:\n  a: 1"),
    ("sql", "$0\n", "SELECT a\nFROM b\nWHERE c;\nSELECT d\n", "SELECT a\nFROM b\nWHERE c;"),
    ("python", "end = 1\n$0\n", "if a:\n    b()\nend = 5\n", "if a:\n    b()"),
]


@pytest.mark.parametrize(("language", "text", "answer", "shown"), [*(("python", *case) for case in PYTHON), *OTHERS])
def test_block_is_one_statement_with_what_it_opens(language, text, answer, shown):
    check(text, answer, shown, language=language)


@pytest.mark.parametrize(
    ("text", "answer", "shown", "complete"),
    [
        ("$0\n", "x = 1\ny", "x = 1\n", False),
        ("$0\n", "x = 1\ny ", "x = 1", True),
        ("$0\n", "if a:\n    b()\nel", "if a:\n    b()\n", False),
        ("$0\n", "if a:\n    b()\nelse:", "if a:\n    b()\n", False),
        ("$0\n", "x = fo", "x = fo", False),
        ("$0\n", "if a:\n    b(", "if a:\n", False),
        ("if a:\n    $0\n", "b()\nc", "b()", True),
        ("$0\n", "", "", False),
        ("$0\n", "\n\n", "", False),
    ],
)
def test_block_being_written_has_whole_lines_until_something_else_begins(text, answer, shown, complete):
    check(text, answer, shown, complete)


@pytest.mark.parametrize(
    ("text", "answer", "shown"),
    [
        ("function f() {\n  $0\n}\n", "return 1;\n}", "return 1;"),
        ("function f() {\n  $0\n}\n", "if (a) {\n    b();\n  }\n}", "if (a) {\n    b();\n  }"),
        ("f(\n  a,\n  $0\n)\n", "b\n)", "b"),
        ("a\n$0\nb = 1\nc = 2\n", "x = [\n  1]\nb = 1\nc = 2", "x = [\n  1]"),
    ],
)
def test_block_does_not_repeat_lines_that_follow(text, answer, shown):
    check(text, answer, shown, language="typescript", finished=True)


def test_rewritten_lines_stay_whole_lines():
    check("a\n$0c\n", "b", "b\n", mode="edit", finished=True)
    check("a\n$0c\n", "b\nc\n", "b\n", mode="edit", finished=True)
    check("a\n$0\nc\n", "b\n", "b", mode="edit", finished=True)
    check("a\n$0c\n", "abc", "abc\n", mode="edit", finished=True)
    check("a\n$0c\nd\n", "c\nd", "", mode="edit", finished=True)
    check("a\n$0c\n", "", "", False, mode="edit")
    check("a$0c", "x\ny", "x\ny", False, mode="region")


@given(st.text("a ({})[]\n:x", max_size=60), st.text("a ({})[]\n:x", max_size=60), st.text("a )}\nx", max_size=20))
def test_shown_text_is_the_start_of_the_answer(before, answer, after):
    for mode in ("line", "block"):
        for finished in (False, True):
            shown, _ = cut(before, answer, after, language="python", mode=mode, finished=finished)
            assert answer.startswith(shown)


@given(st.text("ab (){}\n:", max_size=60))
def test_complete_block_stays_the_same_however_answer_goes_on(answer):
    shown = [cut("", answer[:n], "", language="python", mode="block", finished=False) for n in range(len(answer) + 1)]
    done = [text for text, complete in shown if complete]
    assert len({*done}) <= 1
