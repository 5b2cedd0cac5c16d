"""Where a rule applies in a text: the places that look as the edited one did, and what they would become."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from heapq import merge
from itertools import groupby, islice, takewhile

from msgspec.structs import replace

from mercury_engine.api import Edit
from mercury_ls.code import scopes, syntax
from mercury_ls.code.differences import tokens
from mercury_ls.code.documents import CLOSED, Document, Snapshot
from mercury_ls.code.edits import difference
from mercury_ls.code.scopes import whole
from mercury_ls.next_edit import columns, imports, mirrors
from mercury_ls.next_edit.arguments import (
    ArgumentChange,
    Call,
    called,
    calls_of,
    changed_at,
    constructing,
    is_called,
    named_by,
    with_argument,
    without_argument,
)
from mercury_ls.next_edit.lexemes import cased, indentation, is_word
from mercury_ls.next_edit.modules import Project, in_import, is_exported
from mercury_ls.next_edit.places import Place, in_the_files_lines, place_of
from mercury_ls.next_edit.propagation import KEYWORDS, PARTS, Rule
from mercury_ls.next_edit.referents import (
    Referent,
    declarations,
    declares_anew,
    is_meant,
    is_taken,
    referent,
    space_of,
    text_of,
)
from mercury_ls.next_edit.templates import clones, deletions, insertions, tokens_of
from mercury_ls.next_edit.uses import Uses, knows_imports

__all__ = ["find"]

MOST_PLACES = 64
MOST_USES = 4096
MOST_LETTERS = 2
SHORTEST = 4
MOST_NAMES = 256
TRAILING = re.compile(r"(?<![ \t])[ \t]++(?=\r?$)", re.MULTILINE)
ASSIGNED = re.compile(r"[ \t]*(?:[-+*/%&|^?:@]|\*\*|//|<<|>>>?|&&|\|\||\?\?)?=(?![=>~])|\+\+|--")
PROSE = re.compile(r"\A[\s(]\w+(?:[\s,;:.!?)]|\Z)")
QUOTES = frozenset("'\"`")
CALLED = re.compile(r"[\w)\]>!?]\(")
CHANGED = re.compile(r"(?:\bdel\b.*|\bdelete |&mut |\+\+|--)[ \t]*$")
SHORT = frozenset(
    {"shorthand_field_identifier", "shorthand_field_initializer", "shorthand_property_identifier"}
    | {"shorthand_property_identifier_pattern"}
)


def find(rule: Rule, snapshot: Snapshot, home: Snapshot | None, project: Project | None = None) -> list[Place]:
    """At most 64 places in the order of the text, and all that certainly are what got another name. `home` is the file
    where the rule was learned, as it is now."""
    if rule.kind == "rename":
        return names(rule, snapshot, home, project or Project(filter(None, (snapshot, home))))
    finders: dict[str, Callable[[Rule, Snapshot, Snapshot | None], Iterator[Place]]] = {
        "part": names_with_part,
        "phrase": phrases,
        "argument": arguments,
        "parameter": calls,
        "clone": clones,
        "align": columns.aligned,
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


# Names


def names(rule: Rule, snapshot: Snapshot, home: Snapshot | None, project: Project) -> list[Place]:
    """Where the old name stands for the same; an import that gives it another name keeps it. Of what got another name
    where it is declared only the places that certainly stand for it."""
    given_anew = rf"(?![ \t]+as[ \t]+{re.escape(rule.after)}\b)"
    pattern = re.compile(accessor(rule.before) + "|" + whole(rule.before) + given_anew)
    spans = nearest(pattern, snapshot, rule, starts=scopes.mentions(snapshot, rule.before), most=MOST_USES)
    if not spans:
        return []
    own, is_declared = origin(rule, home), home is not None and declared(rule, home, project)
    bound = is_declared and (home is snapshot or knows_imports(snapshot))
    if not bound and (
        snapshot.version == CLOSED or any(has_its_own(rule, each, project) for each in (home, snapshot) if each)
    ):
        return []
    if home is not None and project.once(("several", rule, home.path), lambda: is_one_of_several(rule, home, project)):
        return []
    offset = place_of(rule, home) if home else 0
    if bound and home is not snapshot:
        meant = project.once(("meant", rule, home and home.path), lambda: declared_there(rule, home))
    else:
        meant = referent(rule.before, rule.after, home, offset, snapshot, [start for start, _ in spans])
    code = [span for span in spans if within(snapshot, *span) == own]
    if own is not None and home is not snapshot:
        code = [span for span in code if is_whole_text(rule, snapshot, *span)]
    known = Uses(rule.before, rule.after, meant, home, snapshot, project) if home is not None and bound else None
    if known is not None:
        alike = [span for span in code if is_meant_here(known, span[0]) and known.is_certain(span[0])]
    else:
        alike = [span for span in code if is_meant(meant, snapshot, span[0])]
        alike = alike if home is not None else [span for span in alike if not is_attribute(snapshot, span[0])]
        alike = nearest_of(alike, snapshot, rule)
    brought = known.brought if known is not None else frozenset()
    places = [
        seen(rule, snapshot, Place(at, end, rule.after if at in brought else spelled(rule, snapshot, at, end, meant)))
        for at, end in alike
    ]
    orphan = home is snapshot and is_orphan(rule, snapshot, meant, places)
    found = [replace(place, orphan=orphan, bound=bound) for place in places]
    return sorted([*found, *misspelled(rule, snapshot, spans, own)], key=lambda place: place.start)


def is_whole_text(rule: Rule, snapshot: Snapshot, start: int, end: int) -> bool:
    """A word of a text is no name: elsewhere it means something else, unless it is all of the text in both places."""
    around = (rule.left[-1:], rule.right[:1], snapshot.text[start - 1 : start], snapshot.text[end : end + 1])
    return all(len(each) == 1 and each[0] in QUOTES for each in around)


def has_its_own(rule: Rule, snapshot: Snapshot, project: Project) -> bool:
    """Whether the old name is the file's own, or one that it imports from a file of the project, which does not have
    the new one: a use that got another name says nothing about it."""
    if snapshot.path != rule.path and project.declares(snapshot, rule.before):
        return True
    for each in project.imports(snapshot):
        if each.alias == rule.before and (path := project.module(snapshot, each.module, snapshot.path)):
            file = project.file(path)
            return file is None or not scopes.mentions(file, rule.after)
    return False


def is_attribute(snapshot: Snapshot, offset: int) -> bool:
    node = scopes.node_at(snapshot, offset)
    return node is not None and is_taken(node)


def is_meant_here(known: Uses, offset: int) -> bool:
    """In its own file a name may stand for something else of the same name; elsewhere imports say what it is."""
    return not known.is_home or is_meant(known.meant, known.snapshot, offset)


def declared(rule: Rule, home: Snapshot, project: Project) -> bool:
    """Whether the edits gave the name where it is first declared, so that nothing has the old one by now."""
    return project.once(("declared", rule, home.path), lambda: is_declared_anew(rule, home, project))


def where_declared(rule: Rule, homes: Mapping[str, Snapshot], project: Project, edits: Sequence[Edit] = ()) -> Rule:
    """The rule as of the place where the name is declared, if that is among those where the same edit was made, or if
    another of the edits gave it the new name: who has gone on to change a use has renamed it no less."""
    home = homes.get(rule.path)
    if rule.kind != "rename" or (home is not None and declared(rule, home, project)):
        return rule
    known = [(homes[path], first, rule.lines) for path, first in rule.places if path in homes]
    known += [(homes[e.path], e.line, e.after.count("\n")) for e in edits if e.path in homes and gives(rule, e)]
    moved = (each for place in known for each in at_declarations(rule, *place))
    return next((each for each in moved if declared(each, homes[each.path], project)), rule)


def gives(rule: Rule, edit: Edit) -> bool:
    """Whether the edit had the old name before, and the new one alone afterwards."""
    went, came = ({each.text for each in tokens(text)} for text in (edit.before, edit.after))
    return rule.before in went - came and rule.after in came - went


def at_declarations(rule: Rule, file: Snapshot, first: int, lines: int) -> Iterator[Rule]:
    for at in scopes.mentions(file, rule.after):
        number, node = file.line_of(at), scopes.node_at(file, at)
        if first <= number < first + lines and node is not None and scopes.declares(node):
            column = at - file.line_start(number) + len(rule.after)
            places = tuple(dict.fromkeys((*rule.places, (file.path, number))))
            yield replace(rule, path=file.path, line=number, column=column, places=places)


def declared_there(rule: Rule, home: Snapshot | None) -> Referent:
    """What the rule is about, apart from the places where it may be used."""
    return referent(rule.before, rule.after, home, place_of(rule, home), home, ()) if home else Referent()


def old_and_new(rule: Rule, home: Snapshot, project: Project) -> tuple[list[int], list[int]]:
    """Where the file declares it by its old name still, and by the new one."""

    def found() -> tuple[list[int], list[int]]:
        meant = declared_there(rule, home)
        return declarations(rule.before, home, meant), declarations(rule.after, home, meant)

    return project.once(("declarations", rule, home.path), found)


def is_one_of_several(rule: Rule, home: Snapshot, project: Project) -> bool:
    """Whether a copy got another name, or one of several functions that share it: nobody can tell who means which."""
    old, new = old_and_new(rule, home, project)
    spaces = [{space_at(home, at) for at in some if has_body(home, at)} for some in (old, new)]
    return not spaces[0].isdisjoint(spaces[1])


def space_at(snapshot: Snapshot, offset: int) -> str:
    node = scopes.node_at(snapshot, offset)
    return space_of(node) if node is not None else ""


def is_declared_anew(rule: Rule, home: Snapshot, project: Project) -> bool:
    old, new = old_and_new(rule, home, project)
    if not new or new[0] > min(old, default=len(home.text)):
        return False
    number = home.line_of(new[0])
    return any(path == home.path and first <= number < first + rule.lines for path, first in rule.places)


def has_body(snapshot: Snapshot, offset: int) -> bool:
    """Whether it names a function or a type there and then; what a property has for reading and for writing is one."""
    node = scopes.node_at(snapshot, offset)
    around = node and node.parent
    if node is None or around is None or not scopes.names_it(node, around):
        return False
    outside = around.parent
    decorated = outside is not None and outside.type == "decorated_definition"
    is_accessor = decorated or any(child.type in ("get", "set") for child in around.children)
    return around.child_by_field_name("body") is not None and not is_accessor


def misspelled(rule: Rule, snapshot: Snapshot, spans: Sequence[tuple[int, int]], own: str | None) -> Iterator[Place]:
    """A word in which a letter or two were corrected is as wrong in a comment; what code calls so may have reasons."""
    change = difference(rule.before, rule.after)
    inside = change.start > 0 and change.end < len(rule.before)
    letters = max(change.end - change.start, len(change.text))
    if not inside or letters > MOST_LETTERS or len(rule.before) < SHORTEST or snapshot.version == CLOSED:
        return
    for start, end in spans:
        if within(snapshot, start, end) not in (own, None) and PROSE.search(snapshot.text[start - 1 : end + 1]):
            yield replace(seen(rule, snapshot, Place(start, end, rule.after)), foreign=True)


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
    pattern: re.Pattern[str],
    snapshot: Snapshot,
    rule: Rule,
    named: int | str = 0,
    starts: Iterable[int] | None = None,
    most: int = MOST_PLACES,
) -> list[tuple[int, int]]:
    """The matches nearest to the edit, in the order of the text; the first ones of another file. `starts`, if known,
    are where alone they can begin."""
    found = pattern.finditer(snapshot.text) if starts is None else beginning(pattern, snapshot.text, starts)
    return nearest_of([match.span(named) for match in found], snapshot, rule, most)


def nearest_of(
    spans: list[tuple[int, int]], snapshot: Snapshot, rule: Rule, most: int = MOST_PLACES
) -> list[tuple[int, int]]:
    if len(spans) > most:
        at = place_of(rule, snapshot) if rule.path == snapshot.path else 0
        spans = sorted(sorted(spans, key=lambda span: abs(span[0] - at))[:most])
    return spans


def beginning(pattern: re.Pattern[str], text: str, starts: Iterable[int]) -> Iterator[re.Match[str]]:
    end = 0
    for at in starts:
        if at >= end and (match := pattern.match(text, at)):
            yield match
            end = match.end()


def accessor(name: str) -> str:
    """A pattern for `name.setter` and the `name` of what it decorates: one without the other is an error."""
    letters = re.escape(name)
    return rf"{letters}(?<=@{letters})\.(?:getter|setter|deleter)\s+def\s+{letters}(?![\w$])"


def spelled(rule: Rule, snapshot: Snapshot, start: int, end: int, meant: Referent) -> str:
    """`{ name }` is short for `{ name: name }`, and what was not renamed stays: the key, or what has its value."""
    node = scopes.node_at(snapshot, start)
    if node is not None and (node.type in SHORT or (node.parent is not None and node.parent.type in SHORT)):
        if meant.owner is None and is_exported(node):
            return rule.after
        return f"{rule.after}: {rule.before}" if meant.owner is not None else f"{rule.before}: {rule.after}"
    return re.sub(whole(rule.before), rule.after, snapshot.text[start:end])


def names_with_part(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """Where other names are declared that have it, as far as a local goes if it was one. They have to be of this file
    and nowhere used in it: a name that changed in some of its places is worse than one that stayed."""
    variants = dict(zip(cased(rule.before), cased(rule.after), strict=True))
    spans = [*islice(words_with(variants, snapshot.text), MOST_NAMES)]
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


def words_with(parts: Iterable[str], text: str) -> Iterator[tuple[int, int]]:
    """The words in which one of the parts stands: that is found first, since few words have one, then their edges."""
    words = (words_around(part, text) for part in dict.fromkeys(parts) if part)
    yield from (span for span, _ in groupby(merge(*words)))


def words_around(part: str, text: str) -> Iterator[tuple[int, int]]:
    at = text.find(part)
    while at >= 0:
        start, end = at, at + len(part)
        while start and is_word(text[start - 1]):
            start -= 1
        while end < len(text) and is_word(text[end]):
            end += 1
        yield start, end
        at = text.find(part, end)


def reach_of(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> tuple[int, int]:
    """Where a name that changed in a part is known."""
    node = home and scopes.node_at(home, place_of(rule, home))
    local = scopes.local_at(home, place_of(rule, home), (*rule.names, text_of(node))) if home and node else None
    if local is None:
        return 0, len(snapshot.text)
    return local.reach if home is snapshot else (0, 0)


def is_declared(snapshot: Snapshot, start: int, end: int) -> bool:
    node = scopes.node_at(snapshot, start)
    if node is None or in_import(node):
        return False
    return scopes.declares(node) or defines(*sides(snapshot, start, end))


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
            if not rule.after:
                start, end = with_blanks(snapshot.text, start, end)
            yield replace(seen(rule, snapshot, Place(start, end, rule.after)), foreign=foreign)


def with_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """What goes from a line leaves no blanks that separate nothing by then."""
    head, tail = text[text.rfind("\n", 0, start) + 1 : start], text[end : (text.find("\n", end) + 1) or None]
    left, right = len(head) - len(head.rstrip(" \t")), len(tail) - len(tail.lstrip(" \t"))
    if not head.strip() or (left == 0 and head[-1] in "([{"):
        return start, end + right
    return start - left * (not tail or tail[0] in " \t\r\n,;)]}"), end


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
    if home is None or change is None or change.meant.node is None or not scopes.declares(change.meant.node):
        return
    for each in filter(None, (change, constructing(change, snapshot, home))):
        for call in calls_of(rule, each, snapshot):
            if not rule.before.strip():
                yield passing(rule, each, snapshot, call)
            elif place := without_argument(call, each):
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


# Blanks


def trailing_blanks(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    for start, end in nearest(TRAILING, snapshot, rule):
        yield Place(start, end, "", float(snapshot.text[start - 1 : start] in ("", "\n")))


# Extracted expressions


def extractions(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> Iterator[Place]:
    """From the new variable on, to the end of its function or to where something else is put there, its value has a
    name, but where it is given that name. What is called more than once may say something else each time."""
    if home is not snapshot or rule.line >= snapshot.line_count:
        return
    begun = snapshot.line_end(min(rule.line + rule.lines_after.count("\n"), snapshot.line_count) - 1)
    _, last = scopes.function_range(snapshot, snapshot.line_start(rule.line) + len(indentation(rule.lines_after)))
    pattern = re.compile(sequence([token.text for token in tokens(rule.before)]))
    matches = (match.span() for match in pattern.finditer(snapshot.text, begun, last))
    read = takewhile(lambda span: not is_written(snapshot.text, *span), matches)
    others = (span for span in read if not is_its_own(rule, snapshot, span[0]))
    uses = [span for span in others if syntax.inside(snapshot, span[0]) is None]
    if CALLED.search(rule.before) and (len(uses) > 1 or any(is_anew(rule, snapshot, *span) for span in uses)):
        return
    for start, end in uses:
        yield replace(seen(rule, snapshot, Place(start, end, rule.after)), bound=True)


def is_its_own(rule: Rule, snapshot: Snapshot, start: int) -> bool:
    head = snapshot.text[snapshot.line_start(snapshot.line_of(start)) : start]
    return bool(re.search(rf"{whole(rule.after)}[^=]*=[ \t]*$", head))


def is_anew(rule: Rule, snapshot: Snapshot, start: int, end: int) -> bool:
    """Whether it is all that another variable gets, or is held against what the first one got."""
    line = snapshot.line_of(start)
    head, tail = snapshot.text[snapshot.line_start(line) : start], snapshot.text[end : snapshot.line_end(line)]
    alone = head.rstrip().endswith("=") and not tail.strip("; \t\r\n")
    return alone or bool(re.search(whole(rule.after), head + " " + tail))


def is_written(text: str, start: int, end: int) -> bool:
    """Whether it gets another value there, or may get one from whoever is given it."""
    return bool(ASSIGNED.match(text, end) or CHANGED.search(text[text.rfind("\n", 0, start) + 1 : start]))
