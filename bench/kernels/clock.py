"""GPU timings: a graph of calls by the GPU's own events, and the measured limits of its memory and arithmetic."""

import statistics
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

REPEATS = 20
BEYOND_CACHE = 256 << 20
MOST_SETS = 128
LARGE = 8192


class Limits(NamedTuple):
    """Bytes and operations per second."""

    bandwidth: float
    arithmetic: float
    said: str

    def floor_us(self, moved: int, operations: int) -> float:
        return 1e6 * max(moved / self.bandwidth, operations / self.arithmetic)


H200 = Limits(4.3e12, 790e12, "an H200: 4.3 TB/s, 790 TFLOP/s in bfloat16")


def measured_limits() -> Limits:
    source = torch.randn(1 << 30, device="cuda", dtype=torch.bfloat16)
    target = torch.empty_like(source)
    copy = graph_us(lambda number, to=target, given=source: to.copy_(given), 1)
    a, b = (torch.randn(LARGE, LARGE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    product = graph_us(lambda number: a @ b, 1)
    bandwidth, arithmetic = 2 * 2 * (1 << 30) / copy * 1e6, 2 * LARGE**3 / product * 1e6
    said = f"{torch.cuda.get_device_name()}: {bandwidth / 1e12:.2f} TB/s, {arithmetic / 1e12:.0f} TFLOP/s, measured now"
    return Limits(bandwidth, arithmetic, said)


def graph_us(way: Callable[[int], Tensor], calls: int) -> float:
    """The microseconds of one of several calls in a graph, the median of its replays."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for number in range(min(3, calls) + 1):
            way(number)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(calls):
            way(number)
    return replayed_us(graph.replay) / calls


def replayed_us(start: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        start()
        after.record()
        after.synchronize()
        times.append(1000 * before.elapsed_time(after))
    return statistics.median(times)


def sets_beyond_cache(size: int) -> int:
    """The number of sets of inputs of this many bytes that exceed any cache."""
    return max(1, min(MOST_SETS, -(-BEYOND_CACHE // max(size, 1))))
