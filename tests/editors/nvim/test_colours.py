"""The colours of what the plugin draws: seen in every terminal, and whoever has others keeps them."""

import pytest

pytestmark = [pytest.mark.editor, pytest.mark.slow]

SCHEMES = ["default", "habamax", "blue", "quiet"]


def colour(editor, group: str) -> dict:
    return editor.lua("return vim.api.nvim_get_hl(0, { name = ..., link = false })", group)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_ghost_text_is_dim_and_what_goes_is_struck_through_in_every_terminal(bare, scheme):
    bare.command(f"colorscheme {scheme}")
    assert "ctermfg" in colour(bare, "MercuryGhost")
    deleted = colour(bare, "MercuryDelete")
    assert deleted["strikethrough"]
    assert deleted["cterm"]["strikethrough"]


@pytest.mark.parametrize("own", ["highlight MercuryGhost ctermfg=3", "highlight! link MercuryGhost Error"])
def test_colours_of_users_stay(bare, own):
    bare.command(own)
    wanted = colour(bare, "MercuryGhost")
    bare.command("doautocmd ColorScheme")
    assert colour(bare, "MercuryGhost") == wanted
