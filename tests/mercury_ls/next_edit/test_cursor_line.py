"""The cursor's line, for a user who asks by hand, and what a model that was taught to edit makes of it."""

import asyncio
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from mercury_engine.api import EngineError, Regions, Rewrites, Rewritten
from mercury_ls.completion.offers import Answer
from mercury_ls.next_edit import cursor_line
from mercury_ls.next_edit.question import NextQuestion
from tests.mercury_ls.next_edit.test_pipeline import THIRD, drawn_after, last_of, question_of

DRAWN = """\
import json

def load(path, ⟦→strict⟧):
    text = path.read_text()
    return json.loads(text)


def save(path, value):
    path.write_text(json.dumps(value))


def first():
    return load($0HOME)
"""
CALL, STRICT = "    return load(HOME)\n", "    return load(HOME, strict=True)\n"


class Editor:
    """Writes one text for another wherever it stands, with one chance, and keeps what it was asked."""

    def __init__(self, old: str = CALL, new: str = STRICT, chance: float = 0.9) -> None:
        self.old, self.new, self.chance = old, new, chance
        self.asked: list[Regions] = []

    async def rewrite(self, regions: Regions):
        self.asked.append(regions)
        yield Rewrites(1, tuple(Rewritten(region.old) for region in regions.regions))
        yield Rewrites(2, tuple(self._written(regions)), final=True)

    async def judge(self, proposals):
        raise AssertionError("nothing is proposed")
        yield

    def _written(self, regions: Regions) -> Iterator[Rewritten]:
        for region in regions.regions:
            text = region.old.replace(self.old, self.new)
            chance = self.chance if text != region.old else 0.0
            yield Rewritten(text, (chance,), chance, p_keep=1 - chance, complete=True)


def question(drawn: str = DRAWN, *, invoked: bool = True) -> NextQuestion:
    return replace(question_of(drawn, "python"), rewrites=True, rewrites_lines=True, invoked=invoked)


def answer_of(asked: NextQuestion, editor: Editor) -> Answer:
    return asyncio.run(last_of(asked, editor))


def test_text_of_the_model_is_offered():
    answer = answer_of(question(), Editor())
    assert "load(HOME«, strict=True»)" in drawn_after(question().snapshot, answer)
    assert answer.offer is not None
    assert answer.offer.p_accept == 0.9


def test_model_reads_the_edit_with_lines_that_mention_what_it_changed():
    asked = question(DRAWN.replace("strict", "HOME"))
    edit = cursor_line.regions(asked, cursor_line.at_cursor(asked)).edits[-1]
    assert (edit.before, edit.after) == ("def load(path, ):\n", "def load(path, HOME):\n")
    assert edit.above == "import json\n\n"
    assert [mention.text for mention in edit.mentions] == [CALL]


def test_line_is_asked_about_between_those_around_it():
    asked = question()
    (region,) = cursor_line.regions(asked, cursor_line.at_cursor(asked)).regions
    assert region.old == "def first():\n" + CALL
    assert region.above == "def save(path, value):\n    path.write_text(json.dumps(value))\n\n\n"
    assert region.below == ""


def test_model_is_asked_by_hand_alone():
    editor = Editor()
    assert not answer_of(question(invoked=False), editor).edits
    assert editor.asked == []


@pytest.mark.parametrize("invoked", [False, True])
def test_silence_of_rules_ends_the_search_unless_the_model_is_asked_by_hand(invoked):
    assert question(invoked=invoked).is_for_a_rewriter is invoked


def test_model_is_not_asked_without_an_edit():
    editor = Editor()
    assert not answer_of(question(DRAWN.replace("⟦→strict⟧", "strict")), editor).edits
    assert editor.asked == []


def test_blank_line_below_stays_the_only_one():
    answer = answer_of(question(DRAWN + "\n\n"), Editor("(HOME)", "(HOME, strict=True)"))
    assert [edit.text for edit in answer.edits] == [", strict=True"]


def test_unlikely_text_is_not_offered_and_the_reason_names_the_bar():
    answer = answer_of(question(), Editor(chance=0.1))
    assert not answer.edits
    assert answer.silence.endswith("unsure: edit is 10% likely, under the bar of 25%")


@pytest.mark.parametrize("written", ["", "    check(HOME)\n" + CALL])
def test_lines_that_are_only_added_or_removed_are_not_offered(written):
    answer = answer_of(question(), Editor(new=written))
    assert not answer.edits
    assert answer.silence.endswith("the model only adds or removes lines")


def test_model_that_changes_nothing_says_where_and_how_likely_that_is():
    answer = answer_of(question(), Editor("nowhere", ""))
    assert not answer.edits
    assert answer.silence.endswith("the model leaves lines 12 to 14 as they are (100% likely)")


def test_rules_come_first():
    editor = Editor()
    assert answer_of(question("def ⟦load→read⟧(path):\n    return path\n\n\nload(1)\n$0"), editor).edits
    assert editor.asked == []


@pytest.mark.parametrize(("chance", "text"), [(0.9, "read"), (0.3, "load")])
def test_sure_model_comes_before_a_rule_that_is_not_certain(chance, text):
    answer = answer_of(question(THIRD), Editor('fetch("c")', 'read("c")', chance))
    assert [edit.text for edit in answer.edits] == [text]


def test_failing_engine_leaves_the_rules_answer():
    class Failing(Editor):
        def _written(self, regions: Regions) -> Iterator[Rewritten]:
            raise EngineError("the model is gone")

    assert not answer_of(question(), Failing()).edits
