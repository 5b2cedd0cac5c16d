"""Ghost text in a real Emacs while somebody types: seen on the screen, taken with a key, left alone by other keys."""

import pytest

from tests.editors.documented import blocks
from tests.editors.scenes import SHOP

pytestmark = [pytest.mark.editor, pytest.mark.slow]

WAYS = {"eglot": 0, "lsp-mode": 1}
TYPED = SHOP.typed + "em"


@pytest.fixture(params=WAYS)
def editor(request, emacs, environment, tmp_path):
    """An Emacs in which the scene was typed and that shows how it could go on."""
    from tests.editors.emacs.emacs import Emacs

    configuration = blocks("emacs", "elisp")[WAYS[request.param]]
    made = Emacs(emacs, environment, tmp_path, configuration, SHOP.text)
    made.keys("\x1b>")
    made.until(lambda: made.screen.cursor.x == 4, "the end of the file")
    made.type(TYPED)
    made.until(lambda: len(made.line) > len(f"    {TYPED}"), "ghost text")
    yield made
    made.close()


def test_tab_inserts_exactly_what_was_shown(editor, copies):
    shown = editor.line
    assert shown.startswith(f"    {TYPED}")
    assert not copies or shown == SHOP.whole.splitlines()[-1]
    editor.keys("\t")
    assert editor.saved() == SHOP.text.removesuffix("    ") + shown + "\n"


def test_nothing_is_inserted_that_was_not_taken(editor):
    editor.type(" + 1)")
    assert editor.saved() == f"{SHOP.text}{TYPED} + 1)\n"
