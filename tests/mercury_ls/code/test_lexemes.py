from mercury_ls.code.edits import TextEdit
from mercury_ls.code.lexemes import minimal


def test_difference_is_of_whole_words_and_operators():
    assert minimal("x = read(a)\n", "x = reads(a)\n") == TextEdit(4, 8, "reads")
    assert minimal("if a < b:\n", "if a <= b:\n") == TextEdit(5, 6, "<=")
