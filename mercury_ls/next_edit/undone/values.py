"""Values that changed in one place, and are told in prose or expected elsewhere: defaults, constants of tests."""

import re
from collections.abc import Iterator
from itertools import chain, islice

from mercury_engine.api import Edit
from mercury_ls.code import scopes, syntax
from mercury_ls.code.differences import WORD, texts_of, token_changes
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import CONSTANTS
from mercury_ls.code.modules import Project, in_import
from mercury_ls.code.symbols import qualifier_of
from mercury_ls.next_edit.once import is_prose
from mercury_ls.next_edit.rule import in_label
from mercury_ls.next_edit.undone.gone import MOST_FILES, Place

MOST_USES = 8
CONSTANT = re.compile(r"[A-Z][A-Z0-9_]{4,}|(?=\w{6})[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+")
WORDS = re.compile(r"[^\W\d][\w-]*+")
NUMBER = re.compile(r"\d[\w.]*+")
MARKS = "\"'`"


def told(edit: Edit, home: Snapshot, project: Project) -> Iterator[tuple[str, list[Place]]]:
    start = home.line_start(edit.line)
    for touch in token_changes(edit.before, edit.after):
        old, new = texts_of(edit.before, edit.after, touch)
        node = scopes.node_at(home, start + touch.new_start)
        if in_prose := [*_told_in_prose(old, edit.before[: touch.start], home, start + touch.new_start)]:
            yield f"{in_label(old.strip(MARKS))} is still in prose", [(home, at) for at in in_prose]
        if node is None or not CONSTANT.fullmatch(old) or not CONSTANT.fullmatch(new) or not qualifier_of(node):
            continue
        files = chain([home], map(project.file, islice(project.mentioning(old, home.path), MOST_FILES)))
        uses = [(file, at) for file in filter(None, files) for at in _uses(old, qualifier_of(node), file)]
        if 0 < len(uses) <= MOST_USES:
            yield f"{in_label(old)} stands elsewhere too", uses


def _told_in_prose(value: str, before: str, home: Snapshot, offset: int) -> Iterator[int]:
    """Where comments and documentation name the value of a parameter or constant whose name stands before it."""
    named, plain = before.rstrip(" \t" + MARKS), value.strip(MARKS)
    is_quoted = value[:1] in MARKS or before.endswith(tuple(MARKS))
    if not named.endswith("=") or not (plain in CONSTANTS or (WORDS if is_quoted else NUMBER).fullmatch(plain)):
        return
    if syntax.inside(home, offset) == "comment":
        return
    name = WORD.search(re.split(r"[,(]", named)[-1])
    pattern = rf"[\"'`]{re.escape(plain)}[\"'`]" if is_quoted else rf"(?<![\w.]){re.escape(plain)}(?![\w.]*\w)"
    for match in re.finditer(pattern, home.text):
        number = home.line_of(match.start())
        around = [home.line(number), home.line(max(number - 1, 0)) if plain in CONSTANTS else ""]
        is_named = any(name is not None and name[0] in WORD.findall(line) for line in around)
        is_default = "default" in around[0].lower() and plain not in CONSTANTS
        if (is_named or is_default) and is_prose(home, match.start()):
            yield match.start()


def _uses(name: str, qualifier: str, file: Snapshot) -> Iterator[int]:
    """Where else the constant of this module stands."""
    for at, node in scopes.nodes_of(file, name):
        is_code = node.type.endswith("identifier") and not in_import(node) and syntax.inside(file, at) is None
        if is_code and qualifier_of(node) == qualifier and not scopes.declares(node):
            yield at
