"""Made-up changes are the ones a careful person would make: complete, and to code that still parses."""

import ast
import random

from mercury_training.corpus.synthetic import changes

CODE = """import json
import re
from pathlib import Path


def load_table(path, strict):
    text = Path(path).read_text()
    return parse(text)


def parse(text):
    rows = json.loads(text)
    return [row for row in rows if row]


first_table = load_table("a", True)
other_table = load_table("b", False)
both = parse("[]")
print(first_table, other_table)
print(re.escape(str(first_table)))
"""


def made(kind: str, seed: int) -> tuple[list[str], list, int] | None:
    found = {name: rest for name, *rest in changes(CODE, random.Random(seed))}
    return found.get(kind)


def finished(before: list[str], hunks) -> str:
    lines = list(before)
    for first, stop, _, new in sorted(hunks, key=lambda hunk: -hunk[0]):
        lines[first:stop] = new
    return "".join(lines)


def test_synthetic_changes_leave_code_that_parses_and_is_unfinished():
    for seed in range(40):
        for _, before, hunks, known in changes(CODE, random.Random(seed)):
            ast.parse(finished(before, hunks))
            assert 0 < known < len(hunks)
            for first, stop, old, new in hunks:
                assert tuple(before[first:stop]) == old
                assert old != new


def test_rename_changes_every_place_of_one_name():
    found = [change for seed in range(40) if (change := made("rename", seed))]
    assert len(found) > 20
    for before, hunks, _ in found:
        old = {node.id for node in ast.walk(ast.parse("".join(before))) if isinstance(node, ast.Name)}
        new = {node.id for node in ast.walk(ast.parse(finished(before, hunks))) if isinstance(node, ast.Name)}
        assert len(old - new) == len(new - old) == 1
        assert "json" not in old - new, "what is imported keeps its name"


def test_signature_change_reaches_every_call():
    before, hunks, _ = made("signature", 0)
    assert hunks[0][2][0].startswith("def "), "the definition comes first"
    parameter = hunks[0][3][0].partition(")")[0].rpartition(", ")[2]
    assert all(f"{parameter}={parameter})" in new[0] for _, _, _, new in hunks[1:])
    assert f", {parameter})" in finished(before, hunks)


def test_missing_import_follows_line_that_needs_it():
    before, hunks, known = made("import", 0)
    assert known == 1
    assert hunks[1][3][0].lstrip().startswith(("import ", "from "))
    assert finished(before, hunks) == CODE


def test_code_that_does_not_parse_makes_nothing():
    assert list(changes("def (:\n", random.Random(0))) == []
