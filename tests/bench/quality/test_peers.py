import asyncio
from pathlib import Path

import pytest

from bench.quality.contenders import model_folder, opened
from mercury_engine.api import EngineError
from mercury_engine.model.config import TINY
from mercury_engine.model.export import export
from mercury_engine.record import ModelRecord, write_record
from mercury_training.models import create, save
from tests.engine import tiny

TOKENIZER = Path(tiny.__file__).parent / "golden" / "tokenizer.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Random weights."""
    source, target = (tmp_path_factory.mktemp(name) for name in ("float", "int8"))
    save(create(TINY, 0), source)
    (source / "tokenizer.json").write_bytes(TOKENIZER.read_bytes())
    export(source, target)
    return target


def open_contender(name: str, engine: str = "fake") -> tuple[str, str]:
    async def described():
        async with opened(name, engine) as contender:
            return contender.name, contender.client.status.info.engine

    return asyncio.run(described())


@pytest.mark.slow
def test_contenders_by_name(folder, tmp_path):
    record = ModelRecord(name="served", kind="server", prompt="", protocol="inception", address="http://127.0.0.1:9")
    write_record(record, tmp_path)
    assert open_contender("fake") == ("fake", "fake")
    assert open_contender("peer:ngram") == ("ngram", "n-gram")
    assert open_contender(str(folder)) == (folder.name, "mercury")
    assert open_contender("peer:ar", str(folder)) == ("ar", "mercury")
    assert open_contender(f"peer:{tmp_path}") == (tmp_path.name, "server")


def test_unknown_peer_is_refused_with_the_known_ones():
    with pytest.raises(EngineError, match=r"not one of the peers ar, .*ngram, .*effort:high: .*'telepathy'"):
        open_contender("peer:telepathy")
    with pytest.raises(EngineError, match="no model is installed"):
        open_contender("peer:ar")
    assert model_folder("fake") is None
