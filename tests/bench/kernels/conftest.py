"""The kernels that a benchmark launches are watched like those of their own tests."""

from tests.kernels.conftest import only_own_memory

__all__ = ["only_own_memory"]
