"""One row for each model: what ships, what was added, what runs here."""

from types import SimpleNamespace

import pytest

from mercury_engine import model_folders
from mercury_engine.record import ModelRecord, write_record
from mercury_ls.models import library
from mercury_ls.models.overview import rows, table
from mercury_ls.serve import added
from mercury_ls.settings.schema import EngineSettings, Settings

QWEN = ModelRecord(
    name="qwen",
    kind="fim",
    prompt="qwen",
    source="Qwen/Qwen2.5-Coder-0.5B",
    licence="apache-2.0",
    parameters=494_000_000,
    precision="int8",
)
SERVER = ModelRecord(
    name="llama", kind="server", prompt="qwen", protocol="llama", address="http://127.0.0.1:8080", model="coder"
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setattr(model_folders, "added_home", lambda: tmp_path / "models")
    monkeypatch.setattr(library, "state_file", lambda: tmp_path / "state.json")
    monkeypatch.setattr(added, "running", list)
    return tmp_path / "models"


def put(home, *records):
    for record in records:
        (home / record.name).mkdir(parents=True)
        write_record(record, home / record.name)


def settings(model):
    return Settings(engine=EngineSettings(model=model))


def test_packaged_model_is_there_before_anything_is_added(home):
    found = rows(settings("auto"))
    assert [(row.name, row.in_use, row.is_added) for row in found] == [("stand-in", True, False)]
    assert found[0].parameters > 10**4
    assert model_folders.NO_MODEL not in table(found)


def test_missing_model_is_named_with_its_remedy(home, monkeypatch):
    monkeypatch.setattr(model_folders, "shipped", dict)
    found = rows(settings("auto"))
    assert found == []
    assert table(found).endswith(model_folders.NO_MODEL)


def test_added_model_is_shown_with_its_measurements(home):
    put(home, QWEN, SERVER)
    library.note("qwen", library.MeasuredSpeed(812.0, 234.0, 1500.0, 900_000_000))
    found = rows(settings("qwen"))
    assert [row.name for row in found if row.in_use] == ["qwen"]
    line = next(line for line in table(found).splitlines() if "qwen" in line)
    assert line.split("  ")[0] == "*"
    for part in ("completions", "494 M", "apache-2.0", "int8", "900 MB", "234 ms", "Qwen/Qwen2.5-Coder-0.5B"):
        assert part in line
    assert "http://127.0.0.1:8080" in table(found)
    assert "recommend" not in table(found)


def test_engine_elsewhere_leaves_none_in_use(home):
    elsewhere = Settings(engine=EngineSettings(address="http://127.0.0.1:8391"))
    assert not any(row.in_use for row in rows(elsewhere))


def test_servers_that_run_here_are_found_once(home, monkeypatch):
    put(home, SERVER)

    def found(port, *names):
        offered = tuple(SimpleNamespace(name=name) for name in names)
        return SimpleNamespace(address=f"http://127.0.0.1:{port}", server="Ollama 0.20", models=offered)

    monkeypatch.setattr(added, "running", lambda: [found(8080, "coder"), found(11434, "a", "b")])
    shown = rows(settings("auto"))
    assert [row.address for row in shown if not row.is_added and row.address] == ["http://127.0.0.1:11434"]
    assert "(a, b)" in table(shown)
    assert "`mercury-ls model add http://127.0.0.1:11434` adds a running server" in table(shown)
