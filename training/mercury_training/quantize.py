"""Rounds a model to four bits with little harm: `python -m mercury_training.quantize MODEL CORPUS OUT`.

Matrices are rounded one after the other, in the order of the forward. Each is fitted to the inputs that it gets from
the rounded ones before it, so that it also makes up for their errors, on packed rows of the corpus, clean and canvas.
GPTQ (Frantar and others, 2022) rounds its columns, those with the largest inputs first, and moves the error of each
to those that follow; then every value is tried again against all others, and the scales are fitted anew.

Shapes: N outputs, K inputs, G groups of inputs that share a scale, T rows of the calibration, D width.
"""

import argparse
import copy
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
import torch
from msgspec import Struct
from torch import Tensor, nn

from mercury_engine.model.batches import PRECISIONS
from mercury_engine.model.config import TOKENIZER_FILE, ModelConfig
from mercury_engine.model.export import SCALE, ExportReport, matrices, read, shapes, write
from mercury_engine.model.network import Model, rotations
from mercury_engine.model.quantize import GROUP, packed
from mercury_training import models
from mercury_training.errors import TrainingError, reported
from mercury_training.progress import shown
from mercury_training.rows.loader import open_rows
from mercury_training.rows.packing import Packed, RowShape, stack
from mercury_training.train.attention import attend_tiles, tiles

COMMAND = "mercury_training.quantize"
SHAPE = RowShape(768, 256)
LEVELS = (-8, 7)
BLOCK = 128
"""The columns of which the errors are moved to all that follow at once."""

SHRUNK = tuple(1 - step / 40 for step in range(17))
"""Scales to try, as shares of one with which the value furthest from zero is not cut off."""

DAMPING = 0.05
"""Of the mean square of the inputs, added to that of each."""

LACKING = 1.0
"""The same where a matrix makes up for what its inputs lack: less would be fitted to these very rows."""

LOOKED_UP = 0.3
"""The same for the embedding, which is also looked up: then all its columns count alike."""

SWEEPS = 2

FINAL = 8
"""The rows to fit the head to."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").split(":")[0])
    parser.add_argument("model", type=Path, metavar="MODEL", help="a folder of float weights")
    parser.add_argument("corpus", type=Path, metavar="CORPUS", help="a corpus in the model's vocabulary")
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to write, for the engine to open")
    parser.add_argument("--rows", type=int, default=32, help=f"of {SHAPE.rows} tokens each, to fit to (default: 32)")
    parser.add_argument("--seed", type=int, default=0, help="chooses the rows")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32", help="of the forwards")
    options = parser.parse_args(arguments)
    with reported(COMMAND), torch.inference_mode():
        exported = quantize(options.model, options.corpus, options.out, options.rows, options.seed, options.precision)
    size = f"{len(exported.files)} files, {exported.bytes / 2**20:.1f} MiB"
    print(f"{options.out}: {size}; the outputs of each matrix move by at most {max(exported.errors.values()):.2%}")


def quantize(
    source: Path, corpus: Path, target: Path, rows: int, seed: int = 0, precision: str = "float32"
) -> ExportReport:
    """Write the model in `source` to the folder `target` in four bits, fitted to some rows of a corpus. Errors are of
    what each matrix puts out."""
    config, weights = read(source)
    _check(source, corpus, config)
    model = models.load(source, torch.float32)
    with TemporaryDirectory() as scratch:
        drawn = open_rows(corpus, Path(scratch), seed)
        calibration = stack([drawn.packed(number, SHAPE) for number in range(rows)])
    quantised, errors = dict(weights), dict[str, float]()

    def keep(name: str, weight_NK: Tensor, inputs_KK: Tensor, damping: float = DAMPING) -> Tensor:
        result = rounded(weight_NK, inputs_KK, damping)
        quantised[name] = packed(result.values_NK.to(torch.int8).numpy())
        quantised[name + SCALE] = result.scales_NG.half().numpy()
        floats_NK, size = result.floats(), error(weight_NK, torch.zeros_like(weight_NK), inputs_KK)
        errors[name] = round((error(weight_NK, floats_NK, inputs_KK) / size) ** 0.5, 4)
        return floats_NK

    _round_all(model, calibration, PRECISIONS[precision], keep)
    settings = {"rows": rows, "seed": seed, "precision": precision, "tokens": _digest(calibration)}
    written = write(config, weights, quantised, source, target, COMMAND, {}, **settings)
    return msgspec.structs.replace(written, errors=errors)


def _check(source: Path, corpus: Path, config: ModelConfig) -> None:
    if odd := [name for name in matrices(config) if shapes(config)[name][1] % GROUP]:
        raise TrainingError(
            f"{source}: a row of {odd[0]} is not a whole number of groups of {GROUP}; "
            "use `python -m mercury_engine.export`"
        )
    if (source / TOKENIZER_FILE).read_bytes() != (corpus / TOKENIZER_FILE).read_bytes():
        raise TrainingError(
            f"{corpus}: its vocabulary is not that of {source}; recode it with "
            "`python -m mercury_training.adapt --corpus`"
        )


def _digest(calibration: Packed) -> str:
    return hashlib.sha256(calibration.ids.tobytes()).hexdigest()


class Rounded(Struct, frozen=True, eq=False):
    values_NK: Tensor
    scales_NG: Tensor

    def floats(self) -> Tensor:
        return self.values_NK * _spread(self.scales_NG)


def made_up(weight_NK: Tensor, inputs_KK: Tensor, lacking_NK: Tensor) -> Tensor:
    """The weight, changed so that it also gives what its outputs lack: the products of that with the inputs."""
    return weight_NK + torch.linalg.solve(_damped(inputs_KK, LACKING), lacking_NK.T).T


def rounded(weight_NK: Tensor, inputs_KK: Tensor, damping: float = DAMPING) -> Rounded:
    """The weight in four bits, near in what it does with inputs of such products."""
    inputs_KK = _damped(inputs_KK, damping)
    scales_NG = _searched(weight_NK, inputs_KK.diagonal())
    values_NK = _descended(weight_NK, _passed_on(weight_NK, inputs_KK, scales_NG), scales_NG, inputs_KK)
    scales_NG = _fitted(weight_NK, values_NK, scales_NG, inputs_KK)
    return Rounded(_descended(weight_NK, values_NK, scales_NG, inputs_KK), scales_NG)


def error(weight_NK: Tensor, other_NK: Tensor, inputs_KK: Tensor) -> float:
    """The sum of squares by which outputs differ."""
    moved_NK = weight_NK - other_NK
    return float(((moved_NK @ inputs_KK) * moved_NK).sum())


def _damped(inputs_KK: Tensor, share: float) -> Tensor:
    return inputs_KK + share * inputs_KK.diagonal().mean() * torch.eye(len(inputs_KK))


def _searched(weight_NK: Tensor, squares_K: Tensor) -> Tensor:
    """The scales of all groups, of either sign, with the least error if every value is rounded by itself."""
    weight_NGK = weight_NK.unflatten(1, (-1, GROUP))
    squares_GK = squares_K.unflatten(0, (-1, GROUP))
    furthest_NG = weight_NGK.gather(2, weight_NGK.abs().argmax(2, keepdim=True))[..., 0]
    best_NG, scales_NG = torch.full_like(furthest_NG, torch.inf), torch.ones_like(furthest_NG)
    for level in LEVELS:
        for share in SHRUNK:
            tried_NG = _stored(furthest_NG / level * share)
            moved_NGK = weight_NGK - _levels(weight_NGK / tried_NG[..., None]) * tried_NG[..., None]
            error_NG = (moved_NGK.square() * squares_GK).sum(2)
            scales_NG = torch.where(error_NG < best_NG, tried_NG, scales_NG)
            best_NG = torch.minimum(error_NG, best_NG)
    return scales_NG


def _passed_on(weight_NK: Tensor, inputs_KK: Tensor, scales_NG: Tensor) -> Tensor:
    """GPTQ: each value is rounded, and its error passed on to the columns that follow."""
    order_K = inputs_KK.diagonal().argsort(descending=True)
    inverse_KK = torch.cholesky_inverse(torch.linalg.cholesky(inputs_KK[order_K][:, order_K]))
    upper_KK = torch.linalg.cholesky(inverse_KK, upper=True)
    left_NK, scales_NK = weight_NK[:, order_K], _spread(scales_NG)[:, order_K]
    values_NK = torch.empty_like(weight_NK)
    for start in range(0, len(order_K), BLOCK):
        columns = slice(start, start + BLOCK)
        own_NB, upper_BB = left_NK[:, columns].clone(), upper_KK[columns, columns]
        errors_NB = torch.empty_like(own_NB)
        for at, column in enumerate(order_K[columns].tolist()):
            scale_N = scales_NK[:, start + at]
            values_NK[:, column] = _levels(own_NB[:, at] / scale_N)
            errors_NB[:, at] = (own_NB[:, at] - values_NK[:, column] * scale_N) / upper_BB[at, at]
            own_NB[:, at + 1 :] -= errors_NB[:, at, None] * upper_BB[at, at + 1 :]
        left_NK[:, start + BLOCK :] -= errors_NB @ upper_KK[columns, start + BLOCK :]
    return values_NK


def _descended(weight_NK: Tensor, values_NK: Tensor, scales_NG: Tensor, inputs_KK: Tensor) -> Tensor:
    """Coordinate descent: every value becomes the best one beside all others as they are."""
    values_NK, scales_NK, squares_K = values_NK.clone(), _spread(scales_NG), inputs_KK.diagonal()
    left_NK = (weight_NK - values_NK * scales_NK) @ inputs_KK
    for _ in range(SWEEPS):
        for start in range(0, len(squares_K), BLOCK):
            columns = slice(start, start + BLOCK)
            own_NB, moved_NB = left_NK[:, columns].clone(), torch.zeros_like(left_NK[:, columns])
            for at, column in enumerate(range(start, min(start + BLOCK, len(squares_K)))):
                scale_N, before_N = scales_NK[:, column], values_NK[:, column].clone()
                values_NK[:, column] = _levels(before_N + own_NB[:, at] / (squares_K[column] * scale_N))
                moved_NB[:, at] = (values_NK[:, column] - before_N) * scale_N
                own_NB -= moved_NB[:, at, None] * inputs_KK[column, columns]
            left_NK -= moved_NB @ inputs_KK[columns]
    return values_NK


def _fitted(weight_NK: Tensor, values_NK: Tensor, scales_NG: Tensor, inputs_KK: Tensor) -> Tensor:
    """The scales with the least error for these values."""
    values_NGK = values_NK.unflatten(1, (-1, GROUP))
    wanted_NG = ((weight_NK @ inputs_KK).view_as(values_NGK) * values_NGK).sum(2)
    products = [values_NGK[:, at] @ part_BK for at, part_BK in enumerate(inputs_KK.split(GROUP))]
    products_NGG = torch.stack([(part.view_as(values_NGK) * values_NGK).sum(2) for part in products], 1)
    fitted_NG = torch.linalg.lstsq(products_NGG, wanted_NG[..., None]).solution[..., 0]
    return torch.where(fitted_NG.isfinite() & (fitted_NG.abs() < 2 * scales_NG.abs()), _stored(fitted_NG), scales_NG)


def _levels(values: Tensor) -> Tensor:
    return values.round().clamp(*LEVELS)


def _stored(scales: Tensor) -> Tensor:
    """Scales as the file holds them; any will do where all values are zero."""
    halves = scales.half().float()
    return torch.where(halves == 0, 1.0, halves)


def _spread(scales_NG: Tensor) -> Tensor:
    return scales_NG.repeat_interleave(GROUP, 1)


Keep = Callable[..., Tensor]
"""Rounds the weight of a name to a fit, keeps it, and returns what it has become."""


class _Rows:
    """The calibration rows on their way through the layers: what the exact model makes of them, and the rounded one."""

    def __init__(self, calibration: Packed, config: ModelConfig, precision: torch.dtype) -> None:
        self.precision, self.ids = precision, _each(calibration.ids)
        self.exact: list[Tensor] = []
        self.rounded: list[Tensor] = []
        self.seen = [
            (rotations(positions_BT, config), tiles(ranges_BTN2, SHAPE.clean, config.heads, config.kv_heads, precision))
            for positions_BT, ranges_BTN2 in zip(_each(calibration.positions), _each(calibration.ranges), strict=True)
        ]

    def normed(self, norm: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
        exact, rounded = ([norm(x).to(self.precision) for x in states] for states in (self.exact, self.rounded))
        return exact, rounded


def _each(array: np.ndarray) -> list[Tensor]:
    return list(torch.from_numpy(array).long().split(1))


def _round_all(model: Model, calibration: Packed, precision: torch.dtype, keep: Keep) -> None:
    config, rows = model.config, _Rows(calibration, model.config, precision)
    embedding_VD, final = model.embedding.weight, _final(model, rows)
    read_KK = _products(final, final)
    if config.tied:
        rounded_VD = keep("embedding.weight", embedding_VD, read_KK, LOOKED_UP)
    else:
        rounded_VD = keep("embedding.weight", embedding_VD, torch.eye(config.width))
        keep("head.weight", model.head.weight, read_KK)
    rows.exact = [config.embedding_scale * embedding_VD[ids] for ids in rows.ids]
    rows.rounded = [config.embedding_scale * rounded_VD[ids] for ids in rows.ids]
    for index, layer in enumerate(shown("layers", list(model.layers))):
        _round_layer(layer, rows, lambda name, *given, at=index: keep(f"layers.{at}.{name}.weight", *given))


def _final(model: Model, rows: _Rows) -> list[Tensor]:
    """What the head of the exact model reads, of a few rows."""
    states = [
        (model.config.embedding_scale * model.embedding.weight[ids]).to(rows.precision) for ids in rows.ids[:FINAL]
    ]
    for layer in model.layers:
        exact = copy.deepcopy(layer).to(rows.precision)
        states = [exact(x, *seen, None, attend_tiles)[0] for x, seen in zip(states, rows.seen, strict=False)]
    return [model.norm(x) for x in states]


def _round_layer(layer: Any, rows: _Rows, keep: Keep) -> None:
    """Round the matrices of a layer, and take the rows through it."""
    exact, rounded = (copy.deepcopy(layer).to(rows.precision) for _ in range(2))

    def fit(name: str, inputs_KK: Tensor, lacking_NK: Tensor) -> nn.Module:
        matrix = rounded.get_submodule(name)
        weight_NK = made_up(layer.get_submodule(name).weight, inputs_KK, lacking_NK)
        matrix.weight.copy_(keep(name, weight_NK, inputs_KK))
        return matrix

    def round_together(names: Sequence[str], wanted: list[Tensor], given: list[Tensor]) -> None:
        """Matrices with the same inputs, which should make of the `given` ones what they make of the `wanted` ones."""
        inputs_KK = _products(given, given)
        lacking_KK = _products([x - y for x, y in zip(wanted, given, strict=True)], given)
        for name in names:
            fit(name, inputs_KK, layer.get_submodule(name).weight @ lacking_KK)

    def round_added(name: str, wanted: list[Tensor], given: list[Tensor]) -> None:
        """A matrix whose outputs are added to the rows, which should then be what the exact ones are. A row counts by
        what the next norm makes of it."""
        matrix = exact.get_submodule(name)
        for x, inputs in zip(rows.exact, wanted, strict=True):
            x += matrix(inputs)
        squares = [x.square().mean(-1, keepdim=True) for x in rows.exact]
        lacking = [
            (x - y - matrix(inputs)) / square
            for x, y, inputs, square in zip(rows.exact, rows.rounded, given, squares, strict=True)
        ]
        counted = [inputs / square for inputs, square in zip(given, squares, strict=True)]
        matrix = fit(name, _products(given, counted), _products(lacking, given))
        for y, inputs in zip(rows.rounded, given, strict=True):
            y += matrix(inputs)

    def mixed(attention: Any, normed: list[Tensor]) -> list[Tensor]:
        return [attention.mixed(x, *seen, None, attend_tiles)[0] for x, seen in zip(normed, rows.seen, strict=True)]

    parts = [name for name, _ in layer.named_modules()]
    wanted, given = rows.normed(exact.attention_norm)
    round_together(["attention.query", "attention.key", "attention.value"], wanted, given)
    round_added("attention.output", mixed(exact.attention, wanted), mixed(rounded.attention, given))
    wanted, given = rows.normed(exact.feed_forward_norm)
    inner = ["feed_forward.gate", "feed_forward.up"]
    round_together([name for name in inner if name in parts], wanted, given)
    wanted, given = list(map(exact.feed_forward.hidden, wanted)), list(map(rounded.feed_forward.hidden, given))
    round_added("feed_forward.down", wanted, given)


def _products(left: Sequence[Tensor], right: Sequence[Tensor]) -> Tensor:
    """The sum over all rows of the products of what is left and right."""
    total = torch.zeros(left[0].shape[-1], right[0].shape[-1])
    for first, second in zip(left, right, strict=True):
        total.addmm_(first.float().flatten(0, 1).T, second.float().flatten(0, 1))
    return total


if __name__ == "__main__":
    main()
