"""How progress shapes a run: warm-up, a plateau, a linear decay to zero, and what is trained when."""

from typing import Literal

from msgspec import Struct

from mercury_training.rows.packing import RowShape

Stage = Literal["whole", "stable", "decay"]
"""A whole run; one that never decays, to be continued later; the decay of such a run."""

WARM_UP = 0.02
"""The share of the budget, unless the warm-up is counted in updates."""
CANVAS_FROM = 0.2
DECAY_FROM = 0.75
ENDING = 0.3
"""The factor below which, in the decay, losses are taken over the whole vocabulary in any case."""


class Phase(Struct, frozen=True):
    """How one update is made: the shape of its rows, the factor on all learning rates, whether canvases are trained,
    and the number of tokens besides the targets in the softmax (None: all)."""

    shape: RowShape
    rate: float
    canvases: bool = True
    decaying: bool = False
    sampled_softmax: int | None = None

    @property
    def seen(self) -> RowShape:
        """The part of each row that is trained on."""
        return self.shape if self.canvases else RowShape(self.shape.clean, 0)

    @property
    def certainty(self) -> bool:
        """True if entropy is in the loss, which takes the whole vocabulary."""
        return self.decaying and self.sampled_softmax is None


def phase_at(
    progress: float,
    stage: Stage,
    shape: RowShape,
    decay_shape: RowShape,
    *,
    warm: bool = False,
    warmed_up: float | None = None,
    lr_scale: float = 1.0,
    sampled_softmax: int | None = None,
) -> Phase:
    """The phase at `progress`, 0 to 1. Reading alone comes first; a `warm` run, which continues another, drafts at
    once. The decay has longer rows. `warmed_up` is the share of a warm-up that is counted in updates."""
    decaying = stage == "decay" or (stage == "whole" and progress >= DECAY_FROM)
    rate = rate_factor(progress, stage, warmed_up)
    return Phase(
        shape=decay_shape if decaying else shape,
        rate=rate * lr_scale,
        canvases=stage == "decay" or warm or progress >= CANVAS_FROM,
        decaying=decaying,
        sampled_softmax=None if decaying and rate < ENDING else sampled_softmax or None,
    )


def rate_factor(progress: float, stage: Stage, warmed_up: float | None = None) -> float:
    """The factor on the learning rates."""
    if stage == "decay":
        return max(0.0, 1 - progress)
    warmed_up = min(1.0, max(progress, 1e-4) / WARM_UP if warmed_up is None else warmed_up)
    if stage == "stable" or progress < DECAY_FROM:
        return warmed_up
    return warmed_up * max(0.0, (1 - progress) / (1 - DECAY_FROM))
