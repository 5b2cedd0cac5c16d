"""Answers of tiny random models: how they end, what is settled, what they cost, and what stays read."""

import json
import sys
from itertools import pairwise
from threading import Event

import jsonschema
import numpy as np
import pytest
from msgspec.structs import replace

from mercury_engine.api import ChatRequest, EngineError, Message, Tool, TooLongError
from mercury_engine.chat import talker as module
from mercury_engine.chat.calls import Dialogue
from mercury_engine.chat.drafting import PACES, DraftBlock
from mercury_engine.chat.template import ChatTemplate
from mercury_engine.chat.vocabulary import TokenChooser
from mercury_engine.model.room import reading_bytes
from mercury_engine.model.runtime import Rows
from tests.engine.chat.models import opened, opened_left_to_right
from tests.engine.families import fakes

FAMILIES = {"sdar-8": "tools", "llada": "llama", "dream": "tools", "fast-dllm-v2": "chatml", "tiny-a2d": "chatml"}
LEFT_TO_RIGHT = "left to right"
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
ADD = Tool(
    "add",
    parameters='{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],'
    ' "additionalProperties": false}',
)


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    engines = {
        family: opened(tmp_path_factory.mktemp(family), family, template) for family, template in FAMILIES.items()
    }
    return engines | {LEFT_TO_RIGHT: opened_left_to_right(tmp_path_factory.mktemp("left"))}


@pytest.fixture
def engine(engines):
    return engines["dream"]


def request(text="hello", **fields):
    return ChatRequest(**{"session": text, "messages": (Message("user", text),), "most_tokens": 40} | fields)


def forwards(replies):
    """Those after which there was a forward; before them nothing is said."""
    return (reply for reply in replies if reply.step)


def test_slow_template_or_schema_does_not_hold_up_completions(engine, monkeypatch):
    go, render = Event(), Dialogue.render
    monkeypatch.setattr(Dialogue, "render", lambda self, request: go.wait(60) and render(self, request))
    slow, given_up = engine.chat(request("slow")), engine.chat(request("given up"))
    assert next(slow) is next(slow)
    assert next(given_up).text == ""
    given_up.close()
    *_, completed = engine.fill(fakes.gap("def area(w, h):\n    return $0\n"))
    assert completed.final
    go.set()
    *_, last = slow
    assert last.final


@pytest.mark.parametrize("effort", PACES)
@pytest.mark.parametrize("family", [*FAMILIES, LEFT_TO_RIGHT])
def test_answers_end_and_what_is_settled_stays(engines, family, effort):
    assert engines[family].info().chats
    asked = request(family + effort, effort=effort, slots=True)
    *drafts, last = said = list(forwards(engines[family].chat(asked)))
    assert (last.final, last.answer_tokens <= 40) == (True, True)
    assert not any(draft.final for draft in drafts)
    assert [draft.step for draft in said[:-1]] == [*range(1, len(said))]
    for before, after in pairwise(said):
        assert after.text[: before.settled] == before.text[: before.settled]
        assert after.settled >= before.settled
    assert last.settled == len(last.text)
    assert len(last.slots) == last.answer_tokens
    assert "".join(slot.text for slot in last.slots).count("\ufffd") >= last.text.count("\ufffd")


@pytest.mark.parametrize("family", [*FAMILIES, LEFT_TO_RIGHT])
@pytest.mark.parametrize("effort", PACES)
def test_json_is_true_to_its_schema_whatever_a_model_says(engines, family, effort):
    *_, last = engines[family].chat(request(effort, effort=effort, schema=json.dumps(PERSON), most_tokens=48))
    assert last.finish == "stop"
    jsonschema.validate(json.loads(last.text), PERSON)


@pytest.mark.parametrize("most", range(38, 46))
def test_json_is_closed_within_any_budget_that_has_room_for_it(engine, most):
    *_, last = engine.chat(request(schema=json.dumps(PERSON), most_tokens=most, temperature=1.0, seed=most))
    jsonschema.validate(json.loads(last.text), PERSON)
    assert (last.finish, last.answer_tokens <= most) == ("stop", True)


def test_json_for_which_there_is_no_room_is_too_long(engine):
    *_, last = engine.chat(request(schema=json.dumps(PERSON), most_tokens=8))
    assert (last.finish, last.answer_tokens) == ("length", 8)


@pytest.mark.parametrize("choice", ["required", "add"])
def test_calls_are_true_to_their_schemas(engines, choice):
    for family, engine in engines.items():
        *_, last = engine.chat(request(family, tools=(ADD,), tool_choice=choice, most_tokens=90))
        assert (last.finish, last.text) == ("tool_calls", "")
        assert all(isinstance(json.loads(call.arguments)["a"], int) for call in last.calls)


def test_draft_of_call_is_not_text(engine):
    for said in engine.chat(request(tools=(ADD,), tool_choice="add", most_tokens=90)):
        assert said.text == ""


def test_text_ends_before_a_stop(engine):
    *_, plain = engine.chat(request())
    stop = plain.text[10:12]
    *_, last = engine.chat(request(stops=(stop,)))
    assert (last.text, last.finish) == (plain.text[: plain.text.index(stop)], "stop")


def test_seed_draws_the_same_again_and_another_seed_something_else(engine):
    texts = [[*engine.chat(request(temperature=1.0, seed=seed))][-1].text for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_less_effort_takes_fewer_passes(engine):
    passes = [len(list(engine.chat(request(effort, effort=effort)))) for effort in ("instant", "low", "medium", "high")]
    assert passes == sorted(passes)
    assert passes[0] < passes[-1] / 5


def test_late_answer_is_closed_without_another_forward(engine, monkeypatch):
    talker, now = engine._talker, [0.0]
    monkeypatch.setattr(talker, "clock", lambda: now[0])
    monkeypatch.setattr(talker, "forward_ms", 0.0)
    before, said = talker.forwards, []
    asked = request(schema=json.dumps(PERSON), effort="high", deadline_ms=100, most_tokens=60)
    for each in forwards(engine.chat(asked)):
        said.append(each)
        now[0] += 0.06
    assert talker.forwards - before == 2
    assert said[-1].finish == "stop"
    jsonschema.validate(json.loads(said[-1].text), PERSON)


@pytest.mark.parametrize(
    "more", [{"schema": json.dumps(PERSON)}, {"tools": (ADD,), "tool_choice": "required"}, {"tools": (ADD,)}]
)
def test_answer_under_a_grammar_is_the_same_with_pauses_anywhere(engines, monkeypatch, more):
    for family, engine in engines.items():
        monkeypatch.setattr(module, "SLICE_SECONDS", float("inf"))
        whole = [*forwards(engine.chat(request(family, most_tokens=90, **more)))]
        monkeypatch.setattr(module, "SLICE_SECONDS", 0.0)
        paused = [*forwards(engine.chat(request(family, most_tokens=90, **more)))]
        news = [reply for before, reply in pairwise([None, *paused]) if reply is not before]
        assert len(paused) > len(news)
        assert [reply.text for reply in news] == [reply.text for reply in whole]
        assert news[-1].calls == whole[-1].calls


@pytest.mark.parametrize("pauses", range(1, 200, 11))
def test_answer_that_is_late_at_any_pause_is_true_to_its_schema(engine, monkeypatch, pauses):
    talker, late = engine._talker, [0.0]
    monkeypatch.setattr(module, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(talker, "clock", lambda: late[0])
    replies = engine.chat(request(schema=json.dumps(PERSON), deadline_ms=100, most_tokens=60, temperature=1.0))
    seen = []
    for reply in forwards(replies):
        seen.append(reply)
        late[0] = float(len(seen) > pauses)
    last = seen[-1]
    assert last.finish == "stop"
    jsonschema.validate(json.loads(last.text), PERSON)


def test_late_text_ends_where_it_stands(engine, monkeypatch):
    monkeypatch.setattr(engine._talker, "clock", lambda: 0.0)
    *_, last = engine.chat(request(deadline_ms=0))
    assert (last.text, last.finish, last.answer_tokens) == ("", "length", 0)


def test_next_turn_reads_only_new_text(engine):
    asked = request("a long question " * 20, most_tokens=20, effort="instant")
    *_, last = engine.chat(asked)
    rows = engine._talker.rows
    messages = (*asked.messages, Message("assistant", last.text), Message("user", "why?"))
    *_, again = engine.chat(request(asked.session, messages=messages, most_tokens=20, effort="instant"))
    assert again.prompt_tokens > 300
    assert engine._talker.rows - rows < 200


@pytest.mark.parametrize("between", ["", "what is the title of this?"])
def test_prompt_longer_by_one_line_reads_only_that_line(engines, between):
    engine = engines[LEFT_TO_RIGHT]
    talker, text = engine._talker, "total = total + 1\n" * 60
    *_, last = engine.chat(request(text, session="s" + between, most_tokens=1))
    if between:
        list(engine.chat(request(between, session="s" + between, most_tokens=1)))
    rows = talker.rows
    *_, again = engine.chat(request(text + "print(total)\n", session="s" + between, most_tokens=1))
    assert last.prompt_tokens > 500
    assert 0 < talker.rows - rows < 60
    assert again.prompt_tokens - last.prompt_tokens <= talker.rows - rows


def test_conversations_stay_encoded_as_far_as_there_is_memory(engines, monkeypatch):
    talker = engines[LEFT_TO_RIGHT]._talker
    monkeypatch.setattr(talker, "_kept", [])
    monkeypatch.setattr(module, "CACHES", talker.room.caches)
    for text in ("one of them", "something else"):
        list(talker.chat(request(text, session="s", most_tokens=1)))
    assert len(talker._kept) == 1


def test_closed_answer_leaves_conversation_usable(engine):
    answer = engine.chat(request("closed"))
    next(forwards(answer))
    assert len(engine._talker.room.promised) == 1
    answer.close()
    assert engine._talker.room.promised == []
    fresh = request("fresh", messages=(Message("user", "closed"),))
    assert [*engine.chat(request("closed"))][-1].text == [*engine.chat(fresh)][-1].text


def test_conversation_beyond_context_is_refused_with_its_length(engine):
    with pytest.raises(TooLongError, match=r"\d+ tokens and an answer exceed its context of 32768"):
        next(forwards(engine.chat(request("word " * 20_000))))


@pytest.mark.parametrize(
    ("effort", "told"),
    [("medium", "what else uses it, send less"), ("high", "what else uses it, ask at an effort below high, send less")],
)
def test_conversation_without_memory_for_it_is_refused_before_it_is_read(engine, monkeypatch, effort, told):
    """At high effort the whole of it is read in one forward, which takes more."""
    talker = engine._talker
    asked = request("word " * 400, effort=effort, most_tokens=4)
    *_, last = engine.chat(asked)
    needed = reading_bytes(talker.runtime, talker.runtime.cache(), last.prompt_tokens, at_once=effort == "high")
    monkeypatch.setattr(talker, "room", replace(talker.room, free=lambda: needed))
    before = talker.forwards
    with pytest.raises(TooLongError, match=rf"{last.prompt_tokens} tokens and .* MiB are free on cpu.* {told}"):
        next(forwards(engine.chat(replace(asked, session="another"))))
    assert talker.forwards == before


def test_far_too_long_conversation_is_not_tokenized(engine, monkeypatch):
    """Nobody else was answered for two seconds with 700,000 of them, and for eight with what a template can write."""
    monkeypatch.setattr(ChatTemplate, "encode", lambda self, text: pytest.fail("it is encoded"))
    with pytest.raises(TooLongError, match=r"\d+ characters, and its context is 32768 tokens"):
        list(engine.chat(request("x" * 600_000)))


def test_left_to_right_what_is_forced_takes_no_forward_of_its_own(engines):
    *_, last = engines[LEFT_TO_RIGHT].chat(request("forced", schema=json.dumps(PERSON), most_tokens=60))
    assert last.step < last.answer_tokens


def test_left_to_right_each_token_is_the_likeliest_behind_all_before(engines):
    """As one forward over the whole conversation says."""
    engine = engines[LEFT_TO_RIGHT]
    talker = engine._talker
    *_, last = engine.chat(request("exact", most_tokens=12))
    _, kept = talker._kept[-1]
    rows = Rows(np.array(kept.tokens, np.int32), np.arange(len(kept.tokens), dtype=np.int32))
    logits = talker.runtime.forward(rows, talker.runtime.cache()).logits_WV
    chosen, _ = TokenChooser(talker.vocabulary, 0.0, 0).choose(logits.copy())
    assert kept.tokens[-last.answer_tokens :] == chosen[-last.answer_tokens - 1 : -1].tolist()


def test_model_without_template_does_not_chat(tmp_path):
    engine = opened(tmp_path, "dream", "")
    assert not engine.info().chats
    with pytest.raises(EngineError, match="no chat template"):
        engine.chat(request())


def test_unreadable_template_fails_its_conversation_and_nothing_else(tmp_path):
    engine = opened(tmp_path, "dream", "broken")
    with pytest.raises(EngineError, match="chat template cannot be read"):
        next(forwards(engine.chat(request())))


def test_without_its_libraries_a_model_says_what_to_install(tmp_path, monkeypatch):
    engine = opened(tmp_path, "dream")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "jinja2", None)
        with pytest.raises(EngineError, match=r"run `.*'\.\[chat\]'` in a clone"):
            next(forwards(engine.chat(request())))
    next(forwards(engine.chat(request())))
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(EngineError, match=r"run `.*'\.\[chat\]'` in a clone"):
        next(forwards(engine.chat(request(schema="{}"))))


def logits(*likeliest):
    found = np.zeros((len(likeliest), 16), np.float32)
    for slot, (token, odds) in enumerate(likeliest):
        found[slot, token] = odds
    return found


class Plain:
    """A vocabulary of which every token may be said."""

    never = np.array([], np.int64)


def test_doubted_token_is_reopened_once():
    block = DraftBlock(2, PACES["medium"], frozenset())
    chooser = TokenChooser(Plain(), 0.0, 0)
    block.settle(logits((3, 9.0), (4, 1.0)), chooser)
    assert block.ids == [3, -1]
    block.settle(logits((5, 9.0), (4, 9.0)), chooser)
    assert (block.ids, block.revised) == ([5, 4], {0})
    block.settle(logits((6, 9.0), (4, 9.0)), chooser) if block.open else None
    assert block.ids == [5, 4]


def test_end_voids_what_is_behind_it():
    block = DraftBlock(4, PACES["instant"], frozenset({9}))
    block.settle(logits((1, 2.0), (9, 9.0), (2, 1.0), (3, 1.0)), TokenChooser(Plain(), 0.0, 0))
    assert (block.end, block.open, [token for token, _ in block.leading]) == (1, [], [1])
