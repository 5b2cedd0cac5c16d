"""Names in the text and in the project's other files, read from syntax trees; nothing is run.

Names that are found exist; names that are not found may exist all the same, except in the scopes of Python.
"""

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import starmap
from typing import Any, TypeVar

from msgspec import Struct

from mercury_ls.code import scopes, symbols, syntax, traits
from mercury_ls.code.brackets import closing, split
from mercury_ls.code.declared import Declared, Used, declared_in_file, locals_at
from mercury_ls.code.documents import Snapshot, cached
from mercury_ls.code.edits import TextEdit
from mercury_ls.code.modules import Project, family
from mercury_ls.code.parameters import parameter_names
from mercury_ls.names.builtin import builtin_names
from mercury_ls.names.known import Name, NameList
from mercury_ls.names.places import NamePlace, may_bind_behind
from mercury_ls.project.workspace import Workspace

T = TypeVar("T")

MOST_FILES = 32
MOST_BASES = 64
MOST_STEPS = 4
MOST_HOMES = 4
STARRED = re.compile(r"^[ \t]*from[ \t]+\S+[ \t]+import[ \t]*+(?:\([ \t]*+)?+\*", re.MULTILINE)
WORD = re.compile(r"\.?[^\W\d]\w*")
JOINTS = re.compile(r"\?\.|\.|::|->")
WRAPPERS = re.compile(r"(?:Arc|Box|Mutex|Option|Optional|Partial|Promise|Rc|Readonly|RefCell|RwLock|Awaited)[<\[]")
TYPE = re.compile(
    r"[&*\s?!(\[\]]*(?:(?:const|dyn|final|impl|mut|new|ref|readonly|struct|static)\s+)*(?:\w+(?:\.|::))*(\w+)"
)
HEADINGS = (
    re.compile(
        r".*?\b(?:class|impl(?:<[^>]*>)?(?:\s+[\w:]+(?:<[^>]*>)?\s+for)?|struct|interface|trait|enum|record)\s+(\w+)"
    ),
    re.compile(r"func\s*\(\s*\w+\s+\*?(\w+)"),
)
LIFETIME = re.compile(r"'\w+\s")
NOTHING = frozenset({"None", "nil", "null", "undefined", "void", "error", "false", "unknown"})
CONSTRUCTORS = ("__init__", "constructor", "new", "__construct", "initialize")


class _FileNames(Struct, frozen=True):
    """What one version of a text declares, by owner: "" is the top of the file."""

    text: str
    owned: dict[str, dict[str, Declared]]
    elsewhere: dict[str, Declared]
    """The names in other files of the same package, which need no import."""
    counted: Counter[str]
    """How often each name occurs in the text; members keep their dot."""

    @property
    def top(self) -> dict[str, Declared]:
        return self.owned.get("", {})


UNREAD = _FileNames("", {}, {}, Counter())


class WrittenNames:
    """Answers at once. Declarations of the whole file are from when it was last read; its locals are current."""

    def __init__(self, index: Workspace) -> None:
        self._index = index
        self._files: OrderedDict[str, _FileNames] = OrderedDict()
        self._others: dict[Hashable, Any] = {}
        """What is known of other files, as of the last reading."""

    def reading(self, snapshot: Snapshot, offset: int) -> Iterator[None]:
        """Read the whole file in steps of milliseconds, if it has changed. The cursor is at the offset."""
        cached = self._files.get(snapshot.uri)
        if cached is not None and cached.text == snapshot.text:
            return
        declared = yield from declared_in_file(_as_if_finished(snapshot, offset))
        if declared or cached is None:  # else it is too broken to parse for the moment
            self._keep(snapshot, _by_owner(declared))

    def _keep(self, snapshot: Snapshot, owned: dict[str, dict[str, Declared]]) -> None:
        self._others.clear()
        elsewhere = {
            declaration.name: declaration
            for path in (self._index.beside(snapshot.path) if family(snapshot.path) in ("go", "java") else ())
            for declaration in self._declared_in(path)
            if not declaration.owner and not declaration.module
        }
        self._files[snapshot.uri] = _FileNames(snapshot.text, owned, elsewhere, Counter(WORD.findall(snapshot.text)))
        self._files.move_to_end(snapshot.uri)
        if len(self._files) > MOST_FILES:
            self._files.popitem(last=False)

    def forget(self, uri: str = "") -> None:
        for key in [key for key in self._files if uri in ("", key)]:
            del self._files[key]
        self._others.clear()

    def counted(self, snapshot: Snapshot) -> Counter[str]:
        """How often each name occurred in the text when it was last read."""
        return self._file(snapshot).counted

    def in_scope(self, snapshot: Snapshot, offset: int) -> NameList:
        """The names that may begin an expression: locals, nearest first, the file's names, those of its type where they
        need no qualifier, then the language's."""
        language, file = snapshot.written_in, self._file(snapshot)
        if file is UNREAD:
            return NameList((), complete=False)
        own = file.owned.get(_enclosing_type(snapshot, offset), {}) if language.id in traits.BARE_MEMBERS else {}
        declarations_in_reach = (
            *_in_reach(snapshot, offset),
            *own.values(),
            *file.top.values(),
            *file.elsewhere.values(),
        )
        modules = self._modules_used(snapshot.path) if language.id == "rust" else ()
        names = [
            *map(_named, declarations_in_reach),
            *starmap(Name, builtin_names(language.id).items()),
            *map(_module_named, modules),
        ]
        is_open = language.id != "python" or STARRED.search(snapshot.text) is not None
        return NameList.of(names, complete=not is_open and not may_bind_behind(snapshot.text, offset))

    def at(self, snapshot: Snapshot, place: NamePlace, offset: int) -> NameList:
        """What is known about a place at or near the cursor, which is at the offset."""
        match place.role:
            case "member":
                return self.members(snapshot, place, offset)
            case "keyword":
                return self.parameters(snapshot, place, offset)
            case _:
                return self.importable(snapshot, place)

    def members(self, snapshot: Snapshot, place: NamePlace, offset: int) -> NameList:
        """The members of an object of the surrounding type, of one with an explicit type, or of a type, an enumeration
        or a module."""
        if not place.simple:
            return NameList((), complete=False)
        parts = JOINTS.split(place.receiver.lstrip("$"))
        names = map(_named, (*self._members(snapshot, offset, parts), *self._used(snapshot, parts)))
        return NameList.of(names, complete=False)

    def parameters(self, snapshot: Snapshot, place: NamePlace, offset: int) -> NameList:
        """The parameters of the called function, without those already passed."""
        if not place.simple:
            return NameList((), complete=False)
        language = snapshot.written_in.id
        function = self._called(snapshot, place, offset)
        is_named = language in traits.KEYWORD_ARGUMENTS or snapshot.text[place.at - 1] == "{"
        kind = "keyword" if is_named else "parameter"
        listed = parameter_names(function.parameters, language) if function is not None else ()
        used = self._used_of("", f"{JOINTS.split(place.receiver)[-1]}()", snapshot.path)
        return NameList.of([*(Name(name, kind) for name in listed), *map(_named, used)], complete=False)

    def importable(self, snapshot: Snapshot, place: NamePlace) -> NameList:
        """The names that the module of an import statement declares at its top."""
        path = self._module(snapshot, place.receiver)
        if not place.receiver and family(snapshot.path) != "javascript":
            return NameList.of(map(_module_named, self._modules_used(snapshot.path)), complete=False)
        declared = [declaration for declaration in self._declared_in(path) if not declaration.owner] if path else []
        names = map(_named, (*declared, *self._used_of(place.receiver, "", snapshot.path)))
        return NameList.of(names, complete=False)

    def _once(self, key: Hashable, read: Callable[[], T]) -> T:
        if key not in self._others:
            self._others[key] = read()
        return self._others[key]

    def _file(self, snapshot: Snapshot) -> _FileNames:
        return self._files.get(snapshot.uri, UNREAD)

    def _members(self, snapshot: Snapshot, at: int, parts: list[str]) -> Iterator[Declared]:
        file, first = self._file(snapshot), parts[0]
        if first in symbols.SELVES:
            kind = _enclosing_type(snapshot, at)
        else:
            owners = self._in_sight(snapshot, at, first)
            if owners is not None and owners.kind == "module" and len(parts) == 1:
                yield from self._of_module(snapshot, owners.module)
                return
            kind = first if owners is None or owners.kind == "class" else self._type(snapshot, file, owners)
        for part in parts[1:]:
            member = next(
                (candidate for candidate in self._of_type(snapshot, file, kind) if candidate.name == part), None
            )
            kind = self._type(snapshot, file, member) if member is not None else ""
        yield from self._of_type(snapshot, file, kind)

    def _used(self, snapshot: Snapshot, parts: list[str]) -> list[Used]:
        """What other files use behind a name that is imported here, or that is global."""
        declaration = self._file(snapshot).top.get(parts[0])
        if len(parts) > 1 or (declaration is not None and not declaration.module):
            return []
        module, origin = (declaration.module, declaration.original) if declaration is not None else ("", parts[0])
        return self._used_of(module, origin, snapshot.path)

    def _modules_used(self, near: str) -> list[str]:
        """The outermost modules from which other files import something."""

        def outermost() -> list[str]:
            parts = (JOINTS.split(module)[0].partition("/")[0] for module in self._index.modules(near))
            return [part for part in dict.fromkeys(parts) if part.isidentifier()]

        return self._once(("modules", family(near)), outermost)

    def _used_of(self, module: str, origin: str, near: str) -> list[Used]:
        return self._once(("used", module, origin), lambda: self._index.used(module, origin, near))

    def _in_sight(self, snapshot: Snapshot, at: int, name: str) -> Declared | None:
        file = self._file(snapshot)
        local = next((declaration for declaration in _in_reach(snapshot, at) if declaration.name == name), None)
        return local or file.top.get(name) or file.elsewhere.get(name)

    def _type(self, snapshot: Snapshot, file: _FileNames, declared: Declared, steps: int = MOST_STEPS) -> str:
        """The name of an object's type, or of a function's return type."""
        type_name = _type_in(declared.type)
        if not type_name.endswith("()") or not steps:
            return type_name.removesuffix("()")
        name = type_name.removesuffix("()")
        if name in file.owned:
            return name
        for declaration in (file.top.get(name), file.elsewhere.get(name), *self._elsewhere(snapshot, name)):
            if declaration is not None and not declaration.module:
                return name if declaration.kind == "class" else self._type(snapshot, file, declaration, steps - 1)
        return name

    def _of_type(
        self, snapshot: Snapshot, file: _FileNames, name: str, visited: set[str] | None = None
    ) -> Iterator[Declared]:
        visited = set[str]() if visited is None else visited
        if not name or name in visited or len(visited) > MOST_BASES:
            return
        visited.add(name)
        heading = file.top.get(name)
        yield from file.owned.get(name, {}).values()
        if heading is None or heading.module or family(snapshot.path) in traits.SPREAD_MEMBERS:
            for path in self._index.homes(name, snapshot.path)[:MOST_HOMES]:
                declared = self._declared_in(path)
                yield from (declaration for declaration in declared if declaration.owner == name)
                heading = next(
                    (declaration for declaration in declared if declaration.name == name and not declaration.owner),
                    heading,
                )
                if heading is not None and not heading.module and family(snapshot.path) not in traits.SPREAD_MEMBERS:
                    break
        if heading is None or heading.kind != "class":
            return
        for base in filter(symbols.is_capitalized, dict.fromkeys(re.findall(r"\w+", heading.type))):
            yield from self._of_type(snapshot, file, base, visited)

    def _of_module(self, snapshot: Snapshot, module: str) -> Iterator[Declared]:
        path = self._module(snapshot, module)
        if path is None:
            return
        paths = self._index.beside(f"{path}/_.go") if family(snapshot.path) == "go" else [path]
        for declaring_path in paths:
            for declared in self._declared_in(declaring_path):
                public = family(snapshot.path) != "go" or symbols.is_capitalized(declared.name)
                if not declared.owner and not declared.module and public:
                    yield declared

    def _module(self, snapshot: Snapshot, module: str) -> str | None:
        if not module:
            return None
        project = Project((snapshot,), self._index.read, self._index.exists)
        return self._once(("module", snapshot.path, module), lambda: project.module(snapshot, module))

    def _declared_in(self, path: str) -> tuple[Declared, ...]:
        return self._once(("declared", path), lambda: self._index.declared(path))

    def _elsewhere(self, snapshot: Snapshot, name: str) -> Iterator[Declared]:
        for path in self._index.homes(name, snapshot.path)[:MOST_HOMES]:
            yield from (
                declaration
                for declaration in self._declared_in(path)
                if declaration.name == name and not declaration.module
            )

    def _called(self, snapshot: Snapshot, place: NamePlace, offset: int) -> Declared | None:
        parts, file = JOINTS.split(place.receiver.lstrip("$")), self._file(snapshot)
        if len(parts) > 1:
            function = next((e for e in self._members(snapshot, offset, parts[:-1]) if e.name == parts[-1]), None)
        else:
            function = self._in_sight(snapshot, offset, parts[0])
            if function is None or function.module:
                function = next(self._elsewhere(snapshot, parts[0]), function)
        if function is None or function.kind != "class":
            return function
        if snapshot.text[place.at - 1] == "{":
            return _with_fields(function.name, self._of_type(snapshot, file, function.name))
        members = {member.name: member for member in reversed([*self._of_type(snapshot, file, function.name)])}
        constructor = next((members[name] for name in CONSTRUCTORS if name in members), None)
        if constructor is not None or family(snapshot.path) != "python":
            return constructor
        return _with_fields(function.name, (member for member in members.values() if member.type))


def _with_fields(name: str, members: Iterable[Declared]) -> Declared:
    """The constructor of what is built from its fields: a struct, a data class."""
    fields = (member for member in members if member.kind == "property")
    return Declared(name, "function", "", ", ".join(f"{field.name}: {field.type}" for field in fields))


def _by_owner(declarations: Iterable[Declared]) -> dict[str, dict[str, Declared]]:
    owned: dict[str, dict[str, Declared]] = {}
    for declaration in declarations:
        owned.setdefault(declaration.owner, {})[declaration.name] = declaration
    return owned


def _named(declaration: Declared | Used) -> Name:
    return Name(declaration.name, declaration.kind)


def _module_named(name: str) -> Name:
    return Name(name, "module")


@cached
def _in_reach(snapshot: Snapshot, offset: int) -> list[Declared]:
    return locals_at(_as_if_finished(snapshot, offset), offset)


def _as_if_finished(snapshot: Snapshot, offset: int) -> Snapshot:
    """The text with a name inserted at the cursor and the brackets of its line closed, so that it is likely to
    parse."""
    end = snapshot.line_end(snapshot.line_of(offset))
    if snapshot.text[offset:end].strip():
        return snapshot
    start = snapshot.line_start(snapshot.line_of(offset))
    return snapshot.changed(TextEdit(offset, offset, "_" + closing(snapshot.text[start:offset])))


@cached
def _enclosing_type(snapshot: Snapshot, offset: int) -> str:
    """The name of the type whose method or body is at the offset; judged by the lines above where the text does not
    parse."""
    node = scopes.node_at(snapshot, max(offset - 1, 0))
    if name := symbols.type_name(symbols.enclosing(node)):
        return name
    for start, end in reversed(syntax.headers(snapshot, offset)):
        if match := next(filter(None, (pattern.match(snapshot.text, start, end) for pattern in HEADINGS)), None):
            return match[1]
    return ""


def _type_in(text: str) -> str:
    """The name of the one type in a text, "" if there may be several; it ends in "()" if it is that of a call."""
    text = LIFETIME.sub("", text)
    while match := WRAPPERS.match(text.lstrip("&*")):
        text = text.lstrip("&*")[match.end() : -1]
    text = text.strip().removeprefix("(").strip("\"'")
    kinds = [
        alternative
        for part in split(text, types=True)
        for alternative in part.split("|")
        if alternative and alternative.strip("() ") not in NOTHING
    ]
    match = TYPE.match(kinds[0]) if kinds and (len(kinds) == 1 or "|" not in text) else None
    return match[1] + ("()" if text.endswith("()") else "") if match else ""
