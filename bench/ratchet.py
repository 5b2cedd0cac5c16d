"""A ratchet: figures that do not depend on the machine may get better, but worse only on purpose.

    python -m bench.ratchet             as in CI: fails if a figure is worse than bench/baseline.json allows
    python -m bench.ratchet --update    keep improved and new figures
    python -m bench.ratchet --accept    accept all figures as they are now

The fake engine answers all committed rows, and each installed model some of them.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from bench.quality.measure import QualityRun, measure
from mercury_engine import model_folders

HERE = Path(__file__).parent
BASELINE = HERE / "baseline.json"
SETS = HERE / "sets"
ROWS_OF_A_MODEL = 24
"""Rows of each set: as many as a model answers in half a minute."""

Better = Literal["higher", "lower", "steady"]

COMPLETIONS: dict[str, tuple[Better, float]] = {
    "exact": ("higher", 0.04),
    "first_line": ("higher", 0.05),
    "similarity": ("higher", 0.03),
    "chrf": ("higher", 3.0),
    "parses": ("higher", 0.06),
    "shown": ("steady", 0.09),
    "right_when_shown": ("higher", 0.09),
    "begins_when_shown": ("higher", 0.09),
    "ece": ("lower", 0.06),
    "passes": ("lower", 0.3),
    "characters_per_pass": ("higher", 0.6),
}
BY_COST = {"passes", "characters_per_pass"}
"""A model's passes depend on their measured cost: only the fake engine's are always the same."""
NEXT_EDITS: dict[str, tuple[Better, float]] = {
    "score": ("higher", 0.03),
    "show": ("higher", 0.09),
    "quiet": ("higher", 0.04),
    "exact": ("higher", 0.06),
    "right_when_shown": ("higher", 0.09),
    "delta_chrf": ("higher", 5.0),
}
"""Which way is better, and by how much a figure may be worse: about what two rows do."""

DROPPED: tuple[Better, float] = ("steady", 0.07)
"""The share of rows with one reason for silence: it shows rules that begin or cease to apply."""


class Watched(Struct, frozen=True):
    """A measured value; it fails if it is worse by more than the tolerance, a steady one if it differs by more."""

    value: float
    tolerance: float
    better: Better

    def worse_by(self, now: float) -> float:
        moved = now - self.value
        return {"higher": -moved, "lower": moved, "steady": abs(moved)}[self.better]


Figures = dict[str, Watched]
Baseline = dict[str, Figures]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="keep what became better")
    parser.add_argument("--accept", action="store_true", help="take everything as it is now")
    given = parser.parse_args()
    before, now = read(BASELINE), measured()
    if given.accept or given.update:
        BASELINE.write_bytes(_written(now if given.accept else merged(before, now)))
    complaints = list(compared(read(BASELINE), now))
    print("\n".join(complaints) or f"{sum(map(len, now.values()))} figures of {', '.join(now)}: none is worse")
    sys.exit(bool(complaints))


def measured(engines: Sequence[str] | None = None) -> Baseline:
    names = (model_folders.FAKE, *model_folders.shipped()) if engines is None else engines
    return {name: figures_of(asyncio.run(measure(_work_of(name)))) for name in names}


def _work_of(engine: str) -> QualityRun:
    limit = None if engine == model_folders.FAKE else ROWS_OF_A_MODEL
    return QualityRun(engine=engine, fim=(SETS / "fim.jsonl",), next_edit=(SETS / "next_edit.jsonl",), limit=limit)


def figures_of(found: Mapping[str, Any]) -> Figures:
    (completions,) = (contenders[found["engine"]] for contenders in found["fim"].values())
    (next_edits,) = found["next_edit"].values()
    moving = () if found["engine"] == model_folders.FAKE else BY_COST
    steady = {name: how for name, how in COMPLETIONS.items() if name not in moving}
    return {
        **watched("completions", completions, steady),
        **watched("next edits", next_edits, NEXT_EDITS),
    }


def watched(name: str, given: Mapping[str, Any], which: Mapping[str, tuple[Better, float]]) -> Figures:
    """Figures to compare; those that are null are left out."""
    values = {figure: _value_of(given[figure]) for figure in which if given[figure] is not None}
    quiet = {reason: round(count / given["n"], 4) for reason, count in given["dropped"].items()}
    return {
        f"{name}: {figure}": Watched(value, which[figure][1], which[figure][0]) for figure, value in values.items()
    } | {f"{name}: quiet, {reason}": Watched(value, DROPPED[1], DROPPED[0]) for reason, value in sorted(quiet.items())}


def _value_of(found: float | Sequence[float]) -> float:
    """The value without its interval."""
    return found if isinstance(found, int | float) else found[0]


def compared(before: Baseline, now: Baseline) -> Iterator[str]:
    """Messages about figures that are worse than before. A missing reason for silence counts as one of no rows."""
    for engine, figures in before.items():
        if engine not in now:
            yield f"{engine}: bench/baseline.json has its figures, but it is not installed"
            continue
        absent = {
            name: Watched(0.0, *DROPPED[::-1]) for name in now[engine].keys() - figures.keys() if "quiet, " in name
        }
        for name, figure in (figures | absent).items():
            found = now[engine].get(name)
            value = found.value if found else 0.0
            if figure.worse_by(value) > figure.tolerance:
                yield (
                    f"{engine}: {name} is {value:g}, was {figure.value:g}; {figure.tolerance:g} is tolerated. "
                    "If it has to be so: python -m bench.ratchet --accept"
                )


def merged(before: Baseline, now: Baseline) -> Baseline:
    """The better of both; steady figures as they are now, if within tolerance."""
    return before | {
        engine: before.get(engine, {})
        | {name: _kept(before.get(engine, {}).get(name), figure) for name, figure in figures.items()}
        for engine, figures in now.items()
    }


def _kept(old: Watched | None, new: Watched) -> Watched:
    if old is None or old.worse_by(new.value) <= (old.tolerance if new.better == "steady" else 0):
        return new
    return old


def read(path: Path) -> Baseline:
    return msgspec.json.decode(path.read_bytes(), type=Baseline) if path.exists() else {}


def _written(baseline: Baseline) -> bytes:
    return msgspec.json.format(msgspec.json.encode(baseline), indent=1) + b"\n"


if __name__ == "__main__":
    main()
