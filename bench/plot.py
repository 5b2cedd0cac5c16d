"""Line plots as small SVG texts: what the benchmarks draw into docs/."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["Lines", "write"]

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 420, 64, 40, 150, 48
COLOURS = ("#1b5e9e", "#c4521b", "#2a7f3f", "#7a3fa0", "#a8892b", "#555555", "#b0316f", "#2a8c8c")

Lines = Mapping[str, Sequence[tuple[float, float]]]


def write(path: Path, title: str, x: str, y: str, lines: Lines) -> None:
    """One line for each name; the axes begin at zero, so that nothing looks steeper than it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(draw(title, x, y, lines), encoding="utf-8")


def draw(title: str, x: str, y: str, lines: Lines) -> str:
    most_x = nice(max(point[0] for points in lines.values() for point in points))
    most_y = nice(max(point[1] for points in lines.values() for point in points))
    parts = [text(LEFT, 22, title, size=15), *grid(most_x, most_y), *labels(x, y)]
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        placed = [place(px / most_x, py / most_y) for px, py in points]
        path = " ".join(f"{'L' if i else 'M'}{px:.1f} {py:.1f}" for i, (px, py) in enumerate(placed))
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/>' for px, py in placed]
        parts.append(text(WIDTH - RIGHT + 16, TOP + 14 + 18 * number, name, colour))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">\n'
        '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def grid(most_x: float, most_y: float) -> list[str]:
    parts = []
    for step in range(5):
        share = step / 4
        (left, y), (right, _) = place(0, share), place(1, share)
        parts.append(f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" stroke="#ddd"/>')
        parts.append(text(left - 8, y + 4, f"{most_y * share:g}", anchor="end"))
        x, bottom = place(share, 0)
        parts.append(text(x, bottom + 18, f"{most_x * share:g}", anchor="middle"))
    return parts


def labels(x: str, y: str) -> list[str]:
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [text(middle, HEIGHT - 10, x, anchor="middle"), text(8, TOP - 6, y)]


def text(x: float, y: float, content: str, colour: str = "#333", size: int = 12, anchor: str = "start") -> str:
    escaped = content.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" text-anchor="{anchor}">{escaped}</text>'


def place(x: float, y: float) -> tuple[float, float]:
    return LEFT + x * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y * (HEIGHT - TOP - BOTTOM)


def nice(value: float) -> float:
    """The next round number above: 1, 2, 2.5, 4, 5 or 8 times a power of ten."""
    power = 10 ** math.floor(math.log10(max(value, 1e-9)))
    return next(step * power for step in (1, 2, 2.5, 4, 5, 8, 10) if step * power >= value)
