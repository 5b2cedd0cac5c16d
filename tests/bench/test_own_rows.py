from collections import Counter
from pathlib import Path

from bench.next_edit.cases import cases
from bench.own_rows import PER_CLASS, PER_KIND, build, fim_rows
from mercury_training.corpus.syntax import count_errors
from mercury_training.rows.fim_rows import read_rows
from mercury_training.tune.project import ProjectFile
from tests.repositories import committed

KINDS = ("single_line", "multi_line", "random_span")
SETS = Path(__file__).parents[2] / "bench" / "sets"
FUNCTION = """\
def area_N(width, height):
    product = width * height
    assert product > N
    return product - N


"""
CODE = "".join(FUNCTION.replace("N", str(n)) for n in range(8))


def test_same_revision_gives_the_same_rows(tmp_path):
    committed(tmp_path, {"shapes.py": CODE})
    committed(tmp_path, {"shapes.py": CODE.replace("assert product > 3", "assert product > 4")})
    first = build(str(tmp_path), "HEAD", tmp_path / "a")
    assert [count > 0 for count in first.values()] == [True, True]
    build(str(tmp_path), "HEAD", tmp_path / "b")
    for name in ("fim.jsonl", "next_edit.jsonl"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_file_gives_one_row_of_each_kind():
    rows = fim_rows([ProjectFile("a.py", "python", CODE, "MIT")], "c")
    assert Counter(row.kind for row in rows) == {"single_line": 1, "multi_line": 1, "random_span": 1}
    assert all(row.prefix + row.middle + row.suffix == CODE for row in rows)


def test_committed_rows_are_whole():
    rows = read_rows(SETS / "fim.jsonl")
    wanted = {(language, kind): count for language, count in PER_KIND.items() for kind in KINDS}
    assert Counter((row.language, row.kind) for row in rows) == wanted
    assert not any(count_errors(row.language, row.prefix + row.middle + row.suffix) for row in rows)
    edits = Counter(case.kind for case in cases(SETS / "next_edit.jsonl"))
    assert all(0 < edits[name] <= most for name, most in PER_CLASS.items())
