"""Line plots as small SVG files: the curve of a training run, the figures of the benchmarks."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 420, 64, 40, 170, 48
COLOURS = ("#1b5e9e", "#c4521b", "#2a7f3f", "#7a3fa0", "#a8892b", "#555555", "#b0316f", "#2a8c8c")
MOST_MARKED = 12
"""Lines with more points are drawn without markers."""

Lines = Mapping[str, Sequence[tuple[float, float]]]


class _Axis:
    """Maps values to positions between the axis' ends, 0 to 1, and lists the values at which it is labelled."""

    def __init__(self, place: Callable[[float], float], ticks: Sequence[float]):
        self.place = place
        self.ticks = ticks


def write(path: Path, title: str, x: str, y: str, lines: Lines, **axes: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(draw(title, x, y, lines, **axes), encoding="utf-8")


def draw(title: str, x: str, y: str, lines: Lines, *, logarithmic: bool = False, zoomed: bool = False) -> str:
    """Draw one line for each name. Axes begin at zero, so that nothing looks steeper than it is, unless x is
    logarithmic, for values of very different size, or y is zoomed in on the actual values."""
    points = [point for line in lines.values() for point in line] or [(1.0, 1.0)]
    across = decades([point[0] for point in points]) if logarithmic else from_zero([point[0] for point in points])
    up = (_between if zoomed else from_zero)([point[1] for point in points])
    parts = [_text(LEFT, 16, title, size=15), *_grid(across, up), *_labels(x, y)]
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        placed = [_place(across.place(px), up.place(py)) for px, py in line]
        path = " ".join(f"{'L' if i else 'M'}{px:.1f} {py:.1f}" for i, (px, py) in enumerate(placed))
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        marked = placed if len(placed) <= MOST_MARKED else []
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/>' for px, py in marked]
        parts.append(_text(WIDTH - RIGHT + 16, TOP + 14 + 18 * number, name, colour))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">\n'
        '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def from_zero(values: Sequence[float]) -> _Axis:
    highest = _nice(max(values))
    return _Axis(lambda value: value / highest, [highest * step / 4 for step in range(5)])


def _between(values: Sequence[float]) -> _Axis:
    """An axis from the least value to the largest, however close they are."""
    low = min(values)
    width = max(max(values) - low, 1e-9)
    return _Axis(lambda value: (value - low) / width, [low + width * step / 4 for step in range(5)])


def decades(values: Sequence[float]) -> _Axis:
    """An axis from a power of ten to a power of ten; values below a ten thousandth of the largest are cut off."""
    last = math.ceil(math.log10(max(values)))
    first = max(math.floor(math.log10(max(min(values), 1e-9))), last - 4)
    first = min(first, last - 1)
    return _Axis(
        lambda value: max(math.log10(max(value, 1e-9)) - first, 0) / (last - first),
        [10.0**power for power in range(first, last + 1)],
    )


def _grid(across: _Axis, up: _Axis) -> list[str]:
    parts = []
    for value in up.ticks:
        (start, y), (end, _) = _place(0, up.place(value)), _place(1, up.place(value))
        parts.append(f'<path d="M{start:.1f} {y:.1f}H{end:.1f}" stroke="#ddd"/>')
        parts.append(_text(start - 8, y + 4, f"{value:.4g}", anchor="end"))
    for value in across.ticks:
        x, bottom = _place(across.place(value), 0)
        parts.append(_text(x, bottom + 18, f"{value:g}", anchor="middle"))
    return parts


def _labels(x: str, y: str) -> list[str]:
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [_text(middle, HEIGHT - 10, x, anchor="middle"), _text(8, TOP - 10, y)]


def _text(x: float, y: float, content: str, colour: str = "#333", size: int = 12, anchor: str = "start") -> str:
    escaped = content.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" text-anchor="{anchor}">{escaped}</text>'


def _place(x: float, y: float) -> tuple[float, float]:
    return LEFT + x * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y * (HEIGHT - TOP - BOTTOM)


def _nice(value: float) -> float:
    """The next round number above: 1, 2, 2.5, 4, 5 or 8 times a power of ten."""
    power = 10 ** math.floor(math.log10(max(value, 1e-9)))
    return next(step * power for step in (1, 2, 2.5, 4, 5, 8, 10) if step * power >= value * (1 - 1e-9))
