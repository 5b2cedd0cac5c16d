"""How the progress of a run shapes it: warm-up, a plateau, a linear decay to nothing, and what is trained when."""

from typing import Literal

__all__ = ["CANVAS_FROM", "DECAY_FROM", "Stage", "has_canvases", "is_decaying", "is_ending", "rate_factor"]

Stage = Literal["whole", "stable", "decay"]
"""A whole run; one that never decays, to be gone on with; the decay of such a one."""

WARM_UP = 0.02
CANVAS_FROM = 0.2
DECAY_FROM = 0.75
ENDING = 0.3


def rate_factor(progress: float, stage: Stage) -> float:
    """What the learning rates are multiplied with at `progress`, 0 to 1."""
    if stage == "decay":
        return max(0.0, 1 - progress)
    if progress < WARM_UP:
        return max(progress, 1e-4) / WARM_UP
    if stage == "stable" or progress < DECAY_FROM:
        return 1.0
    return max(0.0, (1 - progress) / (1 - DECAY_FROM))


def has_canvases(progress: float, stage: Stage, *, warm: bool = False) -> bool:
    """Reading alone comes first; a `warm` run, one that goes on from another, drafts at once."""
    return stage == "decay" or warm or progress >= CANVAS_FROM


def is_decaying(progress: float, stage: Stage) -> bool:
    """Longer rows, and certainty in the loss."""
    return stage == "decay" or (stage == "whole" and progress >= DECAY_FROM)


def is_ending(progress: float, stage: Stage) -> bool:
    """The last part of the decay: losses are over the whole vocabulary, whatever they were before."""
    return is_decaying(progress, stage) and rate_factor(progress, stage) < ENDING
