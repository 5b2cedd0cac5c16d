"""The one way to an engine: nothing of a file that the rules hide leaves by it, in whichever field it stands."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from msgspec.structs import replace

from mercury_engine.api import Draft, Edit, EngineError, Gap, Opinions, Proposals, Question, Regions, Rewrites
from mercury_ls.link.client import EngineLink
from mercury_ls.link.wire import Status

Asked = TypeVar("Asked", bound=Question)


class Gate:
    """An engine link that judges the path of each file, snippet, edit, mention and diagnostic by the rules of that
    moment: a file may have become private, or got a private name, after something of it was remembered."""

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

    def fill(self, gap: Gap) -> AsyncGenerator[Draft]:
        return self._engine.fill(self.cleared(gap))

    def rewrite(self, regions: Regions) -> AsyncGenerator[Rewrites]:
        return self._engine.rewrite(self.cleared(regions))

    def judge(self, proposals: Proposals) -> AsyncGenerator[Opinions]:
        return self._engine.judge(self.cleared(proposals))

    async def warm(self, question: Gap | Regions) -> None:
        await self._engine.warm(self.cleared(question))

    def cleared(self, question: Asked) -> Asked:
        """The question without all that is of hidden files. `EngineError` if it is about one."""
        mentions = chain.from_iterable(edit.mentions for edit in question.edits)
        noted = (part.path for part in (*question.snippets, *question.edits, *question.diagnostics, *mentions))
        hidden = {path: self._why_hidden(path) for path in {*question.paths, *noted}}
        if reason := next(filter(None, (hidden[path] for path in question.paths)), None):
            raise EngineError(f"the file is private: {reason}")
        if not any(hidden.values()):
            return question
        return replace(
            question,
            snippets=tuple(snippet for snippet in question.snippets if not hidden[snippet.path]),
            edits=tuple(_without(hidden, edit) for edit in question.edits if not hidden[edit.path]),
            diagnostics=tuple(diagnostic for diagnostic in question.diagnostics if not hidden[diagnostic.path]),
        )


def _without(hidden: Mapping[str, str | None], edit: Edit) -> Edit:
    """The edit without the lines of hidden files that mention what it changed."""
    return replace(edit, mentions=tuple(mention for mention in edit.mentions if not hidden[mention.path]))
