"""The loss curve of a run: its log as one picture."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from mercury_training import jsonl, plot

LOSSES = ("clean", "canvas", "held_out_clean", "held_out_canvas")
HIGHEST = 10.0
SMOOTHING = 0.9


def draw(log: Path, picture: Path) -> None:
    """Draw the losses of a run's log over millions of positions; those of single updates are smoothed."""
    entries = [entry for entry in jsonl.read(log, dict) if "step" in entry]
    lines = {
        name.replace("_", " "): _line(entries, name)
        for name in LOSSES
        if any(entry.get(name) is not None for entry in entries)
    }
    plot.write(picture, "Loss", "million positions", "nats", lines, zoomed=True)


def _line(entries: Iterable[Mapping[str, float]], name: str) -> list[tuple[float, float]]:
    points = [(entry["positions"] / 1e6, entry[name]) for entry in entries if entry.get(name) is not None]
    smoothing = 0 if name.startswith("held_out") else SMOOTHING
    smooth: list[tuple[float, float]] = []
    for number, (x, y) in enumerate(points):
        share = min(smoothing, number / (number + 1))
        smooth.append((x, share * smooth[-1][1] + (1 - share) * y if smooth else y))
    return [(x, min(y, HIGHEST)) for x, y in smooth]
