"""The kinds of questions that an engine answers, for whatever has one way to ask them all."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from typing import TypeVar

from mercury_engine.api import ChatReply, ChatRequest, Draft, Gap, Opinions, Proposals, Regions, Rewrites
from mercury_ls.link.wire import Answer, Request

Answered = TypeVar("Answered", bound=Answer)


class Questioner(ABC):
    """Closing a generator cancels its request."""

    def fill(self, gap: Gap) -> AsyncGenerator[Draft]:
        return self._answers(gap, Draft)

    def rewrite(self, regions: Regions) -> AsyncGenerator[Rewrites]:
        return self._answers(regions, Rewrites)

    def judge(self, proposals: Proposals) -> AsyncGenerator[Opinions]:
        return self._answers(proposals, Opinions)

    def chat(self, request: ChatRequest) -> AsyncGenerator[ChatReply]:
        """A request that cannot be answered by any engine raises `RequestError`."""
        return self._answers(request, ChatReply)

    @abstractmethod
    def _answers(self, request: Request, kind: type[Answered]) -> AsyncGenerator[Answered]: ...
