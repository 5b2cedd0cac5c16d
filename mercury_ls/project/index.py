"""What is known of each file of a project, within limits: which files define a name or contain it, nearest first."""

import heapq
import os
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from zlib import crc32

from msgspec import Struct

from mercury_engine.prompts.lines import shared_ends
from mercury_ls.code import languages
from mercury_ls.code.differences import WORD

LARGEST_DEFINING = 1 << 16
"""For larger files, only the names are indexed."""
LARGEST_INDEX = 12_000_000
MAX_WORDS = 8_000_000
"""In all files together, at four bytes per name."""

LOOKED_THROUGH = 48
HOMONYMS = 8
WORDS_HELD = 64


class IndexedFile(Struct, frozen=True):
    """The contents of a file with this modification time and size: nothing if it is not hand-written code. `words` are
    the sorted checksums of its names. One in another encoding than UTF-8 has only names."""

    stamp: tuple[int, int]
    definitions: tuple[tuple[str, str], ...] = ()
    words: "array[int]" = array("I")
    is_utf8: bool = True

    @property
    def characters(self) -> int:
        return sum(len(text) for _, text in self.definitions)

    def definition(self, name: str) -> str:
        return next(text for defined, text in self.definitions if defined == name)

    def has(self, word: int) -> bool:
        at = bisect_left(self.words, word)
        return at < len(self.words) and self.words[at] == word


class FileIndex:
    """Opens no file. Of more than there is room for, those that were changed longest ago are dropped."""

    def __init__(self, most_files: int) -> None:
        self.files: dict[str, IndexedFile] = {}
        self.unread: dict[str, str] = {}
        """The files that could not be read to their end, with the reasons."""
        self._most_files = most_files
        self._places: dict[str, dict[str, None]] = {}
        """The files that define each name."""
        self._holding: dict[int, frozenset[str]] = {}
        self._characters = self._words = 0

    def keep(self, path: str, file: IndexedFile) -> int:
        """Add a file that is not there. Return how many were dropped for it."""
        assert path not in self.files, "forget it first"
        self.files[path] = file
        self._holding.clear()
        self._characters += file.characters
        self._words += len(file.words)
        for name, _ in file.definitions:
            self._places.setdefault(name, {})[path] = None
        before = len(self.files)
        while len(self.files) > self._most_files or self._characters > LARGEST_INDEX or self._words > MAX_WORDS:
            self.forget(min(self.files, key=lambda path: (self.files[path].stamp[0], path)))
        return before - len(self.files)

    def forget(self, path: str) -> None:
        self.unread.pop(path, None)
        file = self.files.pop(path, None)
        if file is None:
            return
        self._holding.clear()
        self._characters -= file.characters
        self._words -= len(file.words)
        for name in {name for name, _ in file.definitions}:
            del self._places[name][path]
            if not self._places[name]:
                del self._places[name]

    def defining(self, name: str, near: str) -> list[str]:
        """The files of the same language that define this name, nearest first, and of equally near ones the one that
        was changed last; none if many do. A file of no language is taken to be of any."""
        family = _family_of(near)
        defining = (path for path in self._places.get(name, ()) if path != near)
        places = [path for path in defining if family is None or _family_of(path) == family]
        if len(places) > HOMONYMS:
            return []
        return sorted(places, key=lambda path: (_distance_between(path, near), -self.files[path].stamp[0], path))

    def mentioning(self, name_sets: Iterable[frozenset[str]], near: str) -> list[str]:
        """The files of the same language that contain all names of one of these sets, nearest first."""
        return [path for path in self._with_names(name_sets, near) if self.files[path].is_utf8]

    def undecoded(self, name_sets: Iterable[frozenset[str]], near: str) -> list[str]:
        """The same of files that are never read, as they are not UTF-8."""
        return [path for path in self._with_names(name_sets, near) if not self.files[path].is_utf8]

    def quoting(self, word_sets: Iterable[frozenset[str]], near: str) -> list[str]:
        """The files of any language that contain all words of one of these sets, nearest first."""
        return [path for path in self._with_words(word_sets, near) if self.files[path].is_utf8]

    def around(self, near: str) -> list[str]:
        """The nearest files of the same language that are small enough for their definitions to be indexed."""
        family = _family_of(near)
        defining = (path for path, file in self.files.items() if file.stamp[1] <= LARGEST_DEFINING)
        kin = [path for path in defining if path != near and _family_of(path) == family]
        away = {
            folder: _distance_between(path, near)
            for folder, path in {os.path.dirname(path): path for path in kin}.items()
        }
        return heapq.nsmallest(LOOKED_THROUGH, kin, key=lambda path: (away[os.path.dirname(path)], path))

    def _with_names(self, name_sets: Iterable[frozenset[str]], near: str) -> list[str]:
        family = _family_of(near)
        return [path for path in self._with_words(name_sets, near) if _family_of(path) == family]

    def _with_words(self, word_sets: Iterable[frozenset[str]], near: str) -> list[str]:
        holding = set[str]()
        for words in word_sets:
            holding |= frozenset.intersection(*(self._with_word(crc32(word.encode())) for word in words))
        return sorted(holding - {near}, key=lambda path: (_distance_between(path, near), path))

    def _with_word(self, word: int) -> frozenset[str]:
        """The files that contain a name of this checksum; one question asks for it several times."""
        if word not in self._holding:
            if len(self._holding) >= WORDS_HELD:
                self._holding.clear()
            self._holding[word] = frozenset(path for path, file in self.files.items() if file.has(word))
        return self._holding[word]


def words_in(text: str) -> "array[int]":
    """The sorted checksums of its names."""
    return array("I", sorted({crc32(word.encode()) for word in WORD.findall(text)}))


def _distance_between(path: str, near: str) -> int:
    """The number of folders between two files."""
    folders, others = path.split(os.sep)[:-1], near.split(os.sep)[:-1]
    return len(folders) + len(others) - 2 * shared_ends(folders, others)[0]


def _family_of(path: str) -> str | None:
    """The language of the file, or a related one with which it shares definitions."""
    language = languages.find("", path)
    return language and ("c" if language.id == "cpp" else language.family)
