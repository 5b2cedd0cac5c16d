"""Where an edit that was made once is about its own place: a decision, a number in a sentence, a word of a language."""

import re
from difflib import SequenceMatcher

from mercury_ls.code import syntax
from mercury_ls.code.differences import WORD
from mercury_ls.code.documents import Snapshot, cached
from mercury_ls.code.lexemes import CONSTANTS, KEYWORDS, QUOTES
from mercury_ls.next_edit.examples import PieceRule
from mercury_ls.next_edit.places import Place, sides
from mercury_ls.next_edit.rule import Rule

SHORT_WORD = 2
PLAIN_WORD = re.compile(r"[A-Z]?[a-z]+")
SPELLED_ALIKE = 0.75
"""How alike two words are of which one is the other without its mistake, or in another form."""
TRUTHS = frozenset({"false", "true"})
NUMBERS = re.compile(r"[\d.]+(?:\0[\d.]+)*")
STRING = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")
OPERAND = re.compile(r"(?<![\w.$])[\w.$]++[ \t]*+\Z")
COMPARED = re.compile(r"(?:[=!]==?|[<>]=?|\bis(?: not)?)[ \t]*\Z")


def is_about_its_place(rule: Rule, place: Place, snapshot: Snapshot) -> bool:
    """Whether nobody who saw the edit once would repeat it here. True or false, and what something is compared with,
    are decided one by one; numbers, short words and whole lines of prose mean nothing in another sentence."""
    if rule.count > 1 or place.certain or place.text is None:
        return False
    before, after = rule.before, rule.after
    if frozenset({before.lower(), after.lower()}) == TRUTHS:
        return True
    if not before.strip() and STRING.fullmatch(after.strip(" ,\t")):
        return True
    if not place.text and _removes_another(place, snapshot):
        return True
    if _removes_from_another(rule, place, snapshot) or _reorders_another(before, after, place, snapshot):
        return True
    if syntax.inside(snapshot, place.start) is not None:
        is_own = _is_about_its_sentence(before, after, snapshot, place.start)
        return is_own or _is_in_another_sentence(rule, place, snapshot)
    if _is_keyword_for_name(before, after):
        return True
    head = snapshot.text[snapshot.line_start(snapshot.line_of(place.start)) : place.start]
    return _are_numbers(before, after) and COMPARED.search(head) is not None


def _is_about_its_sentence(before: str, after: str, snapshot: Snapshot, offset: int) -> bool:
    is_other_word = WORD.fullmatch(before) is not None and before.lower() != after.lower()
    if (is_other_word and len(before) <= SHORT_WORD) or "\n" in before + after:
        return True
    return _are_numbers(before, after) and is_prose(snapshot, offset)


def _is_in_another_sentence(rule: Rule, place: Place, snapshot: Snapshot) -> bool:
    """Whether a word became one that means something else, and stands between other words here."""
    before, after = rule.before, rule.after
    if not isinstance(rule, PieceRule) or not (PLAIN_WORD.fullmatch(before) and PLAIN_WORD.fullmatch(after)):
        return False
    if before.lower() == after.lower() or SequenceMatcher(None, before, after).ratio() >= SPELLED_ALIKE:
        return False
    if not _is_word_of_sentence(snapshot.text, place.start, place.end):
        return False
    left, right = sides(snapshot, place.start, place.end)
    return [*rule.left[-1:]] != left[-1:] or [*rule.right[:1]] != right[:1]


def _is_word_of_sentence(text: str, start: int, end: int) -> bool:
    """Whether blanks or quotes stand around it. Code looks otherwise, which a parser that has lost its way takes for a
    string."""
    around = text[max(start - 1, 0) : start] + text[end : end + 1]
    return all(character.isspace() or character in QUOTES for character in around)


def _are_numbers(before: str, after: str) -> bool:
    return NUMBERS.fullmatch(before) is not None and NUMBERS.fullmatch(after) is not None


def _is_keyword_for_name(before: str, after: str) -> bool:
    """Whether a word that is a keyword in some language became a name."""
    return before in KEYWORDS and after not in KEYWORDS and WORD.fullmatch(after) is not None


def is_prose(snapshot: Snapshot, offset: int) -> bool:
    """Whether it is in a comment or a documentation string."""
    if syntax.inside(snapshot, offset) == "comment":
        return True
    around = syntax.ancestors(snapshot, offset)
    return any(node.type == "string" and node.parent and node.parent.type == "expression_statement" for node in around)


def _removes_from_another(rule: Rule, place: Place, snapshot: Snapshot) -> bool:
    """Whether words of the language would go from behind another operand: `a is not None` became `a`."""
    words = re.findall(r"\w+", rule.before)
    if not words or rule.after.strip() or not (KEYWORDS | CONSTANTS).issuperset(words):
        return False
    edited_operand = OPERAND.search(rule.lines_before.partition(rule.before)[0])
    line = snapshot.text[snapshot.line_start(snapshot.line_of(place.start)) : place.start]
    operand = OPERAND.search(line)
    return (edited_operand and edited_operand.group().strip()) != (operand and operand.group().strip())


def _reorders_another(before: str, after: str, place: Place, snapshot: Snapshot) -> bool:
    """Whether the parameters of another definition would change their order, and its calls would not."""
    words = [sorted(WORD.findall(text)) for text in (before, after)]
    if len(words[0]) < 2 or words[0] != words[1]:
        return False
    return snapshot.line_of(place.start) in _heading_lines(snapshot)


@cached
def _heading_lines(snapshot: Snapshot) -> frozenset[int]:
    return frozenset(snapshot.line_of(definition.start) for definition in syntax.definitions(snapshot))


def _removes_another(place: Place, snapshot: Snapshot) -> bool:
    """Whether a definition of another name would go."""
    return place.likeness < 1.0 and any(
        place.start <= definition.start < place.end for definition in syntax.definitions(snapshot)
    )
