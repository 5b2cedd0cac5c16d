"""Where an edit would name something twice: in a union, a list of types, a set, a condition or an import."""

from collections.abc import Iterator

from tree_sitter import Node

from mercury_ls.code import scopes
from mercury_ls.code.documents import Snapshot, cached
from mercury_ls.code.symbols import text_of
from mercury_ls.code.syntax import upward
from mercury_ls.next_edit.places import Place

IDEMPOTENT = frozenset({"&", "&&", "and", "or", "|", "||"})
"""Operators whose operand adds nothing the second time."""
IMPORTS = frozenset({"export_clause", "import_from_statement", "named_imports", "use_list"})
SETS = IMPORTS | {"set", "type_list"}
"""Nodes that list things of which none is named twice."""


def doubles_alternative(place: Place, snapshot: Snapshot) -> bool:
    """Whether one of several alternatives would say the same as another, which it does not yet. A certain rename may
    make them alike, but nothing is imported twice."""
    start, end = snapshot.byte(place.start), snapshot.byte(place.end)
    for node in upward(snapshot, scopes.node_at(snapshot, place.start)):
        mark = _mark_of(snapshot, node)
        if not mark or (node.parent is not None and _mark_of(snapshot, node.parent) == mark):
            continue
        if place.certain and node.type not in IMPORTS:
            continue
        alternatives = [*_alternatives(snapshot, node, mark)]
        place_node = next((part for part in alternatives if part.start_byte <= start and end <= part.end_byte), None)
        if place_node is None:
            continue
        texts = {_words(text_of(part)) for part in alternatives if part is not place_node}
        after = _words(_after(place, place_node, snapshot))
        if after in texts and after != _words(text_of(place_node)):
            return True
    return False


@cached
def _mark_of(snapshot: Snapshot, node: Node) -> str:
    """What stands between the alternatives of a node; empty if it has none."""
    marks = (child.type for child in node.children)
    return next((mark for mark in marks if mark in IDEMPOTENT or (mark == "," and node.type in SETS)), "")


def _alternatives(snapshot: Snapshot, node: Node, mark: str) -> Iterator[Node]:
    """Those of a chain of operators: `(a | b) | c` has three."""
    for child in node.named_children:
        if _mark_of(snapshot, child) == mark:
            yield from _alternatives(snapshot, child, mark)
        else:
            yield child


def _after(place: Place, node: Node, snapshot: Snapshot) -> str:
    """The text of the node after the edit."""
    text = text_of(node)
    start = place.start - snapshot.offset_of_byte(node.start_byte)
    return text[:start] + (place.text or "") + text[start + place.end - place.start :]


def _words(text: str) -> str:
    return " ".join(text.split())
