from collections import Counter
from pathlib import Path

from bench.next_edit.cases import cases
from mercury_training.corpus.syntax import count_errors
from mercury_training.rows.fim_rows import read_rows

KINDS = ("single_line", "multi_line", "random_span")
SETS = Path(__file__).parents[3] / "bench/sets"


def test_committed_rows_are_whole():
    rows = read_rows(SETS / "fim.jsonl")
    wanted = {(language, kind): count for language, count in (("python", 15), ("lua", 5)) for kind in KINDS}
    assert Counter((row.language, row.kind) for row in rows) == wanted
    assert not any(count_errors(row.language, row.prefix + row.middle + row.suffix) for row in rows)
    assert Counter(case.kind for case in cases(SETS / "next_edit.jsonl")).keys() == {
        "repeat",
        "propagate",
        "other",
        "none",
    }
