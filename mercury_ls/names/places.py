"""Places that need an existing name: a member at the cursor or near it, an argument, an import."""

import re
from collections import Counter
from keyword import iskeyword

from msgspec import Struct

from mercury_engine.api import NameRole
from mercury_ls.code import syntax
from mercury_ls.code.brackets import split, unquoted
from mercury_ls.code.documents import Snapshot, cached
from mercury_ls.code.modules import family
from mercury_ls.names.known import NamesRequest

MOST_NEAR = 8
NEAR_LINES = 40
LONGEST_FUNCTION = 500

LONGEST_CALL = 2000
LONGEST_IMPORT = 2000
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
IMPORTS = {
    "python": re.compile(
        r"^[ \t]*+(?:from[ \t]++(?P<module>[\w.]++)[ \t]++import\b[ \t]*+(?:\([^()]*?|[^()\n]*?)(?<!\w)"
        r"|(?:from|import)[ \t]++(?:[\w. \t]*+,)*+[ \t]*+(?P<package>(?:\w*+\.)*+))(?P<typed>\w*+)\Z",
        re.MULTILINE,
    ),
    "javascript": re.compile(
        r"^[ \t]*+(?:import|export)\b(?:[^;{}=\n]|\n(?![ \t]*+(?:import|export)\b))*+\{[^{}]*?(?<!\w)(?P<typed>\w*+)\Z",
        re.MULTILINE,
    ),
    "rust": re.compile(
        r"^[ \t]*+(?:pub(?:\([^)]*\))?[ \t]++)?use[ \t]++(?P<module>\w++(?:::\w++)*)::"
        r"(?:\{[^{}]*?(?<!\w))?(?P<typed>\w*+)\Z",
        re.MULTILINE,
    ),
}
SOURCE = re.compile(r"[^{}]*\}\s*from\s*[\"']([^\"'\n]+)[\"']")
NO_CALL = re.compile(
    r"(?:\b(?:def|class|fn|func|function|fun)\s+(?:\([^)]*\)\s*)?[\w.:]+|\b(?:if|while|for|switch|catch|match|return|and|or"
    r"|not|in|is|elif|assert|del|yield|await|except|lambda|with|import|print!|function|func|fn|typeof|sizeof))\Z"
)
BODY = re.compile(r"\s*(?:enum|fn|for|func|if|impl|match|mod|pub|struct|switch|trait|type|union|unsafe|use|while)\b")
NAMED = re.compile(r"\s*(\w+)\s*[=:](?!=)")
OPENED_BY, OPENING = {")": "(", "]": "[", "}": "{"}, frozenset("([{")


class NamePlace(Struct, frozen=True):
    """The expression before the dot, in the function that begins with the line `scope`, and the text `typed` behind it
    up to the cursor. At the cursor the dot ends at `at`; elsewhere it would. A `simple` receiver consists of names and
    dots. The place `is_free` where a new name may be defined.

    The receiver of a `keyword` is the function that is called, and `at` is behind its parenthesis; that of an `import`
    is the module.
    """

    receiver: str
    scope: str
    at: int
    typed: str = ""
    simple: bool = True
    is_cursor: bool = False
    is_free: bool = False
    role: NameRole = "member"

    @property
    def key(self) -> tuple[str, str, str]:
        return self.role, self.receiver, self.scope


def at_cursor(snapshot: Snapshot, offset: int) -> list[NamePlace]:
    """The import being written, or the member and the argument; none in comments and strings."""
    if syntax.inside(snapshot, offset) is not None:
        return []
    if imported := _import_at(snapshot, offset):
        return [imported]
    return [place for place in (_member_at(snapshot, offset), _argument_at(snapshot, offset)) if place is not None]


def _import_at(snapshot: Snapshot, offset: int) -> NamePlace | None:
    pattern = IMPORTS.get(snapshot.written_in.family)
    match = pattern.search(snapshot.text, max(0, offset - LONGEST_IMPORT), offset) if pattern else None
    if match is None:
        return None
    groups = match.groupdict()
    if (module := groups.get("module") or groups.get("package")) is None:
        source = SOURCE.match(snapshot.text, offset, offset + LONGEST_IMPORT)
        module = source[1] if source else ""
    return NamePlace(module, "", offset - len(match["typed"]), match["typed"], is_cursor=True, role="import")


def _argument_at(snapshot: Snapshot, offset: int) -> NamePlace | None:
    """The argument at any place in the parentheses of a call, or in the braces of a struct."""
    opening = _opening_before(snapshot.text, offset)
    if opening is None or snapshot.text[opening] == "[":
        return None
    head = snapshot.text[snapshot.line_start(snapshot.line_of(opening)) : opening].rstrip()
    receiver = RECEIVER.search(head)
    if receiver is None or NO_CALL.search(head):
        return None
    if snapshot.text[opening] == "{" and (
        family(snapshot.path) not in ("go", "rust") or BODY.match(re.split(r"[{};]", head)[-1])
    ):
        return None
    return NamePlace(receiver[0], scope(snapshot, opening), opening + 1, is_cursor=True, role="keyword")


def _opening_before(text: str, offset: int) -> int | None:
    """The innermost bracket open at the offset, as far as the text alone tells."""
    offset = min(offset, len(text))  # it may be of a text that has become shorter since
    closed: list[str] = []
    start = text.rfind("\n", 0, max(0, offset - LONGEST_CALL)) + 1
    blank = unquoted(text[start:offset])
    for at in range(offset - 1, start - 1, -1):
        letter = blank[at - start]
        if letter in OPENED_BY:
            closed.append(OPENED_BY[letter])
        elif letter in OPENING:
            if not closed:
                return at
            if closed.pop() != letter:
                return None
    return None


def may_bind_behind(text: str, offset: int) -> bool:
    """True if a comprehension may be written here, which binds names after their first use."""
    inside: int | None = offset
    while (inside := _opening_before(text, inside)) is not None:
        is_call = text[inside] == "(" and bool(RECEIVER.search(text[max(0, inside - LONGEST_HEADER) : inside]))
        if not is_call or "," not in text[inside:offset]:
            return True
    return False


def given(snapshot: Snapshot, place: NamePlace, offset: int) -> tuple[int, frozenset[str]]:
    """The number of unnamed arguments of the call before the cursor, and the names of the others."""
    parts = split(snapshot.text[place.at : offset])
    named = [match[1] if (match := NAMED.match(part)) else "" for part in parts[:-1]]
    return named.count(""), frozenset(filter(None, named))


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
    """The receivers likely to be written next: those in the function, then its other names, nearest first."""
    line = snapshot.line_of(offset)
    header = _function_line(snapshot, offset)
    first = snapshot.line_start(max(0, line - NEAR_LINES) if header is None else header)
    text, above = snapshot.text[first:offset], snapshot.text[first : snapshot.line_start(line)]
    names = [*reversed(RECEIVERS.findall(text)), *reversed(BOUND.findall(above))]
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
    if place.is_cursor:
        return _asking(snapshot, snapshot.text, line, place.at - start, place.role)
    indent = own[: len(own) - len(own.lstrip())]
    text = f"{snapshot.text[:start]}{indent}{place.receiver}._\n{snapshot.text[start:]}"
    return _asking(snapshot, text, line, len(indent) + len(place.receiver) + 1)


def _asking(snapshot: Snapshot, text: str, line: int, column: int, role: NameRole = "member") -> NamesRequest:
    return NamesRequest(snapshot.path, text, line + 1, column, role, snapshot.uri, snapshot.version)


def uses(text: str, place: NamePlace) -> Counter[str]:
    """How often each member of a simple receiver is used in a text, not counting the one being written."""
    if not place.simple or place.role != "member":
        return Counter()
    letters = re.escape(place.receiver)  # first in the pattern: a lookbehind in front makes it far slower
    pattern = re.compile(rf"{letters}(?<![\w.]{letters}){JOINT}([^\W\d]\w*)")
    return Counter(match[1] for match in pattern.finditer(text) if place.at not in match.span(1))
