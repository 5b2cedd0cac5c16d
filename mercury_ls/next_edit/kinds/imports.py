"""Import: a name that came, and that its file does not know, is imported as other files of the project do it.

    import os                          import os
                                 →     «import textwrap»
    print(textwrap.dedent(text))       print(textwrap.dedent(text))

In Python, JavaScript, TypeScript and Go. Until it is imported, no rule writes the name at other places.
"""

import builtins
import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from os.path import basename, dirname, relpath, splitext

from msgspec import Struct
from tree_sitter import Node

from mercury_ls.code import scopes, syntax
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.importers import FOLDER_MODULES
from mercury_ls.code.index.definitions import declared, declares_at_top
from mercury_ls.code.lexemes import KEYWORDS, indentation
from mercury_ls.code.modules import Imported, Project, family, in_import
from mercury_ls.code.parts import kind_of
from mercury_ls.code.symbols import called_with_keyword, category, text_of
from mercury_ls.code.syntax import outward
from mercury_ls.next_edit.examples import Example
from mercury_ls.next_edit.places import Place
from mercury_ls.next_edit.rule import Rule
from mercury_ls.next_edit.suppress import never

suppress = never

NAME = re.compile(r"(?<![\w.$])[^\W\d]\w*+(?!\s*=[^=])")
MOST_NAMES = 8
MOST_FILES = 8
"""In which the import is looked for, the nearest first."""
STATEMENTS = {
    "go": frozenset({"import_spec"}),
    "javascript": frozenset({"import_statement"}),
    "python": frozenset({"import_statement", "import_from_statement"}),
}
LISTED = frozenset({"aliased_import", "dotted_name", "import_specifier"})
PATHS_OF_GO = frozenset({"qualified_type", "selector_expression"})
WRITTEN_EXTENSIONS = frozenset({".js", ".mjs", ".ts"})
OF_OBJECTS = ("field", "property", "shorthand_property_identifier_")
SORTED = frozenset({"go", "python"})
"""Families whose formatters put imports in order."""
BUILTINS = frozenset(dir(builtins))


class Import(Rule, frozen=True, kw_only=True):
    """`after` are the names that came."""

    kind = "import"
    is_rare = True


class NeededImport(Struct, frozen=True):
    """Where a name is taken from: a module as it is written in the file that lacks it, `path` where that is a file of
    the project; `name` is as in `Imported`."""

    module: str
    name: str
    alias: str
    path: str | None = None


def learn(example: Example) -> Iterator[Import]:
    went, came = ({match[0] for match in NAME.finditer(text)} for text in (example.before, example.after))
    if names := sorted(came - went - KEYWORDS):
        yield Import(after=" ".join(names[:MOST_NAMES]), lines_before=example.before, lines_after=example.after)


def find(rule: Import, snapshot: Snapshot, home: Snapshot | None, project: Project) -> Iterator[Place]:
    if home is None or snapshot is not home:
        return
    for name in unknown_names(rule, home, project):
        source = next(iter(_sources(name, home, project)), None)
        place = source and _place(source, home, project)
        if place:
            yield place


def label(rule: Import) -> str:
    return "import what is missing"


def unknown_names(rule: Rule, home: Snapshot, project: Project) -> Sequence[str]:
    """The names of the rule's new text that its file uses there, and neither declares nor imports, where another file
    of the project does."""
    if family(home.path) not in STATEMENTS:
        return ()
    names = [name for name in dict.fromkeys(NAME.findall(rule.after)) if name not in KEYWORDS]
    return project.once(
        ("unknown names", rule.after, rule.line, rule.lines, home.path),  # each file that is searched asks
        lambda: [name for name in names if _is_unknown(name, rule, home, project)],
    )


def _is_unknown(name: str, rule: Rule, home: Snapshot, project: Project) -> bool:
    """A name that was used before is the language's own."""
    lines = {*range(rule.line, rule.line + max(rule.lines, 1))}
    lines_of_uses = {home.line_of(at) for at, node in scopes.nodes_of(home, name) if _is_use(node, home, at)}
    is_builtin = family(home.path) == "python" and name in BUILTINS
    if is_builtin or not lines_of_uses or not lines_of_uses <= lines:
        return False
    return project.once(("unknown", name, home.path), lambda: _is_known_elsewhere(name, home, project))


def _is_known_elsewhere(name: str, home: Snapshot, project: Project) -> bool:
    imported_names = {imported.alias.partition(".")[0] for imported in project.imports(home)}
    is_known_here = "*" in imported_names or name in imported_names or bool(declared(home, name))
    return not is_known_here and any(_sources(name, home, project))


def _is_use(node: Node, home: Snapshot, offset: int) -> bool:
    may_be_imported = family(home.path) != "go" or kind_of(node.parent) in PATHS_OF_GO
    return may_be_imported and is_bare_use(node, home, offset)


def is_bare_use(node: Node, file: Snapshot, offset: int) -> bool:
    """Whether a name stands for itself there, as that of no member, declaration or import."""
    if not node.type.endswith("identifier") or node.type.startswith(OF_OBJECTS):
        return False
    if any(is_other(node) for is_other in (scopes.is_member, scopes.declares, in_import, called_with_keyword)):
        return False
    return not category(node, file) and syntax.inside(file, offset) is None


def _sources(name: str, home: Snapshot, project: Project) -> Iterator[NeededImport]:
    """The same name may be known from several files; the nearest that says so counts."""
    for path in islice(project.mentioning(name, home.path), MOST_FILES):
        file = project.file(path)
        if file is None:
            continue
        for imported in project.imports(file):
            if (
                imported.alias == name
                and not imported.is_passed_on
                and (source := _seen_from(imported, file, home, project))
            ):
                yield source
        if family(path) != "go" and declares_at_top(project, file, name) and _is_handed_out(file, name):
            yield NeededImport(_module_named(path, "", home, project), name, name, path)


def _is_handed_out(file: Snapshot, name: str) -> bool:
    if family(file.path) == "python":
        return not name.startswith("_")
    return re.search(rf"^export\b[^\n]*\b{re.escape(name)}\b", file.text, re.MULTILINE) is not None


def _seen_from(imported: Imported, file: Snapshot, home: Snapshot, project: Project) -> NeededImport | None:
    """The same import, as the other file writes it; None where that is no statement that can be written again."""
    statement = next(
        (node for node in outward(scopes.node_at(file, imported.start)) if _is_statement(node, file)), None
    )
    if statement is None or text_of(statement).startswith("import type"):
        return None
    is_relative = family(home.path) != "go" and imported.module.startswith(".")
    path = project.module(file, imported.module) if is_relative else None
    if is_relative and (path is None or path == home.path):
        return None
    module = imported.module if path is None else _module_named(path, splitext(imported.module)[1], home, project)
    return NeededImport(module, imported.name, imported.alias, path)


def _module_named(path: str, extension: str, home: Snapshot, project: Project) -> str:
    """How the home names the file at a path in an import."""
    if family(home.path) == "python":
        return _as_before(path, home, project) or _dotted(path, home, project)
    folder, stem = relpath(dirname(path), dirname(home.path)), basename(path).partition(".")[0]
    whole = _joined("/", [folder, "" if stem in FOLDER_MODULES else stem])
    ending = extension if extension in WRITTEN_EXTENSIONS else ""
    return (whole if whole.startswith(".") else f"./{whole}") + ending


def _as_before(path: str, home: Snapshot, project: Project) -> str:
    """By which name the home imports from the file already."""
    own = (imported.module for imported in project.imports(home))
    return next((module for module in own if project.module(home, module) == path), "")


def _dotted(path: str, home: Snapshot, project: Project) -> str:
    stem = "" if basename(path) == "__init__.py" else splitext(basename(path))[0]
    is_beside = dirname(path) == dirname(home.path)
    is_usual = any(imported.module.startswith(".") for imported in project.imports(home))
    if is_beside and is_usual:
        return f".{stem}"
    below = relpath(dirname(path), project.root_of(path) or dirname(path))
    return _joined(".", [*below.split("/"), stem])


def _joined(mark: str, parts: Sequence[str]) -> str:
    return mark.join(part for part in parts if part not in ("", "."))


def _is_statement(node: Node, file: Snapshot) -> bool:
    return node.type in STATEMENTS[family(file.path)]


def _place(source: NeededImport, home: Snapshot, project: Project) -> Place | None:
    """In the list of names that come from the same module, or else on a line of its own beside statements alike."""
    statements = [*_statements(home)]
    is_listed = source.name not in ("", "default")
    of_module = [node for node in statements if is_listed and _imports_from(node, source, home, project)]
    in_list = next(filter(None, (_in_list(source, statement, home) for statement in of_module)), None)
    if in_list is not None or not statements:
        return in_list
    return _on_a_line(source, statements, home)


def _statements(home: Snapshot) -> Iterator[Node]:
    """The import statements at the top of a file, without those behind other code."""
    if home.tree is None:
        return
    for node in home.tree.root_node.named_children:
        if _is_statement(node, home):
            yield node
        elif node.type == "import_declaration":  # of Go: a list of them, or one
            is_list = any(child.type == "import_spec_list" for child in node.named_children)
            yield from [spec for spec in _descendants(node) if _is_statement(spec, home)] if is_list else [node]


def _imports_from(statement: Node, source: NeededImport, home: Snapshot, project: Project) -> bool:
    named = statement.child_by_field_name("module_name") or statement.child_by_field_name("source")
    module = text_of(named).strip("\"'`")
    if not module or text_of(statement).startswith("import type"):
        return False
    return module == source.module or (source.path is not None and project.module(home, module) == source.path)


def _in_list(source: NeededImport, statement: Node, home: Snapshot) -> Place | None:
    module = statement.child_by_field_name("module_name")
    nodes = [node for node in _descendants(statement) if node.type in LISTED and node != module]
    names = [node for node in nodes if node.parent is None or node.parent.type not in LISTED]
    if not names:
        return None
    new_text = source.name if source.name == source.alias else f"{source.name} as {source.alias}"
    texts = [text_of(node) for node in names]
    offsets = [home.offset_of_byte(node.start_byte) for node in names]
    is_sorted, after = texts == sorted(texts), [at for at, text in enumerate(texts) if text > new_text]
    first, last = home.line_of(offsets[0]), home.line_of(offsets[-1])
    between = f"\n{indentation(home.line(last))}" if first < last else " "
    if is_sorted and after:
        return Place(offsets[after[0]], offsets[after[0]], f"{new_text},{between}")
    end = home.offset_of_byte(names[-1].end_byte)
    return Place(end, end, f",{between}{new_text}")


def _descendants(node: Node) -> Iterator[Node]:
    for child in node.named_children:
        yield child
        yield from _descendants(child)


def _on_a_line(source: NeededImport, statements: Sequence[Node], home: Snapshot) -> Place:
    """In order if the statements around are, or else behind the last of them."""
    group = _group_like(_statement(source, statements[-1], home), statements)
    new_text = _statement(source, group[-1], home)
    texts = [text_of(node) for node in group]
    for key in (_as_written, _plain_first) if family(home.path) in SORTED else ():
        behind = next((node for node in group if key(text_of(node)) > key(new_text)), None)
        if texts == sorted(texts, key=key) and behind is not None:
            start = home.offset_of_byte(behind.start_byte)
            return Place(start, start, f"{new_text}\n{indentation(home.line(home.line_of(start)))}")
    end = home.line_end(home.line_of(home.offset_of_byte(group[-1].end_byte)))
    return Place(end, end, f"\n{indentation(home.line(group[-1].start_point.row))}{new_text}")


def _as_written(statement: str) -> tuple[bool, str]:
    return False, statement


def _plain_first(statement: str) -> tuple[bool, str]:
    return statement.startswith("from"), statement


def _group_like(new_text: str, statements: Sequence[Node]) -> Sequence[Node]:
    """The statements without an empty line between them that begin likewise, or the last such group."""
    groups: list[list[Node]] = [[statements[0]]]
    for above, statement in pairwise(statements):
        if statement.start_point.row > above.end_point.row + 1:
            groups.append([])
        groups[-1].append(statement)
    alike = [group for group in groups if any(_sort_of(text_of(node)) == _sort_of(new_text) for node in group)]
    return (alike or groups)[-1 if not alike else 0]


def _sort_of(statement: str) -> tuple[bool, bool]:
    """Whether it names a file beside, and something that is not the language's own: `"github.com/…"`, `./other`."""
    module = re.search(r"[\"'](?P<path>[^\"']+)[\"']|^(?:from|import)\s+(?P<name>[\w.]+)", statement)
    path = (module["path"] or module["name"]) if module else ""
    return path.startswith("."), "." in path.split("/")[0]


def _statement(source: NeededImport, like: Node, home: Snapshot) -> str:
    module, name, alias = source.module, source.name, source.alias
    match family(home.path):
        case "go":
            spec = f'"{module}"' if module.rpartition("/")[2] == alias else f'{alias} "{module}"'
            return f"import {spec}" if like.type == "import_declaration" else spec
        case "python":
            renamed = "" if alias in (name, module) else f" as {alias}"
            return f"from {module} import {name}{renamed}" if name else f"import {module}{renamed}"
        case _:
            quote = "'" if "'" in text_of(like) else '"'
            named = f"{name} as {alias}" if name != alias else name
            bound = alias if name == "default" else f"{{ {named} }}" if name else f"* as {alias}"
            return f"import {bound} from {quote}{module}{quote}" + (";" if text_of(like).endswith(";") else "")
