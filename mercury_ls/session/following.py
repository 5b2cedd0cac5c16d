"""What goes on behind an answer: the rest of what is on the screen is written, and what follows it, or who got nothing
while the model was reading is asked for again."""

import asyncio
import math
from collections.abc import Callable, Coroutine

from mercury_ls.completion.target import Silence
from mercury_ls.session.completions import Completions
from mercury_ls.session.generations import Generation
from mercury_ls.session.requests import InlineRequest

AHEAD_SECONDS = 0.05
"""How long a suggestion stands before what follows it is asked for."""


class Following:
    """One thing at a time: whatever begins ends what went on before."""

    def __init__(self, completions: Completions) -> None:
        self._completions = completions
        self._on_screen = completions.on_screen
        self.on_growth: Callable[[str], None] | None = None
        """Called when there is more than the client of this document was told; None if it would not ask again."""
        self.task: asyncio.Future[None] | None = None

    def show(self, generation: Generation, shown_text: str) -> None:
        """It is what the user sees from now on."""
        self._on_screen.generation = generation
        self._follow(self._written_on(generation, shown_text))

    def read_on(self, late: Generation, request: InlineRequest) -> None:
        self._follow(self._asked_until_read(late, request))

    def end(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def _follow(self, work: Coroutine[None, None, None]) -> None:
        self.end()
        self.task = asyncio.ensure_future(work)

    async def _written_on(self, generation: Generation, shown_text: str) -> None:
        """While the user reads the beginning of an answer it goes on, and the client, which has `shown_text`, hears
        when there is more. Then what may follow it is asked for, so that it is there when the user takes this one."""
        uri = generation.question.snapshot.uri
        with generation.awaited():
            while True:
                latest, is_shown = generation.answer, generation is self._on_screen.generation
                if is_shown and latest.offer and not latest.offer.edit.text.endswith(shown_text):
                    shown_text = latest.offer.edit.text
                    self._tell_growth(uri)
                if generation.is_over:
                    break
                await generation.news(latest)
        self._completions.learn_from(generation)
        if any(not alternative.is_over for alternative in generation.alternatives):
            await asyncio.gather(*(alternative.end() for alternative in generation.alternatives))
            self._tell_growth(uri)
        await asyncio.sleep(AHEAD_SECONDS)
        if generation is self._on_screen.generation and (ahead := self._completions.begin_behind(generation)):
            await ahead.end()

    async def _asked_until_read(self, late: Generation, request: InlineRequest) -> None:
        """Asks again where the model was still reading, as long as it gets on and the text stays; the client hears when
        there is something."""
        unread = math.inf
        while 0 < late.answer.unread < unread and self._completions.is_still_at(request):
            unread = late.answer.unread
            retry = self._completions.begin(request.snapshot, request.offset, request.invoked)
            if isinstance(retry, Silence):
                return
            with retry.awaited():
                while not (retry.stands or retry.is_over):
                    await retry.news(retry.answer)
                if retry.stands:
                    self._tell_growth(request.snapshot.uri)
                await retry.end()
            late = retry

    def _tell_growth(self, uri: str) -> None:
        if self.on_growth is not None:
            self.on_growth(uri)
