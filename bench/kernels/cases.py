"""Each kernel at the shapes of a model, its minimum of bytes and operations, and other ways to compute the same.

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
from mercury_kernels.compiled import KernelShape
from mercury_kernels.linear import Weight
from mercury_kernels.stream import Stream

EPSILON = 1e-6


Way = Callable[[int], Tensor | tuple[Tensor, ...]]


class Case(NamedTuple):
    """`ways` compute the same: ours first, torch eager second. Each takes the number of a set of weights, so that
    none is cached; `exact` computes it in double precision for the first set."""

    name: str
    bytes: int
    operations: int
    ways: dict[str, Way]
    exact: Callable[[], Tensor | tuple[Tensor, ...]]


def cases(
    shape: KernelShape,
    rows: int,
    context: int,
    device: str,
    sets: Callable[[int], int],
    precision: torch.dtype = torch.bfloat16,
) -> Iterator[Case]:
    """The cases; `sets` is the number of sets of inputs of this many bytes that exceed a cache."""
    random = torch.Generator(device).manual_seed(0)

    def normal(*size: int, scale: float = 1.0, dtype: torch.dtype = precision) -> Tensor:
        return (torch.randn(size, generator=random, device=device) * scale).to(dtype)

    def weights(outer: int, inner: int, *, int8: bool = False) -> list[Weight]:
        size = outer * inner * (1 if int8 else precision.itemsize)
        return [weight(outer, inner, int8=int8) for _ in range(sets(size))]

    def weight(outer: int, inner: int, *, int8: bool) -> Weight:
        if not int8:
            return normal(outer, inner, scale=inner**-0.5), None
        values = torch.randint(-127, 128, (outer, inner), generator=random, dtype=torch.int8, device=device)
        return values, normal(outer, scale=inner**-0.5 / 64, dtype=torch.float32)

    width, queries = shape.width, shape.heads * shape.head_width
    stream, norm = normal(rows, width, dtype=torch.float32), normal(width)
    yield _projecting(shape, stream, norm, weights(queries + 2 * shape.key_heads * shape.head_width, width), normal)
    yield _attending(shape, rows, context, device, normal, sets)
    yield _adding("output + residual", normal(rows, queries), norm, weights(width, queries))
    for int8 in (False, True):
        yield _gating(stream, norm, weights(2 * shape.feed_forward, width, int8=int8))
    yield _adding("down + residual", normal(rows, shape.feed_forward), norm, weights(width, shape.feed_forward))
    yield _choosing(shape, rows, stream, norm, device, normal, sets)


def _projecting(
    shape: KernelShape, stream: Tensor, norm: Tensor, many: list[Weight], normal: Callable[..., Tensor]
) -> Case:
    rows, (outer, inner) = len(stream), many[0][0].shape
    angles = normal(rows, shape.head_width // 2, dtype=torch.float32)
    turned, places = (angles.cos(), angles.sin()), torch.arange(rows, dtype=torch.int32, device=stream.device)
    bias = normal(outer) if shape.bias else None
    norms = (normal(shape.head_width), normal(shape.head_width)) if shape.head_norm else None

    def way(project: Callable[..., Tensor], dtype: torch.dtype = norm.dtype) -> Way:
        kept = [torch.empty(rows, shape.key_heads, shape.head_width, dtype=dtype, device=norm.device) for _ in range(2)]
        given = norm.to(dtype), None if bias is None else bias.to(dtype)
        both = None if norms is None else tuple(each.to(dtype) for each in norms)
        rows_of_stream = Stream.of(stream, norm) if dtype == norm.dtype else _exact(stream)

        def once(number: int) -> tuple[Tensor, ...]:
            weight = many[number % len(many)]
            weight = weight if dtype == norm.dtype else _doubled(weight)
            heads = project(rows_of_stream, given[0], weight, given[1], both, turned, places, places, *kept, EPSILON)
            return heads, *kept

        return once

    return Case(
        f"norm + heads {inner}x{outer}",
        _moved(many) + 2 * rows * (inner + outer),
        2 * rows * outer * inner,
        {"ours": way(linear.project_heads), "torch eager": way(plain.project_heads)},
        lambda: way(plain.project_heads, torch.float64)(0),
    )


def _gating(stream: Tensor, norm: Tensor, many: list[Weight]) -> Case:
    rows, (outer, inner) = len(stream), many[0][0].shape
    int8, prepared = many[0][1] is not None, Stream.of(stream, norm)
    ways = {
        "ours": lambda number: linear.gated(prepared, norm, many[number % len(many)], None, EPSILON),
        "torch eager": lambda number: plain.gated(prepared, norm, many[number % len(many)], None, EPSILON),
    }
    if not int8:
        ways["torch.compile"] = compiled(
            lambda weight: plain.gated(prepared, norm, (weight, None), None, EPSILON), [values for values, _ in many]
        )
    return Case(
        f"norm + gated{' int8' if int8 else ''} {inner}x{outer}",
        _moved(many) + 2 * rows * inner + rows * outer,
        2 * rows * outer * inner,
        ways,
        lambda: plain.gated(_exact(stream), norm.double(), _doubled(many[0]), None, EPSILON),
    )


def _exact(values: Tensor) -> Stream:
    """The stream as torch's products read it, in double precision."""
    return Stream(values.double(), values, values)


def _adding(name: str, x: Tensor, norm: Tensor, many: list[Weight]) -> Case:
    """Give each way its own streams, to which it adds; one call is the first for all of them."""
    (rows, inner), outer = x.shape, many[0][0].shape[0]

    def way(add: Callable[..., None]) -> Way:
        streams = [Stream.of(torch.zeros(rows, outer, device=x.device), norm) for _ in many]

        def once(number: int) -> Tensor:
            add(streams[number % len(many)], x, many[number % len(many)], None, norm)
            return streams[number % len(many)].values_ND

        return once

    return Case(
        f"{name} {inner}x{outer}",
        _moved(many) + 2 * rows * inner + 10 * rows * outer,
        2 * rows * outer * inner,
        {"ours": way(linear.add_product), "torch eager": way(plain.add_product)},
        lambda: x.double() @ _doubled(many[0])[0].T,
    )


def _moved(many: list[Weight]) -> int:
    """The bytes of one set."""
    return sum(part.nbytes for part in many[0] if part is not None)


def _doubled(weight: Weight) -> Weight:
    return plain.floats(weight, torch.float64).double(), None


def _attending(
    shape: KernelShape, rows: int, context: int, device: str, normal: Callable[..., Tensor], sets: Callable[[int], int]
) -> Case:
    columns = context + rows
    pages = -(-columns // PAGE)
    size = (pages * PAGE, shape.key_heads, shape.head_width)
    read = 2 * 2 * columns * shape.key_heads * shape.head_width
    many = [(normal(*size), normal(*size)) for _ in range(sets(read))]
    q = normal(1, rows, shape.heads, shape.head_width)

    def whole(values: object) -> Tensor:
        return torch.tensor(values, dtype=torch.int32, device=device)

    bits = torch.full((1, rows, 2 * -(-rows // PAGE)), -1, dtype=torch.int32, device=device)
    given = (whole([list(range(pages))]), whole([context]), whole([rows]), bits)
    programs = -(-rows * shape.heads // shape.key_heads // 64) * shape.key_heads
    splits = attention.splits_for(programs, columns, _processors(device))

    def dense(number: int) -> Tensor:
        """Attention alone, on contiguous keys: what our kernel would be without pages and masks."""
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
        **_flash(q, many, columns),
        **_flex(q, many, columns),
    }
    return Case(
        f"attention {rows} rows, {columns} columns",
        read + 4 * q.numel(),
        4 * q.numel() * columns,
        ways,
        exact,
    )


def _flash(q: Tensor, many: list, columns: int) -> dict[str, Callable[[int], Tensor]]:
    """Flash attention takes no mask but the causal one, so it could draft, or verify, but not both in one launch."""
    try:
        from flash_attn import flash_attn_func
    except ImportError:
        return {}

    def once(number: int) -> Tensor:
        k, v = (each[None, :columns] for each in many[number % len(many)])
        return flash_attn_func(q, k, v)

    return {"flash-attn, no mask": once}


def _flex(q: Tensor, many: list, columns: int) -> dict[str, Callable[[int], Tensor]]:
    @cache
    def made() -> Callable[..., Tensor]:
        return torch.compile(flex_attention, dynamic=False)

    def once(number: int) -> Tensor:
        k, v = (each[None, :columns].transpose(1, 2) for each in many[number % len(many)])
        return made()(q.transpose(1, 2), k, v, enable_gqa=True).transpose(1, 2)

    return {"flex, no mask": once}


def _choosing(
    shape: KernelShape,
    rows: int,
    stream: Tensor,
    norm: Tensor,
    device: str,
    normal: Callable[..., Tensor],
    sets: Callable[[int], int],
) -> Case:
    size = 2 * shape.vocabulary * shape.width
    many = [normal(shape.vocabulary, shape.width, scale=shape.width**-0.5) for _ in range(sets(size))]
    wanted, prepared = torch.arange(rows, dtype=torch.int32, device=device), Stream.of(stream, norm)
    allowed = torch.full((-(-shape.vocabulary // 32),), -1, dtype=torch.int32, device=device)

    def eager(weight: Tensor) -> Tensor:
        logits = functional.linear(plain.normed(stream, norm, EPSILON), weight).float()
        probability, token = logits.softmax(1).max(1)
        return torch.stack([token.int().view(torch.float32), probability])

    def ours(number: int) -> Tensor:
        chooser = head.Head(norm, (many[number % len(many)], None), EPSILON)
        return head.chosen(head.choose(chooser, prepared, wanted, allowed)).probability_CW[0]

    return Case(
        f"head + choice of {shape.vocabulary}",
        size + 2 * rows * shape.width,
        2 * rows * shape.vocabulary * shape.width,
        {
            "ours": ours,
            "torch eager": lambda number: eager(many[number % len(many)])[1],
            "torch.compile": compiled(lambda weight: eager(weight)[1], many),
        },
        lambda: _exact_choice(stream, norm, many[0]),
    )


def _exact_choice(stream: Tensor, norm: Tensor, weight: Tensor) -> Tensor:
    logits = plain.normed(stream.double(), norm.double(), EPSILON) @ weight.double().T
    return logits.softmax(1).max(1).values


def compiled(way: Callable[[Tensor], Tensor], many: list[Tensor]) -> Callable[[int], Tensor]:
    @cache
    def made() -> Callable[[Tensor], Tensor]:
        return torch.compile(way, dynamic=False)

    return lambda number: made()(many[number % len(many)])


def _processors(device: str) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.startswith("cuda") else 132
