"""Diagnostics of the editor's other language servers."""

from msgspec import Struct

from mercury_engine.api import Severity


class FileDiagnostic(Struct, frozen=True):
    start: int
    end: int
    message: str
    severity: Severity = "error"
