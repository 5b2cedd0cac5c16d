import pytest

from mercury_engine.api import Edit
from mercury_ls.code.documents import Document
from mercury_ls.next_edit.kinds import KINDS
from mercury_ls.next_edit.kinds.signatures import changed_signatures
from mercury_ls.next_edit.learn import rules
from mercury_ls.next_edit.ranking import load

LEARNED = {
    "rename": ("x = total\n", "x = amount\n"),
    "replace": ("f(retries=3)\n", "f(retries=5)\n"),
    "argument": ("get(url)\n", "get(url, timeout=5)\n"),
    "parameter": ("def get(url): ...\n", "def get(url, timeout): ...\n"),
    "clone": ("x = load(a)\n", "x = read(b, 1)\n"),
    "delete": ("    check(a)\n", ""),
    "import": ("x = 1\n", "x = fetch(1)\n"),
    "quote": ('fail("no rows were found")\n', 'fail("no lines were found")\n'),
    "align": ("a: 1\n", "a:   1\n"),
    "trim": ("x = 1  \n", "x = 1\n"),
}


@pytest.mark.parametrize("kind", LEARNED)
def test_kinds_learn_find_suppress_and_have_a_label(kind):
    edits, after = [Edit("a.py", 0, *LEARNED[kind])], LEARNED[kind][1]
    signatures = changed_signatures([Document("", "a.py", "python", 1, after).snapshot()], edits)
    (rule, *_) = [rule for rule in (*signatures, *rules(edits)) if rule.kind == kind]
    module = KINDS[kind]
    assert all(callable(getattr(module, name)) for name in ("learn", "find", "suppress", "label"))
    assert module.label(rule)


def test_kinds_are_all_ranked():
    assert load().kinds.keys() == KINDS.keys() | {"call"}
    assert KINDS.keys() == LEARNED.keys()
