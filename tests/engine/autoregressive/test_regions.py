"""Next edits: a window is rewritten as a whole or stays as it is, and only what changes says how sure the model is."""

import math

import pytest
from msgspec import Struct

from mercury_engine.api import EngineError, Region, Regions
from mercury_engine.prompts.edits.asked import CUT, Refused
from mercury_engine.prompts.pieces import Prompt, Special
from mercury_engine.record import ModelRecord
from tests.engine.autoregressive.models import TOKENIZER, Scripted, engine
from tests.engine.tiny import gap

RECORD = ModelRecord(name="tiny-edits", kind="next-edit", prompt="windows+qwen")
WINDOW = "class Shape:\n    def area(self):\n        return self.width * self.height\n"
RENAMED = WINDOW.replace("self.width", "self.height")


class Asked(Struct, frozen=True):
    prompt: Prompt

    def read(self, text, finished):
        return CUT if not finished else text if "return" in text else Refused("it is nothing of use")


class Windows:
    """The window, and the answer is the window anew."""

    def ask(self, regions, *, budget, count):
        window = regions.regions[0].old
        assert 0 < count(window) < budget
        return Asked(Prompt((window, Special("<|fim_middle|>")), most_tokens=90, copied=window))


@pytest.fixture(autouse=True)
def _formats(monkeypatch):
    monkeypatch.setattr("mercury_engine.autoregressive.asking.edit_format", lambda name: {"windows": Windows()}[name])


def regions(text=WINDOW, cursor=0):
    return Regions(session="s", regions=(Region("shapes.py", "python", text),), cursor=cursor)


def last_of(answers):
    *_, last = answers
    (rewritten,) = last.regions
    return rewritten


def final(runtime, **options):
    return last_of(engine(runtime, RECORD, **options).rewrite(regions()))


def check(says, expected, *, complete=True, changes=True, refused=""):
    filled = final(Scripted(says))
    assert (filled.text, filled.complete, filled.p_accept > 0) == (expected, complete, changes)
    assert filled.refused == refused


def test_window_becomes_what_model_writes():
    check(RENAMED, RENAMED)


def test_unusable_answer_leaves_window_as_it_is():
    check("nothing of use", WINDOW, changes=False, refused="it is nothing of use")
    check(WINDOW, WINDOW, changes=False)


def test_unfinished_answer_leaves_window_as_it_is():
    check(RENAMED + "a = 1\n" * 40, WINDOW, complete=False, changes=False, refused=CUT.reason)


def test_drafts_show_the_window_until_the_answer_is_whole():
    drafts = engine(Scripted(RENAMED), RECORD, drafting=False).rewrite(regions())
    *before, last = (draft.regions[0].text for draft in drafts)
    assert set(before) == {WINDOW}
    assert last == RENAMED


def test_copied_text_does_not_say_how_sure_the_model_is():
    def chance(sure, says):
        return final(Scripted(says, sure=sure)).p_accept

    assert chance(math.exp(-0.1), RENAMED) == pytest.approx(0.25, abs=0.001)
    assert chance(0.8, RENAMED) < 0.1
    assert len(final(Scripted(RENAMED)).confidence) <= 3
    assert len(final(Scripted(WINDOW.replace("self.width * ", ""))).confidence) <= 2


def test_old_text_is_drafted():
    plain, drafted = Scripted(RENAMED), Scripted(RENAMED)
    assert final(plain, drafting=False) == final(drafted)
    assert len(drafted.reads) <= 8
    assert len(plain.reads) >= len(TOKENIZER.encode(RENAMED))


def test_model_with_both_formats_also_fills_gaps():
    answering = engine(Scripted("x = self.width\n"), RECORD)
    assert (answering.info().fills, answering.info().rewrites) == (True, True)
    *_, last = answering.fill(gap("x = $0\n"))
    assert last.text == "self.width"


def test_same_model_is_asked_in_another_format():
    fills = engine(Scripted(RENAMED), ModelRecord(name="tiny", kind="fim", prompt="qwen"))
    edits = fills.in_format(RECORD)
    assert (fills.info().rewrites, edits.info().rewrites) == (False, True)
    assert last_of(edits.rewrite(regions())).text == RENAMED
    with pytest.raises(EngineError, match=r"tiny does not propose next edits.*model list"):
        fills.rewrite(regions())


def test_sweep_goes_on_from_the_line_of_the_cursor(monkeypatch):
    monkeypatch.undo()
    text = "def area(width):\n    return width * 2\n\n\nprint(area(3))\n"
    asked = regions(text, text.index("    return"))
    new = "    return width * height\n\n\nprint(area(3))\n"
    header = "updated/shapes.py:1:5\n"
    runtime = Scripted(f"{header}{text.partition(chr(10))[0]}\n{new}", middle=TOKENIZER.special("<|file_sep|>"))
    last = last_of(engine(runtime, ModelRecord(name="tiny-sweep", kind="next-edit", prompt="sweep-2")).rewrite(asked))
    assert last.text == text.replace("width * 2", "width * height")
    assert last.complete
