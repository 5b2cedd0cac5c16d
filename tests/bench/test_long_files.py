import asyncio
from random import Random

from bench.long_files import KINDS, SHAPES, first_answers, measured, sample
from mercury_ls.session import next_edits as proposals


def test_every_kind_of_edit_is_measured(monkeypatch):
    monkeypatch.setattr(proposals, "SETTLING_SECONDS", 0.0)
    figures = asyncio.run(measured([300], rounds=1, edits=0, shapes={}))
    assert {f"{kind}_300_p50_ms" for kind in KINDS} <= set(figures)
    assert figures["inline_elsewhere_300_p50_ms"] > 0


def test_the_sample_is_as_long_as_asked_and_has_every_kind_of_edit():
    text = sample(200)
    assert text.count("\n") == 200
    for kind in KINDS.values():
        edit = next(kind(text, Random(0)))
        assert text[: edit.start] + edit.text + text[edit.end :] != text


def test_both_answers_of_an_unusual_shape_are_measured():
    text = SHAPES["4,000 nested functions"]
    assert len(asyncio.run(first_answers("function f() {\n$0\n}\n"))) == 2
    assert text.count("{") == text.count("}") == 4000
