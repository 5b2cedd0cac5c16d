"""Rows of the evaluation sets, files with a missing piece: read in place, and requested as an editor would."""

import gzip
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from mercury_engine.api import Gap
from mercury_training import jsonl
from mercury_training.corpus.sources import git
from mercury_training.errors import TrainingError

T = TypeVar("T")

Kind = Literal["single_line", "multi_line", "random_span"]

HUMANEVAL: dict[str, tuple[str, Kind]] = {
    "single-line": ("HumanEval-SingleLineInfilling.jsonl.gz", "single_line"),
    "multi-line": ("HumanEval-MultiLineInfilling.jsonl.gz", "multi_line"),
    "random-span": ("HumanEval-RandomSpanInfilling.jsonl.gz", "random_span"),
    "random-span-light": ("HumanEval-RandomSpanInfillingLight.jsonl.gz", "random_span"),
}

BUDGET: dict[Kind, int] = {"single_line": 64, "multi_line": 128, "random_span": 128}


class FimRow(Struct, frozen=True, kw_only=True):
    """A file with a missing piece. `copy`: the piece occurs elsewhere in the file too. `exec`: how to run it."""

    id: str
    repo: str
    commit: str
    licence: str
    path: str
    language: str
    kind: Kind
    sub: str = ""
    copy: bool = False
    exec: dict[str, Any] | None = None
    prefix: str
    suffix: str
    middle: str


class _HumanEvalProblem(Struct, frozen=True):
    """A row of HumanEval-Infilling."""

    task_id: str
    entry_point: str
    prompt: str
    suffix: str
    canonical_solution: str
    test: str


def read_rows(path: Path) -> list[FimRow]:
    return list(jsonl.read(path, FimRow))


def sample(rows: Sequence[T], limit: int | None = None) -> list[T]:
    """The rows shuffled, the same way every time, so that a limit samples all of them."""
    return random.Random(0).sample(rows, len(rows))[:limit]


def read_humaneval(source: Path, name: str) -> list[FimRow]:
    """Read from a file, a folder with the files, or a clone of the repository, bare or not."""
    file, kind = HUMANEVAL[name]
    problems = msgspec.json.Decoder(_HumanEvalProblem)
    return [_row(problems.decode(line), kind) for line in gzip.decompress(_stored(source, file)).splitlines()]


def gap(row: FimRow, session: str, effort: Literal["instant", "low", "medium", "high"]) -> Gap:
    """The gap, of which it is known whether one line is wanted, and nothing else about the answer."""
    return Gap(
        session=session,
        path=row.path,
        language=row.language,
        before=row.prefix,
        after=row.suffix,
        block=row.kind != "single_line",
        most_tokens=BUDGET[row.kind],
        effort=effort,
    )


def _stored(source: Path, file: str) -> bytes:
    if source.is_file():
        return source.read_bytes()
    for folder in (source, source / "data"):
        if (folder / file).is_file():
            return (folder / file).read_bytes()
    if (source / "HEAD").is_file() or (source / ".git").exists():
        return git(str(source), "show", f"HEAD:data/{file}")
    raise TrainingError(f"{source}: no {file} here; name it, its folder, or a clone of openai/human-eval-infilling")


def _row(problem: _HumanEvalProblem, kind: Kind) -> FimRow:
    """A row; whole lines are requested on an empty line that already has its end."""
    middle, suffix = problem.canonical_solution, problem.suffix
    if kind != "random_span" and middle.endswith("\n"):
        middle, suffix = middle[:-1], "\n" + suffix
    return FimRow(
        id=problem.task_id,
        repo="openai/human-eval-infilling",
        commit="",
        licence="MIT",
        path="solution.py",
        language="python",
        kind=kind,
        exec={"type": "humaneval", "test": problem.test, "entry_point": problem.entry_point},
        prefix=problem.prompt,
        suffix=suffix,
        middle=middle,
    )
