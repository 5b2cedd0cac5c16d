"""Tensors of files are read as far as their headers make sense, and in pieces."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercury_engine.model.config import ModelError
from mercury_engine.model.stored import PIECE, pieces, stored_tensors


def file_of(shape, data=b"", dtype="F32"):
    header = json.dumps({"x": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}}).encode()
    return len(header).to_bytes(8, "little") + header + data


@pytest.mark.parametrize("shape", [[0], [0, 1 << 62], [1 << 62, 0], [1 << 63, 1 << 63], [-1, -1], [1]])
def test_shape_that_the_file_cannot_have_is_refused(tmp_path, shape):
    (tmp_path / "a.safetensors").write_bytes(file_of(shape))
    with pytest.raises(ModelError, match=r"a\.safetensors: x does not fit the file, .*again"):
        stored_tensors(tmp_path / "a.safetensors", "get it again")


def test_tensor_without_dimensions_is_one_value(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(file_of([], np.float32(3).tobytes()))
    assert stored_tensors(tmp_path / "a.safetensors", "get it again")["x"].floats() == 3


@given(st.lists(st.integers(1, 1 << 12), min_size=1, max_size=3))
def test_pieces_are_small_and_cover_every_row_once(shape):
    *rows, last = pieces(tuple(shape))
    starts = [0, *(stop for _, stop in rows)]
    assert [start for start, _ in [*rows, last]] == starts
    assert last[1] == shape[0]
    row = math.prod(shape[1:])
    assert all(0 < (stop - start) * row <= max(PIECE, row) for start, stop in [*rows, last])
