"""What became of suggestions: each counts once, several servers share one file, and nothing but numbers is in it."""

import io
import logging
import os
import stat
from datetime import date

import pytest

from mercury_ls.session import stats
from mercury_ls.session.stats import Row, Stats, Tally, markdown, recent, table

NOON = 1_800_000_000.0


def clock() -> float:
    return NOON


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "stats.jsonl"


def check(*told: tuple, **expected: int) -> None:
    """What a client tells of one suggestion, and what is counted of it."""
    counted = Stats(clock=clock)
    tally = Tally(counted)
    tally.offered("a", "python", "inline")
    for what, *arguments in told:
        getattr(tally, what)("a", *arguments)
    zero = dict.fromkeys(stats.COUNTS, 0)
    found = {name: getattr(row, name) for row in counted.rows() for name in zero}
    assert {**zero, **found} == {**zero, **expected}


def test_answered_suggestion_is_shown_unless_the_client_reports_itself():
    check()
    check(("answered",), shown=1)
    check(("answered",), ("answered",), ("shown",), shown=1)
    check(("shown",), ("shown",), shown=1)


def test_client_that_reports_what_it_shows_is_believed():
    counted = Stats(clock=clock)
    tally = Tally(counted)
    for id in "ab":
        tally.offered(id, "python", "inline")
    tally.shown("a")
    tally.answered("b")
    assert [row.shown for row in counted.rows()] == [1]


def test_suggestions_have_one_end():
    check(("answered",), ("accepted", 5), ("accepted", 0), ("rejected",), shown=1, accepted=1, characters=5)
    check(("answered",), ("rejected",), ("rejected",), shown=1, rejected=1)
    check(("answered",), ("passed_over",), ("rejected",), shown=1)
    check(("answered",), ("typed_through",), ("rejected",), shown=1, typed_through=1)


def test_word_by_word_is_one_accept_of_all_its_characters():
    check(("accepted", 3), ("accepted", 4), shown=1, accepted=1, characters=7)


def test_accept_reported_after_its_text_is_no_typing():
    check(("answered",), ("typed_through",), ("accepted", 5), shown=1, accepted=1, characters=5)


def test_two_servers_count_in_one_file(path):
    first, second = (Stats(path, clock) for _ in range(2))
    first.add("python", "inline", "shown", 2)
    second.add("python", "inline", "shown", 3)
    second.add("lua", "nextEdit", "accepted")
    first.write()
    second.write()
    assert first.rows() == second.rows() == Stats(path, clock).rows()
    assert [(row.language, row.kind, row.shown, row.accepted) for row in first.rows()] == [
        ("lua", "nextEdit", 0, 1),
        ("python", "inline", 5, 0),
    ]


def test_file_is_for_its_user_alone_and_holds_only_numbers(path):
    counted = Stats(path, clock)
    counted.add("/home/me/secret.py", "inline", "characters", 7)
    counted.write()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == (
        b'{"day":"%s","language":"other","kind":"inline","shown":0,"typedThrough":0,"accepted":0,"rejected":0,'
        b'"characters":7,"model":""}\n' % str(counted.today).encode()
    )


def test_broken_lines_are_skipped_and_reported(path, caplog):
    counted = Stats(path, clock)
    counted.add("python", "inline", "shown")
    counted.write()
    with path.open("ab") as file:
        file.write(b'\xff\x00\n[]\n{"day": "yesterday", "language": "c", "kind": "inline"}\n{"day": "2026-01-')
    counted.add("python", "inline", "shown")
    counted.write()
    assert [row.shown for row in counted.rows()] == [2]
    assert "skipped 4 of 6 lines" in caplog.text


def test_long_file_is_written_anew_with_the_same_sums(path, monkeypatch):
    monkeypatch.setattr(stats, "COMPACTED_BYTES", 300)
    counted = Stats(path, clock)
    sizes = []
    for _ in range(20):
        counted.add("python", "inline", "shown")
        counted.write()
        sizes.append(path.stat().st_size)
    assert [row.shown for row in counted.rows()] == [20]
    assert max(sizes) < 1000
    assert sorted(os.listdir(path.parent)) == ["stats.jsonl", "stats.lock"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_unwritable_statistics_are_reported_once_and_kept_for_later(path, caplog):
    path.parent.touch()
    counted = Stats(path, clock)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            counted.add("python", "inline", "shown")
            counted.write()
    assert len(caplog.records) == 1
    assert str(path) in caplog.text
    assert "Not stored" in counted.where
    path.parent.unlink()
    counted.write()
    assert "Not stored" not in counted.where
    assert [row.shown for row in Stats(path, clock).rows()] == [3]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_pipe_in_place_of_file_is_not_waited_for(path, caplog):
    path.parent.mkdir()
    os.mkfifo(path)
    counted = Stats(path, clock)
    counted.add("python", "inline", "shown")
    counted.write()
    assert [row.shown for row in counted.rows()] == [1]
    assert len(caplog.records) == 1


def test_full_disk_takes_back_its_part_of_line(path, monkeypatch):
    counted = Stats(path, clock)
    counted.add("python", "inline", "shown")
    counted.write()
    counted.add("python", "inline", "shown")
    with monkeypatch.context() as patch:
        patch.setattr(stats, "open", lambda *_, **__: Full(path, "ab", buffering=0), raising=False)
        with pytest.raises(OSError, match="of"):
            stats.append(path, counted._new.values(), 0)
    counted.write()
    assert [row.shown for row in counted.rows()] == [2]


class Full(io.FileIO):
    """A disk that has room for ten bytes more."""

    def __init__(self, path, mode, buffering):
        super().__init__(path, "a+")

    def write(self, data):
        return super().write(data[:10])


def test_lock_holder_is_not_waited_for(path):
    counted = Stats(path, clock)
    counted.add("python", "inline", "shown")
    with stats.locked(path):
        counted.write()
    assert Stats(path, clock).rows() == []
    counted.write()
    assert [row.shown for row in Stats(path, clock).rows()] == [1]


def test_statistics_are_not_counted_where_switched_off(path):
    counted = Stats(path, clock)
    counted.enabled = False
    counted.add("python", "inline", "shown")
    counted.write()
    assert counted.rows() == []
    assert not path.exists()
    assert "record.counts" in counted.where


ROWS = [
    Row(date(2026, 3, 2), "python", "inline", 1200, 3, 10, 1, 4000),
    Row(date(2026, 3, 1), "lua", "nextEdit", 2, 0, 1, 0, 12),
    Row(date(2026, 2, 20), "lua", "inline", 7),
]


def test_last_days_are_counted_back_from_today():
    assert recent(ROWS, 1, date(2026, 3, 2)) == ROWS[:1]
    assert recent(ROWS, 2, date(2026, 3, 2)) == ROWS[:2]
    assert recent(ROWS, 30, date(2026, 3, 2)) == ROWS


def test_table_for_terminal_has_rows_and_totals():
    assert table(ROWS[:2]).splitlines() == [
        "day         language  kind        shown  typed through  accepted  rejected  characters saved",
        "2026-03-02  python    inline      1,200              3        10         1             4,000",
        "2026-03-01  lua       next edits      2              0         1         0                12",
        "total                 inline      1,200              3        10         1             4,000",
        "total                 next edits      2              0         1         0                12",
    ]


def test_page_for_editors_is_a_markdown_table():
    page = markdown(ROWS[1:2], "Kept here.")
    assert page.splitlines() == [
        "# mercury-ls: suggestions",
        "",
        "| day | language | kind | shown | typed through | accepted | rejected | characters saved |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |",
        "| total |  | next edits | 2 | 0 | 1 | 0 | 12 |",
        "| 2026-03-01 | lua | next edits | 2 | 0 | 1 | 0 | 12 |",
        "",
        "Kept here.",
    ]
    assert "Nothing has been counted yet" in markdown([], "Kept here.")
