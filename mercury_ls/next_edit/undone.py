"""What the last edit leaves where no rule knows what to write: uses of a name that went, lists that lack a name which
came, and prose that names a value which changed. The user is led there.

    left = yield from undone(situation, project)      # Left("`os` is still used: main.py:4", …)
"""

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import islice
from os.path import dirname

from mercury_engine.api import Edit
from mercury_ls.code import scopes, syntax
from mercury_ls.code.differences import WORD, changed_lines, texts_of, token_changes
from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.code.index.definitions import declared, declared_at
from mercury_ls.code.lexemes import CONSTANTS, KEYWORDS, indentation, shape_of, tokens_of
from mercury_ls.code.modules import Project, family, imports_of, in_import
from mercury_ls.code.parts import kind_of
from mercury_ls.code.symbols import qualifier_of
from mercury_ls.next_edit.kinds.imports import is_bare_use
from mercury_ls.next_edit.kinds.rename.unjudged import listed_places
from mercury_ls.next_edit.once import is_prose
from mercury_ls.next_edit.places import Left, named_from
from mercury_ls.next_edit.rule import in_label
from mercury_ls.next_edit.situation import Situation

MOST_NAMES, MOST_FILES, MOST_PLACES = 16, 16, 32
NEAR = 12
"""Lines above and below in which something else stands in the place of what came."""
FEWEST_SIBLINGS, SHORTEST = 2, 3
SHARE = 0.75
"""Of the siblings that a list has to have, to lack another."""
GAP = 3
"""Lines between two entries of a list."""
MARKS = frozenset("\"'`")
DELIMITERS = frozenset({",", "|", "||"})
FEW, FEW_LISTS = 8, 4
CONSTANT = re.compile(r"[A-Z][A-Z0-9_]{4,}|(?=\w{6})[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+")
VALUE = re.compile(r"\d[\w.]*+|[^\W\d][\w-]*+")
NUMBER = re.compile(r"\d[\w.]*+")

Places = list[tuple[Snapshot, int]]


def undone(situation: Situation, project: Project) -> Generator[None, None, Left]:
    """Nothing where the last edit is not in the text as it was made."""
    edit = situation.edits[-1]
    home = next((file for file in situation.files if file.path == edit.path), None)
    if home is None or home.tree is None or not _stands(edit, home):
        return Left("")
    notes: list[str] = []
    places: Places = []
    for what, found in (
        *(yield from _gone(edit, home, project)),
        *_missing(edit, situation),
        *_documented(edit, home),
        *_elsewhere(edit, home, project),
    ):
        notes.append(f"{what}: {listed_places(named_from(home, *place) for place in found)}")
        places += found
        yield
    return Left("; ".join(notes), tuple(places[:MOST_PLACES]))


def _stands(edit: Edit, home: Snapshot) -> bool:
    return edit.line < home.line_count and home.text.startswith(edit.after, home.line_start(edit.line))


def _gone(edit: Edit, home: Snapshot, project: Project) -> Generator[None, None, list[tuple[str, Places]]]:
    """The names that the edit took the declaration or the import of, and where they are used nevertheless."""
    kept = {*WORD.findall(edit.after), *KEYWORDS}
    names = [name for name in dict.fromkeys(WORD.findall(edit.before)) if name not in kept][:MOST_NAMES]
    start = home.line_start(edit.line)
    if not names and not _is_of_imports(edit, home):
        return []
    text = home.text[:start] + edit.before + home.text[start + len(edit.after) :]
    document = Document(home.uri, home.path, home.language, home.version, text)
    yield from document.parsing()
    earlier, here = document.snapshot(), {imported.alias.partition(".")[0] for imported in project.imports(home)}
    lines = range(edit.line, edit.line + edit.before.count("\n") + 1)
    imported_names = {i.alias.partition(".")[0] for i in imports_of(earlier) if earlier.line_of(i.start) in lines}
    unbound = imported_names - here
    gone: list[tuple[str, Places]] = []
    for name in dict.fromkeys((*names, *sorted(unbound))) if "*" not in here else ():
        places = [*_used_here(name, earlier, home, lines, name in unbound)]
        if name not in imported_names:
            places += _used_elsewhere(name, earlier, home, lines, project)
        if places:
            gone.append((f"{in_label(name)} is still used", places))
        yield
    return gone


def _is_of_imports(edit: Edit, home: Snapshot) -> bool:
    node = scopes.node_at(home, home.line_start(edit.line) + len(indentation(home.line(edit.line))))
    return node is not None and in_import(node)


def _used_here(
    name: str, earlier: Snapshot, home: Snapshot, lines: Sequence[int], was_imported: bool
) -> Iterator[tuple[Snapshot, int]]:
    went = [at for at in _declarations(name, earlier) if earlier.line_of(at) in lines]
    if not went and not was_imported:
        return
    is_local = bool(went) and scopes.local_at(earlier, went[0], (name,)) is not None
    first, last = scopes.function_range(home, home.line_start(lines[0])) if is_local else (0, len(home.text))
    for at, node in scopes.nodes_of(home, name):
        if first <= at < last and is_bare_use(node, home, at) and not declared_at(home, name, at):
            yield home, at


def _declarations(name: str, file: Snapshot) -> Iterator[int]:
    for at, node in scopes.nodes_of(file, name):
        if scopes.declares(node) and not scopes.is_member(node) and "type_parameter" not in kind_of(node.parent):
            yield at


def _used_elsewhere(
    name: str, earlier: Snapshot, home: Snapshot, lines: Sequence[int], project: Project
) -> Iterator[tuple[Snapshot, int]]:
    """Where other files import what was declared at the top, or in Go use it."""
    went = [at for at in _declarations(name, earlier) if earlier.line_of(at) in lines]
    if not went or declared(home, name) or scopes.local_at(earlier, went[0], (name,)) is not None:
        return
    for path in islice(project.mentioning(name, home.path), MOST_FILES):
        file = project.file(path)
        if file is None:
            continue
        if family(path) == "go" and dirname(path) == dirname(home.path) and not declared(file, name):
            yield from ((file, at) for at, node in scopes.nodes_of(file, name) if is_bare_use(node, file, at))
        for imported in project.imports(file):
            if imported.name == name and project.module(file, imported.module) == home.path:
                yield file, imported.start


def _missing(edit: Edit, situation: Situation) -> Iterator[tuple[str, Places]]:
    """Where names stand together beside which one was put, and it does not."""
    home = next(file for file in situation.files if file.path == edit.path)
    if _is_of_imports(edit, home):
        return
    put_in = {name: (siblings, own) for name, siblings, own in _names_put_in(edit, home)}
    for name, (siblings, own) in put_in.items():
        wanted = max(FEWEST_SIBLINGS, SHARE * len(siblings))
        places = [
            (file, at)
            for file in situation.files
            for at in _lists_without(name, siblings, wanted, file, own if file is home else range(0))
        ]
        if 0 < len(places) <= FEW_LISTS:
            beside = " and ".join(map(in_label, siblings[:2]))
            yield f"{in_label(name)} may be missing beside {beside}", places


def _names_put_in(edit: Edit, home: Snapshot) -> Iterator[tuple[str, list[str], range]]:
    """A name that came, those in its place in the lines or items around, and all of these lines."""
    for number, old, new in changed_lines(edit.before, edit.after):
        first = edit.line + number
        if old and len(old) == len(new) == 1:
            yield from _items_put_in(old[0], new[0], first)
        for at, line in enumerate(new if not old else ()):
            yield from _names_in_line(line, first + at, range(first, first + len(new)), home)


def _names_in_line(line: str, number: int, new_lines: range, home: Snapshot) -> Iterator[tuple[str, list[str], range]]:
    around = [n for n in range(max(number - NEAR, 0), min(number + NEAR, home.line_count)) if n not in new_lines]
    alike = [n for n in around if _looks_like(home.line(n), line)]
    rows = [tokens_of(home.line(n)) for n in alike]
    own = range(min((*alike, new_lines.start)), max((*alike, new_lines.stop - 1)) + 1)
    for at, name in enumerate(tokens_of(line)):
        siblings = [*dict.fromkeys(row[at] for row in rows)]
        if name not in siblings and all(map(_is_telling, (name, *siblings))) and len(siblings) >= FEWEST_SIBLINGS:
            yield name, siblings, own


def _looks_like(one: str, other: str) -> bool:
    return indentation(one) == indentation(other) and shape_of(one.strip()) == shape_of(other.strip())


def _items_put_in(before: str, after: str, number: int) -> Iterator[tuple[str, list[str], range]]:
    for touch in token_changes(before, after):
        came = [token for token in tokens_of(after[touch.new_start : touch.new_end]) if token not in MARKS]
        names, rest = (
            [token for token in came if _is_telling(token)],
            {token for token in came if not _is_telling(token)},
        )
        if touch.start == touch.end and len(names) == 1 and rest and rest <= DELIMITERS:
            tokens = [token for token in tokens_of(after) if token not in MARKS]
            siblings = _items_beside(tokens, tokens.index(names[0]), rest.pop())
            if len(siblings) >= FEWEST_SIBLINGS:
                yield names[0], siblings, range(number, number + 1)


def _items_beside(tokens: Sequence[str], at: int, delimiter: str) -> list[str]:
    """The other items of the list, as far as each is one word."""
    items: list[str] = []
    for step in (-2, 2):
        item = at + step
        while 0 <= item < len(tokens) and tokens[item - step // 2] == delimiter and _is_telling(tokens[item]):
            items.append(tokens[item])
            item += step
    return items


def _is_telling(word: str) -> bool:
    return len(word) >= SHORTEST and word.isidentifier() and word not in KEYWORDS | CONSTANTS


def _lists_without(name: str, siblings: Iterable[str], wanted: float, file: Snapshot, own: range) -> Iterator[int]:
    """Where the last of the siblings comes in each run of lines that has enough of them, and not the name."""
    sites = sorted((at, sibling) for sibling in siblings for at in scopes.mentions(file, sibling))
    runs: list[list[tuple[int, str]]] = []
    for at, sibling in sites:
        line = file.line_of(at)
        if line in own:
            continue
        if not runs or line > file.line_of(runs[-1][-1][0]) + GAP:
            runs.append([])
        runs[-1].append((at, sibling))
    lines_of_name = {file.line_of(at) for at in scopes.mentions(file, name)}
    for run in runs:
        first, last = file.line_of(run[0][0]), file.line_of(run[-1][0])
        first_sites = {sibling: at for at, sibling in reversed(run)}
        if len(first_sites) >= wanted and lines_of_name.isdisjoint(range(first - GAP, last + GAP + 1)):
            yield max(first_sites.values())


def _documented(edit: Edit, home: Snapshot) -> Iterator[tuple[str, Places]]:
    """Where comments and documentation of the file name the value that a parameter or constant had."""
    for touch in token_changes(edit.before, edit.after):
        old = edit.before[touch.start : touch.end].strip("\"'`")
        quoted = (
            edit.before[touch.start - 1 : touch.start] in MARKS or edit.before[touch.start : touch.start + 1] in MARKS
        )
        named = re.search(r"([^\W\d]\w*)\s*(?::[^=\n]*)?:?=\s*[\"'`]?\Z", edit.before[: touch.start])
        at = home.line_start(edit.line) + touch.new_start
        if not VALUE.fullmatch(old) or not (quoted or NUMBER.fullmatch(old)) or syntax.inside(home, at) == "comment":
            continue
        pattern = rf"[\"'`]{re.escape(old)}[\"'`]" if quoted else rf"(?<![\w.]){re.escape(old)}(?![\w.]*\w)"
        places = [
            (home, match.start())
            for match in re.finditer(pattern, home.text)
            if is_prose(home, match.start()) and named and _speaks_of(named[1], home, match.start())
        ]
        if places:
            yield f"{in_label(old)} is still in prose", places


def _speaks_of(name: str, home: Snapshot, offset: int) -> bool:
    line = home.line(home.line_of(offset))
    return name in WORD.findall(line) or "default" in line.lower()


def _elsewhere(edit: Edit, home: Snapshot, project: Project) -> Iterator[tuple[str, Places]]:
    """Where else a constant of a module stands that was replaced at one use, if there are only a few places."""
    for touch in token_changes(edit.before, edit.after):
        old, new = texts_of(edit.before, edit.after, touch)
        if not CONSTANT.fullmatch(old) or not CONSTANT.fullmatch(new):
            continue
        node = scopes.node_at(home, home.line_start(edit.line) + touch.new_start)
        if node is None or scopes.declares(node) or not qualifier_of(node):
            continue
        paths = islice(project.mentioning(old, home.path), MOST_FILES)
        files = [home, *filter(None, map(project.file, paths))]
        places = [(file, at) for file in files for at in _alike(old, qualifier_of(node), file)]
        if 0 < len(places) <= FEW:
            yield f"{in_label(old)} stands elsewhere too", places


def _alike(name: str, qualifier: str, file: Snapshot) -> Iterator[int]:
    for at, node in scopes.nodes_of(file, name):
        is_code = node.type.endswith("identifier") and not in_import(node) and syntax.inside(file, at) is None
        if is_code and qualifier_of(node) == qualifier and not scopes.declares(node):
            yield at
