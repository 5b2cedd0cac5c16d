"""Where a rule is not followed: what is no habit when done once, and words that mean nothing in another function."""

import re

from mercury_ls.code import scopes, traits
from mercury_ls.code.differences import WORD
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.symbols import text_of
from mercury_ls.code.syntax import outward
from mercury_ls.next_edit.places import Place
from mercury_ls.next_edit.rule import Rule

MODIFIERS = frozenset(
    re.findall(
        r"\w+",
        """
    abstract async const export extern final inline internal let mut override private protected pub public readonly
    sealed static var virtual
    """,
    )
)
NEGATIONS = frozenset({"!", "not"})
STRING = re.compile(r"\"[^\"]*\"|'[^']*'")
COMMENT_MARK = re.compile(r"\s*(?://|#|--|/\*|\*/)\s*")
CONTEXTUAL = re.compile(r"(?<![\w$])(?:await|self(?!::)|this|yield)(?!\w)|\?")
EVIDENCE = {
    "?": re.compile(r"\A(?>[^{]*?->)[^{]*?\b(?:Option|Result)\b|[\w)\]}]\?"),
    "await": re.compile(r"\b(?:async|await)\b"),
    "self": re.compile(r"\bself\b"),
    "this": re.compile(r"\bthis\b|::"),
    "yield": re.compile(r"\byield\b|\bfunction\b\s*\*"),
}
"""What in a function shows that the word has a place there."""
INSTANCES = frozenset({"self", "this"})


def never(rule: Rule, place: Place, snapshot: Snapshot) -> bool:
    return False


def is_no_habit(rule: Rule, place: Place, snapshot: Snapshot) -> bool:
    """Whether nobody who saw the edit once would think of this place, or its function knows nothing of what the edit
    brings. Modifiers, negations and what is commented out are decided one by one."""
    if _is_out_of_place(rule, place, snapshot):
        return True
    changed, marks = f"{rule.before} {rule.after}", [text for text in (rule.before, rule.after) if text.strip()]
    words = WORD.findall(changed)
    return rule.count == 1 and (
        changed.strip() in NEGATIONS
        or (bool(words) and MODIFIERS.issuperset(words))
        or (bool(marks) and all(COMMENT_MARK.fullmatch(text) for text in marks))
    )


def _is_out_of_place(rule: Rule, place: Place, snapshot: Snapshot) -> bool:
    """Whether the edit brings a word such as `await` or `self` into a function that cannot have it."""
    words = _contextual_words(place, snapshot)
    if not words:
        return False
    around = [*outward(scopes.node_at(snapshot, place.start))]
    functions = [node for node in around if node.type in scopes.FUNCTIONS]
    if not functions:
        return snapshot.language == "python" and bool(rule.lines_before)
    body = functions[0].child_by_field_name("body")
    if body is not None and snapshot.byte(place.start) < body.start_byte:
        return False
    if snapshot.language not in traits.EXPLICIT_SELF and any(node.type in scopes.TYPES for node in around):
        words -= INSTANCES
    return not all(EVIDENCE[word].search(text_of(functions[-1 if word in INSTANCES else 0])) for word in words)


def _contextual_words(place: Place, snapshot: Snapshot) -> set[str]:
    """New words that mean something in some functions only; `?` is one in Rust alone."""
    texts = snapshot.text[place.start : place.end], place.text or ""
    old, new = (set(CONTEXTUAL.findall(STRING.sub("", text))) for text in texts)
    return new - old if snapshot.language == "rust" else new - old - {"?"}
