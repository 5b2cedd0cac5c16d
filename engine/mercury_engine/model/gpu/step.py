"""One pass of the model over a padded batch: the same few launches for any passes, so that a graph can hold them.

Shapes: N rows of all sequences, W wanted rows, D width.
"""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from mercury_engine.model.gpu.inputs import Inputs
from mercury_engine.model.gpu.weights import Network
from mercury_kernels import attention, head, linear, plain
from mercury_kernels.stream import begun


class _Products(NamedTuple):
    """Computes everything between two attentions."""

    project_heads: Callable[..., Tensor]
    add_product: Callable[..., None]
    gated: Callable[..., Tensor]


PRODUCTS = {
    "triton": _Products(linear.project_heads, linear.add_product, linear.gated),
    "torch": _Products(plain.project_heads, plain.add_product, plain.gated),
}
ATTENTIONS: dict[str, Callable[..., Tensor]] = {"triton": attention.attend, "torch": plain.attend}


class Backends(NamedTuple):
    """The names of the backends in use."""

    products: str = "triton"
    attention: str = "triton"


def step(
    network: Network,
    inputs: Inputs,
    stored_L2SKE: Tensor,
    allowed_U: Tensor | None,
    backends: Backends,
    splits: int,
) -> tuple[Tensor, Tensor | None]:
    """The stream of the wanted rows, and with `allowed_U` the choices after them; keys and values go to the cache."""
    products, attend, epsilon = PRODUCTS[backends.products], ATTENTIONS[backends.attention], network.config.norm_epsilon
    batch, rows = inputs.bits_BTU.shape[:2]
    norms = [*(layer.norm for layer in network.layers), network.head.norm_D]
    stream = begun(network.table_VD, inputs.ids_N, norms[0])
    for layer, next_norm, (k_SKE, v_SKE) in zip(network.layers, norms[1:], stored_L2SKE, strict=True):
        q_NHE = products.project_heads(
            stream,
            layer.norm,
            layer.heads,
            layer.heads_bias,
            layer.head_norms,
            network.rotations,
            inputs.positions_N,
            inputs.slots_N,
            k_SKE,
            v_SKE,
            epsilon,
        )
        mixed = attend(
            q_NHE.unflatten(0, (batch, rows)),
            k_SKE,
            v_SKE,
            inputs.pages_BP,
            inputs.lengths_B,
            inputs.counts_B,
            inputs.bits_BTU,
            splits=splits,
        )
        mixed_NF = mixed.reshape(batch * rows, -1)
        products.add_product(stream, mixed_NF, layer.output, layer.output_bias, layer.fed_norm)
        fed_NF = products.gated(stream, layer.fed_norm, layer.gated, layer.gated_bias, epsilon)
        products.add_product(stream, fed_NF, layer.down, layer.down_bias, next_norm)
    wanted_WD = stream.values_ND.index_select(0, inputs.wanted_W.clamp(min=0))
    if allowed_U is None or not len(wanted_WD):
        return wanted_WD, None
    return wanted_WD, head.choose(network.head, stream, inputs.wanted_W, allowed_U)
