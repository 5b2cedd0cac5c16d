"""Opens the model in a folder of this machine, of whatever kind; each kind imports only what it runs on."""

import json
import os
import shlex
from pathlib import Path

from mercury_engine.api import Engine, EngineError
from mercury_engine.model.runtime import Resources
from mercury_engine.record import ModelRecord, read_record


def open_model(folder: Path | None, resources: Resources = Resources()) -> Engine:  # noqa: B008  frozen
    """The fake engine, which has no folder, for None."""
    if folder is None:
        from mercury_engine.fake import FakeEngine

        return FakeEngine()
    if record := read_record(folder):
        return open_added(folder, record, resources)
    check_layout(folder)
    from mercury_engine.engine import open_engine

    return open_engine(folder, resources)


def open_added(folder: Path, record: ModelRecord, resources: Resources) -> Engine:
    if record.kind == "server":
        raise EngineError(f"{record.name} runs on a server: name a model on this machine")
    if record.kind == "diffusion":
        from mercury_engine.families.engine import open_family

        return open_family(folder, record, resources)
    from mercury_engine.autoregressive.engine import open_autoregressive

    return open_autoregressive(folder, record, resources)


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
