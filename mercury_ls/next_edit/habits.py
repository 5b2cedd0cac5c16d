"""What one example does not make a habit: a modifier, a negation, a note, what a type derives, a key, a number."""

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from mercury_ls.code import scopes, syntax
from mercury_ls.code.differences import tokens
from mercury_ls.code.documents import Snapshot
from mercury_ls.next_edit.places import Place
from mercury_ls.next_edit.propagation import KEYWORDS, Rule
from mercury_ls.next_edit.referents import text_of

__all__ = ["COPIED", "is_literal", "stands_alone"]

COPIED = frozenset({"argument", "clone", "insert", "phrase"})
MODIFIERS = frozenset(
    re.findall(
        r"\w+",
        """
    abstract const export extern final inline internal let mut override private protected pub public readonly sealed
    static var virtual
    """,
    )
)
LAYOUT = " \t\r\n\0,"
"""The comma is the one behind the last of several lines."""
NEGATIONS = frozenset({"!", "not"})
QUOTES = frozenset("\"'`")
COMPARING = frozenset({"==", "!=", "===", "!==", "case"})
WORD = re.compile(r"[^\W\d]\w*")
FREE = re.compile(r"(?<![\w.])[^\W\d]\w*")
LITERAL = re.compile(r"\d[\w.]*|\"[^\"]*\"|'[^']*'")
COMMENT_MARK = re.compile(r"\s*(?://|#|--|/\*|\*/)\s*")
DERIVED = re.compile(r"\s*#!?\[derive\(")
DECLARED = re.compile(r"(?P<names>[\w \t,]+):=")
BROUGHT = re.compile(r"(?<![\w$])(?:await|self(?!::)|this|yield)(?!\w)|\?")
KNOWN_BY = {
    "?": re.compile(r"\A[^{]*->[^{]*\b(?:Option|Result)\b|[\w)\]}]\?"),
    "await": re.compile(r"\b(?:async|await)\b"),
    "self": re.compile(r"\bself\b"),
    "this": re.compile(r"\bthis\b|::"),
    "yield": re.compile(r"\byield\b|\bfunction\b\s*\*"),
}
"""By what a function tells that it has the word."""
INSTANCES = frozenset({"self", "this"})
EXPLICIT = frozenset({"python", "rust"})
"""Languages whose methods are given what they belong to."""


def stands_alone(rule: Rule, place: Place, snapshot: Snapshot) -> bool:
    """Whether a person who saw the edit once would not think of this place, or nothing here knows what it brings."""
    if rule.count == 1 and rule.kind == "delete":
        return rule.lines == 1 and place.likeness < 1.0
    if rule.kind in COPIED and is_out_of_place(rule, place, snapshot):
        return True
    if rule.count > 1 or rule.kind not in COPIED:
        return False
    if rule.kind == "insert" and says_the_same(rule, place):
        return True
    if is_of_its_own(rule) or is_about_others(rule, place, snapshot) or is_there(rule, place, snapshot):
        return True
    if compares(rule.left, rule.right) != compares(*around(snapshot, place)):
        return True
    if (rule.before.strip(), rule.after.strip()) == (":=", "="):
        return declares_more(snapshot, place.start)
    return not rule.before.strip() and rule.kind != "insert" and syntax.inside(snapshot, place.start) == "comment"


def is_out_of_place(rule: Rule, place: Place, snapshot: Snapshot) -> bool:
    """Whether it brings a word into the body of a function that has no such thing: none waits that is not `async`."""
    words = brought(place, snapshot)
    around = [*enclosing(snapshot, place.start)] if words else []
    functions = [node for node in around if node.type in scopes.FUNCTIONS]
    if not functions:
        return bool(words) and snapshot.language == "python" and rule.kind != "insert"
    body = functions[0].child_by_field_name("body")
    if body is not None and snapshot.byte(place.start) < body.start_byte:
        return False
    if snapshot.language not in EXPLICIT and any(node.type in scopes.TYPES for node in around):
        words -= INSTANCES
    return not all(KNOWN_BY[word].search(text_of(functions[-1 if word in INSTANCES else 0])) for word in words)


def brought(place: Place, snapshot: Snapshot) -> set[str]:
    """Words that the new text has and the old one has not; `?` is such a word in Rust alone."""
    texts = snapshot.text[place.start : place.end], place.text or ""
    old, new = (set(BROUGHT.findall(LITERAL.sub("", text))) for text in texts)
    return new - old if snapshot.language == "rust" else new - old - {"?"}


def enclosing(snapshot: Snapshot, offset: int) -> Iterator[Node]:
    node = scopes.node_at(snapshot, offset)
    while node is not None:
        yield node
        node = node.parent


def says_the_same(rule: Rule, place: Place) -> bool:
    """Whether something in quotes would be there twice, word for word: what is told of one place is true of it."""
    quoted = (each for each in LITERAL.findall(rule.lines_after) if each[0] in QUOTES)
    return any(WORD.search(each) and each in (place.text or "") for each in quoted)


def is_there(rule: Rule, place: Place, snapshot: Snapshot) -> bool:
    """Whether the function has these lines already."""
    first, last = scopes.function_range(snapshot, place.start)
    inside = rule.kind == "insert" and (first, last) != (0, len(snapshot.text))
    return inside and (place.text or "").strip() in snapshot.text[first:last]


def is_about_others(rule: Rule, place: Place, snapshot: Snapshot) -> bool:
    """Whether a number or a string that changed stands there in a line that has no word of the changed one."""
    known = set(WORD.findall(rule.lines_before)) & set(WORD.findall(snapshot.line(snapshot.line_of(place.start))))
    return is_literal(rule.before) and is_literal(rule.after) and known <= KEYWORDS


def is_literal(text: str) -> bool:
    """Numbers and what stands in quotes."""
    return bool(re.search(r"[\d\"']", text)) and not FREE.search(LITERAL.sub("", text))


def is_of_its_own(rule: Rule) -> bool:
    """Modifiers, negations, what a type derives, breaks of lines and what is commented out are decided one by one."""
    changed = f"{rule.before} {rule.after}"
    words = WORD.findall(changed)
    marks = [text for text in (rule.before, rule.after) if text.strip()]
    return (
        changed.strip() in NEGATIONS
        or (rule.kind == "clone" and not changed.strip(LAYOUT))
        or (bool(words) and MODIFIERS.issuperset(words))
        or (bool(marks) and all(COMMENT_MARK.fullmatch(text) for text in marks))
        or bool(DERIVED.match(rule.lines_before))
    )


def compares(left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether a string between these tokens is one that something is compared with: such a string is a key."""
    quoted = left[-1:] and left[-1] in QUOTES and right[:1] and right[0] in QUOTES
    return bool(quoted) and bool(COMPARING.intersection((*left[-2:-1], *right[1:2])))


def around(snapshot: Snapshot, place: Place) -> tuple[list[str], list[str]]:
    line = snapshot.line_of(place.start)
    left = snapshot.text[snapshot.line_start(line) : place.start]
    right = snapshot.text[place.end : snapshot.line_end(snapshot.line_of(place.end))]
    return [token.text for token in tokens(left)], [token.text for token in tokens(right)]


def declares_more(snapshot: Snapshot, offset: int) -> bool:
    """Whether a name before `:=` is not known before: it needs the declaration."""
    start = snapshot.line_start(snapshot.line_of(offset))
    found = DECLARED.match(snapshot.text[start : snapshot.line_end(snapshot.line_of(offset))].lstrip())
    known = snapshot.text[scopes.function_range(snapshot, offset)[0] : start]
    names = WORD.findall(found["names"]) if found else []
    return any(name != "_" and not re.search(rf"\b{name}\b", known) for name in names)
