"""The attention mask of blocks as a matrix, which the masks of the engine, of training and of the kernels equal."""

from collections.abc import Sequence

import numpy as np

from mercury_training.rows.blocks import Block, visible_ranges


def canvas_mask(blocks: Sequence[Block], first_row: int = 0) -> np.ndarray:
    """True where a row sees a column, for the rows from `first_row` on: the earlier ones are cached."""
    columns = np.arange(sum(block.size for block in blocks), dtype=np.int32)
    ranges = visible_ranges(blocks)[first_row:, :, :, None]
    return np.any((columns >= ranges[:, :, 0]) & (columns < ranges[:, :, 1]), axis=1)
