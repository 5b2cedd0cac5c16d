"""How the stream begins, and what the first product reads of it."""

import numpy as np
import pytest

pytest.importorskip("triton")

from mercury_kernels.stream import Stream, begun
from tests.kernels.on_device import PRECISIONS, check_close, exact, random, whole

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy computes in the interpreter


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("width", [16, 40, 100])
def test_stream_begins_with_the_line_of_each_row(dtype, width):
    table, norm = random(30, width, dtype=dtype), random(width, seed=1, dtype=dtype)
    gathered = np.random.default_rng(2).integers(30, size=7)
    stream = begun(table, whole(gathered), norm)
    check_close(stream.values_ND, exact(table)[gathered])
    expected = Stream.of(stream.values_ND, norm)
    check_close(stream.scaled_ND, exact(expected.scaled_ND), dtype)
    check_close(stream.squares_NP, exact(expected.squares_NP))
