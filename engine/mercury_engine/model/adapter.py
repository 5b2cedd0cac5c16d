"""What a model has learned of edits, in a file beside its weights: low-rank factors (LoRA: Hu and others, 2021), and
vectors of special tokens. Completions are computed without them, as they were before.

Shapes: O outputs and I inputs of a matrix, K the rank, S special tokens, D width.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from mercury_engine.model.config import ModelConfig, ModelError
from mercury_engine.model.export import REMEDY, SCALE, Weights, dequantized, fits, plain, shapes
from mercury_engine.model.stored import check_finite, stored_tensors
from mercury_engine.tokens.vocabulary import SPECIALS

UP, DOWN = ".up", ".down"
"""After the name of a weight: its two factors."""
SPECIAL = "embedding.special"


class Adapter(Struct, frozen=True, eq=False):
    """Factors by their names, as they are stored, and the special tokens' vectors."""

    factors: Weights
    special_SD: np.ndarray

    def learned(self, names: Sequence[str]) -> list[str]:
        """Those of some weights that have factors."""
        return [name for name in names if name + UP in self.factors]

    def down(self, names: Sequence[str]) -> np.ndarray:
        """One factor, KI, of several weights with the same input."""
        return np.concatenate([plain(self.factors, name + DOWN) for name in self.learned(names)])

    def up(self, sizes: Sequence[tuple[str, int]]) -> np.ndarray:
        """The other one, KO, of weights that are given by name and number of outputs."""
        learned = self.learned([name for name, _ in sizes])
        factors = {name: plain(self.factors, name + UP) for name in learned}
        rank = sum(up_OK.shape[1] for up_OK in factors.values())
        up_KO = np.zeros((rank, sum(outputs for _, outputs in sizes)), np.float32)
        row = column = 0
        for name, outputs in sizes:
            if name in factors:
                up_OK = factors[name]
                up_KO[row : row + up_OK.shape[1], column : column + outputs] = up_OK.T
                row += up_OK.shape[1]
            column += outputs
        return up_KO


def read_adapter(path: Path, config: ModelConfig) -> Adapter:
    """The adapter in a file, which has to be one of this model."""
    stored = _stored_factors(path, REMEDY)
    floats = dequantized(stored)
    _check(floats, config, path)
    return Adapter(stored, floats[SPECIAL])


def factors_in(path: Path, remedy: str) -> Weights:
    """Factors as floats."""
    return dequantized(_stored_factors(path, remedy))


def _stored_factors(path: Path, remedy: str) -> Weights:
    """Factors in four or eight bits with their scales, or as floats."""
    stored = {
        name: tensor.raw if name.endswith(SCALE) else tensor.floats()
        for name, tensor in stored_tensors(path, remedy).items()
    }
    for name in [name for name in stored if not name.endswith(SCALE)]:
        columns = stored[name].shape[-1] * (2 if stored[name].dtype == np.uint8 else 1)
        if not fits(stored, name, (*stored[name].shape[:-1], columns)):
            raise ModelError(f"{path}: {name} has no scales for its rows; {remedy}")
    return stored


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
