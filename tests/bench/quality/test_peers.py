import asyncio
from pathlib import Path

import numpy as np
import pytest

from bench.quality.contenders import model_folder, opened
from bench.quality.left_to_right import LeftToRight
from bench.quality.llama import LlamaPeer
from mercury_engine.api import EngineError
from mercury_engine.model.config import TINY
from mercury_engine.model.export import export
from mercury_engine.model.network import Model, create, save
from mercury_engine.model.published import write_gguf
from mercury_engine.record import ModelRecord, write_record
from tests.engine import tiny
from tests.engine.tiny import LINES, final, gap, learnt_runtime

TOKENIZER = Path(tiny.__file__).parent / "golden" / "tokenizer.json"
AREA = gap(f"{LINES[1][:4]}$0\n", most_tokens=32)


def shipped(model: Model, tmp_path_factory) -> Path:
    source, target = (tmp_path_factory.mktemp(name) for name in ("float", "int8"))
    save(model, source)
    (source / "tokenizer.json").write_bytes(TOKENIZER.read_bytes())
    export(source, target)
    return target


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Random weights."""
    return shipped(create(TINY, 0), tmp_path_factory)


@pytest.fixture(scope="module")
def learnt(tmp_path_factory) -> Path:
    """A model that knows a few lines by heart."""
    return shipped(learnt_runtime().model, tmp_path_factory)


class Scripted:
    """Says the tokens it is given, whatever it reads, and notes what it reads."""

    def __init__(self, tokens: list[int]) -> None:
        self._tokens = iter(tokens)
        self.read: list[int] = []
        self.kept: list[int] = []

    def logits(self, tokens: np.ndarray) -> np.ndarray:
        self.read.append(len(tokens))
        found = np.zeros(TINY.vocabulary, np.float32)
        found[next(self._tokens, 0)] = 9.0
        return found

    def keep(self, length: int) -> None:
        self.kept.append(length)


def test_token_costs_one_forward_and_context_is_read_once(folder):
    tokens = tiny.TOKENIZER.encode("f area(self):\n")
    reader = Scripted([0, *tokens, 0, *tokens])
    engine = LeftToRight(folder, reader, "scripted", "exact")
    list(engine.warm(AREA))
    drafts = list(engine.fill(AREA))
    assert reader.read == [len(engine.row(AREA).ids) - 1, *[1] * len(drafts)]
    list(engine.warm(AREA))
    assert reader.kept[-1] == len(engine.row(AREA).ids) - 2


def answers(engine) -> list[str]:
    return [final(engine, gap(f"{line[:4]}$0\n", most_tokens=32)).text for line in LINES]


def in_full() -> list[str]:
    return [line[4:] for line in LINES]


@pytest.mark.slow
def test_llama_cpp_says_what_the_model_knows(learnt, tmp_path):
    pytest.importorskip("llama_cpp")
    peer = LlamaPeer(write_gguf(learnt, tmp_path), 1)
    try:
        assert answers(LeftToRight(learnt, peer, "llama.cpp", "as stored")) == in_full()
    finally:
        peer.close()


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
