"""The help is held against the code: what exists is documented, and what is documented exists."""

import re
import shutil

import pytest

from tests.editors.nvim.neovim import PLUGIN

pytestmark = [pytest.mark.editor, pytest.mark.slow]

HELP = (PLUGIN / "doc/mercury.txt").read_text(encoding="utf-8")
README = (PLUGIN / "README.md").read_text(encoding="utf-8")
TAGS = set(re.findall(r"\*(\S+)\*(?=\s|$)", HELP, re.MULTILINE))


def tags(pattern: str) -> set[str]:
    return {match[1] for tag in TAGS if (match := re.fullmatch(pattern, tag))}


def test_mappings_are_documented(bare):
    code = """
        local found = {}
        for _, mode in ipairs({ "n", "i" }) do
          for _, map in ipairs(vim.api.nvim_get_keymap(mode)) do
            found[#found + 1] = map.lhs:match("^<Plug>%(mercury%-.*%)$")
          end
        end
        return found
    """
    assert set(bare.lua(code)) == tags(r"(<Plug>\(mercury-.*\))")


def test_commands_are_documented(bare):
    documented = re.findall(r"^:Mercury (\w+)", HELP, re.MULTILINE)
    assert bare.lua("return require('mercury.command').names") == list(dict.fromkeys(documented))


def test_default_keys_are_documented(bare):
    defaults = bare.lua("return require('mercury.keys').defaults")
    documented = re.findall(r"^(insert|normal)   ((?:<\S+> ?)+)", HELP, re.MULTILINE)
    assert [(mode[0], key) for mode, keys in documented for key in keys.split()] == [(m, k) for m, k, _ in defaults]
    assert all(f"`{key}`" in README for _, key, _ in defaults)


def test_colours_and_where_they_come_from_are_documented(bare):
    documented = dict(re.findall(r"^(Mercury\w+) .*`(\w+)`", HELP, re.MULTILINE))
    assert tags(r"hl-(Mercury\w+)") == documented.keys()
    for group, source in documented.items():
        fitting = [colours(bare, source), colours(bare, "ComplHint")]
        assert colours(bare, group) in fitting


def colours(editor, group: str) -> list:
    code = "local s = vim.api.nvim_get_hl(0, { name = ..., link = false }) return { s.fg or 0, s.bg or 0 }"
    return editor.lua(code, group)


def test_options_and_their_defaults_are_documented(bare):
    documented = dict(re.findall(r"\*mercury-option-(\w+)\*\n\s+Default `(.*?)`", HELP))
    code = "local o = {}; for k, v in pairs(require('mercury.options').defaults) do o[k] = vim.inspect(v) end return o"
    assert documented == bare.lua(code)


def test_functions_are_documented(bare):
    assert set(bare.lua("return vim.tbl_keys(require('mercury'))")) == tags(r"mercury\.(\w+)\(\)")


def test_links_lead_somewhere(bare, tmp_path):
    copy = shutil.copytree(PLUGIN / "doc", tmp_path / "plugin/doc")
    bare.command(f"helptags {copy}")
    bare.command(f"set runtimepath-={PLUGIN} runtimepath+={copy.parent}")
    missing = [link for link in links() if not bare.lua("return vim.fn.getcompletion(..., 'help')", link)]
    newer = bare.lua("return vim.lsp.inline_completion ~= nil")
    assert missing == ([] if newer else ["vim.lsp.inline_completion"])


def links() -> list[str]:
    return sorted(set(re.findall(r"\|([^|\s]+)\|", HELP)))


def test_lines_fit():
    assert [line for line in HELP.splitlines() if len(line) > 80] == []
