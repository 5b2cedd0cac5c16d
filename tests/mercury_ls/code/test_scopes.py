import re
from pathlib import Path

from mercury_ls.code.documents import Document
from mercury_ls.code.scopes import binding_ranges, declares, is_member, local_at, mentions, node_at, whole
from tests.cases import Case, each_case
from tests.marked import marked

CASES = Path(__file__).parent / "cases"


@each_case(CASES / "locals.txt")
def test_locals_belong_to_their_scope(case: Case) -> None:
    """`$0` stands before a name; the first line of what has it as a local is expected."""
    snapshot, offset = marked(case.drawn, case.key)
    found = local_at(snapshot, offset, (node_at(snapshot, offset).text.decode(),))
    assert (found.scope.text.decode().partition("\n")[0].strip() if found else "nothing") == case.expected


@each_case(CASES / "declares.txt")
def test_declarations_are_told_from_uses(case: Case) -> None:
    snapshot, offset = marked(case.drawn, case.key)
    assert declares(node_at(snapshot, offset)) == (case.expected == "yes")


def test_member_is_told_from_name():
    snapshot, offset = marked("function f(a) {\n  return b.$0a;\n}\n", "javascript")
    assert is_member(node_at(snapshot, offset))


def test_functions_with_a_local_of_the_name_are_all_found():
    snapshot, _ = marked("def f(a):\n    pass\n\n\ndef g():\n    a = 1\n\n\ndef h():\n    a()\n$0")
    firsts = [snapshot.text[slice(*found)].partition("\n")[0] for found in binding_ranges(snapshot, "a")]
    assert firsts == ["def f(a):", "def g():"]


def test_text_without_grammar_has_no_scopes():
    snapshot = Document("file:///notes.txt", "notes.txt", "plaintext", 1, "a b\n").snapshot()
    assert node_at(snapshot, 2) is None
    assert local_at(snapshot, 2, ("b",)) is None
    assert binding_ranges(snapshot, "b") == []


def check_mentions(text: str, name: str, expected: list[int]) -> None:
    snapshot = Document("file:///a.py", "a.py", "python", 1, text).snapshot()
    assert [*mentions(snapshot, name)] == expected
    assert [match.start() for match in re.finditer(whole(name), text)] == expected


def test_name_is_found_where_it_stands_as_a_whole():
    check_mentions("load(load_all, preload, load)", "load", [0, 24])
    check_mentions("a.load aload load", "load", [2, 13])
    check_mentions("$load load$ load$x `load$`", "load", [20])
    check_mentions("loadload load", "load", [9])
    check_mentions("x xx x", "x", [0, 5])
    check_mentions("größe größer", "größe", [0])
    check_mentions("", "load", [])
