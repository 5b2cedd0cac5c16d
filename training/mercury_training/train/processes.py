"""What the processes of one run share: sums, decisions and, where each holds only a part of them, the weights.

A tensor in parts is a DTensor, divided by rows; every other is whole, and the same in all processes. Where there is
one process alone, nothing is exchanged.
"""

import warnings
from collections.abc import Mapping, Sequence

import torch
import torch.distributed as distributed
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from mercury_engine.model.network import Model

__all__ = [
    "agreed",
    "gathered",
    "joined_norm",
    "least",
    "local",
    "part",
    "rank",
    "release",
    "shard",
    "sum_up",
    "whole",
    "wrapped",
]


def shard(model: Model, device: torch.device, precision: torch.dtype, *, compiled: bool) -> Model:
    """Every process keeps a part of each weight, and of the sum of its gradients, in float32. A layer's weights are
    gathered, in `precision`, for as long as it computes; those outside the layers from the forward to the end of the
    backward."""
    # Layers return views, their keys and values, and nobody writes into these.
    warnings.filterwarnings("ignore", message=r"FSDP2-wrapped module \(\w+\) returned a view tensor", module="torch")
    mesh = init_device_mesh(device.type, (distributed.get_world_size(),))
    # Casting what is handed to a layer would round the rotations.
    policy = MixedPrecisionPolicy(precision, reduce_dtype=torch.float32, cast_forward_inputs=False)
    for layer in model.layers:
        if compiled:
            layer.compile(dynamic=False)
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    for module in (*model.layers, model):
        module.set_gradient_divide_factor(1.0)
        # gloo cannot scale while it sums, not even by 1.
        module.set_force_sum_reduction_for_comms(True)
    return model


def release(model: Model) -> None:
    """Drop what is gathered of the weights: a forward without a backward leaves it there."""
    if isinstance(model, FSDPModule):
        model.reshard()


def local(tensor: Tensor) -> Tensor:
    """What of it is here; writing into it writes into the tensor."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def wrapped(here: Tensor, like: Tensor) -> Tensor:
    """What is here of a tensor that is in parts if `like` is, as that tensor."""
    if not isinstance(like, DTensor):
        return here
    return DTensor.from_local(
        here, like.device_mesh, like.placements, run_check=False, shape=like.shape, stride=like.stride()
    )


def part(tensor: Tensor, like: Tensor) -> Tensor:
    """What is here of a tensor, whole or in parts, if it is divided as `like`."""
    if isinstance(tensor, DTensor) or not isinstance(like, DTensor):
        return local(tensor)
    device = like.device_mesh.device_type
    return distribute_tensor(tensor.to(device), like.device_mesh, like.placements, src_data_rank=None).to_local()


def whole(tensor: Tensor) -> Tensor:
    """All processes have to ask."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def gathered(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Whole, one after the other, in the first process' own memory; the others get nothing, but have to ask."""
    found = {}
    for name, tensor in tensors.items():
        complete = whole(tensor)
        if rank() == 0:
            found[name] = complete.cpu()
    return found


def rank() -> int:
    return distributed.get_rank() if distributed.is_initialized() else 0


def sum_up(tensors: Sequence[Tensor]) -> None:
    """Each becomes the sum over all processes."""
    if not distributed.is_initialized():
        return
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    distributed.all_reduce(flat)
    for tensor, summed in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(summed.view_as(tensor))


def joined_norm(norm: Tensor) -> Tensor:
    """Of all parts, from that of the part that is here."""
    squared = norm.square()
    distributed.all_reduce(squared)
    return squared.sqrt()


def agreed(values: Sequence[float], device: torch.device) -> list[float]:
    """What the first process says."""
    if not distributed.is_initialized():
        return list(values)
    shared = torch.tensor(values, dtype=torch.float64, device=device)
    distributed.broadcast(shared, 0)
    return shared.tolist()


def least(value: int, device: torch.device) -> int:
    if not distributed.is_initialized():
        return value
    shared = torch.tensor(value, device=device)
    distributed.all_reduce(shared, distributed.ReduceOp.MIN)
    return int(shared)
