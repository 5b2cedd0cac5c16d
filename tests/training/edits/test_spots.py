"""Where the past makes an edit likely: by what it changed, and never where it was made."""

import itertools

from mercury_training.edits.spots import SIGNS, WEIGHTS, PastEdit, indexed, spots

FILE = [f"value_{number} = {number}\n" for number in range(60)]
RENAMED = PastEdit("a.py", 10, ("total = count(items)\n",), ("total = size(items)\n",))


def lines(*special: tuple[int, str]) -> list[str]:
    text = list(FILE)
    for number, line in special:
        text[number] = line
    return text


def check(past: list[PastEdit], files: dict[str, list[str]], expected: tuple[str, int]):
    (first, *_) = spots(past, indexed(files), most=3)
    assert (first.path, first.line) == expected


def test_line_that_mentions_what_was_taken_away_comes_first():
    check([RENAMED], {"a.py": lines((10, "total = size(items)\n"), (50, "print(count(other))\n"))}, ("a.py", 50))


def test_line_like_a_changed_one_comes_first_in_another_file():
    files = {"a.py": lines((10, "total = size(items)\n")), "b.py": lines((30, "total = count(items)\n"))}
    check([RENAMED], files, ("b.py", 30))


def test_spots_are_apart_from_each_other_and_from_the_edit():
    chosen = spots([RENAMED], indexed({"a.py": lines((10, "total = size(items)\n"))}), most=6)
    numbers = sorted(spot.line for spot in chosen)
    assert len(numbers) == 6
    assert all(later - earlier > 2 for earlier, later in itertools.pairwise(numbers))
    assert 10 not in numbers


def test_signs_have_weights():
    assert [*WEIGHTS] == [*SIGNS]


def test_edit_moves_with_the_lines_above_it():
    assert RENAMED.moved("a.py", 2, 3).first == 13
    assert RENAMED.moved("a.py", 11, 3) == RENAMED
    assert RENAMED.moved("b.py", 2, 3) == RENAMED
