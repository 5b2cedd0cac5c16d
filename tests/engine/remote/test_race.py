"""A server and a model at once. The model is the fake engine, stepped by hand through its drafts."""

from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from bench.harness.servers import document, free_port, serving
from mercury_engine.api import Draft, EngineError, EngineInfo, Region, Regions
from mercury_engine.fake import FakeEngine
from mercury_engine.remote.race import RaceEngine
from tests.engine.remote.test_engine import engine_for, gap, llama, record


class Unsure(FakeEngine):
    """Says what it says with another confidence."""

    def __init__(self, text: str, p_accept: float, **options):
        super().__init__(lambda before: text, **options)
        self.p_accept = p_accept

    def fill(self, gap):
        for draft in super().fill(gap):
            yield replace(draft, p_accept=self.p_accept)


class Telling(Unsure):
    """And tells the probabilities of its tokens."""

    def fill(self, gap):
        for draft in super().fill(gap):
            yield replace(draft, confidence=(0.9,))


class Failing(FakeEngine):
    def fill(self, gap):
        raise EngineError("no memory left")
        yield


@contextmanager
def racing(local, answers=None, **fields):
    with serving(answers or {}) as server, engine_for(record(server, **fields)) as remote:
        yield server, RaceEngine("both", local, remote)


def last(engine, asked=None):
    *_, final = engine.fill(asked or gap())
    assert final.final
    return final


def test_server_is_preferred_if_it_is_first():
    local = FakeEngine(lambda before: "ours", passes=1_000_000)
    with racing(local, {"/completion": llama(" theirs")}) as (_, engine):
        assert last(engine).text == "theirs"
        assert local.forwards < 1_000_000
        assert local.open == 0


def test_sure_model_ends_race_before_server_answers():
    held = {"/completion": lambda line, asked: server.hold(line)}
    with racing(Unsure("ours", 0.9, passes=1), held) as (server, engine):
        assert last(engine).text == "ours"
        assert not server.asked or server.left.wait(5)


def test_model_that_would_not_be_shown_waits_for_server():
    asked = gap(bar=0.74)
    with racing(Telling("ours", 0.6), {"/completion": llama(" theirs")}) as (_, engine):
        assert last(engine, asked).text == "theirs"
    with racing(Telling("ours", 0.8), {"/completion": llama(" theirs", prob=-5)}) as (_, engine):
        assert last(engine, asked).text == "ours"


def test_unsure_model_waits_for_server():
    with racing(Unsure("ours", 0.1), {"/completion": llama(" theirs")}) as (server, engine):
        final = last(engine)
        assert final.text == "theirs"
        assert final.sent.endswith(f"to {server.address}")


def test_neither_is_sure():
    with racing(Unsure("ours", 0.2), {"/completion": llama(" theirs", prob=-5)}) as (_, engine):
        final = last(engine)
        assert final.text == "ours"
        assert final.sent, "the server was asked all the same"


def test_without_the_server_the_model_answers_and_the_notes_say_why():
    with engine_for(record(f"http://127.0.0.1:{free_port()}")) as remote:
        engine = RaceEngine("both", Unsure("ours", 0.1), remote)
        assert last(engine).text == "ours"
        assert "does not answer" in engine.info().notes[0]
        assert last(engine).text == "ours"


def test_server_that_refuses_is_no_answer():
    with racing(Unsure("ours", 0.1), {"/completion": document({"error": "no"}, 400)}) as (_, engine):
        assert last(engine).text == "ours"


def test_model_reason_counts_if_both_fail():
    nobody = record(f"http://127.0.0.1:{free_port()}")
    with engine_for(nobody) as remote, pytest.raises(EngineError, match="no memory left"):
        last(RaceEngine("both", Failing(), remote))


def test_request_that_only_one_can_answer_goes_to_that_one():
    info = EngineInfo("fake", "m", "cpu", 2048, rewrites=True)
    asked = Regions(session="s", regions=(Region("a.py", "python", "theirs\n"),), cursor=0)
    with racing(FakeEngine({"theirs": "ours"}, info=info), {"/completion": llama(" theirs")}) as (server, engine):
        *_, rewrites = engine.rewrite(asked)
        assert rewrites.regions[0].text == "ours\n"
        assert server.asked == []


def test_missing_server_leaves_the_model_alone():
    engine = RaceEngine("both", FakeEngine(lambda before: "ours"), None, "it is on another machine")
    assert last(engine).text == "ours"
    list(engine.warm(gap()))
    info = engine.info()
    assert (info.model, info.notes[0], info.address) == ("both", "it is on another machine", "")


def test_closing_ends_both():
    local = FakeEngine(lambda before: "ours", passes=50)
    with racing(local, {"/completion": lambda line, asked: server.hold(line)}) as (server, engine):
        drafts = engine.fill(gap())
        while not server.asked and local.forwards < 49:
            next(drafts)
        drafts.close()
        assert local.open == 0
        assert not server.asked or server.left.wait(5)


def test_both_read_ahead():
    local = FakeEngine()
    with racing(local, {"/completion": llama(" x")}) as (server, engine):
        list(engine.warm(gap()))
        assert local.warms == 1
        assert server.bodies[0]["n_predict"] == 0


def test_race_describes_both():
    with racing(FakeEngine()) as (server, engine):
        info = engine.info()
        assert (info.engine, info.model, info.address) == ("race", "both", server.address)
        assert (info.fills, info.rewrites) == (True, False)
        assert not info.calibrated


class Reading(FakeEngine):
    """A model that only reads."""

    def info(self):
        return replace(super().info(), reads_per_second=200.0)

    def fill(self, gap):
        yield Draft(unread=700)
        yield Draft(unread=400, final=True)


def test_model_that_still_reads_is_not_taken_for_one_that_has_answered():
    with racing(Reading(lambda before: "")) as (_, engine):
        drafts = list(engine.fill(gap()))
        assert engine.info().reads_per_second == 0
    assert {draft.step for draft in drafts} == {0}
    assert (drafts[-1].unread, drafts[-1].final) == (400, True)
