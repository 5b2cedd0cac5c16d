"""Diagnostics of the editor's other language servers."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import filterfalse

from msgspec import Struct

from mercury_engine.api import Severity
from mercury_ls.code.documents import Snapshot

FRESH_EDITS = 3
"""After so many more edits, an error is no consequence of the last ones."""
MOST_KNOWN, LONGEST_MESSAGE = 2048, 400

_Error = tuple[str, str]
"""The message and the line: what stays the same while the text around it changes."""


class FileDiagnostic(Struct, frozen=True):
    start: int
    end: int
    message: str
    severity: Severity = "error"


class Reports:
    """What is reported about one document. Errors that it had before anything was edited are not new, nor are those
    that go and come back, as they do while a line is unfinished, or whose line is edited."""

    def __init__(self) -> None:
        self.version = -1
        self.diagnostics: tuple[FileDiagnostic, ...] = ()
        self._first_mark: int | None = None
        self._known: dict[_Error, None] = {}
        self._last: dict[_Error, None] = {}
        self.new: dict[_Error, int] = {}
        """With the mark of the history at which each was first reported."""

    def take(self, snapshot: Snapshot, diagnostics: tuple[FileDiagnostic, ...], mark: int) -> None:
        """`mark` is that of the history of edits."""
        self.version, self.diagnostics = snapshot.version, diagnostics
        errors = dict.fromkeys(_errors_in(snapshot, diagnostics))
        if self._first_mark is None:
            self._first_mark = mark
        self.new = {error: since for error, since in self.new.items() if error in errors}
        if mark > self._first_mark:
            self.new |= dict.fromkeys(self._appeared(errors), mark)
        self._last = errors
        self._known = errors if len(self._known) > MOST_KNOWN else self._known | errors

    def _appeared(self, errors: dict[_Error, None]) -> Iterator[_Error]:
        """Those that are not known, but for as many as are gone of the same message: their lines read differently."""
        gone = Counter(message for message, _ in self._last.keys() - errors.keys())
        for error in filterfalse(self._known.__contains__, errors):
            if not gone[error[0]]:
                yield error
            gone -= Counter([error[0]])

    def fresh(self, snapshot: Snapshot, edits_since: Callable[[int], int]) -> tuple[FileDiagnostic, ...]:
        """The errors that came with the last edits, if they are known of this text."""
        if snapshot.version != self.version:
            return ()
        fresh = {error for error, mark in self.new.items() if edits_since(mark) <= FRESH_EDITS}
        if not fresh:
            return ()
        errors = filter(_is_error, self.diagnostics)
        return tuple(diagnostic for diagnostic in errors if _error_in(snapshot, diagnostic) in fresh)

    def forget(self, snapshot: Snapshot, start: int) -> None:
        """The user has been at an error that starts there."""
        visited = {_error_in(snapshot, diagnostic) for diagnostic in self.diagnostics if diagnostic.start == start}
        self.new = {error: mark for error, mark in self.new.items() if error not in visited}


def _is_error(diagnostic: FileDiagnostic) -> bool:
    return diagnostic.severity == "error"


def _errors_in(snapshot: Snapshot, diagnostics: Iterable[FileDiagnostic]) -> Iterator[_Error]:
    return (_error_in(snapshot, diagnostic) for diagnostic in filter(_is_error, diagnostics))


def _error_in(snapshot: Snapshot, diagnostic: FileDiagnostic) -> _Error:
    return diagnostic.message[:LONGEST_MESSAGE], snapshot.line(snapshot.line_of(diagnostic.start)).strip()
