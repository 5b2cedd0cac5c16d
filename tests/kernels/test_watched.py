"""What the watch over kernels objects to."""

import pytest
import torch

pytest.importorskip("triton")

import triton
import triton.language as tl

from tests.kernels.on_device import DEVICE
from tests.kernels.watched import watched

pytestmark = pytest.mark.skipif(DEVICE != "cpu", reason="only the interpreter can be watched")


@triton.jit
def copy_kernel(from_ptr, to_ptr, stride, size):
    at = tl.program_id(0) * stride + tl.arange(0, 4)
    tl.store(to_ptr + at, tl.load(from_ptr + at, mask=at < size, other=0.0), mask=at < size)


def copied(stride, size):
    target = torch.zeros(8)
    with watched():
        copy_kernel[(2,)](torch.arange(8.0), target, stride, size)
    return target.tolist()


def test_programs_with_memory_of_their_own_are_fine():
    assert copied(4, 8) == list(range(8))


@pytest.mark.parametrize(
    ("stride", "size", "complaint"), [(8, 16, "outside of all tensors"), (3, 8, "two programs meet")]
)
def test_watch_rejects_wrong_accesses(stride, size, complaint):
    with pytest.raises(Exception, match=complaint):
        copied(stride, size)
