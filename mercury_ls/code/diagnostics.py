"""What language servers of the editor complain of."""

from msgspec import Struct

__all__ = ["Diagnostic"]


class Diagnostic(Struct, frozen=True):
    start: int
    end: int
    message: str
    is_unnecessary: bool = False
