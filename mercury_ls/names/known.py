"""The questions to analysers and their answers: frozen plain data, passed as lines of JSON."""

from msgspec import Struct

from mercury_ls.settings.schema import PrivacySettings


class NamesProject(Struct, frozen=True):
    """Where the analyser may look: the workspace folders, under privacy rules, and the folders of installed
    packages."""

    roots: tuple[str, ...]
    packages: tuple[str, ...] = ()
    privacy: PrivacySettings = PrivacySettings()
    ignore_case: bool = False


class NamesRequest(Struct, frozen=True):
    """Asks which members are valid right behind the dot at a place; lines count from 1, columns from 0 in code points.
    The text is that of the document `uri` in this `version`, unless the place is only near the cursor: then a line is
    added."""

    path: str
    text: str
    line: int
    column: int
    uri: str = ""
    version: int = 0


class NameList(Struct, frozen=True):
    """The names at a place, each once; empty if nothing is known. Unless they are `complete`, others may exist."""

    names: tuple[str, ...] = ()
    complete: bool = True
