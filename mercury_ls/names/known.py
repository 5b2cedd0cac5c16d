"""What an analyser is asked, and what it answers: frozen plain data, passed as lines of JSON."""

from msgspec import Struct

from mercury_ls.settings.schema import PrivacySettings

__all__ = ["Ask", "Known", "Name", "Project"]


class Name(Struct, frozen=True):
    """A name that exists. `kind` is jedi's: function, instance, property, module, ...; `defined_in` is a path, "" if it
    is built in."""

    text: str
    kind: str = ""
    defined_in: str = ""


class Project(Struct, frozen=True):
    """Where the analyser may look: the workspace folders, under privacy rules, and the folders of installed
    packages."""

    roots: tuple[str, ...]
    packages: tuple[str, ...] = ()
    privacy: PrivacySettings = PrivacySettings()
    ignore_case: bool = False


class Ask(Struct, frozen=True):
    """What may stand at a place, which is right behind a dot; lines are counted from 1, columns from 0."""

    path: str
    text: str
    line: int
    column: int


class Known(Struct, frozen=True):
    """The names at a place; none if nothing is known. Unless they are `complete`, others may exist."""

    names: tuple[Name, ...] = ()
    complete: bool = True
