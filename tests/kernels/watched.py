"""What kernels touch in the interpreter: only memory of their tensors, and no program what another one writes."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from torch import Tensor
from triton.runtime import interpreter

__all__ = ["watched"]


class Watch:
    """Stands in front of the interpreter's memory and notes each address with the program that used it."""

    def __init__(self, memory: object) -> None:
        self._memory = memory
        self._tensors: list[tuple[int, int]] = []
        self._read: list[np.ndarray] = []
        self._written: list[np.ndarray] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._memory, name)

    def load(self, pointers, mask, other, dtype):
        self._note(self._read, pointers, mask, np.dtype(dtype).itemsize)
        return self._memory.load(pointers, mask, other, dtype)

    def store(self, pointers, values, mask):
        self._note(self._written, pointers, mask, values.itemsize)
        return self._memory.store(pointers, values, mask)

    def _note(self, notes: list[np.ndarray], pointers: np.ndarray, mask: np.ndarray, size: int) -> None:
        at, used = np.broadcast_arrays(pointers, mask)
        at = at[used.astype(bool)].astype(np.int64)
        inside = np.zeros(len(at), bool)
        for start, end in self._tensors:
            inside |= (at >= start) & (at + size <= end)
        assert inside.all(), "an address outside of all tensors"
        x, y, z = interpreter.interpreter_builder.grid_idx
        notes.append(np.stack([at, np.full(len(at), (x << 40) + (y << 20) + z)]))

    def begin(self, given: list[object]) -> None:
        tensors = [one for one in given if isinstance(one, Tensor) and one.numel()]
        assert all(tensor.is_contiguous() for tensor in tensors), "the kernels take no strides"
        self._tensors = [(tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes) for tensor in tensors]
        self._read, self._written = [], []

    def end(self) -> None:
        """One program may use an address again and again; what one writes, no other one reads or writes."""
        if not self._written:
            return
        written, used = np.unique(np.concatenate(self._written, 1)[0]), [*self._written, *self._read]
        address, program = np.concatenate(used, 1)
        order = np.lexsort((program, address))
        address, program = address[order], program[order]
        met = address[1:][(address[1:] == address[:-1]) & (program[1:] != program[:-1])]
        assert not np.isin(met, written).any(), "two programs meet at an address that one of them writes"


@contextmanager
def watched() -> Iterator[None]:
    memory, run = interpreter._interpreter, interpreter.GridExecutor.__call__
    watch = Watch(memory)

    def watching(self: object, *positional: object, **named: object) -> None:
        watch.begin([*positional, *named.values()])
        run(self, *positional, **named)
        watch.end()

    interpreter._interpreter, interpreter.GridExecutor.__call__ = watch, watching
    try:
        yield
    finally:
        interpreter._interpreter, interpreter.GridExecutor.__call__ = memory, run
