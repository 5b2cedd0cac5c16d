"""Long texts are read in bounded chunks, and say the same as in one piece."""

from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from mercury_engine.chat.reading import CachedConversation, ConversationCanvas, Manner
from mercury_engine.decode.batching import run_unbatched
from mercury_engine.decode.policy import Report
from mercury_engine.decode.reading import CHUNKS, ReadingPace
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.model import room
from mercury_engine.model.config import TINY
from mercury_engine.model.runtime import Rows
from mercury_engine.model.torch_runtime import TorchRuntime
from mercury_training.models import create
from tests.engine.tiny import FLAT

LONG = msgspec.structs.replace(TINY, context=4096, layers=1)
IDS = np.random.default_rng(0).integers(300, LONG.vocabulary, LONG.context - 1).astype(np.int32)
POSITIONS = np.arange(len(IDS), dtype=np.int32)


def read_as_code(runtime, ids):
    session = EngineSession(runtime.cache())
    report, pace = Report(), ReadingPace(FLAT)

    def read():
        while (yield from pace.read(session, ids, report, leave=1, chunk=CHUNKS[0])):
            yield

    pauses = sum(1 for _ in run_unbatched(runtime, read()))
    last = Rows(ids[-1:], POSITIONS[-1:], rows=[0])
    return runtime.forward(last, session.cache).logits_WV, pauses


def read_as_conversation(runtime, ids):
    canvas = ConversationCanvas(runtime, Manner(block=1, shift=True), CachedConversation(runtime.cache()))
    pauses = sum(1 for _ in canvas.catch_up(ids.tolist()))
    return canvas.logits(ids.tolist(), [-1]), pauses


@pytest.mark.parametrize("read", [read_as_code, read_as_conversation])
def test_4k_tokens_in_shrinking_chunks_are_those_in_one_forward(read, monkeypatch):
    monkeypatch.setattr(room, "SCORES", 1 << 18)
    runtime, rows = TorchRuntime(create(LONG, 0)), []
    at_once = runtime.forward(Rows(IDS, POSITIONS, rows=[len(IDS) - 1]), runtime.cache()).logits_WV
    counted = SimpleNamespace(**vars(runtime), cache=runtime.cache, forward=None)
    counted.forward = lambda given, cache: rows.append(len(given.ids_R)) or runtime.forward(given, cache)
    found, pauses = read(counted, IDS)
    assert found == pytest.approx(at_once, abs=5e-6)
    assert (rows[0], rows == sorted(rows, reverse=True), sum(rows)) == (256, True, len(IDS))
    assert pauses == len(rows) - 1, "each chunk is a cancel point"
    other = IDS.copy()
    other[0] += 1
    assert np.abs(read(runtime, other)[0] - found).max() > 1e-4, "the last token sees the first"
