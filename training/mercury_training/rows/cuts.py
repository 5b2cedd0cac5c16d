"""Pieces of code to predict: whole lines and their ends, blocks of statements, and spans of characters."""

import math
import random
from collections.abc import Callable, Iterator

from msgspec import Struct
from tree_sitter import Node, Tree

from mercury_training.corpus.syntax import count_errors, parser
from mercury_training.rows.fim_rows import FimRow, Kind

PER_FILE, TRIES = 2, 12
LARGEST_FILE = 40_000
SHORTEST_FILE = 400
SHORTEST_LINE, LONGEST_LINE = 5, 120
LONGEST_BLOCK_LINES, LONGEST_BLOCK = 8, 400
SHORTEST_SPAN, LONGEST_SPAN = 16, 160
SHORTEST_COPY = 12
NEAR_LINES = 3
LINE_TAILS = 0.4
COPIES = 0.3
"""The share kept of cuts that occur elsewhere in the file, which makes them as rare as in the development set."""

BLOCKS = {"block", "statement_block", "statement_list"}
FUNCTIONS = ("function", "method", "arrow_function")
IMPORTS = ("import", "use_declaration")
NO_CODE = ("comment", "string", "template", "char_literal", "rune_literal")

Chooser = Callable[[Tree, str, random.Random], "Cut | None"]


class Cut(Struct, frozen=True):
    """The part of a file that a row asks for."""

    start: int
    stop: int
    kind: Kind
    sub: str


def cuts(language: str, text: str, draw: random.Random) -> list[Cut]:
    """A few cuts of each kind, in code but not in comments or strings; none in files that do not parse."""
    if not SHORTEST_FILE <= len(text) <= LARGEST_FILE or "\r" in text or count_errors(language, text):
        return []
    tree = parser(language).parse(text.encode())
    chosen: list[Cut] = []
    for choose in CHOOSERS.values():
        tried = (choose(tree, text, draw) for _ in range(TRIES))
        candidates = (cut for cut in tried if cut and (not is_copy(text, cut) or draw.random() < COPIES))
        chosen += dict.fromkeys(cut for cut, _ in zip(candidates, range(PER_FILE), strict=False))
    return chosen


def is_copy(text: str, cut: Cut) -> bool:
    """True if the cut text occurs elsewhere in the file; a few characters always do."""
    middle = text[cut.start : cut.stop].strip()
    return len(middle) >= SHORTEST_COPY and (middle in text[: cut.start] or middle in text[cut.stop :])


def row_of(text: str, cut: Cut, *, id: str, repo: str, commit: str, licence: str, path: str, language: str) -> FimRow:
    """The row of a cut, with its id and the origin of its text."""
    return FimRow(
        id=id,
        repo=repo,
        commit=commit,
        licence=licence,
        path=path,
        language=language,
        kind=cut.kind,
        sub=cut.sub,
        copy=is_copy(text, cut),
        prefix=text[: cut.start],
        suffix=text[cut.stop :],
        middle=text[cut.start : cut.stop],
    )


def surroundings(text: str, cut: Cut) -> str:
    """The lines of the middle and the nearest lines that are not blank: a near copy would show there."""
    first, last = text.count("\n", 0, cut.start), text.count("\n", 0, cut.stop)
    lines = text.split("\n")
    above = [line for line in lines[:first] if line.strip()][-NEAR_LINES:]
    below = [line for line in lines[last + 1 :] if line.strip()][:NEAR_LINES]
    return "\n".join([*above, *lines[first : last + 1], *below])


def _line(tree: Tree, text: str, draw: random.Random) -> Cut | None:
    """A whole line after its indentation, or its end from the beginning of a word or operator on."""
    start, stop = _some_line(text, draw)
    line = text[start:stop]
    begin, sub = start + len(line) - len(line.lstrip()), "full_line"
    if draw.random() < LINE_TAILS:
        places = [place for place in range(begin + 1, stop) if _begins_token(text, place)]
        if not places:
            return None
        begin, sub = draw.choice(places), "line_tail"
    stop -= len(line) - len(line.rstrip())
    middle = text[begin:stop]
    if not SHORTEST_LINE <= len(middle) <= LONGEST_LINE or not _is_code(tree, text, begin, stop):
        return None
    return Cut(begin, stop, "single_line", sub)


def _block(tree: Tree, text: str, draw: random.Random) -> Cut | None:
    """Two or more lines of whole statements of a block; all of them in a short function."""
    data = text.encode()
    blocks = [node for node in _nodes(tree.root_node) if node.type in BLOCKS and node.named_child_count]
    if not blocks:
        return None
    block = draw.choice(blocks)
    first = draw.randrange(block.named_child_count)
    last = first
    while last + 1 < block.named_child_count and draw.random() < 0.6:
        last += 1
    start, stop = block.named_children[first], block.named_children[last]
    begin, end = (len(data[:at].decode()) for at in (start.start_byte, stop.end_byte))
    middle = text[begin:end].rstrip()
    if not 1 <= middle.count("\n") < LONGEST_BLOCK_LINES or len(middle) > LONGEST_BLOCK:
        return None
    if text[end:].partition("\n")[0].strip() or not _is_code(tree, text, begin, begin + len(middle)):
        return None
    whole = first == 0 and last == block.named_child_count - 1 and _is_body(block)
    return Cut(begin, begin + len(middle), "multi_line", "body" if whole else "block")


def _span(tree: Tree, text: str, draw: random.Random) -> Cut | None:
    """Characters from anywhere in a line of code on; short spans are more frequent."""
    start, stop = _some_line(text, draw)
    begin = draw.randrange(start, stop + 1)
    length = int(math.exp(draw.uniform(math.log(SHORTEST_SPAN), math.log(LONGEST_SPAN))))
    end = min(len(text) - 1, begin + length)
    if len("".join(text[begin:end].split())) < SHORTEST_SPAN // 2 or not _is_code(tree, text, begin, end):
        return None
    return Cut(begin, end, "random_span", "chars")


CHOOSERS: dict[Kind, Chooser] = {"single_line": _line, "multi_line": _block, "random_span": _span}


def _some_line(text: str, draw: random.Random) -> tuple[int, int]:
    """The line around a character drawn at random, without its end."""
    at = draw.randrange(len(text))
    stop = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, len(text) if stop < 0 else stop


def _begins_token(text: str, place: int) -> bool:
    before, after = text[place - 1], text[place]
    return not after.isspace() and (_is_word(before) != _is_word(after) or not _is_word(after))


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _is_code(tree: Tree, text: str, start: int, stop: int) -> bool:
    """True for at least two letters, with neither the beginning nor the middle in a comment, a string or an import."""
    middle = text[start:stop]
    if sum(character.isalpha() for character in middle) < 2:
        return False
    lead = start + len(middle) - len(middle.lstrip())
    for place in (lead, (lead + stop) // 2):
        byte = len(text[:place].encode())
        node: Node | None = tree.root_node.descendant_for_byte_range(byte, byte + 1)
        while node is not None:
            if any(kind in node.type for kind in NO_CODE) or node.type.startswith(IMPORTS):
                return False
            node = node.parent
    return True


def _is_body(block: Node) -> bool:
    parent = block.parent
    if parent is not None and parent.type in BLOCKS:
        parent = parent.parent
    return parent is not None and parent.type.startswith(FUNCTIONS)


def _nodes(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(node.named_children)


KINDS = tuple(CHOOSERS)
