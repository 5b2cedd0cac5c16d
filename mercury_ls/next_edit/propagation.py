"""What the last edits mean: each a rule that other places of the code may have to follow."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Edit
from mercury_ls.code.differences import (
    LINE,
    TOKEN,
    WORD,
    Token,
    Touch,
    alike,
    others,
    paired,
    pieces,
    stretches,
    tokens,
    touches_of,
)

__all__ = [
    "FIXED",
    "IMPORT",
    "KEYWORDS",
    "PARTS",
    "Kind",
    "Rule",
    "balanced",
    "changed_part",
    "openness",
    "rules",
    "shape",
    "travelling",
]

Kind = (
    Literal["rename", "part", "phrase", "argument", "parameter", "clone", "delete", "insert", "extract", "unused"]
    | Literal["import", "entry", "stored", "signature", "trim", "align"]
)
"""What a rule speaks of: a name, a part of names, a piece of code, an argument at calls, a parameter that the calls
must follow, lines of one shape that changed, went or came, an expression that a new variable stands for, an import
that nothing uses any more, a name that other files may have to import; an entry that a list got, a parameter that its
function may have to keep, or that other declarations lack, blanks at the ends of lines that went, blanks within lines
that others may need to stand in one column."""

KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
    and as async await bool boolean break case catch char class const continue def default del do double elif
    else enum except export extends extern final finally float fn for from func function go if impl import in
    int interface is lambda let long match mod module mut namespace new not None null nil or package pass
    private protected pub public raise range return self static string struct super switch this throw throws
    trait True true False false try type typeof undefined unsigned use using var void where while with yield
    """,
    )
)

FIXED = KEYWORDS - {"bool", "boolean", "char", "double", "float", "int", "long", "string", "unsigned", "void"}
"""What a shape is made of: the names of built-in types are names as others are."""

LONGEST_EDIT = 4000
MOST_RULES = 40
LONGEST_ENTRY = 4
LONGEST_SPAN = 8
NEIGHBOURS = 4
LATEST = 3
SHORT_NAME = 3

PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|_+")
IMPORT = re.compile(r"\s*(?:import|from|use|using|#include|package|const \{?[\w, ]+\}? = require)\b")
MADE = re.compile(
    r"(?:def|class|fn|func|function|struct|enum|trait|interface|type|const|export let)[ \t]+(?P<name>[^\W\d]\w{2,})"
    r"|(?P<constant>[A-Z][A-Z\d_]{2,})[ \t]*(?::[^=\n]+)?=[^=]",
)
ALIAS = re.compile(r"(?<![\w.])(?P<name>[^\W\d]\w*)[ \t]+as[ \t]+(?P<alias>[^\W\d]\w*)")
REMARK = re.compile(r"\s*(?:#|//|/?\*|--)")
SIGNATURE = re.compile(r"(?<!\w)(?P<name>[^\W\d]\w*)[ \t]*\((?P<parameters>(?:[^()]|\([^()]*\))*)\)")
DEFINING = frozenset({"def", "fn", "func", "function", "class", "macro_rules"})
ASSIGNED = re.compile(
    r"\s*(?:(?:const|let|var|auto|final|val|mut|[A-Z]\w*)\s+)*(?P<name>[^\W\d]\w*)\s*(?::[^=]+)?:?=(?![=>~])\s*(?P<value>\S.*?);?\s*$"
)
MAKING = re.compile(r"(?<![\w)\]])\[|\{|\+\+|--|<-|:=|=>|\b(?:await|fn|func|function|lambda|make|new|yield)\b")
"""What waits, makes or changes something: said again, it is another."""


class Rule(Struct, frozen=True, kw_only=True):
    """`before` became `after`, between the tokens `left` (nearest last) and `right` (nearest first).

    `lines_before` and `lines_after` are the whole lines. It was last done at offset `column` of line `line` of `path`,
    `age` edits ago, first `since` edits ago, and `count` times in all, at `places`. `name` is the function whose
    arguments are meant, `index` the number of the argument as it is written, `names` those of which a part changed.
    `changed` is the share of the lines' tokens that the edit changed, in so many `pieces`; it had so many `lines`.
    Where the rule is `contested`, the same once became something else. `glued` says that no blank follows the new text.
    """

    kind: Kind
    before: str
    after: str
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    lines_before: str = ""
    lines_after: str = ""
    path: str = ""
    line: int = 0
    column: int = 0
    age: int = 0
    since: int = 0
    count: int = 1
    places: tuple[tuple[str, int], ...] = ()
    name: str = ""
    names: tuple[str, ...] = ()
    index: int = -1
    changed: float = 1.0
    pieces: int = 1
    lines: int = 1
    contested: bool = False
    glued: bool = False

    @property
    def key(self) -> tuple[str, ...]:
        """What makes two edits the same: lines count by their shape, a parameter by its function."""
        if self.kind == "entry":
            return self.kind, self.lines_after
        if self.kind in ("clone", "delete", "insert"):
            return self.kind, shape(self.lines_before), shape(self.lines_after), self.before, self.after
        return self.kind, self.before, self.after, self.function

    @property
    def function(self) -> str:
        """Whose argument it is; what is a phrase as well may be anybody's."""
        return "" if self.kind == "phrase" else self.name


def rules(edits: Sequence[Edit]) -> tuple[Rule, ...]:
    """What the edits, oldest first, say; the latest first, the same thing once, and what was taken back not at all."""
    merged: dict[tuple[str, ...], Rule] = {}
    for age, edit in enumerate(reversed(edits)):
        for lesson in lessons(edit.path, edit.before, edit.after):
            place = {"line": edit.line + lesson.line, "places": ((edit.path, edit.line),)}
            rule = replace(lesson, age=age, since=age, **place)
            known = merged.get(rule.key)
            merged[rule.key] = rule if known is None else again(known, rule)
    found = [*merged.values(), *parts(merged.values())]
    kept = [rule for rule in found if not taken_back(rule, found) and not put_back(rule, found)][:MOST_RULES]
    return tuple(replace(rule, contested=any(contradicts(rule, other) for other in kept)) for rule in kept)


def travelling(edits: Sequence[Edit]) -> tuple[str, ...]:
    """The names by which other files may know what the latest edits changed."""
    found = (rule.before if rule.kind == "rename" else rule.name for rule in rules(edits[-LATEST:]) if rule.age == 0)
    return tuple(dict.fromkeys(name for name in found if len(name) > SHORT_NAME and name not in KEYWORDS))


def shape(text: str) -> str:
    """The tokens of the text, with every name and every number alike."""
    return " ".join(map(kind_of, TOKEN.findall(text)))


@lru_cache(maxsize=1 << 14)
def kind_of(token: str) -> str:
    return "x" if token.isidentifier() and token not in FIXED else "0" if token[0].isdigit() else token


def again(known: Rule, rule: Rule) -> Rule:
    """The later one goes on; what was done in code says more than what was done in a comment."""
    told = known
    if known.kind == "rename" and REMARK.match(known.lines_after) and not REMARK.match(rule.lines_after):
        told = replace(rule, age=known.age)
    return replace(told, count=known.count + 1, since=rule.age, places=(*known.places, *rule.places))


def taken_back(rule: Rule, others: Iterable[Rule]) -> bool:
    """Whether a later edit did the reverse."""
    return any(
        (other.before, other.after) == (rule.after, rule.before) and other.age <= rule.age and rule.before != rule.after
        for other in others
        if other.kind == rule.kind
    )


def put_back(rule: Rule, others: Iterable[Rule]) -> bool:
    """Whether lines that went came again later, or lines that came went."""
    if rule.kind not in ("delete", "insert"):
        return False
    later = [other for other in others if other.kind in ("delete", "insert") and other.age < rule.age]
    lines = (rule.lines_before + rule.lines_after).strip()
    return any(other.kind != rule.kind and (other.lines_before + other.lines_after).strip() == lines for other in later)


def contradicts(rule: Rule, other: Rule) -> bool:
    if rule.kind != other.kind or rule.kind in ("insert", "delete", "unused"):
        return False
    same = (rule.before, rule.function, shape(rule.lines_before) if rule.kind == "clone" else "")
    return same == (other.before, other.function, same[2] and shape(other.lines_before)) and rule.after != other.after


@lru_cache(maxsize=256)
def lessons(path: str, before: str, after: str) -> tuple[Rule, ...]:
    """What an edit says wherever and whenever it was made: an edit is asked about as long as it is remembered."""
    return tuple(learned(Edit(path, 0, before, after), 0))


def learned(edit: Edit, age: int) -> Iterator[Rule]:
    if len(edit.before) + len(edit.after) > LONGEST_EDIT:
        return
    lines = max(edit.before.count("\n"), edit.after.count("\n"), 1)
    known = {"path": edit.path, "age": age, "since": age, "lines": lines, "places": ((edit.path, edit.line),)}
    if trimmed(edit):
        yield Rule(kind="trim", before="", after="", line=edit.line, **known)
        return
    if spaced(edit):
        yield Rule(kind="align", before="", after="", line=edit.line, lines_after=edit.after, **known)
        return
    if not edit.before.strip():
        yield from of_insertion(edit, known)
        return
    if not edit.after.strip():
        for word in gone(edit):
            yield Rule(kind="unused", before=word, after="", line=edit.line, **known)
        yield Rule(kind="delete", before="", after="", lines_before=edit.before, line=edit.line, **known)
        return
    for word in gone(edit):
        yield Rule(kind="unused", before=word, after="", line=edit.line, **known)
    yield from of_imports(edit, known)
    for number, before, after in stretches(edit.before, edit.after):
        yield from of_stretch(before, after, edit.line + number, known)


def trimmed(edit: Edit) -> bool:
    """Whether nothing but blanks at the ends of lines went."""
    lines = edit.before.split("\n"), edit.after.split("\n")
    return edit.before != edit.after and [line.rstrip() for line in lines[0]] == lines[1]


def spaced(edit: Edit) -> bool:
    """Whether nothing but blanks between the words of lines changed."""
    before, after = edit.before.split("\n"), edit.after.split("\n")
    pairs = [(old, new) for old, new in zip(before, after, strict=False) if old != new]
    same = all(TOKEN.findall(old) == TOKEN.findall(new) and margin(old) == margin(new) for old, new in pairs)
    return bool(pairs) and same and len(before) == len(after)


def margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def gone(edit: Edit) -> list[str]:
    """The names that the edit took away, not those of an import statement."""
    if IMPORT.match(edit.before):
        return []
    stay = set(WORD.findall(edit.after)) | KEYWORDS
    return [word for word in dict.fromkeys(WORD.findall(edit.before)) if word not in stay][:NEIGHBOURS]


def of_insertion(edit: Edit, known: dict) -> Iterator[Rule]:
    yield from of_imports(edit, known)
    yield from of_new_lines(edit.after, {**known, "line": edit.line})


def of_new_lines(text: str, known: dict) -> Iterator[Rule]:
    known = {**known, "lines_after": text}
    yield Rule(kind="insert", before="", after="", **known)
    if text.count("\n") <= LONGEST_ENTRY and all(line.strip() for line in LINE.findall(text)):
        yield Rule(kind="entry", before="", after="", **known)
    for line in LINE.findall(text):
        found = ASSIGNED.match(line)
        value = found["value"] if found else ""
        lasting = len(tokens(value)) > 1 and WORD.search(value) and not MAKING.search(value)
        if found and lasting and openness(value) == 0:
            yield Rule(kind="extract", before=value, after=found["name"], **known)


def of_imports(edit: Edit, known: dict) -> Iterator[Rule]:
    """The import statements that came, and the names that others can import from here by now."""
    there = set(LINE.findall(edit.before))
    for line in LINE.findall(edit.after):
        if line not in there and IMPORT.match(line) and line == line.lstrip():
            yield Rule(kind="import", before="", after=line.rstrip(";\r\n"), line=edit.line, **known)
    yield from of_aliases(edit, known)
    made = {match["name"] or match["constant"] for match in MADE.finditer(edit.after)}
    for name in sorted(made - set(WORD.findall(edit.before)))[:NEIGHBOURS]:
        yield Rule(kind="import", before="", after="", name=name, line=edit.line, **known)


def of_aliases(edit: Edit, known: dict) -> Iterator[Rule]:
    """`import a as b`: what was known as `a` is known as `b`."""
    for number, line in enumerate(LINE.findall(edit.after)):
        for match in ALIAS.finditer(line) if IMPORT.match(line) else ():
            name, alias = match["name"], match["alias"]
            had = re.compile(rf"\b{name}\b(?![ \t]+as\b)")
            if had.search(edit.before) and not had.search(edit.after):
                place = {**known, "line": edit.line + number, "column": match.end(), "left": (name, "as")}
                yield Rule(kind="rename", before=name, after=alias, lines_before=edit.before, lines_after=line, **place)


def of_stretch(before: list[str], after: list[str], line: int, known: dict) -> Iterator[Rule]:
    """Line by line where that leaves as much as it was as the whole does, but for what goes on in a new line; and all
    of it as one block."""
    block = "".join(before), "".join(after)
    if not "".join(block).strip() or not before or not after:
        yield from of_whole_lines(*block, {**known, "line": line})
        return
    pairs = paired(before, after)
    if not pairs or len(before) == len(after) == 1:
        yield from of_lines(*block, {**known, "line": line})
        return
    own = [number for _, number in pairs]
    for at, number in pairs:
        goes_on = number + 1 < len(after) and number + 1 not in own
        for rule in of_lines(before[at], after[number], {**known, "line": line + number}):
            if not goes_on or rule.kind not in ("clone", "phrase") or rule.right:
                yield rule
    for number, text in others(after, own):
        yield from of_whole_lines("", text, {**known, "line": line + number})
    yield from (rule for rule in of_lines(*block, {**known, "line": line}) if rule.kind == "clone")


def of_whole_lines(before: str, after: str, known: dict) -> Iterator[Rule]:
    """What came or went beside lines that changed."""
    if before.strip() and not after.strip():
        yield Rule(kind="delete", before="", after="", lines_before=before, **known)
    elif after.strip() and not before.strip():
        yield from of_new_lines(after, known)


def of_lines(before: str, after: str, known: dict) -> Iterator[Rule]:
    """The rules of one stretch of lines that became another."""
    old = tokens(before)
    yield from of_span(before, after, old, {**known, "lines_before": before, "lines_after": after})
    if not alike(before, after):
        known = {**known, "lines_before": before, "lines_after": after}
        if old and TOKEN.findall(before) != TOKEN.findall(after):
            yield Rule(kind="clone", before=before, after=after, **known)
        elif old and before.count("\n") != after.count("\n"):
            # Broken into lines, or joined: nothing went and nothing came.
            yield Rule(kind="clone", before="", after="", **known)
        return
    found = touches_of(before, after)
    changed = sum(len(tokens(before[t.start : t.end])) + len(tokens(after[t.new_start : t.new_end])) for t in found)
    share = changed / max(len(old) + len(tokens(after)), 1)
    known = {**known, "lines_before": before, "lines_after": after, "changed": share, "pieces": max(len(found), 1)}
    yield from of_signature(before, after, known)
    for touch in balanced(before, after, found):
        if not moved(before, after, touch, found):
            yield from of_touch(before, after, old, touch, known)
    if found and not (len(found) == 1 and is_rename(*pieces(before, after, found[0]))):
        # What went and what came make the template's identity; everything else may differ between its uses.
        went, came = map("\0".join, zip(*(pieces(before, after, touch) for touch in found), strict=True))
        yield Rule(kind="clone", before=went, after=came, column=found[0].new_end, **known)


def of_span(before: str, after: str, old: list[Token], known: dict) -> Iterator[Rule]:
    """All that changed in a line as one piece, where it is short and changed in several."""
    found = touches_of(before, after)
    in_a_line = max(before.count("\n"), after.count("\n")) <= 1
    if len(found) < 2 or not in_a_line or any(moved(before, after, touch, found) for touch in found):
        return
    span = Touch(found[0].start, found[-1].end, found[0].new_start, found[-1].new_end)
    if len(tokens(before[span.start : span.end])) <= LONGEST_SPAN:
        yield from (rule for rule in of_touch(before, after, old, span, known) if rule.kind == "phrase")


def of_signature(before: str, after: str, known: dict) -> Iterator[Rule]:
    """The parameters in the first brackets that follow a name; whether it is declared there, the tree will say."""
    old, new = signature(before), signature(after)
    if not old or not new or old["name"] != new["name"]:
        return
    if TOKEN.findall(old["parameters"]) != TOKEN.findall(new["parameters"]):
        line, column = after.count("\n", 0, new.start()), new.start() - (after.rfind("\n", 0, new.start()) + 1)
        place = {**known, "line": known["line"] + line, "column": column}
        yield Rule(kind="signature", before=old["parameters"], after=new["parameters"], name=old["name"], **place)


def signature(text: str) -> re.Match[str] | None:
    return next((match for match in SIGNATURE.finditer(text) if match["name"] not in KEYWORDS), None)


def moved(before: str, after: str, touch: Touch, found: Iterable[Touch]) -> bool:
    """Whether what came here went elsewhere in these lines, or the other way round: that says nothing by itself."""
    went, came = (text.strip(" \t,") for text in pieces(before, after, touch))
    others = [[text.strip(" \t,") for text in pieces(before, after, other)] for other in found if other != touch]
    return any((went and went == came_there) or (came and came == went_there) for went_there, came_there in others)


def of_touch(before: str, after: str, old: list[Token], touch: Touch, known: dict) -> Iterator[Rule]:
    went, came = pieces(before, after, touch)
    left = [token for token in old if token.end <= touch.start]
    right = [token for token in old if token.start >= touch.end]
    line = known["line"] + after.count("\n", 0, touch.new_start)
    known = {
        **known,
        "line": line,
        "glued": bool(after[touch.new_end : touch.new_end + 1].strip()),
        "column": touch.new_end - (after.rfind("\n", 0, touch.new_end) + 1),
        "left": tuple(token.text for token in left[-NEIGHBOURS:]),
        "right": tuple(token.text for token in right[:NEIGHBOURS]),
    }
    called = callee([token.text for token in left])
    given = [*of_argument(called, went, came, left, right, known)] if called else []
    if is_rename(went, came):
        yield Rule(kind="rename", before=went, after=came, **known)
    elif "\n" not in went and "\n" not in came and openness(went) == 0:
        yield Rule(kind="phrase", before=went, after=came, name=given[0].name if given else "", **known)
    yield from given


def is_rename(went: str, came: str) -> bool:
    return bool(WORD.fullmatch(went) and WORD.fullmatch(came)) and went not in KEYWORDS


def of_argument(
    called: tuple[str, int, bool], went: str, came: str, left: list[Token], right: list[Token], known: dict
) -> Iterator[Rule]:
    """An argument more or less: at one call it will be so at the others, at the definition so at the calls."""
    name, index, defines = called
    closing = bool(right) and right[0].text == ")"
    if came.count("\n") or went.count("\n") or (went.strip() and came.strip()):
        return
    text = (went or came).strip()
    alone = callee(["f", "(", *TOKEN.findall(text.strip(","))])
    if alone is None or alone[1] > 0:
        return
    if not (text.startswith(",") or text.endswith(",") or (left[-1].text == "(" and closing)):
        return
    index += text.startswith(",")
    kind = "parameter" if defines or (right and defined_by_brace(right)) else "argument"
    yield Rule(kind=kind, before=went, after=came, name=name, index=index, **known)
    added = WORD.search(came)
    for neighbour in neighbours_of(left, right, index) if kind == "parameter" and added and not went.strip() else ():
        yield Rule(kind="stored", before=neighbour, after=added.group(), name=name, index=index, **known)


def neighbours_of(left: list[Token], right: list[Token], index: int) -> list[str]:
    """What the parameter beside a new one may be called: its first word, or its last where types come first."""
    beside = left[::-1] if index else right
    words = [token.text for token in takewhile(lambda token: token.text not in ("(", ",", ")"), beside)]
    names = [word for word in words if WORD.fullmatch(word) and word not in KEYWORDS]
    return list(dict.fromkeys([*names[-1:], *names[:1]]))


def balanced(before: str, after: str, found: list[Touch]) -> Iterator[Touch]:
    """Pieces that open and close brackets or quotes only together are one: `x` became `wrap(x)`."""
    owed, quoted, start = 0, False, None
    for touch in found:
        start = start or touch
        went, came = pieces(before, after, touch)
        owed += openness(came) - openness(went)
        quoted ^= bool(quotes(went + came) % 2)
        if owed == 0 and not quoted:
            yield Touch(start.start, touch.end, start.new_start, touch.new_end)
            start = None


def openness(text: str) -> int:
    return sum((character in "([{") - (character in ")]}") for character in text)


def quotes(text: str) -> int:
    return text.count('"') + text.count("`")


def defined_by_brace(right: list[Token]) -> bool:
    """Whether what follows the arguments is a body: a method of Java, C or JavaScript."""
    return right[-1].text == "{" and ")" in {token.text for token in right} and not _is_control(right)


def _is_control(right: list[Token]) -> bool:
    return any(token.text in ("if", "while", "for", "switch", "=>") for token in right)


def callee(left: list[str]) -> tuple[str, int, bool] | None:
    """The function in whose brackets the end of these tokens stands, the number of the argument, and whether it is
    being defined there."""
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


def parts(found: Iterable[Rule]) -> list[Rule]:
    """Names that changed in a part, or altogether: others with that part may follow."""
    changed: dict[tuple[str, str], list[Rule]] = {}
    for rule in found:
        if rule.kind == "rename":
            for part in changed_part(rule.before, rule.after):
                changed.setdefault(part, []).append(rule)
    return [
        replace(
            same[0],
            kind="part",
            before=before,
            after=after,
            count=len({rule.before for rule in same}),
            names=tuple(dict.fromkeys(rule.before for rule in same)),
            since=max(rule.since for rule in same),
            places=tuple(place for rule in same for place in rule.places),
        )
        for (before, after), same in changed.items()
    ]


def changed_part(before: str, after: str) -> Iterator[tuple[str, str]]:
    """The words within two names that differ, and the names themselves, which may be a part of longer ones."""
    old, new = PARTS.findall(before), PARTS.findall(after)
    pairs = list(zip(old, new, strict=False))
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    rest = list(zip(reversed(old[head:]), reversed(new[head:]), strict=False))
    tail = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], rest))
    went, came = "".join(old[head : len(old) - tail]), "".join(new[head : len(new) - tail])
    if head + tail and len(went.strip("_")) > 1 and came:
        yield went, came
    if len(before) > SHORT_NAME:
        yield before, after
