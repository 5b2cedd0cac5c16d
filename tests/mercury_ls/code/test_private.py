"""What is shown of a text that holds a private key, and what others may say of it."""

from mercury_ls.code.documents import Document
from mercury_ls.code.private import hides, shown, without_quotes
from tests.private_keys import BODY, KEY, LAST, SHOWN

CODE = "def load():\n    return 1\n"


def opened(text: str):
    return Document("file:///a.py", "/a.py", "python", 1, text).snapshot()


def test_key_is_hidden_and_code_around_it_is_not():
    snapshot = opened(CODE + KEY + CODE)
    assert shown(snapshot) == CODE + SHOWN + CODE
    assert hides(snapshot)
    assert hides(snapshot, snapshot.text.index(LAST), len(snapshot.text))
    assert not hides(snapshot, 0, len(CODE))


def test_text_without_key_is_shown_as_it_is():
    snapshot = opened(CODE)
    assert shown(snapshot) is snapshot.text
    assert not hides(snapshot)


def test_key_is_not_quoted_either():
    snapshot = opened(CODE + KEY)
    assert without_quotes(snapshot, f"{BODY[1][3:20]}: unknown, {LAST} too; load is fine") == (
        f"{'*' * 17}: unknown, **** too; load is fine"
    )
    assert without_quotes(opened(CODE), BODY[0]) == BODY[0]
