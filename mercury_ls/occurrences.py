"""Where a rule applies in a text: the places that look as the edited one did, and what they would become."""

import re
from collections.abc import Callable, Iterator, Sequence, Set
from functools import lru_cache
from itertools import islice, takewhile

from msgspec import Struct
from msgspec.structs import replace
from tree_sitter import Node

from mercury_ls import imports, mirrors, scopes, syntax
from mercury_ls.arguments import (
    ArgumentChange,
    Call,
    called,
    calls_of,
    changed_at,
    is_called,
    named_by,
    with_argument,
    without_argument,
)
from mercury_ls.documents import Document, Snapshot
from mercury_ls.lexemes import cased, minimal
from mercury_ls.places import Place, line_break, place_of
from mercury_ls.propagation import FIXED, KEYWORDS, PARTS, Rule, Token, shape, tokens, touches_of
from mercury_ls.referents import Referent, declares_anew, is_meant, referent, text_of
from mercury_ls.scopes import whole

__all__ = ["find"]

MOST_PLACES = 64
LONGEST_TEMPLATE = 120
LINES = re.compile(r"[^\n]*\n|[^\n]+")
WORDS = re.compile(r"[^\W\d]\w*")
MOST_INSERTIONS = 24
MOST_NAMES = 256
TRAILING = re.compile(r"(?<![ \t])[ \t]++(?=\r?$)", re.MULTILINE)
TELLING = 5
"""A shape of so many tokens says something by itself."""
LONGEST_LINE = 400
LEAST_RESEMBLANCE = 0.8
BLANKS = 0.2
"""What it counts that both neighbours are blank."""
SHORT = frozenset(
    {"shorthand_field_identifier", "shorthand_field_initializer", "shorthand_property_identifier"}
    | {"shorthand_property_identifier_pattern"}
)
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
        text = place.text and in_the_files_lines(place.text, snapshot)
        found.append(place if text == place.text else replace(place, text=text))
        if len(found) == MOST_PLACES:
            break
    return found


def in_the_files_lines(text: str, snapshot: Snapshot) -> str:
    return text.replace("\r\n", "\n").replace("\n", line_break(snapshot.text)) if "\n" in text else text


# Names


def names(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """Where the old name stands for the same; an import that gives it another name keeps it."""
    given_anew = rf"(?![ \t]+as[ \t]+{re.escape(rule.after)}\b)"
    pattern = accessor(rule.before) + "|" + whole(rule.before) + given_anew
    own, spans = origin(rule, home), nearest(pattern, snapshot, rule)
    offset = place_of(rule, home) if home else 0
    meant = referent(rule.before, rule.after, home, offset, snapshot, [start for start, _ in spans])
    places = [
        seen(rule, snapshot, Place(start, end, spelled(rule, snapshot, start, end, meant)))
        for start, end in spans
        if within(snapshot, start, end) == own and is_meant(meant, snapshot, start)
    ]
    orphan = home is snapshot and is_orphan(rule, snapshot, meant, places)
    yield from (replace(place, orphan=orphan) for place in places)


def within(snapshot: Snapshot, start: int, end: int) -> str | None:
    """Whether it is in a comment or a string; what a string of Rust has in braces is code to its macro."""
    text, said = snapshot.text, syntax.inside(snapshot, start)
    in_braces = text[start - 1 : start] == "{" != text[start - 2 : start - 1] and text[end : end + 1] in (":", "}")
    node = scopes.node_at(snapshot, start) if said == "string" and in_braces else None
    literal = node and node.parent
    captured = literal is not None and literal.parent is not None and literal.parent.type == "token_tree"
    return None if captured else said


def is_orphan(rule: Rule, snapshot: Snapshot, meant: Referent, places: Sequence[Place]) -> bool:
    """Whether the name was changed where it is declared, and none of these places declares it still."""
    if meant.node is None or (meant.local and meant.local.reach in {each.reach for each in meant.bound}):
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


def accessor(name: str) -> str:
    """A pattern for `name.setter` and the `name` of what it decorates: one without the other is an error."""
    return rf"(?<=@){re.escape(name)}\.(?:getter|setter|deleter)\s+def\s+{re.escape(name)}(?![\w$])"


def spelled(rule: Rule, snapshot: Snapshot, start: int, end: int, meant: Referent) -> str:
    """`{ name }` is short for `{ name: name }`, and what was not renamed stays: the key, or what has its value."""
    node = scopes.node_at(snapshot, start)
    if node is not None and (node.type in SHORT or (node.parent is not None and node.parent.type in SHORT)):
        return f"{rule.after}: {rule.before}" if meant.owner is not None else f"{rule.before}: {rule.after}"
    return re.sub(whole(rule.before), rule.after, snapshot.text[start:end])


def names_with_part(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """Where other names are declared that have it, as far as a local goes if it was one. They have to be of this file
    and nowhere used in it: a name that changed in some of its places is worse than one that stayed."""
    variants = dict(zip(cased(rule.before), cased(rule.after), strict=True))
    pattern = rf"(?<!\w)\w*(?:{'|'.join(re.escape(variant) for variant in variants)})\w*"
    spans = [match.span() for match in islice(re.finditer(pattern, snapshot.text), MOST_NAMES)]
    if origin(rule, home) is not None or len(spans) == MOST_NAMES:
        return
    spans = [(start, end) for start, end in spans if syntax.inside(snapshot, start) is None]
    first, last = reach_of(rule, snapshot, home)
    used = {snapshot.text[slice(*span)] for span in spans if not is_declared(snapshot, *span)}
    for start, end in spans:
        name = snapshot.text[start:end]
        if name in used or name in variants or name in rule.names or not first <= start < last:
            continue
        changed = name
        for before, after in variants.items():
            changed = with_part(changed, before, after) if changed == name else changed
        if changed != name:
            yield seen(rule, snapshot, Place(start, end, changed))


def reach_of(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> tuple[int, int]:
    """Where a name that changed in a part is known."""
    node = home and scopes.node_at(home, place_of(rule, home))
    local = scopes.local_at(home, place_of(rule, home), (*rule.names, text_of(node))) if home and node else None
    if local is None:
        return 0, len(snapshot.text)
    return local.reach if home is snapshot else (0, 0)


def is_declared(snapshot: Snapshot, start: int, end: int) -> bool:
    node = scopes.node_at(snapshot, start)
    if node is None or is_imported(node):
        return False
    return scopes.declares(node) or defines(*sides(snapshot, start, end))


def is_imported(node: Node) -> bool:
    around: Node | None = node
    while around is not None and not around.type.startswith(("import", "use_declaration", "using_directive")):
        around = around.parent
    return around is not None


def with_part(name: str, before: str, after: str) -> str:
    """The name with one of its words, or several in a row, replaced."""
    words = PARTS.findall(name)
    for size in range(1, len(words) + 1):
        for at in range(len(words) - size + 1):
            if "".join(words[at : at + size]) == before:
                return "".join([*words[:at], after, *words[at + size :]])
    return name


def origin(rule: Rule, home: Snapshot | None) -> str | None:
    """Whether the edit itself was in a comment or a string."""
    if home is not None and rule.after and home.text.startswith(rule.after, offset := place_of(rule, home)):
        return syntax.inside(home, offset)
    alone = Document("", rule.path, "", 0, rule.lines_after).snapshot()
    return syntax.inside(alone, max(rule.lines_after.find(rule.after), 0)) if rule.lines_after else None


def seen(rule: Rule, snapshot: Snapshot, place: Place) -> Place:
    """The place with what its line says about it."""
    left, right = sides(snapshot, place.start, place.end)
    return Place(
        place.start,
        place.end,
        place.text,
        likeness(rule.left[::-1], left[::-1], rule.right, right),
        role(rule.left, rule.right) == role(left, right),
        defines(left, right),
    )


def sides(snapshot: Snapshot, start: int, end: int) -> tuple[list[str], list[str]]:
    """The tokens before and behind, as far as the line goes."""
    first, last = snapshot.line_start(snapshot.line_of(start)), snapshot.line_end(snapshot.line_of(end))
    return tokens_of(snapshot.text[first:start]), tokens_of(snapshot.text[end:last])


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
    listed = home and scopes.in_parameters(home, place_of(rule, home))
    if listed and rule.name and rule.count == 1:
        return
    opened = opened_alike(rule, snapshot, home)
    for start, end in sorted(found):
        misplaced = home and not rule.before and scopes.in_parameters(snapshot, start) != listed
        another = opened is not None and is_given_to_another(opened, snapshot, start)
        if not misplaced and not another and not done(rule, snapshot.text, start):
            foreign = syntax.inside(snapshot, start) != own
            yield replace(seen(rule, snapshot, Place(start, end, rule.after)), foreign=foreign)


def opened_alike(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Set[int] | None:
    """Where the arguments of the function begin of which one argument changed once."""
    change = changed_at(rule, snapshot, home) if home and rule.name and rule.count == 1 else None
    return change and {m.end() for m in called(rule.name, snapshot) if is_called(change, snapshot, m.start())}


def is_given_to_another(opened: Set[int], snapshot: Snapshot, offset: int) -> bool:
    """What became of one function's arguments says nothing of another's."""
    around = scopes.node_at(snapshot, offset)
    while around is not None and "argument" not in around.type:
        around = around.parent
    return around is not None and snapshot.offset_of_byte(around.start_byte) + 1 not in opened


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
    after += r"[ \t]*+(?=\r?$)" if "" in right else ""
    # What is put between two neighbours stands at the one that it touches.
    to_the_right = went or not left or rule.glued or rule.after[-1:].isspace()
    gap = r"[ \t]*+" if left else ""
    phrase = f"{gap}(?P<phrase>{sequence(went)})" if to_the_right else f"(?P<phrase>){gap}"
    between_them = r"[ \t]*+" if went and right else ""
    return re.compile(f"{before}{phrase}{between_them}{after}", re.MULTILINE)


def sequence(found: Sequence[str]) -> str:
    """A pattern for these tokens, however they are spaced."""
    pieces = [whole(text) if text[0].isalnum() or text[0] == "_" else re.escape(text) for text in found]
    return r"[ \t]*+".join(pieces)


# Arguments


def arguments(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """The same argument at the other calls of the function; a declaration without a body may look like a call."""
    change = changed_at(rule, snapshot, home) if home else None
    if change is None:
        return
    if change.meant.node is not None and scopes.declares(change.meant.node):
        yield from calls(rule, snapshot, home)
        return
    for call in calls_of(rule, change, snapshot):
        if rule.before.strip():
            same = change.name in call.names if change.name else len(call.pieces) == change.count + 1
            place = without_argument(call, change) if same else None
        else:
            place = with_argument(snapshot.text, call, change, rule.after.strip(" \t,"))
        if place:
            yield like_the_edited(rule, snapshot, place)


def calls(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """The calls of a function whose parameters have changed: one less is known, one more is for the model to write."""
    change = changed_at(rule, snapshot, home) if home else None
    if change is None or change.meant.node is None or not scopes.declares(change.meant.node):
        return
    for call in calls_of(rule, change, snapshot):
        if not rule.before.strip():
            yield passing(rule, change, snapshot, call)
        elif place := without_argument(call, change):
            yield like_the_edited(rule, snapshot, place)


def like_the_edited(rule: Rule, snapshot: Snapshot, place: Place) -> Place:
    found = seen(rule, snapshot, place)
    if not rule.before.strip():
        return found
    same = snapshot.text[place.start : place.end].strip(" ,") == rule.before.strip(" ,")
    return replace(found, likeness=(found.likeness + same) / 2)


def passing(rule: Rule, change: ArgumentChange, snapshot: Snapshot, call: Call) -> Place:
    """The new parameter's name, where the function around the call knows it; what else to pass is not known."""
    unknown = Place(call.start, call.end, None)
    first, end_of_function = scopes.function_range(snapshot, call.start)
    outside = (first, end_of_function) == (0, len(snapshot.text))
    if not change.name or outside or not re.search(whole(change.name), snapshot.text[first : call.start]):
        return unknown
    optional = named_by(snapshot) and ("=" in rule.after or change.index < 0)
    place = with_argument(snapshot.text, call, change, f"{change.name}={change.name}" if optional else change.name)
    return seen(rule, snapshot, place) if place else unknown


# Lines


def clones(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """Lines of the same shape, other names in it: what went has to be there, the rest may differ. The parameters of one
    function say nothing of another's."""
    if rule.count == 1 and home is not None and scopes.in_parameters(home, place_of(rule, home)):
        return
    rare = rule.count > 1 or len(tokens(rule.lines_before)) >= TELLING
    yield from templated(rule.lines_before, rule.lines_after, snapshot, rare)


def trailing_blanks(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    for start, end in nearest(TRAILING, snapshot, rule):
        yield Place(start, end, "", float(snapshot.text[start - 1 : start] in ("", "\n")))


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
        old, text = snapshot.text[start:end], in_the_files_lines(text, snapshot)
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
