"""A place that an edit leads to, and what would become of it."""

from msgspec import Struct

__all__ = ["Place"]


class Place(Struct, frozen=True):
    """`[start, end)` would become `text`, or what a model says where that is None.

    `likeness` is the share of neighbouring tokens that are as at the place that was edited, `same_role` whether the two
    are used alike (called, a member, bare), `defines` whether the name is declared here, `orphan` whether the
    edit was of its declaration and no other is left; `foreign` that it is text where the edit was code, or the other
    way round. `reach` is all of the lines whose shape decided.
    """

    start: int
    end: int
    text: str | None
    likeness: float = 0.0
    same_role: bool = True
    defines: bool = False
    orphan: bool = False
    foreign: bool = False
    reach: tuple[int, int] | None = None
