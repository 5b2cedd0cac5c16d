"""How likely a suggestion must be to be shown, and how long to wait for one: both follow what the user accepts and
rejects, and return to normal with time."""

__all__ = ["Fading", "Gate"]

FORGETTING_SECONDS = 600.0
HIGHEST = 0.95
"""Rejections never raise the bar above this, so that they do not silence suggestions for good; a setting may."""


class Fading:
    """A factor that each accept and rejection multiplies, and that returns to one within minutes."""

    def __init__(self, rejected: float, accepted: float, lowest: float, highest: float):
        self._rejected = rejected
        self._accepted = accepted
        self._lowest = lowest
        self._highest = highest
        self._factor = 1.0
        self._since = 0.0

    def at(self, now: float) -> float:
        return self._factor ** (0.5 ** max((now - self._since) / FORGETTING_SECONDS, 0.0))

    def accepted(self, now: float) -> None:
        self._move(self._accepted, now)

    def rejected(self, now: float, weight: float = 1.0) -> None:
        """A `weight` below one is for rejections that are only inferred, such as typing something else."""
        self._move(self._rejected**weight, now)

    def _move(self, by: float, now: float) -> None:
        self._factor = min(max(self.at(now) * by, self._lowest), self._highest)
        self._since = now


class Gate:
    """The least P(accept) that is shown, for one client.

    >>> gate = Gate(0.25)
    >>> gate.bar(now=0.0)
    0.25
    """

    def __init__(self, base: float, *, adapts: bool = True):
        self.base = base
        self.adapts = adapts
        self._fading = Fading(1.15, 0.92, 1.0, 3.0)

    def bar(self, now: float) -> float:
        """Accepting undoes the effect of rejections, but never lowers the bar below its base."""
        return min(self.base * self._fading.at(now), max(HIGHEST, self.base))

    def accepted(self, now: float) -> None:
        if self.adapts:
            self._fading.accepted(now)

    def rejected(self, now: float, weight: float = 1.0) -> None:
        if self.adapts:
            self._fading.rejected(now, weight)
