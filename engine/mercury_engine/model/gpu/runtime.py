"""The runtime of a GPU: passes in batches over one pool of pages, each bucket of sizes as one CUDA graph.

Shapes: W wanted rows, D width, V vocabulary, U words of 32 tokens.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from mercury_engine.model.batches import PRECISIONS, batched
from mercury_engine.model.gpu.backends import CHUNK, KEYSTROKE, chosen_backends
from mercury_engine.model.gpu.inputs import Bucket, Inputs, bucket_for, fill, layout, padded_rows
from mercury_engine.model.gpu.pages import PageCache, PagedForward, PagePool
from mercury_engine.model.gpu.step import Backends, step
from mercury_engine.model.gpu.weights import Network
from mercury_engine.model.runtime import FLOAT, Cache, Choices, Pass, Predictions, Rows
from mercury_kernels import head
from mercury_kernels.attention import PAGE, row_tile, splits_for
from mercury_kernels.launch import processors
from mercury_kernels.stream import Stream

BATCH = 64
"""A pass reads all weights, so many cost little more than one."""

GRAPHS = 64
"""The number of graphs kept: those of the sizes used last."""


class GpuForward:
    """The choices for the wanted rows, if some tokens are permitted; their logits are computed on access only."""

    __slots__ = ("_found", "_head", "_wanted_WD", "logits_WV", "paged")

    def __init__(
        self,
        paged: PagedForward,
        head: head.Head,
        wanted_WD: Tensor,
        choices: Choices | None,
    ) -> None:
        self.paged = paged
        self._head = head
        self._wanted_WD = wanted_WD
        self._found: np.ndarray | None = None
        self.logits_WV = (
            self._logits()
            if choices is None
            else cast("np.ndarray", Predictions(self._logits, choices, np.arange(len(wanted_WD))))
        )

    @torch.inference_mode()
    def _logits(self) -> np.ndarray:
        if self._found is None:
            count, wanted_WD = len(self._wanted_WD), self._wanted_WD
            wanted_W = torch.arange(count, dtype=torch.int32, device=wanted_WD.device)
            if count:
                stream = Stream.of(wanted_WD, self._head.norm_D)
                self._found = head.logits(self._head, stream, wanted_W).cpu().numpy()
            else:
                self._found = np.empty((0, self._head.weight[0].shape[0]), np.float32)
        return self._found


class _Prepared(NamedTuple):
    """The host memory of a bucket's pass, how to start it, and how to run it to its end, which returns the stream of
    its wanted rows and the choices."""

    parts: dict[str, np.ndarray]
    start: Callable[[], Tensor]
    run: Callable[[], tuple[Tensor, np.ndarray | None]]


class GpuRuntime:
    """A network on one GPU.

    A forward can be appended until the next one on its cache. Backends are measured at the start unless given.
    """

    edits = False

    def __init__(
        self,
        network: Network,
        *,
        device: str = "cuda",
        batch: int = BATCH,
        backends: Backends | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        dtype = network.head.norm_D.dtype
        self.config = network.config
        self.device = device
        self.precision = next(name for name, value in PRECISIONS.items() if value == dtype)
        self.batch = batch
        self.network = network
        self._pool = PagePool(network.config, device, dtype)
        self._allowed: tuple[np.ndarray, Tensor] | None = None
        self._graphs: OrderedDict[tuple[Bucket, bool], _Prepared] = OrderedDict()
        self._moves = 0
        self._stream: torch.cuda.Stream | None = None
        self._memory: Any = None
        if device.startswith("cuda"):
            self._stream = torch.cuda.Stream()
        self.backends = dict.fromkeys((KEYSTROKE, CHUNK), backends or Backends())
        if backends is None:
            self.backends = chosen_backends(self._timed, clock)

    @property
    def name(self) -> str:
        """The backends of short passes, and of long ones if those differ."""
        named = [f"{backend.products} products, {backend.attention} attention" for backend in self.backends.values()]
        return "; ".join(dict.fromkeys(named))

    def cache(self, *, edits: bool = False) -> PageCache:
        return PageCache(self._pool)

    def pass_bytes(self, rows: int, columns: int) -> int:
        """Its kernels store no scores: only a row's activations within a layer, in full precision, and the mask."""
        config = self.config
        numbers = 2 * config.width + 4 * config.heads * config.head_width + 3 * config.feed_forward
        return FLOAT * rows * numbers + rows * rows // 8

    def padded(self, rows: int) -> int:
        return padded_rows(rows)

    def forward(self, rows: Rows, cache: Cache) -> GpuForward:
        (only,) = self._batched([Pass(rows, cache)])
        return only

    def forwards(self, passes: Sequence[Pass]) -> list[GpuForward]:
        return batched(passes, self._batched)

    @torch.inference_mode()
    def _batched(self, passes: Sequence[Pass]) -> list[GpuForward]:
        begun = [cast("PageCache", forward_pass.cache).begin(len(forward_pass.rows.ids_R)) for forward_pass in passes]
        counts = [len(forward_pass.rows.wanted) for forward_pass in passes]
        columns = max(paged.start + paged.rows for paged in begun)
        bucket = bucket_for(len(passes), max(paged.rows for paged in begun), sum(counts), columns)
        permitted = next(
            (forward_pass.rows.permitted_V for forward_pass in passes if forward_pass.rows.permitted_V is not None),
            None,
        )
        if permitted is not None:
            self._permit(permitted)
        prepared = self._prepared(bucket, permitted is not None)
        fill(prepared.parts, passes, begun)
        wanted_WD, figures_2CW = prepared.run()
        wanted_WD = wanted_WD[: sum(counts)].clone()
        forwards, start = [], 0
        for forward_pass, paged, count in zip(passes, begun, counts, strict=True):
            own = slice(start, start + count)
            choices = None
            if figures_2CW is not None and forward_pass.rows.permitted_V is permitted:
                choices = Choices(figures_2CW[0, :, own].view(np.int32).T, figures_2CW[1, :, own].T)
            forwards.append(GpuForward(paged, self.network.head, wanted_WD[own], choices))
            start += count
        return forwards

    def _permit(self, permitted_V: np.ndarray) -> None:
        """Write the permitted tokens as bits to the GPU, where the graphs read them."""
        if self._allowed is not None and self._allowed[0] is permitted_V:
            return
        padded = np.zeros(-(-self.config.vocabulary // 32) * 32, bool)
        padded[: len(permitted_V)] = permitted_V
        bits = torch.from_numpy(np.packbits(padded, bitorder="little").view("<i4").copy()).to(self.device)
        if self._allowed is not None:
            bits = self._allowed[1].copy_(bits)
        self._allowed = permitted_V, bits

    def _prepared(self, bucket: Bucket, choosing: bool) -> _Prepared:
        if self._pool.moves != self._moves:
            self._graphs.clear()
            self._moves = self._pool.moves
        key = bucket, choosing
        prepared = self._graphs.pop(key, None) or self._made(bucket, choosing, memory=self._shared())
        if bucket.is_graph:
            self._graphs[key] = prepared
            while len(self._graphs) > GRAPHS:
                self._graphs.popitem(last=False)
        return prepared

    def _shared(self) -> tuple[int, int] | None:
        """The memory pool of the graphs, which run one after the other. Torch rejects a handle whose graphs are all
        gone while a library still holds some of its memory."""
        if self._stream is not None and not self._graphs:
            self._memory = torch.cuda.graph_pool_handle()
        return self._memory

    def _made(
        self, bucket: Bucket, choosing: bool, backends: Backends | None = None, *, memory: Any = None
    ) -> _Prepared:
        """Host and device memory for a bucket's inputs, and a graph that copies them, computes, and copies back."""
        places, size = layout(bucket)
        on_gpu = self._stream is not None
        host = torch.zeros(size, dtype=torch.int32, pin_memory=on_gpu)
        device = torch.zeros(size, dtype=torch.int32, device=self.device) if on_gpu else host

        def part(memory: Tensor, name: str) -> Tensor:
            start, shape = places[name]
            return memory[start : start + int(np.prod(shape))].view(shape)

        parts = {name: part(host, name).numpy() for name in places}
        inputs = Inputs(**{name: part(device, name) for name in places})
        fill(parts, (), ())
        allowed = self._allowed[1] if choosing and self._allowed is not None else None
        backends = backends or self.backends[KEYSTROKE if bucket.rows * bucket.batch < CHUNK else CHUNK]
        group = self.config.heads // self.config.kv_heads
        tiles = -(-bucket.rows * group // row_tile(bucket.rows * group))
        programs = bucket.batch * tiles * self.config.kv_heads
        splits = splits_for(programs, bucket.pages * PAGE, processors(torch.device(self.device)))
        arrived = torch.zeros(2, head.RANKS, bucket.outputs, pin_memory=on_gpu)

        @torch.inference_mode()
        def once() -> Tensor:
            if on_gpu:
                device.copy_(host, non_blocking=True)
            wanted_WD, figures = step(self.network, inputs, self._pool.stored_L2SKE, allowed, backends, splits)
            if figures is not None:
                arrived.copy_(figures, non_blocking=True)
            return wanted_WD

        start = _captured(once, self._stream, memory) if self._stream is not None and bucket.is_graph else once

        def run() -> tuple[Tensor, np.ndarray | None]:
            wanted_WD = start()
            if on_gpu:
                torch.cuda.current_stream().synchronize()
            return wanted_WD, arrived.numpy().copy() if choosing and bucket.outputs else None

        return _Prepared(parts, start, run)

    def prepare(self, rows: int, columns: int) -> Callable[[], Tensor]:
        """Prepare passes that choose a token after each of this many rows, on this many cached columns, for a timing
        in which the caller waits."""
        return self._trial(rows, columns, outputs=rows).start

    @torch.inference_mode()
    def _trial(self, rows: int, columns: int, backends: Backends | None = None, *, outputs: int = 0) -> _Prepared:
        if outputs:
            self._permit(np.ones(self.config.vocabulary, bool))
        bucket = bucket_for(1, rows, outputs, columns + rows)
        prepared = self._made(bucket, bool(outputs), backends)
        prepared.parts["lengths_B"][0], prepared.parts["counts_B"][0] = columns, rows
        prepared.parts["pages_BP"][0] = np.arange(bucket.pages)
        prepared.parts["wanted_W"][:outputs] = np.arange(outputs)
        prepared.run()
        return prepared

    @torch.inference_mode()
    def _timed(self, backends: Backends, rows: int, clock: Callable[[], float]) -> float:
        """The seconds of a pass of this many rows on a filled context, the fastest of a few."""
        prepared = self._trial(rows, min(1024, self.config.context // 2), backends)
        times = []
        for _ in range(5):
            started = clock()
            prepared.run()
            times.append(clock() - started)
        return min(times)


def _captured(once: Callable[[], Tensor], stream: torch.cuda.Stream, memory: Any) -> Callable[[], Tensor]:
    """Capture a function as a graph. It runs once on the same stream first, so that everything is compiled, and what
    libraries allocate per stream is not part of the graph's memory.

    A graph has only addresses: the function, and thus the memory that it uses, lives as long as the replay.
    """
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        once()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=memory, stream=stream):
        kept = once, once()

    def replay() -> Tensor:
        graph.replay()
        return kept[1]

    return replay
