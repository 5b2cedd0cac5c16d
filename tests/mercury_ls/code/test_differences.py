"""What differs between two texts."""

from mercury_ls.code.differences import Touch, alike, on_the_way, paired, touches_of

POINTS = "(1, 2), " * 80
OTHERS = "(2, 1), " * 80


def test_what_stays_is_not_touched():
    assert touches_of("f(a, b)\n", "f(a, c)\n") == [Touch(5, 6, 5, 6)]


def test_what_repeats_itself_too_often_to_be_compared_is_touched_as_a_whole():
    assert touches_of(POINTS, OTHERS) == [Touch(0, len(POINTS), 0, len(OTHERS))]
    assert not alike(POINTS, OTHERS)
    assert paired([POINTS, "end\n"], [OTHERS, "end\n"]) == []


def test_the_way_to_a_text_is_known_by_its_tokens():
    assert on_the_way("a b c", "x b c", "x b y")
    assert not on_the_way("a b c", "z b c", "x b y")
    assert on_the_way(POINTS, POINTS + "x", POINTS + "x y")
