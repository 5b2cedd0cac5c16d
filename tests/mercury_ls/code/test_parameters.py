"""Parameters are read from text that need not parse."""

import pytest

from mercury_ls.code.parameters import parameter_names


@pytest.mark.parametrize(
    ("language", "listed", "expected"),
    [
        ("python", "self, a, b: list[int, str] = [], *, c=None, **d", "a b c"),
        ("python", "cls, *args, a", "a"),
        ("typescript", "private readonly a: A, b?: B, { c }: D", "a b"),
        ("go", "a int, b ...string", "a b"),
        ("go", "a int, b map[string]int", "a b"),
        ("rust", "&self, mut a: Vec<u8>", "a"),
        ("java", "final Map<String, Integer> a, int b", "a b"),
        ("cpp", "const std::string& a, char *b", "a b"),
        ("typescript", "a: (x: X, y: Y) => Map<X, Y>, b: B", "a b"),
        ("python", "", ""),
    ],
)
def test_parameters(language, listed, expected):
    assert " ".join(parameter_names(listed, language)) == expected
