"""Differences between two texts, by tokens and by lines."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Literal

from msgspec import Struct

Opcode = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]

MAX_TOKENS = 600
MAX_MATCHES = 16_000
"""Pairs of equal tokens, which determine the running time: `(1, 2), ` repeated sixty times has thirty thousand."""
MAX_PAIRS = 64
MIN_SIMILARITY = 0.35
"""The share of common tokens above which one line counts as a change to the other."""

WORD = re.compile(r"[^\W\d]\w*")
OPERATORS = r"[=!]==?|[<>:+\-*/%&|^]=|->|=>|::|&&|\|\||\?\.|\?\?|\*\*|\+\+|--|//|\.\.\.?"
TOKEN = re.compile(rf"[^\W\d]\w*|\d[\w.]*|{OPERATORS}|[^\w\s]")
QUOTES = frozenset("'\"")
TERMINATOR = re.compile(r"\r\n|\r|\n")
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class Token(Struct, frozen=True):
    text: str
    start: int
    end: int


class TokenChange(Struct, frozen=True):
    """Within an edit, `before[start:end]` became `after[new_start:new_end]`."""

    start: int
    end: int
    new_start: int
    new_end: int


def tokens(text: str) -> list[Token]:
    return [Token(match.group(), match.start(), match.end()) for match in TOKEN.finditer(text)]


@lru_cache(maxsize=512)
def token_changes(before: str, after: str) -> tuple[TokenChange, ...]:
    """The differing pieces, by tokens; the whole texts if they have too many tokens. Cached, because the recent edits
    are compared after every keystroke."""
    old, new = tokens(before), tokens(after)
    texts = [token.text for token in old], [token.text for token in new]
    if _too_many(*texts):
        return (TokenChange(0, len(before), 0, len(after)),)
    matcher = SequenceMatcher(None, *texts, autojunk=False)
    return tuple(
        _trim_blanks(before, after, TokenChange(*_gap(before, old, i, j), *_gap(after, new, k, m)))
        for tag, i, j, k, m in _align_to_arguments(matcher.get_opcodes(), old, new)
        if tag != "equal"
    )


def texts_of(before: str, after: str, touch: TokenChange) -> tuple[str, str]:
    return before[touch.start : touch.end], after[touch.new_start : touch.new_end]


def is_step_towards(before: str, after: str, target: str) -> bool:
    """True if `after` is a step on the way from `before` to `target`."""
    return 0 < _token_distance(before, after) == _token_distance(before, target) - _token_distance(after, target)


def _token_distance(first: str, second: str) -> int:
    """The number of differing tokens; for many tokens, regardless of their order."""
    old, new = TOKEN.findall(first), TOKEN.findall(second)
    if _too_many(old, new):
        went, came = Counter(old) - Counter(new), Counter(new) - Counter(old)
        return went.total() + came.total()
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return sum(j - i + m - k for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal")


def similar(before: str, after: str) -> bool:
    old, new = TOKEN.findall(before), TOKEN.findall(after)
    if old == new or _too_many(old, new):
        return False
    return SequenceMatcher(None, old, new, autojunk=False).ratio() >= MIN_SIMILARITY


def _too_many(old: list[str], new: list[str]) -> bool:
    """True if there are too many tokens to compare while the user types."""
    counts = Counter(new)
    return max(len(old), len(new)) > MAX_TOKENS or sum(counts[token] for token in old) > MAX_MATCHES


def changed_lines(before: str, after: str) -> Iterator[tuple[int, list[str], list[str]]]:
    """The replaced, inserted and deleted lines, each with the number of the first line in `after`."""
    old, new = LINE.findall(before), LINE.findall(after)
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield k, old[i:j], new[k:m]


def pair_lines(before: list[str], after: list[str]) -> list[tuple[int, int]]:
    """Pairs of similar lines, in order; none if lines were split or joined, so that the whole has more in common than
    its lines."""
    if len(before) == len(after) and all(map(similar, before, after)):
        return [(number, number) for number in range(len(before))]
    if len(before) * len(after) > MAX_PAIRS:
        return []
    old, new = ([Counter(TOKEN.findall(line)) for line in lines] for lines in (before, after))
    best: dict[tuple[int, int], tuple[int, tuple[tuple[int, int], ...]]] = {}
    for i in range(len(old) + 1):
        for k in range(len(new) + 1):
            prefixes = [best[at] for at in ((i - 1, k), (i, k - 1)) if at in best] or [(0, ())]
            common = old[i - 1] & new[k - 1] if i and k else Counter[str]()
            if any(map(WORD.match, common)) and similar(before[i - 1], after[k - 1]):
                count, pairs = best[i - 1, k - 1]
                prefixes.append((count + common.total(), (*pairs, (i - 1, k - 1))))
            best[i, k] = max(prefixes, key=lambda way: way[0])
    length, pairs = best[len(old), len(new)]
    whole = [TOKEN.findall("".join(lines)) for lines in (before, after)]
    if _too_many(*whole):
        return []
    blocks = SequenceMatcher(None, *whole, autojunk=False).get_matching_blocks()
    return list(pairs) if length >= sum(block.size for block in blocks) else []


def _align_to_arguments(opcodes: Sequence[Opcode], old: list[Token], new: list[Token]) -> Iterator[Opcode]:
    """Shift ambiguous insertions and deletions so that tokens that belong together stay together: `f(a, c)` becomes
    `f(a, b, c)` by `, b`, not `b, `; `g(a)` becomes `g(f(a))` by `f(`, not `(f`; brackets close early; a string is
    inserted whole."""
    for tag, i, j, k, m in opcodes:
        step = 0
        if tag in ("insert", "delete"):
            text, first, stop = (new, k, m) if tag == "insert" else (old, i, j)
            if first > 0 and text[first - 1].text == text[stop - 1].text and _begins(text, first - 1):
                step = -1
            elif stop < len(text) and text[first].text == text[stop].text and text[first].text in "([{":
                step = 1
        yield tag, i + step, j + step, k + step, m + step


def _begins(tokens: list[Token], at: int) -> bool:
    """True if the change begins with such a token rather than ending with one: with a quote if it opens a string."""
    text = tokens[at].text
    return text in ",)]}" or (text in QUOTES and sum(token.text == text for token in tokens[: at + 1]) % 2 == 1)


def _gap(text: str, tokens: list[Token], first: int, stop: int) -> tuple[int, int]:
    """The range from the end of the previous token to the start of the next one."""
    return tokens[first - 1].end if first else 0, tokens[stop].start if stop < len(tokens) else len(text)


def _trim_blanks(before: str, after: str, touch: TokenChange) -> TokenChange:
    """Trim blanks that both sides start or end with, and those next to unchanged text."""
    went, came = texts_of(before, after, touch)
    blanks = min(len(went) - len(went.lstrip()), len(came) - len(came.lstrip()))
    if not went.strip() or not came.strip():
        blanks = next((n for n in range(min(len(went), len(came))) if went[n] != came[n]), min(len(went), len(came)))
        blanks = min(blanks, len(went) if not went.strip() else len(came))
    went, came = went[blanks:], came[blanks:]
    tail = 0
    while tail < min(len(went), len(came)) and went[-1 - tail] == came[-1 - tail] and went[-1 - tail].isspace():
        tail += 1
    return TokenChange(touch.start + blanks, touch.end - tail, touch.new_start + blanks, touch.new_end - tail)
