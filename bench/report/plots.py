"""The plots of a report."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mercury_training import plot

Figures = Mapping[str, Any]

TYPED = {
    "draft": "first draft",
    "inline": "suggestion",
    "model": "or silence",
    "cold": "file just opened",
    "cached": "typed through",
    "next_edit": "next edit",
}


def draw(found: Figures, out: Path) -> None:
    """Draw all plots that there are figures for, and remove those of an earlier report."""
    for name, (title, x, y, lines_of, logarithmic) in PLOTS.items():
        (out / f"{name}.svg").unlink(missing_ok=True)
        if lines := lines_of(found):
            plot.write(out / f"{name}.svg", title, x, y, lines, logarithmic=logarithmic)


def drawn(found: Figures) -> dict[str, str]:
    """The files and titles of the plots that there are figures for."""
    return {f"{name}.svg": title for name, (title, _, _, lines_of, _) in PLOTS.items() if lines_of(found)}


def _latencies(found: Figures) -> plot.Lines:
    """The share of answers to the same rows, once the context is read, within a number of milliseconds."""
    return {
        name: [(ms, int(percent[1:]) / 100) for percent, ms in contender["milliseconds"].items()]
        for name, contender in _contenders(found, "peers")
        if contender["milliseconds"]
    }


def passes(found: Figures) -> plot.Lines:
    return {
        name: list(enumerate(contender["similarity_after_passes"], 1))
        for name, contender in _contenders(found, "peers")
        if any(contender["similarity_after_passes"])
    }


def _calibration(found: Figures) -> plot.Lines:
    """One line for each set and for next edits, and the diagonal."""
    given = dict(_contenders(found, "quality", sets=True)) | {
        f"{name}, next edits": edits for name, edits in found.get("quality", {}).get("next_edit", {}).items()
    }
    lines = {
        name: [(each["confidence"], each["accuracy"]) for each in part["reliability"]]
        for name, part in given.items()
        if len(part["reliability"]) > 1
    }
    return {**lines, "as it should be": [(0, 0), (1, 1)]} if lines else {}


def typing(found: Figures) -> plot.Lines:
    """The share of answers within a number of milliseconds, from the replay of the sessions."""
    levels = found.get("replay", {}).get("levels", {})
    return {what: _shares(levels[name]) for name, what in TYPED.items() if levels.get(name)}


def _shares(levels: Sequence[float]) -> list[tuple[float, float]]:
    return [(ms, number / (len(levels) - 1)) for number, ms in enumerate(levels)]


def memory(found: Figures) -> plot.Lines:
    crowds = found.get("load", {}).get("crowds", {})
    lines = {
        "engine, sessions replayed": found.get("replay", {}).get("engine_memory_mb", []),
        **{f"engine, {number} editors": crowd["engine_memory_mb"] for number, crowd in list(crowds.items())[-1:]},
        "engine and editor, rows": found.get("quality", {}).get("memory_mb", []),
    }
    return {name: list(map(tuple, line)) for name, line in lines.items() if line}


def crowds(found: Figures) -> plot.Lines:
    given = found.get("load", {}).get("crowds", {})
    return {
        what: [(int(editors), crowd[name]) for editors, crowd in given.items() if crowd[name] is not None]
        for what, name in (("half of them", "p50_ms"), ("nine of ten", "p90_ms"))
        if any(crowd[name] is not None for crowd in given.values())
    }


def _contenders(found: Figures, run: str, *, sets: bool = False) -> Iterator[tuple[str, Figures]]:
    """The contenders on the first set; with `sets`, the first contender on each set."""
    given = found.get(run, {}).get("fim", {})
    if sets:
        yield from ((name, next(iter(part.values()))) for name, part in given.items())
    else:
        yield from next(iter(given.values()), {}).items()


PLOTS = {
    "latency-typing": ("Answered while typing, the committed sessions", "milliseconds", "share", typing, True),
    "latency-peers": ("The same rows answered, context read", "milliseconds", "share of answers", _latencies, True),
    "latency-editors": ("Answered to several editors at once", "editors", "milliseconds", crowds, False),
    "quality-passes": ("Likeness of the draft to the true text", "passes", "similarity", passes, False),
    "memory": ("Memory over time", "minutes", "MB", memory, False),
    "calibration": ("P(accept) against what is right", "predicted", "share that is exact", _calibration, False),
}
