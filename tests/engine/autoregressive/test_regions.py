"""Next edits: a window is rewritten as a whole or stays as it is, and only what changes says how sure the model is."""

import math

import pytest
from msgspec import Struct

from mercury_engine.api import EngineError
from mercury_engine.prompts.edits.asked import CUT, Refused
from mercury_engine.prompts.pieces import Prompt, Special
from mercury_engine.record import ModelRecord
from tests.engine.autoregressive.models import TOKENIZER, Scripted, engine
from tests.engine.tiny import request

RECORD = ModelRecord(name="tiny-edits", kind="next-edit", prompt="windows+qwen")
WINDOW = "class Shape:\n    def area(self):\n        return self.width * self.height\n"
RENAMED = WINDOW.replace("self.width", "self.height")


class Asked(Struct, frozen=True):
    prompt: Prompt

    def read(self, text, finished):
        return CUT if not finished else text if "return" in text else Refused("it is nothing of use")


class Windows:
    """The window, and the answer is the window anew."""

    def ask(self, request, *, budget, count):
        (span,) = request.spans
        window = request.windows[span.window].text[span.start : span.end]
        assert 0 < count(window) < budget
        return Asked(Prompt((window, Special("<|fim_middle|>")), most_tokens=90, copied=window))


@pytest.fixture(autouse=True)
def _formats(monkeypatch):
    monkeypatch.setattr("mercury_engine.autoregressive.asking.edit_format", lambda name: {"windows": Windows()}[name])


def final(runtime, window=WINDOW, **options):
    *_, last = engine(runtime, RECORD, **options).infill(request(f"[[{window}]]", mode="region"))
    return last.spans[0]


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
    drafts = engine(Scripted(RENAMED), RECORD, drafting=False).infill(request(f"[[{WINDOW}]]", mode="region"))
    *before, last = (draft.spans[0].text for draft in drafts)
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
    assert answering.info().answers == ("line", "block", "edit", "region")
    *_, last = answering.infill(request("x = $0\n"))
    assert last.spans[0].text == "self.width"


def test_same_model_is_asked_in_another_format():
    fills = engine(Scripted(RENAMED), ModelRecord(name="tiny", kind="fim", prompt="qwen"))
    edits = fills.in_format(RECORD)
    assert (fills.info().answers, edits.info().answers[-1]) == (("line", "block", "edit"), "region")
    *_, last = edits.infill(request(f"[[{WINDOW}]]", mode="region"))
    assert last.spans[0].text == RENAMED
    with pytest.raises(EngineError, match="answers line, block, edit"):
        list(fills.infill(request(f"[[{WINDOW}]]", mode="region")))


def test_sweep_goes_on_from_the_line_of_the_cursor(monkeypatch):
    monkeypatch.undo()
    text = "def area(width):\n    return width * 2\n\n\nprint(area(3))\n"
    asked = request(f"[[{text}]]", mode="region", cursor=text.index("    return"), edits=())
    new = "    return width * height\n\n\nprint(area(3))\n"
    header = "updated/shapes.py:1:5\n"
    runtime = Scripted(f"{header}{text.partition(chr(10))[0]}\n{new}", middle=TOKENIZER.special("<|file_sep|>"))
    *_, last = engine(runtime, ModelRecord(name="tiny-sweep", kind="next-edit", prompt="sweep-2")).infill(asked)
    assert last.spans[0].text == text.replace("width * 2", "width * height")
    assert last.spans[0].complete
