"""A rename to a name that something else of the same scope has is not offered; where both may have it, it is."""

import pytest
from msgspec.structs import replace

from mercury_ls.code.edits import difference
from mercury_ls.code.history import History
from mercury_ls.code.modules import Project
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


@pytest.mark.parametrize(("brought", "base"), [("from file import Base", "Base"), ("import file", "file.Base[int]")])
async def test_a_class_of_another_file_has_taken_the_name(brought: str, base: str) -> None:
    loader = f"{brought}\n\n\nclass Loader({base}):\n    def get(self):\n        return 1\n"
    home = "class Base:\n    def {}(self):\n        return self.{}()\n"
    texts = {"/project/loader.py": loader, "/project/file.py": home.format("get", "load")}
    project = Project(
        read=texts.get, exists=texts.__contains__, mentioning=lambda name, near: [p for p in texts if name in texts[p]]
    )
    drawn = (home.format("load", "load"), home.format("get$0", "load"))
    assert (await last_of(question_of(drawn, "python", project=project))).silence.startswith("the name `get` is taken")
    texts["/project/loader.py"] = loader.replace(f"({base})", "(Other)")
    unrelated = Project(read=texts.get, exists=texts.__contains__, mentioning=lambda name, near: [*texts])
    assert (await last_of(question_of(drawn, "python", project=unrelated))).edits
