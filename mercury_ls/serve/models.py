"""Opens the engine that the setting `engine.model` names."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mercury_engine.api import Engine
from mercury_engine.model_folders import resolve
from mercury_engine.record import ModelRecord, read_record
from mercury_ls.link import local

if TYPE_CHECKING:
    from mercury_engine.model.runtime import Resources
    from mercury_ls.serve.worker import LoadEngine
    from mercury_ls.settings.schema import EngineSettings, Settings

Report = Callable[[float, str], None]
"""The progress of a piece of work, from 0 to 1, and its name."""


def loader(settings: "Settings") -> "LoadEngine":
    engine, network = settings.engine, settings.privacy.allow_network

    def load(report: Report) -> Engine:
        local.return_dropped_memory()
        return open_model(resolve(engine.model), engine, report, network=network)

    return load


def verify(folder: Path) -> None:
    """Read everything that an engine needs from a model; `EngineError` names what is damaged or missing."""
    if record := read_record(folder):
        _verify_added(folder, record)
        return
    from mercury_engine.model import export
    from mercury_engine.opening import check_layout
    from mercury_engine.tokens.tokenizer import Tokenizer

    check_layout(folder)
    export.read(folder)
    Tokenizer.load(folder / export.TOKENIZER_FILE)


def _verify_added(folder: Path, record: ModelRecord) -> None:
    if record.kind == "server":
        return
    from mercury_engine.model.config import TOKENIZER_FILE
    from mercury_engine.model.convert import read_converted
    from mercury_engine.tokens.pretrained import PretrainedTokenizer

    read_converted(folder)
    PretrainedTokenizer(folder / TOKENIZER_FILE)


def open_model(folder: Path | None, settings: "EngineSettings", report: Report, *, network: bool = False) -> Engine:
    """Open a model; `network` allows a server on another machine."""
    from mercury_engine import opening

    if folder is None:
        return opening.open_model(folder)
    report(0.1, f"reading {folder.name}")
    if (record := read_record(folder)) and record.kind == "server":
        from mercury_engine.remote.engine import open_remote

        return open_remote(record, network=network)
    return opening.open_model(folder, resources(settings))


def resources(settings: "EngineSettings") -> "Resources":
    from mercury_engine.model.runtime import Resources

    return Resources(settings.device, settings.threads, settings.memory_mb << 20, local.free_memory)
