"""How soon the models that ship answer on this machine: measured once, kept, and what `auto` chooses by."""

import hashlib
import os
import platform
from contextlib import suppress
from datetime import date
from pathlib import Path

import msgspec
from msgspec import Struct

LIMIT_MS = 4000.0
"""For the first line at a place that the model has not read. Where the user types on, a line then takes a fifth of
that: one pause in seven is longer (docs/log/2026-Q4.md)."""
AGAIN_DAYS = 7
"""When a model that was too slow is tried again: what slows a machine down may be over."""


class SpeedTrial(Struct, frozen=True):
    """`milliseconds` until the first line, measured on a `day` under `conditions`: without them it is worth nothing."""

    conditions: str
    milliseconds: float
    day: date

    @property
    def is_quick(self) -> bool:
        return self.milliseconds <= LIMIT_MS

    def holds(self, conditions: str, today: date) -> bool:
        """A day that has not come was told by a wrong clock: nobody knows when the trial was."""
        age = (today - self.day).days
        return self.conditions == conditions and age >= 0 and (self.is_quick or age < AGAIN_DAYS)


def kept() -> dict[str, SpeedTrial]:
    """By the name of the model. A file that cannot be read costs another trial."""
    try:
        return msgspec.json.decode(state_file().read_bytes(), type=dict[str, SpeedTrial])
    except (OSError, ValueError):
        return {}


def holding(folder: Path, device: str, threads: int, today: date) -> SpeedTrial | None:
    """The trial of the model in a folder, if it still holds."""
    trial = kept().get(folder.name)
    return trial if trial and trial.holds(conditions(folder, device, threads), today) else None


def keep(model: str, trial: SpeedTrial) -> None:
    """Or not: on a disk that is full or read-only every start is the first one."""
    file = state_file()
    draft = file.with_suffix(".new")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft.write_bytes(msgspec.json.format(msgspec.json.encode({**kept(), model: trial}), indent=2) + b"\n")
        draft.replace(file)


def state_file() -> Path:
    from platformdirs import user_state_path

    return user_state_path("mercury-ls", appauthor=False) / "auto.json"


def conditions(folder: Path, device: str, threads: int) -> str:
    """What a trial depends on, but for what else the machine does."""
    from importlib.metadata import PackageNotFoundError, version

    runtime = "no OpenVINO"
    with suppress(PackageNotFoundError):
        runtime = f"OpenVINO {version('openvino')}"
    weights = "unknown"
    with suppress(OSError):  # what is missing is said when the model is opened
        weights = hashlib.sha256((folder / "checksums.sha256").read_bytes()).hexdigest()[:12]
    return f"{_processor()}, {os.cpu_count()} cores, device {device}, threads {threads}, {runtime}, weights {weights}"


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
