"""The demo: the real server completes a function, then carries a rename through two files."""

import asyncio
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.harness.client import Client, running, until_ready

FILES = {
    "basket.py": """\
from dataclasses import dataclass


@dataclass
class Item:
    price: float
    weight: float
    quantity: int


def total(items: list[Item]) -> float:
    return sum(item.price * item.quantity for item in items)


""",
    "invoice.py": """\
from basket import Item, total, weight


def invoice(items: list[Item]) -> str:
    return f"{total(items):.2f} EUR, {weight(items):.1f} kg"
""",
}
TYPED = """\
def weight(items: list[Item]) -> float:
    return sum(item.weight * item.quantity for item in items)"""
"""What is written at the end of basket.py; the moment was chosen because quicksilver does well here."""

OLD_NAME, NEW_NAME = "Item", "Product"
KEY, READ = 0.04, 0.8
"""Seconds: between two keys, and for reading what the server shows."""

BOLD, GREY, TITLE, GHOST = "1", "90", "1;36", "3;90"
REMOVED, REMOVED_WORD, ADDED, ADDED_WORD = "31", "1;7;31", "32", "1;7;32"
"""The terminal's own colours, so that they suit its background."""

CLOSING = """
This moment was chosen because the model that ships does well here; elsewhere it is often silent or wrong.
{model}: {remarks}."""
FAKE = """
The fake engine answered: it has no model and copies from nearby text. Unset engine.model for the one that ships."""


class Screen:
    """A terminal in colours that redraws the line being typed; elsewhere, plain lines without pauses."""

    def __init__(self, colours: bool):
        self.colours = colours

    def say(self, text: str = "", style: str = "") -> None:
        print(self.styled(text, style), flush=True)

    def styled(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.colours and style and text else text

    def numbered(self, number: int, text: str) -> str:
        return f"{self.styled(f'{number:4} ', GREY)}{text}"

    def suggested(self, number: int, line: str, ghost: str) -> None:
        """The line at the cursor and the suggestion behind it, which takes the place of the one before."""
        if self.colours:
            first, *below = [self.styled(part, GHOST) for part in ghost.split("\n")]
            up = f"\x1b[{len(below)}A" if below else ""
            lines = [self.numbered(number, line + first), *(f"     {part}" for part in below)]
            print("\r\x1b[J" + "\n".join(lines) + up, end="", flush=True)

    def taken(self, number: int, line: str, ghost: str) -> None:
        self.pause(READ)
        if not self.colours:
            self.say(self.numbered(number, f"{line}▏{ghost}").replace("\n", "\n     "))

    def entered(self, number: int, line: str) -> None:
        self.suggested(number, line, "")
        self.say("" if self.colours else self.numbered(number, line))

    def pause(self, seconds: float) -> None:
        if self.colours:
            time.sleep(seconds)


async def main() -> None:
    screen = Screen(sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name, text in FILES.items():
            (root / name).write_text(text, encoding="utf-8")
        began = time.perf_counter()
        async with running(root) as client:
            status = await until_ready(client)
            if status["state"] != "ready":
                raise SystemExit(f"no engine: {status['detail']}; `mercury-ls doctor` says what to do")
            screen.say(f"mercury-ls, ready after {time.perf_counter() - began:.1f} s", BOLD)
            uri = (root / "basket.py").as_uri()
            client.open(uri, "python", FILES["basket.py"])
            await _write_function(screen, client, uri)
            await _rename(screen, client, root, uri)
    screen.say(FAKE if status["engine"] == "fake" else _closing(status))


def _closing(status: Mapping[str, Any]) -> str:
    return CLOSING.format(model=status["model"], remarks="; ".join(status["remarks"]) or "you have chosen it")


async def _write_function(screen: Screen, client: Client, uri: str) -> None:
    screen.say("\nbasket.py: a function is typed; the grey text is suggested, and Tab takes it\n", TITLE)
    text, rest = FILES["basket.py"], TYPED
    for number, line in enumerate(text.splitlines()[-4:], text.count("\n") - 3):
        screen.say(screen.numbered(number, line))
    while rest:
        ghost, number, line = await _suggestion(client, uri, text), text.count("\n") + 1, last_line(text)
        screen.suggested(number, line, ghost)
        if accepts(ghost, rest):
            screen.taken(number, line, ghost)
            typed = ghost
        else:
            screen.pause(KEY)
            typed = rest[0]
        client.insert(uri, *end(text), typed)
        for done in (line + typed).split("\n")[:-1]:
            screen.entered(number, done)
        text, rest = text + typed, rest[len(typed) :]
    screen.entered(text.count("\n") + 1, last_line(text))


def accepts(ghost: str, rest: str) -> bool:
    """Whether Tab is pressed: where the suggestion is what was going to be typed, and more than a word of it."""
    return len(ghost) > 5 and rest.startswith(ghost)


async def _suggestion(client: Client, uri: str, text: str) -> str:
    line, column = end(text)
    where = {"textDocument": {"uri": uri}, "position": {"line": line, "character": column}}
    answer = await client.request("textDocument/inlineCompletion", {**where, "context": {"triggerKind": 2}})
    return answer["items"][0]["insertText"] if answer["items"] else ""


async def _rename(screen: Screen, client: Client, root: Path, uri: str) -> None:
    line, column = end(FILES["basket.py"].partition(OLD_NAME)[0])
    start, stop = ({"line": line, "character": each} for each in (column, column + len(OLD_NAME)))
    client.change(uri, [{"range": {"start": start, "end": stop}, "text": NEW_NAME}])
    screen.say("\nbasket.py: the class is renamed, and its other uses are offered as the next edit\n", TITLE)
    screen.say(screen.numbered(line + 1, f"class {screen.styled(NEW_NAME, BOLD)}:"))
    screen.pause(READ)
    where = {"textDocument": {"uri": uri, "version": client.versions[uri]}, "position": start}
    offer = await client.request("mercury/nextEdit", {**where, "context": {"triggerKind": 2, "closedFiles": True}})
    if offer and offer["edits"]:
        _show_offer(screen, root, offer)
    else:
        screen.say("\nNothing was offered.")


def _show_offer(screen: Screen, root: Path, offer: Mapping[str, Any]) -> None:
    screen.say(f"\n{offer['label']}: {offer['summary']}", BOLD)
    names = {(root / name).as_uri(): name for name in FILES}
    for name, edits in groupby(offer["edits"], lambda edit: names[edit["textDocument"]["uri"]]):
        screen.say(f"\n{name}", GREY)
        text = FILES[name] + TYPED if name == "basket.py" else FILES[name]
        for line in diff(screen, text.splitlines(), edits):
            screen.say(line)
            screen.pause(2 * KEY)
    screen.say("\nIn an editor one key makes all of them, in both files.")
    screen.pause(READ)


def diff(screen: Screen, lines: Sequence[str], edits: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Each changed line as it was and as it will be, with the changed words set off."""
    for edit in edits:
        start, stop = edit["range"]["start"], edit["range"]["end"]
        before, after = lines[start["line"]][: start["character"]], lines[stop["line"]][stop["character"] :]
        for sign, word, style, strong in (
            ("-", edit["oldText"], REMOVED, REMOVED_WORD),
            ("+", edit["newText"], ADDED, ADDED_WORD),
        ):
            parts = (screen.styled(f"{sign} {before}", style), screen.styled(word, strong), screen.styled(after, style))
            yield screen.numbered(start["line"] + 1, "".join(parts))


def end(text: str) -> tuple[int, int]:
    """Line and column behind the last character."""
    return text.count("\n"), len(last_line(text))


def last_line(text: str) -> str:
    return text.rpartition("\n")[2]


if __name__ == "__main__":
    asyncio.run(main())
