import re

import pytest

from mercury_ls.code.edits import TextEdit
from mercury_ls.code.lexemes import bounded, cased, minimal


@pytest.mark.parametrize("name", ["read_rows", "ReadRows", "readRows", "READ_ROWS"])
def test_a_name_is_found_in_every_way_of_writing_it(name):
    assert cased(name) == (name, "read_rows", "ReadRows", "readRows", "READ_ROWS")


@pytest.mark.parametrize(
    ("word", "inside", "outside"),
    [
        ("load", ["load", "load_all", "pre_load", "loadAll"], ["loader", "reload", "Load"]),
        ("Load", ["Load", "LoadAll", "preLoad", "preLoadAll"], ["Loader", "RELoad", "load"]),
        ("LOAD", ["LOAD", "LOAD_ALL", "PRE_LOAD"], ["LOADER", "RELOAD", "load"]),
    ],
)
def test_a_word_of_a_name_ends_where_the_next_begins(word, inside, outside):
    assert [bool(re.search(bounded(word), name)) for name in inside] == [True] * len(inside)
    assert [bool(re.search(bounded(word), name)) for name in outside] == [False] * len(outside)


def test_a_difference_is_of_whole_words_and_operators():
    assert minimal("x = read(a)\n", "x = reads(a)\n") == TextEdit(4, 8, "reads")
    assert minimal("if a < b:\n", "if a <= b:\n") == TextEdit(5, 6, "<=")
