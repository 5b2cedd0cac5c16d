"""What differs between two texts."""

from mercury_ls.code.differences import TokenChange, is_step_towards, pair_lines, similar, token_changes

POINTS = "(1, 2), " * 80
OTHERS = "(2, 1), " * 80


def test_unchanged_text_is_not_touched():
    assert token_changes("f(a, b)\n", "f(a, c)\n") == (TokenChange(5, 6, 5, 6),)


def test_repetitive_text_is_touched_as_a_whole():
    assert token_changes(POINTS, OTHERS) == (TokenChange(0, len(POINTS), 0, len(OTHERS)),)
    assert not similar(POINTS, OTHERS)
    assert pair_lines([POINTS, "end\n"], [OTHERS, "end\n"]) == []


def test_way_to_text_is_known_by_its_tokens():
    assert is_step_towards("a b c", "x b c", "x b y")
    assert not is_step_towards("a b c", "z b c", "x b y")
    assert is_step_towards(POINTS, POINTS + "x", POINTS + "x y")
