from mercury_engine.api import Snippet
from mercury_ls.code.documents import Document
from mercury_ls.completion.context import SNIPPET_CHARACTERS, ContextBudget, Related, relate, window
from tests.marked import marked
from tests.private_keys import KEY, is_told


def opened(path: str, text: str):
    return Document(f"file://{path}", path, "python", 1, text).snapshot()


def related_paths(drawn: str, others=(), definitions=lambda names, near: []) -> list[str]:
    snapshot, offset = marked(drawn)
    return [s.path for s in relate(snapshot, offset, others, definitions, ContextBudget(), 0.0).snippets]


def test_small_file_is_its_own_window():
    snapshot, offset = marked("a\nb$0\nc\n")
    assert window(snapshot, offset, 100) == (0, 6)


def test_window_of_large_file_stays_while_typing_and_holds_cursor():
    lines = [f"value_{n} = {n}\n" for n in range(2000)]
    snapshot, offset = marked("".join([*lines[:1000], "x$0\n", *lines[1000:]]))
    start, end = window(snapshot, offset, 4000)
    assert start < offset < end
    assert end - start < 12_000
    typed, later = marked("".join([*lines[:1000], "xyz$0\n", *lines[1000:]]))
    assert window(typed, later, 4000)[0] == start
    assert snapshot.text[start - 1] == "\n"


def test_similar_code_of_other_files_comes_first():
    close = opened("/project/close.py", "def parse_header(stream):\n    return stream.read_header()\n")
    far = opened("/project/far.py", "def unrelated():\n    paint(colour)\n")
    assert related_paths("header = parse_header($0)\n", [far, close]) == ["/project/close.py"]


def test_definitions_of_names_in_use_are_asked_for():
    asked = []

    def definitions(names, near):
        asked.extend(names)
        return [Snippet("/project/lib.py", "def connect(host, port): ...")]

    assert related_paths("connect($0)\n", definitions=definitions) == ["/project/lib.py"]
    assert "connect" in asked


def test_window_text_is_not_shown_twice():
    same = opened("/project/copy.py", "def parse_header(stream):\n    return stream.read_header()\n")
    drawn = "def parse_header(stream):\n    return stream.read_header()\n\nparse_header($0)\n"
    assert related_paths(drawn, [same]) == []


def test_context_is_bounded():
    body = "def load_config_{0}(path):\n    return read(path, {0}, '{1}')\n" * 10
    others = [opened(f"/project/f{n}.py", body.format(n, "." * 90)) for n in range(30)]
    snapshot, offset = marked("load_config(path, read$0)\n")
    chosen = relate(snapshot, offset, others, lambda names, near: [], ContextBudget(snippets=64), 0.0).snippets
    assert SNIPPET_CHARACTERS - 2000 < sum(len(s.text) for s in chosen) <= SNIPPET_CHARACTERS
    assert len(relate(snapshot, offset, others, lambda names, near: [], ContextBudget(snippets=3), 0.0).snippets) == 3
    assert relate(snapshot, offset, others, lambda names, near: [], ContextBudget(snippets=0), 0.0).snippets == ()


def test_definitions_stand_between_pieces_of_similar_code():
    others = [opened(f"/project/{n}.py", f"def parse_{n}(stream):\n    return connect({n})\n") for n in range(5)]
    library = [Snippet(f"/project/lib{n}.py", f"def connect{n}(): ...") for n in range(3)]
    found = related_paths("parse(connect($0))\n", others, lambda names, near: library)
    assert ["lib" in path for path in found] == [False, False, True] * 2 + [False, True]


def test_imports_and_headers_above_the_window_are_kept():
    body = "".join(f"        value_{n} = {n}\n" for n in range(3000))
    snapshot, offset = marked(f"import os\n\n\nclass Store:\n    def load(self):\n{body}        $0\n")
    chosen = relate(snapshot, offset, [], lambda names, near: [], ContextBudget(tokens=1000), 0.0).snippets
    assert chosen[0].path == snapshot.path
    assert "import os" in chosen[0].text
    assert "class Store" in chosen[0].text
    assert "def load" in chosen[0].text


def test_choice_lasts_while_user_stays_near():
    snapshot, offset = marked("a = 1\n" * 50 + "b$0\n")
    related = Related(snapshot.uri, 45, chosen_at=0.0)
    assert related.still_fits(snapshot, offset, time=10.0)
    assert not related.still_fits(snapshot, 0, time=10.0)
    assert not related.still_fits(snapshot, offset, time=100.0)


def test_private_key_is_in_no_snippet():
    code = "def parse_header(stream):\n    return stream.read_header()\n"
    cut = opened("/project/keys.py", "header = 1\n" * 20 + code + KEY + code)
    snapshot, offset = marked("header = parse_header($0)\n")
    related = relate(snapshot, offset, [cut], lambda names, near: [], ContextBudget(), 0.0)
    assert len(related.snippets) > 1
    assert related.hides
    assert not is_told(related)
