"""What becomes of an answer that is being written while requests come and go."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from msgspec.structs import replace

from mercury_engine.api import Draft, EngineError, EngineInfo, Gap, Regions
from mercury_ls.completion.offers import Answer
from mercury_ls.link.wire import Status
from mercury_ls.project.privacy import Privacy
from mercury_ls.project.workspace import Workspace
from mercury_ls.session import completions, following, generations, requests
from mercury_ls.session.record import NoRecorder
from mercury_ls.session.session import Session
from mercury_ls.settings.schema import Settings, SuggestSettings
from tests.mercury_ls.clock import Clock

URI = "file:///project/file.py"
STRONG = EngineInfo(
    engine="server",
    model="strong",
    device="http",
    context_tokens=4096,
    grows=True,
    calibrated=False,
    address="http://127.0.0.1:8080",
)


class Pen:
    """One question that the test answers, piece by piece."""

    def __init__(self, gap: Gap) -> None:
        self.gap = gap
        self.is_closed = False
        self._drafts: asyncio.Queue[Draft | Exception] = asyncio.Queue()
        self._step = 0

    def write(self, text: str, *, final: bool = False, p: float = 0.9, cut: bool = False) -> None:
        """A final text that was `cut` is only the likely beginning of the answer."""
        self._step += 1
        self._drafts.put_nowait(Draft(self._step, text, (p,) * 4, p, final and not cut, final=final))

    def read_until(self, unread: int, *, final: bool = False) -> None:
        """A forward that only reads."""
        self._drafts.put_nowait(Draft(final=final, unread=unread))

    def fail(self) -> None:
        self._drafts.put_nowait(EngineError("no memory"))

    async def drafts(self) -> AsyncGenerator[Draft]:
        try:
            while True:
                draft = await self._drafts.get()
                if isinstance(draft, Exception):
                    raise draft
                yield draft
                if draft.final:
                    return
        finally:
            self.is_closed = True


class Desk:
    """An engine link whose answers the test writes."""

    def __init__(self, info: EngineInfo = STRONG) -> None:
        self.status = Status("ready", info=info)
        self.roots = ()
        self.pens: list[Pen] = []

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def warm(self, question: Gap | Regions) -> None: ...

    def fill(self, gap: Gap) -> AsyncGenerator[Draft]:
        self.pens.append(pen := Pen(gap))
        return pen.drafts()


class Typist:
    """A client that types into one document, and asks at each key as VS Code does."""

    def __init__(self, desk: Desk, suggest: SuggestSettings) -> None:
        settings = Settings(suggest=suggest)
        privacy = Privacy(settings.privacy, ())
        workspace = Workspace((), privacy, settings.context)
        self.desk = desk
        self.session = Session(settings, desk, privacy, workspace, NoRecorder(), Clock())
        self.grew: list[str] = []
        self.session.following.on_growth = self.grew.append
        self._asked: asyncio.Task[Answer] | None = None

    def open(self, drawn: str) -> None:
        self.session.open(URI, "/project/file.py", "python", 1, drawn.replace("$0", ""))
        self.cursor = drawn.index("$0")

    def type(self, text: str, *, back: int = 0) -> None:
        snapshot = self.session.files.documents[URI].snapshot()
        start = snapshot.position(self.cursor - back, "utf-16")
        end = snapshot.position(self.cursor, "utf-16")
        version = self.session.files.documents[URI].version + 1
        self.session.change(URI, version, [((*start, *end), text)], "utf-16")
        self.cursor += len(text) - back

    async def ask(self, *, invoked: bool = False) -> "asyncio.Task[Answer]":
        """The request, once it waits; the one before is cancelled."""
        if self._asked is not None:
            self._asked.cancel()
        self._asked = asyncio.ensure_future(self._last(invoked))
        await settled()
        return self._asked

    async def _last(self, invoked: bool) -> Answer:
        return [answer async for answer in self.session.inline(URI, self.cursor, invoked=invoked)][-1]

    def accept(self, answer: Answer) -> None:
        """As editors do: the text first, then the command."""
        (offer, *_) = answer.offers
        assert offer.edit.start == self.cursor
        self.type(offer.edit.text)
        self.session.accepted(offer.id)


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def texts(asked: "asyncio.Task[Answer]") -> list[str]:
    return [offer.edit.text for offer in asked.result().offers]


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
async def typist(desk, monkeypatch):
    monkeypatch.setattr(following, "AHEAD_SECONDS", 0.0)
    made = Typist(desk, SuggestSettings(ahead="off"))
    yield made
    await made.session.end()


async def test_generation_outlives_requests_that_are_cancelled_at_each_key(desk, typist):
    typist.open("x = $0\n")
    for key in "comp":
        asked = await typist.ask()
        typist.type(key)
    asked = await typist.ask()
    (pen,) = desk.pens
    assert not asked.done()
    pen.write("compute(y)", final=True)
    await settled()
    assert texts(asked) == ["ute(y)"]


async def test_first_key_that_contradicts_it_stops_engine(desk, typist):
    typist.open("x = $0\n")
    await typist.ask()
    desk.pens[0].write("compute")
    await settled()
    typist.type("t")
    await settled()
    assert desk.pens[0].is_closed
    asked = await typist.ask()
    desk.pens[1].write("otal(y)", final=True)
    await settled()
    assert texts(asked) == ["otal(y)"]


async def test_draft_contradicted_by_typing_is_followed_by_another_request(desk, typist):
    typist.open("x = $0\n")
    await typist.ask()
    typist.type("t")
    asked = await typist.ask()
    desk.pens[0].write("compute")
    await settled()
    assert desk.pens[0].is_closed
    desk.pens[1].write("otal(y)", final=True)
    await settled()
    assert texts(asked) == ["otal(y)"]


async def test_unasked_answer_moves_along_with_its_text(desk, typist):
    typist.open("x = $0\n")
    asked = await typist.ask()
    typist.type("com")
    desk.pens[0].write("compute(y)", final=True)
    await settled()
    assert texts(asked) == ["pute(y)"]


async def test_unawaited_answer_is_stopped(desk, typist, monkeypatch):
    monkeypatch.setattr(generations, "LINGER_SECONDS", 0.0)
    typist.open("x = $0\n")
    asked = await typist.ask()
    asked.cancel()
    await settled()
    assert desk.pens[0].is_closed


async def test_client_that_cancels_and_asks_again_keeps_its_answer(desk, typist, monkeypatch):
    monkeypatch.setattr(generations, "LINGER_SECONDS", 0.0)
    typist.open("x = $0\n")
    (await typist.ask()).cancel()
    asked = asyncio.ensure_future(typist._last(False))
    await settled()
    desk.pens[0].write("1 + 1", final=True)
    await settled()
    assert texts(asked) == ["1 + 1"]


async def test_strong_model_that_was_just_wrong_skips_next_key_unless_invoked():
    desk = Desk(replace(STRONG, strong=True))
    typist = Typist(desk, SuggestSettings(ahead="off"))
    typist.open("x = $0\n")
    await typist.ask()
    desk.pens[0].write("compute(y)", final=True)
    await settled()
    typist.type("t")
    await typist.ask()
    assert len(desk.pens) == 1
    await typist.ask(invoked=True)
    assert len(desk.pens) == 2
    await typist.session.end()


async def test_going_back_over_a_typo_asks_nobody(desk, typist):
    typist.open("x = $0\n")
    await typist.ask()
    desk.pens[0].write("compute(y)", final=True)
    await settled()
    typist.type("d")
    await typist.ask()
    typist.type("", back=1)
    asked = await typist.ask()
    assert texts(asked) == ["compute(y)"]
    assert [pen.is_closed for pen in desk.pens] == [True, True]


async def test_going_back_over_a_typo_shows_the_old_answer_and_asks_nobody(desk, typist):
    typist.open("def f(items):\n    $0\n")
    await typist.ask()
    desk.pens[0].write("total = 0\n    for it")
    await settled()
    typist.type("d")
    await settled()
    assert desk.pens[0].is_closed
    typist.type("", back=1)
    assert texts(await typist.ask()) == ["total = 0"]
    assert len(desk.pens) == 1


@pytest.fixture
async def quick():
    """Somebody who types beside a model that judges each start for itself."""
    made = Typist(Desk(replace(STRONG, starts=True, calibrated=True)), SuggestSettings(ahead="off"))
    yield made
    await made.session.end()


async def test_start_of_a_line_is_shown_before_its_end_and_grows(quick):
    quick.open("x = $0\n")
    asked = await quick.ask()
    (pen,) = quick.desk.pens
    pen.write("compute(", p=0.6)
    await settled()
    assert not asked.done()
    pen.write("compute(")
    await settled()
    assert texts(asked) == ["compute("]
    pen.write("compute(y)", final=True)
    await settled()
    assert quick.grew == [URI]
    assert texts(await quick.ask()) == ["compute(y)"]
    assert len(quick.desk.pens) == 1


async def test_start_that_is_typed_on_goes_on(quick):
    quick.open("x = $0\n")
    await quick.ask()
    (pen,) = quick.desk.pens
    pen.write("compute(")
    await settled()
    quick.type("comp")
    assert texts(await quick.ask()) == ["ute("]
    pen.write("compute(y)", final=True)
    await settled()
    assert texts(await quick.ask()) == ["ute(y)"]
    quick.type("a")
    await quick.ask()
    assert len(quick.desk.pens) == 2


async def test_start_that_is_contradicted_stops_the_model(quick):
    quick.open("x = $0\n")
    await quick.ask()
    quick.desk.pens[0].write("compute(")
    await settled()
    quick.type("d")
    await settled()
    assert quick.desk.pens[0].is_closed


async def test_who_asks_by_hand_waits_for_all_of_the_answer(quick):
    quick.open("x = $0\n")
    asked = await quick.ask(invoked=True)
    (pen,) = quick.desk.pens
    pen.write("compute(")
    await settled()
    assert not asked.done()
    pen.write("compute(y)", final=True)
    await asyncio.wait([asked])
    assert texts(asked) == ["compute(y)"]


async def test_half_written_line_is_asked_for_anew(desk, typist):
    typist.open("x = $0\n")
    await typist.ask()
    desk.pens[0].write("compute")
    await settled()
    typist.type("d")
    await settled()
    typist.type("", back=1)
    typist.type("c")
    asked = await typist.ask()
    desk.pens[1].write("ompute(y)", final=True)
    await settled()
    assert texts(asked) == ["ompute(y)"]


async def test_broken_off_rest_is_asked_for_once_its_beginning_is_taken():
    desk = Desk(replace(STRONG, strong=True))
    typist = Typist(desk, SuggestSettings(ahead="off"))
    typist.open("def f(items):\n    $0\n")
    await typist.ask()
    desk.pens[0].write("total = 0\n    for item")
    await settled()
    typist.type("d")
    typist.type("", back=1)
    typist.accept((await typist.ask()).result())
    asked = await typist.ask()
    desk.pens[1].write("\n    for item in items:\n        total += item", final=True)
    await settled()
    assert texts(asked) == ["\n    for item in items:\n        total += item"]
    await typist.session.end()


@pytest.mark.parametrize(("answer", "p"), [("make_user()", 1.0), ("compute(y)", 0.01)])
async def test_name_that_goes_or_comes_elsewhere_is_asked_for_anew(desk, typist, answer, p):
    other = "file:///project/other.py"
    typist.session.open(other, "/project/other.py", "python", 1, "def make_user(): ...\n")
    typist.open("x = $0\n")
    await typist.ask()
    desk.pens[0].write(answer, final=True, p=p)
    await settled()
    typist.session.change(other, 2, [((0, 4, 0, 13), "create_user")], "utf-16")
    await typist.ask()
    assert len(desk.pens) == 2


async def test_refused_suggestion_is_not_followed_ahead(desk, monkeypatch):
    monkeypatch.setattr(following, "AHEAD_SECONDS", 0.01)
    typist = Typist(desk, SuggestSettings(multi_line="always"))
    typist.open("x = $0\n")
    asked = await typist.ask()
    desk.pens[0].write("compute(y)", final=True)
    await asyncio.wait([asked])
    typist.type("d")
    await asyncio.wait([typist.session.following.task], timeout=1.0)
    assert len(desk.pens) == 1
    await typist.session.end()


async def test_changes_in_another_document_take_nothing_away(desk, typist):
    typist.open("x = $0\n")
    await typist.ask()
    desk.pens[0].write("compute(y)", final=True)
    await settled()
    typist.session.open("file:///project/other.py", "/project/other.py", "python", 1, "\n")
    typist.session.change("file:///project/other.py", 2, [((0, 0, 0, 0), "y")], "utf-16")
    assert texts(await typist.ask()) == ["compute(y)"]
    assert len(desk.pens) == 1


async def test_changes_in_another_document_stop_no_engine(desk, typist):
    typist.open("x = $0\n")
    asked = await typist.ask()
    desk.pens[0].write("compute")
    await settled()
    typist.session.open("file:///project/other.py", "/project/other.py", "python", 1, "\n")
    typist.session.change("file:///project/other.py", 2, [((0, 0, 0, 0), "y")], "utf-16")
    desk.pens[0].write("compute(y)", final=True)
    await settled()
    assert texts(asked) == ["compute(y)"]


async def test_silence_at_the_same_place_asks_nobody_unless_the_user_insists(desk, typist):
    typist.open("x = $0\n")
    await typist.ask()
    desk.pens[0].write("compute(y)", final=True, p=0.01)
    await settled()
    again = await typist.ask()
    assert "unsure" in again.result().silence
    assert len(desk.pens) == 1
    await typist.ask(invoked=True)
    assert len(desk.pens) == 2


async def test_explicit_request_gets_all_of_a_suggestion_that_was_cut(desk, typist):
    typist.open("x = $0\n")
    await typist.ask()
    desk.pens[0].write("compute(", final=True, cut=True)
    await settled()
    asked = await typist.ask(invoked=True)
    desk.pens[1].write("compute(y)", final=True)
    await asyncio.wait([asked])
    assert texts(asked) == ["compute(y)"]


async def test_explicit_request_keeps_a_suggestion_of_which_there_is_no_more(desk, typist):
    typist.open("x = $0\n")
    await typist.ask()
    desk.pens[0].write("compute(", final=True, cut=True)
    await settled()
    asked = await typist.ask(invoked=True)
    for pen in (1, 2):  # the line, and the one below
        desk.pens[pen].write("", final=True)
        await settled()
    assert texts(asked) == ["compute("]


async def test_place_whose_prompt_was_not_read_in_time_is_asked_again_until_it_is(desk, typist):
    typist.open("x = $0\n")
    asked = await typist.ask()
    desk.pens[0].read_until(900)
    desk.pens[0].read_until(600, final=True)
    await settled()
    assert asked.result().silence.startswith("late: the model is still reading the code around the cursor, 600 tokens")
    desk.pens[1].read_until(200, final=True)
    await settled()
    desk.pens[2].write("compute(y)", final=True)
    await settled()
    assert typist.grew == [URI]
    assert texts(await typist.ask()) == ["compute(y)"]
    assert len(desk.pens) == 3


async def test_late_place_is_asked_again_only_while_it_is_read_and_the_text_stays(desk, typist):
    typist.open("x = $0\n")
    await typist.ask()
    desk.pens[0].read_until(600, final=True)
    await settled()
    desk.pens[1].read_until(600, final=True)
    await settled()
    assert len(desk.pens) == 2
    await typist.ask()
    desk.pens[2].read_until(400, final=True)
    await settled()
    typist.type("compute")
    desk.pens[3].read_until(100, final=True)
    await settled()
    assert len(desk.pens) == 4
    assert typist.grew == []


async def test_late_place_is_left_for_the_one_that_is_asked_next(desk, typist, monkeypatch):
    monkeypatch.setattr(generations, "LINGER_SECONDS", 0.0)
    typist.open("x = $0\ny = \n")
    await typist.ask()
    desk.pens[0].read_until(600, final=True)
    await settled()
    desk.pens[1].read_until(400)
    await settled()
    typist.cursor = len("x = \ny = ")
    await typist.ask()
    assert [pen.is_closed for pen in desk.pens] == [True, True, False]


async def test_late_place_that_is_asked_again_waits_for_the_running_answer(desk, typist):
    typist.open("x = $0\n")
    await typist.ask()
    desk.pens[0].read_until(600, final=True)
    await settled()
    asked = await typist.ask()
    desk.pens[1].write("compute(y)", final=True)
    await settled()
    assert texts(asked) == ["compute(y)"]
    assert len(desk.pens) == 2


async def test_unlikely_answer_for_less_text_is_asked_for_again(desk, typist):
    typist.open("x = $0\n")
    await typist.ask()
    typist.type("c")
    asked = await typist.ask()
    desk.pens[0].write("compute(y)", final=True, p=0.01)
    await settled()
    desk.pens[1].write("ompute(y)", final=True)
    await settled()
    assert texts(asked) == ["ompute(y)"]


BLOCK = "total = 0\n    for item in items:\n        total += item\n    return total"


async def test_first_line_is_shown_once_it_stands_and_the_rest_when_taken(desk, typist):
    typist.open("def f(items):\n    $0\n")
    asked = await typist.ask()
    desk.pens[0].write("total = 0\n    for it")
    await settled()
    assert texts(asked) == ["total = 0"]
    desk.pens[0].write(BLOCK, final=True)
    await settled()
    assert typist.grew == [URI]
    typist.accept(asked.result())
    asked = await typist.ask()
    assert texts(asked) == [BLOCK.removeprefix("total = 0")]
    assert len(desk.pens) == 1


async def test_request_by_hand_waits_for_the_whole_answer_but_not_for_ever(desk, typist, monkeypatch):
    monkeypatch.setattr(completions, "ALTERNATIVES_SECONDS", 0.0)
    typist.open("def f(items):\n    $0\n")
    asked = await typist.ask(invoked=True)
    desk.pens[0].write("total = 0\n    for it")
    await settled()
    assert not asked.done()
    desk.pens[0].write(BLOCK, final=True)
    await asyncio.wait([asked])
    assert texts(asked) == [BLOCK]
    monkeypatch.setattr(requests, "EXPLICIT_SECONDS", 0.0)
    typist.session.generations.clear()
    asked = await typist.ask(invoked=True)
    desk.pens[-1].write("total = 0\n    for it")
    await asyncio.wait([asked])
    assert texts(asked) == ["total = 0"]


async def test_request_whose_text_is_typed_past_waits_for_news_alone(desk, typist, monkeypatch):
    """Not for the moment in which a client that hears of no growth would have got what stood."""
    waits, news = [], generations.Generation.news

    async def noted(self, known, until=None):
        waits.append(until)
        await news(self, known, until)

    monkeypatch.setattr(generations.Generation, "news", noted)
    typist.session.following.on_growth = None
    typist.open("def f(items):\n    $0\n")
    asked = await typist.ask()
    desk.pens[0].write("total = 0\n    for it")
    await settled()
    assert waits[-1] is not None
    typist.type("total = 0")
    desk.pens[0].write("total = 0\n    for item")
    await settled()
    assert waits[-1] is None
    asked.cancel()


async def test_client_that_is_told_of_no_growth_waits_a_moment_for_the_whole_answer(desk, typist, monkeypatch):
    typist.session.following.on_growth = None
    typist.open("def f(items):\n    $0\n")
    asked = await typist.ask()
    desk.pens[0].write("total = 0\n    for it")
    await settled()
    assert not asked.done()
    desk.pens[0].write(BLOCK, final=True)
    await settled()
    assert texts(asked) == [BLOCK]
    monkeypatch.setattr(requests, "UNHEARD_SECONDS", 0.0)
    typist.session.generations.clear()
    asked = await typist.ask()
    desk.pens[1].write("total = 0\n    for it")
    await settled()
    assert texts(asked) == ["total = 0"]


async def test_client_that_hears_of_growth_gets_all_by_asking_again(desk, typist):
    typist.open("def f(items):\n    $0\n")
    await typist.ask()
    for end in range(1, len(BLOCK)):
        desk.pens[0].write(BLOCK[:end])
        await settled()
    seen = ""
    for _ in typist.grew:
        (text,) = texts(await typist.ask())
        assert text.startswith(seen)
        seen = text
    desk.pens[0].write(BLOCK, final=True)
    await settled()
    assert texts(await typist.ask()) == [BLOCK]


async def test_failing_engine_takes_nothing_from_what_stands(desk, typist):
    typist.open("def f(items):\n    $0\n")
    asked = await typist.ask()
    desk.pens[0].write("total = 0\n    for it")
    desk.pens[0].fail()
    await settled()
    assert texts(asked) == ["total = 0"]
    assert texts(await typist.ask()) == ["total = 0"]


async def test_explicit_request_shows_first_answer_and_others_when_repeated(desk, typist, monkeypatch):
    monkeypatch.setattr(completions, "ALTERNATIVES_SECONDS", 0.0)
    typist.open("x = $0\n")
    asked = await typist.ask(invoked=True)
    desk.pens[0].write("compute(y)", final=True)
    await asyncio.wait([asked])
    assert texts(asked) == ["compute(y)"]
    assert [pen.gap.seed for pen in desk.pens] == [0, 1, 2]
    desk.pens[1].fail()
    desk.pens[2].write("other(y)", final=True, p=0.95)
    await settled()
    assert typist.grew == [URI]
    assert texts(await typist.ask(invoked=True)) == ["compute(y)", "other(y)"]
    assert len(desk.pens) == 3


async def test_explicit_request_takes_answer_being_written(desk, typist):
    typist.open("x = $0\n")
    await typist.ask()
    asked = await typist.ask(invoked=True)
    desk.pens[0].write("compute(y)", final=True)
    await asyncio.wait([asked])
    assert texts(asked) == ["compute(y)"]


async def test_explicit_request_asks_anew_where_running_answer_failed(desk, typist):
    typist.open("x = $0\n")
    await typist.ask()
    asked = await typist.ask(invoked=True)
    desk.pens[0].write("unlikely", final=True, p=0.01)
    await settled()
    desk.pens[1].write("compute(y)", final=True)
    await asyncio.wait([asked])
    assert texts(asked) == ["compute(y)"]


async def test_text_after_a_suggestion_is_there_when_it_is_taken(desk, monkeypatch):
    monkeypatch.setattr(following, "AHEAD_SECONDS", 0.0)
    typist = Typist(desk, SuggestSettings(multi_line="always"))
    typist.open("x = $0\n")
    asked = await typist.ask()
    desk.pens[0].write("compute(y)", final=True)
    await settled()
    desk.pens[1].write("\nprint(x)", final=True)
    await settled()
    typist.type("com")
    asked = await typist.ask()
    assert texts(asked) == ["pute(y)"]
    typist.accept(asked.result())
    asked = await typist.ask()
    assert texts(asked) == ["\nprint(x)"]
    await typist.session.end()


async def test_answers_that_cost_money_are_not_asked_ahead(monkeypatch):
    monkeypatch.setattr(following, "AHEAD_SECONDS", 0.0)
    desk = Desk(replace(STRONG, metered=True))
    typist = Typist(desk, SuggestSettings(delay_ms=0))
    typist.open("x = $0\n")
    await typist.ask()
    desk.pens[0].write("compute(y)", final=True)
    await settled()
    assert len(desk.pens) == 1
    await typist.session.end()


@pytest.mark.parametrize("suggest", [SuggestSettings(trigger="request"), SuggestSettings(languages={"*": "request"})])
async def test_on_request_only_no_model_runs_while_typing(desk, suggest):
    typist = Typist(desk, suggest)
    typist.open("x = $0\n")
    asked = await typist.ask()
    assert asked.result().silence.startswith("suggestions come on request only (suggest.")
    await typist.session.idle.warm()
    assert desk.pens == []
    asked = await typist.ask(invoked=True)
    desk.pens[0].write("compute(y)", final=True)
    await asyncio.wait([asked])
    assert texts(asked) == ["compute(y)"]
    await typist.session.end()
