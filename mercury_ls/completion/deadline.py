"""The time that the requests behind one suggestion share."""

import math
import time
from typing import TypeVar

from msgspec.structs import replace

from mercury_engine.api import Question

Asked = TypeVar("Asked", bound=Question)


class Deadline:
    """Owns when an answer is due, from now on; never without `milliseconds`."""

    def __init__(self, milliseconds: float | None) -> None:
        self._due = math.inf if milliseconds is None else time.monotonic() + milliseconds / 1000

    @property
    def left(self) -> float:
        """Milliseconds."""
        return max(0.0, (self._due - time.monotonic()) * 1000)

    def limited(self, question: Asked) -> Asked:
        """The question with the time that is left."""
        return replace(question, deadline_ms=None if math.isinf(self._due) else self.left)
