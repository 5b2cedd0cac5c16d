"""What a model has learned of edits, in a file beside its weights: low-rank factors (LoRA: Hu and others, 2021), and
vectors of special tokens. Completions are computed without them, as they were before.

Shapes: O outputs and I inputs of a matrix, K the rank, S special tokens, D width.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from mercury_engine.model.config import ModelConfig, ModelError
from mercury_engine.model.export import REMEDY, SCALE, Weights, dequantized, fits, shapes
from mercury_engine.model.stored import check_finite, stored_tensors
from mercury_engine.tokens.vocabulary import SPECIALS

UP, DOWN = ".up", ".down"
"""After the name of a weight: its two factors."""
SPECIAL = "embedding.special"


class Adapter(Struct, frozen=True, eq=False):
    """Factors by their names, and the special tokens' vectors."""

    factors: Weights
    special_SD: np.ndarray

    def pair_for(self, sizes: Sequence[tuple[str, int]]) -> tuple[np.ndarray, np.ndarray] | None:
        """The factors of several weights with the same input, given by name and number of outputs, as one pair, KI and
        KO; None without any."""
        learned = [name for name, _ in sizes if name + UP in self.factors]
        if not learned:
            return None
        down_KI = np.concatenate([self.factors[name + DOWN] for name in learned])
        up_KO = np.zeros((len(down_KI), sum(outputs for _, outputs in sizes)), np.float32)
        row = column = 0
        for name, outputs in sizes:
            if name in learned:
                up_OK = self.factors[name + UP]
                up_KO[row : row + up_OK.shape[1], column : column + outputs] = up_OK.T
                row += up_OK.shape[1]
            column += outputs
        return down_KI, up_KO


def read_adapter(path: Path, config: ModelConfig) -> Adapter:
    """The adapter in a file, which has to be one of this model."""
    floats = factors_in(path, REMEDY)
    _check(floats, config, path)
    special_SD = floats.pop(SPECIAL)
    return Adapter(floats, special_SD)


def factors_in(path: Path, remedy: str) -> Weights:
    """Factors as floats; a file has them in four or eight bits with their scales, or as floats."""
    stored = {
        name: tensor.raw if name.endswith(SCALE) else tensor.floats()
        for name, tensor in stored_tensors(path, remedy).items()
    }
    for name in [name for name in stored if not name.endswith(SCALE)]:
        columns = stored[name].shape[-1] * (2 if stored[name].dtype == np.uint8 else 1)
        if not fits(stored, name, (*stored[name].shape[:-1], columns)):
            raise ModelError(f"{path}: {name} has no scales for its rows; {remedy}")
    return dequantized(stored)


def _check(floats: Weights, config: ModelConfig, path: Path) -> None:
    expected = shapes(config)
    vectors = floats.get(SPECIAL)
    if not config.tied or vectors is None or vectors.shape != (len(SPECIALS), config.width):
        raise ModelError(f"{path}: has no vectors for the special tokens of this model; {REMEDY}")
    for name in floats.keys() - {SPECIAL}:
        weight = name.removesuffix(UP).removesuffix(DOWN)
        up, down = floats.get(weight + UP), floats.get(weight + DOWN)
        if up is None or down is None or not _is_beside(up, down, expected.get(weight)):
            raise ModelError(f"{path}: {name} is no factor of this model; {REMEDY}")
    for name, values in floats.items():
        check_finite(values, f"{path}: {name}", REMEDY)


def _is_beside(up: np.ndarray, down: np.ndarray, shape: tuple[int, ...] | None) -> bool:
    is_pair = up.ndim == down.ndim == 2 and up.shape[1] == len(down)
    return is_pair and (len(up), down.shape[1]) == shape
