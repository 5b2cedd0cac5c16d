"""Places are names that are used, each with the role that it has there."""

import pytest

from bench.names_cost import places
from mercury_ls.code.documents import Document


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.py", "from a.b import c\nx = c.d(e, f=g)\n", "import c, member d, scope c e g, keyword f"),
        ("a.ts", 'import { a } from "b";\nconst c = a.d(e);\n', "import a, member d, scope a e"),
        ("a.go", "package a\nvar b = C{D: e.F}\n", "keyword D, member F, scope C e"),
        ("a.rs", "use a::b;\nfn c() { d.e(F { g: h }) }\n", "import a b, member e, keyword g, scope F d h"),
    ],
)
def test_names_and_their_roles(path, text, expected):
    found = [(place.role, place.name) for place in places(Document("", path, "", 1, text).snapshot())]
    said = [part.split() for part in expected.split(", ")]
    assert sorted(found) == sorted((role, name) for role, *names in said for name in names)
