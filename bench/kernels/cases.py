"""Each kernel at the shapes of a model, the least that it must move and compute, and other ways to compute the same.

Shapes: N rows, D width.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention.flex_attention import flex_attention

from mercury_kernels import attention, head, linear, plain
from mercury_kernels.attention import PAGE
from mercury_kernels.compiled import Shape

__all__ = ["Case", "cases"]

EPSILON = 1e-6


class Case(NamedTuple):
    """`ways` compute the same: ours first, torch eager second. Each takes the number of a set of weights, so that none
    finds them in a cache; `exact` computes in double precision."""

    name: str
    bytes: int
    operations: int
    ways: dict[str, Callable[[int], Tensor]]
    exact: Callable[[], Tensor] | None = None


def cases(
    shape: Shape,
    rows: int,
    context: int,
    device: str,
    sets: Callable[[int], int],
    precision: torch.dtype = torch.bfloat16,
) -> Iterator[Case]:
    """`sets` says how many sets of inputs of so many bytes are more than a cache holds."""
    random = torch.Generator(device).manual_seed(0)

    def normal(*size: int, scale: float = 1.0, dtype: torch.dtype = precision) -> Tensor:
        return (torch.randn(size, generator=random, device=device) * scale).to(dtype)

    width = shape.width
    stream, norm = normal(rows, width, dtype=torch.float32), normal(width)
    yield from products(shape, rows, stream, norm, normal, sets)
    yield attending(shape, rows, context, device, normal, sets)
    yield choosing(shape, rows, stream, norm, device, normal, sets)


def products(
    shape: Shape, rows: int, stream: Tensor, norm: Tensor, normal: Callable[..., Tensor], sets: Callable[[int], int]
) -> Iterator[Case]:
    width, fed = shape.width, shape.feed_forward
    for name, inner, outer in (
        ("output + residual", shape.heads * shape.head_width, width),
        ("down + residual", fed, width),
    ):
        x = normal(rows, inner)
        many = [(normal(outer, inner, scale=inner**-0.5), None) for _ in range(sets(2 * outer * inner))]
        yield Case(
            f"{name} {inner}x{outer}",
            2 * outer * inner + 2 * rows * inner + 8 * rows * outer,
            2 * rows * outer * inner,
            added(linear.add_product, plain.add_product, x, many, rows, outer),
            lambda x=x, many=many: x.double() @ many[0][0].double().T,
        )
    many = [(normal(2 * fed, width, scale=width**-0.5), None) for _ in range(sets(4 * fed * width))]

    def exact() -> Tensor:
        normed = plain.normed(stream.double(), norm.double(), EPSILON)
        gate, up = (normed @ many[0][0].double().T).chunk(2, 1)
        return functional.silu(gate) * up

    yield Case(
        f"norm + gated {width}x{2 * fed}",
        4 * fed * width + 4 * rows * width + 2 * rows * fed,
        4 * rows * fed * width,
        {
            "ours": lambda number: linear.gated(stream, norm, many[number % len(many)], None, EPSILON),
            "torch eager": lambda number: plain.gated(stream, norm, many[number % len(many)], None, EPSILON),
            "torch.compile": compiled(
                lambda weight: plain.gated(stream, norm, (weight, None), None, EPSILON), [each[0] for each in many]
            ),
        },
        exact,
    )
    quantised = [
        (
            torch.randint(-127, 128, each[0].shape, dtype=torch.int8, device=stream.device),
            normal(2 * fed, dtype=torch.float32),
        )
        for each in many[: sets(2 * fed * width)]
    ]
    yield Case(
        f"norm + gated int8 {width}x{2 * fed}",
        2 * fed * width + 4 * rows * width + 2 * rows * fed,
        4 * rows * fed * width,
        {
            "ours": lambda number: linear.gated(stream, norm, quantised[number % len(quantised)], None, EPSILON),
            "torch eager": lambda number: plain.gated(stream, norm, quantised[number % len(quantised)], None, EPSILON),
        },
    )


def added(
    ours: Callable[..., None], theirs: Callable[..., None], x: Tensor, many: list, rows: int, outer: int
) -> dict[str, Callable[[int], Tensor]]:
    """Ways to add a product to a stream, each to its own."""

    def way(add: Callable[..., None]) -> Callable[[int], Tensor]:
        streams = [torch.zeros(rows, outer, device=x.device) for _ in many]

        def once(number: int) -> Tensor:
            add(streams[number % len(many)], x, many[number % len(many)])
            return streams[number % len(many)]

        return once

    return {"ours": way(ours), "torch eager": way(theirs)}


def attending(
    shape: Shape, rows: int, context: int, device: str, normal: Callable[..., Tensor], sets: Callable[[int], int]
) -> Case:
    columns = context + rows
    pages = -(-columns // PAGE)
    size = (pages * PAGE, shape.key_heads, shape.head_width)
    moved = 2 * 2 * columns * shape.key_heads * shape.head_width
    many = [(normal(*size), normal(*size)) for _ in range(sets(moved))]
    q = normal(1, rows, shape.heads, shape.head_width)

    def whole(values: object) -> Tensor:
        return torch.tensor(values, dtype=torch.int32, device=device)

    bits = torch.full((1, rows, 2 * -(-rows // PAGE)), -1, dtype=torch.int32, device=device)
    given = (whole([list(range(pages))]), whole([context]), whole([rows]), bits)
    programs = -(-rows * shape.heads // shape.key_heads // 64) * shape.key_heads
    splits = attention.splits_for(programs, columns, processors(device))

    def dense(number: int) -> Tensor:
        """Attention alone, on keys that lie side by side already: what our kernel would be without pages and masks."""
        k, v = (each[None, :columns].transpose(1, 2) for each in many[number % len(many)])
        return functional.scaled_dot_product_attention(q.transpose(1, 2), k, v, enable_gqa=True).transpose(1, 2)

    def exact() -> Tensor:
        k, v = (each[None, :columns].transpose(1, 2).double() for each in many[0])
        mixed = functional.scaled_dot_product_attention(q.transpose(1, 2).double(), k, v, enable_gqa=True)
        return mixed.transpose(1, 2)

    ways = {
        "ours": lambda number: attention.attend(q, *many[number % len(many)], *given, splits=splits),
        "torch eager": lambda number: plain.attend(q, *many[number % len(many)], *given),
        "sdpa, dense, no mask": dense,
        **flash(q, many, columns),
        **flex(q, many, columns),
    }
    return Case(
        f"attention {rows} rows, {columns} columns",
        moved + 4 * q.numel(),
        4 * q.numel() * columns,
        ways,
        exact,
    )


def flash(q: Tensor, many: list, columns: int) -> dict[str, Callable[[int], Tensor]]:
    """It takes no mask but the causal one, so that it could draft, or verify, but not both in one launch."""
    try:
        from flash_attn import flash_attn_func
    except ImportError:
        return {}

    def once(number: int) -> Tensor:
        k, v = (each[None, :columns] for each in many[number % len(many)])
        return flash_attn_func(q, k, v)

    return {"flash-attn, no mask": once}


def flex(q: Tensor, many: list, columns: int) -> dict[str, Callable[[int], Tensor]]:
    @cache
    def made() -> Callable[..., Tensor]:
        return torch.compile(flex_attention, dynamic=False)

    def once(number: int) -> Tensor:
        k, v = (each[None, :columns].transpose(1, 2) for each in many[number % len(many)])
        return made()(q.transpose(1, 2), k, v, enable_gqa=True).transpose(1, 2)

    return {"flex, no mask": once}


def choosing(
    shape: Shape,
    rows: int,
    stream: Tensor,
    norm: Tensor,
    device: str,
    normal: Callable[..., Tensor],
    sets: Callable[[int], int],
) -> Case:
    size = 2 * shape.vocabulary * shape.width
    many = [normal(shape.vocabulary, shape.width, scale=shape.width**-0.5) for _ in range(sets(size))]
    wanted = torch.arange(rows, dtype=torch.int32, device=device)
    allowed = torch.full((-(-shape.vocabulary // 32),), -1, dtype=torch.int32, device=device)

    def eager(weight: Tensor) -> Tensor:
        logits = functional.linear(plain.normed(stream, norm, EPSILON), weight).float()
        probabilities = logits.softmax(1)
        top = probabilities.topk(2, 1)
        entropy = -(probabilities * probabilities.clamp(min=1e-30).log()).sum(1)
        return torch.stack(
            [
                top.indices[:, 0].int().view(torch.float32),
                top.values[:, 0],
                entropy,
                top.values[:, 0] - top.values[:, 1],
            ]
        )

    def ours(number: int) -> Tensor:
        chooser = head.Head(norm, (many[number % len(many)], None), None, EPSILON)
        return head.choose(chooser, stream, wanted, None, allowed)[1:3]

    return Case(
        f"head + choice of {shape.vocabulary}",
        size + 4 * rows * shape.width,
        2 * rows * shape.vocabulary * shape.width,
        {
            "ours": ours,
            "torch eager": lambda number: eager(many[number % len(many)])[1:3],
            "torch.compile": compiled(lambda weight: eager(weight)[1:3], many),
        },
        lambda: exact_choice(stream, norm, many[0]),
    )


def exact_choice(stream: Tensor, norm: Tensor, weight: Tensor) -> Tensor:
    logits = plain.normed(stream.double(), norm.double(), EPSILON) @ weight.double().T
    probabilities = logits.softmax(1)
    entropy = -(probabilities * probabilities.clamp(min=1e-300).log()).sum(1)
    return torch.stack([probabilities.max(1).values, entropy])


def compiled(way: Callable[[Tensor], Tensor], many: list[Tensor]) -> Callable[[int], Tensor]:
    @cache
    def made() -> Callable[[Tensor], Tensor]:
        return torch.compile(way, dynamic=False)

    return lambda number: made()(many[number % len(many)])


def processors(device: str) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.startswith("cuda") else 132
