"""Watch it work: the real server, a sample file, a few keystrokes, and the suggestion being drafted and revised."""

import asyncio
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.client import Client, running, until_ready

SAMPLE = '''\
"""A basket of goods and what they cost."""

from dataclasses import dataclass, field


@dataclass
class Item:
    name: str
    price: float
    quantity: int = 1


@dataclass
class Basket:
    items: list[Item] = field(default_factory=list)

    def add(self, name: str, price: float, quantity: int = 1) -> None:
        self.items.append(Item(name, price, quantity))

    def total(self) -> float:
        return sum(item.price * item.quantity for item in self.items)

    def remove(self, name: str) -> None:
        self.items = [item for item in self.items if item.name != name]


def with_tax(basket: Basket, rate: float) -> float:
    $0
'''
TYPED = "return sum(item.p"
BOLD, DIM, GREEN, RESET = "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[0m"
TOKEN = "demo"


class Screen:
    """A terminal where the current line is redrawn; a plain log of lines where there is none."""

    def __init__(self, terminal: bool):
        self.terminal = terminal

    def say(self, text: str) -> None:
        print(text, flush=True)

    def title(self, text: str) -> None:
        self.say(f"{BOLD}{text}{RESET}" if self.terminal else text)

    def draft(self, typed: str, ghost: str, note: str) -> None:
        ghost = ghost.split("\n")[0]
        if self.terminal:
            print(f"\r\x1b[2K    {typed}{DIM}{ghost}{RESET}  {GREEN}{note}{RESET}", end="", flush=True)
            time.sleep(0.12)
        else:
            print(f"    {typed}|{ghost}    {note}", flush=True)

    def line_done(self) -> None:
        if self.terminal:
            print()


async def main() -> None:
    screen = Screen(sys.stdout.isatty())
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        text = SAMPLE.replace("$0", "")
        (root / "basket.py").write_text(text, encoding="utf-8")
        began = time.perf_counter()
        async with running(root, command=(sys.executable, "-m", "mercury_ls", "--stdio")) as client:
            started = milliseconds(began)
            status = await until_ready(client)
            introduce(screen, status, started, milliseconds(began))
            if status["state"] == "ready":
                await type_along(screen, client, (root / "basket.py").as_uri(), text)


def introduce(screen: Screen, status: dict[str, Any], initialize: float, ready: float) -> None:
    screen.title("mercury-ls")
    screen.say(f"server answered initialize after {initialize:.0f} ms, engine {status['state']} after {ready:.0f} ms")
    if status["state"] != "ready":
        screen.say(f"no suggestions: {status['detail']}")
    elif status["engine"] == "fake":
        screen.say("engine: FAKE, no model. It copies from the text around the cursor, to show the way things go.")
    else:
        screen.say(f"engine: {status['engine']}, model {status['model']}, on {status['device']}")


async def type_along(screen: Screen, client: Client, uri: str, text: str) -> None:
    client.open(uri, "python", text)
    line, column = position(SAMPLE)
    typed = ""
    screen.say(f"\ntyping {TYPED!r} into basket.py, line {line + 1}:\n")
    for character in TYPED:
        client.insert(uri, line, column + len(typed), character)
        typed += character
        await one_keystroke(screen, client, uri, line, column, typed)
    screen.line_done()


async def one_keystroke(screen: Screen, client: Client, uri: str, line: int, column: int, typed: str) -> None:
    began = time.perf_counter()
    _, answer = client.ask(
        "textDocument/inlineCompletion",
        {
            "textDocument": {"uri": uri},
            "position": {"line": line, "character": column + len(typed)},
            "context": {"triggerKind": 2},
            "partialResultToken": TOKEN,
        },
    )
    await answer
    final = milliseconds(began)
    for draft in drafts(client):
        source = "typed through" if draft["source"] == "type-through" else f"pass {draft['step']}"
        if not draft["final"]:
            screen.draft(typed, draft["text"], f"{source} after {(draft['received'] - began) * 1000:.1f} ms")
    items = answer.result()["items"]
    ghost = items[0]["insertText"] if items else ""
    reason = "" if items else f", nothing shown: {draft['silence']}"
    screen.draft(typed, ghost, f"{source}: final after {final:.1f} ms{reason}")


def drafts(client: Client) -> list[dict[str, Any]]:
    found = []
    while not client.notifications.empty():
        message = client.notifications.get_nowait()
        if message["method"] == "$/progress" and message["params"]["token"] == TOKEN:
            found.append({**message["params"]["value"], "received": message["received"]})
    return found


def position(drawn: str) -> tuple[int, int]:
    before = drawn[: drawn.index("$0")]
    return before.count("\n"), len(before) - before.rfind("\n") - 1


def milliseconds(since: float) -> float:
    return (time.perf_counter() - since) * 1000


if __name__ == "__main__":
    asyncio.run(main())
