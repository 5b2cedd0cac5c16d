"""Lines that change, come or go as others did: the shape that those had, with holes for what may differ."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from msgspec import Struct

from mercury_ls.code import scopes
from mercury_ls.code.differences import TOKEN, Token, tokens, touches_of
from mercury_ls.code.documents import Snapshot
from mercury_ls.next_edit.lexemes import bounded, changed_words, indentation, minimal
from mercury_ls.next_edit.places import Place, in_the_files_lines, place_of
from mercury_ls.next_edit.propagation import FIXED, KEYWORDS, PARTS, Rule, shape

__all__ = ["clones", "deletions", "insertions", "kinship", "shape_of", "tokens_of"]

LONGEST_TEMPLATE = 120
LONGEST_LINE = 400
MOST_INSERTIONS = 24
MOST_COMPARED = 4096
HEADS = {"x": r"[^\W\d]\w*+", "0": r"\d[\w.]*+"}
TELLING = 5
"""A shape of so many tokens says something by itself."""
LEAST_RESEMBLANCE = 0.8
BLANKS = 0.2
"""What it counts that both neighbours are blank."""
IMPORTED = re.compile(r"\s*(?:import|from|use|using|#include|export\b.*\bfrom)\b")
"""What a file says once."""
LINES = re.compile(r"[^\n]*\n|[^\n]+")
WORDS = re.compile(r"[^\W\d]\w*")
NAME = r"[^\W\d]\w*+"
JOINT = r"(?:\.|::|->|\?\.)"
STRING = r"(?:\b[bfruBFRU]{1,2})?(?:\"(?:\\.|[^\"\\\n])*+\"|(?<![\w&<])'(?:\\.|[^'\\\n])*+')"
OPERAND = re.compile(rf"(?P<string>{STRING})|(?P<path>(?<![\w.]){NAME}(?:{JOINT}{NAME})++)")
HOLES = {
    "string": f"({STRING})",
    "path": rf"((?<![\w.]){NAME}(?:{JOINT}{NAME})*+)",
    "word": r"([^\W\d]\w*)",
    "number": r"(\d[\w.]*)",
}


def tokens_of(text: str) -> list[str]:
    return TOKEN.findall(text)


def clones(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """Lines of the same shape, other names in it: what went has to be there, the rest may differ. The parameters of one
    function say nothing of another's."""
    if rule.count == 1 and home is not None and scopes.in_parameters(home, place_of(rule, home)):
        return
    rare = rule.count > 1 or len(tokens(rule.lines_before)) >= TELLING
    yield from templated(rule.lines_before, rule.lines_after, snapshot, rare)


def deletions(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    for start, end, _, same in matches(rule.lines_before, rule.lines_before, snapshot):
        first = snapshot.line_start(snapshot.line_of(start))
        last = snapshot.line_of(end)
        stop = snapshot.line_stop(last)
        yield Place(first, stop, "", same)


def insertions(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """The same lines between lines like those that they were put between, with the names of these."""
    if home is None or not rule.lines_after.strip():
        return
    count = len(LINES.findall(rule.lines_after))
    above, below = line_or_none(home, rule.line - 1), line_or_none(home, rule.line + count)
    here = rule.line if home is snapshot else None
    found = []
    for number in worth_comparing(above, below, snapshot, rule.line):
        if here is not None and here <= number <= here + count:
            continue
        on_top, beneath = line_or_none(snapshot, number - 1), line_or_none(snapshot, number)
        upper, lower = resemblance(above, on_top), resemblance(below, beneath)
        if upper + lower >= LEAST_RESEMBLANCE and max(upper, lower) > BLANKS:
            found.append((-(upper + lower), abs(number - rule.line), number, upper, lower))
    for _, _, number, upper, lower in sorted(sorted(found)[:MOST_INSERTIONS], key=lambda each: each[2]):
        on_top, beneath = line_or_none(snapshot, number - 1), line_or_none(snapshot, number)
        like, old = (on_top, above) if upper >= lower else (beneath, below)
        words = {**words_instead(above, on_top), **words_instead(below, beneath)}
        text = transplanted(rule.lines_after, old or "", like or "", words)
        once = IMPORTED.match(text) and text.strip() in snapshot.text
        if number < snapshot.line_count and not once and not stands(snapshot, number, text):
            start = snapshot.line_start(number)
            yield Place(start, start, text, (upper + lower) / 2, same_role=upper == lower == 1.0, sides=(upper, lower))


def worth_comparing(above: str | None, below: str | None, snapshot: Snapshot, near: int) -> list[int]:
    """The lines beside which one of the two neighbours has a line that at least begins alike; the nearest of many."""
    numbers = {*(number + 1 for number in beginning_like(above, snapshot)), *beginning_like(below, snapshot)}
    if len(numbers) > MOST_COMPARED:
        numbers = set(sorted(numbers, key=lambda number: abs(number - near))[:MOST_COMPARED])
    return sorted(numbers)


def beginning_like(old: str | None, snapshot: Snapshot) -> Iterator[int]:
    """Lines whose shape may begin with the same two tokens."""
    heads = [HEADS.get(token, re.escape(token)) for token in shape_of(old or "").split()[:2]]
    pattern = re.compile(r"^[^\S\n]*+" + r"[^\S\n]*+".join(heads), re.MULTILINE)
    return (snapshot.line_of(match.end() - 1) for match in pattern.finditer(snapshot.text)) if heads else iter(())


def line_or_none(snapshot: Snapshot, number: int) -> str | None:
    return snapshot.line(number) if 0 <= number < snapshot.line_count else None


def resemblance(old: str | None, line: str | None) -> float:
    """1 for the same tokens, less for the same shape, the more so the fewer names are alike, still less for the same
    beginning, little for two blanks."""
    if old is None or line is None:
        return BLANKS if old is line is None else 0.0
    if not old.strip() or not line.strip():
        return BLANKS if old.strip() == line.strip() else 0.0
    if old.strip() == line.strip():
        return 1.0
    one, other = shape_of(old), shape_of(line)
    if one == other:
        return 0.7 + 0.25 * kinship(old, line)
    return 0.4 if one.split()[:2] == other.split()[:2] else 0.0


@lru_cache(maxsize=1 << 14)
def kinship(old: str, line: str) -> float:
    """The share of the words of its names that a line has, too."""
    mine, theirs = ({word for word in PARTS.findall(text) if word.strip("_")} - KEYWORDS for text in (old, line))
    return len(mine & theirs) / max(len(mine | theirs), 1)


@lru_cache(maxsize=1 << 15)
def shape_of(line: str) -> str:
    """Lines of one shape have as many tokens; one that is too long has the shape of none but itself."""
    return shape(line) if len(line) <= LONGEST_LINE else line


def transplanted(inserted: str, old: str, like: str, words: Mapping[str, str]) -> str:
    """The lines with the indentation of a line like the old neighbour, and with the names that these have instead."""
    before, after = indentation(old), indentation(like)
    lines = []
    for line in LINES.findall(inserted):
        fresh = after + line.removeprefix(before) if line.startswith(before) and line.strip() else line
        lines.append(WORDS.sub(lambda match: with_words(match.group(), words), fresh))
    text = "".join(lines)
    return text if text.endswith("\n") else text + "\n"


def words_instead(old: str | None, like: str | None) -> dict[str, str]:
    """The names, and the words of names, that a line of the same shape has instead."""
    if old is None or like is None or shape_of(old) != shape_of(like):
        return {}
    pairs = zip(tokens_of(old), tokens_of(like), strict=True)
    return {**changed_words(old, like), **{a: b for a, b in pairs if a != b and a.isidentifier() and len(a) > 1}}


def with_words(name: str, words: Mapping[str, str]) -> str:
    """The name that stands instead, or the name with the words that do."""
    if not words or name in words:
        return words.get(name, name)
    pattern = "|".join(map(bounded, sorted(words, key=len, reverse=True)))
    return re.sub(pattern, lambda match: words[match.group()], name)


def stands(snapshot: Snapshot, number: int, text: str) -> bool:
    """Whether the lines to insert stand above or below already."""
    lines = [line.strip() for line in LINES.findall(text)]
    for first in (number - len(lines), number):
        around = [line_or_none(snapshot, first + at) for at in range(len(lines))]
        if [line and line.strip() for line in around] == lines:
            return True
    return False


def templated(before: str, after: str, snapshot: Snapshot, rare: bool = False) -> Iterator[Place]:
    for start, end, text, same in matches(before, after, snapshot, rare):
        old, text = snapshot.text[start:end], in_the_files_lines(text, snapshot)
        if text != old:
            change = minimal(old, text)
            reach = snapshot.line_start(snapshot.line_of(start)), end
            yield Place(start + change.start, start + change.end, change.text, same, reach=reach)


def matches(before: str, after: str, snapshot: Snapshot, rare: bool = False) -> Iterator[tuple[int, int, str, float]]:
    """Range, new text and the share of names that are the same, for all that has the shape of `before`, and a name
    of it unless it may be `rare`."""
    template = learned_template(before, after)
    if template is None:
        return
    for match in found(template, snapshot.text):
        values = match.groups()[1:]
        same = sum(a == b for a, b in zip(values, template.values, strict=True))
        words = [b for a, b in zip(values, template.values, strict=True) if a == b and len(b) > 2 and WORDS.search(b)]
        if values and not words and not template.anchored and not rare:
            continue
        yield match.end(1), match.end(), template.build(match), same / max(len(values), 1)


def found(template: "Template", text: str) -> Iterator[re.Match[str]]:
    """As `finditer` has them. Only lines with the mark can match, and to find a mark is quicker than to try a line."""
    if not template.mark:
        yield from template.pattern.finditer(text)
        return
    end, at = 0, text.find(template.mark)
    while at >= 0:
        start = line_above(text, at, template.mark_line)
        if start >= end and (match := template.pattern.match(text, start)):
            yield match
            end = match.end()
        line_end = text.find("\n", at)
        at = text.find(template.mark, line_end) if line_end >= 0 else -1


def line_above(text: str, offset: int, count: int) -> int:
    """The start of the line so many above that of the offset, -1 where there is none."""
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
    margin, lost, kept = indentation(before), gone(before, after), unchanged(before, after)
    old = units(before, kept.__contains__)
    pattern, groups, values = [r"^([ \t]*)"], {}, []
    mark, mark_line, line = "", 0, 0
    for at, unit in enumerate(old):
        if at:
            gap = before[old[at - 1].end : unit.start]
            line += "\n" in gap
            pattern.append(gap_pattern(gap, margin, old[at - 1], unit))
        beside = [other.text for other in old[max(at - 1, 0) : at + 2]]
        is_joined = any(re.fullmatch(JOINT, text) for text in beside)
        is_called = unit.text.isidentifier() and beside[-1] == "("
        kind = "" if unit.start in lost else kind_of(unit.text, is_joined or is_called)
        if not kind and len(unit.text) > len(mark):
            mark, mark_line = unit.text, line
        pattern.append(hole(unit.text, kind, groups, values))
    pieces = [*new_pieces(after, units(after, groups.__contains__), groups, margin)]
    names = [unit.text for unit in old if unit.start in lost and unit.text.isidentifier()]
    anchored = any(len(name) > 2 and name not in KEYWORDS for name in names)
    whole_lines = re.compile("".join(pattern) + r"(?=[ \t]*\r?$)", re.MULTILINE)
    return Template(whole_lines, tuple(values), tuple(pieces), anchored, mark, mark_line)


def gone(before: str, after: str) -> set[int]:
    """Where the tokens stand that went; a name that only moved did not, where more than the order changed."""
    found, reordered = touches_of(before, after), sorted(tokens_of(before)) == sorted(tokens_of(after))
    stay = set() if reordered else set(WORDS.findall(after)) - KEYWORDS
    went = (token for token in tokens(before) if any(t.start <= token.start < t.end for t in found))
    return {token.start for token in went if token.text not in stay}


def unchanged(before: str, after: str) -> set[str]:
    """The strings and paths of both, without the paths of which a name has a use of its own as well."""
    operands = [match for text in (before, after) for match in OPERAND.finditer(text)]
    both = {each.group() for each in OPERAND.finditer(before)} & {each.group() for each in OPERAND.finditer(after)}
    paths = {match["path"] for match in operands if match["path"]}
    bare = {word for text in (before, after) for word in WORDS.findall(OPERAND.sub("", text))}
    others = {path: bare.union(*(WORDS.findall(other) for other in paths if other != path)) for path in paths}
    return {each for each in both if not (set(WORDS.findall(each)) - FIXED) & others.get(each, set())}


def units(text: str, is_whole: Callable[[str], bool]) -> list[Token]:
    """The tokens, each operand that is whole as one."""
    found, end = [], 0
    for match in OPERAND.finditer(text):
        if is_whole(match.group()):
            found += tokens_of_part(text, end, match.start())
            found.append(Token(match.group(), *match.span()))
            end = match.end()
    return [*found, *tokens_of_part(text, end, len(text))]


def tokens_of_part(text: str, start: int, end: int) -> Iterator[Token]:
    for token in tokens(text[start:end]):
        yield Token(token.text, start + token.start, start + token.end)


def kind_of(text: str, is_joined: bool) -> str:
    """What may stand instead: a path also for a name that is no part of one and is not called."""
    if text[-1] in "\"'" and len(text) > 1:
        return "string"
    if text[0].isdigit():
        return "number"
    if text in FIXED or not (text[0].isalpha() or text[0] == "_"):
        return ""
    return "word" if is_joined else "path"


def hole(text: str, kind: str, groups: dict[str, int], values: list[str]) -> str:
    """The same name is the same in all its places."""
    if not kind:
        return re.escape(text) + (r"(?!\w)" if text[-1].isalnum() or text[-1] == "_" else "")
    if text in groups:
        return rf"(?:\{groups[text]})(?!\w)"
    values.append(text)
    groups[text] = len(values) + 1
    return HOLES[kind]


def gap_pattern(gap: str, margin: str, left: Token, right: Token) -> str:
    if "\n" not in gap:
        return r"[ \t]+" if gap and left.text[-1].isalnum() and right.text[0].isalnum() else r"[ \t]*"
    deeper = gap.rpartition("\n")[2].removeprefix(margin)
    return r"[ \t]*\r?\n(?:\1)" + re.escape(deeper)


def new_pieces(after: str, new: list[Token], groups: dict[str, int], margin: str) -> Iterator[str | int]:
    """The new text, with every name that fills a hole replaced by what fills it now, and every line indented alike."""
    for at, token in enumerate(new):
        if at:
            yield from gap_pieces(after[new[at - 1].end : token.start], margin)
        yield groups.get(token.text, token.text)


def gap_pieces(gap: str, margin: str) -> Iterator[str | int]:
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
