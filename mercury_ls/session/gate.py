"""The one way to an engine: nothing of a file that the rules hide leaves by it, in whichever field it stands."""

from collections.abc import AsyncGenerator, Callable, Sequence

from msgspec.structs import replace

from mercury_engine.api import Draft, EngineError, InfillRequest
from mercury_ls.link.client import EngineLink
from mercury_ls.link.wire import Status


class Gate:
    """An engine link that judges the path of each window, snippet, edit and diagnostic by the rules of that moment: a
    file may have become private, or got a private name, after something of it was remembered."""

    def __init__(self, engine: EngineLink, why_hidden: Callable[[str], str | None]) -> None:
        self._engine = engine
        self._why_hidden = why_hidden

    @property
    def status(self) -> Status:
        return self._engine.status

    @property
    def roots(self) -> Sequence[str]:
        return self._engine.roots

    @roots.setter
    def roots(self, roots: Sequence[str]) -> None:
        self._engine.roots = roots

    async def start(self) -> None:
        await self._engine.start()

    async def close(self) -> None:
        await self._engine.close()

    def infill(self, request: InfillRequest) -> AsyncGenerator[Draft]:
        return self._engine.infill(self.cleared(request))

    async def warm(self, request: InfillRequest) -> None:
        await self._engine.warm(self.cleared(request))

    def cleared(self, request: InfillRequest) -> InfillRequest:
        """The request without all that is of hidden files. `EngineError` if it is about one."""
        noted = (*request.snippets, *request.edits, *request.diagnostics)
        hidden = {path: self._why_hidden(path) for path in {part.path for part in (*request.windows, *noted)}}
        for window in request.windows:
            if reason := hidden[window.path]:
                raise EngineError(f"the file is private: {reason}")
        if not any(hidden.values()):
            return request
        return replace(
            request,
            snippets=tuple(snippet for snippet in request.snippets if not hidden[snippet.path]),
            edits=tuple(edit for edit in request.edits if not hidden[edit.path]),
            diagnostics=tuple(diagnostic for diagnostic in request.diagnostics if not hidden[diagnostic.path]),
        )
