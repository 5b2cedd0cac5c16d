"""What an analyser is asked, and what it answers: frozen plain data, passed as lines of JSON."""

from collections.abc import Iterable

from msgspec import Struct

from mercury_engine.api import NameKind, NameRole
from mercury_ls.settings.schema import PrivacySettings

__all__ = ["Name", "NameList", "NamesProject", "NamesRequest"]


class Name(Struct, frozen=True):
    """A name that exists; its kind is "" where that is not known."""

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
    """What may stand at a place; lines are counted from 1, columns from 0 in code points. A `member` is asked for right
    behind the dot. The text is that of the document `uri` in this `version`, unless the place is only near the cursor:
    then a line is added to it."""

    path: str
    text: str
    line: int
    column: int
    role: NameRole = "member"
    uri: str = ""
    version: int = 0


class NameList(Struct, frozen=True):
    """The names at a place; none if nothing is known. Unless they are `complete`, others may exist."""

    names: tuple[Name, ...] = ()
    complete: bool = True

    @classmethod
    def of(cls, names: Iterable[Name], *, complete: bool = True) -> "NameList":
        """Each name once, with what is said first of it."""
        by_name: dict[str, Name] = {}
        for name in names:
            by_name.setdefault(name.text, name)
        return cls(tuple(by_name.values()), complete)
