"""Compiles every kernel for real GPUs, without one, and reports the shared memory and registers of each.

    python -m mercury_kernels.compiled [--capability 80 90 …] [--shape quicksilver dream-7b …]

The launchers run as usual, on tensors without memory; what they would launch is compiled instead.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor
from triton import knobs
from triton.backends.compiler import GPUTarget

from mercury_kernels.attention import PAGE, attend
from mercury_kernels.head import Head, choose, logits
from mercury_kernels.launch import DEPENDENT
from mercury_kernels.linear import Weight, add_product, gated, project_heads
from mercury_kernels.stream import begun

CAPABILITIES = {80: 163, 86: 99, 89: 99, 90: 227, 100: 227, 120: 99}
"""The KiB of shared memory that a program may have on each kind of GPU."""

REGISTERS = 65_536
"""The registers of a processor, and so of one program."""

SPILLED = 32
"""Bytes of a thread's stack that cost nothing measurable."""

CONTEXT = 1024
"""The number of cached rows in the compiled pass."""


class KernelShape(NamedTuple):
    width: int
    heads: int
    key_heads: int
    head_width: int
    feed_forward: int
    vocabulary: int
    head_norm: bool = True
    bias: bool = False
    int8: bool = False


SMALL = KernelShape(512, 8, 2, 64, 1408, 16_384)
QUICKSILVER = KernelShape(896, 14, 2, 64, 4864, 47_413, head_norm=False, bias=True)
SHAPES = {
    "small": SMALL,
    "small-int8": SMALL._replace(int8=True),
    "quicksilver": QUICKSILVER,
    "quicksilver-int8": QUICKSILVER._replace(int8=True),
    "qwen-1.5b": KernelShape(1536, 12, 2, 128, 8960, 151_936, head_norm=False, bias=True),
    "dream-7b": KernelShape(3584, 28, 4, 128, 18_944, 152_064, head_norm=False, bias=True),
}
ROWS = (1, 40)


class Launch(NamedTuple):
    """A kernel as a launcher would start it."""

    kernel: Any
    arguments: dict[str, Any]
    options: dict[str, int]


class Compiled(NamedTuple):
    kernel: str
    shape: str
    rows: int
    capability: int
    shared: int
    registers: int
    stack: int
    threads: int
    seconds: float

    @property
    def complaint(self) -> str:
        """Why the kernel could not run on that GPU, or would be slow; empty if it is fine."""
        if self.shared > CAPABILITIES[self.capability] << 10:
            return f"{self.shared} bytes of shared memory"
        if self.registers * self.threads > REGISTERS:
            return f"{self.registers} registers in {self.threads} threads"
        return f"{self.stack} bytes of registers spilled" if self.stack > SPILLED else ""


def launches(shape: KernelShape, rows: int) -> list[Launch]:
    """Every kernel of one layer and of the head, in bfloat16."""
    batch, columns = 1, CONTEXT + rows

    def empty(*size: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
        return torch.empty(size, dtype=dtype, device="meta")

    def whole(*size: int) -> Tensor:
        return empty(*size, dtype=torch.int32)

    def weight(outer: int, inner: int) -> Weight:
        if not shape.int8:
            return empty(outer, inner), None
        return empty(outer, inner, dtype=torch.int8), empty(outer, dtype=torch.float32)

    norm = empty(shape.width)
    outer = (shape.heads + 2 * shape.key_heads) * shape.head_width
    bias = empty(outer) if shape.bias else None
    norms = (empty(shape.head_width), empty(shape.head_width)) if shape.head_norm else None
    rotation = empty(CONTEXT, shape.head_width // 2, dtype=torch.float32)
    pages = -(-columns // PAGE)
    k = v = empty(pages * PAGE, shape.key_heads, shape.head_width)
    queries = shape.heads * shape.head_width
    head = Head(norm, weight(shape.vocabulary, shape.width), 1e-6)
    with _recorded() as launches:
        stream = begun(empty(shape.vocabulary, shape.width), whole(rows), norm)
        q = project_heads(
            stream,
            norm,
            weight(outer, shape.width),
            bias,
            norms,
            (rotation, rotation),
            whole(rows),
            whole(rows),
            k,
            v,
            1e-6,
        )
        for splits in (1, 8):
            q_BTHE = q.reshape(batch, -1, shape.heads, shape.head_width)
            bits = whole(batch, rows, 2 * -(-rows // PAGE))
            attend(q_BTHE, k, v, whole(batch, pages), whole(batch), whole(batch), bits, splits=splits)
        add_product(stream, empty(rows, queries), weight(shape.width, queries), None, norm)
        fed = gated(stream, norm, weight(2 * shape.feed_forward, shape.width), None, 1e-6)
        add_product(stream, fed, weight(shape.width, shape.feed_forward), None, norm)
        choose(head, stream, whole(rows), whole(-(-shape.vocabulary // 32)))
        logits(head, stream, whole(rows))
    return launches


@contextmanager
def _recorded() -> Iterator[list[Launch]]:
    """Record launches instead of starting them."""
    launches: list[Launch] = []
    run = triton.runtime.JITFunction.run

    def note(self: Any, *positional: Any, grid: object, warmup: bool, **named: Any) -> None:
        names = self.arg_names
        arguments = dict(zip(names, positional, strict=False)) | {n: named[n] for n in names if n in named}
        launches.append(Launch(self, arguments, {n: value for n, value in named.items() if n not in names}))

    triton.runtime.JITFunction.run = note
    try:
        yield launches
    finally:
        triton.runtime.JITFunction.run = run


def compiled(launch: Launch, capability: int, shape: str = "", rows: int = 0) -> Compiled:
    signature, constants, attributes = {}, {}, {}
    for index, parameter in enumerate(launch.kernel.params):
        value = launch.arguments[parameter.name]
        if parameter.name == "EARLY":
            value = value and divmod(capability, 10) >= DEPENDENT
        if parameter.is_constexpr or value is None:
            signature[parameter.name], constants[parameter.name] = "constexpr", value
            continue
        signature[parameter.name] = _named_type(value)
        if parameter.do_not_specialize:
            continue
        # What the just-in-time compiler finds out: torch's memory and multiples of 16 are aligned, 1 is a constant.
        if isinstance(value, int) and value == 1:
            signature[parameter.name], constants[parameter.name] = "constexpr", 1
        elif isinstance(value, Tensor) or (isinstance(value, int) and value % 16 == 0):
            attributes[(index,)] = [["tt.divisibility", 16]]
    source = triton.compiler.ASTSource(launch.kernel, signature, constants, attributes)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=launch.options)
    seconds = time.perf_counter() - started
    registers, stack = _resources(kernel.asm["cubin"])
    threads = 32 * launch.options["num_warps"]
    name = launch.kernel.fn.__name__
    return Compiled(name, shape, rows, capability, kernel.metadata.shared, registers, stack, threads, round(seconds, 2))


TYPES = {
    torch.float32: "*fp32",
    torch.bfloat16: "*bf16",
    torch.float16: "*fp16",
    torch.int8: "*i8",
    torch.int32: "*i32",
}


def _named_type(value: Tensor | float) -> str:
    if isinstance(value, Tensor):
        return TYPES[value.dtype]
    return "i32" if isinstance(value, int) else "fp32"


def _resources(cubin: bytes) -> tuple[int, int]:
    """The registers of a thread, and the bytes of its stack, to which registers are spilled."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        tool = knobs.nvidia.cuobjdump.path
        usage = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True, check=True).stdout
    match = re.search(r"REG:(\d+) STACK:(\d+)", usage)
    assert match, f"cuobjdump reports no registers: {usage}"
    registers, stack = match.groups()
    return int(registers), int(stack)


def every(
    capabilities: Sequence[int], shapes: Sequence[str], rows: Sequence[int], see: Callable[[Compiled], None]
) -> list[Compiled]:
    found = []
    for capability in capabilities:
        for name in shapes:
            for count in rows:
                for launch in launches(SHAPES[name], count):
                    found.append(compiled(launch, capability, name, count))
                    see(found[-1])
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="mercury_kernels.compiled", description="Compile every kernel.")
    parser.add_argument("--capability", type=int, nargs="+", choices=CAPABILITIES, default=list(CAPABILITIES))
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    options = parser.parse_args(arguments)
    kernels = every(options.capability, options.shape, options.rows, lambda kernel: _say(json.dumps(kernel._asdict())))
    for kernel in kernels:
        if kernel.complaint:
            _say(f"{kernel.kernel}, {kernel.shape}, {kernel.rows} rows, sm_{kernel.capability}: {kernel.complaint}")
    if any(kernel.complaint for kernel in kernels):
        raise SystemExit(1)
    _say(f"{len(kernels)} compiled, all within the limits of their GPUs")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
