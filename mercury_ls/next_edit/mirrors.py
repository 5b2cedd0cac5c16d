"""What follows elsewhere when a list grows by an entry or a function by a parameter: the same beside what is alike."""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct
from tree_sitter import Node

from mercury_ls.code import scopes, syntax
from mercury_ls.code.differences import tokens
from mercury_ls.code.documents import Snapshot
from mercury_ls.next_edit.lexemes import bounded, changed_words, closing, indentation, minimal
from mercury_ls.next_edit.places import Place
from mercury_ls.next_edit.propagation import Rule, openness, shape
from mercury_ls.next_edit.referents import akin, owner_of

__all__ = ["entries", "signatures", "stored"]

MOST_USES = 24
LINES = re.compile(r"[^\n]*\n|[^\n]+")
SELVES = frozenset({"self", "this", "Self"})
MARKS = frozenset({".", "=", ":", ",", ";", "->"})


class Entry(Struct, frozen=True):
    """A new entry is as its neighbour but for words, each old one with its new one; it stands `below` or above;
    `lines` are both."""

    words: Mapping[str, str]
    below: bool
    lines: range


def entries(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """Beside the other lines that name the new entry's neighbour, where these are one of several alike."""
    entry = entry_of(rule, home) if home else None
    if entry is None:
        return
    own = entry.lines if home is snapshot else range(0)
    pattern = re.compile("|".join(map(bounded, sorted(entry.words, key=len, reverse=True))))
    numbers = dict.fromkeys(snapshot.line_of(match.start()) for match in pattern.finditer(snapshot.text))
    if len(numbers) > MOST_USES:
        return
    known = {line.strip() for line in LINES.findall(snapshot.text)}
    for number in numbers:
        line, at = snapshot.line(number), number + entry.below
        text = pattern.sub(lambda match: entry.words[match.group()], line)
        new = number not in own and text.strip() not in known and is_whole(line) and at < snapshot.line_count
        if new and (likeness := listed(snapshot, number)):
            start = snapshot.line_start(at)
            whole = any(token.text in entry.words for token in tokens(line))
            yield Place(start, start, text.rstrip("\r\n") + "\n", likeness, same_role=whole)


def entry_of(rule: Rule, home: Snapshot) -> Entry | None:
    """Compared with the lines above, or else below; they have to say the same of other things."""
    new = [line.rstrip("\r\n") for line in LINES.findall(rule.lines_after)]
    for below, first in ((True, rule.line - len(new)), (False, rule.line + len(new))):
        if first >= 0 and first + len(new) <= home.line_count:
            old = [home.line(number) for number in range(first, first + len(new))]
            if words := changed_words("\n".join(old), "\n".join(new)):
                start = min(first, rule.line)
                return Entry(words, below, range(start, start + 2 * len(new)))
    return None


def is_whole(line: str) -> bool:
    """Whether nothing that follows belongs to the line."""
    text = line.strip()
    return bool(text) and openness(text) == 0 and text[-1] not in ":{([" and text[0] not in ")]}#*/"


def listed(snapshot: Snapshot, number: int) -> float:
    """How much the line above or below is like this one."""
    around = [other for other in (number - 1, number + 1) if 0 <= other < snapshot.line_count]
    return max((likeness_of(snapshot.line(number), snapshot.line(other)) for other in around), default=0.0)


def likeness_of(line: str, other: str) -> float:
    """1 for the same shape, half for the same beginning and end."""
    if not other.strip() or indentation(line) != indentation(other):
        return 0.0
    mine, theirs = shape(line).split(), shape(other).split()
    return 1.0 if mine == theirs else 0.5 * (mine[-1] == theirs[-1] and mine[:2] == theirs[:2])


def stored(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """A parameter more of a function that keeps its neighbour: `self.old = old` gets `self.new = new` beside it."""
    if home is not snapshot or rule.line >= snapshot.line_count:
        return
    first, end = scopes.function_range(snapshot, snapshot.line_start(rule.line) + rule.column)
    if (first, end) == (0, len(snapshot.text)):
        return
    numbers = range(snapshot.line_of(first), snapshot.line_of(end))
    if len(re.findall(bounded(rule.after), snapshot.text[first:end])) > 1:
        return
    for number in numbers:
        line = snapshot.line(number)
        if keeps(line, rule.before):
            text = re.sub(bounded(rule.before), rule.after, line)
            start = snapshot.line_start(number + (rule.index != 0))
            yield Place(start, start, text.rstrip("\r\n") + "\n", 1.0)


def keeps(line: str, name: str) -> bool:
    """`self.name = name`, `this.name = name;`, `name: name,` and the like."""
    said = [token.text.removeprefix("_") for token in tokens(line)]
    return said.count(name) == 2 and all(word == name or word in SELVES or word in MARKS for word in said)


def signatures(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """The other declarations of a function whose parameters have changed: in a header, an interface, a subclass."""
    changed = declared_at(rule, home) if home else None
    if home is None or changed is None:
        return
    wanted = [token.text for token in tokens(rule.before)]
    for match in re.finditer(scopes.whole(rule.name) + r"[ \t]*+\(", snapshot.text):
        found = declaration(snapshot, match.start(), match.end())
        old = snapshot.text[match.end() : found.end] if found else ""
        if found and [token.text for token in tokens(old)] == wanted and is_the_same(found, changed):
            change = minimal(old, rule.after)
            start = match.end() + change.start
            yield Place(start, match.end() + change.end, change.text, 1.0, defines=True)


class Declaration(Struct, frozen=True):
    """Where the brackets of the parameters end, what has the function as a member, and whether it has a body here."""

    end: int
    owner: Node | None
    has_body: bool


def declared_at(rule: Rule, home: Snapshot) -> Declaration | None:
    start = home.line_start(min(rule.line, home.line_count - 1)) + rule.column
    named = home.text.startswith(rule.name, start)
    return declaration(home, start, home.text.find("(", start) + 1) if named else None


def declaration(snapshot: Snapshot, start: int, inside: int) -> Declaration | None:
    """None for a call."""
    end, name = closing(snapshot.text, inside), scopes.node_at(snapshot, start)
    if end is None or name is None or syntax.inside(snapshot, start) is not None:
        return None
    node = scopes.node_at(snapshot, end)
    if not scopes.declares(name) and (node is None or "parameter" not in node.type):
        return None
    rest = snapshot.text[end : snapshot.line_end(snapshot.line_of(end))]
    return Declaration(end, owner_of(name), "{" in rest or rest.rstrip().endswith(":"))


def is_the_same(found: Declaration, changed: Declaration) -> bool:
    """A prototype, or a method of a type and of one that is made from it."""
    if found.owner is None or changed.owner is None:
        return not found.has_body or not changed.has_body
    return akin(found.owner, changed.owner)
