"""The places at which a renamed name refers to the same symbol."""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import compress

from msgspec.structs import replace

from mercury_ls.code import scopes, syntax
from mercury_ls.code.documents import CLOSED, Document, Snapshot
from mercury_ls.code.index.definitions import constructs, declares_at_top
from mercury_ls.code.index.symbol import Symbol
from mercury_ls.code.lexemes import KEYWORDS, QUOTES
from mercury_ls.code.modules import Project, is_exported
from mercury_ls.code.parts import kind_of
from mercury_ls.code.scopes import whole, whole_in
from mercury_ls.code.symbols import called_with_keyword, is_qualified, qualifier_of
from mercury_ls.next_edit.kinds.rename.declared import (
    is_declared,
    is_of_a_use,
    is_one_of_several,
    renamed_symbol,
)
from mercury_ls.next_edit.kinds.rename.documented import documented
from mercury_ls.next_edit.kinds.rename.rule import Rename
from mercury_ls.next_edit.kinds.rename.uses import Uses, knows_imports, uses_in_family
from mercury_ls.next_edit.places import Place, defines, matching, nearest, sides, with_likeness

Span = tuple[int, int]

MOST_USES = 4096
SHORT = frozenset(
    {"shorthand_field_identifier", "shorthand_field_initializer", "shorthand_property_identifier"}
    | {"shorthand_property_identifier_pattern"}
)


def find(rule: Rename, snapshot: Snapshot, home: Snapshot | None, project: Project) -> list[Place]:
    """If the declaration was renamed, only places that certainly refer to it."""
    spans = project.once(("mentioned", rule, snapshot), lambda: _mentioned(rule, snapshot))
    if not spans:
        return []
    is_sure = home is not None and is_declared(rule, home, project) and (home is snapshot or knows_imports(snapshot))
    if not is_sure and (_is_keyword(rule, home) or _is_doubtful(rule, snapshot, home, project)):
        return []
    if home is not None and project.once(("several", rule, home.path), lambda: is_one_of_several(rule, home, project)):
        return []
    if home is not None and is_sure:
        return _certain_places(rule, snapshot, home, project, spans)
    code = _alike_embedded(rule, snapshot, home, project, spans)
    if home is not None and rule.count == 1 and is_of_a_use(rule, home, project):
        return _uses_alike(rule, snapshot, code)
    symbol = renamed_symbol(rule, home)
    return _placed(rule, snapshot, home, symbol, _likely_spans(rule, snapshot, home, symbol, project, code))


def _certain_places(
    rule: Rename, snapshot: Snapshot, home: Snapshot, project: Project, spans: Sequence[Span]
) -> list[Place]:
    symbol = renamed_symbol(rule, home)
    uses = uses_in_family(rule.before, rule.after, symbol, home, snapshot, project)
    if snapshot.version == CLOSED and not uses.may_be_there:
        return []
    certain_spans = _certain_spans(rule, uses, spans, _alike_embedded(rule, snapshot, home, project, spans))
    if snapshot is home:
        certain_spans += [(at, at + len(rule.before)) for at in documented(uses)]
    places = _placed(rule, snapshot, home, symbol, certain_spans, uses.import_sites)
    return [replace(place, bound=True, certain=True) for place in places]


def _alike_embedded(
    rule: Rename, snapshot: Snapshot, home: Snapshot | None, project: Project, spans: Sequence[Span]
) -> list[Span]:
    """The spans that are in code, a string or a comment as the edit was."""
    own = _origin(rule, home)
    kinds = project.each(("within", rule, snapshot), spans, lambda span: _within(snapshot, *span))
    alike = [span for span, kind in zip(spans, kinds, strict=True) if kind == own]
    if own is None:
        return alike
    if home is snapshot and not _is_quoted(rule.left[-1:], rule.right[:1]):
        return alike
    return [span for span in alike if _is_whole_text(rule, snapshot, *span)]


def _uses_alike(rule: Rename, snapshot: Snapshot, code: Sequence[Span]) -> list[Place]:
    """The places in the same lines and between the same tokens, where a use got another name."""
    if defines(rule.left, rule.right):
        return []
    return [place for place in _replaced(rule, snapshot, code) if place.likeness == 1]


def _certain_spans(rule: Rename, uses: Uses, spans: Sequence[Span], code: Sequence[Span]) -> list[Span]:
    """The spans that refer to the symbol, whatever its imports call it."""
    in_code = frozenset(code)

    def is_certain(span: Span) -> bool:
        return (span in in_code and uses.is_certain(span[0])) or uses.is_in_code_of_string(span[0])

    are_certain = uses.project.each(("certain", rule, uses.home, uses.snapshot), spans, is_certain)
    return [*compress(spans, are_certain)]


def _likely_spans(
    rule: Rename, snapshot: Snapshot, home: Snapshot | None, symbol: Symbol, project: Project, code: Sequence[Span]
) -> list[Span]:
    """The nearest spans that may refer to the symbol, where its declaration was not renamed or is not known."""
    if home is None:
        return nearest([span for span in code if _is_free(rule.before, snapshot, span[0])], snapshot, rule)
    uses = Uses(rule.before, rule.after, symbol, home, snapshot, project)
    is_of_use = rule.count == 1 and not defines(rule.left, rule.right)
    referring: list[Span] = []
    for start, end in code:
        if not uses.may_refer(start):
            continue
        if is_of_use and _is_of_another(symbol, snapshot, start):
            continue
        referring.append((start, end))
    return nearest(referring, snapshot, rule)


def _placed(
    rule: Rename,
    snapshot: Snapshot,
    home: Snapshot | None,
    symbol: Symbol,
    spans: Sequence[Span],
    import_sites: Collection[int] = (),
) -> list[Place]:
    """What to write at these spans, and how like the place of the edit each is."""
    places: list[Place] = []
    for start, end in spans:
        text = rule.after if start in import_sites else _spelled(rule, snapshot, start, end, symbol)
        places.append(with_likeness(Place(start, end, text), rule.left, rule.right, snapshot))
    declaration_gone = home is snapshot and _is_declaration_gone(rule, snapshot, symbol, places)
    return [replace(place, declaration_gone=declaration_gone) for place in places]


def _replaced(rule: Rename, snapshot: Snapshot, spans: Sequence[Span]) -> Iterator[Place]:
    """The nearest of these places in lines that say the same, whatever the old name stands for there."""
    own_lines = {line.strip() for line in rule.lines_before.splitlines()}
    for start, end in nearest([*spans], snapshot, rule):
        if snapshot.line(snapshot.line_of(start)).strip() in own_lines:
            yield with_likeness(Place(start, end, rule.after), rule.left, rule.right, snapshot)


def _mentioned(rule: Rename, snapshot: Snapshot) -> list[Span]:
    """Where the old name stands; an import that gives it another name keeps it."""
    given_anew = rf"(?![ \t]+as[ \t]+{re.escape(rule.after)}\b)"
    pattern = re.compile(_accessor(rule.before) + "|" + whole_in(snapshot, rule.before) + given_anew)
    matches = matching(pattern, snapshot.text, scopes.mentions(snapshot, rule.before))
    return nearest([match.span() for match in matches], snapshot, rule, MOST_USES)


def _is_doubtful(rule: Rename, snapshot: Snapshot, home: Snapshot | None, project: Project) -> bool:
    return snapshot.version == CLOSED or any(_has_its_own(rule, file, project) for file in (home, snapshot) if file)


def _is_keyword(rule: Rename, home: Snapshot | None) -> bool:
    """Whether the old name is a keyword of some language, and not that of a member: `fn` of `self.fn` is none."""
    node = scopes.node_at(home, rule.offset(home)) if home is not None and rule.before in KEYWORDS else None
    return rule.before in KEYWORDS and (node is None or not scopes.is_member(node))


def _is_whole_text(rule: Rename, snapshot: Snapshot, start: int, end: int) -> bool:
    """A word in a string or comment is no name in other files, unless it is all of the string in both places."""
    before, after = snapshot.text[max(start - 1, 0) : start], snapshot.text[end : end + 1]
    return _is_quoted(rule.left[-1:], rule.right[:1]) and _is_quoted(before, after)


def _is_quoted(left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether the tokens beside a word make all of a string of it."""
    return all(len(tokens_of_side) == 1 and tokens_of_side[0] in QUOTES for tokens_of_side in (left, right))


def _has_its_own(rule: Rename, snapshot: Snapshot, project: Project) -> bool:
    """Whether the file declares the old name itself, or imports it from a file of the project that lacks the new one:
    then a use got another name, and nothing was renamed."""
    if snapshot.path != rule.path and declares_at_top(project, snapshot, rule.before):
        return True
    for imported in project.imports(snapshot):
        if imported.alias == rule.before and (path := project.module(snapshot, imported.module)):
            file = project.file(path)
            return file is None or not scopes.mentions(file, rule.after)
    return False


def _is_free(name: str, snapshot: Snapshot, offset: int) -> bool:
    """Whether it is no local there, and no attribute."""
    node = scopes.node_at(snapshot, offset)
    is_attribute = node is not None and is_qualified(node)
    return not is_attribute and scopes.binding_at(snapshot, offset, (name,)) is None


def _is_of_another(symbol: Symbol, snapshot: Snapshot, offset: int) -> bool:
    """Whether a member was changed at a use, and nothing says that this is one of the same object."""
    node, used = scopes.node_at(snapshot, offset), symbol.node
    if used is None or node is None or scopes.declares(used) or called_with_keyword(used):
        return False
    return scopes.is_member(used) and qualifier_of(node) != qualifier_of(used)


def _origin(rule: Rename, home: Snapshot | None) -> str | None:
    """Whether the edit itself was in a comment or a string."""
    if home is not None and rule.after and home.text.startswith(rule.after, offset := rule.offset(home)):
        return syntax.inside(home, offset)
    alone = Document("", rule.path, "", 0, rule.lines_after).snapshot()
    return syntax.inside(alone, max(rule.lines_after.find(rule.after), 0)) if rule.lines_after else None


def _within(snapshot: Snapshot, start: int, end: int) -> str | None:
    """Whether it is in a comment or a string; what is in braces in a string of a Rust macro is code."""
    text, enclosing = snapshot.text, syntax.inside(snapshot, start)
    in_braces = text[start - 1 : start] == "{" != text[start - 2 : start - 1] and text[end : end + 1] in (":", "}")
    node = scopes.node_at(snapshot, start) if enclosing == "string" and in_braces else None
    literal = node and node.parent
    is_captured = kind_of(literal and literal.parent) == "token_tree"
    return None if is_captured else enclosing


def _is_declaration_gone(rule: Rename, snapshot: Snapshot, symbol: Symbol, places: Sequence[Place]) -> bool:
    """Whether the declaration was renamed and none of these places declares the old name."""
    if symbol.node is None:
        return False
    bound = {binding.reach for binding in scopes.bindings(snapshot, (rule.before,))}
    if symbol.local is not None and symbol.local.reach in bound:
        return False
    if not scopes.declares(symbol.node):
        defining = (place for place in places if defines(*sides(snapshot, place.start, place.end)))
        return defines(rule.left, rule.right) and next(defining, None) is None
    for place in places:
        node = scopes.node_at(snapshot, place.start)
        if node is not None and scopes.declares(node) and not constructs(node, symbol.node):
            return False
    return True


def _accessor(name: str) -> str:
    """A pattern for `name.setter` and the `name` of what it decorates: one without the other is an error."""
    letters = re.escape(name)
    return rf"{letters}(?<=@{letters})\.(?:getter|setter|deleter)\s+def\s+{letters}(?![\w$])"


def _spelled(rule: Rename, snapshot: Snapshot, start: int, end: int, symbol: Symbol) -> str:
    """`{ name }` is short for `{ name: name }`: the half that was not renamed stays."""
    node = scopes.node_at(snapshot, start)
    if node is not None and not SHORT.isdisjoint((node.type, kind_of(node.parent))):
        if symbol.owner is None and is_exported(node):
            return rule.after
        return f"{rule.after}: {rule.before}" if symbol.owner is not None else f"{rule.before}: {rule.after}"
    return re.sub(whole(rule.before), rule.after, snapshot.text[start:end])
