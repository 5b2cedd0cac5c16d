"""Places that need an existing member: at the cursor or near it."""

import re
from keyword import iskeyword

from msgspec import Struct

from mercury_ls.code import syntax
from mercury_ls.code.documents import Snapshot, cached
from mercury_ls.names.known import NamesRequest

MOST_NEAR = 8
NEAR_LINES = 40
LONGEST_FUNCTION = 500

LONGEST_HEADER = 400

JOINT = r"(?:\?\.|\.|::|->)"
MEMBER = re.compile(rf"(?<=[\w)\]}}\"'!]){JOINT}(#?\w*)\Z")
SIMPLE = rf"(?<![\w.)\]}}\"'>:$])(?:\$?[^\W\d]\w*+{JOINT})*\$?[^\W\d]\w*+"
RECEIVER = re.compile(SIMPLE + r"\Z")
RECEIVERS = re.compile(rf"({SIMPLE})\.")
BOUND = re.compile(
    r"(?:^[ \t]*|\b(?:as|const|for|in|let|mut|var)\s+|[(,]\s*)([^\W\d]\w*)(?=\s*:?[:=,)]|\s+in\b)", re.MULTILINE
)
NUMBER = re.compile(r"(?<![\w.])\d[\d_]*\Z")


class NamePlace(Struct, frozen=True):
    """The expression before the dot, in the function that begins with the line `scope`, and the text `typed` behind it
    up to the cursor. At the cursor the dot ends at `at`; elsewhere it would. A `simple` receiver consists of names and
    dots. The place `is_free` where a new name may be defined."""

    receiver: str
    scope: str
    at: int
    typed: str = ""
    simple: bool = True
    is_cursor: bool = False
    is_free: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.receiver, self.scope


def at_cursor(snapshot: Snapshot, offset: int) -> list[NamePlace]:
    """The member being written; none in comments and strings."""
    member = _member_at(snapshot, offset) if syntax.inside(snapshot, offset) is None else None
    return [member] if member else []


def _member_at(snapshot: Snapshot, offset: int) -> NamePlace | None:
    head = snapshot.text[snapshot.line_start(snapshot.line_of(offset)) : offset]
    member = MEMBER.search(head)
    if member is None:
        return None
    before, at = head[: member.start()], offset - len(member[1])
    if NUMBER.search(before):
        return None
    receiver = RECEIVER.search(before)
    text = receiver[0] if receiver else before.strip()
    header = scope(snapshot, at)
    is_free = before.strip() == "self" and "__init__" in header
    return NamePlace(text, header, at, member[1], receiver is not None, True, is_free)


def near(snapshot: Snapshot, offset: int) -> list[NamePlace]:
    """The receivers likely to be written next: those in the function, then its other names, nearest first, then the
    parameters of the functions around it."""
    line = snapshot.line_of(offset)
    header = _function_line(snapshot, offset)
    first = snapshot.line_start(max(0, line - NEAR_LINES) if header is None else header)
    text, above = snapshot.text[first:offset], snapshot.text[first : snapshot.line_start(line)]
    names = [*reversed(RECEIVERS.findall(text)), *reversed(BOUND.findall(above))]
    while header is not None and (header := _function_line(snapshot, snapshot.line_end(header))) is not None:
        names += reversed(BOUND.findall(snapshot.line(header)))
    likely = [name for name in dict.fromkeys(names) if not iskeyword(name)]
    reach = scope(snapshot, offset)
    return [NamePlace(name, reach, offset) for name in likely[:MOST_NEAR]]


def scope(snapshot: Snapshot, offset: int) -> str:
    """The first line of the function around an offset; "" outside functions."""
    header = _function_line(snapshot, offset)
    return "" if header is None else snapshot.line(header).strip()


@cached
def _function_line(snapshot: Snapshot, offset: int) -> int | None:
    """The line where the function around an offset begins, by indentation: code that is being written parses badly."""
    if not snapshot.written_in.header:
        return None
    header, line = syntax.header_pattern(snapshot.written_in), snapshot.line_of(offset)
    head = snapshot.text[snapshot.line_start(line) : offset]
    inner = len(head) - len(head.lstrip())
    for above in range(line - 1, max(-1, line - LONGEST_FUNCTION), -1):
        text = snapshot.line(above)
        indent = len(text) - len(text.lstrip())
        if text.strip() and indent < inner:
            if header.match(text[:LONGEST_HEADER]):
                return above
            inner = indent
    return None


def asked(snapshot: Snapshot, place: NamePlace) -> NamesRequest:
    """The request: at the cursor with the text as it is; for another receiver, as if it were on its own line above the
    cursor."""
    line = snapshot.line_of(place.at)
    start, own = snapshot.line_start(line), snapshot.line(line)
    text, column = snapshot.text, place.at - start
    if not place.is_cursor:
        above = f"{own[: len(own) - len(own.lstrip())]}{place.receiver}."
        text, column = f"{text[:start]}{above}_\n{text[start:]}", len(above)
    return NamesRequest(snapshot.path, text, line + 1, column, snapshot.uri, snapshot.version)


def uses(text: str, place: NamePlace) -> list[str]:
    """The members of a simple receiver that a text uses, without the one being written."""
    if not place.simple:
        return []
    letters = re.escape(place.receiver)  # first in the pattern: a lookbehind in front makes it far slower
    pattern = re.compile(rf"{letters}(?<![\w.]{letters}){JOINT}([^\W\d]\w*)")
    return [match[1] for match in pattern.finditer(text) if place.at not in match.span(1)]
