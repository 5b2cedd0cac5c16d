import asyncio
import math
import threading

import msgspec
import pytest
from msgspec.structs import replace

from bench.harness.in_process import InProcessClient
from bench.harness.usage import Usage
from bench.next_edit.cases import Case
from bench.next_edit.measure import Outcome
from bench.quality.editor import AnswerCost, Contender, Metered, RowAnswer, complete, filled, next_edit
from bench.quality.figures import AnsweredRow, beside, figures, next_edit_figures
from bench.quality.measure import QualityRun, answered, ends_in_place, fim_set, measure
from bench.quality.tables import tables
from mercury_engine.api import Draft, EngineInfo
from mercury_engine.fake import FakeEngine
from mercury_ls.code.documents import Document
from mercury_ls.code.edits import TextEdit, difference
from mercury_ls.code.history import History
from mercury_ls.session import requests
from mercury_ls.session.session import Session
from mercury_training.evaluate.programs import executor
from mercury_training.rows.fim_rows import FimRow


class Says:
    """Gives one answer, in a draft and then whole, as sure as it is told to be."""

    def __init__(self, text: str, p_accept: float) -> None:
        self._text, self._p_accept = text, p_accept

    def fill(self, gap):
        yield Draft(1, self._text[:1], (), self._p_accept)
        yield Draft(2, self._text, (), self._p_accept, True, final=True)

    def warm(self, request):
        return iter(())

    def info(self):
        return EngineInfo("says", "one thing", "nowhere", 2048)


def row(marked: str, middle: str, **fields) -> FimRow:
    prefix, suffix = marked.split("$0")
    known = {"repo": "r", "commit": "c", "licence": "MIT", "path": "a.py", "language": "python", "kind": "single_line"}
    return FimRow(**known | {"id": middle, "prefix": prefix, "suffix": suffix, "middle": middle} | fields)


def ask(engine, what, how=complete):
    async def asked():
        meter = Metered(engine)
        client = InProcessClient(meter)
        await client.start()
        try:
            return await how(Contender("us", client, meter), what)
        finally:
            await client.close()

    return asyncio.run(asked())


AREA = row("def area(width, height):\n    return $0\n", "width * height")


def test_likely_answer_is_shown_and_given():
    found = ask(Says("width * height", 0.9), AREA)
    assert (found.shown, found.answer, found.p_accept) == ("width * height", "width * height", 0.9)
    assert (found.cost.passes, found.cost.drafts) == (2, ("w", "width * height"))


class Grows(Says):
    """Writes the second line once somebody waits for it."""

    def __init__(self, waited: threading.Event) -> None:
        super().__init__("", 0.9)
        self._waited = waited

    def fill(self, gap):
        yield Draft(1, "total = 1\n    to", (0.9,) * 4, 0.9)
        self._waited.wait(10)
        yield Draft(2, "total = 1\n    total += 2", (0.9,) * 8, 0.9, True, final=True)

    def info(self):
        return replace(super().info(), strong=True, grows=True)


def test_block_counts_as_a_whole_although_its_first_line_stands_earlier(monkeypatch):
    waited, written = threading.Event(), Session.written

    def waits(session):
        waited.set()
        return written(session)

    monkeypatch.setattr(Session, "written", waits)
    monkeypatch.setattr(requests, "UNHEARD_SECONDS", 0.0)
    block = row("def area(width, height):\n    $0\n", "total = 1\n    total += 2", kind="multi_line")
    assert ask(Grows(waited), block).shown == block.middle


def test_answer_under_bar_is_given_only_when_asked_outright():
    found = ask(Says("width * height", 0.1), AREA)
    assert (found.shown, found.answer) == (None, "width * height")
    assert found.silence.startswith("unsure")


def test_measurement_is_empty_where_the_engine_is_not_asked():
    found = ask(Says("width", 0.9), row("# wi$0dth\n", "x"))
    assert found.shown is None
    assert found.cost is None


def test_steps_of_engine_that_keeps_no_count_are_its_passes():
    assert ask(FakeEngine(answers={"return": "1"}, passes=4), AREA).cost.passes == 4


def test_completion_stands_between_prefix_and_suffix():
    call = row("print(len($0)\n", "names)")
    before = len(call.prefix)
    assert filled(call, TextEdit(before, before, "names)")) == "names)"
    assert filled(call, TextEdit(before, before + 1, "names))")) == "names)"
    assert filled(call, TextEdit(6, before + 1, "sum(names)")) == "sum(names)"


def renamed() -> Case:
    """One of three uses of a name has been changed."""
    before = "total = load(1)\nprint(total)\nsave(total)\n"
    after = before.replace("total", "count", 1)
    history = History()
    history.record("a.py", before, difference(before, after), 0.0)
    snapshot = Document("file:///a.py", "a.py", "python", 1, after).snapshot()
    uses = [after.index("total"), after.rindex("total")]
    due = [TextEdit(start, start + 5, "count") for start in uses]
    return Case("propagate", snapshot, 5, history, tuple(due[:1]), tuple(due[1:]))


def test_next_edits_follow_from_the_history_of_the_row():
    found = ask(FakeEngine(), renamed(), next_edit)
    assert {change.text for change in found.changes} == {"count"}


def test_without_a_history_there_is_no_next_edit():
    found = ask(FakeEngine(), replace(renamed(), history=History()), next_edit)
    assert not found.changes
    assert found.silence


def made(
    right: bool, *, shown: bool = True, p: float = 0.5, kind: str = "single_line", ms: float = 10.0
) -> AnsweredRow:
    text = "yes" if right else "no"
    given = row("$0", "yes", kind=kind, id=f"{right}{shown}{p}{kind}{ms}")
    asked = RowAnswer(
        shown=text if shown else None,
        silence="" if shown else "unsure: 1 %",
        answer=text,
        p_accept=p,
        cost=AnswerCost(ms, 1.0, 2, None, ("", text)),
    )
    return answered("set", "us", given, asked, None)


def test_precision_is_of_what_is_shown_and_stands_beside_how_often_that_is():
    found = figures([made(True), made(False), made(True, shown=False), made(False, shown=False, kind="multi_line")])
    assert (found["shown"][0], found["right_when_shown"][0]) == (0.5, 0.5)
    assert (found["given"][0], found["right_when_given"][0]) == (1.0, 0.5)
    assert found["by_kind"]["multi_line"]["shown"][0] == 0.0
    assert found["by_kind"]["multi_line"]["right_when_shown"] is None
    assert found["dropped"] == {"unsure": 2}


def test_beginning_is_right_if_true_text_begins_with_it():
    given = [RowAnswer(shown=text, silence="", answer=text, p_accept=1.0, cost=None) for text in ("ye", "yet")]
    found = [answered("set", "us", row("$0", "yes"), each, None) for each in given]
    assert [each.right for each in found] == [True, False]
    assert (figures(found)["right_when_shown"][0], figures(found)["begins_when_shown"][0]) == (0.0, 0.5)
    assert figures(found)["ece"] == 0.5


@pytest.mark.parametrize(
    ("answer", "ended"),
    [
        ("a + b", True),
        ("a + b\n\nprint", False),
        ("a + b\n", True),
        ("c\n\nprint(add", False),
        ("c", True),
        ("c\nprint(sub(1))", True),
    ],
)
def test_answer_ends_where_code_behind_it_begins(answer, ended):
    assert ends_in_place(row("return $0\n\nprint(add(1, 2))\n", "a + b"), answer) is ended


def test_calibration_and_passes():
    found = figures([made(True, p=1.0), made(False, p=1.0)])
    assert found["ece"] == 0.5
    assert found["reliability"] == [{"count": 2, "confidence": 1.0, "accuracy": 0.5}]
    assert (found["passes"], found["characters_per_pass"]) == (2.0, 1.25)
    assert found["similarity_after_passes"][:2] == [0.0, 0.5]


def test_peer_is_compared_row_by_row():
    ours = [made(True, ms=10.0), made(False, ms=100.0)]
    theirs = [replace(each, cost=AnswerCost(3 * each.cost.milliseconds, 1.0, 6, None, ("yes",))) for each in ours]
    found = beside(ours, theirs)
    assert found["times_our_time"] == [3.0, 3.0, 3.0]
    assert found["times_our_passes"] == 3.0
    assert found["same_answer"][0] == 0.5


def test_set_is_answered_by_all_in_turn(tmp_path):
    path = tmp_path / "own" / "fim.jsonl"
    path.parent.mkdir()
    path.write_bytes(msgspec.json.encode(AREA) + b"\n")

    async def asked():
        meters = {"a": Metered(Says("width * height", 0.9)), "b": Metered(Says("0", 0.9))}
        contenders = [Contender(name, InProcessClient(meter), meter) for name, meter in meters.items()]
        for each in contenders:
            await each.client.start()
        found = await fim_set(path, contenders, QualityRun(), Usage())
        for each in contenders:
            await each.client.close()
        return found

    found = asyncio.run(asked())
    assert [found[name]["exact"][0] for name in "ab"] == [1.0, 0.0]
    assert "times_our_time" in found["b"]
    printed = "\n".join(
        tables({"engine": "a", "model": "m", "machine": "x", "fim": {"own/fim": found}, "next_edit": {}})
    )
    assert "times our time" in printed


def test_same_engine_is_asked_at_another_effort(tmp_path):
    path = tmp_path / "own" / "fim.jsonl"
    path.parent.mkdir()
    path.write_bytes(msgspec.json.encode(AREA) + b"\n")
    found = asyncio.run(measure(QualityRun(engine="fake", peers=("peer:effort:instant",), fim=(path,))))
    by_effort = found["fim"]["own/fim"]
    assert [*by_effort] == ["fake", "effort:instant"]
    assert by_effort["effort:instant"]["passes"] < by_effort["fake"]["passes"]


def test_code_that_cannot_be_executed_has_no_pass_rate():
    with executor([AREA]) as (execute, _):
        assert execute(AREA, "width") is None
    assert figures([made(True)])["pass_at_1"] is None


def outcome(kind: str, shown: bool, delta: float = 0.0) -> Outcome:
    return Outcome(kind, shown, delta == 100.0, shown, 0, delta, 0.5, 1.0)


def test_next_edits_have_show_and_quiet_rates_with_intervals():
    found = next_edit_figures([outcome("repeat", True, 100.0), outcome("repeat", False), outcome("none", False)])
    assert (found["show"][0], found["quiet"][0], found["right_when_shown"][0]) == (0.5, 1.0, 1.0)
    assert found["by_kind"]["none"]["show"] is None
    assert found["score"] == round(0.5 * 2 * 0.5 / 1.5, 3)
    assert all(low <= value <= high for value, low, high in (found["show"], found["quiet"], found["delta_chrf"]))


def test_figure_without_anything_to_count_is_null():
    found = next_edit_figures([outcome("none", True)])
    assert found["show"] is None
    assert found["delta_chrf"] is None
    assert not math.isnan(found["ece"])
