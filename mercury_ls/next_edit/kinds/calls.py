"""The calls of one function: which they are, their arguments, and how to add or remove one."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace
from tree_sitter import Node

from mercury_ls.code import scopes, syntax
from mercury_ls.code.differences import TOKEN, WORD
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.languages import find
from mercury_ls.code.lexemes import KEYWORDS
from mercury_ls.code.scopes import whole
from mercury_ls.code.symbols import (
    Symbol,
    is_capitalized,
    is_qualified,
    owner_of,
    qualifier_of,
    refers_to,
    symbol_at,
    text_of,
    type_name,
)
from mercury_ls.next_edit.examples import Piece
from mercury_ls.next_edit.places import Place
from mercury_ls.next_edit.rule import Rule

RECEIVER = re.compile(r"(?:&\s*)?(?:'\w+\s+)?(?:mut\s+)?(?:self|cls|this)\b")
NAMED = re.compile(r"(?P<name>[^\W\d]\w*)\s*(?:=(?![=>])|:(?!:))")
SPREAD = frozenset({"dictionary_splat", "hash_splat_argument", "list_splat", "splat_argument"})
UNORDERED = frozenset({"keyword_separator", "list_splat_pattern", "rest_pattern"})
"""Parameters behind these are passed by name."""
SEPARATOR = "positional_separator"
NAME_FIELDS = ("name", "declarator", "pattern", "left")
DEFINING = frozenset({"def", "fn", "func", "function", "class", "macro_rules"})
MARK = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[()\[\]{},]")
"""A string, a bracket or a comma."""
CONTROL = frozenset({"if", "while", "for", "switch", "=>"})


class ArgumentChange(Struct, frozen=True):
    """An argument or parameter more or less: `name` is what it is given by, if anything, `index` its place in a call
    (-1 where only the name counts) that has `count` of them after it was done; `symbol` is the function. `receiver` is
    the parameter that stands before the brackets of a call, `function` the name by which it is called, if another."""

    name: str
    index: int
    count: int
    symbol: Symbol
    receiver: str = ""
    function: str = ""


class CalledArguments(Struct, frozen=True):
    """Where a call names its function, the range between its brackets, and the ranges of its arguments with the names
    that they have."""

    named_at: int
    start: int
    end: int
    pieces: tuple[tuple[int, int], ...]
    names: tuple[str, ...]


def argument_of(piece: Piece) -> tuple[str, bool] | None:
    """The function of which an argument was added or removed, and whether that was where it is defined."""
    function = callee(piece.left)
    went, came = piece.before, piece.after
    if function is None or "\n" in went + came or (went.strip() and came.strip()):
        return None
    text, is_last = (went or came).strip(), piece.right[:1] == (")",)
    alone = callee(("f", "(", *TOKEN.findall(text.strip(","))))
    if alone is None or alone[1] > 0:
        return None
    if not (text.startswith(",") or text.endswith(",") or (piece.left[-1] == "(" and is_last)):
        return None
    return function[0], function[2] or _is_before_body(piece.right)


def _is_before_body(right: Sequence[str]) -> bool:
    """Whether a body follows, as in a method of Java, C or JavaScript."""
    return right[-1:] == ("{",) and ")" in right and CONTROL.isdisjoint(right)


def callee(left: Sequence[str]) -> tuple[str, int, bool] | None:
    """The function in whose brackets these tokens end, the number of the argument, and whether it is being defined."""
    depth = commas = 0
    for at in range(len(left) - 1, -1, -1):
        if left[at] in ")]}":
            depth += 1
        elif left[at] in "([{":
            depth -= 1
            if depth < 0:
                named = left[at] == "(" and at > 0 and WORD.fullmatch(left[at - 1]) and left[at - 1] not in KEYWORDS
                return (left[at - 1], commas, at > 1 and left[at - 2] in DEFINING) if named else None
        elif left[at] == "," and depth == 0:
            commas += 1
    return None


def changed_at(rule: Rule, function: str, snapshot: Snapshot, home: Snapshot) -> ArgumentChange | None:
    """The change by the syntax tree of the file in which it was learned; None for variadic arguments, and if the line
    has changed since."""
    at, argument = rule.offset(home), (rule.after if rule.after.strip() else rule.before).strip(" \t,")
    opening = next((m for m in reversed([*called(function, home)]) if m.end() <= at), None)
    around = opening and _bracketed(home, opening.end() - 1)
    stale = home.line(home.line_of(at)) not in rule.lines_after.splitlines()
    if opening is None or around is None or stale or argument.startswith(("*", "...")) or RECEIVER.match(argument):
        return None
    places = [match.start() for match in called(function, snapshot)]
    symbol = symbol_at(function, function, home, opening.start(), snapshot, places)
    listed = [node for node in around.named_children if "comment" not in node.type and node.type != SEPARATOR]
    if "parameter" in around.type:
        return _parameter_at(at, rule, listed, symbol, home)
    return ArgumentChange(_given_name(argument), len(ended(listed, at, home)), len(listed), symbol)


def constructing(change: ArgumentChange, snapshot: Snapshot, home: Snapshot) -> ArgumentChange | None:
    """The change for calls of the class, if it is of `__init__`."""
    declared, owner = change.symbol.node, change.symbol.owner
    named = owner.child_by_field_name("name") if owner is not None else None
    if declared is None or named is None or text_of(declared) != "__init__":
        return None
    function = text_of(named)
    places = [match.start() for match in called(function, snapshot)]
    symbol = symbol_at(function, function, home, home.offset_of_byte(named.start_byte), snapshot, places)
    return replace(change, symbol=symbol, receiver="", function=function)


def _parameter_at(at: int, rule: Rule, listed: Sequence[Node], symbol: Symbol, home: Snapshot) -> ArgumentChange | None:
    """None for a receiver, and if the function is overloaded."""
    receiver_text = receiver(listed, symbol, home)
    # `a, b int` of Go are two.
    names = [name for node in listed for name in node.children_by_field_name("name") or [node]]
    number = len(ended(names, at, home))
    index = number - bool(receiver_text)
    if index < 0 or _is_overloaded(symbol, home):
        return None
    name = _gone_name(rule.before, home) if rule.before.strip() else name_of(names[number]) if names[number:] else ""
    index = index if UNORDERED.isdisjoint(node.type for node in ended(listed, at, home)) else -1
    return ArgumentChange(name, index, len(names) - bool(receiver_text), symbol, receiver_text)


def ended(nodes: Sequence[Node], offset: int, snapshot: Snapshot) -> list[Node]:
    return [node for node in nodes if snapshot.offset_of_byte(node.end_byte) <= offset]


def called(name: str, snapshot: Snapshot) -> Iterator[re.Match[str]]:
    pattern = re.compile(whole(name) + r"[ \t]*+\(")
    return filter(None, (pattern.match(snapshot.text, at) for at in scopes.mentions(snapshot, name)))


def _bracketed(snapshot: Snapshot, offset: int) -> Node | None:
    """The arguments or parameters that the bracket at `offset` opens."""
    node = scopes.node_at(snapshot, offset)
    if node is None or node.start_byte != snapshot.byte(offset) or node.has_error:
        return None
    return node if "argument" in node.type or "parameter" in node.type or node.type == "token_tree" else None


def _is_overloaded(symbol: Symbol, home: Snapshot) -> bool:
    """Whether its type declares the name more than once."""
    if symbol.node is None or symbol.owner is None:
        return False
    nodes = [scopes.node_at(home, match.start()) for match in called(text_of(symbol.node), home)]
    owners = [owner_of(node) for node in nodes if node is not None and scopes.declares(node)]
    return sum(owner is not None and type_name(owner) == type_name(symbol.owner) for owner in owners) > 1


def receiver(listed: Sequence[Node], symbol: Symbol, home: Snapshot) -> str:
    """The parameter that calls pass before the dot: the first of a Python method, `self` of Rust."""
    first = text_of(listed[0]) if listed else ""
    language = find(home.language, home.path)
    if language is not None and language.id == "python":
        around = symbol.node and symbol.node.parent and symbol.node.parent.parent
        decorated = around.named_children if around is not None and around.type == "decorated_definition" else []
        static = any(text_of(decorator) == "@staticmethod" for decorator in decorated)
        return first if symbol.owner is not None and not static else ""
    return first if RECEIVER.match(first) else ""


def _gone_name(text: str, home: Snapshot) -> str:
    """The name of a removed parameter, if calls can pass it by name."""
    words = WORD.findall(text)
    return words[0] if words and named_by(home) else ""


def name_of(parameter: Node) -> str:
    """The name of a parameter, within declarators and types; empty if it is destructured."""
    named = parameter.named_children[0] if parameter.type == "typed_parameter" else parameter
    while inner := next((child for field in NAME_FIELDS if (child := named.child_by_field_name(field))), None):
        named = inner
    return text_of(named) if WORD.fullmatch(text_of(named)) else ""


def named_by(snapshot: Snapshot) -> bool:
    language = find(snapshot.language, snapshot.path)
    return language is not None and language.id == "python"


def _given_name(argument: str) -> str:
    named = NAMED.match(argument)
    return named["name"] if named else ""


def calls_of(function: str, change: ArgumentChange, snapshot: Snapshot) -> Iterator[CalledArguments]:
    """The calls of the function without spread arguments."""
    for match in called(change.function or function, snapshot):
        bracket_pieces = _bracketed(snapshot, match.end() - 1)
        if (
            bracket_pieces is None
            or "parameter" in bracket_pieces.type
            or not is_called(change, snapshot, match.start())
        ):
            continue
        start, end = match.end(), snapshot.offset_of_byte(bracket_pieces.end_byte) - 1
        pieces = _split_arguments(snapshot, bracket_pieces, start, end)
        texts = [snapshot.text[a:b] for a, b in pieces]
        nodes = (scopes.node_at(snapshot, a) for a, _ in pieces)
        spread = any(node is not None and node.type in SPREAD for node in nodes)
        if not spread and not any(text.startswith("...") or text.endswith("...") for text in texts):
            yield CalledArguments(match.start(), start, end, tuple(pieces), tuple(map(_given_name, texts)))


def is_called(change: ArgumentChange, snapshot: Snapshot, offset: int) -> bool:
    symbol, node = change.symbol, scopes.node_at(snapshot, offset)
    if node is None or symbol.node is None or syntax.inside(snapshot, offset) is not None:
        return False
    if scopes.declares(node) or not refers_to(symbol, snapshot, offset):
        return False
    whose = qualifier_of(node)
    if not scopes.declares(symbol.node):
        declared_with = qualifier_of(symbol.node)
        return is_qualified(node) == is_qualified(symbol.node) and (
            whose == declared_with or symbol.modules.isdisjoint((whose, declared_with))
        )
    # `Store.save(store, path)` names what stands before the brackets elsewhere.
    return not change.receiver or change.receiver.startswith("cls") or not is_capitalized(whose)


def with_argument(text: str, call: CalledArguments, change: ArgumentChange, argument: str) -> Place | None:
    """None if the argument is there already; by position only if all before it are there."""
    pieces, name = call.pieces, _given_name(argument)
    if any(text[a:b] == argument for a, b in pieces) or (name and name in call.names):
        return None
    if name:
        return Place(pieces[-1][1], pieces[-1][1], f", {argument}") if pieces else Place(call.end, call.end, argument)
    if not 0 <= change.index <= len(pieces) or len(pieces) >= change.count or any(call.names[: change.index]):
        return None
    if not pieces:
        return Place(call.end, call.end, argument)
    if change.index < len(pieces):
        return Place(pieces[change.index][0], pieces[change.index][0], f"{argument}, ")
    return Place(pieces[-1][1], pieces[-1][1], f", {argument}")


def without_argument(call: CalledArguments, change: ArgumentChange) -> Place | None:
    """By its name, otherwise by its position."""
    pieces, index = call.pieces, change.index
    if change.name and change.name in call.names:
        index = call.names.index(change.name)
    elif not 0 <= index < len(pieces) <= change.count + 1 or any(call.names[: index + 1]):
        return None
    if index == 0:
        (start, end), *following = pieces
        return Place(start, following[0][0] if following else end, "")
    return Place(pieces[index - 1][1], pieces[index][1], "")


def _split_arguments(snapshot: Snapshot, around: Node, start: int, end: int) -> list[tuple[int, int]]:
    """The ranges of the arguments, without blanks around them; those of a Rust macro are not parsed."""
    if around.type != "token_tree":
        nodes = [node for node in around.named_children if "comment" not in node.type]
        return [(snapshot.offset_of_byte(node.start_byte), snapshot.offset_of_byte(node.end_byte)) for node in nodes]
    depth, first, text = 0, start, snapshot.text
    pieces: list[tuple[int, int]] = []
    for piece in MARK.finditer(text, start, end):
        if piece.group() in "([{":
            depth += 1
        elif piece.group() in ")]}":
            depth -= 1
        elif piece.group() == "," and depth == 0:
            pieces.append((first, piece.start()))
            first = piece.end()
    pieces.append((first, end))
    stripped = [(a + len(text[a:b]) - len(text[a:b].lstrip()), a + len(text[a:b].rstrip())) for a, b in pieces]
    return [(a, b) for a, b in stripped if a < b]
