"""Ghost text and next edits in a real Vim: seen on the screen, taken with the documented keys, undone."""

import pytest

from tests.editors.documented import blocks
from tests.editors.scenes import BLOCK, CARRIED, RENAMED, SHAPES, SHOP, Scene

pytestmark = [pytest.mark.editor, pytest.mark.slow]

LINES = Scene(BLOCK.text, "", BLOCK.typed + BLOCK.rest)
"""coc.nvim shows no suggestion that begins with a new line."""
HALF = RENAMED.replace("return area", "return surface")
PREVIEW = "Next edit: surface"


def suggesting(vim, scene: Scene = SHOP, ask: str = ""):
    """An editor in which the scene was typed, and that shows how it could go on."""
    editor = vim(scene.text)
    editor.insert()
    editor.type(scene.typed)
    editor.keys(ask)
    editor.suggested()
    return editor


def renamed(vim):
    editor = vim(SHAPES)
    editor.keys("wcwsurface\x1b")
    editor.shows(RENAMED)
    editor.until(editor.offers_an_edit, "a next edit")
    return editor


def test_tab_inserts_exactly_what_was_shown(vim, copies):
    editor = suggesting(vim)
    shown = editor.line
    assert shown.startswith(f"    {SHOP.typed}")
    assert not copies or shown == SHOP.whole.splitlines()[-1]
    editor.keys("\t")
    editor.until(lambda: editor.screen.cursor.x == len(shown), "the cursor behind it")
    assert editor.saved() == SHOP.text.removesuffix("    ") + shown + "\n"


def test_suggestion_is_shown_on_request_in_all_its_lines(vim, copies):
    editor = suggesting(vim, LINES, ask="\x0c")
    start = editor.screen.cursor.y
    shown = [editor.line, *editor.lines[start + 1 : editor.lines.index("~", start)]]
    assert not copies or "\n".join(shown) == BLOCK.whole[BLOCK.whole.rindex("    with") :]
    editor.keys("\t")
    editor.until(lambda: editor.screen.cursor.y == start + len(shown) - 1, "the cursor behind it")
    assert editor.saved() == BLOCK.text.removesuffix("    ") + "\n".join(shown) + "\n"


def test_documented_settings_reach_server(vim, tmp_path):
    (settings,) = blocks("vim", "json")
    (tmp_path / "coc-settings.json").write_text(settings, encoding="utf-8")
    editor = vim(BLOCK.text)
    editor.insert()
    editor.type(LINES.typed)
    editor.keys("\x0c")
    editor.suggested()
    assert editor.lines[editor.screen.cursor.y + 1] == "~"


def test_tab_indents_where_nothing_is_shown(vim):
    editor = vim(SHOP.text)
    editor.keys("Go")
    editor.until(lambda: "INSERT" in editor.lines[-1], "insert mode")
    editor.keys("\t")
    editor.until(lambda: editor.screen.cursor.x == 8, "the indentation")


def test_tab_jumps_to_each_place_of_a_next_edit_and_makes_it(vim):
    editor = renamed(vim)
    editor.keys("\t")
    editor.until(lambda: PREVIEW in editor.line, "what the edit does")
    editor.keys("\t")
    editor.shows(HALF)
    editor.until(editor.offers_an_edit, "the other place")
    editor.keys("\t")
    editor.until(lambda: PREVIEW in editor.line, "what the edit does there")
    editor.keys("\t")
    editor.shows(CARRIED)
    assert editor.saved() == CARRIED


def test_code_action_makes_all_places_one_undo_step(vim):
    editor = renamed(vim)
    editor.keys("\\m")
    editor.until(lambda: "mercury: rename" in editor.told(), "the code action")
    editor.settle()
    editor.keys("\r")
    editor.shows(CARRIED)
    editor.keys("u")
    editor.shows(RENAMED)


def test_killed_server_is_started_again(vim):
    editor = suggesting(vim)
    editor.kill_server()
    editor.ready(servers=2)
    editor.keys("e")
    editor.suggested()
    assert editor.saved() == SHOP.before + "e\n"
