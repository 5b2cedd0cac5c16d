from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.api import Edit
from mercury_ls.code.differences import is_step_towards, token_changes, tokens
from mercury_ls.next_edit.learn import rules
from mercury_ls.next_edit.renamed import renamed_symbols


def check(edits: list[tuple[str, str]], *expected: str, silent: tuple[str, ...] = ()) -> None:
    """`expected` are rules as `kind: before → after`, in any order; kinds in `silent` must not be learned."""
    found = rules([Edit("a.py", number * 10, *edit) for number, edit in enumerate(edits)])
    drawn = {f"{rule.kind}: {rule.before} → {rule.after}" for rule in found}
    assert set(expected) <= drawn, drawn
    assert not {rule.kind for rule in found} & set(silent), drawn


def test_renamed_name_teaches_a_rename():
    check([("x = total + 1\n", "x = amount + 1\n")], "rename: total → amount", silent=("clone", "replace"))


def test_import_under_another_name_is_learned():
    check([("import numpy\n", "import numpy as np\n")], "rename: numpy → np")
    check([("from a import b, c\n", "from a import b as d, c\n")], "rename: b → d")
    check([("import os.path\n", "import os.path as p\n")], silent=("rename",))


def test_reordering_says_nothing_by_itself():
    check([("f(a, b)\n", "f(b, a)\n")], silent=("argument", "replace", "rename"))
    before, after = "def f(name: str, path: Path | str):\n", "def f(path: Path | str, name: str):\n"
    check([(before, after)], silent=("parameter", "argument", "replace", "rename"))
    check([("f = open(path, 'w')\n", "f = path.open('w')\n")], silent=("argument", "replace", "rename"))


def test_keyword_is_replaced_or_renamed_where_it_may_be_a_name():
    check([("var a = 1\n", "let a = 1\n")], "replace: var → let")
    check([("match = find(a)\n", "found = find(a)\n")], "rename: match → found")


def test_changed_literal_teaches_a_replacement():
    check([("f(retries=3)\n", "f(retries=5)\n")], "replace: 3 → 5")


def test_added_argument_is_learned_at_call_and_not_at_definition():
    check([("get(url)\n", "get(url, timeout=5)\n")], "argument:  → , timeout=5")
    check([("def get(url):\n", "def get(url, timeout):\n")], silent=("argument",))


def test_argument_in_the_middle_goes_with_its_comma():
    check([("f(a, b, c)\n", "f(a, c)\n")], "argument: , b → ")


def test_wrapped_expression_is_one_piece():
    check([("print(a.b)\n", "print(str(a.b))\n")], "replace: a.b → str(a.b)")


def test_lines_that_came_again_are_no_lines_that_went():
    check([("    log(a)\n", ""), ("", "    log(a)\n")], silent=("delete",))
    check([("", "    log(a)\n"), ("    log(a)\n", "")], silent=("insert",))


def test_line_with_another_inserted_above_is_still_that_line():
    edit = ("type Shape = {\n", "/** @internal */\nexport type AnyShape = {\n")
    check([edit], "rename: Shape → AnyShape", "replace:  → export ", "insert:  → ")


def test_line_that_was_broken_is_not_a_new_line():
    check([("if not x: return None\n", "if not x:\n    return None\n")], silent=("delete", "insert", "replace"))


def test_text_continued_on_a_new_line_is_no_phrase():
    edit = ("# Sorts by path.\n", "# Sorts by path. The order is\n# that of the folders.\n")
    check([edit], silent=("replace",))


def test_lines_that_came_beside_others_that_changed():
    edit = ("a = load(x)\nb = 1\n", "a = read(x)\nb = 1\nlimit = settings.limit\n")
    check([edit], "rename: load → read", "insert:  → ")


def test_name_in_comment_is_told_by_code():
    edits = [Edit("a.py", 1, "relased = 0\n", "released = 0\n"), Edit("a.py", 5, "# relased\n", "# released\n")]
    (rule,) = [rule for rule in rules(edits) if rule.kind == "rename"]
    assert (rule.count, rule.line, rule.age) == (2, 1, 0)


def test_lines_that_go_and_come():
    check([("    log(a)\n", "")], "delete:  → ")
    check([("", "    check(a)\n")], "insert:  → ")


def test_pieces_that_open_a_quote_are_one_with_those_that_close_it():
    check([('x: "Future[int]" = 1\n', "x: Awaitable[int] = 1\n")], 'replace: "Future[int]" → Awaitable[int]')


def test_names_by_which_other_files_know_what_changed():
    assert renamed_symbols([Edit("a.py", 0, "def fetch(a):\n", "def load_all(a):\n")]) == ("fetch",)
    assert renamed_symbols([Edit("a.py", 0, "fetch(a)\n", "fetch(a, b)\n")]) == ("fetch",)
    assert renamed_symbols([Edit("a.py", 0, "x = 1\n", "y = 1\n")]) == ()
    assert renamed_symbols([]) == ()


def test_blanks_say_nothing_but_where_columns_are():
    assert [rule.kind for rule in rules([Edit("a.py", 0, "a+b\n", "a + b\n")])] == ["align"]
    assert rules([Edit("a.py", 0, "a = b\n", "    a = b\n")]) == ()
    assert rules([Edit("a.py", 0, "    x = 1\n", "        x = 1\n")]) == ()


def test_undone_edit_is_forgotten():
    there, back = Edit("a.py", 0, "x = one\n", "x = two\n"), Edit("a.py", 5, "y = two\n", "y = one\n")
    assert not [rule for rule in rules([there, back]) if (rule.before, rule.after) == ("one", "two")]


def test_same_edit_twice_is_one_rule_that_counts():
    edits = [Edit("a.py", line, f"f{line}(old)\n", f"f{line}(new)\n") for line in (3, 7)]
    (rule,) = [rule for rule in rules(edits) if rule.kind == "rename"]
    assert (rule.count, rule.line, rule.age) == (2, 7, 0)
    assert rule.places == (("a.py", 7), ("a.py", 3))


def test_lines_with_nothing_in_common_teach_no_pieces():
    check([("a = b + c\n", "while True: pass\n")], silent=("rename", "replace", "argument"))


def test_edit_may_be_part_of_another():
    assert is_step_towards("f(a, b)", "g(a, b)", "g(a, c)")
    assert not is_step_towards("f(a, b)", "h(a, b)", "g(a, c)")
    assert not is_step_towards("f(a)", "f(a)", "g(a)")


LINE = st.text(alphabet="ab1 .,()=\n", max_size=40)


@settings(max_examples=200, deadline=None)
@given(LINE, LINE)
def test_touches_turn_one_text_into_the_other(before, after):
    made, at = "", 0
    for touch in token_changes(before, after):
        made += before[at : touch.start] + after[touch.new_start : touch.new_end]
        at = touch.end
    made += before[at:]
    assert [token.text for token in tokens(made)] == [token.text for token in tokens(after)]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(LINE, LINE), max_size=4))
def test_any_edits_can_be_learned_from(edits):
    for rule in rules([Edit("a.py", 0, before, after) for before, after in edits]):
        assert rule.count >= 1
        assert 0.0 <= rule.changed <= 1.0
