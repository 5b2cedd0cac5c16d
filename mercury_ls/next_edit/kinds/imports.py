"""Imports: those that a file lacks for new names, and those that nothing uses any more."""

import builtins
import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import PurePosixPath

from mercury_engine.api import Edit
from mercury_ls.code import differences, scopes, stdlib_names, syntax
from mercury_ls.code.diagnostics import FileDiagnostic
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import IMPORT, KEYWORDS
from mercury_ls.code.modules import Project
from mercury_ls.code.scopes import whole
from mercury_ls.next_edit.examples import Example
from mercury_ls.next_edit.places import Place
from mercury_ls.next_edit.rule import Rule, quoted
from mercury_ls.next_edit.suppress import never as suppress

__all__ = ["MissingImport", "UnusedImport", "complained_of", "find", "label", "learn", "needed", "suppress"]

LATEST = 3
MOST_NAMES = 8
MOST_GONE = 4
MOST_USES = 16
UNUSED = re.compile(r"\bunused\b|\bnot (?:used|accessed)\b|\bnever (?:used|read)\b", re.IGNORECASE)
WORD = re.compile(r"(?<![\w.$\"'])[^\W\d]\w+")
UNSEEN = frozenset({".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".rs"})
"""There a name may come from a transitive include, a parent module or a macro."""
BUILTIN = frozenset(dir(builtins))
BOUND = re.compile(r"^\s*(?:from\s+\S+\s+import|import|use|using|#include)\b(?P<rest>.*)", re.DOTALL)
IMPORTING = re.compile(r"[ \t]*(?:from|import|use)\b")
GROUP = re.compile(r"import[ \t]*\(")
NAMED = re.compile(r"from[ \t]+(?P<module>[\w.]+)[ \t]+import[ \t]+(?P<names>\([^)]*|[\w, \t]+)")


class UnusedImport(Rule, frozen=True, kw_only=True):
    """The name `before` was removed; it may be left in an import statement alone."""

    kind = "unused import"


class MissingImport(Rule, frozen=True, kw_only=True):
    """The import statement `after` brings a name that the file uses."""

    kind = "missing import"


def learn(example: Example) -> Iterator[UnusedImport]:
    """The names that an edit removed, other than from an import statement."""
    if IMPORT.match(example.before):
        return
    stay = set(differences.WORD.findall(example.after)) | KEYWORDS
    removed_names = (word for word in dict.fromkeys(differences.WORD.findall(example.before)) if word not in stay)
    for word in islice(removed_names, MOST_GONE):
        yield UnusedImport(before=word)


def find(rule: UnusedImport, snapshot: Snapshot, home: Snapshot | None, project: Project) -> Iterator[Place]:
    """The removed name, if it is left in an import and nowhere else."""
    spans = [match.span() for match in islice(re.finditer(whole(rule.before), snapshot.text), 2)]
    if len(spans) != 1:
        return
    start, end = spans[0]
    statement = next(
        (import_span for import_span in syntax.imports(snapshot) if import_span[0] <= start < import_span[1]), None
    )
    if statement:
        yield without_name(snapshot, statement, start, end)


def label(rule: UnusedImport | MissingImport) -> str:
    if isinstance(rule, MissingImport):
        return f"add {quoted(rule.after)}"
    return f"remove the unused import {quoted(rule.before)}"


def complained_of(
    snapshot: Snapshot, diagnostics: Sequence[FileDiagnostic], neighbours: Sequence[Snapshot]
) -> Iterator[tuple[Rule, Place]]:
    """Adds the import of an unknown name, and removes an unused one."""
    statements = syntax.imports(snapshot)
    for diagnostic in diagnostics:
        name = snapshot.text[diagnostic.start : diagnostic.end]
        around = next((span for span in statements if span[0] <= diagnostic.start < span[1]), None)
        if around is not None and (diagnostic.is_unnecessary or UNUSED.search(diagnostic.message)):
            rule = UnusedImport(before=name, path=snapshot.path)
            yield rule, without_name(snapshot, around, max(diagnostic.start, around[0]), min(diagnostic.end, around[1]))
        elif name.isidentifier() and unbound(snapshot, name) and (text := statement_for(name, snapshot, neighbours)):
            rule = MissingImport(after=text, path=snapshot.path)
            yield from ((rule, place) for place in statement(snapshot, text))


def needed(snapshot: Snapshot, edits: Sequence[Edit], neighbours: Sequence[Snapshot]) -> Iterator[tuple[Rule, Place]]:
    """Imports for names that the last edits began to use here, as other files or the standard library have them."""
    if suffix(snapshot.path) in UNSEEN:
        return
    for age, edit in enumerate(reversed(edits[-LATEST:])):
        if edit.path != snapshot.path or IMPORT.match(edit.after):
            continue
        for name in new_names(edit):
            if import_line := statement_for(name, snapshot, neighbours) if unbound(snapshot, name) else "":
                rule = MissingImport(after=import_line, path=edit.path, line=edit.line, age=age)
                yield from ((rule, place) for place in statement(snapshot, import_line))


def new_names(edit: Edit) -> list[str]:
    old_names = set(WORD.findall(edit.before)) | KEYWORDS
    return [name for name in dict.fromkeys(WORD.findall(edit.after)) if name not in old_names][:MOST_NAMES]


def statement_for(name: str, snapshot: Snapshot, neighbours: Sequence[Snapshot]) -> str:
    kin = [other for other in neighbours if suffix(other.path) == suffix(snapshot.path) and other is not snapshot]
    for neighbour in kin:
        for start, end in syntax.imports(neighbour):
            text = neighbour.text[start:end]
            if "\n" not in text and name in bound_by(text) and means_the_same(text, neighbour.path, snapshot.path):
                return text
    return stdlib_names.statement(name, suffix(snapshot.path), snapshot.text)


def unbound(snapshot: Snapshot, name: str) -> bool:
    """Whether the file uses the name and neither declares nor imports it."""
    if suffix(snapshot.path) == ".py" and name in BUILTIN:
        return False
    uses = [match.start() for match in islice(re.finditer(whole(name), snapshot.text), MOST_USES)]
    used = [at for at in uses if snapshot.text[at - 1 : at] != "." and syntax.inside(snapshot, at) is None]
    statements = syntax.imports(snapshot)
    if not used or any(start <= at < end for at in uses for start, end in statements):
        return False
    if any(follows_import(snapshot.text, match.start()) for match in re.finditer(whole(name), snapshot.text)):
        return False
    if any(brings_unseen(snapshot.text[start:end], name) for start, end in statements):
        return False
    nodes = [scopes.node_at(snapshot, at) for at in used]
    return not any(node is not None and scopes.declares(node) for node in nodes)


def follows_import(text: str, offset: int) -> bool:
    return IMPORTING.match(text, text.rfind("\n", 0, offset) + 1, offset) is not None


def brings_unseen(text: str, name: str) -> bool:
    """A star may import any name, a quoted path its last component."""
    return bool(re.search(rf"[/\"]{re.escape(name)}\"|(?:::|\.|\bimport[ \t]+)\*", text))


def bound_by(text: str) -> list[str]:
    """The names that an import statement binds, roughly: the last word of each of its parts."""
    match = BOUND.match(text)
    parts = re.split(r"[,{}();]", match["rest"]) if match else []
    return [words[-1] for part in parts if (words := re.findall(r"\w+", re.sub(r"\bfrom\b.*", "", part)))]


def statement(snapshot: Snapshot, text: str) -> Iterator[Place]:
    """On a line of its own among the imports, in alphabetical order if they are."""
    import_spans = syntax.imports(snapshot)
    if place := one_more(snapshot, import_spans, text) or grouped(snapshot, import_spans, text):
        yield place
        return
    import_spans = section(snapshot, import_spans, text)
    word = first_word(text)
    alike = [(start, end) for start, end in import_spans if first_word(snapshot.text[start:end]) == word]
    alike = alike or import_spans
    if not alike:
        return
    later = next((start for start, end in alike if snapshot.text[start:end] > text), None)
    line = snapshot.line_of(alike[-1][1]) + 1 if later is None else snapshot.line_of(later)
    if line < snapshot.line_count:
        start = snapshot.line_start(line)
        ending = ";" if snapshot.text[alike[0][0] : alike[0][1]].endswith(";") else ""
        yield Place(start, start, text.rstrip(";") + ending + "\n", 1.0)


def section(snapshot: Snapshot, import_spans: list[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """The block of standard-library imports of Python, for one more of these."""
    if suffix(snapshot.path) != ".py" or not is_own(text):
        return import_spans
    own = [(start, end) for start, end in import_spans if is_own(snapshot.text[start:end])]
    return own or import_spans


def is_own(text: str) -> bool:
    """Whether an import statement is of Python's standard library."""
    match = re.match(r"(?:from|import)[ \t]+(\w+)", text)
    return bool(match) and match[1] in sys.stdlib_module_names - {"__future__"}


def one_more(snapshot: Snapshot, import_spans: Sequence[tuple[int, int]], text: str) -> Place | None:
    """Joins `from a import c` to an existing `from a import b`, in alphabetical order."""
    named = NAMED.match(text) if suffix(snapshot.path) == ".py" else None
    if named is None:
        return None
    for start, end in import_spans:
        match = NAMED.match(snapshot.text, start, end)
        if match and match["module"] == named["module"]:
            names = list(re.finditer(r"\w+(?:[ \t]+as[ \t]+\w+)?", match["names"]))
            name, base = named["names"].strip(), match.start("names")
            later = next((following_name.start() for following_name in names if following_name.group() > name), None)
            if later is not None:
                return Place(base + later, base + later, f"{name}, ", 1.0)
            return Place(base + names[-1].end(), base + names[-1].end(), f", {name}", 1.0) if names else None
    return None


def grouped(snapshot: Snapshot, import_spans: Sequence[tuple[int, int]], text: str) -> Place | None:
    """Go groups its imports in brackets, the standard library first."""
    around = next((span for span in import_spans if GROUP.match(snapshot.text, span[0], span[1])), None)
    if around is None or suffix(snapshot.path) != ".go":
        return None
    path = text.removeprefix("import").strip()
    numbers = range(snapshot.line_of(around[0]) + 1, snapshot.line_of(around[1]))
    own = [number for number in numbers if snapshot.line(number).strip().startswith('"')]
    own = [number for number in own if "." not in snapshot.line(number).partition("/")[0]]
    later = next((number for number in own if snapshot.line(number).strip() > path), None)
    start = snapshot.line_start(later if later is not None else own[-1] + 1 if own else numbers.start)
    return Place(start, start, f"\t{path}\n", 1.0)


def first_word(text: str) -> str:
    return text.split(None, 1)[0] if text.strip() else ""


def means_the_same(text: str, path: str, other: str) -> bool:
    """Whether an import statement of one file imports the same in another."""
    relative = re.search(r"from\s+\.|[\"']\.|\bsuper::", text)
    return not relative or path.rpartition("/")[0] == other.rpartition("/")[0]


@lru_cache(maxsize=256)
def suffix(path: str) -> str:
    return {".tsx": ".ts", ".js": ".ts", ".jsx": ".ts"}.get(extension := PurePosixPath(path).suffix, extension)


def without_name(snapshot: Snapshot, statement: tuple[int, int], start: int, end: int) -> Place:
    """Removes one name of several, or the whole statement with its line."""
    text = snapshot.text
    after = re.compile(r"(?:[ \t]+as[ \t]+\w+)?[ \t]*,[ \t]*").match(text, end, statement[1])
    before = re.compile(r"[,\n][ \t]*\Z").search(text, statement[0], start)
    if not after and before and before.group()[0] == ",":
        return Place(before.start(), end, "")
    first, stop = (
        whole_line(snapshot, start, after.end()) if after else whole_line(snapshot, statement[0], statement[1])
    )
    return Place(first, stop, "")


def whole_line(snapshot: Snapshot, start: int, end: int) -> tuple[int, int]:
    """Widened to the whole line if nothing else is on it."""
    first, last = snapshot.line_of(start), snapshot.line_of(end)
    outside = snapshot.text[snapshot.line_start(first) : start] + snapshot.text[end : snapshot.line_end(last)]
    if outside.strip(" \t;") or last + 1 >= snapshot.line_count:
        return start, end
    return snapshot.line_start(first), snapshot.line_start(last + 1)
