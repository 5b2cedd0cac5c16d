"""Which file an import statement refers to, and which names it binds: pure.

For Python, JavaScript and TypeScript, Go, Rust, Java and Kotlin. What cannot be determined with certainty is None.
"""

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from os.path import basename, dirname, join, normpath

from msgspec import Struct
from tree_sitter import Node, QueryCursor

from mercury_ls.code import languages, scopes, traits
from mercury_ls.code.answers import MOST_ANSWERS, Answers
from mercury_ls.code.documents import Document, Snapshot, TriedTexts, cached
from mercury_ls.code.importers import IMPORTING, SOURCE_FOLDERS, Importers, files_of_javascript
from mercury_ls.code.languages import family
from mercury_ls.code.parts import kind_of, part_of
from mercury_ls.code.symbols import text_of
from mercury_ls.code.syntax import outward

DEEPEST_IMPORT = 40
"""No list within lists of Rust has more levels."""
CRATE_ROOTS = ("lib.rs", "main.rs")
STATEMENTS = {
    "python": """
        (import_statement name: (dotted_name) @module)
        (import_statement name: (aliased_import name: (_) @module alias: (_) @alias))
        (import_from_statement module_name: (_) @module name: (dotted_name) @name)
        (import_from_statement module_name: (_) @module name: (aliased_import name: (_) @name alias: (_) @alias))
        (import_from_statement module_name: (_) @module (wildcard_import) @all)
        """,
    "javascript": """
        (import_statement (import_clause (identifier) @default) source: (_) @module)
        (import_statement
          (import_clause (named_imports (import_specifier name: (_) @name alias: (_)? @alias)))
          source: (_) @module)
        (import_statement (import_clause (namespace_import (_) @alias)) source: (_) @module)
        (export_statement
          (export_clause (export_specifier name: (_) @name alias: (_)? @alias))
          source: (_) @module) @passed_on
        (export_statement (namespace_export (_) @alias) source: (_) @module) @passed_on
        (export_statement "*" @all source: (_) @module) @passed_on
        (variable_declarator
          name: [
            (identifier) @alias
            (object_pattern [
              (shorthand_property_identifier_pattern) @name
              (pair_pattern key: (_) @name value: (_) @alias)])]
          value: (call_expression function: (identifier) @_called arguments: (arguments . (string) @module .))
          (#eq? @_called "require"))
        """,
    "go": """
        (import_spec !name path: (_) @module)
        (import_spec name: [(package_identifier) (blank_identifier)] @alias path: (_) @module)
        (import_spec name: (dot) @all path: (_) @module)
        """,
    "rust": "(use_declaration argument: (_) @used)",
    "java": """
        ((import_declaration (scoped_identifier name: (_) @name) @module . ";") @_import
          (#not-match? @_import "^import +static "))
        (import_declaration "static" . (scoped_identifier scope: (_) @module name: (_) @name) . ";")
        (import_declaration (_) @module (asterisk) @all)
        """,
    "kotlin": """
        ((import (qualified_identifier) @path . (identifier)? @alias) @_import (#not-match? @_import "[*]"))
        (import (qualified_identifier) @module "*" @all)
        """,
}
"""An `@alias`, or else its own name, is bound to a `@name` of a `@module`, `@all` of them, its `@default`, the module
itself, or the last name of a `@path`."""
PACKAGE = re.compile(r"^[ \t]*package[ \t]+([\w.]+)", re.MULTILINE)
GO_MODULE = re.compile(r"^module[ \t]+\"?([^\s\"]+)", re.MULTILINE)
EXPORTS = re.compile(r"\bmodule\.exports\b|\bexports\.\w")
DEFAULT = re.compile(
    r"^[ \t]*export[ \t]+(?:"
    r"default[ \t]+(?:(?:abstract[ \t]+)?class[ \t]+)?(\w+)[ \t]*(?:$|[;{<]|extends\b|implements\b)|"
    r"\{[^}]*?\b(\w+)[ \t]+as[ \t]+default\b)",
    re.MULTILINE,
)
CRATE = re.compile(r"\[package\][^\[]*?^name[ \t]*=[ \t]*\"([^\"]+)\"", re.MULTILINE | re.DOTALL)
PATH_BACKWARDS = re.compile(r"\s*+(?:\w++\s*+\.\s*+)*+(\w++)")
"""Of a text that is read from its end."""
LONGEST_PATH = 200


class Imported(Struct, frozen=True):
    """`name` of `module` is bound to `alias`: the module itself if `name` is empty, all of its names if it is "*". The
    name is at `start` in the file; a re-export (`is_passed_on`) is not visible in the file itself."""

    module: str
    name: str
    alias: str
    start: int
    is_passed_on: bool = False


class Project(Answers):
    """The files that an edit may concern, and where their imports lead. `read` returns the text of any other file,
    `exists` tells whether there is one, `mentioning` which of them contain a name (None while not all are indexed), and
    `importers` which of them import which, as they are by now; `tried` is as for a document, `budget` and `clock` as
    for `Answers`."""

    def __init__(
        self,
        snapshots: Iterable[Snapshot] = (),
        read: Callable[[str], str | None] = lambda path: None,
        exists: Callable[[str], bool] = lambda path: False,
        mentioning: Callable[[str, str], Iterable[str] | None] = lambda name, near: (),
        importers: Callable[[], Importers] = Importers,
        tried: TriedTexts | None = None,
        budget: int = MOST_ANSWERS,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        super().__init__(budget, clock)
        self._known: dict[str, Snapshot | None] = {snapshot.path: snapshot for snapshot in snapshots}
        self.near = tuple(self._known)
        self._read, self._exists, self._mentioning = read, exists, mentioning
        self._importers = importers
        self._tried = tried

    def with_files(self, snapshots: Iterable[Snapshot]) -> "Project":
        return Project(
            *(snapshots, self._read, self._exists, self._mentioning, self._importers, self._tried),
            *(self._budget, self._clock),
        )

    def exists(self, path: str) -> bool:
        return self._known.get(path) is not None or self.once(("exists", path), lambda: self._exists(path))

    def file(self, path: str) -> Snapshot | None:
        if path not in self._known:
            text = self._read(path)
            self._known[path] = None if text is None else Document("", path, "", 0, text, tried=self._tried).snapshot()
        return self._known[path]

    def imports(self, snapshot: Snapshot) -> tuple[Imported, ...]:
        return self.once(("imports", snapshot.path), lambda: tuple(imports_of(snapshot)))

    def mentioning(self, name: str, near: str) -> Iterable[str]:
        """The files of this language in which a name stands, as far as they are known, the nearest first."""
        return self._mentioning(name, near) or ()

    def sees(self, file: Snapshot, home: Snapshot) -> bool:
        """Whether objects of the home may get into a file: one that it imports imports the home, and so on."""
        if family(file.path) in traits.PACKAGED:
            return family(file.path) == family(home.path)
        return file.path in self._seeing(home, frozenset({self.root_of(home.path)}))

    def may_name(self, file: Snapshot, home: Snapshot, name: str = "") -> bool:
        """Whether an import of a file may lead to the home, or to a name that it declares at its top, roughly, without
        a parser."""
        language, roots = family(file.path), frozenset(self._roots)
        if language in traits.PACKAGED:
            return True
        if file.path not in self._seeing(home, roots):
            return False
        if not name or language != "python" or file.path in self._seeing(home, roots, name):
            return True
        for match in re.finditer(rf"\.\s*{re.escape(name)}\b", file.text):
            start = match.start()
            path = PATH_BACKWARDS.match(file.text[max(start - LONGEST_PATH, 0) : start][::-1])
            if path is not None and path[1][::-1] in _imported_words(file):
                return True
        return False

    def _seeing(self, home: Snapshot, roots: frozenset[str], name: str = "") -> frozenset[str]:
        key = "seeing", home.path, roots, name
        return self.once(key, lambda: self._importers_now(home).seeing(home.path, roots, name))

    def _importers_now(self, home: Snapshot) -> Importers:
        def with_near() -> Importers:
            importers = self._importers().copy()
            for file in filter(None, (home, *map(self.file, self.near))):
                if file.path not in importers:
                    importers.keep(file.path, file.text)
            return importers

        return self.once(("importers", home.path), with_near)

    def beside(self, home: str, name: str) -> list[Snapshot] | None:
        """The files of the home's folder that contain the name; None if there may be others."""
        return self.within(dirname(home), name, home)

    def within(self, folder: str, name: str, near: str) -> list[Snapshot] | None:
        """The files of a folder that contain a name, in the language of the file `near`."""

        def containing() -> list[Snapshot] | None:
            files = self._containing(name, near, lambda path: dirname(path) == folder)
            return None if files is None else [file for file in files if name in file.text]

        return self.once(("within", folder, name, near), containing)

    def in_package(self, package: str, name: str, near: str) -> list[Snapshot] | None:
        """The files that contain a name and say that they belong to a package, in the language of the file `near`."""
        key = "package", package, name, family(near)
        files = self.once(("containing", name, family(near)), lambda: self._containing(name, near))
        return self.once(key, lambda: files and [file for file in files if package_of(file) == package])

    def _containing(
        self, name: str, near: str, fits: Callable[[str], bool] = lambda path: True
    ) -> list[Snapshot] | None:
        mentioning = self._mentioning(name, near)
        if mentioning is None:
            return None
        files: list[Snapshot] = []
        for path in sorted({*mentioning, *self._known, near}):
            if family(path) == family(near) and fits(path):
                if (file := self.file(path)) is None:
                    return None
                files.append(file)
        return files

    def module(self, snapshot: Snapshot, named: str) -> str | None:
        """The file to which a module name in a file refers: in Go the folder, in Java the class or folder. Modules of
        Python are also looked for in the roots of the known files."""
        match family(snapshot.path):
            case "python":
                key = "module of Python", dirname(snapshot.path), named
                return self.once(key, lambda: self._module_of_python(snapshot.path, named))
            case "javascript":
                key = "module of JavaScript", dirname(snapshot.path), named
                return self.once(key, lambda: self._module_of_javascript(snapshot.path, named))
            case "go":
                return self._package_of_go(snapshot.path, named)
            case "rust":
                return self._module_of_rust(snapshot.path, named)
            case "java":
                return self._class_of_java(snapshot, named)
            case _:
                return None

    def inside(self, module: str, name: str) -> str | None:
        """The submodule of a Python package."""
        is_package = basename(module) == "__init__.py"
        return self._python_file(dirname(module), [name]) if is_package else None

    def is_package(self, folder: str) -> bool:
        return self.exists(join(folder, "__init__.py"))

    def share_a_package(self, first: Snapshot, second: Snapshot) -> bool:
        """True if two files see each other's names without an import: one, or several of Go, Java or Kotlin."""
        if first.path == second.path:
            return True
        language, package = family(first.path), package_of(first)
        if language in traits.SCATTERED_PACKAGES:
            return package == package_of(second)
        is_alike = bool(package) and package == package_of(second)
        return is_alike and (language == "java" or (language == "go" and dirname(first.path) == dirname(second.path)))

    def _first(self, *paths: str) -> str | None:
        return next((path for path in paths if self.exists(path)), None)

    def _module_of_python(self, path: str, named: str) -> str | None:
        parts = [part for part in named.lstrip(".").split(".") if part]
        if named.startswith("."):
            folder = path
            for _ in range(len(named) - len(named.lstrip("."))):
                folder = dirname(folder)
            return self._python_file(folder, parts)
        if len(parts) == 1 and parts[0] in sys.stdlib_module_names:
            return None
        roots = [folder for folder in _folders(path) if not self.is_package(folder)]
        roots += [join(folder, source) for folder in roots for source in SOURCE_FOLDERS]
        paths = (self._python_file(root, parts) for root in dict.fromkeys((*roots, *self._roots)))
        return next(filter(None, paths), None)

    @cached_property
    def _roots(self) -> tuple[str, ...]:
        """The folders from which modules of Python beside the known files may be imported."""
        return tuple(dict.fromkeys(filter(None, map(self.root_of, self.near))))

    def root_of(self, path: str) -> str:
        """The folder from which other files import the modules of Python beside this one; empty if there is none."""
        return next((folder for folder in _folders(path) if not self.is_package(folder)), "")

    def _python_file(self, folder: str, parts: Sequence[str]) -> str | None:
        whole = join(folder, *parts)
        return self._first(join(whole, "__init__.py"), *([f"{whole}.py"] if parts else []))

    def _module_of_javascript(self, path: str, named: str) -> str | None:
        if not named.startswith("."):
            return None
        return self._first(*files_of_javascript(path, named))

    def _package_of_go(self, path: str, named: str) -> str | None:
        for folder in _folders(path):
            if module_line := GO_MODULE.search(self._text_of(join(folder, "go.mod"))):
                below = named.removeprefix(module_line[1])
                return normpath(join(folder, below.lstrip("/"))) if below != named and below[:1] in ("", "/") else None
        return None

    def _module_of_rust(self, path: str, named: str) -> str | None:
        parts = named.split("::")
        root = next((f for f in _folders(path) if any(self.exists(join(f, top)) for top in CRATE_ROOTS)), None)
        if parts[0] == "crate":
            is_program = basename(path) == "main.rs"
            top = path if is_program else root and self._first(*(join(root, name) for name in CRATE_ROOTS))
            return self._below(top, parts[1:])
        if parts[0] in ("self", "super"):
            folder = path
            while parts and parts[0] in ("self", "super"):
                folder = folder if parts[0] == "self" else self._above(folder)
                parts = parts[1:]
            return self._below(folder, parts)
        return self._below(path, parts) or self._in_crate(path, parts)

    def _in_crate(self, path: str, parts: Sequence[str]) -> str | None:
        """Tests, examples and binaries refer to their own crate by its name."""
        for folder in _folders(path):
            if crate_line := CRATE.search(self._text_of(join(folder, "Cargo.toml"))):
                library = join(folder, "src", "lib.rs")
                is_own = crate_line[1].replace("-", "_") == parts[0] and self.exists(library)
                return self._below(library, parts[1:]) if is_own else None
        return None

    def _above(self, path: str) -> str:
        """The file of the parent module."""
        folder = dirname(dirname(path)) if basename(path) == "mod.rs" else dirname(path)
        return self._first(f"{folder}.rs", *(join(folder, name) for name in ("mod.rs", *CRATE_ROOTS))) or ""

    def _below(self, path: str | None, parts: Sequence[str]) -> str | None:
        for part in parts:
            if not path:
                return None
            is_top = basename(path) in ("mod.rs", *CRATE_ROOTS)
            inside = dirname(path) if is_top else path.removesuffix(".rs")
            path = self._first(join(inside, f"{part}.rs"), join(inside, part, "mod.rs"))
        return path or None

    def _class_of_java(self, snapshot: Snapshot, named: str) -> str | None:
        """The file of the class, or the folder of a package that is imported as a whole."""
        below = join(*named.split("."))
        near = (snapshot.path, *self.near)
        for folder in dict.fromkeys(folder for path in near for folder in _folders(path)):
            if self.exists(join(folder, below) + ".java"):
                return join(folder, below) + ".java"
        return next((dirname(path) for path in near if _is_below(dirname(path), below)), None)

    def _text_of(self, path: str) -> str:
        snapshot = self.file(path) if self.exists(path) else None
        return snapshot.text if snapshot is not None else ""


def package_of(snapshot: Snapshot) -> str:
    package = PACKAGE.search(snapshot.text)
    return package[1] if package is not None else ""


@cached
def _imported_words(snapshot: Snapshot) -> frozenset[str]:
    """The words of the import statements of a file of Python."""
    return frozenset(re.findall(r"\w+", " ".join(match[0] for match in IMPORTING["python"].finditer(snapshot.text))))


@cached
def hands_out(snapshot: Snapshot, name: str) -> bool:
    """True if the file exports the name unchanged: in CommonJS only by `exports = { name }`, since `exports.name =
    name` keeps the exported name when the local one changes."""
    if family(snapshot.path) != "javascript" or not EXPORTS.search(snapshot.text):
        return True
    return any(is_exported(node) for _, node in scopes.nodes_of(snapshot, name))


def default_exports(snapshot: Snapshot) -> list[str]:
    """The classes that a module of JavaScript exports as its default."""
    return [*dict.fromkeys(name or alias for name, alias in DEFAULT.findall(snapshot.text))]


def is_exported(node: Node) -> bool:
    """True if the node is the `a` of `module.exports = { a }`."""
    listed = node.parent if node.type == "shorthand_property_identifier" else None
    around = listed.parent if listed is not None else None
    is_assigned = kind_of(around) == "assignment_expression"
    return is_assigned and text_of(part_of(around, "left")) in ("module.exports", "exports")


def in_import(node: Node) -> bool:
    inside = islice(outward(node), DEEPEST_IMPORT)
    return any(ancestor.type.startswith(("import", "use_declaration", "using_directive")) for ancestor in inside)


def _is_below(path: str, end: str) -> bool:
    return join("", path).split(os.sep)[-len(end.split(os.sep)) :] == end.split(os.sep)


def _folders(path: str) -> Iterator[str]:
    """The folders around a file, nearest first."""
    while (above := dirname(path)) != path:
        yield above
        path = above


def imports_of(snapshot: Snapshot) -> Iterator[Imported]:
    """All imports of a file, wherever they stand."""
    statements = STATEMENTS.get(snapshot.written_in.family)
    if statements is None or snapshot.tree is None:
        return
    query = languages.query(snapshot.written_in, statements)
    captured = [match for _, match in QueryCursor(query).matches(snapshot.tree.root_node)]
    bound = [(match, *names) for match in captured for names in _bound_by(match)]
    for match, module, name, alias, at in sorted(bound, key=lambda names: names[-1].start_byte):
        yield Imported(module, name, alias, snapshot.offset_of_byte(at.start_byte), "passed_on" in match)


def _bound_by(match: Mapping[str, list[Node]]) -> Iterator[tuple[str, str, str, Node]]:
    """The module, the name in it, the alias, and where the name stands, of each name that an import binds."""
    nodes = {capture: captured[0] for capture, captured in match.items()}
    texts = {capture: text_of(node).strip("\"'`") for capture, node in nodes.items()}
    module, name, alias = (texts.get(capture, "") for capture in ("module", "name", "alias"))
    if "used" in nodes:
        yield from _used_by(nodes["used"], ())
    elif "path" in nodes:
        module, _, name = texts["path"].rpartition(".")
        yield module, name, alias or name, nodes["path"].named_children[-1]
    elif "all" in nodes:
        yield module, "*", "*", nodes["all"]
    elif "default" in nodes:
        yield module, "default", texts["default"], nodes["default"]
    elif "name" in nodes:
        yield module, name, alias or name, nodes["name"]
        if alias == name:  # by `a as a` Python marks a re-export
            yield module, name, alias, nodes["alias"]
    else:
        yield module, "", alias or module.rpartition("/")[2], nodes.get("alias", nodes["module"])


def _used_by(node: Node, around: tuple[str, ...]) -> Iterator[tuple[str, str, str, Node]]:
    """The names of `use a::{b, c::d as e, f::*}`, within the path `around`."""
    match node.type:
        case "use_list":
            for child in node.named_children:
                yield from _used_by(child, around)
        case "scoped_use_list":
            path, listed = node.child_by_field_name("path"), node.child_by_field_name("list")
            if listed is not None:
                yield from _used_by(listed, (*around, *_parts_of(path)))
        case "use_as_clause":
            path, alias = node.child_by_field_name("path"), text_of(node.child_by_field_name("alias"))
            for module, name, _, at in _used_by(path, around) if path is not None else ():
                yield module, name, alias, at
        case "use_wildcard":
            path = node.named_children[0] if node.named_children else None
            yield "::".join((*around, *_parts_of(path))), "*", "*", node
        case "self":
            yield "::".join(around[:-1]), around[-1] if around else "", around[-1] if around else "", node
        case _:
            parts = (*around, *_parts_of(node))
            last = node.child_by_field_name("name") or node
            yield "::".join(parts[:-1]), parts[-1], parts[-1], last


def _parts_of(node: Node | None) -> list[str]:
    return re.findall(r"\w+", text_of(node))
