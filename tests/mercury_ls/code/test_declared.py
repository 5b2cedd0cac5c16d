"""What a text declares, with kinds, parameters and types; what is in reach at a place; what it uses of others."""

import re
from pathlib import Path

import pytest

from mercury_ls.code.declared import Declared, Used, declared_in_file, locals_at, used_in_file
from mercury_ls.code.documents import Document
from tests.cases import each_case
from tests.counted import calls

CASES = Path(__file__).parent / "cases"


def read(snapshot) -> tuple[Declared, ...]:
    reading = declared_in_file(snapshot)
    while True:
        try:
            next(reading)
        except StopIteration as end:
            return end.value


def opened(text, path):
    return Document("", f"/{path}", "", 1, text).snapshot()


@pytest.mark.parametrize("text", (CASES / "declared.txt").read_text("utf-8").split("=== ")[1:])
def test_declarations_of_a_file_are_found(text):
    _, path, text, expected = re.split(r"^--- (.*?)\n(.*)^--- declares\n", text, flags=re.MULTILINE | re.DOTALL)
    assert [drawn(each) for each in read(opened(text, path))] == expected.split()


def drawn(each):
    """`owner.name:kind(parameters)=type<module`"""
    parts = [f"{each.owner}." if each.owner else "", each.name, f":{each.kind}" if each.kind else ""]
    parts += [f"({each.parameters})" if each.parameters else "", f"={each.type}" if each.type else ""]
    return "".join([*parts, f"<{each.module}" if each.module else ""]).replace(" ", "")


@each_case(CASES / "in_reach.txt")
def test_locals_in_reach_are_found(case):
    found = locals_at(opened(case.drawn.replace("$0", ""), case.key), case.drawn.index("$0"))
    assert sorted(each.name for each in found) == sorted(case.expected.replace("nothing", "").split())


def test_nearest_names_come_first_with_their_types():
    marked = "function f(a: A, b) { const c = new Map(); if (c) { const d: D = a; $0 } }"
    found = locals_at(opened(marked.replace("$0", ""), "a.ts"), marked.index("$0"))
    assert [(each.name, each.kind, each.type) for each in found] == [
        ("d", "variable", "D"),
        ("c", "variable", "Map"),
        ("b", "parameter", ""),
        ("a", "parameter", "A"),
    ]


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            "a.py",
            "import os\nfrom typing import Any\nfrom .near import x\nos.walk(Any)\nrun(shell=True)\nfoo.bar\n",
            {
                Used("Any", "class", "typing"),
                Used("walk", "function", "os"),
                Used("shell", "keyword", origin="run()"),
            },
        ),
        (
            "a.ts",
            'import { z as zod } from "zod";\nzod.object(); JSON.parse(""); this.x;\n',
            {Used("z", "", "zod"), Used("object", "function", "zod", "z"), Used("parse", "function", origin="JSON")},
        ),
        (
            "a.ts",
            'import React from "react";\nReact.memo(x);\n',
            {Used("memo", "function", "react", "default")},
        ),
        (
            "a.go",
            'package p\nimport "fmt"\nvar x = cobra.Command{Use: fmt.Sprint()}\n',
            {Used("Sprint", "class", "fmt"), Used("Use", "keyword", origin="Command()")},
        ),
    ],
)
def test_names_used_from_other_files_are_found(path, text, expected):
    assert set(used_in_file(opened(text, path))) == expected


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.kt", "{a->" * 5000),
        ("a.kt", "val x = " + "{a->" * 900 + "a" + "}" * 900),
        ("a.py", "x = " + "(" * 1500 + "y" + ")" * 1500),
        ("a.rs", "{" * 9000),
        ("a.ts", "class A { " * 900),
    ],
)
def test_declarations_of_a_deep_text_are_read_in_small_steps(path, text):
    snapshot = opened(f"{text}\n", path)
    reading = declared_in_file(snapshot)
    worst = max(calls(lambda: next(reading, None)) for _ in range(200))
    assert worst < 20_000, "a step walks up to the root again and again"
