"""The questions to analysers and their answers: frozen plain data, passed as lines of JSON."""

from collections.abc import Iterable

from msgspec import Struct

from mercury_engine.api import NameKind, NameRole
from mercury_ls.settings.schema import PrivacySettings


class Name(Struct, frozen=True):
    """A name that exists; its kind is "" if unknown."""

    text: str
    kind: NameKind = ""


class NamesProject(Struct, frozen=True):
    """Where the analyser may look: the workspace folders, under privacy rules, and the folders of installed
    packages."""

    roots: tuple[str, ...]
    packages: tuple[str, ...] = ()
    privacy: PrivacySettings = PrivacySettings()
    ignore_case: bool = False


class NamesRequest(Struct, frozen=True):
    """Asks which names are valid at a place; lines count from 1, columns from 0 in code points. A `member` is requested
    right behind the dot. The text is that of the document `uri` in this `version`, unless the place is only near the
    cursor: then a line is added."""

    path: str
    text: str
    line: int
    column: int
    role: NameRole = "member"
    uri: str = ""
    version: int = 0


class NameList(Struct, frozen=True):
    """The names at a place; empty if nothing is known. Unless they are `complete`, others may exist."""

    names: tuple[Name, ...] = ()
    complete: bool = True

    @classmethod
    def of(cls, names: Iterable[Name], *, complete: bool = True) -> "NameList":
        """Each name once, as first described."""
        by_name: dict[str, Name] = {}
        for name in names:
            by_name.setdefault(name.text, name)
        return cls(tuple(by_name.values()), complete)
