"""What `mercury-ls editor` prints is what the pages say, with the folder that is there."""

import tomllib
from pathlib import Path
from textwrap import dedent

import pytest

from mercury_ls import editor
from mercury_ls.cli import main

PAGES = Path(__file__).parents[2] / "editors"


def told(capsys, *arguments) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["editor", *arguments])
    return ended.value.code, *capsys.readouterr()


def test_folders_with_a_page_are_editors():
    assert editor.editors() == sorted(page.parent.name for page in PAGES.glob("*/README.md"))


@pytest.mark.parametrize("name", editor.editors())
def test_editor_gets_its_folder_and_instructions(name, capsys):
    code, output, errors = told(capsys, name)
    assert (code, errors) == (0, "")
    first, _, rest = output.partition("\n\n")
    assert first == str(PAGES / name)
    assert rest.strip()
    assert "```" not in output
    assert "/path/to" not in output


def test_neovims_lines_name_the_folder(capsys):
    _, output, _ = told(capsys, "nvim")
    assert f'    vim.opt.runtimepath:append("{PAGES / "nvim"}")\n    require("mercury").setup' in output


def test_configuration_can_be_pasted(capsys):
    _, output, _ = told(capsys, "helix")
    assert tomllib.loads(dedent("\n".join(line for line in output.splitlines() if line.startswith("    ") or not line)))


@pytest.mark.parametrize("built", [True, False])
def test_missing_vs_code_extension_is_reported(built, tmp_path, monkeypatch, capsys):
    page = tmp_path / "vscode/README.md"
    page.parent.mkdir()
    page.write_text((PAGES / "vscode/README.md").read_text(encoding="utf-8"), encoding="utf-8")
    if built:
        (page.parent / "dist").mkdir()
        (page.parent / "dist/mercury-ls.vsix").touch()
    monkeypatch.setattr(editor, "HOMES", (tmp_path,))
    _, output, _ = told(capsys, "vscode")
    assert f"    code --install-extension {tmp_path / 'vscode/dist/mercury-ls.vsix'}" in output
    assert ("is not there: run `make vscode`" in output) is not built


def test_without_a_name_all_are_listed(capsys):
    assert told(capsys) == (0, "".join(f"{name}\n" for name in editor.editors()), "")


@pytest.mark.parametrize("name", ["notepad", "../nvim", ""])
def test_another_editor_is_told_what_any_client_does(name, capsys):
    code, output, errors = told(capsys, name)
    assert (code, output) == (2, "")
    assert "mercury-ls --stdio" in errors
    assert "nvim" in errors
