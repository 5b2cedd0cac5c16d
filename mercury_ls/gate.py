"""How sure the model must be before anything is shown; the bar follows what the user takes and refuses."""

__all__ = ["Gate"]

FORGETTING_SECONDS = 600.0
REFUSED, ACCEPTED = 1.15, 0.92
LOWEST, HIGHEST = 0.6, 3.0


class Gate:
    """The bar for one client.

    >>> gate = Gate(0.25)
    >>> gate.bar(now=0.0)
    0.25
    """

    def __init__(self, base: float, *, adapts: bool = True):
        self.base = base
        self.adapts = adapts
        self._factor = 1.0
        self._since = 0.0

    def bar(self, now: float) -> float:
        """The least P(accept) that is shown; a deviation from the setting fades within minutes."""
        return min(self.base * self._factor_at(now), 0.95)

    def accepted(self, now: float) -> None:
        self._move(ACCEPTED, now)

    def rejected(self, now: float, weight: float = 1.0) -> None:
        """`weight` below one is for refusals that are only guessed, such as typing something else."""
        self._move(REFUSED**weight, now)

    def _move(self, by: float, now: float) -> None:
        if self.adapts:
            self._factor = min(max(self._factor_at(now) * by, LOWEST), HIGHEST)
            self._since = now

    def _factor_at(self, now: float) -> float:
        return self._factor ** (0.5 ** max((now - self._since) / FORGETTING_SECONDS, 0.0))
