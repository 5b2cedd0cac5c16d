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


@triton.jit
def last_copies_kernel(from_ptr, to_ptr, count_ptr, LAST: tl.constexpr):
    at, target = tl.arange(0, 4), tl.program_id(0)
    tl.store(to_ptr + target, tl.load(from_ptr + target))
    before = tl.atomic_add(count_ptr, 1, sem="acq_rel")
    if before == LAST:
        tl.store(to_ptr + at, 2 * tl.load(to_ptr + at))


def last_copies(last):
    source, target, count = torch.arange(4.0), torch.zeros(4), torch.zeros(1, dtype=torch.int32)
    with watched():
        last_copies_kernel[(4,)](source, target, count, LAST=last)
    return target.tolist()


def test_program_that_counts_last_may_use_what_the_others_wrote():
    assert last_copies(3) == [0, 2, 4, 6]


def test_program_that_counts_before_another_must_not_use_what_that_writes():
    with pytest.raises(Exception, match="two programs meet"):
        last_copies(2)


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
