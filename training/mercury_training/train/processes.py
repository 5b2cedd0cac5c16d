"""Communication between the processes of one run: sums, decisions and, if they are sharded, the weights.

A sharded tensor is a DTensor, divided by rows; every other tensor is whole, and the same in all processes. A single
process exchanges nothing.
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


def shard(model: Model, device: torch.device, precision: torch.dtype, *, compiled: bool) -> Model:
    """Shard: every process keeps a part of each weight, and of the sum of its gradients, in float32. A layer's
    weights are gathered, in `precision`, while the layer computes; those outside the layers from the forward to the
    end of the backward."""
    # Layers return views, their keys and values, but nothing writes into these.
    warnings.filterwarnings("ignore", message=r"FSDP2-wrapped module \(\w+\) returned a view tensor", module="torch")
    mesh = init_device_mesh(device.type, (distributed.get_world_size(),))
    # Casting the inputs of a layer would round the rotations.
    policy = MixedPrecisionPolicy(precision, reduce_dtype=torch.float32, cast_forward_inputs=False)
    for layer in model.layers:
        if compiled:
            layer.compile(dynamic=False)
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    for module in (*model.layers, model):
        assert isinstance(module, FSDPModule), "fully_shard makes every module one that can be told how to reduce"
        module.set_gradient_divide_factor(1.0)
        # gloo cannot scale while it sums, not even by 1.
        module.set_force_sum_reduction_for_comms(True)
    return model


def release(model: Model) -> None:
    """Free the gathered weights, which a forward without a backward leaves in memory."""
    if isinstance(model, FSDPModule):
        model.reshard()


def local(tensor: Tensor) -> Tensor:
    """This process' part; writing into it writes into the tensor."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def wrapped(local_tensor: Tensor, like: Tensor) -> Tensor:
    """The tensor, sharded like `like`, of which `local_tensor` is this process' part."""
    if not isinstance(like, DTensor):
        return local_tensor
    return DTensor.from_local(
        local_tensor, like.device_mesh, like.placements, run_check=False, shape=like.shape, stride=like.stride()
    )


def part(tensor: Tensor, like: Tensor) -> Tensor:
    """This process' part of a tensor, whole or sharded, when divided like `like`."""
    if isinstance(tensor, DTensor) or not isinstance(like, DTensor):
        return local(tensor)
    device = like.device_mesh.device_type
    return distribute_tensor(tensor.to(device), like.device_mesh, like.placements, src_data_rank=None).to_local()


def whole(tensor: Tensor) -> Tensor:
    """The whole tensor. All processes must call this."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def gathered(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Whole tensors, one after the other, in the first process' CPU memory; the others get nothing, but must call
    this."""
    whole_tensors = {}
    for name, tensor in tensors.items():
        complete = whole(tensor)
        if rank() == 0:
            whole_tensors[name] = complete.cpu()
    return whole_tensors


def rank() -> int:
    return distributed.get_rank() if distributed.is_initialized() else 0


def world() -> int:
    """The number of processes."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def all_reduce(tensors: Sequence[Tensor]) -> None:
    """Sum each tensor over all processes, in place."""
    if not distributed.is_initialized():
        return
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    distributed.all_reduce(flat)
    for tensor, summed in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(summed.view_as(tensor))


def global_norm(norm: Tensor) -> Tensor:
    """The norm of all parts, from that of this process' part."""
    squared = norm.square()
    distributed.all_reduce(squared)
    return squared.sqrt()


def broadcast(values: Sequence[float], device: torch.device) -> list[float]:
    """The values of the first process, in all of them."""
    if not distributed.is_initialized():
        return list(values)
    shared = torch.tensor(values, dtype=torch.float64, device=device)
    distributed.broadcast(shared, 0)
    return shared.tolist()


def all_reduce_min(value: int, device: torch.device) -> int:
    """The least value of any process."""
    if not distributed.is_initialized():
        return value
    shared = torch.tensor(value, device=device)
    distributed.all_reduce(shared, distributed.ReduceOp.MIN)
    return int(shared)
