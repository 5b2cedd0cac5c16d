"""What the rules propose in the edit rows of a corpus, and whether the author did so: food for the ranking.

python -m bench.edit_candidates EDITS.jsonl.xz OUT.jsonl [--mirrors FOLDER] [--limit N] [--every K] [--engine FOLDER]

With an engine, the rows are those edits only on which the model has given its opinion: food for
`mercury_training.worth`.
"""

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bench.edit_cases import Case, cases, verdict
from bench.next_edit import engine_of, question_of
from mercury_engine.api import Engine
from mercury_ls import candidates
from mercury_ls.next_edit import admissible, opinions, regions_of, requests
from mercury_ls.targets import Silence, next_edit

__all__ = ["Judged", "judged"]


class Judged(Struct, frozen=True):
    """One candidate, or "nothing" of a row without any: its row, what is known of it, whether the author made this
    edit, and whether it alone completes a line as the author did."""

    row: int
    row_kind: str
    kind: str
    features: dict[str, float]
    right: bool
    exact: bool
    p_edit: float = 0.0
    p_model: float | None = None
    agreement: float = 0.0


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("edits", type=Path)
    arguments.add_argument("out", type=Path)
    arguments.add_argument("--mirrors", type=Path, help="the repositories that the rows come from: whole files")
    arguments.add_argument("--limit", type=int)
    arguments.add_argument("--every", type=int, default=1, help="take each K-th row only")
    arguments.add_argument("--engine", default="none")
    given = arguments.parse_args()
    encoder, engine = msgspec.json.Encoder(), engine_of(given.engine)
    with given.out.open("wb") as out:
        for numbered in itertools.islice(enumerate(cases(given.edits, given.mirrors, given.every)), given.limit):
            found = checked_case(*numbered, engine.engine) if engine else list(judged(*numbered))
            found = found or [Judged(numbered[0], numbered[1].kind, "nothing", {}, False, False)]
            out.writelines(encoder.encode(each) + b"\n" for each in found)


def judged(number: int, case: Case) -> Iterator[Judged]:
    wanted = (*case.expected, *case.also_ok)
    for each in candidates.find(case.snapshot, case.offset, case.history.edits()):
        right, exact = verdict(case.snapshot, each, wanted)
        yield Judged(number, case.kind, each.kind, each.features, right, exact)


def checked_case(number: int, case: Case, engine: Engine) -> list[Judged]:
    question = replace(question_of(case, 0.0, engine), asks="always")
    found = next_edit(question.snapshot, question.offset, case.history.edits())
    found = [] if isinstance(found, Silence) else admissible(question, found)
    asked = requests(question, regions_of(question, found))
    heard = [(regions, draft) for regions, wanted in asked for draft in engine.infill(wanted) if draft.final]
    wanted = (*case.expected, *case.also_ok)
    return [
        Judged(
            number,
            case.kind,
            each.candidate.kind,
            each.candidate.features,
            *verdict(question.snapshot, each.candidate, wanted),
            each.candidate.p_edit,
            each.p_model,
            each.agreement,
        )
        for regions, draft in heard
        for each in opinions(question, regions, found, draft)
    ]


if __name__ == "__main__":
    main()
