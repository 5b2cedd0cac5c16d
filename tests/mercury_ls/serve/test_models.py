import pytest

from bench.harness.tiny import checkpoint
from mercury_engine.api import EngineError
from mercury_engine.model.convert import convert
from mercury_engine.record import ModelRecord, write_record
from mercury_ls.serve.models import loader, verify
from mercury_ls.settings.load import load


def opened(folder, *, network=False, **fields):
    """The engine of an added server, as an engine server opens it with these arguments."""
    record = ModelRecord(name="theirs", kind="server", prompt="qwen", protocol="openai", **fields)
    folder.mkdir(exist_ok=True)
    write_record(record, folder)
    arguments = {"engine.model": str(folder), "privacy.allow_network": str(network)}
    loaded = load(arguments=arguments)
    assert loaded.problems == ()
    return loader(loaded.settings)(lambda share, what: None)


def test_server_on_another_machine_is_asked_only_if_allowed(tmp_path):
    elsewhere = {"address": "https://models.example.org"}
    with pytest.raises(EngineError, match=r"privacy\.allow_network"):
        opened(tmp_path / "theirs", **elsewhere)
    engine = opened(tmp_path / "theirs", network=True, **elsewhere)
    assert engine.info().address == "https://models.example.org"


def test_added_model_is_verified_by_its_own_files(tmp_path):
    source, target = checkpoint(tmp_path / "source"), tmp_path / "theirs"
    target.mkdir()
    convert(source, target, "int8")
    write_record(ModelRecord(name="theirs", kind="fim", prompt="qwen"), target)
    verify(target)
    (target / "tokenizer.json").write_text("{")
    with pytest.raises(EngineError, match=r"tokenizer\.json"):
        verify(target)
    (target / "weights.safetensors").write_bytes(b"12345678")
    with pytest.raises(EngineError, match=r"weights\.safetensors"):
        verify(target)
