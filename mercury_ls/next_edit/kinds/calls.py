"""The calls of one function: which they are, their arguments, and how to change them."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise, takewhile, zip_longest
from operator import eq

from msgspec import Struct
from tree_sitter import Node

from mercury_ls.code import scopes, syntax, traits
from mercury_ls.code.brackets import split
from mercury_ls.code.differences import TOKEN, WORD
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.index.symbol import Symbol, symbol_at
from mercury_ls.code.lexemes import KEYWORDS
from mercury_ls.code.modules import Project, family
from mercury_ls.code.parts import kind_of
from mercury_ls.code.scopes import whole
from mercury_ls.code.symbols import is_qualified, qualifier_of
from mercury_ls.next_edit.examples import Piece
from mercury_ls.next_edit.places import Place
from mercury_ls.next_edit.rule import Rule

NAMED = re.compile(r"(?<!\w)(?P<name>(?!lambda\b)[^\W\d]\w*+)\s*+(?:=(?![=>])|:(?!:))")
SPREAD = frozenset({"dictionary_splat", "hash_splat_argument", "list_splat", "splat_argument", "spread_expression"})
DEFINING = frozenset({"def", "fn", "func", "function", "class", "macro_rules"})
CONTROL = frozenset({"if", "while", "for", "switch", "=>"})

Argument = int | str | tuple[str, int]
"""What a call is given: an argument that it has, by its number and behind another name perhaps, or a new text."""


class ArgumentChange(Struct, frozen=True):
    """An argument more or less in a call of a function: `name` is what it is given by, if anything, `index` its place
    in the call, which has `count` of them after it was done."""

    function: str
    symbol: Symbol
    name: str
    index: int
    count: int


class CalledArguments(Struct, frozen=True):
    """Where a call names its function, the range between its brackets, and the ranges of its arguments with the names
    that they have; if it `is_spread`, there may be more of them than are written out."""

    named_at: int
    start: int
    end: int
    pieces: tuple[tuple[int, int], ...]
    names: tuple[str, ...]
    is_spread: bool = False


def argument_of(piece: Piece) -> tuple[str, bool] | None:
    """The function of which an argument was added or removed, and whether that was where it is defined."""
    function = callee(piece.left)
    if function is None or "\n" in piece.before + piece.after:
        return None
    if piece.before.strip() and piece.after.strip():
        return None
    text = (piece.before or piece.after).strip()
    alone = callee(("f", "(", *TOKEN.findall(text.strip(","))))
    if alone is None or alone[1] > 0:
        return None
    is_only = piece.left[-1] == "(" and piece.right[:1] == (")",)
    if not is_only and "," not in (text[:1], text[-1:]):
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


def changed_at(rule: Rule, function: str, home: Snapshot) -> ArgumentChange | None:
    """The change by the syntax tree of the file in which it was learned; None for parameters, for variadic arguments,
    and if the line has changed since."""
    at = rule.offset(home)
    argument = (rule.after if rule.after.strip() else rule.before).strip(" \t,")
    is_stale = home.line(home.line_of(at)) not in rule.lines_after.splitlines()
    if is_stale or argument.startswith(("*", "...")):
        return None
    openings = [match for match in called(function, home) if match.end() <= at]
    around = bracketed(home, openings[-1].end() - 1) if openings else None
    if around is None or "parameter" in around.type:
        return None
    symbol = symbol_at(function, function, home, openings[-1].start())
    listed = [node for node in around.named_children if "comment" not in node.type]
    index = sum(home.offset_of_byte(node.end_byte) <= at for node in listed)
    return ArgumentChange(function, symbol, _given_name(argument), index, len(listed))


def called(name: str, snapshot: Snapshot) -> Iterator[re.Match[str]]:
    pattern = re.compile(whole(name) + r"[ \t]*+(?:(?:::)?<[^();\n]*>)?\(")
    return filter(None, (pattern.match(snapshot.text, at) for at in scopes.mentions(snapshot, name)))


def bracketed(snapshot: Snapshot, offset: int) -> Node | None:
    """The arguments or parameters that the bracket at `offset` opens, if they can be read."""
    node = scopes.node_at(snapshot, offset)
    if node is None or node.start_byte != snapshot.byte(offset) or node.has_error:
        return None
    return node if "argument" in node.type or "parameter" in node.type or node.type == "token_tree" else None


def named_by(snapshot: Snapshot) -> str:
    """What stands between the name of an argument and its value; empty if none are written by name."""
    return traits.NAMED_BY.get(family(snapshot.path), "")


def _given_name(argument: str) -> str:
    named = NAMED.match(argument)
    return named["name"] if named else ""


def calls_of(change: ArgumentChange, snapshot: Snapshot, project: Project) -> Iterator[CalledArguments]:
    """The calls that may be of the function."""
    calls = calls_by_name(change.function, snapshot)
    return (call for call in calls if is_called(change, snapshot, call.named_at, project))


def calls_by_name(name: str, snapshot: Snapshot) -> Iterator[CalledArguments]:
    """All calls of anything of this name."""
    for match in called(name, snapshot):
        around, node = bracketed(snapshot, match.end() - 1), scopes.node_at(snapshot, match.start())
        if around is None or "parameter" in around.type or node is None or scopes.declares(node):
            continue
        if syntax.inside(snapshot, match.start()) is not None:
            continue
        start, end = match.end(), snapshot.offset_of_byte(around.end_byte) - 1
        pieces = _split_arguments(snapshot, around, start, end)
        texts = [snapshot.text[a:b] for a, b in pieces]
        nodes = (scopes.node_at(snapshot, a) for a, _ in pieces)
        has_dots = any(text.startswith("...") or text.endswith("...") for text in texts)
        is_spread = has_dots or _is_followed_by_lambda(around) or any(kind_of(node) in SPREAD for node in nodes)
        yield CalledArguments(match.start(), start, end, tuple(pieces), tuple(map(_given_name, texts)), is_spread)


def _is_followed_by_lambda(arguments: Node) -> bool:
    """Whether a call of Kotlin has one more argument behind its brackets."""
    after = (node.next_sibling for node in (arguments, arguments.parent) if node is not None)
    return any(kind_of(node) == "annotated_lambda" for node in after)


def is_called(change: ArgumentChange, snapshot: Snapshot, offset: int, project: Project) -> bool:
    """Whether a call looks like that of the function which was called where an argument was changed."""
    symbol, node = change.symbol, scopes.node_at(snapshot, offset)
    if node is None or symbol.node is None:
        return False
    if scopes.declares(node) or syntax.inside(snapshot, offset) is not None:
        return False
    if not symbol.is_alike(change.function, snapshot, offset) or is_qualified(node) != is_qualified(symbol.node):
        return False
    qualifiers = {qualifier_of(node), qualifier_of(symbol.node)}
    modules = {imported.alias for imported in project.imports(snapshot) if not imported.name}
    return len(qualifiers) == 1 or modules.isdisjoint(qualifiers)


def changed_arguments(
    text: str, call: CalledArguments, change: ArgumentChange, argument: str
) -> list[int | str] | None:
    """The arguments after the same change: `argument` came, or one went if that is empty. None if the call is not like
    the other one before that, or if not all before it are given by position too."""
    kept, index, went = [*range(len(call.pieces))], change.index, not argument
    if change.name:
        if went != (change.name in call.names):
            return None
        index = call.names.index(change.name) if went else len(kept)
    elif any(call.names[: index + went]) or not (len(kept) == change.count + 1 if went else len(kept) < change.count):
        return None
    if index > len(kept) - went or any(text[a:b] == argument for a, b in call.pieces):
        return None
    return [*kept[:index], *([] if went else [argument]), *kept[index + went :]]


def rewritten(
    text: str, call: CalledArguments, arguments: Sequence[Argument], within: Sequence[Place] = ()
) -> Place | None:
    """The call with these arguments instead, separated as they are, and with what changes `within` them; None if there
    are comments beside those that move or go."""
    pieces, kept = call.pieces, [*range(len(call.pieces))]
    head = sum(takewhile(bool, map(eq, arguments, kept)))
    tail = sum(takewhile(bool, map(eq, arguments[head:][::-1], kept[head:][::-1])))
    end = len(pieces) - tail
    went, came = pieces[head:end], arguments[head : len(arguments) - tail]
    gaps = [text[a:b] for (_, a), (b, _) in pairwise([(call.start, call.start), *pieces, (call.end, call.end)])]
    beside = gaps[head : end + 1] if came else gaps[head + 1 : end]
    is_moved = [*map(_number_of, came)] != kept[head:end]
    if went and is_moved and any(gap.strip() not in ("", ",") for gap in beside):
        return None
    if not came:
        return _without(call, gaps, head, tail)
    usual = gaps[-2] if len(pieces) > 1 and gaps[-2].strip() == "," else ", "
    separators = gaps[head + 1 : end] if len(went) == len(came) else [usual] * (len(came) - 1)
    texts = (_written(text, argument, pieces, within) for argument in came)
    written = "".join(chain.from_iterable(zip_longest(texts, separators, fillvalue="")))
    if went:
        return Place(went[0][0], went[-1][1], written)
    if tail:
        return Place(pieces[head][0], pieces[head][0], written + usual)
    return Place(pieces[-1][1], pieces[-1][1], usual + written) if pieces else Place(call.end, call.end, written)


def _without(call: CalledArguments, gaps: Sequence[str], head: int, tail: int) -> Place | None:
    """The call with only so many of its first and last arguments."""
    pieces = call.pieces
    first, last = pieces[head], pieces[len(pieces) - tail - 1]
    if head and gaps[head].strip() == ",":
        return Place(pieces[head - 1][1], last[1], "")
    if tail:
        return Place(first[0], pieces[-tail][0], "")
    has_comment = head or gaps[-1].strip() not in ("", ",")
    return None if has_comment else Place(first[0], call.end, "")


def _number_of(argument: Argument) -> int:
    """-1 for a new one."""
    return -1 if isinstance(argument, str) else argument if isinstance(argument, int) else argument[1]


def _written(text: str, argument: Argument, pieces: Sequence[tuple[int, int]], within: Sequence[Place]) -> str:
    if isinstance(argument, str):
        return argument
    start, end = pieces[_number_of(argument)]
    name, written = argument[0] if isinstance(argument, tuple) else "", text[start:end]
    for place in sorted(within, key=lambda place: -place.start):
        if start <= place.start and place.end <= end:
            written = written[: place.start - start] + (place.text or "") + written[place.end - start :]
    return name + written


def _split_arguments(snapshot: Snapshot, around: Node, start: int, end: int) -> list[tuple[int, int]]:
    """The ranges of the arguments, without blanks around them; those of a Rust macro are not parsed."""
    if around.type != "token_tree":
        nodes = [node for node in around.named_children if "comment" not in node.type]
        return [syntax.range_of(snapshot, node) for node in nodes]
    pieces: list[tuple[int, int]] = []
    for piece in split(snapshot.text[start:end]):
        first = start + len(piece) - len(piece.lstrip())
        pieces.append((first, first + len(piece.strip())))
        start += len(piece) + 1
    return [(first, stop) for first, stop in pieces if first < stop]
