"""The cost of a keystroke in a 5,000-line file: the text (didChange), the history, the snapshot, its syntax tree.

"no tree %" is the share of keystrokes at which the parser took longer than the server waits for it.

python -m bench.documents [--edits 600]
"""

import argparse
import json
import random
import time

from bench.harness.measures import machine, percentile
from mercury_ls.code import syntax
from mercury_ls.code.documents import Document
from mercury_ls.code.history import History
from mercury_ls.session.open_files import PARSE_SECONDS

LINES = 5000
BODY = '''\
def area_{n}(width: float, height: float, *, scale: float = 1.0) -> float:
    """The area of shape {n}, {word}."""
    if width < 0 or height < 0:
        raise ValueError(f"a side of {{width}} by {{height}} is negative")
    sides = [width * scale, height * scale]
    return sides[0] * sides[1]


'''
TYPED = "total = area_1(width, height)\n    "
WARM_UP = 50

Times = dict[str, list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=int, default=600)
    edits = parser.parse_args().edits
    cases = {
        "typing": typing(sample("plain"), edits, closes=True),
        "typing, not ASCII": typing(sample("größer 😀"), edits, closes=True),
        "typing, open bracket": typing(sample("plain"), edits, closes=False),
        "jumping": _jumping(sample("plain"), edits),
    }
    report(cases, edits)


def sample(word: str) -> str:
    text = "".join(BODY.format(n=n, word=word) for n in range(LINES // BODY.count("\n") + 1))
    return "".join(text.splitlines(keepends=True)[:LINES])


def typing(text: str, edits: int, closes: bool) -> Times:
    """Letter by letter on new lines of a function in the middle; most editors close brackets by themselves."""
    line, column, changes = LINES // 2 // 8 * 8 + 4, 4, []
    lines = text.splitlines(keepends=True)
    text = "".join([*lines[:line], "    \n", *lines[line:]])
    for character in (TYPED * (edits + WARM_UP))[: edits + WARM_UP]:
        if character != ")" or not closes:
            changes.append((line, column, "()" if character == "(" and closes else character))
        line, column = (line + 1, 0) if character == "\n" else (line, column + 1)
    return measure(text, changes)


def _jumping(text: str, edits: int) -> Times:
    """Every edit at a random place: the worst case for an index that expects the next edit near the last one."""
    places = random.Random(0)
    return measure(text, [(places.randrange(LINES // 8) * 8 + 4, 4, "x") for _ in range(WARM_UP + edits)])


def measure(text: str, changes: list[tuple[int, int, str]]) -> Times:
    document, history = Document("file:///sample.py", "sample.py", "python", 0, text, PARSE_SECONDS), History()
    syntax.problems(document.snapshot().tree)
    times: Times = {"didChange": [], "history": [], "snapshot": [], "tree": [], "syntax": []}
    without = 0
    for version, (line, column, character) in enumerate(changes):
        marks, before = [time.perf_counter()], document.text
        applied = document.apply([((line, column, line, column), character)], version, "utf-16")
        marks.append(time.perf_counter())
        for change in applied:
            history.record(document.path, before, change, marks[0])
        marks.append(time.perf_counter())
        snapshot = document.snapshot()
        marks.append(time.perf_counter())
        tree = snapshot.tree
        marks.append(time.perf_counter())
        without += tree is None
        offset = snapshot.offset(line, column + 1, "utf-16")
        syntax.inside(snapshot, offset)
        syntax.block_expected(snapshot, offset)
        marks.append(time.perf_counter())
        for name, start, end in zip(times, marks, marks[1:], strict=False):
            times[name].append((end - start) * 1000)
    ordered = {name: sorted(found[WARM_UP:]) for name, found in times.items()}
    return ordered | {"no tree %": [100 * without / len(changes)]}


def report(cases: dict[str, Times], edits: int) -> None:
    print(f"{edits} edits of one character each, Python of {LINES} lines; {machine()}")
    print(f"{'':22}{'':12}{'p50':>8}{'p10':>8}{'p90':>8}{'p99':>8}  ms")
    for case, times in cases.items():
        for name, found in times.items():
            print(f"{case:22}{name:12}" + "".join(f"{percentile(found, share):8.3f}" for share in (50, 10, 90, 99)))
    plain = cases["typing"]
    numbers = {
        f"{name}_p{share}_ms": round(percentile(plain[name], share), 4)
        for name in ("didChange", "tree")
        for share in (50, 10, 90, 99)
    }
    worst = {
        f"{name}_p50_ms_worst": round(max(percentile(case[name], 50) for case in cases.values()), 4)
        for name in plain
        if name != "no tree %"
    }
    print(json.dumps({**numbers, **worst, "lines": LINES, "edits": edits, "machine": machine()}))


if __name__ == "__main__":
    main()
