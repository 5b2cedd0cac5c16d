"""The profile of a replay: which work is whose."""

import math

import msgspec

from bench.replay.player import INLINE, Exchange
from bench.replay.profile import profile_table, read_log, shares
from mercury_engine.decode.work import Work, log


def work(kind: str, began: float) -> Work:
    return Work(kind, began, began + 1, {"read": 1}, {"read": 0.5}, {"head": 7})


def displayed(method: str, sent: float, ms: float = 100, *, is_repeated: bool = False) -> Exchange:
    return Exchange(method, sent, final_ms=ms, is_shown=True, is_repeated=is_repeated)


def test_request_is_answered_by_latest_question_of_its_kind():
    works = [work("completion", 1.0), work("ahead", 1.5), work("opinion", 2.0), work("completion", 3.0)]
    asked = [displayed(INLINE, 0.95), displayed(INLINE, 2.8), displayed("mercury/nextEdit", 3.5, is_repeated=True)]
    totals = shares(works, [*asked, Exchange(INLINE, 4.0, final_ms=math.nan)])
    fates = {name: share.questions for name, share in totals.items()}
    assert fates == {"completion, shown": 1, "ahead": 1, "opinion, not shown": 1, "completion, not shown": 1}
    assert totals["completion, shown"].read == {"head": 7}


def test_table_adds_everything_up():
    table = profile_table(shares([work("ahead", 1.0), work("completion", 2.0)], []))
    rows = {line[:30].strip(): line[30:].split() for line in table.splitlines()}
    assert rows["questions"] == ["1", "1", "2"]
    assert rows["tokens read"] == rows["head"] == ["7", "7", "14"]
    assert rows["seconds"] == ["0.50", "0.50", "1.00"]


def test_log_of_all_programs_is_read(tmp_path):
    later, earlier = work("ahead", 2.0), work("completion", 1.0)
    records = [msgspec.json.encode(record).decode() for record in (later, earlier)]
    lines = [f"2026-11-28 12:00:00,000 DEBUG {log.name}: {record}" for record in records]
    (tmp_path / "work.log").write_text("\n".join([lines[0], "2026 DEBUG asyncio: other", lines[1]]), encoding="utf-8")
    assert read_log(tmp_path / "work.log") == [earlier, later]
