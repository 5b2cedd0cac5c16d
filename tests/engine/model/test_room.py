"""How much room there is for a text is the same question for every runtime, and for all that reads."""

import re
from types import SimpleNamespace

import msgspec
import pytest

from mercury_engine.api import TooLongError
from mercury_engine.families.engine import FamilyEngine
from mercury_engine.families.family import family_named
from mercury_engine.model.config import TINY
from mercury_engine.model.openvino_runtime import OpenvinoCache
from mercury_engine.model.room import CHUNK, SCORES, SHORTEST_CHUNK, TOKEN, Room, chunk_at, reading_bytes, room_of
from mercury_engine.model.runtime import Resources, score_bytes
from mercury_engine.model.silent_openvino import ov
from mercury_engine.model.torch_runtime import TorchRuntime
from mercury_engine.record import ModelRecord
from mercury_training.models import create
from tests.engine.autoregressive.models import CONFIG, FIM, Scripted, engine
from tests.engine.families import fakes
from tests.engine.families.fakes import ListCache
from tests.engine.tiny import gap

LONG = msgspec.structs.replace(CONFIG, context=131_072)
MIB = 1 << 20


def scripted(answer="", **options):
    return Scripted(answer, **({"config": LONG} | options))


@pytest.mark.parametrize(
    ("cached", "rows"), [(0, CHUNK), (8_000, CHUNK), (16_384, CHUNK), (32_768, 128), (131_072, SHORTEST_CHUNK)]
)
def test_chunks_are_shorter_behind_a_long_text(cached, rows):
    assert chunk_at(cached) == rows
    assert chunk_at(cached, 64) == min(rows, 64)


def test_reading_memory_grows_with_the_text_and_if_at_once_with_its_square():
    runtime, cache = scripted(), ListCache(1000)
    short, long = (reading_bytes(runtime, cache, tokens) for tokens in (16_384, 131_072))
    assert short < long < 8.1 * short
    assert long == 131_072 * (1000 + TOKEN) + score_bytes(LONG, 1, max(SCORES, SHORTEST_CHUNK * 131_072))
    assert reading_bytes(runtime, cache, 16_384, at_once=True) > 50 * short


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("memory", [4 << 20, 20 << 20])
def test_as_much_is_allowed_as_there_is_memory_for(memory, at_once):
    runtime, cache = scripted(), ListCache(1000)
    room = Room(runtime, "tiny", memory)
    fits = 10 + room.allow(10, 1 << 20, cache, at_once=at_once)
    assert reading_bytes(runtime, cache, fits, at_once=at_once) <= memory
    assert reading_bytes(runtime, cache, fits + 1, at_once=at_once) > memory
    assert room.allow(10, 3, cache, at_once=at_once) == 3
    assert room.allow(fits - 5, 50, cache, canvas=4, at_once=at_once) == 1
    with pytest.raises(TooLongError, match=rf"tiny: {fits - 4} tokens .*enough for {fits} tokens"):
        room.allow(fits - 4, 50, cache, canvas=4, at_once=at_once)


def test_cached_text_takes_no_free_memory():
    runtime, cache = scripted(), ListCache(1000)
    cache.entries = [1] * 5000
    free = reading_bytes(runtime, cache, 5100) - cache.bytes
    assert Room(runtime, "tiny", free=lambda: free).allow(5000, 900, cache) == 100
    with pytest.raises(TooLongError):
        Room(runtime, "tiny", free=lambda: free).allow(5000, 900, ListCache(1000))


def test_reserved_memory_is_free_for_nobody_else():
    runtime, first, second = scripted(), ListCache(1000), ListCache(1000)
    free = reading_bytes(runtime, first, 100_000)
    room = Room(runtime, "tiny", free=lambda: free - first.bytes - second.bytes)
    told = "MiB are free on cpu besides what other texts will take, .*: ask again when they are answered, send less"
    with room.reserved(99_000, 1000, first) as allowed:
        assert allowed == 1000
        for read in (0, 50_000, 100_000):
            first.entries = [1] * read
            assert room.allow(99_000, 1000, first) == 1000
            with pytest.raises(TooLongError, match=told):
                room.allow(99_000, 1000, second)
    first.entries = []
    assert room.allow(99_000, 1000, second) == 1000


def check_promise(room, work):
    """It is kept while something is read, and given back when nobody waits for it any more."""
    next(work)
    assert len(room.promised) == 1
    work.close()
    assert room.promised == []


@pytest.mark.parametrize("what", ["fill", "warm"])
def test_completions_give_back_what_they_were_promised(what):
    runtime = scripted("x = self")
    room = Room(runtime, FIM.name)
    check_promise(room, getattr(engine(runtime, room=room), what)(gap("a = 1\n" * 900 + "x = $0\n")))


@pytest.mark.parametrize(("what", "effort"), [("fill", "low"), ("fill", "high"), ("warm", "low")])
@pytest.mark.parametrize("name", ["dream", "sdar"])
def test_diffusion_models_give_back_what_they_were_promised(name, what, effort):
    room, answering = diffusing(name)
    asked = fakes.gap("a = 1\n" * 90 + "$0", block=True, effort=effort)
    check_promise(room, getattr(answering, what)(asked))


def diffusing(name, memory=0):
    family = family_named(name)
    tokens = fakes.tokenizer_of(family)
    (token,) = tokens.encode("a")
    runtime = fakes.ScriptedRuntime(family, tokens, lambda runtime, sequence: lambda position: (token, 0.9))
    room = Room(runtime, "tiny", memory)
    record = ModelRecord(name="tiny", kind="diffusion", prompt=name)
    return room, FamilyEngine(runtime, tokens, record, family, room=room)


@pytest.mark.parametrize(
    ("room", "told"),
    [
        (
            {"memory": 90 * MIB, "weights": 5 * MIB},
            "engine.memory_mb leaves 90 MiB, enough for # tokens: raise it to 370",
        ),
        (
            {"memory": 900 * MIB, "free": lambda: 40 * MIB},
            "40 MiB are free on cpu, enough for # tokens: end what else uses it",
        ),
    ],
)
def test_refusal_says_what_is_needed_what_there_is_and_what_to_do(room, told):
    with pytest.raises(TooLongError) as refused:
        Room(scripted(), "tiny", **room).allow(131_000, 64, ListCache(1000), remedy="wait")
    assert re.sub(r"for \d+", "for #", str(refused.value)) == (
        f"tiny: 131000 tokens and an answer take 365 MiB besides the weights, but {told}, wait, send less text (in an "
        "editor by a lower context.budget_tokens), or choose a smaller model"
    )


def test_text_longer_than_context_is_refused_with_both_lengths():
    room = Room(scripted(), "tiny")
    assert room.allow(131_000, 100, ListCache(1000)) == 72
    with pytest.raises(TooLongError, match="tiny: 131072 tokens and an answer exceed its context of 131072: send less"):
        room.allow(131_072, 100, ListCache(1000))


def test_memory_of_model_is_what_settings_and_machine_have(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(bytes(1000))
    room = room_of(scripted(), "tiny", tmp_path, Resources(memory=1 << 30, free=lambda: 7))
    assert (room.memory, room.weights, room.caches, room.free()) == ((1 << 30) - 1000, 1000, (1 << 30) - 1000, 7)
    room = room_of(scripted(), "tiny", tmp_path, Resources())
    assert (room.memory, room.caches, room.free()) == (0, 256 << 20, 0)


def openvino_cache(rows):
    cache = OpenvinoCache(2, 4, ov.Type.f32)
    cache.append(SimpleNamespace(key_values_BRE=cache._buffer_BCE[:, :1].repeat(rows, 1)), range(rows))
    return cache


def torch_cache(rows):
    runtime = TorchRuntime(create(TINY, 0))
    cache = runtime.cache()
    cache._reserve(rows)
    return cache


@pytest.mark.parametrize("cache_of", [openvino_cache, torch_cache])
def test_cache_says_what_it_takes_while_it_grows(cache_of):
    for rows in (1, 300, 2000):
        cache = cache_of(300)
        before, expected = cache.bytes, cache.bytes_for(rows)
        assert expected == before if rows <= 300 else expected > before
        assert expected < 2 * cache_of(max(rows, 300)).bytes


def test_completions_and_reading_ahead_are_refused_before_any_reading():
    runtime = scripted("x = self")
    answering = engine(runtime, room=Room(runtime, FIM.name, 5_500_000, 5 << 20))
    *_, last = answering.fill(gap("x = $0\n", most_tokens=4))
    assert last.final
    runtime.reads.clear()
    for work in (answering.fill, answering.warm):
        with pytest.raises(TooLongError, match=rf"{FIM.name}: \d+ tokens .*leaves 5 MiB.* raise it to \d+, send less"):
            list(work(gap("a = 1\n" * 900 + "x = $0\n")))
    assert runtime.reads == []


@pytest.mark.parametrize("name", ["dream", "sdar"])
def test_diffusion_models_refuse_in_the_same_words(name):
    room, refusing = diffusing(name, 2000)
    for work in (refusing.fill, refusing.warm):
        with pytest.raises(TooLongError, match=r"tiny: \d+ tokens and an answer take [12] MiB"):
            list(work(fakes.gap("a = 1\n" * 90 + "$0", block=True)))
    assert room.runtime.rows == []
