"""The time that the requests behind one suggestion share."""

import math
import time

from msgspec.structs import replace

from mercury_engine.api import InfillRequest


class Deadline:
    """Owns when an answer is due, from now on; never without `milliseconds`."""

    def __init__(self, milliseconds: float | None) -> None:
        self._due = math.inf if milliseconds is None else time.monotonic() + milliseconds / 1000

    @property
    def left(self) -> float:
        """Milliseconds."""
        return max(0.0, (self._due - time.monotonic()) * 1000)

    def limited(self, request: InfillRequest) -> InfillRequest:
        """The request with the time that is left."""
        return replace(request, deadline_ms=None if math.isinf(self._due) else self.left)
