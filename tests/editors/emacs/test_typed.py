"""Ghost text in a real Emacs while somebody types: seen on the screen, taken with a key, left alone by other keys."""

import pytest

from tests.editors.documented import blocks
from tests.editors.scenes import SHOP

pytestmark = [pytest.mark.editor, pytest.mark.slow]

WAYS = {"eglot": 0, "lsp-mode": 1}
TYPED = SHOP.typed + "em"
"""Emacs previews what at least three letters are typed of."""


@pytest.fixture(params=WAYS)
def fresh(request, emacs, environment, tmp_path):
    """An Emacs as the README says, with the cursor at the end of the scene."""
    from tests.editors.emacs.emacs import Emacs

    configuration = blocks("emacs", "elisp")[WAYS[request.param]]
    made = Emacs(emacs, environment, tmp_path, configuration, SHOP.text)
    made.keys("\x1b>")
    made.until(lambda: made.screen.cursor.x == 4, "the end of the file")
    yield made
    made.close()


@pytest.fixture
def editor(fresh):
    """One in which the scene was typed and that shows how it could go on."""
    fresh.type(TYPED)
    fresh.suggested()
    return fresh


def test_tab_inserts_exactly_what_was_shown(editor, copies):
    shown = editor.line
    assert shown.startswith(f"    {TYPED}")
    assert not copies or shown == SHOP.whole.splitlines()[-1]
    editor.keys("\t")
    assert editor.saved() == SHOP.text.removesuffix("    ") + shown + "\n"


def test_tab_indents_where_nothing_is_shown(fresh):
    fresh.keys("\x01\x0b")
    fresh.until(lambda: fresh.screen.cursor.x == 0, "an empty line")
    fresh.keys("\t")
    fresh.until(lambda: fresh.screen.cursor.x == 4, "the indentation")
    fresh.type("1")
    assert fresh.saved() == f"{SHOP.text}1\n"


@pytest.mark.parametrize("fresh", ["lsp-mode"], indirect=True)
def test_killed_server_leaves_text_alone_and_is_restarted_on_command(editor):
    editor.kill_server()
    editor.until(lambda: "(y or n)" in editor.lines[-1], "the question")
    editor.keys("y")
    editor.ready(servers=2)
    editor.keys("\x7f")
    editor.type("m")
    shown = editor.suggested()
    editor.keys("\t")
    assert editor.saved() == SHOP.text.removesuffix("    ") + shown + "\n"
