"""The inputs of a padded batch of passes in one array, copied to the GPU in one go.

Shapes: B sequences, T rows of each, N rows of all, W wanted rows, P pages of a sequence, U words of
32 rows.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np
from torch import Tensor

from mercury_engine.model.gpu.pages import PageCache, PagedForward
from mercury_engine.model.runtime import Pass
from mercury_kernels.attention import PAGE

ALIGNED = 32
"""The alignment in numbers: every part begins where the kernels were compiled to load whole words of memory."""

ROWS = (1, 4, 16, 32, 64, 128, 264)
"""The row buckets: a token alone, a few to verify, canvases with drafts and more of them up to `MOST_ROWS`, and a chunk
of the context."""

BATCHES = (1, 2, 4, 8, 16, 32, 64)
FEWEST_PAGES = 16
LARGEST_GRAPH = 4096
"""In rows: beyond that, launching kernels one by one costs nothing next to running them."""

COARSE = 64


class Bucket(NamedTuple):
    """The sizes that a pass is padded to; each bucket has one graph, except large ones without `is_graph`."""

    batch: int
    rows: int
    outputs: int
    pages: int

    @property
    def is_graph(self) -> bool:
        return self.rows <= ROWS[-1] and self.batch * self.rows <= LARGEST_GRAPH


class Inputs(NamedTuple):
    """Views into one array, on the host or on the device."""

    ids_N: Tensor
    positions_N: Tensor
    slots_N: Tensor
    lengths_B: Tensor
    counts_B: Tensor
    pages_BP: Tensor
    bits_BTU: Tensor
    wanted_W: Tensor


def bucket_for(batch: int, rows: int, outputs: int, columns: int) -> Bucket:
    """The smallest bucket for this many sequences, rows of each, and columns, both cached and new. A graph chooses
    tokens after all of its rows or after none, so that few graphs serve all passes."""
    batch = _smallest(batch, BATCHES, BATCHES[-1])
    rows = padded_rows(rows)
    pages = FEWEST_PAGES
    while pages * PAGE < columns:
        pages *= 2
    bucket = Bucket(batch, rows, _smallest(outputs, (0, *ROWS), COARSE), pages)
    return bucket._replace(outputs=batch * rows) if outputs and bucket.is_graph else bucket


def padded_rows(count: int) -> int:
    return _smallest(count, ROWS, COARSE)


def layout(bucket: Bucket) -> tuple[dict[str, tuple[int, tuple[int, ...]]], int]:
    """The offset and shape of each part, and the total length."""
    count = bucket.batch * bucket.rows
    shapes = {
        "ids_N": (count,),
        "positions_N": (count,),
        "slots_N": (count,),
        "lengths_B": (bucket.batch,),
        "counts_B": (bucket.batch,),
        "pages_BP": (bucket.batch, bucket.pages),
        "bits_BTU": (bucket.batch, bucket.rows, 2 * -(-bucket.rows // PAGE)),
        "wanted_W": (bucket.outputs,),
    }
    places, at = {}, 0
    for name, shape in shapes.items():
        places[name] = at, shape
        at += -(-int(np.prod(shape)) // ALIGNED) * ALIGNED
    return places, at


def fill(parts: dict[str, np.ndarray], passes: Sequence[Pass], begun: Sequence[PagedForward]) -> None:
    """Write the passes into the parts. Padding rows and sequences have no slot and see nothing."""
    rows = parts["bits_BTU"].shape[1]
    for name, value in (("slots_N", -1), ("wanted_W", -1), ("counts_B", 0), ("lengths_B", 0)):
        parts[name].fill(value)
    for name in ("ids_N", "positions_N", "bits_BTU"):
        parts[name].fill(0)
    outputs = 0
    for number, (forward_pass, paged) in enumerate(zip(passes, begun, strict=True)):
        first, cache, own = number * rows, cast("PageCache", forward_pass.cache), forward_pass.rows
        at = slice(first, first + paged.rows)
        parts["ids_N"][at] = own.ids_R
        parts["positions_N"][at] = own.positions_R
        parts["slots_N"][at] = _slots(cache, paged)
        parts["lengths_B"][number], parts["counts_B"][number] = paged.start, paged.rows
        used = -(-(paged.start + paged.rows) // PAGE)
        parts["pages_BP"][number, :used] = cache.pages[:used]
        parts["bits_BTU"][number, : paged.rows] = _bits(forward_pass, paged, parts["bits_BTU"].shape[2])
        parts["wanted_W"][outputs : outputs + len(own.wanted)] = first + np.asarray(own.wanted, np.int32)
        outputs += len(own.wanted)


def _slots(cache: PageCache, paged: PagedForward) -> np.ndarray:
    column = paged.start + np.arange(paged.rows)
    return np.array(cache.pages, np.int32)[column // PAGE] * PAGE + column % PAGE


def _bits(forward_pass: Pass, paged: PagedForward, words: int) -> np.ndarray:
    """The rows of the pass that each row sees, one bit each."""
    mask_RC = forward_pass.rows.mask_RC
    if mask_RC is None:
        own_RR = np.tri(paged.rows, dtype=bool)
    else:
        assert mask_RC[:, : paged.start].all(), "every row sees all cached ones: it continues what was read"
        own_RR = mask_RC[:, paged.start :]
    packed = np.packbits(own_RR, axis=1, bitorder="little")
    return np.pad(packed, [(0, 0), (0, 4 * words - packed.shape[1])]).view("<i4")


def _smallest(count: int, sizes: Sequence[int], step: int) -> int:
    """The smallest size that is large enough; beyond them a multiple of the step."""
    return next((size for size in sizes if size >= count), -(-count // step) * step)
