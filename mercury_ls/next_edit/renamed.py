"""What the last edits renamed: where the new name may be written, and which other files may know the old one.

Whatever proposes an edit (a piece of code, a line that changes alike, a model): where it writes the new name for the
old one, the old one has to stand for what was renamed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from mercury_engine.api import Edit
from mercury_ls.code.differences import texts_of, token_changes, tokens
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import KEYWORDS, tokens_of
from mercury_ls.code.modules import Project
from mercury_ls.code.symbols import type_name
from mercury_ls.next_edit.kinds.quotes import MessageChange
from mercury_ls.next_edit.kinds.rename.declared import is_declared, renamed_symbol, where_declared
from mercury_ls.next_edit.kinds.rename.rule import Rename
from mercury_ls.next_edit.kinds.signatures import Signature, changed_signatures, names_of_calls
from mercury_ls.next_edit.learn import rules
from mercury_ls.next_edit.rule import Rule

SHORT_NAME = 3
LATEST = 3
LONGEST_NAME = 64
IMPORTING = re.compile(
    r"^[ \t]*(?:const|export|from|import|let|pub|use|var)\b[^\n({]*(?:\([^()]*|\{(?:[^{}]|\{[^{}]*\})*)?.*"
    r"|^[ \t]*+[\w.]*+[ \t]*+\"[^\"]+\"$",
    re.MULTILINE,
)
TAKEN = re.compile(r"(?<!\w)(?<!\w\.)(?<!\w::)(\w++(?:(?:\.|::)\w++)*+)[ \t]*+(?:\.|::)\Z")


class Renames(Struct, frozen=True):
    """Pairs of an old and a new name."""

    names: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, learned: Iterable[Rule], files: Iterable[Snapshot], project: Project) -> "Renames":
        homes = {file.path: file for file in files}
        return cls(frozenset((rule.before, rule.after) for rule in _at_declarations(learned, homes, project)))

    def made_by(self, snapshot: Snapshot, start: int, end: int, text: str) -> Iterator[int]:
        """Where an edit would write the new name for the old one."""
        if not self.names:
            return
        first, last = snapshot.line_start(snapshot.line_of(start)), snapshot.line_end(snapshot.line_of(end))
        before = snapshot.text[first:last]
        after = snapshot.text[first:start] + text + snapshot.text[end:last]
        for touch in token_changes(before, after):
            went, came = map(tokens_of, texts_of(before, after, touch))
            replaced = {old for old, new in self.names if old in went and new in came}
            at = first + touch.start
            yield from (
                at + token.start for token in tokens(snapshot.text[at : first + touch.end]) if token.text in replaced
            )


def _at_declarations(learned: Iterable[Rule], homes: Mapping[str, Snapshot], project: Project) -> Iterator[Rename]:
    for learned_rule in learned:
        rule = where_declared(learned_rule, homes, project)
        if isinstance(rule, Rename) and rule.path in homes and is_declared(rule, homes[rule.path], project):
            yield rule


class Sought(Struct, frozen=True):
    """A symbol that other files may know: what uses it contains all of these names, and mostly imports the file at
    `path`. A file may use a `member` without naming its type."""

    names: frozenset[str]
    path: str
    member: str = ""


def sought(edits: Sequence[Edit], homes: Mapping[str, Snapshot]) -> list[Sought]:
    """The symbols that the edits renamed, by their old names and those of their types, or of the functions whose
    parameters they are; the latest first."""
    renamed = _at_declarations(rules(edits), homes, Project())
    return _distinct(_sought(rule, homes[rule.path]) for rule in renamed)


def sought_calls(edits: Sequence[Edit], homes: Mapping[str, Snapshot]) -> list[Sought]:
    """The functions of whose parameters the edits ask other arguments."""
    signatures = changed_signatures(homes.values(), edits)
    return _distinct(_sought_call(signature, homes[signature.path]) for signature in signatures)


def sought_quotes(edits: Sequence[Edit]) -> list[Sought]:
    """The messages that the latest edit changed, by words of which whatever quotes one has some."""
    quotes = (rule for rule in rules(edits[-LATEST:]) if isinstance(rule, MessageChange) and rule.age == 0)
    return _distinct(Sought(names, quote.path) for quote in quotes for names in quote.names)


def _distinct(symbols: Iterable[Sought]) -> list[Sought]:
    return [*dict.fromkeys(symbol for symbol in symbols if symbol.names)]


def _sought(rule: Rename, home: Snapshot) -> Sought:
    symbol = renamed_symbol(rule, home)
    if symbol.local is not None and not symbol.function:
        return Sought(frozenset(), rule.path)
    whose = type_name(symbol.owner) if symbol.owner is not None else symbol.function
    member = rule.before if symbol.owner is not None else ""
    return Sought(frozenset(filter(None, (rule.before, whose))), rule.path, member)


def _sought_call(signature: Signature, home: Snapshot) -> Sought:
    names = names_of_calls(signature, home)
    return Sought(names, signature.path, signature.function if {signature.function} < names else "")


def renamed_symbols(edits: Sequence[Edit]) -> tuple[str, ...]:
    """The names by which other files may know what the latest edit changed."""
    names = (rule.known_as for rule in rules(edits[-LATEST:]) if rule.age == 0)
    return tuple(dict.fromkeys(name for name in names if len(name) > SHORT_NAME and name not in KEYWORDS))


def may_use(text: str, symbol: Sought) -> bool:
    return (bool(symbol.member) and symbol.member in text) or _may_use_names(text, symbol.names)


def _may_use_names(text: str, names: frozenset[str]) -> bool:
    """Whether a file can use the symbol: unqualified, or qualified by something that an import mentions. Roughly,
    without a parser."""
    if len(names) != 1:
        return all(name in text for name in names)
    occupied: set[str] = set()
    for match in re.finditer(rf"(?<![\w$]){re.escape(next(iter(names)))}\b", text):
        whose = TAKEN.search(text, max(match.start() - LONGEST_NAME, 0), match.start())
        if whose is None:
            return True
        occupied.update(re.findall(r"\w+", whose[1]))
    statements = IMPORTING.findall(text) if occupied else ()
    return any(not occupied.isdisjoint(re.findall(r"\w+", statement)) for statement in statements)
