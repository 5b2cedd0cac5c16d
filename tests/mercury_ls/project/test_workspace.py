"""Definitions of the workspace: found step by step, kept current, and never from a hidden file."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from mercury_ls.code.files import read_small
from mercury_ls.project import index, workspace
from mercury_ls.project.privacy import Privacy
from mercury_ls.project.unended import HANGING_SECONDS, Unended
from mercury_ls.project.workspace import Workspace
from mercury_ls.settings.schema import ContextSettings, PrivacySettings
from tests.private_keys import BEGIN, KEY, is_told


class Tree:
    """A workspace on disk, and an index of it that notes what it opens."""

    def __init__(self, folder: Path, roots: tuple[str, ...] = (".",), **settings) -> None:
        self.folder = folder
        self.opened: list[str] = []
        self.now = 0.0
        paths = [folder / root for root in roots]
        privacy = Privacy(PrivacySettings(), paths)
        self.spent = 0.0
        self.notes = Unended(folder.parent / f"{folder.name}-notes")
        self.workspace = Workspace(
            paths, privacy, ContextSettings(**settings), self.read, self.notes, clock=lambda: self.spent
        )

    def read(self, path: str, limit: int) -> bytes:
        self.opened.append(Path(path).relative_to(self.folder).as_posix())
        self.spent += workspace.MOST_SECONDS + 1 if "slow" in path else 0
        return read_small(path, limit)

    def settle(self, most: int = 10_000) -> "Tree":
        steps = sum(1 for _ in iter(lambda: self.workspace.step(self.now), False))
        assert steps < most
        return self

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def found(self, *names: str, near: str = "here.py") -> list[str]:
        """Where the names are defined, `file: first line` of the snippet."""
        snippets = self.workspace.definitions(names, self.path(near))
        return [f"{Path(s.path).relative_to(self.folder).as_posix()}: {s.text.splitlines()[0]}" for s in snippets]


@pytest.fixture
def put(tmp_path):
    """Write files given as `{name: text}`, each a second newer than the one before it."""
    clock = iter(range(1_000_000_000, 2_000_000_000))

    def put(files: dict[str, str | bytes]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            moment = next(clock)
            os.utime(path, (moment, moment))
        return tmp_path

    return put


def test_definitions_are_found_by_name(put):
    tree = Tree(put({"a.py": "def one(x):\n    return x\n", "b/c.py": "class Two:\n    three = 3\n"})).settle()
    assert tree.found("one", "Two", "none") == ["a.py: def one(x):", "b/c.py: class Two:"]
    assert len(tree.workspace.index.files) == 2


def test_snippet_is_a_signature_and_a_few_lines(put):
    body = "".join(f"        line{n}\n" for n in range(20))
    tree = Tree(
        put({"a.py": f"class A:\n    def long(self):\n{body}\n    def short(self):\n        return 1\n"})
    ).settle()
    long, short = tree.workspace.definitions(["long", "short"], "")
    assert long.text == "def long(self):\n" + "".join(f"    line{n}\n" for n in range(4)).rstrip("\n")
    assert short.text == "def short(self):\n    return 1"


def test_snippet_is_never_huge(put):
    tree = Tree(put({"a.py": f"def f():\n    return '{'x' * 1500}'\n"})).settle()
    assert [len(snippet.text) for snippet in tree.workspace.definitions(["f"], "")] == [len("def f():")]


def test_steps_do_little_each(put):
    tree = Tree(put({f"m{n}.py": f"def f{n}(): pass\n" for n in range(40)}))
    while tree.workspace.step(0.0):
        before = len(tree.opened)
        tree.workspace.step(0.0)
        assert len(tree.opened) - before <= 1
    assert len(tree.workspace.index.files) == 40


def test_several_roots_are_one_workspace(put):
    folder = put({"one/a.py": "def f(): pass\n", "two/b.py": "def g(): pass\n", "three/c.py": "def h(): pass\n"})
    tree = Tree(folder, ("one", "two", "one")).settle()
    assert tree.found("f", "g", "h") == ["one/a.py: def f(): pass", "two/b.py: def g(): pass"]


def test_root_within_skipped_folder_of_another_is_read(put):
    tree = Tree(put({"vendor/mine/a.py": "def f(): pass\n", "vendor/b.py": "def g(): pass\n"}), (".", "vendor/mine"))
    assert tree.settle().found("f", "g") == ["vendor/mine/a.py: def f(): pass"]


def test_hidden_files_are_never_opened(put):
    folder = put(
        {
            ".gitignore": "made.py\n/private/\n",
            "a/.gitignore": "*_x.py\n!keep_x.py\n",
            ".mercuryignore": "mine.py\n",
            "made.py": "def f(): pass\n",
            "private/p.py": "def f(): pass\n",
            "a/one_x.py": "def f(): pass\n",
            "a/keep_x.py": "def f(): pass\n",
            "mine.py": "def f(): pass\n",
            "secrets.py": "def f(): pass\n",
            ".ssh/a.py": "def f(): pass\n",
            "fine.py": "def f(): pass\n",
        }
    )
    tree = Tree(folder).settle()
    tree.workspace.changed([tree.path(name) for name in ("made.py", "secrets.py", ".ssh/a.py", "private/p.py")])
    tree.settle()
    assert sorted(tree.opened) == ["a/keep_x.py", "fine.py"]


def test_foreign_source_is_not_read(put):
    folder = put(
        {
            "node_modules/x/a.js": "function f() {}\n",
            ".venv/a.py": "def f(): pass\n",
            "myenv/pyvenv.cfg": "",
            "myenv/a.py": "def f(): pass\n",
            "cached/CACHEDIR.TAG": "",
            "cached/a.py": "def f(): pass\n",
            "dist/a.py": "def f(): pass\n",
            "a.min.js": "function f() {}\n",
            "b_pb2.py": "def f(): pass\n",
            "large.py": "def f(): pass\n" + "# line\n" * 150_000,
            "empty.py": "",
            "notes.txt": "def f(): pass\n",
            "README": "def f(): pass\n",
        }
    )
    tree = Tree(folder).settle()
    assert tree.opened == []
    tree.workspace.changed([tree.path("node_modules/x/a.js"), tree.path(".venv/a.py"), tree.path("large.py")])
    assert tree.settle().opened == []


def test_file_that_is_not_source_is_read_once_and_not_shown(put):
    folder = put(
        {
            "binary.py": b"def f(): pass\n\0\0",
            "latin.py": b"def f(): pass # \xe9\n",
            "generated.py": "# @generated by a tool\ndef f(): pass\n",
            "wide.py": f"def f(): pass\nx = '{'x' * 3000}'\n",
        }
    )
    tree = Tree(folder).settle()
    assert tree.found("f") == []
    assert len(tree.opened) == 4
    tree.now += workspace.RESCAN_SECONDS
    assert len(tree.settle().opened) == 4


def test_last_changed_files_are_kept(put):
    names = [f"m{n}.py" for n in range(6)]
    tree = Tree(put({name: f"def f{n}(): pass\n" for n, name in enumerate(names)}), max_files=3).settle()
    assert tree.opened == ["m5.py", "m4.py", "m3.py"]
    put({"m0.py": "def zero(): pass\n"})
    tree.workspace.changed([tree.path("m0.py")])
    tree.settle()
    assert len(tree.workspace.index.files) == 3
    assert tree.found("zero", "f3", "f5") == ["m0.py: def zero(): pass", "m5.py: def f5(): pass"]


def test_importing_files_are_known_as_they_come_and_go(put):
    tree = Tree(put({"pkg/a.py": "from . import b\n", "c.py": "x = 1\n", "d.py": "# @generated\nimport c\n"}))

    def check(*expected: str) -> None:
        seeing = tree.settle().workspace.importers.seeing(tree.path("pkg/b.py"))
        assert {Path(path).name for path in seeing} == {"b.py", *expected}

    check()
    put({"pkg/b.py": "class B: ...\n"})
    tree.workspace.changed([tree.path("pkg/b.py")])
    check("a.py")
    put({"c.py": "import pkg.a\n"})
    tree.workspace.changed([tree.path("c.py")])
    check("a.py", "c.py", "d.py")
    tree.workspace.removed([tree.path("c.py")])
    check("a.py")


def test_index_is_empty_where_none_is_wanted(put):
    folder = put({"a.py": "def f(): pass\n"})
    for settings in ({"workspace_definitions": False}, {"max_files": 0}):
        tree = Tree(folder, **settings)
        tree.workspace.changed([tree.path("a.py")])
        assert tree.workspace.step(0.0) is False
        assert tree.found("f") == []


def test_text_kept_is_bounded(put, monkeypatch):
    monkeypatch.setattr(index, "LARGEST_INDEX", 60)
    tree = Tree(put({f"m{n}.py": f"def f{n}(): return 10000\n" for n in range(9)})).settle()
    assert tree.found("f8", "f7", "f6", "f0") == ["m8.py: def f8(): return 10000", "m7.py: def f7(): return 10000"]


def test_changed_files_are_read_next(put):
    folder = put({f"m{n}.py": f"def f{n}(): pass\n" for n in range(5)})
    tree = Tree(folder).settle()
    put({"m3.py": "def new(): pass\n", "fresh/n.py": "def more(): pass\n"})
    assert tree.found("f3") == []
    tree.workspace.changed([tree.path("fresh/n.py")])
    tree.settle()
    assert tree.opened[5:] == ["m3.py", "fresh/n.py"]
    assert tree.found("f3", "new", "more") == ["m3.py: def new(): pass", "fresh/n.py: def more(): pass"]


def test_removed_files_and_folders_are_forgotten(put):
    tree = Tree(put({"a/x.py": "def f(): pass\n", "a/b/y.py": "def g(): pass\n", "z.py": "def h(): pass\n"})).settle()
    tree.workspace.removed([tree.path("a"), tree.path("z.py"), tree.path("unknown.py")])
    assert tree.found("f", "g", "h") == []
    assert len(tree.workspace.index.files) == 0


def test_files_that_vanish_unannounced_are_not_shown(put):
    tree = Tree(put({"a.py": "def f(): pass\n"})).settle()
    (tree.folder / "a.py").unlink()
    assert tree.found("f") == []
    assert len(tree.settle().workspace.index.files) == 0


def test_file_hidden_later_is_not_shown(put):
    tree = Tree(put({"a.py": "def f(): pass\n", "b.py": "def g(): pass\n"})).settle()
    (tree.folder / ".gitignore").write_text("a.py\n")
    assert tree.found("f", "g") == ["b.py: def g(): pass"]
    assert len(tree.settle().workspace.index.files) == 1


def test_file_that_is_no_longer_hidden_is_found(put):
    tree = Tree(put({".gitignore": "a.py\n", "a.py": "def f(): pass\n"})).settle()
    (tree.folder / ".gitignore").write_text("")
    tree.workspace.changed([tree.path(".gitignore")])
    assert tree.settle().found("f") == ["a.py: def f(): pass"]


def test_another_scan_reads_only_what_has_changed(put):
    tree = Tree(put({"a.py": "def f(): pass\n", "b.py": "def g(): pass\n"})).settle()
    put({"b.py": "def h(): pass\n", "c.py": "def i(): pass\n"})
    assert tree.workspace.step(tree.now + workspace.RESCAN_SECONDS - 1) is False
    tree.now += workspace.RESCAN_SECONDS
    tree.settle()
    assert tree.opened[2:] == ["c.py", "b.py"]
    assert tree.found("f", "g", "h", "i") == ["a.py: def f(): pass", "b.py: def h(): pass", "c.py: def i(): pass"]


@pytest.mark.parametrize("linked", [False, True])
def test_branch_switch_is_noticed(put, linked):
    head = "repository/.git/worktrees/project/HEAD" if linked else "project/.git/HEAD"
    folder = put({head: "ref: refs/heads/main\n", "project/src/a.py": "def f(): pass\n"})
    if linked:
        put({"project/.git": f"gitdir: {folder / 'repository/.git/worktrees/project'}\n"})
    tree = Tree(folder, ("project/src",)).settle()
    assert not tree.workspace.branch_switched()
    put({head: "ref: refs/heads/other\n", "project/src/a.py": "def g(): pass\n"})
    assert tree.workspace.branch_switched()
    assert not tree.workspace.branch_switched()
    assert tree.found("f") == []
    assert tree.settle().found("g") == ["project/src/a.py: def g(): pass"]


@pytest.mark.parametrize("text", ["gitdir: \0", "gitdir: " + "x" * 5000, "gitdir:", "gitdir: a\0b\n", "\0", "\xff", ""])
@pytest.mark.parametrize("name", [".git", ".git/HEAD", ".git/commondir", "g/commondir", "g/HEAD", ".gitignore"])
def test_whatever_a_file_of_git_holds_the_project_is_read(put, name, text):
    files = {".git": "gitdir: g"} if name.startswith("g/") else {}
    tree = Tree(put({**files, name: text, "a.py": "def f(): pass\n"})).settle()
    assert tree.found("f") == ["a.py: def f(): pass"]
    assert not tree.workspace.branch_switched()


NAMES = st.sampled_from([".git", ".gitignore", ".mercuryignore", "b.py", "src/.gitignore"])
PIECES = st.sampled_from(
    [b"gitdir:", b"\0", b"\n", b"..", b"/", b"*", b"[", b"!", b"\\", b"\xff", b"def f(): pass", b"#", b"x" * 5000]
)


@examples(max_examples=40)
@given(st.dictionaries(NAMES, st.lists(PIECES, max_size=8).map(b"".join)))
def test_bytes_of_a_project_never_break_its_index(tmp_path_factory, files):
    folder = tmp_path_factory.mktemp("project")
    for name, content in {"a.py": b"def a(): pass\n", **files}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    tree = Tree(folder).settle()
    tree.workspace.branch_switched()
    hides = any(content for name, content in files.items() if name.endswith("ignore"))
    assert hides or tree.found("a") == ["a.py: def a(): pass"]


def test_unreadable_file_takes_nothing_else_with_it(put, monkeypatch):
    tree = Tree(put({f"{name}.py": f"def {name}(): pass\n" for name in "abc"}))
    definitions = workspace.syntax.definitions
    fails = {"b"}

    def understood(snapshot):
        if Path(snapshot.path).stem in fails:
            raise RuntimeError("a bug of ours")
        return definitions(snapshot)

    monkeypatch.setattr(workspace.syntax, "definitions", understood)
    assert tree.settle().found("a", "b", "c") == ["a.py: def a(): pass", "c.py: def c(): pass"]
    fails.clear()
    tree.now += workspace.RESCAN_SECONDS
    assert tree.settle().found("b") == ["b.py: def b(): pass"]


def test_failed_scan_is_made_again(put, monkeypatch):
    tree = Tree(put({"a.py": "def a(): pass\n"}))
    with monkeypatch.context() as patch:
        patch.setattr(workspace, "entries_of", lambda folder: 1 / 0)
        tree.settle()
    tree.now += workspace.RESCAN_SECONDS
    assert tree.settle().found("a") == ["a.py: def a(): pass"]


def test_scan_under_way_begins_again_after_switch(put):
    tree = Tree(put({".git/HEAD": "ref: refs/heads/main\n", "a/b/x.py": "def f(): pass\n"}))
    tree.workspace.step(0.0)
    put({".git/HEAD": "ref: refs/heads/other\n", "y.py": "def g(): pass\n"})
    assert tree.workspace.branch_switched()
    assert tree.settle().found("f", "g") == ["a/b/x.py: def f(): pass", "y.py: def g(): pass"]


def test_links_are_not_followed(put):
    folder = put({"a/x.py": "def f(): pass\n", "out/y.py": "def g(): pass\n"})
    (folder / "a/loop").symlink_to(folder / "a")
    (folder / "a/up").symlink_to(folder)
    (folder / "a/y.py").symlink_to(folder / "out/y.py")
    (folder / "a/z.py").symlink_to(folder / "a/z.py")
    assert Tree(folder, ("a",)).settle(100).opened == ["a/x.py"]


def test_links_that_come_into_being_are_not_followed(put):
    folder = put({"a/x.py": "def f(): pass\n", "out/y.py": "def g(): pass\n"})
    tree = Tree(folder, ("a",)).settle()
    (folder / "a/y.py").symlink_to(folder / "out/y.py")
    (folder / "a/deep").symlink_to(folder / "out")
    tree.workspace.changed([tree.path("a/y.py"), tree.path("a/deep/y.py")])
    assert tree.settle().opened == ["a/x.py"]


def test_linked_root_is_read(put):
    folder = put({"a/x.py": "def f(): pass\n"})
    (folder / "b").symlink_to(folder / "a")
    tree = Tree(folder, ("b",)).settle()
    tree.workspace.changed([tree.path("b/x.py")])
    assert tree.settle().opened == ["b/x.py", "b/x.py"]


def test_nearest_definition_in_the_same_language_is_chosen(put):
    folder = put(
        {
            "far/away/x.py": "def f(far): pass\n",
            "near/by/y.py": "def f(near): pass\n",
            "near/z.js": "function f(other) {}\n",
            "near/t.ts": "function g(typed: string) {}\n",
        }
    )
    tree = Tree(folder).settle()
    assert tree.found("f", near="near/here.py") == ["near/by/y.py: def f(near): pass"]
    assert tree.found("f", near="far/here.py") == ["far/away/x.py: def f(far): pass"]
    assert tree.found("f", "g", near="near/here.tsx") == [
        "near/z.js: function f(other) {}",
        "near/t.ts: function g(typed: string) {}",
    ]


def test_files_of_the_same_kind_stand_around_one_the_nearest_first(put):
    names = ["here.py", "far/away/far.py", "near.py", "a/b.py", "a/c.go", "notes.md", "secret.env", "a/a.py"]
    tree = Tree(put({name: f"x = '{name}'\n" for name in names})).settle()
    around = [
        (Path(path).relative_to(tree.folder).as_posix(), text)
        for path, text in tree.workspace.around(tree.path("here.py"))
    ]
    assert around == [(name, f"x = '{name}'\n") for name in ("near.py", "a/a.py", "a/b.py", "far/away/far.py")]
    assert list(tree.workspace.around(tree.path("page.html"))) == []


def test_definitions_of_the_file_itself_are_not_found(put):
    tree = Tree(put({"a.py": "def f(): pass\n"})).settle()
    assert tree.found("f", near="a.py") == []


def test_names_that_many_files_define_say_nothing(put):
    tree = Tree(put({f"m{n}.py": "def main(): pass\ndef f(): pass\n" for n in range(9)})).settle()
    assert tree.found("main") == []


def test_snippets_are_limited_in_number(put):
    tree = Tree(put({"a.py": "".join(f"def f{n}(): pass\n" for n in range(20))})).settle()
    assert len(tree.found(*(f"f{n}" for n in range(20)))) == workspace.SNIPPETS


def test_folders_full_of_data_are_passed_by(put, monkeypatch):
    monkeypatch.setattr(workspace, "LARGEST_FOLDER", 3)
    tree = Tree(put({**{f"data/{n}.py": "def f(): pass\n" for n in range(4)}, "a.py": "def g(): pass\n"})).settle()
    assert tree.opened == ["a.py"]


def test_scan_ends_in_endless_tree(put, monkeypatch):
    monkeypatch.setattr(workspace, "LARGEST_SCAN", 5)
    tree = Tree(put({f"{'d/' * n}m.py": "def f(): pass\n" for n in range(12)})).settle(50)
    assert 0 < len(tree.opened) <= 5


def test_order_of_reading_is_always_the_same(put):
    folder = put({f"{name}/m.py": "def f(): pass\n" for name in "cab"})
    for path in folder.rglob("*.py"):
        os.utime(path, (1, 1))
    assert Tree(folder).settle().opened == ["a/m.py", "b/m.py", "c/m.py"]


def test_files_are_found_by_their_names_without_being_read_again(put):
    long = "# a line\n" * 9000
    folder = put({"a.py": "load(Rows)\n", "deep/b.py": "load()\n" + long, "c.py": "reload()\n", "d.js": "load();\n"})
    tree = Tree(folder).settle()
    tree.opened.clear()
    near = tree.path("near.py")
    found = [os.path.relpath(path, folder) for path in tree.workspace.index.mentioning([frozenset({"load"})], near)]
    assert found == ["a.py", os.path.join("deep", "b.py")]
    found = tree.workspace.index.mentioning([frozenset({"load", "Rows"}), frozenset({"reload"})], near)
    assert [os.path.relpath(path, folder) for path in found] == ["a.py", "c.py"]
    assert tree.workspace.index.mentioning([], near) == []
    assert tree.opened == []


def test_files_outside_the_index_are_counted(put, monkeypatch):
    tree = Tree(put({"a.py": "load()\n", "b.py": "load()\n"}))
    assert tree.workspace.gap() == "the project is still being indexed"
    assert tree.settle().workspace.gap() == ""
    monkeypatch.setattr(workspace, "LARGEST_FILE", 5)
    assert (
        Tree(put({"a.py": "load()\n", "b.py": "f()\n"})).settle().workspace.gap()
        == "1 of its files are not in the index"
    )


def test_private_key_is_in_no_definition(put):
    body = "".join(f'    "{line}\\n"\n' for line in KEY.splitlines())
    tree = Tree(put({"keys.py": f"def key():\n    return (\n{body})\n"})).settle()
    (snippet,) = tree.workspace.definitions(["key"], "")
    assert BEGIN in snippet.text
    assert not is_told(snippet)


def test_file_that_takes_too_long_is_left_out_and_named(put):
    tree = Tree(put({"slow.py": "import b\ndef f(): pass\n", "b.py": "def g(): pass\n"})).settle()
    assert tree.found("f", "g") == ["b.py: def g(): pass"]
    assert tree.workspace.gap() == "1 of its files are not in the index (slow.py)"
    assert tree.workspace.index.unread == {tree.path("slow.py"): "it takes more than 5 s"}
    assert tree.workspace.text(tree.path("slow.py")) is None
    tree.now += workspace.RESCAN_SECONDS
    assert tree.settle().opened.count("slow.py") == 1
    put({"slow.py": ""})
    tree.workspace.removed([tree.path("slow.py")])
    assert tree.workspace.index.unread == {}


def test_file_that_ended_two_servers_is_left_out_and_named(put):
    folder = put({"a.py": "def f(): pass\n", "b.py": "def g(): pass\n"})
    for _ in range(2):
        tree = Tree(folder)
        tree.notes.begin(tree.path("a.py"))
        for note in (folder.parent / f"{folder.name}-notes").iterdir():
            moment = note.stat().st_mtime - HANGING_SECONDS - 1
            os.utime(note, (moment, moment))
    tree = Tree(folder).settle()
    assert tree.found("f", "g") == ["b.py: def g(): pass"]
    assert [*tree.workspace.index.unread] == [tree.path("a.py")]
    assert "a.py" not in tree.opened


def test_reading_leaves_no_note(put):
    tree = Tree(put({"a.py": "def f(): pass\n"})).settle()
    assert [*(tree.folder.parent / f"{tree.folder.name}-notes").iterdir()] == []
