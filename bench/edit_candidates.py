"""What the rules propose in the edit rows of a corpus, and whether the author did so: food for the ranking.

python -m bench.edit_candidates EDITS.jsonl.xz OUT.jsonl [--mirrors FOLDER] [--limit N] [--every K] [--balanced]

--balanced takes more of the rows that repeat something and fewer of those that were made up, about as an evaluation set
has them. Rows that are damaged are left out and named.
"""

import argparse
import itertools
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from bench.next_edit.cases import Case, of_commit, of_repository, verdict
from mercury_ls.next_edit import candidates
from mercury_ls.next_edit.situation import Situation
from mercury_training.corpus.shards import EditRow, read_edits
from mercury_training.fit.rank_edits import LabelledEdit

SPARSER = {"repeat": 0.4, "repeat_delete": 0.4, "first": 2.5, "import": 2.5, "rename": 2.5, "signature": 2.5}
"""How much sparser than others rows of a class are taken that a corpus has more of than an evaluation set."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("edits", type=Path)
    arguments.add_argument("out", type=Path)
    arguments.add_argument("--mirrors", type=Path, help="the repositories that the rows come from: whole files")
    arguments.add_argument("--limit", type=int)
    arguments.add_argument("--every", type=int, default=1, help="take each K-th row only")
    arguments.add_argument("--balanced", action="store_true", help="the classes in the shares of an evaluation set")
    given, encoder = arguments.parse_args(), msgspec.json.Encoder()
    found_cases = chosen(given.edits, given.mirrors, given.every, SPARSER if given.balanced else {})
    with given.out.open("wb") as out:
        for numbered in itertools.islice(enumerate(found_cases), given.limit):
            found = [*judged(*numbered)] or [LabelledEdit(numbered[0], numbered[1].kind, "nothing", {}, False, False)]
            out.writelines(encoder.encode(each) + b"\n" for each in found)


def chosen(edits: Path, mirrors: Path | None, every: int, sparser: dict[str, float]) -> Iterator[Case]:
    if edits.suffix != ".xz":
        with edits.open(encoding="utf-8") as lines:
            yield from undamaged(itertools.islice(lines, 0, None, every))
        return
    for repository, rows in itertools.groupby(picked(read_edits(edits), every, sparser), lambda row: row.repository):
        yield from of_repository(rows, mirrors and mirrors / repository.replace("/", "+") / "repo")


def undamaged(lines: Iterable[str]) -> Iterator[Case]:
    for line in lines:
        try:
            case = of_commit(json.loads(line))
        except ValueError as error:
            print(f"left out: {error}", file=sys.stderr)
        else:
            yield case


def picked(rows: Iterable[EditRow], every: int, sparser: dict[str, float]) -> Iterator[EditRow]:
    """The first of every so many of each class."""
    seen: Counter[str] = Counter()
    for row in rows:
        if seen[row.kind] % max(round(every * sparser.get(row.kind, 1.0)), 1) == 0:
            yield row
        seen[row.kind] += 1


def judged(number: int, case: Case) -> Iterator[LabelledEdit]:
    """Without what is certain, whose chance nobody asks the ranking for."""
    wanted = (*case.expected, *case.also_ok)
    situation = Situation(case.snapshot, case.offset, case.history.edits())
    for each in itertools.chain.from_iterable(candidates.batches(situation)):
        if not each.certain:
            right, exact = verdict(case.snapshot, each, wanted)
            yield LabelledEdit(number, case.kind, each.kind, each.features, right, exact)


if __name__ == "__main__":
    main()
