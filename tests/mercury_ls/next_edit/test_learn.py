from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.api import Edit
from mercury_ls.code.differences import is_step_towards, token_changes, tokens
from mercury_ls.next_edit.learn import rules
from mercury_ls.next_edit.renamed import renamed_symbols
from tests.cases import Case, each_case


@each_case(Path(__file__).with_name("learned.txt"))
def test_rules_are_learned_from_edits(case: Case) -> None:
    """Of a diff, a blank line ends each edit; `= kind: before → after` is a rule that it teaches, and of a kind behind
    `no` there is none."""
    edits = [changed_lines(10 * number, diff) for number, diff in enumerate(case.drawn.split("\n\n"))]
    found = rules(edits)
    drawn = {f"{rule.kind}: {rule.before} → {rule.after}".rstrip() for rule in found}
    expected = {line[2:] for line in case.drawn.split("\n") if line.startswith("= ")}
    kinds = {line.removeprefix("no ") for line in expected if line.startswith("no ")}
    assert {line for line in expected if not line.startswith("no ")} <= drawn, drawn
    assert not {rule.kind for rule in found} & kinds, drawn


def changed_lines(number: int, diff: str) -> Edit:
    before, after = ("".join(f"{line[1:]}\n" for line in diff.split("\n") if line[:1] == sign) for sign in "-+")
    return Edit("a.py", number, before, after)


def test_name_in_comment_is_told_by_code():
    edits = [Edit("a.py", 1, "relased = 0\n", "released = 0\n"), Edit("a.py", 5, "# relased\n", "# released\n")]
    (rule,) = [rule for rule in rules(edits) if rule.kind == "rename"]
    assert (rule.count, rule.line, rule.age) == (2, 1, 0)


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
