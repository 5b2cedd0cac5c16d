"""The curve of a run: its log as one small SVG picture, losses over positions."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

__all__ = ["draw", "plot"]

WIDTH, HEIGHT, MARGIN = 840, 420, 48
COLOURS = {"clean": "#3366cc", "canvas": "#dc3912", "held_out_clean": "#0b2a66", "held_out_canvas": "#7a1a06"}
HIGHEST = 10.0
SMOOTHING = 0.9


def plot(log: Path, picture: Path) -> None:
    """Draw the steps of a JSON-lines log."""
    entries = [msgspec.json.decode(line) for line in log.read_bytes().splitlines()]
    picture.write_text(draw([entry for entry in entries if "step" in entry]), encoding="utf-8")


def draw(entries: Sequence[Mapping[str, float]]) -> str:
    """An SVG text with a line for each of `COLOURS` that the entries hold, over positions in millions."""
    end = max([entry["positions"] for entry in entries], default=1)
    values = [entry[name] for entry in entries for name in COLOURS if entry.get(name) is not None]
    bottom = min([*values, HIGHEST - 1])
    top = min(HIGHEST, max([*values, bottom + 1]))
    parts = [_grid(end, bottom, top)]
    for number, (name, colour) in enumerate(COLOURS.items()):
        points = [(e["positions"] / end, e[name]) for e in entries if e.get(name) is not None]
        smooth = 0 if name.startswith("held_out") else SMOOTHING
        parts.append(_line(_smoothed(points, smooth), bottom, top, colour))
        parts.append(_text(WIDTH - 150, MARGIN + 16 * number, name.replace("_", " "), colour))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def _smoothed(points: list[tuple[float, float]], share: float) -> list[tuple[float, float]]:
    smooth: list[tuple[float, float]] = []
    for number, (x, y) in enumerate(points):
        kept = min(share, number / (number + 1))
        smooth.append((x, kept * smooth[-1][1] + (1 - kept) * y if smooth else y))
    return smooth


def _grid(end: float, bottom: float, top: float) -> str:
    lines = []
    for number in range(6):
        level = bottom + (top - bottom) * number / 5
        y = _y(level, bottom, top)
        lines.append(f'<path d="M{MARGIN} {y:.1f}H{WIDTH - MARGIN}" stroke="#ddd"/>')
        lines.append(_text(8, y + 4, f"{level:.2f}", "#444"))
        x = MARGIN + (WIDTH - 2 * MARGIN) * number / 5
        lines.append(_text(x - 12, HEIGHT - MARGIN + 20, f"{end * number / 5e6:.1f} M", "#444"))
    return "\n".join(lines)


def _line(points: list[tuple[float, float]], bottom: float, top: float, colour: str) -> str:
    places = " ".join(f"{MARGIN + (WIDTH - 2 * MARGIN) * x:.1f},{_y(min(y, top), bottom, top):.1f}" for x, y in points)
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _y(level: float, bottom: float, top: float) -> float:
    return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (level - bottom) / (top - bottom)


def _text(x: float, y: float, words: str, colour: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}">{words}</text>'
