"""Places at which something may be due, and what a model that was taught to edit makes of them."""

import asyncio
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from mercury_engine.api import EngineError, Regions, Rewrites, Rewritten
from mercury_ls.code.documents import Document
from mercury_ls.next_edit import due
from mercury_ls.next_edit.question import NextQuestion
from tests.mercury_ls.next_edit.test_pipeline import drawn_after, last_of, question_of

DRAWN = """\
import json

def load(path, ⟦→strict⟧$0):
    text = path.read_text()
    return json.loads(text)


def save(path, value):
    path.write_text(json.dumps(value))


def first():
    return load(HOME)
"""
CALL, STRICT = "    return load(HOME)\n", "    return load(HOME, strict=True)\n"


class Editor:
    """Writes one text for another wherever it stands, with one chance, and keeps what it was asked."""

    def __init__(self, old: str, new: str, chance: float) -> None:
        self.old, self.new, self.chance = old, new, chance
        self.asked: list[Regions] = []

    async def rewrite(self, regions: Regions):
        self.asked.append(regions)
        yield Rewrites(1, tuple(Rewritten(region.old) for region in regions.regions))
        yield Rewrites(2, tuple(self._written(regions)), final=True)

    def _written(self, regions: Regions) -> Iterator[Rewritten]:
        for region in regions.regions:
            text = region.old.replace(self.old, self.new)
            chance = self.chance if text != region.old else 0.01
            yield Rewritten(text, (chance,), chance, p_keep=1 - chance, complete=True)


def question(**known) -> NextQuestion:
    return replace(question_of(DRAWN, "python"), rewrites=True, places=6, **known)


def places(asked: NextQuestion) -> list[due.DuePlace]:
    finding = due.places(asked, ())
    while True:
        try:
            next(finding)
        except StopIteration as end:
            return end.value


def asked_about(asked: NextQuestion) -> str:
    return "".join(asked.snapshot.text[place.start : place.end] for place in places(asked))


def test_lines_with_the_changed_name_are_asked_about():
    assert "return load(HOME)" in asked_about(question())


def test_blank_line_below_stays_the_only_one():
    asked = replace(question_of(DRAWN.replace("load(HOME)\n", "load(HOME)\n\n\n"), "python"), rewrites=True, places=6)
    answer = asyncio.run(last_of(asked, Editor("(HOME)", "(HOME, strict=True)", 0.9)))
    assert [edit.text for edit in answer.edits] == [", strict=True"]


def test_places_do_not_overlap():
    lines = [range(place.first, place.stop) for place in places(question())]
    assert len(lines) <= 6
    assert len({line for place in lines for line in place}) == sum(map(len, lines))


def test_model_reads_the_edit_with_lines_that_mention_what_it_changed():
    asked = question()
    regions = due.regions(asked, places(asked))
    edit = regions.edits[-1]
    assert (edit.before, edit.after) == ("def load(path, ):\n", "def load(path, strict):\n")
    assert edit.above == "import json\n\n"
    assert all("strict" in mention.text or "load" in mention.text for mention in edit.mentions)


def test_region_is_whole_lines_between_those_around_it():
    asked = question()
    for region, place in zip(due.regions(asked, places(asked)).regions, places(asked), strict=True):
        lines = asked.snapshot.text.splitlines(keepends=True)
        assert region.old == "".join(lines[place.first : place.stop])
        assert region.above == "".join(lines[max(0, place.first - 4) : place.first])
        assert region.below == "".join(lines[place.stop : place.stop + 4])


def test_other_files_are_asked_about():
    other = Document("file:///project/b.py", "/project/b.py", "python", 1, "from file import load\n\nload(1, 2)\n")
    asked = question(neighbours=(other.snapshot(),))
    assert "/project/b.py" in {place.snapshot.path for place in places(asked)}


def test_text_of_the_model_is_offered():
    asked = question()
    answer = asyncio.run(last_of(asked, Editor(CALL, STRICT, 0.9)))
    assert "load(HOME«, strict=True»)" in drawn_after(asked.snapshot, answer)
    assert answer.offer is not None
    assert answer.offer.p_accept == 0.9


def test_unlikely_text_is_not_offered_and_the_reason_counts_the_places():
    answer = asyncio.run(last_of(question(), Editor(CALL, STRICT, 0.1)))
    assert not answer.edits
    assert "the model was asked about" in answer.silence
    assert answer.silence.endswith("finds the likeliest edit 10% likely")


@pytest.mark.parametrize("written", ["", "    check(HOME)\n" + CALL])
def test_lines_that_are_only_added_or_removed_are_not_offered(written):
    answer = asyncio.run(last_of(question(), Editor(CALL, written, 0.9)))
    assert not answer.edits


def test_model_that_changes_nothing_leaves_silence():
    answer = asyncio.run(last_of(question(), Editor("nowhere", "", 0.9)))
    assert not answer.edits


def test_certain_edits_of_rules_do_not_wait():
    renamed = "def ⟦load→read⟧(path):\n    return path\n\n\nload(1)\n$0"
    editor = Editor("x", "y", 0.9)
    answer = asyncio.run(last_of(replace(question_of(renamed, "python"), rewrites=True, places=6), editor))
    assert answer.edits
    assert editor.asked == []


def test_failing_engine_leaves_the_rules_answer():
    class Failing(Editor):
        def _written(self, regions: Regions) -> Iterator[Rewritten]:
            raise EngineError("the model is gone")

    answer = asyncio.run(last_of(question(), Failing(CALL, STRICT, 0.9)))
    assert not answer.edits
