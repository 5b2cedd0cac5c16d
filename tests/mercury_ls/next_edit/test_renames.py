"""A rename as an editor goes through it: the offer is taken, and what comes then leaves alone what only looks alike."""

from pathlib import Path

import pytest

from mercury_engine.api import Edit
from mercury_engine.fake import FakeEngine
from mercury_ls.code.documents import Document
from mercury_ls.code.edits import difference
from mercury_ls.code.history import History
from mercury_ls.code.modules import Project
from mercury_ls.completion.offers import Offer
from mercury_ls.link.wire import Status
from mercury_ls.next_edit.candidates import Candidate
from mercury_ls.next_edit.learn import rules
from mercury_ls.next_edit.region import unwelcome
from mercury_ls.next_edit.renamed import Renames, Sought, may_use, sought
from mercury_ls.session import next_edits as proposals
from mercury_ls.session.requests import ANYONE, Asker
from mercury_ls.session.session import Session
from tests.cases import files_in
from tests.mercury_ls.next_edit.test_pipeline import question_of
from tests.mercury_ls.session.test_session import started


@pytest.fixture
async def session(tmp_path, monkeypatch):
    monkeypatch.setattr(proposals, "SETTLING_SECONDS", 0.0)
    made = await started(FakeEngine(), roots=[tmp_path])
    yield made
    await made.end()


class NoEngine:
    """Rules alone."""

    status = Status("unavailable")

    async def close(self) -> None: ...


async def renamed(session: Session, folder: Path, files: dict[str, str], old: str, new: str) -> str:
    """The first of the files is open, and the first `old` in it has just become `new`."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    name, text = next(iter(files.items()))
    uri = (folder / name).as_uri()
    session.open(uri, str(folder / name), "", 1, text)
    while session.files.workspace.step(0.0):
        pass
    start = session.files.documents[uri].snapshot().position(text.index(old), "utf-16")
    session.change(uri, 2, [((*start, start[0], start[1] + len(old)), new)], "utf-16")
    return uri


async def asked(session: Session, uri: str, asker: Asker = ANYONE) -> Offer | None:
    return (await session.next_edits.ask(uri, session.files.cursors[uri], invoked=True, asker=asker)).offer


def take(session: Session, offer: Offer) -> None:
    for uri in offer.base:
        if uri not in session.files.documents:
            session.open(uri, offer.base[uri].path, "", 1, offer.base[uri].text)
        for edit in sorted((each for each in offer.edits if each.uri == uri), key=lambda each: -each.start):
            snapshot = session.files.documents[uri].snapshot()
            where = *snapshot.position(edit.start, "utf-16"), *snapshot.position(edit.end, "utf-16")
            session.change(uri, snapshot.version + 1, [(where, edit.text)], "utf-16")
    session.accepted(offer.id)


async def test_use_renamed_before_declaration_tells_what_became_of_it(session, tmp_path):
    text = "package a\n\ntype E struct {\n\tcache int\n\thandlers int\n}\n\n"
    text += "func (e *E) f() int {\n\treturn e.handlers\n}\n\nfunc (e *E) g() int {\n\treturn e.handlers\n}\n"
    uri = await renamed(session, tmp_path, {"a.go": text}, "e.handlers", "e.finalNoRoute")
    fields = "\tcache        int\n\tfinalNoRoute int\n\tnoRoute      int\n"
    session.change(uri, 3, [((3, 0, 5, 0), fields)], "utf-16")
    offer = await asked(session, uri)
    assert [offer.base[uri].text.count("\n", 0, each.start) for each in offer.edits] == [13]


async def test_argument_is_added_once_however_many_files_the_offer_had(session, tmp_path):
    calls = "".join(f"x{n} = same({n}, 2)\n" for n in range(4))
    files = {"c.py": f"def same(a, b, strict):\n    return a\n\n\n{calls}", "b.py": f"from c import same\n\n{calls}"}
    uri = await renamed(session, tmp_path, files, "same(0, 2", "same(0, 2, False")
    for _ in range(6):
        if offer := await asked(session, uri):
            take(session, offer)
    texts = [document.text for document in session.files.documents.values()]
    assert [text.count("False)") for text in texts] == [4, 4]
    assert [text.count("False") for text in texts] == [4, 4]


async def test_renamed_use_says_nothing_of_declarations_in_other_files(session, tmp_path):
    used = "from m3u import M3UFile\n\n\ndef f():\n    M3UFile(1)\n    M3UFile(2)\n"
    files = {"a.py": used, "m3u.py": "class M3UFile:\n    pass\n", "o.py": "from m3u import M3UFile\n\nM3UFile(4)\n"}
    uri = await renamed(session, tmp_path, files, "M3UFile(1", "M3U(1")
    for name in ("m3u.py", "o.py"):
        session.open((tmp_path / name).as_uri(), str(tmp_path / name), "", 1, files[name])
    session.questions.connect(NoEngine())
    assert (await session.next_edits.ask(uri, 0, invoked=True)).offer is None


async def test_word_of_text_is_no_name_in_other_files(session, tmp_path):
    said = 'def f():\n    raise E("file exists", 1)\n\n\ndef g():\n    raise E("file exists", 2)\n'
    other = '"""Reads a media file."""\n\nlog("{}: file not found")\nkind = "file"\n'
    uri = await renamed(session, tmp_path, {"a.py": said, "m.py": other}, "file exists", "target exists")
    session.open((tmp_path / "m.py").as_uri(), str(tmp_path / "m.py"), "", 1, other)
    session.questions.connect(NoEngine())
    offer = (await session.next_edits.ask(uri, 0, invoked=True)).offer
    assert [(Path(each.uri).name, each.text) for each in offer.edits] == [("a.py", "target")]


ALIKE = files_in(Path(__file__).with_name("alike.txt").read_text("utf-8"))


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize("new", ["same_file", "is_same"])
async def test_namesake_is_left_alone_even_after_the_offer_was_taken(session, tmp_path, name, new):
    uri = await renamed(session, tmp_path, {name: ALIKE[name]}, "samefile", new)
    offer = await asked(session, uri)
    assert len(offer.edits) == 6
    take(session, offer)
    for _ in range(3):
        if (again := await asked(session, uri)) is not None:
            assert not any("samefile" in text_at(again, edit) for edit in again.edits)
            take(session, again)
    assert session.files.documents[uri].text.count("samefile") == 4


def text_at(offer: Offer, edit) -> str:
    return offer.base[edit.uri].text[edit.start : edit.end]


async def test_use_renamed_after_the_declaration_is_offered_the_rest(session, tmp_path):
    text = "class A:\n    def load(self): pass\n\ndef f(a: A, b: A):\n    a.load()\n    b.load()\n    os.load()\n"
    uri = await renamed(session, tmp_path, {"rows.py": text}, "load", "get")
    session.change(uri, 3, [((4, 6, 4, 10), "get")], "utf-16")
    offer = await asked(session, uri)
    assert [offer.base[uri].text.count("\n", 0, edit.start) for edit in offer.edits] == [5]


async def test_go_member_is_package_own_only_if_no_closed_file_has_another(session, tmp_path):
    text = "package a\n\ntype A struct{}\n\nfunc (a *A) run() {}\n\nfunc f() {\n\tfind().run()\n}\n"
    uri = await renamed(session, tmp_path, {"a.go": text}, "run", "start")
    assert len((await asked(session, uri)).edits) == 1


async def test_another_member_of_a_closed_file_of_go_makes_it_uncertain(session, tmp_path):
    text = "package a\n\ntype A struct{}\n\nfunc (a *A) run() {}\n\nfunc f() {\n\tfind().run()\n}\n"
    other = "package a\n\ntype B struct{ run int }\n"
    uri = await renamed(session, tmp_path, {"a.go": text, "b.go": other}, "run", "start")
    assert await asked(session, uri) is None


DEFINED = "def load(a):\n    return a\n\n\nload(2)\n"
USED = {"rows.py": DEFINED, **{f"use{n}.py": "from rows import load\n\nload(1)\n" for n in range(9)}}


async def test_files_that_use_a_name_are_one_offer_with_the_current_file_first(session, tmp_path):
    uri = await renamed(session, tmp_path, USED, "load", "get")
    offer = await asked(session, uri)
    assert offer.edits[0].uri == uri
    assert len(offer.edits) == 1 + 18
    assert offer.note == ""


async def test_many_places_are_one_offer(session, tmp_path):
    text = "def load(a):\n    return a\n\n\n" + "load(1)\n" * 300
    uri = await renamed(session, tmp_path, {"rows.py": text}, "load", "get")
    offer = await asked(session, uri)
    assert len(offer.edits) == 300


AREA = "def area(w, h):\n    a = 1\n    b = 2\n    c = 3\n    d = 4\n    return w * a\n\n\nprint(area(1, 2))\n"
AREA_USED = "from area import area\n\nprint(area(3, 4))\n"


@pytest.mark.parametrize(("old", "new", "used"), [("area", "surface", 2), ("w, h", "h, w", 1), (", h", "", 1)])
@pytest.mark.parametrize("later", ["3", "depth", "3 * 3"])
async def test_edit_elsewhere_loses_no_closed_file(session, tmp_path, old, new, used, later):
    session.questions.connect(NoEngine())
    uri = await renamed(session, tmp_path, {"area.py": AREA, "b.py": AREA_USED}, old, new)
    session.change(uri, 3, [((4, 8, 4, 9), later)], "utf-16")
    offer = await asked(session, uri)
    assert [edit.uri == uri for edit in offer.edits] == [True, *[False] * used]


async def test_edit_elsewhere_loses_no_reason_for_silence(session, tmp_path):
    session.questions.connect(NoEngine())
    uri = await renamed(session, tmp_path, {"area.py": AREA, "b.py": AREA_USED}, "h)", "h, unit)")
    session.change(uri, 3, [((4, 8, 4, 9), "depth")], "utf-16")
    answer = await session.next_edits.ask(uri, 0, invoked=True)
    assert answer.silence.endswith(
        "needs an argument for `unit`: area.py:9, b.py:3, since the parameters of `area` changed"
    )


async def test_rename_and_other_parameters_both_lead_to_closed_files(session, tmp_path):
    session.questions.connect(NoEngine())
    sizes = "\n\ndef size(w, h):\n    return w\n"
    used = "from area import size\n\nprint(size(3, 4))\n"
    uri = await renamed(
        session, tmp_path, {"area.py": AREA + sizes, "b.py": AREA_USED, "c.py": used}, "area", "surface"
    )
    session.change(uri, 3, [((11, 9, 11, 13), "h, w")], "utf-16")
    offers = [await asked(session, uri)]
    take(session, offers[0])
    offers.append(await asked(session, uri))
    assert sorted(len(offer.edits) for offer in offers) == [1, 3]


async def test_file_too_large_for_definitions_is_searched_for_names(session, tmp_path):
    text = "from rows import load\n\nload(1)\n" + "total = 1\n" * 9000
    uri = await renamed(session, tmp_path, {"rows.py": DEFINED, "large.py": text}, "load", "get")
    offer = await asked(session, uri)
    assert len(offer.edits) == 3


async def test_single_change_is_not_due_in_files_that_happen_to_be_open(session, tmp_path):
    text = 'import log\n\nlog.debug("a {}", 1)\nlog.debug("b {}", 2)\n'
    other = tmp_path / "other.py"
    session.open(other.as_uri(), str(other), "", 1, text.replace("a {}", "c {}"))
    uri = await renamed(session, tmp_path, {"state.py": text}, "debug", "warning")
    offer = await asked(session, uri)
    assert offer is None or {each.uri for each in offer.edits} == {uri}


async def test_undone_rename_is_no_longer_offered(session, tmp_path):
    files = {"rows.py": "def load(a):\n    return a\n\n\nload(1)\n", "b.py": "from rows import load\n\nload(2)\n"}
    uri = await renamed(session, tmp_path, files, "load", "fetch_all")
    assert await asked(session, uri)
    session.change(uri, 3, [((0, 4, 0, 13), "load")], "utf-16")
    assert await asked(session, uri) is None


async def test_rename_waits_for_the_rest_of_project(session, tmp_path):
    uri = await renamed(session, tmp_path, {"rows.py": DEFINED}, "load", "get")
    session.files.workspace._walked_at = None
    offer = await asked(session, uri)
    assert offer.note == ""


async def test_unread_files_are_reported_and_made_up_for(session, tmp_path, monkeypatch):
    monkeypatch.setattr(proposals, "READING_SECONDS", 0.0)
    uri = await renamed(session, tmp_path, {"rows.py": DEFINED}, "load", "get")
    session.files.workspace._walked_at = None
    offer = await asked(session, uri)
    assert offer.note == "more files may use this name: the project is still being indexed"
    await session.files.project_read(5.0)
    offer = await asked(session, uri)
    assert offer.note == ""


async def test_files_that_are_read_later_are_made_up_for_though_others_never_are(session, tmp_path, monkeypatch):
    monkeypatch.setattr(proposals, "READING_SECONDS", 0.0)
    uri = await renamed(session, tmp_path, {"rows.py": DEFINED}, "load", "get")
    (tmp_path / "late.py").write_text("from rows import load\n\nload(1)\n")
    (tmp_path / "large.py").write_text("total = 1\n" * (1 << 17))
    session.files.workspace._walked_at = None
    offer = await asked(session, uri)
    assert (len(offer.edits), offer.note) == (1, "more files may use this name: the project is still being indexed")
    await session.files.project_read(5.0)
    offer = await asked(session, uri)
    assert (len(offer.edits), offer.note) == (3, "more files may use this name: 1 of its files are not in the index")


STRICT = "def check(row, strict=False, depth=1):\n    return row\n\n\ncheck(1, strict=True)\n"
CALLED = "from a import check\n\ncheck(2, strict=True)\n"


async def parameter_removed(session: Session, folder: Path, files: dict[str, str]) -> Offer | None:
    session.questions.connect(NoEngine())
    return await asked(session, await renamed(session, folder, {"a.py": STRICT, **files}, ", strict=False", ""))


async def test_argument_is_removed_behind_many_files_that_only_mention_the_function(session, tmp_path):
    mentioning = {f"n{number}.py": f"# check number {number}\nx = {number}\n" for number in range(300)}
    offer = await parameter_removed(session, tmp_path, {**mentioning, "zz.py": CALLED})
    assert [Path(edit.uri).name for edit in offer.edits] == ["a.py", "zz.py"]
    assert offer.note == ""


async def test_files_that_are_not_searched_are_counted_if_their_imports_lead_to_the_function(session, tmp_path):
    mentioning = {f"n{number}.py": f"import a\n# check number {number}\n" for number in range(300)}
    offer = await parameter_removed(session, tmp_path, {**mentioning, "zz.py": "check = 1\n"})
    assert [Path(edit.uri).name for edit in offer.edits] == ["a.py"]
    assert offer.note == "44 more files may use this name"


async def test_argument_is_removed_in_all_closed_files_at_once(session, tmp_path):
    offer = await parameter_removed(session, tmp_path, {f"n{number}.py": CALLED for number in range(100)})
    assert len(offer.edits) == 101


async def test_argument_of_another_function_stays_in_closed_files(session, tmp_path):
    other = "def check(row, strict):\n    return row\n"
    files = {"b.py": other, "c.py": "from b import check\n\ncheck(2, strict=True)\n", "zz.py": CALLED}
    offer = await parameter_removed(session, tmp_path, files)
    assert [Path(edit.uri).name for edit in offer.edits] == ["a.py", "zz.py"]
    assert offer.note == ""


@pytest.mark.parametrize(
    ("method", "call"), [("save", "shop.save(2, strict=True)"), ("__init__", "Shop(2, strict=True)")]
)
async def test_argument_of_a_method_is_removed_in_closed_files(session, tmp_path, method, call):
    declared = f"class Shop:\n    def {method}(self, row, strict=False):\n        pass\n"
    mentioning = {f"n{number}.py": f"# {method} number {number}\n" for number in range(8)}
    files = {"a.py": declared, **mentioning, "zz.py": f"from a import Shop\n\n\ndef f(shop: Shop):\n    {call}\n"}
    session.questions.connect(NoEngine())
    offer = await asked(session, await renamed(session, tmp_path, files, ", strict=False", ""))
    assert [Path(edit.uri).name for edit in offer.edits] == ["zz.py"]


async def test_other_renaming_server_is_named_and_closed_files_are_not_offered(session, tmp_path):
    uri = await renamed(session, tmp_path, USED, "load", "get")
    offer = await asked(session, uri, Asker(renamer="pyright"))
    assert {each.uri for each in offer.edits} == {uri}
    assert offer.note == "undo and use the rename of pyright, which reaches the whole project"


async def test_client_that_cannot_show_closed_files_is_told_of_them(session, tmp_path):
    uri = await renamed(session, tmp_path, USED, "load", "get")
    offer = await asked(session, uri, Asker(closed=False))
    assert {each.uri for each in offer.edits} == {uri}
    assert offer.note == "9 closed files may use this name too"


async def test_edit_that_is_taken_back_after_accepting_is_not_called_none(session, tmp_path):
    uri = await renamed(session, tmp_path, {"area.py": AREA}, "w, h", "h, w")
    take(session, await asked(session, uri))
    session.change(uri, 9, [((0, 9, 0, 13), "w, h")], "utf-16")
    session.questions.connect(NoEngine())
    answer = await session.next_edits.ask(uri, 0, invoked=True)
    assert answer.silence == "your edits cancel each other out: what you accepted in between stays"


async def test_accepted_offer_is_no_edit_of_the_user(session, tmp_path):
    uri = await renamed(session, tmp_path, {"rows.py": "def load(a):\n    return a\n\n\nload(1)\n"}, "load", "get")
    take(session, await asked(session, uri))
    assert [edit.after for edit in session.files.history.edits(own=True)] == ["def get(a):\n"]
    assert [edit.after for edit in session.files.history.edits()] == ["def get(a):\n", "get(1)\n"]


def test_continued_offer_becomes_an_edit_of_the_user():
    history, text = History(), "load(1)\n"
    history.record("a.py", text, difference(text, "get(1)\n"), 0.0, is_own=False)
    assert history.edits(own=True) == ()
    history.record("a.py", "get(1)\n", difference("get(1)\n", "get_(1)\n"), 0.1)
    assert history.edits(own=True) == (Edit("a.py", 0, "load(1)\n", "get_(1)\n"),)


def check(before: str, after: str, place: str, text: str, *expected: str) -> None:
    """What an edit of the first `place` to `text` would rename, given that `before` became `after`."""
    snapshot = Document("file:///a.py", "a.py", "python", 1, after).snapshot()
    change = difference(before, after)
    line = before.count("\n", 0, change.start)
    edit = Edit("a.py", line, before.split("\n")[line] + "\n", after.split("\n")[line] + "\n")
    renames = Renames.of(rules((edit,)), (snapshot,), Project())
    start = after.index(place)
    found = renames.made_by(snapshot, start, start + len(place), text)
    assert [after[at - 3 : at] for at in found] == list(expected)


def test_edit_renames_what_it_gives_a_new_name_instead_of_old_one():
    before, after = "def load():\n    a = os.load()\n", "def get():\n    a = os.load()\n"
    check(before, after, "load", "get", "os.")
    check(before, after, "os.load()", "os.get()", "os.")
    check(before, after, "    a = os.load()\n", "    b = os.get(1)\n", "os.")
    check(before, after, "load()", "load(1)")
    check(before, after, "a = ", "get = ")
    check("x = load()\n" + before, "x = get()\n" + before, "os.load", "os.get")


@pytest.mark.parametrize(("written", "expected"), [("os.same_file", False), ("os.other", True)])
def test_model_gives_no_new_name_to_anything_else(written, expected):
    question = question_of("def ⟦samefile→same_file⟧$0():\n    return os.samefile()\n", "python")
    start = question.snapshot.text.index("os.samefile")
    end = start + len("os.samefile")
    edit = Candidate(question.snapshot.uri, start, end, written, "line", None, {})
    assert (not unwelcome(question, [edit], ())) is expected


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("load(1)", {"load"}, True),
        ("item.load(1)", {"load"}, False),
        ("import rows\nrows.load(1)", {"load"}, True),
        ("import rows\nitem.load(1)", {"load"}, False),
        ('import (\n\t"a/rows"\n)\nrows.load(1)', {"load"}, True),
        ("use a::rows;\nrows::load(1)", {"load"}, True),
        ("from a import (\n    rows,  # noqa\n    b,\n)\nrows.load(1)", {"load"}, True),
        ("from a import (  # noqa\n    b,\n)\nitem.load(1)", {"load"}, False),
        ("import {\n  a,\n  rows,\n} from './a';\nrows.load(1)", {"load"}, True),
        ("use a::{\n    b::{c, d},\n    rows,\n};\nrows::load(1)", {"load"}, True),
        ("reload(1)", {"load"}, False),
        ("item.load(1)", {"load", "Rows"}, False),
        ("Rows().load(1)", {"load", "Rows"}, True),
    ],
)
def test_files_that_cannot_use_a_name_are_not_parsed(text, names, expected):
    assert may_use(text, Sought(frozenset(names), "")) is expected


def test_methods_named_like_a_keyword_of_another_language_are_sought():
    home = Document("", "rows.py", "", 1, "class Rows:\n    def find(self): ...\n").snapshot()
    edit = Edit("rows.py", 1, "    def match(self): ...\n", "    def find(self): ...\n")
    assert [symbol.names for symbol in sought([edit], {"rows.py": home})] == [{"match", "Rows"}]
