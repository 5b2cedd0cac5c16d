"""The lines that mention what an edit changed: rare names first, declarations before uses, never the edit itself."""

from mercury_engine.mentions import Edited, changed_names, mentions

ACCOUNT = """\
def open_account(owner, limit):
    account = Account(owner, limit)
    return account


first = open_account("a", 1)
second = open_account("b", 2)
""".splitlines(keepends=True)

MODEL = """\
class Account:
    def __init__(self, owner, limit):
        self.limit = limit
""".splitlines(keepends=True)


def check(old: str, new: str, first: int, expected: list[tuple[str, int]]):
    files = {"bank.py": ACCOUNT, "model.py": MODEL}
    names = changed_names([old], [new])
    lines = mentions(names, files, Edited("bank.py", first, first + 1))
    assert [(line.path, line.line) for line in lines] == expected
    assert all(files[line.path][line.line] == line.text for line in lines)


def test_name_that_an_edit_takes_away_leads_to_its_uses():
    check("def make_account(owner):\n", "def open_account(owner):\n", 0, [("bank.py", 5), ("bank.py", 6)])


def test_other_files_come_after_the_edited_one():
    check(
        "    account = None\n", "    account = Account(owner)\n", 1, [("bank.py", 0), ("model.py", 0), ("model.py", 1)]
    )


def test_words_of_the_language_lead_nowhere():
    check("if x:\n", "while x and not y:\n", 4, [])


def test_unchanged_names_lead_nowhere():
    check("first = open_account(1)\n", "first = open_account(2)\n", 5, [])
