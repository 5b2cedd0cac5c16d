"""How long to wait for the next edit: longer after rejections, and as usual again within minutes."""

FORGETTING_SECONDS = 600.0
REJECTED, ACCEPTED = 1.5, 0.8
LEAST, MOST = 0.5, 30.0


class Patience:
    """A factor that each accept and rejection multiplies, and that returns to one."""

    def __init__(self) -> None:
        self._factor = 1.0
        self._since = 0.0

    def at(self, time: float) -> float:
        return self._factor ** (0.5 ** max((time - self._since) / FORGETTING_SECONDS, 0.0))

    def accepted(self, time: float) -> None:
        self._move(ACCEPTED, time)

    def rejected(self, time: float) -> None:
        self._move(REJECTED, time)

    def _move(self, step: float, time: float) -> None:
        self._factor = min(max(self.at(time) * step, LEAST), MOST)
        self._since = time
