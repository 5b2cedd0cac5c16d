"""Places where a name that exists is wanted: behind the receiver at the cursor, and behind those that are near."""

import re
from collections import Counter
from keyword import iskeyword

from msgspec import Struct

from mercury_ls.code import syntax
from mercury_ls.code.documents import Snapshot, cached
from mercury_ls.names.known import Ask

__all__ = ["Place", "asked", "at_cursor", "near", "uses"]

MOST_NEAR = 8
NEAR_LINES = 40
LONGEST_FUNCTION = 500

MEMBER = re.compile(r"(?<=[\w)\]}\"'])\.(\w*)\Z")
SIMPLE = r"(?<![\w.)\]}\"'])(?:[^\W\d]\w*\.)*[^\W\d]\w*"
RECEIVER = re.compile(SIMPLE + r"\Z")
RECEIVERS = re.compile(rf"({SIMPLE})\.")
BOUND = re.compile(r"(?:^[ \t]*|\b(?:as|for|in)\s+|[(,]\s*)([^\W\d]\w*)(?=\s*[:=,)]|\s+in\b)", re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.])\d[\d_]*\Z")
FUNCTION = re.compile(r"\s*(?:async\s+)?def\b")
IMPORTING = re.compile(r"\s*(?:from|import)\b")


class Place(Struct, frozen=True):
    """What stands before the dot, in the function that begins with the line `scope`, and what is `typed` behind it up
    to the cursor. At the cursor the dot ends at `at`; elsewhere it would. A `simple` receiver consists of names and
    dots. The place `is_free` where a name that does not exist may be defined."""

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


def at_cursor(snapshot: Snapshot, offset: int) -> Place | None:
    """None in comments and strings, and where no member is being written."""
    head = snapshot.text[snapshot.line_start(snapshot.line_of(offset)) : offset]
    member = MEMBER.search(head)
    if member is None or syntax.inside(snapshot, offset) is not None:
        return None
    before, at = head[: member.start()], offset - len(member[1])
    if NUMBER.search(before):
        return None
    receiver = None if IMPORTING.match(head) else RECEIVER.search(before)
    written = receiver[0] if receiver else before.strip()
    header = scope(snapshot, at)
    is_free = before.strip() == "self" and "__init__" in header
    return Place(written, header, at, member[1], receiver is not None, True, is_free)


def near(snapshot: Snapshot, offset: int) -> list[Place]:
    """The receivers that are likely to be written next: those in the function, then its other names; above all the
    nearest."""
    line = snapshot.line_of(offset)
    header = function_line(snapshot, offset)
    first = snapshot.line_start(max(0, line - NEAR_LINES) if header is None else header)
    text, above = snapshot.text[first:offset], snapshot.text[first : snapshot.line_start(line)]
    names = [*reversed(RECEIVERS.findall(text)), *reversed(BOUND.findall(above))]
    likely = [name for name in dict.fromkeys(names) if not iskeyword(name)]
    here = scope(snapshot, offset)
    return [Place(name, here, offset) for name in likely[:MOST_NEAR]]


def scope(snapshot: Snapshot, offset: int) -> str:
    """The first line of the function around an offset; "" outside of functions."""
    header = function_line(snapshot, offset)
    return "" if header is None else snapshot.line(header).strip()


@cached
def function_line(snapshot: Snapshot, offset: int) -> int | None:
    """The line where the function around an offset begins, by indentation: code that is being written parses badly."""
    line = snapshot.line_of(offset)
    head = snapshot.text[snapshot.line_start(line) : offset]
    inner = len(head) - len(head.lstrip())
    for above in range(line - 1, max(-1, line - LONGEST_FUNCTION), -1):
        text = snapshot.line(above)
        indent = len(text) - len(text.lstrip())
        if text.strip() and indent < inner:
            if FUNCTION.match(text):
                return above
            inner = indent
    return None


def asked(snapshot: Snapshot, place: Place) -> Ask:
    """At the cursor the text as it is; about another receiver, as if it stood in a line of its own above the cursor."""
    line = snapshot.line_of(place.at)
    start, own = snapshot.line_start(line), snapshot.line(line)
    if place.is_cursor:
        return asking(snapshot, snapshot.text, line, place.at - start)
    indent = own[: len(own) - len(own.lstrip())]
    text = f"{snapshot.text[:start]}{indent}{place.receiver}._\n{snapshot.text[start:]}"
    return asking(snapshot, text, line, len(indent) + len(place.receiver) + 1)


def asking(snapshot: Snapshot, text: str, line: int, column: int) -> Ask:
    return Ask(snapshot.path, text, line + 1, column, uri=snapshot.uri, version=snapshot.version)


def uses(text: str, place: Place) -> Counter[str]:
    """How often each member of a simple receiver is used in a text; the one that is being written does not count."""
    if not place.simple:
        return Counter()
    letters = re.escape(place.receiver)  # first in the pattern: it is found far faster than after a lookbehind
    pattern = re.compile(rf"{letters}(?<![\w.]{letters})\.([^\W\d]\w*)")
    return Counter(found[1] for found in pattern.finditer(text) if place.at not in found.span(1))
