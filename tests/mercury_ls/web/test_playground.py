import json

import pytest

from mercury_engine.fake import FakeEngine
from mercury_ls.web.playground import percentile
from tests.mercury_ls.web.serving import client, served

TEXT = "def area(w, h):\n    "


@pytest.fixture
async def asking():
    async with served(FakeEngine({"def area": "return w * h"}, passes=3)) as (_, app), client(app) as found:
        yield found


async def frames(asking, **body):
    answer = await asking.post("/playground/watch", json={"text": TEXT, "cursor": len(TEXT), "path": "a.py", **body})
    assert answer.status_code == 200, answer.text
    events = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    assert events.pop() == "[DONE]"
    return [json.loads(event) for event in events]


async def test_draft_is_watched_pass_by_pass(asking):
    first, *passes = await frames(asking)
    assert first["context"]["before"] == TEXT
    assert [each["step"] for each in passes] == [1, 2, 3]
    assert [any(not slot["text"] for slot in each["slots"]) for each in passes] == [True, True, False]
    assert [each.get("final", False) for each in passes] == [False, False, True]
    assert passes[-1]["text"] == "return w * h"


async def test_other_files_and_edits_are_context(asking):
    edit = {"line": 0, "before": "def size(w, h):\n", "after": "def area(w, h):\n"}
    other = {"path": "b.py", "text": "def volume(w, h, d):\n    return area(w, h) * d\n"}
    first, *_ = await frames(asking, others=[other], edits=[edit])
    assert [each["path"] for each in first["context"]["snippets"]] == ["b.py"]
    assert [each["before"] for each in first["context"]["edits"]] == ["def size(w, h):\n"]


async def test_why_the_model_is_not_asked(asking):
    first, last = await frames(asking, path=".env")
    assert first.get("context") is None
    assert "private" in last["silence"]


async def test_outcome_of_a_suggestion_is_counted(asking):
    *_, last = await frames(asking)
    said = {"request_id": last["id"], "user_action": "accept"}
    assert (await asking.post("/feedback", json=said)).json() == {"counted": True}


@pytest.mark.parametrize("body", [{"cursor": -1}, {"effort": "most"}, {"text": None}])
async def test_malformed_request_is_refused(asking, body):
    answer = await asking.post("/playground/watch", json={"text": TEXT, "cursor": 0, **body})
    assert answer.status_code in (400, 422)
    assert answer.json()["error"]["param"]


async def test_statistics_are_of_what_was_answered(asking):
    await frames(asking)
    found = (await asking.get("/playground/statistics")).json()
    assert found["answers"] == 1
    assert set(found["latency_ms"]) == {"p50", "p90", "p99"}
    assert [(row["language"], row["kind"], row["shown"]) for row in found["rows"]] == [("python", "inline", 1)]


@pytest.mark.parametrize(
    ("values", "share", "expected"), [([1], 50, 1), ([1, 2, 3, 4], 50, 2), ([*range(100)], 99, 98)]
)
def test_percentile_is_one_of_the_values(values, share, expected):
    assert percentile(values, share) == expected
