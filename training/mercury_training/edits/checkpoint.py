"""What a run keeps: its whole state, to continue from, and the factors alone in few bits, to keep for good."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import torch
from msgspec import Struct
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from mercury_engine.model.adapter import DOWN, SPECIAL
from mercury_engine.model.export import SCALE
from mercury_engine.model.quantize import quantize, quantize_groups
from mercury_training.edits import frozen
from mercury_training.edits.teacher import Teacher
from mercury_training.errors import TrainingError
from mercury_training.train import lora

STATE_FILE = "state.safetensors"
FACTORS_FILE = "factors.safetensors"
PROGRESS = "progress"


class RunState(Struct):
    """How far a run is; `steps` are those of the moments, which begin anew where a run starts from factors."""

    updates: int = 0
    tokens: int = 0
    seconds: float = 0.0
    steps: int = 0


def save(teacher: Teacher, progress: RunState, out: Path) -> None:
    note = {PROGRESS: msgspec.json.encode(progress).decode()}
    weights = {name: weight.detach() for name, weight in teacher.weights.items()}
    _replace(weights | teacher.optimizer.state(), out / STATE_FILE, note)
    with teacher.averaged():
        _replace(_in_few_bits(frozen.factors(teacher.model)), out / FACTORS_FILE, note)


def restore(teacher: Teacher, out: Path, start: Path | None) -> RunState:
    """Continue an earlier run of `out`, else from the factors of `start`, else from the model as it is."""
    state = out / STATE_FILE
    if state.exists():
        tensors, progress = load_file(state), _progress(state)
        frozen.attach(teacher.model, {n.removeprefix(frozen.LEARNED): tensors[n] for n in teacher.weights})
        teacher.optimizer.restore(tensors, progress.steps)
        return progress
    if start is None:
        return RunState()
    attach(teacher, start)
    teacher.optimizer.begin()
    return _progress(start)


def attach(teacher: Teacher, factors: Path) -> None:
    """Set what learns to the factors of a run."""
    frozen.attach(teacher.model, lora.read(factors))


def _progress(path: Path) -> RunState:
    try:
        with safe_open(path, "pt") as file:
            return msgspec.json.decode((file.metadata() or {})[PROGRESS], type=RunState)
    except (KeyError, SafetensorError, msgspec.DecodeError) as error:
        raise TrainingError(f"{path}: does not say how far its run was ({error}); name another checkpoint") from error


def _in_few_bits(factors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The large factors in four bits, the small ones in eight, and special tokens in sixteen."""
    saved = {}
    for name, factor in factors.items():
        if name == SPECIAL:
            saved[name] = factor.detach().half()
            continue
        values = factor.detach().numpy()
        pair = quantize_groups(values, lora.GROUP) if name.endswith(DOWN) else quantize(values)
        saved[name], saved[name + SCALE] = (torch.from_numpy(np.ascontiguousarray(part)) for part in pair)
    return saved


def _replace(tensors: Mapping[str, Tensor], path: Path, note: dict[str, str]) -> None:
    """Write all of a file, or leave the one that is there."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, partial, note)
        os.replace(partial, path)
    except (OSError, SafetensorError) as error:
        raise TrainingError(f"{path}: cannot be written ({error}); make room") from error
