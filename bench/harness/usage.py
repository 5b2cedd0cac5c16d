"""The CPU time and resident memory of processes while something is measured."""

import asyncio
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

EVERY_SECONDS = 1.0
MOMENTS = 10
POINTS = 60


class Usage(Struct):
    """The usage of one process: `memory` holds (time in seconds, MB)."""

    processor_s: float = 0.0
    memory: list[tuple[float, float]] = []
    since_s: float | None = None

    def look(self, pid: int) -> bool:
        """Record the usage now; return True if the process exists."""
        spent, resident = processor_seconds(pid), resident_mb(pid)
        if spent is None or resident is None:
            return False
        self.since_s = spent if self.since_s is None else self.since_s
        self.processor_s = spent - self.since_s
        self.memory.append((time.monotonic(), resident))
        return True

    @property
    def first_mb(self) -> float:
        return self.memory[0][1] if self.memory else 0.0

    @property
    def last_mb(self) -> float:
        return self.memory[-1][1] if self.memory else 0.0

    @property
    def most_mb(self) -> float:
        return max((mb for _, mb in self.memory), default=0.0)

    @property
    def growth_mb(self) -> float:
        """How much more memory the last quarter of the time needed than the second: in the first, caches fill."""
        quarter = len(self.memory) // 4
        if not quarter:
            return self.last_mb - self.first_mb
        early, late = self.memory[quarter : 2 * quarter], self.memory[-quarter:]
        return statistics.median(mb for _, mb in late) - statistics.median(mb for _, mb in early)

    def line(self) -> list[list[float]]:
        """Minutes and MB, for a plot."""
        steps = self.memory[:: max(1, len(self.memory) // POINTS)]
        return [[round((at - steps[0][0]) / 60, 3), round(mb, 1)] for at, mb in steps]

    def course(self) -> str:
        """A few points of the usage, for people."""
        steps = self.memory[:: max(1, len(self.memory) // MOMENTS)]
        return ", ".join(f"{at - self.memory[0][0]:.0f} s {mb:.0f}" for at, mb in steps)


async def watched(pid: int, into: Usage, every: float = EVERY_SECONDS) -> None:
    """Fill `into` until cancelled or the process ends; systems without /proc leave it empty."""
    while into.look(pid):
        await asyncio.sleep(every)


@contextmanager
def busy(processes: int = 1) -> Iterator[None]:
    """Keep this many cores busy meanwhile."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def processor_seconds(pid: int) -> float | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float | None:
    return _told_mb(pid, "VmRSS:")


def peak_mb(pid: int) -> float | None:
    """The peak resident memory since the process started."""
    return _told_mb(pid, "VmHWM:")


def _told_mb(pid: int, name: str) -> float | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = status.partition(name)[2].split()
    return int(found[0]) / 1024 if found else None


def children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
