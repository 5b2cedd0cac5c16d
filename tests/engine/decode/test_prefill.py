"""Long texts are read in bounded chunks, say the same as in one piece, and are refused where they do not fit."""

import re

import msgspec
import numpy as np
import pytest

from mercury_engine.api import EngineError
from mercury_engine.decode.batching import run_unbatched
from mercury_engine.decode.policy import Report
from mercury_engine.decode.prefill import CHUNK, SCORES, SHORTEST_CHUNK, chunk_at, prefill, reading_bytes, tokens_within
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.model.config import TINY
from mercury_engine.model.network import create
from mercury_engine.model.runtime import Rows
from mercury_engine.model.torch_runtime import TorchRuntime
from mercury_engine.tokens.prefix import HintedPrefix
from tests.engine.autoregressive.models import CONFIG, Scripted, engine
from tests.engine.tiny import request

LONG = msgspec.structs.replace(TINY, hints=False, context=16_384, layers=1)


@pytest.mark.parametrize(
    ("cached", "rows"), [(0, CHUNK), (8_000, CHUNK), (16_384, CHUNK), (32_768, 128), (131_072, SHORTEST_CHUNK)]
)
def test_chunks_are_shorter_behind_a_long_text(cached, rows):
    assert chunk_at(cached) == rows
    assert chunk_at(cached, 64) == min(rows, 64)


@pytest.mark.slow
def test_16k_tokens_in_chunks_are_those_in_one_forward():
    runtime = TorchRuntime(create(LONG, 0))
    ids = np.random.default_rng(0).integers(300, LONG.vocabulary, LONG.context - 1).astype(np.int32)
    positions = np.arange(len(ids), dtype=np.int32)
    at_once = runtime.forward(Rows(ids, positions, wanted=[len(ids) - 1]), runtime.cache()).logits_WV
    session, pauses = EngineSession(runtime.cache()), 0
    prefix = HintedPrefix.without_hints(ids, positions)

    def read():
        while (yield from prefill(session, prefix, Report(), leave=1)):
            yield

    for _ in run_unbatched(runtime, read()):
        pauses += 1
    assert pauses == 64, "each chunk is a cancel point"
    assert session.cache.length == len(ids) - 1
    last = Rows(ids[-1:], positions[-1:], wanted=[0])
    assert runtime.forward(last, session.cache).logits_WV == pytest.approx(at_once, abs=2e-4)


def test_what_reading_takes_grows_with_the_text_and_not_with_its_square():
    runtime = Scripted("", config=msgspec.structs.replace(CONFIG, context=131_072))
    short, long = (reading_bytes(runtime, tokens) for tokens in (16_384, 131_072))
    assert short < long < 8.1 * short
    pairs = max(SCORES, SHORTEST_CHUNK * 131_072)
    assert reading_bytes(runtime, 131_072) == 131_072_000 + 4 * pairs * (1 + 3 * CONFIG.heads)
    for room in (0, 100_000, 10_000_000):
        fits = tokens_within(runtime, room)
        assert reading_bytes(runtime, fits + 1) > room
        assert fits == -1 or reading_bytes(runtime, fits) <= room


def test_a_text_that_does_not_fit_is_refused_with_numbers_before_it_is_read():
    runtime = Scripted("x = self")
    answering = engine(runtime, room=900_000, weights=5 << 20)
    list(answering.infill(request("x = $0\n", budget=4)))
    runtime.reads.clear()
    with pytest.raises(EngineError) as refused:
        list(answering.infill(request("a = 1\n" * 90 + "x = $0\n")))
    told = re.fullmatch(
        r".*: (\d+) tokens take (\d+) MiB beside the weights, and engine\.memory_mb leaves 1: "
        r"raise it to (\d+), or lower context\.budget_tokens: (\d+) fit",
        str(refused.value),
    )
    tokens, needed, raised, fits = map(int, told.groups())
    assert reading_bytes(runtime, tokens) <= needed << 20
    assert raised == needed + 5
    assert 0 < fits < tokens
    assert runtime.reads == []
