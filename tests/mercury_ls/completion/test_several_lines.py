"""Right answers over several lines reach the screen whole, however the model ends them, and grow without a flicker."""

import re
from pathlib import Path

import pytest

from mercury_engine.api import Draft, Gap
from mercury_engine.prompts.cut import cut
from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.code.history import History
from mercury_ls.completion.context import ContextBudget, Related
from mercury_ls.completion.offers import Answer
from mercury_ls.completion.suggest import Question, answered, where
from mercury_ls.completion.target import Target
from mercury_ls.session.generations import grown
from mercury_ls.settings.schema import SuggestSettings

ROWS = Path(__file__).parent / "rows"
PIECE = re.compile(r"\n[ \t]*|\w+|[^\w\s]|[ \t]+")
BEYOND = "\n\n\nsomething_else = 1\nprint(something_else)\n"


class Row:
    def __init__(self, language: str, drawn: str) -> None:
        before, rest = drawn.split("⟦")
        self.middle, after = rest.split("⟧")
        self.after = after
        document = Document("file:///a", f"/project/a.{language}", language, 1, before + after)
        self.snapshot: Snapshot = document.snapshot()
        asked = Question(
            snapshot=self.snapshot,
            offset=len(before),
            target=Target(len(before), len(before)),
            history=History(),
            related=Related("file:///a", 1, 0.0),
            settings=SuggestSettings(),
            budget=ContextBudget(),
            session="s",
            bar=0.25,
            strong=True,
            grows=True,
        )
        question = where(asked)
        assert isinstance(question, Question), question
        self.question = question

    def shown(self, answer: str, *, finished: bool, is_last: bool) -> Answer:
        text, offset = self.snapshot.text, self.question.offset
        place = {"path": "a", "language": self.snapshot.language, "before": text[:offset], "after": text[offset:]}
        part, is_whole = cut(Gap(session="s", **place, block=self.question.target.block), answer, finished=finished)
        return answered(self.question, Draft(1, part, (), 0.35, is_whole, final=is_last or is_whole))


def rows() -> list:
    found = []
    for file in sorted(ROWS.glob("*.txt")):
        for number, drawn in enumerate(file.read_text(encoding="utf-8").removesuffix("\n").split("\n----\n")):
            found.append(pytest.param(file.stem, drawn, id=f"{file.stem}-{number}"))
    return found


def text_of(answer: Answer) -> str:
    return answer.offer.edit.text if answer.offer else f"- {answer.silence}"


def wanted(row: Row) -> str:
    """What has to be shown: blanks at the end are the user's."""
    return row.middle.rstrip()


@pytest.mark.parametrize(("language", "drawn"), rows())
def test_answer_that_model_ended_is_shown_whole(language, drawn):
    row = Row(language, drawn)
    assert text_of(row.shown(row.middle, finished=True, is_last=True)) == wanted(row)


@pytest.mark.parametrize(("language", "drawn"), rows())
def test_answer_that_runs_on_into_the_suffix_is_cut_there(language, drawn):
    row = Row(language, drawn)
    assert text_of(row.shown(row.middle + row.after, finished=True, is_last=True)) == wanted(row)


@pytest.mark.parametrize(("language", "drawn"), rows())
def test_endless_answer_shows_one_statement(language, drawn):
    row = Row(language, drawn)
    shown = text_of(row.shown(row.middle + row.after + BEYOND, finished=False, is_last=True))
    assert wanted(row).startswith(shown)
    assert shown.strip()


@pytest.mark.parametrize(("language", "drawn"), rows())
def test_suggestion_being_written_grows_and_is_never_wrong(language, drawn):
    row, seen = Row(language, drawn), Answer()
    written = ""
    for piece in PIECE.findall(row.middle):
        written += piece
        seen_before, seen = seen, grown(seen, row.shown(written, finished=False, is_last=False))
        if seen.offer:
            assert row.middle.startswith(seen.offer.edit.text)
        if seen_before.offer:
            assert seen.offer.edit.text.startswith(seen_before.offer.edit.text)
