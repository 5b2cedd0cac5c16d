"""What is asked for is code of the kind it is said to be."""

import random
from pathlib import Path

import pytest

from mercury_training.corpus.syntax import count_errors
from mercury_training.rows.cuts import Cut, cuts, is_copy, surroundings

SHAPES = Path(__file__).with_name("shapes.txt").read_text("utf-8").split("=== ")[1:]
FILES = {language: text for language, _, text in (shape.partition("\n") for shape in SHAPES)}
FILES["tsx"] = FILES["typescript"]
PYTHON = FILES["python"]


def many(language):
    return {cut for seed in range(30) for cut in cuts(language, FILES[language], random.Random(seed))}


@pytest.mark.parametrize("language", FILES)
def test_cuts_of_every_kind_are_found(language):
    assert {(cut.kind, cut.sub) for cut in many(language)} == {
        ("single_line", "full_line"),
        ("single_line", "line_tail"),
        ("multi_line", "block"),
        ("multi_line", "body"),
        ("random_span", "chars"),
    }


@pytest.mark.parametrize("language", FILES)
def test_cuts_are_what_they_are_called(language):
    text = FILES[language]
    for cut in many(language):
        middle, before, after = text[cut.start : cut.stop], text[: cut.start], text[cut.stop :]
        head = before.rpartition("\n")[2]
        if cut.kind == "random_span":
            continue
        assert not after.partition("\n")[0].strip() or cut.kind == "single_line", "it ends with its line"
        assert middle == middle.strip()
        assert ("\n" in middle) == (cut.kind == "multi_line")
        assert cut.sub == "line_tail" or not head.strip(), "it begins behind the indentation"
        if cut.kind == "multi_line":
            closing = {"python": "pass", "go": "", "rust": "", "typescript": "", "tsx": ""}[language]
            assert count_errors(language, before + closing + after) == 0, "whole statements, which others can replace"


@pytest.mark.parametrize("language", FILES)
def test_comments_strings_and_imports_are_not_asked_for(language):
    text = FILES[language]
    for cut in many(language):
        first = text[cut.start : cut.stop].split("\n")[0]
        assert not any(word in first for word in ("documented", "nothing in here", "little", "import "))


def test_files_that_do_not_parse_are_left_out():
    assert cuts("python", PYTHON.replace("class Shape:", "class :"), random.Random(0)) == []


def test_same_seed_cuts_the_same():
    assert cuts("python", PYTHON, random.Random(5)) == cuts("python", PYTHON, random.Random(5))


@pytest.mark.parametrize(
    ("marked", "copied"),
    [
        ("total = price * count\nother = 1\n$total = price * count$\n", True),
        ("$total = price * count$\nother = 1\n", False),
        ("a = 1\n$a = 1$\n", False),
    ],
)
def test_copy_is_long_and_stands_elsewhere(marked, copied):
    before, middle, after = marked.split("$")
    cut = Cut(len(before), len(before) + len(middle), "single_line", "full_line")
    assert is_copy(before + middle + after, cut) is copied


def test_surroundings_are_nearest_lines_of_code():
    before, middle, after = "a\nb\n\nc\nd\n  ", "e\nf", " g\n\nh\ni\nj\nk\n"
    cut = Cut(len(before), len(before) + len(middle), "multi_line", "block")
    assert surroundings(before + middle + after, cut) == "b\nc\nd\n  e\nf g\nh\ni\nj"
