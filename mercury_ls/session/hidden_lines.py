"""Lines of the user's files, hidden from a model of unknown quality: whether it writes them again says how far to
believe it, before anything of it has been seen."""

import random
import re
from collections import Counter
from collections.abc import Callable

from msgspec.structs import replace

from mercury_engine.addresses import is_here
from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.code.edits import TextEdit
from mercury_ls.code.history import History
from mercury_ls.completion.budgets import ENOUGH_OUTCOMES, EnginePace
from mercury_ls.completion.suggest import where
from mercury_ls.completion.target import Silence
from mercury_ls.session.generations import Generation
from mercury_ls.session.questions import Questions

ENOUGH = 2 * ENOUGH_OUTCOMES
"""Outcomes after which no more lines are hidden."""
MOST_ASKED = 2 * ENOUGH
"""About one model: some places get no answer."""
MOST_BELOW = 2
"""Lines that are hidden with the first, at most."""
SESSION = "hidden"
"""Not the user's, of whose file the engine has read more."""
WORD = re.compile(r"\b[^\W\d]")


class HiddenLines:
    """Asks the model to write again what stands in open files."""

    def __init__(self, questions: Questions, draw: random.Random | None = None) -> None:
        self._questions = questions
        self._draw = draw or random.Random()
        self._asked: Counter[str] = Counter()

    @property
    def are_due(self) -> bool:
        """Whether the engine's model is unknown, and costs nobody anything: neither money nor what leaves this
        machine."""
        questions, info = self._questions, self._questions.engine.status.info
        if info is None or info.calibrated or not {"line", "block"} & {*info.answers}:
            return False
        if info.metered or (info.address and not is_here(info.address)):
            return False
        known = questions.outcomes.count(info.model, "inline")
        is_unknown = questions.learns and known < ENOUGH and self._asked[questions.model] < MOST_ASKED
        return is_unknown and bool(self._files())

    async def ask(self, is_disturbed: Callable[[], bool] = lambda: False) -> bool | None:
        """Ask about one place, and learn from the answer: True if it is right as far as it goes. None if there is none,
        or the user came back first."""
        if not (files := self._files()):
            return None
        self._asked[self._questions.model] += 1
        full = self._draw.choice(files).snapshot()
        cut = _some_lines(full, self._draw)
        question = self._questions.completion(full.changed(cut), cut.start)
        question = replace(question, session=SESSION, history=History(), deadline_ms=None)
        if isinstance(target := where(question), Silence):
            return None
        generation = Generation(question, target, self._questions.engine, EnginePace())
        while not (generation.is_over or is_disturbed()):
            await generation.news(generation.answer)
        lesson = generation.lesson() if generation.is_over else None
        generation.close()
        if lesson is None:
            return None
        evidence, edit = lesson
        is_right = full.text.startswith((question.snapshot.text[: edit.start] + edit.text).rstrip())
        self._questions.lesson("inline", evidence)(is_right, True)
        return is_right

    def _files(self) -> list[Document]:
        """Those with words in which the user wants suggestions."""
        unavailable, documents = self._questions.unavailable, self._questions.files.documents
        wanted = [file for uri, file in [*documents.items()] if not unavailable(uri, invoked=False)]
        return [file for file in wanted if WORD.search(file.text)]


def _some_lines(snapshot: Snapshot, draw: random.Random) -> TextEdit:
    """Hides a line from the beginning of a word on, and at times lines below it."""
    start = draw.choice([match.start() for match in WORD.finditer(snapshot.text)])
    last = min(snapshot.line_of(start) + draw.randint(0, MOST_BELOW), snapshot.line_count - 1)
    return TextEdit(start, snapshot.line_end(last), "")
