"""The rest of a row of a table, as of constants: made of its key as at least three rows above are made of theirs."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from mercury_ls.code.lexemes import KEYWORDS, PARTS

LEAST_ROWS, MOST_ROWS = 3, 8
LONGEST_ROW = 200
SHORTEST_KEY, SHORTEST_REST = 3, 4
RIGHT = 0.87
"""The share of such rests that are right to the end of their line (docs/log/2026-Q4.md)."""

WORD = re.compile(r"(\w+)")
UNFINISHED = re.compile(r"[\w(]\Z")
JOINTS = ("", "_", "-", " ")
CASES: Mapping[str, Callable[[Sequence[str]], Iterable[str]]] = {
    "lower": lambda parts: (part.lower() for part in parts),
    "UPPER": lambda parts: (part.upper() for part in parts),
    "Title": lambda parts: (part.capitalize() for part in parts),
    "First": lambda parts: (part.lower() if at else part.capitalize() for at, part in enumerate(parts)),
    "camel": lambda parts: (part.capitalize() if at else part.lower() for at, part in enumerate(parts)),
}


def rest_of_row(head: str, above: Iterable[str]) -> str:
    """What follows the beginning of a row, given the rows above it from the nearest on; "" where that is not certain.

    >>> rest_of_row("A.OUT_OF_TIME: ", ['A.DONE: "done",', 'A.LATE_START: "late-start",', 'A.BEGUN: "begun",'])
    '"out-of-time",'
    """
    if not head.strip() or len(head) > LONGEST_ROW or UNFINISHED.search(head):
        return ""
    pieces, key, count = WORD.split(head), "", 0
    frames: dict[str, list[str]] = {}
    for row in islice(above, MOST_ROWS):
        differing, own_key, rest = _differing(row, pieces)
        spelled = _frames(own_key, rest)
        agreeing = {style: frame for style, frame in spelled.items() if not count or frames.get(style) == frame}
        if not agreeing or (count and differing != key):
            break
        frames, key, count = agreeing, differing, count + 1
    spellings = _spellings(key)
    rests = {spellings[style].join(frame) for style, frame in frames.items() if style in spellings}
    rest = rests.pop() if count >= LEAST_ROWS and len(rests) == 1 else ""
    return rest if len(rest.strip()) >= SHORTEST_REST else ""


def _differing(row: str, head: Sequence[str]) -> tuple[str, str, str]:
    """The only word in which a row differs from the head, the row's own, and what follows; all "" if there is none."""
    pieces = WORD.split(row.rstrip()) if len(row) <= LONGEST_ROW else []
    last = len(head) - 1
    begins = len(pieces) > last and pieces[last].startswith(head[last])
    words = [(mine, own) for mine, own in zip(head[:last], pieces, strict=False) if mine != own]
    if not begins or len(words) != 1 or not words[0][0].isidentifier() or words[0][0] in KEYWORDS:
        return "", "", ""
    return *words[0], pieces[last][len(head[last]) :] + "".join(pieces[last + 1 :])


def _frames(key: str, rest: str) -> dict[str, list[str]]:
    """For each way to spell the key that occurs, what is around it."""
    frames: dict[str, list[str]] = {}
    for style, spelled in _spellings(key).items():
        if len(spelled) >= SHORTEST_KEY:
            frame = re.split(rf"(?<![^\W_]){re.escape(spelled)}(?![^\W_])", rest)
            if len(frame) > 1:
                frames[style] = frame
    return frames


def _spellings(word: str) -> dict[str, str]:
    parts = [part for part in PARTS.findall(word) if part.strip("_")]
    styled = {f"{case}{joint}": joint.join(CASES[case](parts)) for case in CASES for joint in JOINTS} if parts else {}
    return {"as it is": word, **styled}
