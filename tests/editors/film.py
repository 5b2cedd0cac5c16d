"""A recorded terminal as an animated SVG without scripts or fonts of its own, so that it plays inside `<img>`."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

import pyte

__all__ = ["Cell", "Frame", "Style", "draw", "photograph"]

WIDTH, HEIGHT, SIZE, BASELINE = 9, 20, 15, 15
BAR, FOOT, SIDE = 36, 46, 12
FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
BACKGROUND, FOREGROUND, CHROME, CURSOR = "#1e1e2e", "#cdd6f4", "#181825", "#f5e0dc"
KEY, CAPTION = "#313244", "#bac2de"
LIGHTS = ("#f38ba8", "#f9e2af", "#a6e3a1")
NAMED = {
    "default": "",
    "black": "#585b70",
    "red": "#f38ba8",
    "green": "#a6e3a1",
    "brown": "#f9e2af",
    "blue": "#89b4fa",
    "magenta": "#f5c2e7",
    "cyan": "#94e2d5",
    "white": "#bac2de",
}
"""The terminal's own colours, bright or not."""


class Style(NamedTuple):
    ink: str = ""
    paper: str = ""
    bold: bool = False
    italic: bool = False
    underline: bool = False
    struck: bool = False


class Cell(NamedTuple):
    text: str
    style: Style


Row = tuple[Cell, ...]


class Frame(NamedTuple):
    """What the terminal shows for some seconds, the key that was pressed last, and a sentence about it."""

    seconds: float
    rows: tuple[Row, ...]
    cursor: tuple[int, int]
    inserts: bool
    key: str
    caption: str


def photograph(screen: pyte.Screen) -> tuple[Row, ...]:
    return tuple(tuple(runs([screen.buffer[y][x] for x in range(screen.columns)])) for y in range(screen.lines))


def runs(cells: Sequence[pyte.screens.Char]) -> Iterator[Cell]:
    for style, group in groupby(cells, styled):
        yield Cell("".join(cell.data for cell in group), style)


def styled(cell: pyte.screens.Char) -> Style:
    ink, paper = colour(cell.fg), colour(cell.bg)
    if cell.reverse:
        ink, paper = paper or BACKGROUND, ink or FOREGROUND
    return Style(ink, paper, cell.bold, cell.italics, cell.underscore, cell.strikethrough)


def colour(name: str) -> str:
    return NAMED.get(name.removeprefix("bright"), f"#{name}")


def draw(frames: Sequence[Frame], title: str) -> str:
    """All frames one below the other, moved past a window. Where nothing moves, the one that stands longest is seen."""
    columns = sum(len(cell.text) for cell in frames[0].rows[0])
    lines = len(frames[0].rows)
    width, inner = columns * WIDTH + 2 * SIDE, lines * HEIGHT
    height, step = BAR + inner + FOOT, inner + FOOT
    rows: dict[Row, str] = {}
    film = [picture(frame, number * step, rows) for number, frame in enumerate(frames)]
    known = [f'<g id="{name}">{"".join(paint(row))}</g>' for row, name in rows.items()]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" aria-label={quoteattr(title)}>',
            f"<title>{escape(title)}</title>",
            f"<style>{css(frames, step)}</style>",
            "<defs>",
            *known,
            f'<clipPath id="w"><rect width="{width}" height="{step}"/></clipPath>',
            "</defs>",
            *window(width, height, title),
            f'<g transform="translate(0 {BAR})" clip-path="url(#w)"><g class="f">',
            *film,
            "</g></g>",
            "</svg>\n",
        ]
    )


def css(frames: Sequence[Frame], step: int) -> str:
    total, begun = sum(frame.seconds for frame in frames), 0.0
    poster = max(range(len(frames)), key=lambda number: frames[number].seconds)
    stops = []
    for number, frame in enumerate(frames):
        stops.append(f"{begun / total:.3%}{{transform:translateY({-number * step}px)}}")
        begun += frame.seconds
    return (
        f"text{{font:{SIZE}px {FONT};white-space:pre;fill:{FOREGROUND}}}"
        f".f{{transform:translateY({-poster * step}px);animation:f {total:.2f}s step-end infinite}}"
        f"@keyframes f{{{''.join(stops)}}}"
        "@media(prefers-reduced-motion:reduce){.f{animation:none}}"
    )


def window(width: int, height: int, title: str) -> Iterator[str]:
    yield f'<rect width="{width}" height="{height}" rx="10" fill="{BACKGROUND}"/>'
    yield f'<path d="M0 {BAR}V10a10 10 0 0 1 10-10H{width - 10}a10 10 0 0 1 10 10V{BAR}z" fill="{CHROME}"/>'
    for number, light in enumerate(LIGHTS):
        yield f'<circle cx="{20 + 20 * number}" cy="{BAR // 2}" r="6" fill="{light}"/>'
    yield f'<text x="{width // 2}" y="{BAR // 2 + 5}" text-anchor="middle" style="fill:#9399b2">{escape(title)}</text>'


def picture(frame: Frame, top: int, rows: dict[Row, str]) -> str:
    parts = []
    for number, row in enumerate(frame.rows):
        if any(cell.text.strip() or cell.style.paper for cell in row):
            name = rows.setdefault(row, f"r{len(rows)}")
            parts.append(f'<use href="#{name}" y="{top + number * HEIGHT}"/>')
    y, x = frame.cursor
    left, up = SIDE + x * WIDTH, top + y * HEIGHT
    wide, dim = (2, "") if frame.inserts else (WIDTH, ' fill-opacity=".55"')
    parts.append(f'<rect x="{left}" y="{up}" width="{wide}" height="{HEIGHT}" fill="{CURSOR}"{dim}/>')
    return "".join([*parts, *footer(frame, top + len(frame.rows) * HEIGHT)])


def footer(frame: Frame, top: int) -> Iterator[str]:
    left = SIDE + 8
    if frame.key:
        wide = len(frame.key) * WIDTH + 18
        yield f'<rect x="{left}" y="{top + 11}" width="{wide}" height="25" rx="5" fill="{KEY}" stroke="#585b70"/>'
        yield f'<text x="{left + 9}" y="{top + 28}">{escape(frame.key)}</text>'
        left += wide + 14
    yield f'<text x="{left}" y="{top + 28}" style="fill:{CAPTION}">{escape(frame.caption)}</text>'


def paint(row: Row) -> Iterator[str]:
    """A row's backgrounds, then its text, each piece held to the width of its cells whatever the font."""
    left = SIDE
    ends = SIDE + sum(len(cell.text) for cell in row) * WIDTH
    for cell in row:
        wide = len(cell.text) * WIDTH
        if cell.style.paper not in ("", BACKGROUND):
            first, last = left == SIDE, left + wide == ends
            x, across = left - SIDE * first, wide + SIDE * (first + last)
            yield f'<rect x="{x}" width="{across}" height="{HEIGHT}" fill="{cell.style.paper}"/>'
        left += wide
    left = SIDE
    for cell in row:
        text = cell.text.strip(" ")
        if text:
            x = left + WIDTH * (len(cell.text) - len(cell.text.lstrip(" ")))
            length = f' textLength="{len(text) * WIDTH}"' if len(text) > 1 else ""
            yield f'<text x="{x}" y="{BASELINE}"{length}{attributes(cell.style)}>{escape(text)}</text>'
        left += len(cell.text) * WIDTH


def attributes(style: Style) -> str:
    parts = [f"fill:{style.ink}"] if style.ink else []
    parts += ["font-weight:bold"] if style.bold else []
    parts += ["font-style:italic"] if style.italic else []
    lines = " ".join(name for name, on in (("underline", style.underline), ("line-through", style.struck)) if on)
    parts += [f"text-decoration:{lines}"] if lines else []
    return f' style="{";".join(parts)}"' if parts else ""
