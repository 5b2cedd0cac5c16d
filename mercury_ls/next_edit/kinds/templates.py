"""Lines of the same shape: a pattern made from a line that changed, with holes for what may differ in other lines."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache

from msgspec import Struct

from mercury_ls.code.differences import WORD, Token, token_changes, tokens
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import FIXED, KEYWORDS, indentation, tokens_of

LONGEST_TEMPLATE = 120
NAME = r"[^\W\d]\w*+"
JOINT = r"(?:\.|::|->|\?\.)"
STRING = r"(?:\b[bfruBFRU]{1,2})?(?<!\\)(?:\"(?:\\.|[^\"\\\n])*+\"|(?<![\w&<])'(?:\\.|[^'\\\n])*+')"
OPERAND = re.compile(rf"(?P<string>{STRING})|(?P<path>(?<![\w.]){NAME}(?:{JOINT}{NAME})++)")
HOLES = {
    "string": f"({STRING})",
    "path": rf"((?<![\w.]){NAME}(?:{JOINT}{NAME})*+)",
    "word": r"([^\W\d]\w*)",
    "number": r"(\d[\w.]*)",
}


def matches(before: str, after: str, snapshot: Snapshot, rare: bool = False) -> Iterator[tuple[int, int, str, float]]:
    """Range, new text and the share of equal names for all lines of the shape of `before` that share a name with it, or
    any if the shape alone is enough (`rare`)."""
    template = learned_template(before, after)
    if template is None:
        return
    is_enough = rare or template.anchored or not template.values
    for match in occurrences(template, snapshot.text):
        pairs = zip(match.groups()[1:], template.values, strict=True)
        shared = [value for value, learned in pairs if value == learned]
        if is_enough or any(len(value) > 2 and WORD.search(value) for value in shared):
            share = len(shared) / max(len(template.values), 1)
            yield match.end(1), match.end(), template.build(match), share


def occurrences(template: "Template", text: str) -> Iterator[re.Match[str]]:
    """Like `finditer`, but quicker: only lines with the mark can match."""
    if not template.mark:
        yield from template.pattern.finditer(text)
        return
    end, at = 0, text.find(template.mark)
    while at >= 0:
        start = _line_above(text, at, template.mark_line)
        if start >= end and (match := template.pattern.match(text, start)):
            yield match
            end = match.end()
        line_end = text.find("\n", at)
        at = text.find(template.mark, line_end) if line_end >= 0 else -1


def _line_above(text: str, offset: int, count: int) -> int:
    """The start of the line so many above that of the offset, or -1."""
    start = text.rfind("\n", 0, offset) + 1
    for _ in range(count):
        start = text.rfind("\n", 0, start - 1) + 1 if start > 0 else -1
    return start


class Template(Struct, frozen=True):
    """`pattern` has the indentation as its first group and a group for each hole; `values` are what first filled them.
    `pieces` make the new text: a number is a hole's group, the rest is literal. `anchored`: a name that went is in it.
    `mark` is the longest text that every match has, so many lines below its first.
    """

    pattern: re.Pattern[str]
    values: tuple[str, ...]
    pieces: tuple[str | int, ...]
    anchored: bool
    mark: str
    mark_line: int

    def build(self, match: re.Match[str]) -> str:
        return "".join(match.group(piece) if isinstance(piece, int) else piece for piece in self.pieces)


@lru_cache(maxsize=64)
def learned_template(before: str, after: str) -> Template | None:
    if not 0 < len(tokens(before)) <= LONGEST_TEMPLATE:
        return None
    margin, removed, unchanged_words = indentation(before), _offsets_removed(before, after), _unchanged(before, after)
    old = _units(before, unchanged_words.__contains__)
    pattern = [r"^([ \t]*)"]
    groups: dict[str, int] = {}
    values: list[str] = []
    mark, mark_line, line = "", 0, 0
    for at, unit in enumerate(old):
        if at:
            gap = before[old[at - 1].end : unit.start]
            line += "\n" in gap
            pattern.append(_gap_pattern(gap, margin, old[at - 1], unit))
        neighbours = [token.text for token in old[max(at - 1, 0) : at + 2]]
        is_joined = any(re.fullmatch(JOINT, text) for text in neighbours)
        is_called = unit.text.isidentifier() and neighbours[-1] == "("
        kind = "" if unit.start in removed else _kind_of(unit.text, is_joined or is_called)
        if not kind and len(unit.text) > len(mark):
            mark, mark_line = unit.text, line
        pattern.append(_hole(unit.text, kind, groups, values))
    pieces = [*_new_pieces(after, _units(after, groups.__contains__), groups, margin)]
    names = [unit.text for unit in old if unit.start in removed and unit.text.isidentifier()]
    anchored = any(len(name) > 2 and name not in KEYWORDS for name in names)
    whole_lines = re.compile("".join(pattern) + r"(?=[ \t]*\r?$)", re.MULTILINE)
    return Template(whole_lines, tuple(values), tuple(pieces), anchored, mark, mark_line)


def _offsets_removed(before: str, after: str) -> set[int]:
    """The offsets of the removed tokens, without names that only moved, unless nothing but the order changed."""
    changes, old = token_changes(before, after), tokens(before)
    went = [token for change in changes for token in old if change.start <= token.start < change.end]
    stay = set[str]()
    if sorted(tokens_of(before)) != sorted(tokens_of(after)):
        words = Counter(WORD.findall(before))
        fewer = words - Counter(WORD.findall(after))
        stay = words.keys() - fewer.keys() - KEYWORDS
    return {token.start for token in went if token.text not in stay}


def _unchanged(before: str, after: str) -> set[str]:
    """The strings and paths of both, without paths whose names also occur by themselves or in other paths."""
    old, new = [*OPERAND.finditer(before)], [*OPERAND.finditer(after)]
    shared = {operand.group() for operand in old} & {operand.group() for operand in new}
    paths = {operand["path"] for operand in (*old, *new) if operand["path"]}
    bare = {*WORD.findall(OPERAND.sub("", before)), *WORD.findall(OPERAND.sub("", after))}
    mixed = set[str]()
    for path in shared & paths:
        elsewhere = bare.union(*(WORD.findall(other) for other in paths - {path}))
        if not elsewhere.isdisjoint({*WORD.findall(path)} - FIXED):
            mixed.add(path)
    return shared - mixed


def _units(text: str, is_whole: Callable[[str], bool]) -> list[Token]:
    """The tokens, with each operand that stays whole as one token."""
    whole_tokens: list[Token] = []
    end = 0
    for match in OPERAND.finditer(text):
        if is_whole(match.group()):
            whole_tokens += _tokens_of_part(text, end, match.start())
            whole_tokens.append(Token(match.group(), match.start(), match.end()))
            end = match.end()
    return [*whole_tokens, *_tokens_of_part(text, end, len(text))]


def _tokens_of_part(text: str, start: int, end: int) -> Iterator[Token]:
    for token in tokens(text[start:end]):
        yield Token(token.text, start + token.start, start + token.end)


def _kind_of(text: str, is_joined: bool) -> str:
    """What may fill the hole: a path also for a name that is neither part of one nor called."""
    if text[-1] in "\"'" and len(text) > 1:
        return "string"
    if text[0].isdigit():
        return "number"
    if text in FIXED or not (text[0].isalpha() or text[0] == "_"):
        return ""
    return "word" if is_joined else "path"


def _hole(text: str, kind: str, groups: dict[str, int], values: list[str]) -> str:
    """A repeated name has to be the same everywhere."""
    if not kind:
        return re.escape(text) + (r"(?!\w)" if text[-1].isalnum() or text[-1] == "_" else "")
    if text in groups:
        return rf"(?:\{groups[text]})(?!\w)"
    values.append(text)
    groups[text] = len(values) + 1
    return HOLES[kind]


def _gap_pattern(gap: str, margin: str, before: Token, after: Token) -> str:
    if "\n" not in gap:
        return r"[ \t]+" if gap and before.text[-1].isalnum() and after.text[0].isalnum() else r"[ \t]*"
    deeper = gap.rpartition("\n")[2].removeprefix(margin)
    return r"[ \t]*\r?\n(?:\1)" + re.escape(deeper)


def _new_pieces(after: str, new: list[Token], groups: dict[str, int], margin: str) -> Iterator[str | int]:
    """The new text: literals, and the groups of the holes and of the indentation."""
    for at, token in enumerate(new):
        if at:
            yield from _gap_pieces(after[new[at - 1].end : token.start], margin)
        yield groups.get(token.text, token.text)


def _gap_pieces(gap: str, margin: str) -> Iterator[str | int]:
    if "\n" not in gap:
        yield gap
        return
    blank, _, last = gap.rpartition("\n")
    yield "\n" * (blank.count("\n") + 1)
    if last.startswith(margin):
        yield 1
        yield last[len(margin) :]
    else:
        yield last
