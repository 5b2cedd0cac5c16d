"""What kernels touch in the interpreter: only memory of their tensors, and what another program writes only after
both have counted it as written: the writer after writing, the other one before it reads or writes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from torch import Tensor
from triton.runtime import interpreter

__all__ = ["watched"]


class Watch:
    """Stands in front of the interpreter's memory and notes each address with the program that used it, and whether
    before or after that program has counted."""

    def __init__(self, memory: object) -> None:
        self._memory = memory
        self._tensors: list[tuple[int, int]] = []
        self._read: list[np.ndarray] = []
        self._written: list[np.ndarray] = []
        self._counted: dict[int, tuple[int, int]] = {}
        """By program: the counter, and which of those that counted there it was."""

    def __getattr__(self, name: str) -> object:
        return getattr(self._memory, name)

    def load(self, pointers, mask, other, dtype):
        self._note(self._read, pointers, mask, np.dtype(dtype).itemsize)
        return self._memory.load(pointers, mask, other, dtype)

    def store(self, pointers, values, mask):
        self._note(self._written, pointers, mask, values.itemsize)
        return self._memory.store(pointers, values, mask)

    def atomic_rmw(self, operation, pointers, values, mask, order):
        self._inside(pointers, mask, values.itemsize)
        assert "ACQUIRE_RELEASE" in str(order), "who counts both publishes and learns what was written"
        (counter,) = np.unique(pointers)
        assert _program() not in self._counted, "a program counts once"
        arrived = sum(counter == other for other, _ in self._counted.values())
        self._counted[_program()] = int(counter), arrived
        return self._memory.atomic_rmw(operation, pointers, values, mask, order)

    def _note(self, notes: list[np.ndarray], pointers: np.ndarray, mask: np.ndarray, size: int) -> None:
        at, program = self._inside(pointers, mask, size), _program()
        notes.append(np.stack([at, np.full(len(at), program), np.full(len(at), program in self._counted)]))

    def _inside(self, pointers: np.ndarray, mask: np.ndarray, size: int) -> np.ndarray:
        at, used = np.broadcast_arrays(pointers, mask)
        at = at[used.astype(bool)].astype(np.int64)
        inside = np.zeros(len(at), bool)
        for start, end in self._tensors:
            inside |= (at >= start) & (at + size <= end)
        assert inside.all(), "an address outside of all tensors"
        return at

    def begin(self, given: list[object]) -> None:
        tensors = [one for one in given if isinstance(one, Tensor) and one.numel()]
        assert all(tensor.is_contiguous() for tensor in tensors), "the kernels take no strides"
        self._tensors = [(tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes) for tensor in tensors]
        self._read, self._written, self._counted = [], [], {}

    def end(self) -> None:
        """One program may use an address again and again; what one writes, no other one reads or writes, unless it
        has counted after it."""
        if not self._written:
            return
        written, used = np.unique(np.concatenate(self._written, 1)[0]), [*self._written, *self._read]
        address, program, after = np.unique(np.concatenate(used, 1), axis=1)
        met = (address[1:] == address[:-1]) & (program[1:] != program[:-1]) & np.isin(address[1:], written)
        for first, second in np.unique(
            np.stack([2 * program[:-1] + after[:-1], 2 * program[1:] + after[1:]])[:, met], axis=1
        ).T:
            assert self._in_order(first, second) or self._in_order(second, first), (
                "two programs meet at an address that one of them writes"
            )

    def _in_order(self, first: int, second: int) -> bool:
        """True if the first has counted after its use of an address, and the second later, before its own."""
        (earlier, had_counted), (later, has_counted) = divmod(int(first), 2), divmod(int(second), 2)
        if earlier not in self._counted or later not in self._counted or had_counted or not has_counted:
            return False
        (counter, arrived), (other, afterwards) = self._counted[earlier], self._counted[later]
        return counter == other and arrived < afterwards


def _program() -> int:
    x, y, z = interpreter.interpreter_builder.grid_idx
    return (x << 40) + (y << 20) + z


@contextmanager
def watched() -> Iterator[None]:
    memory, run, patch = interpreter._interpreter, interpreter.GridExecutor.__call__, interpreter._patch_lang
    watch, patched = Watch(memory), set[str]()

    def once(function: Any) -> object:
        """What a kernel calls would replace the whole language once more, at each call, by the same."""
        if function.__module__ not in patched:
            patched.add(function.__module__)
            return patch(function)
        return None

    def watching(self: object, *positional: object, **named: object) -> None:
        watch.begin([*positional, *named.values()])
        patched.clear()
        run(self, *positional, **named)
        watch.end()

    interpreter._interpreter, interpreter.GridExecutor.__call__, interpreter._patch_lang = watch, watching, once
    try:
        yield
    finally:
        interpreter._interpreter, interpreter.GridExecutor.__call__, interpreter._patch_lang = memory, run, patch
