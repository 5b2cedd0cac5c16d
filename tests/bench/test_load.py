import math

import pytest

from bench.harness.usage import Usage
from bench.load import Crowd, answered_share, crowded, summary, turned, wrong
from bench.replay.figures import Played, lost
from bench.replay.habits import CLIENTS
from bench.replay.player import INLINE, Exchange
from bench.replay.session import Changed, Header, Opened, ended


def asked(milliseconds: float, **more) -> Exchange:
    return Exchange(INLINE, 0.0, **{"final_ms": milliseconds, "source": "model", "steps": 1, **more})


def crowd(*editors: list[Exchange]) -> Crowd:
    return Crowd([[Played("one", each, [], [], Usage())] for each in editors], [Usage() for _ in editors], Usage())


def usage(*memory: float) -> Usage:
    return Usage(memory=list(enumerate(memory)))


def test_unanswered_request_is_lost_and_cancelled_one_is_not():
    assert lost([asked(5.0), asked(3.0, silence="cancelled"), asked(math.nan), asked(1.0, silence="error -32603")]) == 2


def test_starved_editor_is_seen():
    starved = [asked(5.0, source="", steps=0, silence="a newer request took its place")]
    found = summary([crowd([asked(5.0)]), crowd([asked(9.0), asked(11.0)], starved)])["crowds"]
    assert (found["1"]["fewest_answered_share"], found["2"]["fewest_answered_share"]) == (1.0, 0.0)
    assert (found["1"]["starved"], found["2"]["starved"]) == (0, 1)
    assert list(wrong(crowd([asked(5.0)], starved), 0.0)) == ["2 editors: editor 2 starved"]


def test_growth_is_told_against_the_smallest_crowd():
    found = summary([crowd([asked(10.0)]), crowd([asked(30.0)], [asked(15.0)])])["crowds"]
    assert [found[editors]["p90_ratio"] for editors in ("1", "2")] == [1.0, 3.0]
    assert summary([crowd([])])["crowds"]["1"]["p90_ratio"] is None


def test_soak_fails_where_memory_keeps_growing_and_not_where_caches_fill():
    fills, leaks = usage(100, 150, 200, 200, 200, 200, 200, 200), usage(*range(100, 180, 10))
    assert (fills.growth_mb, leaks.growth_mb) == (0, 40)
    grown = Crowd([[]], [leaks], fills)
    assert list(wrong(grown, 24)) == ["1 editors: server 1 grew by 40 MB after its caches were full"]
    assert list(wrong(grown, math.inf)) == []


def test_lost_requests_and_wrong_texts_are_complained_of():
    (complaint,) = wrong(crowd([asked(math.nan), asked(1.0)]), math.inf)
    assert complaint == "1 editors: 1 requests were not answered"
    astray = Crowd([[Played("one", [], [], [], Usage(), 1, ("file:///a.py",))]], [Usage()], Usage())
    assert list(wrong(astray, math.inf)) == ["1 editors: another text than the editor's: file:///a.py"]


def test_cancelled_requests_do_not_count_as_unanswered():
    assert answered_share([asked(1.0), asked(2.0, source="", silence="cancelled")]) == 1.0


def test_editors_begin_with_different_sessions():
    one, two = ended(Header(v=1), [], "one"), ended(Header(v=1), [], "two")
    assert [[s.name for s in turned([one, two], n)] for n in range(3)] == [
        ["one", "two"],
        ["two", "one"],
        ["one", "two"],
    ]


@pytest.mark.slow
def test_two_editors_on_one_engine_lose_nothing():
    events = [Opened(t=0, d=0, text="total = compute(1)\n\n", path="a.py", lang="python")]
    events += [Changed(t=60 * n, d=0, ver=n + 1, c=[[1, n - 1] * 2 + [key]]) for n, key in enumerate("total = c", 1)]
    session = ended(Header(v=1), events, "typed")
    found = crowded(2, [session], CLIENTS["vscode"], 1000, 0.0, "fake")
    assert [len(editor) for editor in found.editors] == [1, 1]
    assert list(wrong(found, math.inf)) == []
    assert [(played.texts, played.wrong_texts) for editor in found.editors for played in editor] == [(1, ()), (1, ())]
