"""Mentions of a renamed symbol in comments and docstrings that follow it."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_ls.code.documents import Document
from mercury_ls.code.index.symbol import symbol_at
from mercury_ls.code.modules import Project
from mercury_ls.next_edit.kinds.rename.documented import documented
from mercury_ls.next_edit.kinds.rename.uses import Uses

PIECES = ["load", "`", "``", " ", ".", "_", "-", "(", ")", "=", "x", "\n", "\n>>> ", ":meth:", "~", "{@link ", "}", "'"]


def followed(documentation: str, code: str = "") -> tuple[str, list[int]]:
    text = f'def read():\n    """{documentation}"""\n{code}'
    home = Document("file:///a.py", "/a.py", "python", 1, text).snapshot()
    symbol = symbol_at("load", "read", home, text.index("read"))
    return text, [*documented(Uses("load", "read", symbol, home, home, Project()))]


@given(st.lists(st.sampled_from(PIECES), max_size=16))
@settings(max_examples=200)
def test_documentation_is_followed_by_words_alone(pieces):
    text, offsets = followed("".join(pieces))
    for at in offsets:
        line = text[text.rfind("\n", 0, at) + 1 : text.index("\n", at)]
        assert re.fullmatch(r"[^\w.]load\W", text[at - 1 : at + 5])
        assert re.search("`|{@|>>>", line) or "```" in text[:at]


@given(st.lists(st.sampled_from(PIECES), max_size=16), st.sampled_from(["x.load()", "def f(load): ...", "f(load=1)"]))
def test_documentation_is_left_where_another_has_the_name(pieces, code):
    assert followed("".join(pieces), code + "\n")[1] == []


def test_example_that_gives_the_name_to_something_else_is_left():
    assert followed("\n    >>> load: int = 3\n    >>> load + 1\n    ")[1] == []
