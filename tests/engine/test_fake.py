import re
from pathlib import Path

from mercury_engine.api import Gap, Members, Region, Regions, Snippet
from mercury_engine.fake import MASK, PASSES, FakeEngine
from tests.cases import each_case

AREA = "def area(width, height):\n    return width * height\n\ndef volume(width, height, depth):\n    $0\n"


def gap(text, **fields):
    """`$0` is the cursor."""
    before, _, after = text.partition("$0")
    return Gap(session="s", path="shapes.py", language="python", before=before, after=after, **fields)


def final(engine, asked):
    *_, last = engine.fill(asked)
    assert last.final
    return last


def check(text, expected, **fields):
    filled = final(FakeEngine(), gap(text, **fields))
    assert filled.text == expected
    assert filled.complete


@each_case(Path(__file__).with_name("copied.txt"))
def test_answer_is_copied(case):
    before, missing, after = re.split("[«»]", case.drawn)
    check(f"{before}$0{after}", missing, block=case.key == "block")


def test_snippets_are_read_too():
    check("socket.set$0", "timeout(3)", snippets=(Snippet("net.py", "socket.settimeout(3)\n"),))


def test_answer_is_empty_and_complete_where_there_is_nothing_to_copy():
    filled = final(FakeEngine(), gap("import $0"))
    assert (filled.text, filled.complete) == ("", True)
    assert filled.p_accept < 0.1


def test_behind_a_dot_only_names_that_exist_are_written():
    written = "box.lid()\nbox.wall()\n"
    members = (Members("other", ("lid",)), Members("", ("lift", "wall")))
    check(written + "box.$0", "wall()", members=members)
    check(written + "box.li$0", "d()")
    check(written + "box.li$0", "ft", members=members)


def test_longer_matches_are_more_likely_to_be_accepted():
    short = final(FakeEngine(), gap("abc = one\nx\nabc$0"))
    long = final(FakeEngine(), gap("abc_of_something_long = one\nx\nabc_of_something_long$0"))
    assert 0.1 < short.p_accept < long.p_accept < 1


def test_seeds_give_different_alternatives():
    text = "print(alpha)\nprint(beta)\nprint($0"
    texts = [final(FakeEngine(), gap(text, seed=seed)).text for seed in range(3)]
    assert texts == ["beta)", "alpha)", "beta)"]


def test_answer_over_budget_is_cut_and_not_complete():
    filled = final(FakeEngine(), gap("sum = a + b + c\nsum = $0", most_tokens=3))
    assert (filled.text, filled.complete) == ("a +", False)


def test_drafts_are_masked_wrong_and_revised_but_the_final_is_not():
    drafts = list(FakeEngine(answers=lambda before: "one two three four five six").fill(gap("$0")))
    shown = [draft.text for draft in drafts]
    assert len(shown) == PASSES["low"]
    assert shown[-1] == "one two three four five six"
    assert MASK in shown[0]
    assert MASK not in shown[-1]
    assert shown[0].split()[0] == "two"
    assert [draft.final for draft in drafts] == [False, False, True]


def test_tokens_have_a_confidence_in_every_draft():
    for draft in FakeEngine(answers=lambda before: "a = f(b)\n    c").fill(gap("$0", effort="high")):
        assert len(draft.confidence) == 10


def test_effort_is_the_number_of_drafts():
    assert {effort: len(list(FakeEngine().fill(gap(AREA, effort=effort)))) for effort in PASSES} == PASSES


def test_script_is_chosen_by_nearest_marker_before_gap():
    engine = FakeEngine(answers={"# one": "1", "# two": "2"}, passes=1)
    assert final(engine, gap("# one\n# two\n$0\n# one")).text == "2"
    assert final(engine, gap("nothing$0")).p_accept < 0.1


def test_pause_sees_every_forward_and_the_counters_see_what_is_open():
    steps = []
    engine = FakeEngine(passes=4, pause=steps.append)
    drafts = engine.fill(gap(AREA))
    next(drafts)
    next(drafts)
    assert (steps, engine.forwards, engine.open, engine.fills) == ([1, 2], 2, 1, 1)
    drafts.close()
    warm = engine.warm(gap(AREA))
    next(warm)
    assert (engine.open, engine.warms) == (1, 1)
    warm.close()
    assert engine.open == 0


def test_region_is_rewritten_by_script():
    asked = Regions(session="s", regions=(Region("shapes.py", "python", "size = 1\nprint(size)\n"),), cursor=4)

    def rewritten(answers):
        return final_rewrite(FakeEngine(answers), asked)

    assert rewritten({"print(size)": "show(size)"}).text == "size = 1\nshow(size)\n"
    assert rewritten(str.upper).text == "SIZE = 1\nPRINT(SIZE)\n"
    assert rewritten({"other": "text"}).p_accept < 0.1


def final_rewrite(engine, asked):
    *_, last = engine.rewrite(asked)
    return last.regions[0]


def test_watchers_see_masks_wrong_tokens_and_how_they_are_revised():
    copied = "def a(x):\n    if x:\n        return one(x)\n    return two(x)\n\ndef c(x):$0"
    asked = gap(copied, block=True, effort="high", slots=True)
    frames = [draft.slots for draft in FakeEngine().fill(asked)]
    first, last = frames[0], frames[-1]
    assert any(slot.text == "" and not slot.settled for slot in first)
    assert all(slot.settled for slot in last)
    assert "".join(slot.text for slot in last) == final(FakeEngine(), asked).text
    for at, slot in enumerate(last):
        held = {frame[at].text for frame in frames} - {""}
        assert slot.revised == (len(held) > 1)
    assert any(slot.revised for slot in last)


def test_watching_is_off_unless_asked_for():
    assert all(not draft.slots for draft in FakeEngine().fill(gap(AREA)))
