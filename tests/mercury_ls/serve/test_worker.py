import asyncio
import gc
import weakref
from contextlib import asynccontextmanager
from threading import Semaphore

import pytest
from msgspec.structs import replace

from mercury_engine.api import (
    ChatReply,
    ChatRequest,
    Draft,
    EngineError,
    Gap,
    Message,
    Opinions,
    Proposal,
    Proposals,
    Region,
    Regions,
    RequestError,
    TooLongError,
)
from mercury_engine.fake import FakeEngine
from mercury_ls.link.wire import Failure
from mercury_ls.serve import worker as module
from mercury_ls.serve.worker import Worker
from tests.engine.chat.models import opened_left_to_right
from tests.mercury_ls.clock import Clock


class Held:
    """A pause that holds the engine before each forward until the test lets it pass."""

    def __init__(self):
        self.reached = Semaphore(0)
        self.passing = Semaphore(0)

    def __call__(self, step):
        self.reached.release()
        self.passing.acquire()

    async def hold(self):
        await asyncio.to_thread(self.reached.acquire)

    def let(self, forwards=1):
        self.passing.release(forwards)


def gap(text="x", session="s", **fields):
    return Gap(session=session, path="a.py", language="python", before=text, **fields)


def chat(text="hello", **fields):
    return ChatRequest(session="s", messages=(Message("user", text),), **fields)


@asynccontextmanager
async def running(engine, **options):
    worker = Worker(lambda report: engine, **options)
    async for status in worker.board.statuses():
        if status.state != "loading":
            break
    try:
        yield worker
    finally:
        await worker.close()


async def settled(worker):
    while worker.pending:
        await asyncio.sleep(0)


async def everything(answers):
    return [answer async for answer in answers]


async def test_drafts_arrive_until_the_final_one():
    async with running(FakeEngine({"x": "1"}, passes=3)) as worker:
        drafts = await everything(worker.ask("a", gap()))
    assert [(draft.step, draft.final) for draft in drafts] == [(1, False), (2, False), (3, True)]


async def test_draft_without_news_is_sent_once():
    class Waiting(FakeEngine):
        def fill(self, gap):
            *first, last = super().fill(gap)
            yield from (draft for draft in first for _ in range(3))
            yield last

    async with running(Waiting({"x": "1"}, passes=3)) as worker:
        drafts = await everything(worker.ask("a", gap()))
    assert [draft.step for draft in drafts] == [1, 2, 3]


async def test_closing_stops_the_engine_within_one_forward():
    gate = Held()
    engine = FakeEngine(passes=50, pause=gate)
    async with running(engine) as worker:
        answers = worker.ask("a", gap())
        await gate.hold()
        gate.let()
        assert (await anext(answers)).step == 1
        await gate.hold()
        answers.close()
        gate.let(50)
        await settled(worker)
    assert (engine.forwards, engine.open) == (2, 0)


async def test_closed_waiting_request_never_reaches_engine():
    gate = Held()
    engine = FakeEngine(passes=1, pause=gate)
    async with running(engine) as worker:
        first = worker.ask("a", gap())
        await gate.hold()
        waiting = worker.ask("a", gap())
        waiting.close()
        assert await everything(waiting) == []
        gate.let(10)
        await everything(first)
    assert engine.fills == 1


class Judging(FakeEngine):
    """Is told the texts of proposals too."""

    def judge(self, proposals):
        self.pause(1)
        self.answers(proposals.proposals[0].text)
        yield Opinions(1, (None,), final=True)


async def order(*asked, of=gap):
    """In which order the engine sees what (client, text) pairs asked while it was busy."""
    gate, seen = Held(), []
    engine = Judging(lambda before: seen.append(before), passes=1, pause=gate)
    async with running(engine) as worker:
        busy = worker.ask("z", gap("busy"))
        await gate.hold()
        waiting = [worker.ask(client, of(text)) for client, text in asked]
        gate.let(1 + len(asked))
        for answers in (busy, *waiting):
            await everything(answers)
    return seen[1:]


async def test_newest_request_of_client_goes_first():
    assert await order(("a", "a1"), ("a", "a2"), ("a", "a3")) == ["a3", "a2", "a1"]


async def test_opinion_holds_up_no_completion():
    def of(text):
        proposal = Proposal(Region("a.py", "python", ""), text)
        return gap(text) if text != "opinion" else Proposals(session="s", proposals=(proposal,))

    assert await order(("a", "a1"), ("a", "opinion"), ("a", "a2"), of=of) == ["a2", "a1", "opinion"]


async def test_clients_take_turns():
    assert await order(("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1")) == ["a3", "b1", "a2", "a1"]


class Busy(FakeEngine):
    """Each forward takes 20 ms of a clock. Held before its first; remembers whose drafts it gave."""

    def __init__(self, *, batch=1, **options):
        super().__init__(pause=self._pass, **options)
        self.clock, self.gate, self.seen, self.batch = Clock(100.0), Held(), [], batch

    def fill(self, gap):
        for draft in super().fill(gap):
            self.seen.append(gap.session)
            yield draft

    def info(self):
        return replace(super().info(), batch=self.batch)

    def _pass(self, step):
        if not self.seen:
            self.gate(step)
        self.clock.now += 0.02


async def shared(engine, *asked, after=None):
    """Whose drafts came in which order when all but the first ask during its first forward; and what each got."""
    async with running(engine, clock=engine.clock) as worker:
        answers = [worker.ask(client, gap(session=session)) for client, session in asked[:1]]
        await engine.gate.hold()
        answers += [worker.ask(client, gap(session=session)) for client, session in asked[1:]]
        if after:
            after(answers)
        engine.gate.let()
        got = [await everything(one) for one in answers]
        await settled(worker)
    assert engine.open == 0
    return " ".join(engine.seen), got


async def test_long_answer_is_suspended_while_other_clients_have_their_turn():
    order, got = await shared(Busy(passes=5), ("a", "a"), ("b", "b"))
    assert order == "a a a b b b a a b b"
    assert [[draft.step for draft in drafts] for drafts in got] == [[1, 2, 3, 4, 5]] * 2


async def test_short_answer_is_not_cut_into_pieces():
    order, _ = await shared(Busy(passes=2), ("a", "a"), ("b", "b"), ("c", "c"))
    assert order == "a a b b c c"


async def test_newer_request_overtakes_the_running_one_of_the_same_client():
    order, _ = await shared(Busy(passes=2), ("a", "old"), ("a", "new"), ("b", "b"))
    assert order == "old new new b b old"


async def test_client_with_many_requests_gets_no_more_time_than_others():
    many = [("a", f"a{number}") for number in range(1, 9)]
    order, _ = await shared(Busy(passes=3), ("a", "a0"), *many, ("b", "b1"), ("b", "b2"))
    assert order.startswith("a0 a8 a8 b2 b2 b2 a8 b1 b1 b1 a7 a7 a7 a6")


def typed(text, session="s"):
    return gap(text, session, invoked=False)


async def crowd(*asked, clock, wait=0.0):
    """Clients `a`, `b` … ask one after the other, a tenth of a second apart, while the first forward is held; returns
    the last answers, the texts in the order in which the engine was asked for them, and the status."""
    held, engine = Held(), FakeEngine({"": "text"})
    engine.pause = held
    texts = []
    fill = engine.fill
    engine.fill = lambda question: texts.append(question.before) or fill(question)
    async with running(engine, clock=clock) as worker:
        streams = []
        for client, question in zip("abcdefgh", asked, strict=False):
            streams.append(worker.ask(client, question))
            if len(streams) == 1:
                await held.hold()
            clock.now += 0.1
        clock.now += wait
        held.let(100)
        answers = [await everything(stream) for stream in streams]
        await settled(worker)
        return [answer[-1] for answer in answers], texts, worker.board.latest


async def test_newest_key_of_more_editors_than_can_be_answered_comes_first():
    _, texts, _ = await crowd(*map(typed, "wxyz"), clock=Clock())
    assert texts == ["w", "z", "y", "x"]


async def test_key_that_nobody_waits_for_is_not_read():
    answers, texts, status = await crowd(*map(typed, "wxyz"), clock=Clock(), wait=0.55)
    assert texts == ["w", "z", "y"]
    assert answers[1] == Failure("busy", "busy: 4 editors ask for more than this machine can answer")
    assert status.info.notes == ("busy: 4 editors",)


async def test_request_by_hand_is_answered_however_many_type():
    answers, texts, _ = await crowd(typed("w"), gap("x"), *map(typed, "yz"), clock=Clock(), wait=2.0)
    assert texts == ["w", "x"]
    assert (answers[1].text, answers[2].kind) == ("text", "busy")


async def test_single_editor_waits_as_long_as_it_likes():
    held, clock, engine = Held(), Clock(), FakeEngine({"": "text"})
    engine.pause = held
    async with running(engine, clock=clock) as worker:
        streams = [worker.ask("a", typed(text)) for text in "xy"]
        await held.hold()
        clock.now += 10.0
        held.let(100)
        assert {(await everything(stream))[-1].text for stream in streams} == {"text"}


async def test_batching_engine_is_asked_for_all_that_fit_in_turn():
    order, got = await shared(Busy(passes=3, batch=3), *((name, name) for name in "abcd"))
    assert order == "a a b c d a b c d b c d"
    assert [len(drafts) for drafts in got] == [3] * 4


async def test_with_room_in_a_batch_second_requests_of_a_client_go_on_too():
    order, _ = await shared(Busy(passes=2, batch=3), ("a", "a1"), ("a", "a2"), ("b", "b"))
    assert order == "a1 a2 b a1 b a2"


async def test_closing_one_of_a_batch_leaves_the_others_as_they_are():
    _, got = await shared(
        Busy(passes=3, batch=3), ("a", "a"), ("b", "b"), ("c", "c"), after=lambda all_: all_[0].close()
    )
    assert [len(drafts) for drafts in got] == [0, 3, 3]


async def test_error_of_one_in_batch_leaves_the_others_as_they_are():
    class Failing(Busy):
        def fill(self, gap):
            for draft in super().fill(gap):
                if gap.session == "b" and draft.step == 2:
                    raise EngineError("b is bad")
                yield draft

    _, got = await shared(Failing(passes=3, batch=3), ("a", "a"), ("b", "b"), ("c", "c"))
    assert [len(drafts) for drafts in got] == [3, 2, 3]
    assert got[1][-1] == Failure("engine", "b is bad")


async def test_expired_suspended_request_gets_its_best_draft():
    engine = Busy(passes=9)
    async with running(engine, clock=engine.clock) as worker:
        first = worker.ask("a", gap(session="a", deadline_ms=90))
        await engine.gate.hold()
        second = worker.ask("b", gap(session="b"))
        engine.gate.let()
        got, _ = await everything(first), await everything(second)
    assert [(draft.step, draft.final) for draft in got] == [(1, False), (2, False), (3, False), (3, True)]
    assert engine.open == 0


async def test_client_that_never_closes_has_a_limited_number_of_requests():
    engine, most = Busy(passes=2), 0
    async with running(engine, clock=engine.clock) as worker:
        answers = [worker.ask("a", gap(session="0"))]
        for number in range(1, 2 * module.WAITING_PER_CLIENT):
            await engine.gate.hold() if number == 1 else None
            answers.append(worker.ask("a", gap(session=str(number))))
            engine.gate.let() if number == 1 else None
            await anext(answers[-1])
            most = max(most, engine.open)
        got = [await everything(one) for one in answers]
    assert most <= module.WAITING_PER_CLIENT + 1
    assert all(drafts[-1].final for drafts in got if drafts)


async def test_too_many_requests_of_a_client_supersede_its_oldest():
    gate = Held()
    async with running(FakeEngine(passes=1, pause=gate)) as worker:
        worker.ask("a", gap())
        await gate.hold()
        waiting = [worker.ask("a", gap()) for _ in range(module.WAITING_PER_CLIENT + 1)]
        other = worker.ask("b", gap())
        (superseded,) = await everything(waiting[0])
        gate.let(100)
        answered = [await everything(answers) for answers in (*waiting[1:], other)]
    assert superseded.kind == "superseded"
    assert all(isinstance(draft, Draft) for (draft,) in answered)


async def test_full_queue_refuses_newcomer():
    gate = Held()
    async with running(FakeEngine(passes=1, pause=gate)) as worker:
        worker.ask("a", gap())
        await gate.hold()
        for client in range(module.WAITING):
            worker.ask(str(client), gap())
        (refused,) = await everything(worker.ask("late", gap()))
        gate.let(module.WAITING + 1)
    assert refused.kind == "busy"


async def test_deadline_makes_best_draft_so_far_the_final_one():
    clock = Clock(100.0)

    def forward(step):
        clock.now += 0.1

    engine = FakeEngine({"x": "answer"}, passes=10, pause=forward)
    async with running(engine, clock=clock) as worker:
        drafts = await everything(worker.ask("a", gap(deadline_ms=250)))
        await settled(worker)
    assert [(draft.step, draft.final) for draft in drafts] == [(1, False), (2, False), (3, True)]
    assert engine.open == 0


async def test_waiting_counts_towards_the_deadline_and_leaves_the_text():
    clock, gate = Clock(100.0), Held()
    engine = FakeEngine({"x": "answer"}, passes=3, pause=gate)
    async with running(engine, clock=clock) as worker:
        first = worker.ask("a", gap())
        await gate.hold()
        region = Region("b.py", "python", "old text")
        edit = Regions(session="t", regions=(region,), cursor=0, deadline_ms=50)
        waiting = worker.ask("b", edit)
        clock.now += 0.06
        gate.let(1)
        (draft,) = await everything(waiting)
        gate.let(2)
        await everything(first)
    (rewritten,) = draft.regions
    assert (draft.final, rewritten.text, rewritten.complete) == (True, "old text", False)
    assert engine.fills == 1


async def test_engine_is_told_the_remaining_time():
    clock, gate = Clock(100.0), Held()
    told = []

    class Telling(FakeEngine):
        def fill(self, gap):
            told.append(gap.deadline_ms)
            return super().fill(gap)

    async with running(Telling(passes=1, pause=gate), clock=clock) as worker:
        first = worker.ask("a", gap())
        await gate.hold()
        second = worker.ask("a", gap(deadline_ms=200))
        clock.now += 0.15
        gate.let(2)
        await everything(first)
        await everything(second)
    assert told == [None, pytest.approx(50)]


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (EngineError("no span: give one"), "no span: give one"),
        (ZeroDivisionError("0"), "ZeroDivisionError: 0"),
    ],
)
async def test_engine_error_fails_that_request_alone(error, detail):
    def answer(before):
        if before == "bad":
            raise error
        return "fine"

    engine = FakeEngine(answer, passes=1)
    async with running(engine) as worker:
        assert await everything(worker.ask("a", gap("bad"))) == [Failure("engine", detail)]
        (draft,) = await everything(worker.ask("a", gap("good")))
    assert draft.text == "fine"
    assert engine.open == 0


async def test_engine_that_ends_without_final_draft_is_a_failure():
    async with running(FakeEngine(passes=0)) as worker:
        (failure,) = await everything(worker.ask("a", gap()))
    assert failure.kind == "engine"


async def test_chat_text_arrives_until_the_final_one():
    async with running(FakeEngine(passes=3)) as worker:
        said = await everything(worker.ask("a", chat()))
    assert [each.final for each in said] == [False, False, True]
    assert said[-1].text == "You said: hello"


class Overheard(Busy):
    """Remembers of which conversation it gave a reply, too."""

    def chat(self, request):
        for reply in super().chat(request):
            self.seen.append(request.messages[0].content)
            yield reply


async def test_completions_come_before_conversations_whoever_asks():
    engine = Overheard(passes=2)
    async with running(engine, clock=engine.clock) as worker:
        first = worker.ask("a", chat("a"))
        await engine.gate.hold()
        waiting = [worker.ask("b", chat("b")), *(worker.ask(name, gap(session=name)) for name in ("c", "a2"))]
        engine.gate.let()
        answers = [await everything(stream) for stream in (first, *waiting)]
    assert " ".join(engine.seen) == "a c c a2 a2 a b b"
    assert [len(drafts) for drafts in answers] == [2, 2, 2, 2]
    assert engine.open == 0


@pytest.mark.parametrize(
    ("batch", "steps"),
    [(1, "c c c c c a c c c c b c c a a b b a a a b b b"), (2, "c c c c c a c c c c b c c a b ")],
)
async def test_conversations_get_a_step_now_and_then_while_completions_wait(monkeypatch, batch, steps):
    monkeypatch.setattr(module, "CONVERSATION_SECONDS", 0.09)
    engine = Overheard(passes=11, batch=batch)
    async with running(engine, clock=engine.clock) as worker:
        streams = [worker.ask("c", gap(session="c"))]
        await engine.gate.hold()
        streams += [worker.ask(name, chat(name)) for name in "ab"]
        engine.gate.let()
        for stream in streams:
            await everything(stream)
    assert " ".join(engine.seen).startswith(steps)


async def test_completion_model_is_not_asked_to_chat():
    engine = FakeEngine(info=replace(FakeEngine().info(), model="mercury-small", chats=False))
    async with running(engine) as worker:
        (failure,) = await everything(worker.ask("a", chat()))
    assert failure.kind == "request"
    assert "mercury-small completes code and does not chat: add an instruct model" in failure.detail
    assert engine.chats == 0


@pytest.mark.parametrize(
    ("error", "kind"), [(EngineError, "engine"), (RequestError, "request"), (TooLongError, "length")]
)
async def test_faulty_request_is_told_apart_from_faulty_engine(error, kind):
    def says(asked):
        raise error("schema has a loop: remove it")

    async with running(FakeEngine(says=says)) as worker:
        assert await everything(worker.ask("a", chat())) == [Failure(kind, "schema has a loop: remove it")]


async def test_unreadable_warming_text_is_a_plain_log_line(caplog):
    class Small(FakeEngine):
        def warm(self, request):
            raise TooLongError("900 tokens, and 800 fit")
            yield

    caplog.set_level("INFO")
    async with running(Small()) as worker:
        worker.warm("a", gap())
        await settled(worker)
    (line,) = caplog.records
    assert (line.getMessage(), line.exc_info) == ("session 's' is not warmed: 900 tokens, and 800 fit", None)


async def test_closing_a_conversation_stops_the_engine_within_one_forward():
    gate = Held()
    engine = FakeEngine(passes=50, pause=gate)
    async with running(engine) as worker:
        said = worker.ask("a", chat())
        await gate.hold()
        said.close()
        gate.let(50)
        await settled(worker)
    assert (engine.forwards, engine.open) == (1, 0)


async def test_expired_conversation_is_ended_by_engine():
    clock = Clock(100.0)

    class Ending(FakeEngine):
        def chat(self, asked):
            until = clock() + asked.deadline_ms / 1000
            for said in super().chat(asked):
                clock.now += 0.02
                over = clock() >= until
                yield replace(said, text="[]", final=True, finish="stop") if over else replace(said, text="[1,")

    async with running(Ending(passes=9), clock=clock) as worker:
        said = await everything(worker.ask("a", chat(deadline_ms=50)))
        await settled(worker)
    assert [(each.text, each.finish) for each in said] == [("[1,", ""), ("[1,", ""), ("[]", "stop")]


async def test_conversation_without_time_says_nothing():
    clock, gate = Clock(100.0), Held()
    async with running(FakeEngine(passes=1, pause=gate), clock=clock) as worker:
        first = worker.ask("a", gap())
        await gate.hold()
        late = worker.ask("b", chat(deadline_ms=10))
        clock.now += 1
        gate.let(2)
        await everything(first)
        assert await everything(late) == [ChatReply(0, "", final=True, finish="length")]


async def test_warming_is_suspended_while_somebody_waits_and_goes_on_afterwards():
    gate, steps = Held(), []
    engine = FakeEngine(passes=2, pause=lambda step: (steps.append(step), gate(step)))
    async with running(engine) as worker:
        worker.warm("a", gap(session="warm"))
        await gate.hold()
        answers = worker.ask("b", gap())
        gate.let(1)
        await gate.hold()
        assert engine.open == 2
        gate.let(10)
        await everything(answers)
        await settled(worker)
    assert steps == [1, 1, 2, 2]
    assert engine.open == 0


async def test_warming_is_dropped_when_its_session_asks_or_its_client_leaves():
    for drop in ("fill", "warm", "forget"):
        gate = Held()
        engine = FakeEngine(passes=5, pause=gate)
        async with running(engine) as worker:
            worker.warm("a", gap())
            await gate.hold()
            if drop == "fill":
                worker.ask("a", gap())
            elif drop == "warm":
                worker.warm("a", gap())
            else:
                worker.forget("a")
            gate.let(100)
            await settled(worker)
        assert engine.forwards == (1 if drop == "forget" else 6), drop
        assert engine.open == 0


async def test_leaving_client_does_not_stop_warming_of_another():
    gate = Held()
    engine = FakeEngine(passes=5, pause=gate)
    async with running(engine) as worker:
        worker.warm("a", gap())
        await gate.hold()
        worker.forget("b")
        gate.let(100)
        await settled(worker)
    assert engine.forwards == 5


async def test_wishes_to_warm_are_bounded_and_the_newest_goes_first():
    gate, seen = Held(), []

    class Seeing(FakeEngine):
        def warm(self, request):
            seen.append(request.session)
            return super().warm(request)

    async with running(Seeing(passes=1, pause=gate)) as worker:
        worker.ask("a", gap())
        await gate.hold()
        for number in range(module.WARM + 5):
            worker.warm("a", gap(session=str(number)))
        gate.let(100)
        await settled(worker)
    assert seen == [str(number) for number in reversed(range(5, module.WARM + 5))]


async def test_error_while_warming_harms_nobody():
    class Failing(FakeEngine):
        def warm(self, request):
            raise ValueError("no")

    async with running(Failing(passes=1)) as worker:
        worker.warm("a", gap(session="warm"))
        await settled(worker)
        assert len(await everything(worker.ask("a", gap()))) == 1


async def test_thousand_cancelled_requests_leave_nothing():
    engine = FakeEngine(passes=3)
    async with running(engine) as worker:
        left = []
        for number in range(1000):
            answers = worker.ask("a", gap(session=str(number % 3)))
            left.append(weakref.ref(answers))
            if number % 2:
                await anext(answers)
            answers.close()
        await settled(worker)
        await everything(worker.ask("a", gap()))
        await settled(worker)
        del answers
        gc.collect()
        assert [reference for reference in left if reference() is not None] == []
    assert engine.open == 0


async def test_loading_reports_its_progress():
    gate = Held()

    def load(report):
        report(0.5, "weights")
        gate(0)
        return FakeEngine()

    worker = Worker(load)
    statuses = worker.board.statuses()
    seen = [await anext(statuses)]
    seen.append(await anext(statuses))
    (refused,) = await everything(worker.ask("a", gap()))
    gate.let()
    seen.append(await anext(statuses))
    await worker.close()
    assert [(status.state, status.progress) for status in seen] == [
        ("loading", None),
        ("loading", 0.5),
        ("ready", None),
    ]
    assert seen[2].info == FakeEngine().info()
    said = "the model is still loading (weights): ask again in a moment"
    assert (refused.kind, refused.detail) == ("unavailable", said)


async def ready(worker):
    async for status in worker.board.statuses():
        if status.state == "ready":
            break


async def test_idle_engine_is_closed_and_loaded_again_for_the_next_request():
    opened: list[weakref.ref[FakeEngine]] = []

    def load(report):
        engine = FakeEngine({"x": "1"})
        opened.append(weakref.ref(engine))
        return engine

    worker = Worker(load, rest_seconds=0)
    await ready(worker)
    while opened[0]():
        await asyncio.sleep(0)
    assert worker.board.status.state == "ready", "it will be soon for whoever asks"
    (refused,) = await everything(worker.ask("a", gap()))
    assert (refused.kind, refused.detail) == ("unavailable", "the model is still loading: ask again in a moment")
    await ready(worker)
    assert len(opened) == 2
    await worker.close()


async def test_engine_that_rests_is_not_loaded_to_be_stopped():
    opened: list[weakref.ref[FakeEngine]] = []

    def load(report):
        opened.append(weakref.ref(engine := FakeEngine()))
        return engine

    worker = Worker(load, rest_seconds=0)
    while not opened or opened[0]():
        await asyncio.sleep(0)
    await worker.close()
    assert len(opened) == 1


async def test_engine_trouble_is_in_the_status_as_long_as_it_lasts():
    class Ailing(FakeEngine):
        notes = ()

        def info(self):
            return replace(super().info(), notes=self.notes)

    engine = Ailing()
    async with running(engine) as worker:
        for notes, detail in ((("too little memory", "too hot"), "too little memory; too hot"), ((), "")):
            statuses = worker.board.statuses()
            await anext(statuses)
            engine.notes = notes
            await everything(worker.ask("a", gap()))
            status = await anext(statuses)
            assert (status.state, status.detail, status.info.notes) == ("ready", detail, notes)


async def test_status_follows_how_quickly_the_engine_reads():
    class Tiring(FakeEngine):
        speed = 200.0

        def info(self):
            return replace(super().info(), reads_per_second=self.speed)

    engine = Tiring()
    async with running(engine) as worker:
        statuses = worker.board.statuses()
        await anext(statuses)
        for speed, told in ((190.0, 200.0), (120.0, 120.0)):
            engine.speed = speed
            await everything(worker.ask("a", gap()))
            await everything(worker.ask("a", gap()))
            assert worker.board.latest.info.reads_per_second == speed
            assert worker.board.status.info.reads_per_second == told


async def test_trouble_seen_when_a_request_is_given_up_is_reported_at_once():
    class Slow(FakeEngine):
        notes = ()

        def fill(self, gap):
            try:
                yield from super().fill(gap)
            finally:
                self.notes = ("too slow",)

        def info(self):
            return replace(super().info(), notes=self.notes)

    gate = Held()
    async with running(Slow(passes=50, pause=gate)) as worker:
        statuses = worker.board.statuses()
        await anext(statuses)
        answers = worker.ask("a", gap())
        await gate.hold()
        answers.close()
        gate.let()
        assert (await anext(statuses)).detail == "too slow"


async def test_engine_that_does_not_load_says_why_to_everybody():
    def load(report):
        raise EngineError("model.safetensors is missing: run mercury-ls doctor")

    worker = Worker(load)
    async for status in worker.board.statuses():
        if status.state == "unavailable":
            break
    (refused,) = await everything(worker.ask("a", gap()))
    await worker.close()
    assert status.detail == refused.detail == "model.safetensors is missing: run mercury-ls doctor"


async def test_closing_the_worker_fails_what_waits_and_what_runs():
    gate = Held()
    engine = FakeEngine(passes=9, pause=gate)
    async with running(engine) as worker:
        runs = worker.ask("a", gap())
        await gate.hold()
        waits = worker.ask("a", gap())
        gate.passing.release(9)
        worker.warm("a", gap(session="warm"))
    for answers in (runs, waits):
        last = (await everything(answers))[-1]
        assert last.kind == "unavailable" if isinstance(last, Failure) else last.final
    assert (engine.open, worker.pending) == (0, 0)


async def test_long_prompt_lets_others_be_answered_and_ends_within_a_chunk(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SLICE_SECONDS", 0.0)
    engine = opened_left_to_right(tmp_path)
    talker = engine._talker
    async with running(engine) as worker:
        reading = worker.ask("long", chat("total = total + 1\n" * 700))
        await anext(reading)
        asked = [worker.ask(f"client {number}", chat("hello", most_tokens=2)) for number in range(20)]
        for answers in await asyncio.gather(*map(everything, asked)):
            assert answers[-1].final
        before = talker.forwards
        reading.close()
        await settled(worker)
    assert talker.forwards - before <= 1
    assert max(len(kept.ids) for _, kept in talker._kept) < 700 * len("total = total + 1\n"), (
        "it was not read to its end"
    )


class Panic(BaseException):
    """As pyo3's PanicException, which is no `Exception`."""


async def test_panic_ends_all_requests_and_is_reported(caplog):
    def panic(step):
        raise Panic("index out of bounds")

    async with running(FakeEngine(pause=panic)) as worker:
        first, second = worker.ask("a", gap(session="a")), worker.ask("b", gap(session="b"))
        for stream in (first, second):
            (failure,) = await everything(stream)
            assert failure == Failure("unavailable", "the engine crashed (Panic: index out of bounds)")
        async with asyncio.timeout(10):
            while worker.board.status.state != "unavailable":
                await asyncio.sleep(0)
        assert await everything(worker.ask("a", gap(session="a"))) == [
            Failure("unavailable", worker.board.status.reason)
        ]
    assert "the engine's thread has ended" in caplog.text
