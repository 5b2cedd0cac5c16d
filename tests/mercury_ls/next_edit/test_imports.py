import pytest

from mercury_engine.api import Edit
from mercury_ls.code.diagnostics import FileDiagnostic
from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.next_edit.kinds import imports
from tests.marked import SUFFIX


def snapshot_of(text: str, language: str = "python", name: str = "here") -> Snapshot:
    path = f"/project/{name}.{SUFFIX[language]}"
    return Document(f"file://{path}", path, language, 1, text).snapshot()


def applied(snapshot: Snapshot, places) -> str:
    """The text with what is proposed in «», or "-" where nothing is."""
    text, found = snapshot.text, list(places)
    for place in sorted(found, key=lambda each: -each.start):
        text = f"{text[: place.start]}«{place.text}»{text[place.end :]}"
    return text if found else "-"


def check_needed(drawn: str, expected: str, *others: str, language: str = "python") -> None:
    """`⟦line⟧` was typed last; `others` are files beside this one."""
    text = drawn.replace("⟦", "").replace("⟧", "")
    typed = drawn[drawn.index("⟦") + 1 : drawn.index("⟧")]
    snapshot = snapshot_of(text, language)
    edit = Edit(snapshot.path, drawn[: drawn.index("⟦")].count("\n"), "", typed)
    found = imports.needed(snapshot, [edit], [snapshot_of(other, language, "other") for other in others])
    assert applied(snapshot, (place for _, place in found)) == expected


def test_a_module_of_python_that_is_used_but_not_imported():
    check_needed(
        "import abc\nimport sys\n\n⟦print(json.dumps(1))\n⟧",
        "import abc\n«import json\n»import sys\n\nprint(json.dumps(1))\n",
    )


def test_modules_of_python_stand_together():
    check_needed(
        "import abc\nimport sys\n\nimport attrs\n\n⟦print(json.dumps(attrs))\n⟧",
        "import abc\n«import json\n»import sys\n\nimport attrs\n\nprint(json.dumps(attrs))\n",
    )


def test_a_name_joins_the_import_of_its_module():
    check_needed(
        "from typing import (\n    Any,\n    Union,\n)\n\n⟦def f(x: Optional[int]): ...\n⟧",
        "from typing import (\n    Any,\n    «Optional, »Union,\n)\n\ndef f(x: Optional[int]): ...\n",
    )


def test_a_package_of_go_stands_with_those_of_its_library():
    check_needed(
        'package a\n\nimport (\n\t"fmt"\n\n\t"github.com/a/b"\n)\n\n⟦var home = os.Getenv("HOME")\n⟧',
        'package a\n\nimport (\n\t"fmt"\n«\t"os"\n»\n\t"github.com/a/b"\n)\n\nvar home = os.Getenv("HOME")\n',
        language="go",
    )


def test_what_another_file_imports_by_that_name():
    check_needed(
        "import abc\nfrom one import a\n\n⟦x = helper(1)\n⟧",
        "import abc\nfrom one import a\n«from tools.things import helper\n»\nx = helper(1)\n",
        "from tools.things import helper\n",
    )


@pytest.mark.parametrize(
    "typed",
    [
        "x = sys.path\n",
        "def json(): pass\n",
        "x.json.dumps(1)\n",
        "print('json.dumps')\n",
        "json = 1\njson.a\n",
        "x = len(y)\n",
        "def f():\n    import json\n    json.dumps(1)\n",
    ],
)
def test_nothing_is_needed_for_what_is_known_or_no_name(typed):
    check_needed(f"import abc\nimport sys\n\n⟦{typed}⟧", "-")


def test_an_import_of_typescript_with_its_semicolon():
    check_needed(
        'import { all } from "./all";\n\n⟦const x = both(1);\n⟧',
        'import { all } from "./all";\n«import { both } from "./both";\n»\nconst x = both(1);\n',
        'import { both } from "./both";\n',
        language="typescript",
    )


def check_diagnosed(drawn: str, message: str, expected: str, unnecessary: bool = False) -> None:
    start, end = drawn.index("⟦"), drawn.index("⟧") - 1
    snapshot = snapshot_of(drawn.replace("⟦", "").replace("⟧", ""))
    found = imports.complained_of(snapshot, [FileDiagnostic(start, end, message, unnecessary)], [])
    assert applied(snapshot, (place for _, place in found)) == expected


def test_a_complaint_about_an_import_takes_it_away():
    check_diagnosed("import ⟦os⟧\nimport sys\n", '"os" imported but unused', "«»import sys\n")
    check_diagnosed("from a import b, ⟦c⟧\nb\n", "whatever", "from a import b«»\nb\n", unnecessary=True)
    check_diagnosed("import ⟦os⟧\nimport sys\n", "import could not be resolved", "-")


def test_a_complaint_about_an_unknown_name_brings_its_import():
    check_diagnosed("import abc\n\n⟦json⟧.dumps(1)\n", "undefined name", "import abc\n«import json\n»\njson.dumps(1)\n")
    check_diagnosed("import abc\n\n⟦abc⟧.a\n", "whatever", "-")
