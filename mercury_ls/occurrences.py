"""Where a rule applies in a text: the places that look as the edited one did, and what they would become."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from mercury_ls import imports, mirrors, scopes, syntax
from mercury_ls.documents import Document, Snapshot
from mercury_ls.lexemes import MARK, cased, closing, minimal
from mercury_ls.places import Place
from mercury_ls.propagation import FIXED, KEYWORDS, PARTS, Rule, Token, shape, tokens, touches_of
from mercury_ls.referents import Referent, declares_anew, is_meant, referent

__all__ = ["find"]

MOST_PLACES = 64
LONGEST_TEMPLATE = 120
LINES = re.compile(r"[^\n]*\n|[^\n]+")
WORDS = re.compile(r"[^\W\d]\w*")
MOST_INSERTIONS = 24
TRAILING = re.compile(r"[ \t]+(?=\r?$)", re.MULTILINE)
TELLING = 5
"""A shape of so many tokens says something by itself."""
LONGEST_LINE = 400
LEAST_RESEMBLANCE = 0.8
BLANKS = 0.2
"""What it counts that both neighbours are blank."""
HOLE = {"word": r"([^\W\d]\w*)", "number": r"(\d[\w.]*)"}


def find(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> list[Place]:
    """At most 64 places, in the order of the text. `home` is the file where the rule was learned, as it is now."""
    finders: dict[str, Callable[[Rule, Snapshot, Snapshot | None], Iterator[Place]]] = {
        "rename": names,
        "part": names_with_part,
        "phrase": phrases,
        "argument": arguments,
        "parameter": calls,
        "clone": clones,
        "delete": deletions,
        "insert": insertions,
        "extract": extractions,
        "unused": imports.unused,
        "import": imports.missing,
        "entry": mirrors.entries,
        "stored": mirrors.stored,
        "signature": mirrors.signatures,
        "trim": trailing_blanks,
    }
    found: list[Place] = []
    for place in finders[rule.kind](rule, snapshot, home):
        found.append(place)
        if len(found) == MOST_PLACES:
            break
    return found


# Names


def names(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """Where the old name stands for the same; an import that gives it another name keeps it."""
    given_anew = rf"(?![ \t]+as[ \t]+{re.escape(rule.after)}\b)"
    own, spans = origin(rule, home), nearest(whole(rule.before) + given_anew, snapshot, rule)
    offset = place_of(rule, home) if home else 0
    meant = referent(rule.before, rule.after, home, offset, snapshot, [start for start, _ in spans])
    places = [
        seen(rule, snapshot, Place(start, end, spelled(rule, snapshot, start)))
        for start, end in spans
        if syntax.inside(snapshot, start) == own and is_meant(meant, snapshot, start)
    ]
    orphan = home is snapshot and is_orphan(rule, snapshot, meant, places)
    yield from (replace(place, orphan=orphan) for place in places)


def is_orphan(rule: Rule, snapshot: Snapshot, meant: Referent, places: Sequence[Place]) -> bool:
    """Whether the name was changed where it is declared, and none of these places declares it still."""
    if meant.node is None or meant.local in meant.bound:
        return False
    if not scopes.declares(meant.node):
        return defines(rule.left, rule.right) and not any(place.defines for place in places)
    nodes = (scopes.node_at(snapshot, place.start) for place in places)
    return not any(node is not None and declares_anew(meant, node) for node in nodes)


def nearest(
    pattern: str | re.Pattern[str], snapshot: Snapshot, rule: Rule, named: int | str = 0
) -> list[tuple[int, int]]:
    """The matches nearest to the edit, in the order of the text; the first ones of another file."""
    spans = [match.span(named) for match in re.finditer(pattern, snapshot.text)]
    if len(spans) > MOST_PLACES:
        at = place_of(rule, snapshot) if rule.path == snapshot.path else 0
        spans = sorted(sorted(spans, key=lambda span: abs(span[0] - at))[:MOST_PLACES])
    return spans


def place_of(rule: Rule, snapshot: Snapshot) -> int:
    """Where the new text begins, in the file where it was last put."""
    line = min(rule.line, snapshot.line_count - 1)
    return max(snapshot.line_start(line) + rule.column - len(rule.after), 0)


def spelled(rule: Rule, snapshot: Snapshot, start: int) -> str:
    """`{ name }` of JavaScript is short for `{ name: name }`, and the key stays."""
    node = scopes.node_at(snapshot, start)
    short = node is not None and node.type == "shorthand_property_identifier"
    return f"{rule.before}: {rule.after}" if short else rule.after


def names_with_part(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    own = origin(rule, home)
    variants = dict(zip(cased(rule.before), cased(rule.after), strict=True))
    pattern = "|".join(re.escape(variant) for variant in variants)
    for start, end in nearest(rf"(?<!\w)\w*(?:{pattern})\w*", snapshot, rule):
        name = snapshot.text[start:end]
        if name in variants or not name[0].isidentifier():
            continue
        changed = name
        for before, after in variants.items():
            changed = with_part(changed, before, after) if changed == name else changed
        if changed != name and syntax.inside(snapshot, start) == own:
            yield seen(rule, snapshot, Place(start, end, changed))


def with_part(name: str, before: str, after: str) -> str:
    """The name with one of its words, or several in a row, replaced."""
    words = PARTS.findall(name)
    for size in range(1, len(words) + 1):
        for at in range(len(words) - size + 1):
            if "".join(words[at : at + size]) == before:
                return "".join([*words[:at], after, *words[at + size :]])
    return name


def whole(text: str) -> str:
    return rf"(?<![\w$]){re.escape(text)}(?![\w$])"


def origin(rule: Rule, home: Snapshot | None) -> str | None:
    """Whether the edit itself was in a comment or a string."""
    if home is not None and rule.after and home.text.startswith(rule.after, offset := place_of(rule, home)):
        return syntax.inside(home, offset)
    alone = Document("", rule.path, "", 0, rule.lines_after).snapshot()
    return syntax.inside(alone, max(rule.lines_after.find(rule.after), 0)) if rule.lines_after else None


def seen(rule: Rule, snapshot: Snapshot, place: Place) -> Place:
    """The place with what its line says about it."""
    line = snapshot.line_of(place.start)
    start, end = snapshot.line_start(line), snapshot.line_end(snapshot.line_of(place.end))
    left = [token.text for token in tokens(snapshot.text[start : place.start])]
    right = [token.text for token in tokens(snapshot.text[place.end : end])]
    return Place(
        place.start,
        place.end,
        place.text,
        likeness(rule.left[::-1], left[::-1], rule.right, right),
        role(rule.left, rule.right) == role(left, right),
        defines(left, right),
    )


def likeness(
    old_left: Sequence[str], left: Sequence[str], old_right: Sequence[str], right: Sequence[str], most: int = 4
) -> float:
    """The share of the nearest four tokens on either side, as far as the line goes, that agree."""
    sides = [([*old[:most], ""][:most], [*new[:most], ""]) for old, new in ((old_left, left), (old_right, right))]
    return sum(agreeing(old, new) for old, new in sides) / sum(len(old) for old, _ in sides)


def agreeing(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def role(left: Sequence[str], right: Sequence[str]) -> tuple[bool, bool, bool]:
    """Is it a member, is it called, does it name an argument."""
    member = bool(left) and left[-1] in (".", "->", "::", "?.")
    named = tuple(right[:1]) == ("=",) and bool(left) and left[-1] in ("(", ",")
    return member, tuple(right[:1]) == ("(",), named


def defines(left: Sequence[str], right: Sequence[str]) -> bool:
    declared = bool(left) and left[-1] in (
        *("def", "class", "func", "fn", "function", "let", "const", "var", "mut", "type", "struct", "import", "enum"),
        *("interface", "trait", "as"),
    )
    bare = not left or tuple(left[-2:]) in (("self", "."), ("this", "."))
    return declared or (bare and tuple(right[:1]) in (("=",), (":=",)))


# Phrases


def phrases(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """The same tokens again; where they say little by themselves, only between the same neighbours."""
    own = origin(rule, home)
    found = {span for pattern in phrase_patterns(rule) for span in nearest(pattern, snapshot, rule, "phrase")}
    listed = home and not rule.before and scopes.in_parameters(home, place_of(rule, home))
    for start, end in sorted(found):
        misplaced = home and not rule.before and scopes.in_parameters(snapshot, start) != listed
        if not misplaced and not done(rule, snapshot.text, start):
            foreign = syntax.inside(snapshot, start) != own
            yield replace(seen(rule, snapshot, Place(start, end, rule.after)), foreign=foreign)


def done(rule: Rule, text: str, start: int) -> bool:
    """Whether the new text, with the old one in it, stands there already."""
    at = rule.after.find(rule.before) if rule.before else -1
    return at >= 0 and start >= at and text.startswith(rule.after, start - at)


@lru_cache(maxsize=64)
def phrase_patterns(rule: Rule) -> tuple[re.Pattern[str], ...]:
    """What went, with a neighbour on one side where it is a mark or a keyword, with several where nothing went."""
    went = [token.text for token in tokens(rule.before)]
    if any(len(word) > 1 and word.isidentifier() and word not in KEYWORDS for word in went):
        return (re.compile(f"(?P<phrase>{sequence(went)})"),)
    near, further = (((1, 0), (0, 1)), ((2, 0), (0, 2))) if went else (((2, 0), (1, 1), (0, 2)), ((2, 1), (1, 2)))
    found = [tuple(each for size in sizes if (each := between(rule, went, *size))) for sizes in (near, further)]
    return found[0] or found[1]


def between(rule: Rule, went: list[str], on_the_left: int, on_the_right: int) -> re.Pattern[str] | None:
    """Between so many of the old neighbours; the end of a line is one. None where there are not so many."""
    left, right = rule.left[len(rule.left) - on_the_left :], (*rule.right, "")[:on_the_right]
    known = [*left, *right]
    if len(left) < on_the_left or len(right) < on_the_right or not any(word.isidentifier() for word in (*known, *went)):
        return None
    before, after = sequence(left), sequence([word for word in right if word])
    after += r"[ \t]*(?=\r?$)" if "" in right else ""
    # What is put between two neighbours stands at the one that it touches.
    to_the_right = went or not left or rule.glued or rule.after[-1:].isspace()
    gap = r"[ \t]*" if left else ""
    phrase = f"{gap}(?P<phrase>{sequence(went)})" if to_the_right else f"(?P<phrase>){gap}"
    between_them = r"[ \t]*" if went and right else ""
    return re.compile(f"{before}{phrase}{between_them}{after}", re.MULTILINE)


def sequence(found: Sequence[str]) -> str:
    """A pattern for these tokens, however they are spaced."""
    pieces = [whole(text) if text[0].isalnum() or text[0] == "_" else re.escape(text) for text in found]
    return r"[ \t]*".join(pieces)


# Arguments


def arguments(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """The same argument at the other calls of the function."""
    yield from within_calls(rule, snapshot, rule.after if not rule.before.strip() else None)


def calls(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """The calls of a function whose parameters have changed: one less is known, one more is for the model to write."""
    if rule.before.strip():
        yield from within_calls(rule, snapshot, None)
        return
    added = re.search(r"[^\W\d]\w*", rule.after.strip(" ,*&"))
    for start, end in calls_of(snapshot, rule.name):
        if not added or not re.search(whole(added.group()), snapshot.text[start:end]):
            yield passing(rule, snapshot, added.group(), start, end) if added else Place(start, end, None)


def passing(rule: Rule, snapshot: Snapshot, name: str, start: int, end: int) -> Place:
    """The new parameter's name, where the function around the call knows it; what else to pass is not known."""
    first, end_of_function = scopes.function_range(snapshot, start)
    optional, outside = "=" in rule.after, (first, end_of_function) == (0, len(snapshot.text))
    if outside or not re.search(whole(name), snapshot.text[first:start]):
        return Place(start, end, None)
    pieces = split_arguments(snapshot.text, start, end)
    made = replace(rule, index=-1 if optional else rule.index)
    place = with_argument(snapshot.text, pieces, made, f"{name}={name}" if optional else name, end)
    return seen(rule, snapshot, place) if place else Place(start, end, None)


def within_calls(rule: Rule, snapshot: Snapshot, added: str | None) -> Iterator[Place]:
    for start, end in calls_of(snapshot, rule.name):
        pieces = split_arguments(snapshot.text, start, end)
        edit = with_argument(snapshot.text, pieces, rule, added, end) if added else without_argument(pieces, rule)
        if edit:
            same = not added and snapshot.text[edit.start : edit.end].strip(" ,") == rule.before.strip(" ,")
            place = seen(rule, snapshot, edit)
            yield replace(place, likeness=(place.likeness + same) / 2 if not added else place.likeness)


def calls_of(snapshot: Snapshot, name: str) -> Iterator[tuple[int, int]]:
    """What stands between the brackets of each call; not of the definition."""
    for match in re.finditer(whole(name) + r"[ \t]*\(", snapshot.text):
        line = snapshot.text[snapshot.line_start(snapshot.line_of(match.start())) : match.start()]
        end = closing(snapshot.text, match.end())
        if end is None or re.search(r"\b(?:def|fn|func|function|class)\s*$", line) or is_definition(snapshot, end):
            continue
        if syntax.inside(snapshot, match.start()) is None:
            yield match.end(), end


def is_definition(snapshot: Snapshot, end: int) -> bool:
    """A body follows the brackets of what is not a call: Java, C, methods of JavaScript."""
    node = scopes.node_at(snapshot, end)
    return node is not None and "parameter" in node.type


def split_arguments(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The ranges of the arguments, without the blanks around them."""
    depth, first, found = 0, start, []
    for piece in MARK.finditer(text, start, end):
        if piece.group() in "([{":
            depth += 1
        elif piece.group() in ")]}":
            depth -= 1
        elif piece.group() == "," and depth == 0:
            found.append((first, piece.start()))
            first = piece.end()
    found.append((first, end))
    stripped = [(a + len(text[a:b]) - len(text[a:b].lstrip()), a + len(text[a:b].rstrip())) for a, b in found]
    return [(a, b) for a, b in stripped if a < b]


def with_argument(text: str, pieces: list[tuple[int, int]], rule: Rule, added: str, end: int) -> Place | None:
    argument = added.strip(" \t,")
    if not argument or any(alike(text[a:b], argument) for a, b in pieces):
        return None
    if not pieces:
        return Place(end, end, argument) if rule.index <= 0 else None
    if rule.index < 0:
        return Place(pieces[-1][1], pieces[-1][1], f", {argument}")
    if rule.index >= len(pieces):
        return None
    return Place(pieces[rule.index][0], pieces[rule.index][0], f"{argument}, ")


def alike(argument: str, added: str) -> bool:
    """The argument is there already, or another value for it."""
    name = re.match(r"\w+\s*=(?!=)", added)
    return argument == added or bool(name and argument.startswith(name.group()))


def without_argument(pieces: list[tuple[int, int]], rule: Rule) -> Place | None:
    index = rule.index
    if not 0 <= index < len(pieces):
        return None
    if index == 0:
        return Place(pieces[0][0], pieces[1][0] if len(pieces) > 1 else pieces[0][1], "")
    return Place(pieces[index - 1][1], pieces[index][1], "")


# Lines


def clones(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """Lines of the same shape, other names in it: what went has to be there, the rest may differ."""
    rare = rule.count > 1 or len(tokens(rule.lines_before)) >= TELLING
    yield from templated(rule.lines_before, rule.lines_after, snapshot, rare)


def trailing_blanks(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    for start, end in nearest(TRAILING, snapshot, rule):
        yield Place(start, end, "", float(snapshot.text[start - 1 : start] in ("", "\n")))


def deletions(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    for start, end, _, same in matches(rule.lines_before, rule.lines_before, snapshot):
        first = snapshot.line_start(snapshot.line_of(start))
        last = snapshot.line_of(end)
        stop = snapshot.line_start(last + 1) if last + 1 < snapshot.line_count else len(snapshot.text)
        yield Place(first, stop, "", same)


def insertions(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """The same lines between lines like those that they were put between, with the names of these."""
    if home is None or not rule.lines_after.strip():
        return
    count = len(LINES.findall(rule.lines_after))
    above, below = line_or_none(home, rule.line - 1), line_or_none(home, rule.line + count)
    here = rule.line if home is snapshot else None
    found = []
    for number in range(snapshot.line_count + 1):
        if here is not None and here <= number <= here + count:
            continue
        on_top, beneath = line_or_none(snapshot, number - 1), line_or_none(snapshot, number)
        upper, lower = resemblance(above, on_top), resemblance(below, beneath)
        if upper + lower >= LEAST_RESEMBLANCE and max(upper, lower) > BLANKS:
            found.append((-(upper + lower), abs(number - rule.line), number, upper, lower))
    for _, _, number, upper, lower in sorted(sorted(found)[:MOST_INSERTIONS], key=lambda each: each[2]):
        on_top, beneath = line_or_none(snapshot, number - 1), line_or_none(snapshot, number)
        like, old = (on_top, above) if upper >= lower else (beneath, below)
        text = transplanted(rule.lines_after, old or "", like or "")
        if number < snapshot.line_count and not stands(snapshot, number, text):
            start = snapshot.line_start(number)
            yield Place(start, start, text, (upper + lower) / 2, same_role=upper == lower == 1.0)


def line_or_none(snapshot: Snapshot, number: int) -> str | None:
    return snapshot.line(number) if 0 <= number < snapshot.line_count else None


def resemblance(old: str | None, line: str | None) -> float:
    """1 for the same tokens, less for the same shape, still less for the same beginning, little for two blanks."""
    if old is None or line is None:
        return BLANKS if old is line is None else 0.0
    if not old.strip() or not line.strip():
        return BLANKS if old.strip() == line.strip() else 0.0
    if old.strip() == line.strip():
        return 1.0
    one, other = shape_of(old), shape_of(line)
    if one == other:
        return 0.7
    return 0.4 if one.split()[:2] == other.split()[:2] else 0.0


@lru_cache(maxsize=1 << 14)
def shape_of(line: str) -> str:
    return shape(line[:LONGEST_LINE])


def transplanted(inserted: str, old: str, like: str) -> str:
    """The lines with the indentation and the names of a line like the old neighbour."""
    names: dict[str, str] = {}
    if shape_of(old) == shape_of(like):
        pairs = zip(tokens_of(old), tokens_of(like), strict=True)
        names = {a: b for a, b in pairs if a != b and a.isidentifier() and len(a) > 1}
    before, after = old[: indentation_of(old)], like[: indentation_of(like)]
    lines = []
    for line in LINES.findall(inserted):
        fresh = after + line.removeprefix(before) if line.startswith(before) and line.strip() else line
        lines.append(WORDS.sub(lambda match: names.get(match.group(), match.group()), fresh))
    text = "".join(lines)
    return text if text.endswith("\n") else text + "\n"


def stands(snapshot: Snapshot, number: int, text: str) -> bool:
    """Whether the lines to insert stand above or below already."""
    lines = [line.strip() for line in LINES.findall(text)]
    for first in (number - len(lines), number):
        around = [line_or_none(snapshot, first + at) for at in range(len(lines))]
        if [line and line.strip() for line in around] == lines:
            return True
    return False


def tokens_of(text: str) -> list[str]:
    return [token.text for token in tokens(text)]


def templated(before: str, after: str, snapshot: Snapshot, rare: bool = False) -> Iterator[Place]:
    for start, end, text, same in matches(before, after, snapshot, rare):
        old = snapshot.text[start:end]
        if text != old:
            change = minimal(old, text)
            yield Place(start + change.start, start + change.end, change.text, same, reach=(start, end))


def matches(before: str, after: str, snapshot: Snapshot, rare: bool = False) -> Iterator[tuple[int, int, str, float]]:
    """Range, new text and the share of names that are the same, for all that has the shape of `before`, and a name
    of it unless it may be `rare`."""
    template = learned_template(before, after)
    if template is None:
        return
    for match in template.pattern.finditer(snapshot.text):
        values = match.groups()[1:]
        same = sum(a == b for a, b in zip(values, template.values, strict=True))
        words = [b for a, b in zip(values, template.values, strict=True) if a == b and b.isidentifier() and len(b) > 2]
        if values and not words and not template.anchored and not rare:
            continue
        yield match.end(1), match.end(), template.build(match), same / max(len(values), 1)


class Template(Struct, frozen=True):
    """`pattern` has the indentation as its first group and a group for each hole; `values` are what first filled them.
    `pieces` make the new text: a number is a hole's group, the rest is literal. `anchored`: a name that went is in it.
    """

    pattern: re.Pattern[str]
    values: tuple[str, ...]
    pieces: tuple[str | int, ...]
    anchored: bool

    def build(self, match: re.Match[str]) -> str:
        return "".join(match.group(piece) if isinstance(piece, int) else piece for piece in self.pieces)


@lru_cache(maxsize=64)
def learned_template(before: str, after: str) -> Template | None:
    old, new = tokens(before), tokens(after)
    if not old or len(old) > LONGEST_TEMPLATE:
        return None
    indentation = before[: len(before) - len(before.lstrip(" \t"))]
    found = touches_of(before, after)
    gone = {at for at, token in enumerate(old) if any(t.start <= token.start < t.end for t in found)}
    pattern, groups, values = [r"^([ \t]*)"], {}, []
    for at, token in enumerate(old):
        if at:
            pattern.append(gap_pattern(before[old[at - 1].end : token.start], indentation, old[at - 1], token))
        pattern.append(hole(token, at in gone, groups, values))
    pieces = [*new_pieces(after, new, groups, indentation)]
    anchored = any(
        len(old[at].text) > 2 and old[at].text.isidentifier() and old[at].text not in KEYWORDS for at in gone
    )
    return Template(
        re.compile("".join(pattern) + r"(?=[ \t]*\r?$)", re.MULTILINE), tuple(values), tuple(pieces), anchored
    )


def hole(token: Token, literal: bool, groups: dict[str, int], values: list[str]) -> str:
    """The same name is the same in all its places."""
    text = token.text
    kind = "word" if text.isidentifier() else "number" if text[0].isdigit() else ""
    if literal or not kind or text in FIXED:
        return re.escape(text) + (r"(?!\w)" if kind else "")
    if text in groups:
        return rf"(?:\{groups[text]})(?!\w)"
    values.append(text)
    groups[text] = len(values) + 1
    return HOLE[kind]


def gap_pattern(gap: str, indentation: str, left: Token, right: Token) -> str:
    if "\n" not in gap:
        return r"[ \t]+" if gap and left.text[-1].isalnum() and right.text[0].isalnum() else r"[ \t]*"
    deeper = gap.rpartition("\n")[2].removeprefix(indentation)
    return r"[ \t]*\r?\n(?:\1)" + re.escape(deeper)


def new_pieces(after: str, new: list[Token], groups: dict[str, int], indentation: str) -> Iterator[str | int]:
    """The new text, with every name that fills a hole replaced by what fills it now, and every line indented alike."""
    for at, token in enumerate(new):
        if at:
            yield from gap_pieces(after[new[at - 1].end : token.start], indentation)
        yield groups.get(token.text, token.text)


def gap_pieces(gap: str, indentation: str) -> Iterator[str | int]:
    if "\n" not in gap:
        yield gap
        return
    blank, _, last = gap.rpartition("\n")
    yield "\n" * (blank.count("\n") + 1)
    if last.startswith(indentation):
        yield 1
        yield last[len(indentation) :]
    else:
        yield last


# Extracted expressions


def extractions(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """From the new variable on, to the end of its function, its value has a name."""
    if home is not snapshot or rule.line >= snapshot.line_count:
        return
    begun = snapshot.line_end(min(rule.line + rule.lines_after.count("\n"), snapshot.line_count) - 1)
    first, last = scopes.function_range(snapshot, snapshot.line_start(rule.line) + indentation_of(rule.lines_after))
    pattern = sequence([token.text for token in tokens(rule.before)])
    for match in re.finditer(pattern, snapshot.text[:last]):
        if match.start() >= max(first, begun) and syntax.inside(snapshot, match.start()) is None:
            yield seen(rule, snapshot, Place(match.start(), match.end(), rule.after))


def indentation_of(text: str) -> int:
    return len(text) - len(text.lstrip(" \t"))
