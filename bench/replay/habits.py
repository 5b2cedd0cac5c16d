"""What each editor requests and when: frozen descriptions, each with its source."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace


class Habits(Struct, frozen=True, kw_only=True):
    """Changes are sent together, at most every `changes_ms` and before each request. Ghost text is requested
    `inline_ms` after the last keystroke; the next key, or the next request, cancels the previous one.

    A `modal` editor is typed into in insert mode, which is left before moving elsewhere, and requests next edits on
    leaving it and after changes in normal mode; any other does so after each change. It does so `next_edit_ms`
    later, or `next_edit_word_ms` after a letter. A change cancels previous and pending requests; for a client that
    `insists` only typing cancels, and only requests already sent. One that is told when an answer `grows` asks again.
    """

    name: str
    source: str
    changes_ms: float
    inline_ms: float
    cancels: Literal["never", "key", "request"]
    modal: bool
    next_edit: Literal["mercury/nextEdit", "textDocument/copilotInlineEdit"]
    next_edit_ms: float
    next_edit_word_ms: float
    insists: bool = False
    grows: bool = False


NEOVIM = Habits(
    name="neovim-0.12",
    source="bench/wire/neovim-0.12.jsonl, and next edits from editors/nvim/lua/mercury",
    changes_ms=150,
    inline_ms=200,
    cancels="never",
    modal=True,
    next_edit="mercury/nextEdit",
    next_edit_ms=100,
    next_edit_word_ms=100,
)
HABITS = (
    NEOVIM,
    replace(
        NEOVIM,
        name="neovim-plugin",
        source="bench/wire/neovim-0.12-plugin.jsonl, and cancels and next edits from editors/nvim/lua/mercury",
        inline_ms=25,
        cancels="request",
        grows=True,
    ),
    replace(
        NEOVIM,
        name="sidekick",
        source="bench/wire/sidekick.jsonl; ghost text is Neovim's own",
        next_edit="textDocument/copilotInlineEdit",
        insists=True,
    ),
    Habits(
        name="vscode",
        source="bench/wire/vscode.jsonl",
        changes_ms=0,
        inline_ms=50,
        cancels="key",
        modal=False,
        next_edit="mercury/nextEdit",
        next_edit_ms=100,
        next_edit_word_ms=400,
        grows=True,
    ),
)
CLIENTS = {each.name: each for each in HABITS}
