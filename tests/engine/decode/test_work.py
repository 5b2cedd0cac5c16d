"""The work of a question, as it is logged."""

import logging
from itertools import count

import msgspec

from mercury_engine.decode.policy import Report
from mercury_engine.decode.work import Work, log, logged


def steps(report: Report):
    report.reads({"head": 3})
    report.count("read", rows=3, settled=0)
    yield "first"
    report.count("verify", rows=4, settled=2)
    yield "second"


def records(caplog) -> list[Work]:
    return [msgspec.json.decode(record.getMessage(), type=Work) for record in caplog.records]


def test_passes_their_time_and_tokens_read_are_logged_at_the_end(caplog):
    caplog.set_level(logging.DEBUG, log.name)
    report, ticks = Report(), count()
    report.count("read", rows=1, settled=0)  # another question's
    assert list(logged("completion", report, steps(report), clock=lambda: float(next(ticks)))) == ["first", "second"]
    (work,) = records(caplog)
    assert (work.kind, work.began, work.ended) == ("completion", 0.0, 7.0)
    assert (work.passes, work.read) == ({"read": 1, "verify": 1}, {"head": 3})
    assert work.seconds == {"read": 1.0, "verify": 1.0, "between passes": 1.0}


def test_question_that_is_given_up_is_logged_and_ended(caplog):
    caplog.set_level(logging.DEBUG, log.name)
    report = Report()
    inner = steps(report)
    outer = logged("completion", report, inner)
    next(outer)
    outer.close()
    (work,) = records(caplog)
    assert work.passes == {"read": 1}
    assert next(inner, "over") == "over"


def test_log_stays_empty_unless_wanted(caplog):
    caplog.set_level(logging.INFO, log.name)
    report = Report()
    assert list(logged("completion", report, steps(report))) == ["first", "second"]
    assert not records(caplog)
