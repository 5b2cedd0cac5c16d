"""Each kind of model is opened from its folder, or refused with a remedy."""

import pytest

from bench.harness.tiny import checkpoint
from mercury_engine.api import EngineError
from mercury_engine.autoregressive.engine import AutoregressiveEngine
from mercury_engine.model.runtime import Resources
from mercury_engine.opening import open_model
from mercury_engine.record import ModelRecord, write_record

CPU = Resources("cpu", threads=1)


def added(folder, **record):
    """A tiny model as `mercury-ls model add` leaves it."""
    write_record(ModelRecord(**{"name": "tiny", "kind": "fim", "prompt": "qwen"} | record), checkpoint(folder))
    return folder


def test_added_model_is_opened_as_its_record_says(tmp_path):
    opened = open_model(added(tmp_path), CPU)
    assert isinstance(opened, AutoregressiveEngine)
    assert opened.info().model == "tiny"
    assert opened.info().reads_per_second > 0


def test_fake_engine_has_no_folder():
    assert open_model(None).info().engine == "fake"


def test_what_does_not_run_from_its_folder_is_refused(tmp_path):
    with pytest.raises(EngineError, match=r"published: `mercury-ls model add .*` makes a model of it"):
        open_model(checkpoint(tmp_path / "published"), CPU)
    with pytest.raises(EngineError, match="tiny runs on a server: name a model on this machine"):
        open_model(added(tmp_path / "server", kind="server"), CPU)


def test_model_that_does_not_fit_is_refused_before_it_is_opened(tmp_path):
    short = Resources("cpu", threads=1, free=lambda: 100 << 20)
    with pytest.raises(EngineError, match=r"needs at least 220 MiB of memory, and 100 are free: end other programs"):
        open_model(added(tmp_path), short)


def test_failure_of_the_runtime_says_what_to_do(tmp_path, monkeypatch):
    def fail(*arguments: object) -> None:
        raise RuntimeError("Exception from src/plugin.cpp:\n\n[CPU] Transpose can't alloc\n\n")

    monkeypatch.setattr("mercury_engine.autoregressive.engine.open_autoregressive", fail)
    with pytest.raises(EngineError, match=r"cannot be opened \(\[CPU\] Transpose can't alloc\): if memory is short"):
        open_model(added(tmp_path), CPU)
