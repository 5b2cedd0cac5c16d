"""Several projects in one editor: one server has them all, from the first key on."""

import pytest

from tests.editors.scenes import CARRIED, SHAPES

pytestmark = [pytest.mark.editor, pytest.mark.slow, pytest.mark.any_version]

CLIENTS = "return vim.tbl_map(function(client) return client.id end, vim.lsp.get_clients({ name = 'mercury' }))"
RENAME = "<Esc>:1s/area/surface/<CR>"
"""In `SHAPES`: what the other uses are offered for."""
FOLDERS = "return vim.tbl_map(function(folder) return folder.name end, vim.lsp.get_clients()[1].workspace_folders)"


def project(editor, name: str, settings: str = "") -> str:
    folder = editor.folder / name
    (folder / ".git").mkdir(parents=True)
    if settings:
        (folder / ".mercury.toml").write_text(settings, encoding="utf-8")
    return f"{name}/shapes.py"


def rename(editor) -> None:
    editor.keys(RENAME)
    editor.until(lambda: "surface" in editor.text, "the rename")


def is_carried_on(editor) -> None:
    """The first key goes there, the second one makes the edit."""
    editor.until(lambda: editor.lua("return require('mercury.nextedit').visible()"), "a next edit")
    editor.command("Mercury next accept")
    editor.command("Mercury next accept")
    assert editor.text.strip() == CARRIED.strip()


@pytest.mark.parametrize("model", ["fake"], indirect=True)
def test_fifteen_projects_are_one_process(served):
    served.start()
    for number in range(15):
        served.open(SHAPES, project(served, f"project{number}"))
        served.attached()
    assert len(served.lua(CLIENTS)) == 1
    assert {str(served.folder / f"project{number}") for number in range(15)} <= {*served.lua(FOLDERS)}
    rename(served)
    is_carried_on(served)


@pytest.mark.parametrize("model", ["fake"], indirect=True)
def test_edit_at_once_in_another_project_is_known(served):
    served.start()
    served.open(SHAPES, project(served, "first"))
    served.ready()
    served.open(SHAPES, project(served, "second"))
    rename(served)
    is_carried_on(served)


@pytest.mark.parametrize("model", ["fake"], indirect=True)
def test_edit_before_the_first_server_is_there_is_known(served):
    served.open(SHAPES)
    rename(served)
    served.start()
    is_carried_on(served)


@pytest.mark.parametrize("model", ["fake"], indirect=True)
def test_projects_that_are_opened_while_the_server_starts_are_in_it(served):
    names = [project(served, f"project{number}") for number in range(3)]
    for name in names:
        (served.folder / name).write_text(SHAPES, encoding="utf-8")
    served.start()
    edit = "for _, name in ipairs(...) do vim.cmd.edit(name); vim.cmd('filetype detect') end"
    served.lua(edit, [str(served.folder / name) for name in names])
    served.ready()
    assert len(served.lua(CLIENTS)) == 1
    assert {str((served.folder / name).parent) for name in names} <= {*served.lua(FOLDERS)}
    rename(served)
    is_carried_on(served)


@pytest.mark.parametrize("model", ["fake"], indirect=True)
def test_project_with_its_own_settings_has_its_own_server(served):
    served.start()
    served.open(SHAPES, project(served, "plain"))
    served.ready()
    served.open(SHAPES, project(served, "quiet", "[suggest]\nenabled = false\n"))
    served.until(lambda: len(served.lua(CLIENTS)) == 2, "the second server")
    served.open(SHAPES, project(served, "other"))
    served.attached()
    assert len(served.lua(CLIENTS)) == 2
    rename(served)
    is_carried_on(served)


@pytest.mark.parametrize("model", ["fake"], indirect=True)
def test_place_in_a_closed_file_is_gone_to(served):
    name = project(served, "shop")
    bill = served.folder / "shop" / "bill.py"
    bill.write_text("from shapes import area\n\nprint(area(1, 2))\n", encoding="utf-8")
    served.start()
    served.open("RATE = 2\n" + SHAPES.partition("\n\n\n")[0], name)
    served.ready()
    served.keys("2GdG")
    served.until(lambda: served.lua("return require('mercury.nextedit').visible()"), "a place to go to")
    served.command("Mercury next accept")
    served.until(lambda: served.lua("return vim.api.nvim_buf_get_name(0)") == str(bill), "the jump")
    assert served.cursor == [1, 19]
