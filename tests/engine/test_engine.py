"""The engine as its callers see it: exact answers, few forwards, sessions, freezing, warming, model folders."""

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from mercury_engine.api import Edit, EngineError, Snippet
from mercury_engine.decode.costs import AGAIN_SECONDS
from mercury_engine.decode.search import LOW_TOKENS
from mercury_engine.decode.sessions import CROWDED, SessionPool
from mercury_engine.engine import IDLE_MEMORY, LEAST_MEMORY, MEMORY, MercuryEngine, Resources, open_engine
from mercury_engine.model.config import TINY, ModelError
from mercury_engine.model.torch_runtime import TorchRuntime
from mercury_training.models import create, save
from tests.engine.tiny import (
    BLOCKS,
    DOCUMENT,
    FLAT,
    LINES,
    LONG_LINE,
    STEEP,
    TOKENIZER,
    asked_by_heart,
    engine,
    final,
    gap,
    learnt_runtime,
    random_runtime,
)


@pytest.mark.slow
@pytest.mark.parametrize("decode", ["policy", "ar", "ar+copy"])
def test_learned_text_is_said_exactly(decode):
    answering = engine(learnt_runtime(), decode=decode)
    for asked, answer in asked_by_heart():
        found = final(answering, replace(asked, effort="medium"))
        assert (found.text, found.complete) == (answer, True)


@pytest.mark.slow
def test_drafts_are_accepted_where_rows_cost_little():
    """More than one token a forward, all forwards counted; plain autoregression gets one at most."""
    drafted, plain = engine(learnt_runtime()), engine(learnt_runtime(), decode="ar")
    for answering in (drafted, plain):
        for asked, _ in asked_by_heart():
            list(answering.fill(replace(asked, effort="medium")))
    assert plain.report.settled <= plain.report.forwards * 1.01
    assert drafted.report.settled > 2 * drafted.report.forwards
    assert drafted.report.actions["canvas"] > 0
    assert drafted.report.accepted["canvas"] > drafted.report.forwards, "more than one in each"


@pytest.mark.slow
def test_steps_are_used_alone_where_rows_cost_as_much():
    answering = engine(learnt_runtime(), costs=STEEP)
    for asked, _ in asked_by_heart():
        list(answering.fill(replace(asked, effort="medium")))
    actions = answering.report.actions
    assert actions["step"] > 0.8 * sum(actions.values())


@pytest.mark.slow
def test_instant_answer_is_one_forward():
    (head, body) = BLOCKS[0]
    answering = engine(learnt_runtime(), bar=0.3)
    (only,) = answering.fill(gap(f"{LINES[4][:4]}$0\n", effort="instant"))
    assert LINES[4][4:].startswith(only.text)
    assert only.text
    (only,) = answering.fill(gap(f"{head}$0\n", block=True, effort="instant"))
    assert body.startswith(only.text)


@pytest.mark.slow
def test_typing_along_with_an_answer_is_verified_in_one_forward():
    answering = engine(learnt_runtime())
    list(answering.fill(gap(f"{LONG_LINE[:8]}$0\n")))
    before = answering.report.forwards
    found = final(answering, gap(f"{LONG_LINE[:12]}$0\n"))
    assert found.text == LONG_LINE[12:]
    assert answering.report.forwards - before == 1
    assert answering.report.accepted["previous"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("typed", [LONG_LINE[:12], LONG_LINE[:9] + "x"], ids=["along", "a slip"])
def test_deleting_what_was_typed_takes_one_forward(typed):
    """Back on the way of one answer that was given later, and back where another was given before."""
    answering = engine(learnt_runtime())
    for text in (LONG_LINE[:8], LONG_LINE[:9], typed):
        list(answering.fill(gap(f"{text}$0\n")))
    before, accepted = answering.report.forwards, answering.report.accepted["previous"]
    found = final(answering, gap(f"{LONG_LINE[:8]}$0\n"))
    assert found.text == LONG_LINE[8:]
    assert answering.report.forwards - before == 1
    assert answering.report.accepted["previous"] > accepted


@pytest.mark.slow
def test_deleting_what_stood_there_before_takes_one_forward():
    answering = engine(learnt_runtime())
    list(answering.fill(gap(f"{LONG_LINE[:12]}$0\n")))
    before = answering.report.forwards
    assert final(answering, gap(f"{LONG_LINE[:8]}$0\n")).text == LONG_LINE[8:]
    assert answering.report.forwards - before == 1


@pytest.mark.slow
def test_watchers_see_every_slot_of_a_canvas_before_it_is_verified():
    asked, answer = asked_by_heart()[0]
    first, *_, last = engine(learnt_runtime()).fill(replace(asked, slots=True))
    drafted = first.slots
    assert sum(slot.settled for slot in drafted) == 1 < len(drafted)
    assert "".join(slot.text for slot in drafted) == answer
    assert all(slot.settled for slot in last.slots)


@pytest.mark.slow
def test_likely_answer_is_worth_showing_and_random_one_is_not():
    likely = final(engine(learnt_runtime()), gap(f"{LINES[0][:4]}$0\n"))
    random = final(engine(random_runtime()), gap(f"{LINES[0][:4]}$0\n"))
    assert likely.p_accept > 0.5 > 0.1 > random.p_accept


def frozen_under(answering, *requests):
    """How many rows the last of these requests takes to encode and answer at once."""
    for asked in requests:
        before = answering.report.rows
        list(answering.fill(replace(asked, effort="instant")))
    return answering.report.rows - before


CANVAS = 15


def test_new_snippets_and_edits_are_read_after_a_jump_and_not_while_typing():
    typed = gap(DOCUMENT.replace("hypot", "$0hypot"))
    more = replace(typed, snippets=(Snippet("x.py", "y = 1\n" * 20),), edits=(Edit("shapes.py", 1, "a", "b"),))
    assert frozen_under(engine(random_runtime()), typed, more) == 1 + CANVAS
    jumped = replace(more, before="", after=more.before + more.after)
    assert frozen_under(engine(random_runtime()), typed, more, jumped) > 60 + CANVAS


def test_warming_reads_everything_before_the_first_keystroke():
    answering = engine(random_runtime())
    asked = gap(DOCUMENT.replace("hypot", "$0hypot"), effort="instant")
    pauses = sum(1 for _ in answering.warm(asked))
    assert pauses == answering.report.forwards == 1
    before = answering.report.rows
    list(answering.fill(asked))
    assert answering.report.rows - before == 1 + CANVAS
    assert sum(1 for _ in answering.warm(asked)) == 0


def test_warming_takes_over_what_was_frozen():
    answering = engine(random_runtime())
    asked = gap(DOCUMENT.replace("hypot", "$0hypot"))
    list(answering.fill(asked))
    more = replace(asked, snippets=(Snippet("x.py", "y = 1\n" * 20),))
    assert sum(1 for _ in answering.warm(more)) > 0
    assert sum(1 for _ in answering.warm(more)) == 0


def test_warming_may_stop_half_way_and_go_on_later():
    answering = engine(random_runtime())
    asked = gap("".join(f"value_{i} = {i}\n" for i in range(50)) + "$0")
    warming = answering.warm(asked)
    next(warming)
    warming.close()
    left = sum(1 for _ in answering.warm(asked))
    assert left == sum(1 for _ in engine(random_runtime()).warm(asked)) - 1


def test_warming_measures_what_the_start_had_no_time_to_and_only_once():
    answering = MercuryEngine(random_runtime(), TOKENIZER)
    measured = [*answering._decoder.costs.rows]
    asked = gap("x = $0")
    next(answering.warm(asked))
    assert sum(1 for _ in answering.warm(asked)) > 0
    assert sum(1 for _ in answering.warm(asked)) == 0
    assert measured == [1, 32]
    assert [*answering._decoder.costs.rows] == [1, 2, 4, 8, 16, 32, 64, 128]


def test_files_keep_their_own_rows_which_all_sessions_share():
    answering = engine(random_runtime())
    one, other = gap(DOCUMENT + "$0"), gap("x = $0\n", path="other.py")
    rows = frozen_under(answering, one, other, one)
    assert rows == 1 + CANVAS
    assert frozen_under(answering, replace(one, session="t")) == rows


def test_files_of_the_same_name_in_two_projects_keep_their_own_rows():
    answering = engine(random_runtime())
    one = replace(gap(DOCUMENT + "$0"), root="/one/", snippets=(Snippet("x.py", "y = 1\n" * 20),))
    other = replace(gap(DOCUMENT + "$0"), root="/other/")
    list(answering.fill(one))
    assert frozen_under(answering, other) == frozen_under(engine(random_runtime()), other)


def test_memory_is_capped_over_sessions():
    answering = engine(random_runtime(), memory=1)
    one, other = gap(DOCUMENT + "$0"), gap("x = $0\n", path="other.py")
    assert frozen_under(answering, one, other, one) > 60


def test_info_says_who_answers_and_how():
    answering = engine(random_runtime())
    info = answering.info()
    assert (info.engine, info.model, info.context_tokens) == ("mercury", "tiny", TINY.context)
    assert info.device == "cpu, torch float32"


def test_machine_that_was_busy_while_it_was_measured_is_measured_again(monkeypatch):
    runtime, now, each = random_runtime(), 0.0, 0.5
    forward = runtime.forward

    def timed(rows, cache):
        nonlocal now
        now += each
        return forward(rows, cache)

    monkeypatch.setattr(runtime, "forward", timed)
    answering = MercuryEngine(runtime, TOKENIZER, clock=lambda: now)

    def follows_typing(after):
        nonlocal now
        now += after
        list(answering.warm(gap(DOCUMENT + "$0")))
        return answering.info().follows_typing

    assert not follows_typing(after=0.0)
    each = 0.001
    assert not follows_typing(after=0.1 * AGAIN_SECONDS)
    assert follows_typing(after=AGAIN_SECONDS)


def test_tokenizer_of_another_model_is_refused():
    small = TorchRuntime(create(replace(TINY, vocabulary=330), 0))
    with pytest.raises(ModelError, match="the tokenizer has 490 tokens, the model 330"):
        MercuryEngine(small, TOKENIZER, costs=FLAT)


def test_requested_but_missing_gpu_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(EngineError, match=r"engine\.device is 'gpu', but torch finds no GPU: run `"):
        open_engine(tmp_path, Resources("gpu"))


@pytest.mark.parametrize(
    ("memory", "idle", "most"),
    [
        (0, IDLE_MEMORY, MEMORY - 100),
        (1, IDLE_MEMORY, LEAST_MEMORY),
        (64 << 20, IDLE_MEMORY, (64 << 20) - 100),
        (9 << 30, IDLE_MEMORY, (9 << 30) - 100),
    ],
)
def test_engine_keeps_to_its_given_resources(tmp_path, monkeypatch, memory, idle, most):
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 100)
    shutil.copy(Path(__file__).parent / "golden" / "tokenizer.json", tmp_path)
    given = {}

    def load(folder, **options):
        given.update(options)
        return random_runtime()

    monkeypatch.setattr("mercury_engine.model.openvino_runtime.load", load)
    monkeypatch.setattr(SessionPool, "__init__", lambda self, cache, *sizes: given.update(sizes=sizes))
    open_engine(tmp_path, Resources("cpu", threads=3, memory=memory))
    assert (given["threads"], given["sizes"]) == (3, (idle, most))


def test_gpu_keeps_as_much_as_there_is(monkeypatch):
    given = []
    monkeypatch.setattr(SessionPool, "__init__", lambda self, cache, *sizes: given.extend(sizes))
    runtime = TorchRuntime(create(TINY, 0))
    runtime.device = "cuda"
    engine(runtime, memory=5 << 30)
    assert given == [5 << 30, 5 << 30]


def test_info_tells_of_clients_that_lost_their_place_and_of_what_is_used():
    answering = engine(random_runtime(), memory=1, weights=5 << 20)
    list(answering.fill(gap(DOCUMENT + "$0", session="a")))
    info = answering.info()
    assert info.notes == ()
    assert info.bytes > 5 << 20
    list(answering.fill(gap(DOCUMENT + "$0", session="b", path="other.py")))
    assert answering.info().notes == (CROWDED,)


@pytest.mark.slow
def test_folder_is_opened_and_answers_like_the_reference(tmp_path):
    save(learnt_runtime().model, tmp_path)
    shutil.copy(Path(__file__).parent / "golden" / "tokenizer.json", tmp_path)
    opened = open_engine(tmp_path, Resources("cpu", threads=1, memory=1 << 30))
    assert opened.info().model == "tiny"
    for asked, answer in asked_by_heart()[:3]:
        assert final(opened, replace(asked, effort="medium")).text == answer


def test_model_is_heard_out_by_who_asks_by_hand():
    typed = gap("def area(width):\n    $0\n", block=True, most_tokens=48)
    asked = replace(typed, invoked=True)
    lengths = [len(final(engine(random_runtime(2), bar=1.0), each).confidence) for each in (asked, typed)]
    assert lengths[0] > LOW_TOKENS > lengths[1]
