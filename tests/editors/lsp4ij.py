"""A client that does with inline completions what LSP4IJ 0.20.2 does, against a server in this process.

It asks when typing pauses, always says that it was not invoked, draws ghost text behind whatever a range replaces
behind the cursor, inserts it there when it is accepted, and tells the server only that the text has changed.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tests.mercury_ls.lsp.test_server import Client

PYCHARM = {"name": "PyCharm 2026.2.1", "version": "2026.2.1 (build PY-262.5104.32)"}
CAPABILITIES = {"textDocument": {"inlineCompletion": {"dynamicRegistration": True}}}


class Ghost(NamedTuple):
    """What is drawn: the text of the file that is skipped, and behind it what would be inserted."""

    skipped: str
    text: str


class Lsp4ij:
    """One file on one line of which somebody types."""

    def __init__(self, client: "Client"):
        self.client = client
        self.ghost: Ghost | None = None
        self.version = 1

    async def open(self, text: str, cursor: int, info: dict[str, str] = PYCHARM, **suggest: Any) -> None:
        options = {"suggest": {"minimum_probability": 0, **suggest}}
        await self.client.initialize(CAPABILITIES, options, clientInfo=info)
        self.text, self.cursor = text, cursor
        self.uri = self.client.open("shop.py", text)

    def type(self, text: str) -> None:
        """Every key starts the pause again, so that nothing is asked before the last of them."""
        for character in text:
            self.insert(character)

    def insert(self, text: str) -> None:
        self.ghost = None
        place = self.position(self.cursor)
        change = {"range": {"start": place, "end": place}, "text": text}
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)
        self.version += 1
        changed = {"textDocument": {"uri": self.uri, "version": self.version}, "contentChanges": [change]}
        self.client.send({"method": "textDocument/didChange", "params": changed})

    async def pause(self) -> Ghost | None:
        """Of 300 ms, after which the suggestion at the cursor is asked for and drawn."""
        params = {
            "textDocument": {"uri": self.uri},
            "position": self.position(self.cursor),
            "context": {"triggerKind": 2},
        }
        reply = await self.client.request("textDocument/inlineCompletion", params)
        ghosts = [self.drawn(item) for item in reply["result"]["items"] if item["insertText"].strip()]
        self.ghost = ghosts[0] if ghosts else None
        return self.ghost

    def drawn(self, item: dict[str, Any]) -> Ghost:
        start, end = (self.offset(item["range"][name]) for name in ("start", "end"))
        typed = self.cursor - start if start < self.cursor <= end else 0
        text = item["insertText"]
        return Ghost(self.text[self.cursor : end], text[typed:] if typed < len(text) else text)

    def accept(self) -> None:
        assert self.ghost is not None
        self.cursor += len(self.ghost.skipped)
        self.insert(self.ghost.text)

    def position(self, offset: int) -> dict[str, int]:
        before = self.text[:offset]
        return {"line": before.count("\n"), "character": len(before.rpartition("\n")[2])}

    def offset(self, position: dict[str, int]) -> int:
        lines = self.text.splitlines(keepends=True)
        return sum(map(len, lines[: position["line"]])) + position["character"]
