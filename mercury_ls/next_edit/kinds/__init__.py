"""The kinds of next edits, one module each.

A module has a frozen `Rule` of its own and the four functions of a `Kind`.
"""

from collections.abc import Iterable
from typing import Never, Protocol, TypeVar, cast

from mercury_ls.code.documents import Snapshot
from mercury_ls.code.modules import Project
from mercury_ls.next_edit.examples import Example
from mercury_ls.next_edit.kinds import (
    align,
    arguments,
    clone,
    delete,
    imports,
    quotes,
    rename,
    replace,
    signatures,
    trim,
)
from mercury_ls.next_edit.places import Place
from mercury_ls.next_edit.rule import Rule

R = TypeVar("R", bound=Rule)
R_contra = TypeVar("R_contra", bound=Rule, contravariant=True)


class Kind(Protocol[R_contra]):
    """What a module knows of its rules."""

    def learn(self, example: Example, /) -> Iterable[Rule]:
        """What an edit teaches."""
        ...

    def find(self, rule: R_contra, snapshot: Snapshot, home: Snapshot | None, project: Project, /) -> Iterable[Place]:
        """Where else in a file the rule applies; `home` is the file in which it was learned, as it is now."""
        ...

    def suppress(self, rule: R_contra, place: Place, snapshot: Snapshot, /) -> bool:
        """Whether it applies there and nobody would want it."""
        ...

    def label(self, rule: R_contra, /) -> str:
        """What to call the edit."""
        ...


KINDS: dict[str, Kind[Never]] = {
    "rename": rename,
    "replace": replace,
    "argument": arguments,
    "parameter": signatures,
    "clone": clone,
    "delete": delete,
    "import": imports,
    "quote": quotes,
    "align": align,
    "trim": trim,
}
"""By the `kind` of their rules."""


def kind_of(rule: R) -> Kind[R]:
    """The kind whose functions take this rule: only its own module makes rules of a kind."""
    return cast("Kind[R]", KINDS[rule.kind])
