"""Suggestions and next edits in a real Helix: seen in the menu, taken, undone, and what a killed server leaves."""

import pytest

from tests.editors.scenes import BLOCK, CARRIED, RENAMED, SHAPES, SHOP, Scene

pytestmark = [pytest.mark.editor, pytest.mark.slow]


BEFORE = "    return tax("
"""What stands before the word that an entry begins with."""


def suggesting(helix, scene: Scene = SHOP, ask: str = ""):
    """An editor in which the scene was typed, and that shows a suggestion for it."""
    editor = helix(scene.text)
    editor.insert()
    editor.type(scene.typed)
    editor.keys(ask)
    editor.suggested()
    return editor


def take(editor) -> None:
    editor.keys("\r")
    editor.until(lambda: not editor.entry, "the menu to close")
    editor.normal()


def test_suggestion_is_a_menu_entry(helix, copies):
    editor = suggesting(helix)
    assert not copies or editor.entry == "it" + SHOP.rest.removesuffix(")")


def test_accepting_inserts_exactly_what_was_shown(helix, copies):
    editor = suggesting(helix)
    shown = editor.entry
    editor.keys("\t")
    editor.until(lambda: editor.line.startswith(BEFORE + shown), "the preview")
    take(editor)
    saved = editor.saved()
    assert saved == SHOP.text.removesuffix("    ") + f"{BEFORE}{shown})\n"
    assert not copies or saved == SHOP.whole + "\n"


def test_several_lines_are_shown_whole_and_inserted_as_shown(helix, copies):
    editor = suggesting(helix, BLOCK, ask="\x18")
    start = editor.lines.index("def again(path):")
    before = editor.screen.cursor.y
    editor.keys("\t")
    editor.until(lambda: editor.screen.cursor.y > before, "the preview")
    shown = editor.lines[start : editor.screen.cursor.y + 1]
    take(editor)
    saved = editor.saved()
    assert saved == BLOCK.text[: BLOCK.text.index("def again")] + "\n".join(shown) + "\n"
    assert not copies or saved == BLOCK.whole + "\n"


def test_next_edit_is_a_code_action_over_several_places_and_one_undo_step(helix):
    editor = helix(SHAPES)
    editor.keys("ggwwcsurface")
    editor.normal()
    editor.until(lambda: editor.lines[:8] == RENAMED.splitlines()[:8], "the rename")
    editor.keys(" a")
    editor.until(lambda: "mercury: rename" in "".join(editor.lines), "the code action")
    editor.keys("\r")
    editor.until(lambda: editor.lines[:9] == CARRIED.splitlines(), "the edits")
    editor.keys("u")
    editor.until(lambda: editor.lines[:9] == RENAMED.splitlines(), "the text before the edits")
    editor.keys("U")
    editor.until(lambda: editor.lines[:9] == CARRIED.splitlines(), "the edits again")
    assert editor.saved() == CARRIED


def test_killed_server_leaves_text_alone_and_can_be_restarted(helix):
    editor = suggesting(helix)
    editor.kill_server()
    editor.until(lambda: "exited: mercury" in editor.lines[-1], "the notice")
    editor.normal()
    editor.command("lsp-restart mercury")
    editor.ready(servers=2)
    editor.settle()
    editor.keys("i\x18")
    editor.suggested()
    assert editor.line == f"{BEFORE}it)"
