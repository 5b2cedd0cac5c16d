"""A rename that the real server carries on, in real Neovims: shown, made whole and in parts, refused, undone."""

import pytest

from tests.editors.nvim.test_ghost import kill_server, replaced, status
from tests.editors.nvim.test_next_edit import below, reach, shows
from tests.editors.scenes import CARRIED, RENAMED, SHAPES

pytestmark = [pytest.mark.editor, pytest.mark.slow, pytest.mark.any_model]

FIRST = [["-", 5, "area"], ["+", 5, "surface"]]
SECOND = [["-", 8, "area"], ["+", 8, "surface"]]
AWAY = ["?", 0, "  ↓ next edit: line 6 (<Tab>) · 2 here"]


@pytest.fixture
def shapes(served):
    """An editor with our keys for next edits."""
    served.start()
    for key, name in {"<Tab>": "next-edit", "g<Tab>": "next-edit-one", "<C-x>": "dismiss"}.items():
        served.lua("vim.keymap.set('n', ...)", key, f"<Plug>(mercury-{name})")
    served.open(SHAPES)
    served.ready()
    return served


@pytest.fixture
def renamed(shapes):
    """One that shows how a rename goes on."""
    rename(shapes)
    shows(shapes, *FIRST, *SECOND, AWAY)
    return shapes


def rename(editor) -> None:
    editor.keys("1G0wcwsurface<Esc>")
    reach(editor, RENAMED)


def carry(editor) -> None:
    """The first key goes to the nearest place, the second one makes all edits."""
    editor.keys("<Tab>")
    editor.until(lambda: editor.cursor[0] == 6, "the jump")
    reach(editor, RENAMED)
    editor.keys("<Tab>")
    reach(editor, CARRIED)


def test_places_are_all_changed_at_once_and_undone_in_one_step(renamed):
    carry(renamed)
    renamed.keys("u")
    reach(renamed, RENAMED)


def test_places_are_made_one_by_one(renamed):
    renamed.keys("g<Tab>")
    renamed.until(lambda: renamed.cursor[0] == 6, "the jump")
    renamed.keys("g<Tab>")
    reach(renamed, CARRIED.replace("print(surface", "print(area"))
    shows(renamed, *SECOND, below(9, at=5))
    renamed.keys("u")
    reach(renamed, RENAMED)


def test_refused_it_goes_and_the_server_hears_of_it(renamed):
    renamed.keys("<C-x>")
    shows(renamed)
    reach(renamed, RENAMED)
    renamed.until(lambda: status(renamed)["rejected"] == 1, "the server to count it")


def test_calls_that_need_an_argument_are_named_and_gone_to(shapes):
    note = "  needs an argument for `unit`: shop.py:6, shop.py:9"
    shapes.keys("1Gf)i, unit<Esc>")
    shows(shapes, ["?", 0, "  ↓ look here: line 6 (<Tab>)"], ["+", 0, note])
    shapes.keys("<Tab>")
    shapes.until(lambda: shapes.cursor[0] == 6, "the jump")
    reach(shapes, SHAPES.replace("height)", "height, unit)", 1))


def test_another_server_carries_on_after_a_kill(shapes):
    replaced(shapes, lambda: kill_server(shapes))
    rename(shapes)
    shows(shapes, *FIRST, *SECOND, AWAY)
    carry(shapes)


def test_killed_server_takes_its_offer_off_screen(renamed):
    replaced(renamed, lambda: kill_server(renamed))
    shows(renamed)
    reach(renamed, RENAMED)


@pytest.mark.parametrize("model", ["fake"], indirect=True)
def test_file_that_has_changed_on_the_disk_since_is_read_again(shapes):
    user = "from shapes import area\n\nprint(area(1, 2) + area(3, 4))\n"
    path = shapes.folder / "user.py"
    path.write_text(user, encoding="utf-8")
    shapes.open("def area(w, h):\n    return w * h\n", "shapes.py")
    shapes.attached()
    shapes.keys("1G0wcwsurface<Esc>")
    shows(shapes, ["?", 0, "  → next edit: user.py:1 (<Tab>) · 3 in user.py"])
    path.write_text("import os\n" + user, encoding="utf-8")
    shapes.keys("<Tab>")
    shapes.says("next edit not applied: user.py has changed since")
    shows(shapes, ["?", 0, "  → next edit: user.py:2 (<Tab>) · 3 in user.py"])
    shapes.keys("<Tab>")
    reach(shapes, "import os\n" + user)
    shapes.keys("<Tab>")
    reach(shapes, "import os\n" + user.replace("area", "surface"))
