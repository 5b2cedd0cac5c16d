"""Which files of Python or JavaScript may see which, by the words of their import statements, without a parser."""

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice
from os.path import basename, dirname, join, normpath, sep
from typing import NamedTuple

from mercury_ls.code.languages import family

EXTENSIONS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts")
SOURCE_FOLDERS = ("src", "lib", "python")
BLANK = r"(?:[ \t]|\\\r?\n)*+"
IMPORTING = {
    "javascript": re.compile(r"\b(?:from|import|require)\b\s*+(?:\(\s*+)?+[\"'](?P<module>[^\"'\n]++)[\"']"),
    "python": re.compile(
        rf"(?:(?<!\\\n)(?<!\\\r\n)^|[;:]){BLANK}"
        rf"(?:from\b{BLANK}(?P<module>\.*+(?:(?!import\b)[\w.]++)?+){BLANK})?\bimport\b{BLANK}"
        r"(?P<names>\((?:[^()#\n]++|#[^\n]*+|\n(?![ \t;:]*+(?:from|import)\b))*+\)?+|(?:[^\n#;\\]|\\\r?\n)*+)",
        re.MULTILINE,
    ),
}
FOLDER_MODULES = frozenset({"__init__", "index"})
"""Files that import statements name by their folder."""
FILES_A_STEP = 16

WORD = re.compile(r"[\w-]+")

Target = str | tuple[str, str]
"""The path of a file, behind the folder in which its module is looked for if that is none around the importing file."""


class _Places(NamedTuple):
    """The modules of a name, by the folder around which files find them near, and all of them with their roots."""

    near: dict[str, list[str]]
    far: list[Target]


class Importers:
    """What each file imports is looked up once, and again if it changes, or a file that it may name comes or goes.

    It may be more than is imported, never less: a name is taken for each file that it fits, and a file that was not
    read may import anything.
    """

    def __init__(self) -> None:
        self._statements: dict[str, str | None] = {}
        self._by_word: dict[str, frozenset[str]] = {}
        self._imported: dict[str, tuple[Target, ...]] = {}
        self._waiting: dict[str, None] = {}
        self._come_and_gone: set[str] = set()
        self._places: dict[str, _Places] = {}
        self._seeing: dict[tuple[str, frozenset[str] | None, str], frozenset[str]] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._statements

    def copy(self) -> "Importers":
        """What the copy is told, the original does not learn."""
        self._look_up_all()
        copied = Importers()
        copied._statements, copied._by_word = self._statements.copy(), self._by_word.copy()
        copied._imported, copied._seeing = self._imported.copy(), self._seeing.copy()
        return copied

    def keep(self, path: str, text: str | None) -> None:
        """A file came, or has another text now; None if that is not known."""
        pattern = IMPORTING.get(family(path))
        if pattern is None:
            return
        statements = None if text is None else "\n".join(match[0] for match in pattern.finditer(text))
        if path not in self:
            for words in _words_of(path):
                self._by_word[words] = self._by_word.get(words, frozenset()) | {path}
            self._come_and_gone.add(path)
            self._places.clear()
        elif statements == self._statements[path]:
            return
        self._statements[path], self._waiting[path] = statements, None

    def forget(self, path: str) -> None:
        if path in self:
            self._seeing.clear()
            self._statements.pop(path)
            self._imported.pop(path, None)
            self._waiting.pop(path, None)
            for words in _words_of(path):
                self._by_word[words] -= {path}
            self._come_and_gone.add(path)
            self._places.clear()

    def expect(self, paths: Collection[str]) -> None:
        """These are all the files there are; some of them may be read later."""
        for path in [path for path in self._statements if path not in paths]:
            self.forget(path)
        for path in paths:
            if path not in self:
                self.keep(path, None)

    def step(self) -> bool:
        """Look up what some files import. Returns True if there are more."""
        if self._come_and_gone:
            self._waiting.update(dict.fromkeys(self._naming(self._come_and_gone)))
            self._come_and_gone.clear()
        for path in [*islice(self._waiting, FILES_A_STEP)]:
            self._seeing.clear()
            del self._waiting[path]
            self._imported[path] = tuple(dict.fromkeys(self._look_up(path)))
        return bool(self._waiting)

    def seeing(self, home: str, roots: frozenset[str] | None = None, name: str = "") -> frozenset[str]:
        """The files that may have objects of the home: those that import it, and those that import these. Modules of
        Python are looked for in the folders around a file and in `roots`, in any folder if None. With a `name`, only
        files of Python whose statements may bring that, from one to the other."""
        self._look_up_all()
        if (home, roots, name) not in self._seeing:
            self._seeing[home, roots, name] = frozenset(self._followed(home, roots, name))
        return self._seeing[home, roots, name]

    def _followed(self, home: str, roots: frozenset[str] | None, name: str) -> set[str]:
        importing: dict[str, list[str]] = {}
        for path, imported in self._imported.items():
            for target in _paths_of(imported, roots):
                importing.setdefault(target, []).append(path)
        seeing = {home, *(path for path, statements in self._statements.items() if statements is None)}
        waiting = [*seeing]
        while waiting:
            target = waiting.pop()
            for path in importing.get(target, ()):
                if path not in seeing and (not name or target in _paths_of(self._look_up(path, name), roots)):
                    seeing.add(path)
                    waiting.append(path)
        return seeing

    def _look_up_all(self) -> None:
        while self.step():
            pass

    def _naming(self, paths: Collection[str]) -> Collection[str]:
        """The files that may name one of these."""
        if any(_stem_of(path) in FOLDER_MODULES for path in paths):
            return self._imported
        words = {_words_of(path)[0] for path in paths}
        spelled = {word for word in words if WORD.fullmatch(word)}
        others = words - spelled
        naming: list[str] = []
        for path in self._imported:
            text = self._statements[path] or ""
            if not spelled.isdisjoint(WORD.findall(text)) or any(word in text for word in others):
                naming.append(path)
        return naming

    def _look_up(self, path: str, name: str = "") -> Iterator[Target]:
        """What it imports, or only what it may import this name from."""
        brings = re.compile(rf"\b{re.escape(name)}\b|\*" if name else "")
        for match in IMPORTING[family(path)].finditer(self._statements[path] or ""):
            if not brings.search(match[0]):
                continue
            if family(path) == "javascript":
                yield from self._of_javascript(path, match["module"])
            elif match["module"] is None:
                for module in re.findall(r"[\w.]+", match["names"]):
                    for around in accumulate(module.split("."), "{}.{}".format):
                        yield from self._of_python(path, around, ())
            else:
                yield from self._of_python(path, match["module"], re.findall(r"\w+", match["names"]))

    def _of_python(self, path: str, module: str, members: Sequence[str]) -> Iterator[Target]:
        """The module and those of the members that are modules."""
        parts = [part for part in module.lstrip(".").split(".") if part]
        ends = [parts, *([*parts, member] for member in members)]
        if module.startswith("."):
            folder = path
            for _ in range(len(module) - len(module.lstrip("."))):
                folder = dirname(folder)
            yield from self._existing(*(join(folder, *end, "__init__.py") for end in ends))
            yield from self._existing(*(join(folder, *end) + ".py" for end in ends if end))
        elif len(parts) > 1 or module not in sys.stdlib_module_names:
            for end in filter(None, ends):
                yield from self._ending(path, end)

    def _ending(self, path: str, parts: Sequence[str]) -> Sequence[Target]:
        """The modules of this name in folders from which the file may import them, else those in any folder."""
        end = join(sep, *parts)
        if end not in self._places:
            self._places[end] = self._places_of(end, parts)
        near = self._places[end].near
        around = (near[folder] for folder in folders_above(path) if folder in near) if near else ()
        return [*chain.from_iterable(around)] or self._places[end].far

    def _places_of(self, end: str, parts: Sequence[str]) -> "_Places":
        places = _Places({}, [])
        for target in self._by_word.get(join(*parts[-2:]), ()):
            module = sep + target.removesuffix(".py").removesuffix(join(sep, "__init__"))
            root = module.removesuffix(end).removeprefix(sep)
            if family(target) == "python" and module.endswith(end) and join(root, "__init__.py") not in self:
                above = dirname(root) if basename(root) in SOURCE_FOLDERS else root
                places.near.setdefault(above, []).append(target)
                places.far.append((root, target))
        return places

    def _of_javascript(self, path: str, module: str) -> Iterator[str]:
        if module.startswith("."):
            yield from self._existing(*files_of_javascript(path, module))

    def _existing(self, *paths: str) -> Iterator[str]:
        return (path for path in paths if path in self)


def _paths_of(targets: Iterable[Target], roots: frozenset[str] | None) -> Iterator[str]:
    for target in targets:
        if isinstance(target, str):
            yield target
        elif roots is None or target[0] in roots:
            yield target[1]


def files_of_javascript(path: str, module: str) -> list[str]:
    """The files that a relative import of JavaScript may mean, the likeliest first."""
    whole = normpath(join(dirname(path), module))
    bare = re.sub(r"\.([cm]?)jsx?$", "", whole)
    own = [whole] if re.search(r"\.\w+$", whole) else []
    starts = [whole] if bare == whole else [bare, whole]
    with_extension = [start + extension for start in starts for extension in EXTENSIONS]
    return [*own, *with_extension, *(join(whole, "index" + extension) for extension in EXTENSIONS)]


def folders_above(path: str) -> Iterator[str]:
    """The innermost first. Called for every file of a project: `Path.parents` is too slow."""
    while path:
        path = path[: max(path.rfind(sep), 0)]
        yield path


def _stem_of(path: str) -> str:
    return basename(path).partition(".")[0]


def _words_of(path: str) -> tuple[str, str]:
    """The last word by which import statements name the file, and the last two."""
    folder, stem = dirname(path), _stem_of(path)
    if stem in FOLDER_MODULES:
        folder, stem = dirname(folder), basename(folder)
    return stem, join(basename(folder), stem)
