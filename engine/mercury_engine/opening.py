"""Opens the model in a folder of this machine, of whatever kind; each kind imports only what it runs on."""

import json
import os
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mercury_engine.api import Engine, EngineError
from mercury_engine.model.runtime import Resources, on_gpu, weight_bytes
from mercury_engine.record import ModelRecord, read_record

OPENED_BYTES = 220 << 20
"""What the process of an opened model takes at least, besides the weights."""


def open_model(folder: Path | None, resources: Resources = Resources()) -> Engine:  # noqa: B008  frozen
    """The fake engine, which has no folder, for None."""
    if folder is None:
        from mercury_engine.fake import FakeEngine

        return FakeEngine()
    if record := read_record(folder):
        return open_added(folder, record, resources)
    check_layout(folder)
    from mercury_engine.engine import open_engine

    return _opened(folder, resources, partial(open_engine, folder, resources))


def open_added(folder: Path, record: ModelRecord, resources: Resources) -> Engine:
    if record.kind == "server":
        raise EngineError(f"{record.name} runs on a server: name a model on this machine")
    if record.kind == "diffusion":
        from mercury_engine.families.engine import open_family

        return _opened(folder, resources, partial(open_family, folder, record, resources))
    from mercury_engine.autoregressive.engine import open_autoregressive

    return _opened(folder, resources, partial(open_autoregressive, folder, record, resources))


def _opened(folder: Path, resources: Resources, open_there: Callable[[], Engine]) -> Engine:
    """The engine, unless there is too little memory for it: OpenVINO would find out after half a minute, and the system
    might end the process instead. What OpenVINO and torch raise tells no remedy."""
    needed, free = weight_bytes(folder) + OPENED_BYTES, resources.free()
    remedy = "end other programs, allow it more memory, or choose a smaller model"
    if 0 < free < needed and not on_gpu(resources):
        raise EngineError(
            f"{folder.name} needs at least {needed >> 20} MiB of memory, and {free >> 20} are free: {remedy}"
        )
    try:
        return open_there()
    except (MemoryError, RuntimeError) as error:
        reason = next((line for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
        raise EngineError(f"{folder.name} cannot be opened ({reason.strip()}): if memory is short, {remedy}") from error


def check_layout(folder: Path) -> None:
    """Refuse a checkpoint in its published format. Damage is left to the engine to report."""
    try:
        published = "architectures" in json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError, TypeError, RecursionError):
        return
    if published:
        spelled = os.path.join(os.curdir, folder)
        raise EngineError(
            f"{spelled} is a checkpoint as it was published: "
            f"`mercury-ls model add {shlex.quote(spelled)}` makes a model of it"
        )
