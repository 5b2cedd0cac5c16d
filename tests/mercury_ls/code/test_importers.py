"""Which files may see a file, by imports of imports."""

import pytest

from mercury_ls.code.importers import Importers
from tests.counted import calls


def importers_of(files: dict[str, str | None]) -> Importers:
    importers = Importers()
    for path, text in files.items():
        importers.keep(f"/p/{path}", text)
    return importers


@pytest.mark.parametrize(
    ("path", "text", "home", "others"),
    [
        ("a.py", "import b", "b.py", {}),
        ("a.py", "from pkg.b import C", "pkg/b.py", {}),
        ("a.py", "from pkg import (\n    b,\n    c,\n)", "pkg/b.py", {}),
        ("a.py", "def f():\n    import pkg.b as c", "pkg/b.py", {}),
        ("a.py", "import pkg", "b.py", {"pkg/__init__.py": "from .c import *", "pkg/c.py": "import b"}),
        ("a.py", "from pkg import (  # (and more)\n    c,\n    b,\n)", "pkg/b.py", {}),
        ("a.py", "from pkg import c, \\\n    b", "pkg/b.py", {}),
        ("a.py", "from pkg \\\n    import b", "pkg/b.py", {}),
        ("a.py", "try: import c; import b\nexcept ImportError: pass", "b.py", {}),
        ("a.py", f"import ({40 * '#'}\nimport b", "b.py", {}),
        ("a.py", "from pkg import (\n    c,\nimport b\nx = (1)", "b.py", {}),
        ("a.py", "from pkg import (\n    c,  # )\n    b,\n", "pkg/b.py", {}),
        ("a.py", f"{400 * (chr(92) + chr(10))}import b", "b.py", {}),
        ("pkg/a.py", "from.import(b)", "pkg/b.py", {}),
        ("pkg/a.py", "from .. import b", "b.py", {}),
        ("pkg/a.py", "from . import c", "pkg/__init__.py", {}),
        ("tests/a.py", "import b", "src/b.py", {}),
        ("tests/a.py", "import kernels.b", "engine/kernels/b.py", {}),
        ("a.ts", "import { B } from './b.js'", "b.ts", {}),
        ("a.ts", "const b = require ( './b' )", "b.ts", {}),
        ("a.ts", "export * from '.'", "b.ts", {"index.ts": "const b = require('./b')"}),
        ("a.py", "import b", "c.py", {"b.py": None}),
    ],
)
def test_files_that_import_see(path, text, home, others):
    files = {path: text, home: "", **others}
    for order in (files, dict(reversed(files.items()))):
        assert f"/p/{path}" in importers_of(order).seeing(f"/p/{home}", frozenset({"/p/engine"}))


@pytest.mark.parametrize(
    ("path", "text", "home", "others"),
    [
        ("a.py", "x = 1", "b.py", {}),
        ("a.py", "# import b", "b.py", {}),
        ("a.py", "import random", "tests/random.py", {}),
        ("a.py", "from . import c", "pkg/c.py", {"c.py": ""}),
        ("one/a.py", "import b", "two/b.py", {"one/b.py": ""}),
        ("a.py", "import b", "pkg/b.py", {"pkg/__init__.py": "import b"}),
        ("tests/a.py", "import kernels.b", "other/kernels/b.py", {}),
        ("a.ts", "import { B } from 'b'", "b.ts", {}),
    ],
)
def test_other_files_do_not_see(path, text, home, others):
    assert f"/p/{path}" not in importers_of({path: text, home: "", **others}).seeing(
        f"/p/{home}", frozenset({"/p/engine"})
    )


def test_copy_learns_what_its_original_does_not():
    importers = importers_of({"a.py": "", "b.py": ""})
    copied = importers.copy()
    copied.keep("/p/a.py", "import b")
    assert "/p/a.py" in copied.seeing("/p/b.py", frozenset())
    assert "/p/a.py" not in importers.seeing("/p/b.py", frozenset())


def test_name_comes_by_the_statements_that_have_it():
    importers = importers_of(
        {
            "home.py": "",
            "passing.py": "from home import name as other",
            "all.py": "from passing import *",
            "last.py": "from all import name",
            "module.py": "import home",
            "long.py": "from home import it, \\\n    name",
            "elsewhere.py": "from home import it\nfrom other import name",
        }
    )
    seeing = importers.seeing("/p/home.py", frozenset(), "name")
    assert seeing == {f"/p/{file}.py" for file in ("home", "passing", "all", "last", "long")}


def test_imports_of_modules_alike_are_looked_up_in_proportion_to_their_number():
    def packages(count: int) -> int:
        files = {}
        for number in range(count):
            files |= {f"p{number}/__init__.py": "", f"p{number}/models.py": "import os\nfrom django.db import models"}
            files |= {f"p{number}/views.py": f"from p{(number + 7) % count}.models import A\nfrom . import models"}
        importers = importers_of(files)
        return calls(lambda: importers.seeing("/p/p0/models.py", frozenset({"/p"})))

    assert packages(120) < 3 * packages(60)
