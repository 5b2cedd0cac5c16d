"""Calls and parameters are read from text that need not parse."""

import pytest

from mercury_ls.code.calls import Call, Parameter, call_at, parameters, signature


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(", Call("f", (), "")),
        ("x = a.b(one, two=2, th", Call("a.b", ("one", "two=2"), "th")),
        ("super().area(", Call("super().area", (), "")),
        ('f(",)", [1, 2], ', Call("f", ('",)"', "[1, 2]"), "")),
        ("f(\n    one,\n    ", Call("f", ("one",), "")),
        ("f(x)", None),
        ("f[", None),
        ("def f(", None),
        ("func (s *T) f(", None),
        ("(", None),
    ],
)
def test_the_call_that_is_open(text, expected):
    assert call_at(text) == expected


@pytest.mark.parametrize(
    ("language", "header", "expected"),
    [
        ("python", "def f(self, a, b: list[int, str] = [], *, c=None, **d):", "a, b: list[int, str] = [], *c = None"),
        ("python", "def f(cls, *args, a):  # (x)", "*a"),
        ("typescript", "constructor(private readonly a: A, b?: B, { c }: D)", "a: A, b: B = ?"),
        ("go", "func (s *T) f(a int, b ...string)", "a: int, b: ...string"),
        ("go", "func f(a int, b map[string]int)", "a: int, b: map[string]int"),
        ("rust", "fn f(&self, mut a: Vec<u8>)", "a: Vec<u8>"),
        ("java", "void f(final Map<String, Integer> a, int b)", "a: final Map<String, Integer>, b: int"),
        ("cpp", "void f(const std::string& a, char *b)", "a: const std::string, b: char *"),
        ("typescript", "f(a: (x: X, y: Y) => Map<X, Y>, b: B)", "a: (x: X, y: Y) => Map<X, Y>, b: B"),
        ("python", "class A:", ""),
        ("python", "def f(a", ""),
    ],
)
def test_parameters(language, header, expected):
    assert ", ".join(map(written, parameters(header, language))) == expected


def written(each: Parameter) -> str:
    kind, default = each.type and f": {each.type}", each.default and f" = {each.default}"
    return f"{'' if each.is_positional else '*'}{each.name}{kind}{default}"


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("python", "def f(a):\n    f(b)\n", "f(a)"),
        ("python", "class f(A):\n    x = 1\n\n    def __init__(self, a):\n        pass\n", "__init__(self, a)"),
        ("python", "class f:\n    pass\n\nclass g:\n    def __init__(self, a):\n        pass\n", ""),
        ("python", "f(a) > f(b)\n", ""),
        ("typescript", "  async f(a: A) {\n", "f(a: A)"),
        ("typescript", "const f = (a) => {\n", "f = (a)"),
        ("typescript", "f('x', (a) => {\n", ""),
        ("go", "func (s *T) f(a int) {\n", "f(a int)"),
        ("rust", "pub fn f<T>(a: T) {}\n", "f<T>(a: T)"),
    ],
)
def test_signatures(language, text, expected):
    assert signature(text, "f", language) == expected
