"""A rename that the real server carries on, in an editor as people have it."""

import pytest

from tests.editors.scenes import CARRIED, RENAMED, SHAPES

pytestmark = [pytest.mark.editor, pytest.mark.slow]


def struck(window) -> list[str]:
    """What is drawn, without the note that these windows do not index the project."""
    return sorted(mark for mark in window.marks if "more files may use this name" not in mark)


@pytest.fixture
def window(real):
    """The user has renamed a function where it is defined; the server knows of nothing that was before."""
    real.run("mercury-ls.restart")
    real.ready()
    real.open(SHAPES, cursor="def area")
    real.run("deleteWordLeft")
    real.type("surface")
    assert real.text == RENAMED
    real.until(lambda: struck(real) == ["area", "area", "surface", "surface"], "both calls to be struck")
    name = real.name
    yield real
    real.run("workbench.action.revertAndCloseActiveEditor")
    (real.folder / name).unlink()  # the next rename is of the same name


def test_rename_is_made_as_shown_and_undone_at_once(window):
    window.press("Control+Alt+.")
    window.until(lambda: window.cursor[0] == SHAPES[: SHAPES.index("return area")].count("\n"), "the jump")
    assert window.text == RENAMED
    window.press("Control+Alt+.")
    window.has(CARRIED)
    window.press("Control+z")
    window.has(RENAMED)


def test_single_call_is_accepted_and_the_other_stays(window):
    window.press("Control+Alt+.")
    window.until(lambda: window.cursor[0] > 0, "the jump")
    window.run("mercury-ls.nextEditOne")
    window.has(RENAMED.replace("return area", "return surface"))
    window.until(lambda: struck(window) == ["area", "surface"], "the other call")
    window.run("mercury-ls.nextEdit")
    window.run("mercury-ls.nextEdit")
    window.has(CARRIED)


def test_refused_it_goes(window):
    window.run("editor.action.inlineSuggest.hide")
    window.press("Escape")
    window.until(lambda: not window.marks, "it to go")
    assert window.text == RENAMED
