from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replay.importers import commits, keystrokes, of_commit, of_recording
from bench.replay.session import Changed, Expected, Focused, Marked, Saved, Texts, check
from bench.replay.typing_model import load
from tests.repositories import committed

TEXT = "let s = '😀';\nlet t = 1;\n"


def entry(kind: str, **fields) -> dict:
    return {"kind": kind, "time": 1000, **fields}


RECORDING = {
    "log": [
        {"kind": "meta", "data": {}},
        entry("header", repoRootUri="file:///r", uuid="u"),
        entry("documentEncountered", id=3, relativePath="src\\a.ts"),
        entry("setContent", id=3, v=1, content=TEXT),
        entry("opened", id=3),
        entry("focused", id=3, time=1100),
        entry("selectionChanged", id=3, selection=[[13, 13]], time=1090),
        entry(
            "documentEvent",
            id=3,
            data={"sourceId": "TextModel.setChangeReason", "source": "inlineCompletionAccept", "v": 3},
        ),
        entry("changed", id=3, v=2, edit=[[13, 13, "\n"]], time=1200),
        entry("changed", id=3, v=3, edit=[[0, 3, "const"], [15, 18, "const"]], time=1500),
        entry("changed", id=3, v=4, edit=[[11, 13, "x"]], time=1600),
        entry("event", data={"sourceId": "InlineCompletions.fetch", "kind": "end"}, time=1700),
    ],
    "nextUserEdit": {"edit": [[0, 5, "var"]], "relativePath": "src\\a.ts"},
}


def final_text(session) -> str:
    texts = Texts(session)
    for event in session.events:
        texts.apply(event)
    return texts.documents[session.header.docs[0].d].text


def test_vs_code_recording_counts_utf_16_and_edits_several_places():
    session = of_recording(RECORDING, "one")
    check(session)
    assert [(d.path, d.lang) for d in session.header.docs] == [("src/a.ts", "typescript")]
    assert final_text(session) == "const s = 'x';\n\nconst t = 1;\n"
    changes = [event for event in session.events if isinstance(event, Changed)]
    assert [(event.t, event.why, len(event.c)) for event in changes] == [
        (200, "newline", 1),
        (500, "accept", 2),
        (600, "unknown", 1),
    ]
    assert [event.t for event in session.events if isinstance(event, Focused)] == [100]
    assert [event.edits for event in session.events if isinstance(event, Expected)] == [[(0, 0, 0, 5, "var")]]


def test_second_content_of_document_is_a_change_and_stored_one_comes_back():
    log = [
        entry("documentEncountered", id=0, relativePath="a.py"),
        entry("setContent", id=0, v=1, content="a = 1\n"),
        entry("storeContent", id=0, contentId="c1", v=1),
        entry("setContent", id=0, v=2, content="a = 23\n"),
        entry("restoreContent", id=0, contentId="c1", v=3),
    ]
    session = of_recording({"log": log}, "two")
    assert [event.c for event in session.events if isinstance(event, Changed)] == [
        [[0, 4, 0, 5, "23"]],
        [[0, 4, 0, 6, "1"]],
    ]


def commit(**files: tuple[str, str]):
    blobs = {f"{name}.py": (before.encode(), after.encode()) for name, (before, after) in files.items()}
    return of_commit("house", "MIT", "c0ffee" * 6, blobs, load())


BEFORE = "def old(x):\n    return x\n\n\nprint(old(1))\n"
AFTER = "def new(x):\n    y = 2\n    return x\n\n\nprint(new(1))\n"


def test_commit_is_typed_hunk_by_hunk_and_key_by_key():
    session = commit(a=(BEFORE, AFTER))
    check(session)
    assert final_text(session) == AFTER
    marks = [event for event in session.events if isinstance(event, Marked)]
    assert [(mark.n, mark.span, mark.new) for mark in marks] == [
        (0, (0, 0, 1, 0), "def new(x):\n    y = 2\n"),
        (1, (5, 0, 6, 0), "print(new(1))\n"),
    ]
    changes = [event for event in session.events if isinstance(event, Changed)]
    assert all(len(event.c[0][-1].strip()) <= 1 for event in changes)
    assert [event.d for event in session.events if isinstance(event, Saved)] == [0]
    assert (session.header.timing, session.header.licence) == ("modelled", "MIT")


def test_same_commit_is_typed_the_same_way_every_time():
    assert commit(a=(BEFORE, AFTER)) == commit(a=(BEFORE, AFTER))


def test_going_to_another_file_is_told():
    session = commit(a=(BEFORE, AFTER), b=("import old\n", "import new\n"))
    assert sum(isinstance(event, Focused) for event in session.events) == 1


def test_large_commits_and_non_code_make_no_session():
    assert commit(a=("", "x = 1\n" * 400)) is None
    assert of_commit("house", None, "c0ffee", {"notes.xyz": (b"a", b"b")}, load()) is None
    assert commit() is None


lines = st.lists(st.sampled_from(["a\n", "  b\n", "def f():\n", "    return 1\n", "\n", "x😀y\n"]), max_size=10)


@given(lines, lines)
@settings(max_examples=60)
def test_typing_any_hunks_makes_the_commit(before, after):
    session = commit(a=("".join(["start\n", *before]), "".join(["start\n", *after])))
    if session is not None:
        check(session)
        assert final_text(session) == "".join(["start\n", *after])


def test_line_break_brings_indentation_along():
    assert list(keystrokes("a:\n    b\n")) == ["a", ":", "\n    ", "b", "\n"]


def test_commits_of_a_repository_come_oldest_first(tmp_path):
    for number in range(3):
        committed(tmp_path, {"a.py": f"x = {number}\n", "data.json": str(number)})
    found = list(commits(tmp_path, "house", "MIT", globs=["*.py"]))
    assert [final_text(session) for session in found] == ["x = 1\n", "x = 2\n"]
