"""A rename to a name that something else of the same scope has is not offered; where both may have it, it is."""

from msgspec.structs import replace

from mercury_ls.code.edits import difference
from mercury_ls.code.history import History
from tests.mercury_ls.next_edit.test_pipeline import last_of, question_of


async def test_accepted_rename_has_not_taken_the_name() -> None:
    before = "void load(int a);\nvoid load(int a) {}\nvoid f() { load(1); }\n"
    own = before.replace("load", "save", 1)
    after = own.replace("load", "save", 1)
    question = question_of((own, after + "$0"), "cpp")
    history = History()
    history.record(question.snapshot.path, before, difference(before, own), 0.0)
    history.record(question.snapshot.path, own, difference(own, after), 60.0, is_own=False)
    answer = await last_of(replace(question, history=history))
    assert [after[edit.start : edit.end] for edit in answer.edits] == ["load"], answer.silence
