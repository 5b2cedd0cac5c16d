"""Next edits of a server that knows them, asked in every format: what of a right answer reaches the user."""

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from bench.harness.client import RequestError
from bench.oracle.desk import Desk, desk
from bench.oracle.server import left, received
from mercury_ls.code.edits import TextEdit, applied
from mercury_training.progress import shown as progress

__all__ = ["FORMATS", "EditRow", "EditsOracle", "Offered", "edit_rows", "edits_asked", "row_of"]

ROWS = Path(__file__).parent / "edits"
LANGUAGES = {".py": "python", ".ts": "typescript", ".go": "go", ".rs": "rust", ".java": "java", ".cpp": "cpp"}
MARK = re.compile(r"⟦(?P<before>.*?)→(?P<after>.*?)⟧|⟪(?P<old>.*?)→(?P<new>.*?)⟫", re.DOTALL)
PATIENCE_SECONDS = 30.0


class EditRow(Struct, frozen=True):
    """A text in which the user makes `edit`. From `text`, which it leaves, `due` lead to what comes next; none of them
    where nothing is due."""

    name: str
    file: str
    language: str
    before: str
    edit: TextEdit
    due: tuple[TextEdit, ...]

    @property
    def text(self) -> str:
        return applied(self.before, [self.edit])

    @property
    def cursor(self) -> int:
        return self.edit.start + len(self.edit.text)

    @property
    def final(self) -> str:
        return applied(self.text, self.due)


def edit_rows(*, unseen: bool = False) -> list[EditRow]:
    """Java's and C++'s are those that nothing was looked at in."""
    rows = []
    for suffix, language in LANGUAGES.items():
        if (language in ("java", "cpp")) is unseen:
            text = (ROWS / f"{language}.txt").read_text(encoding="utf-8")
            for number, part in enumerate(text.removeprefix("== ").split("\n== ")):
                name, _, drawn = part.partition("\n")
                rows.append(row_of(name, f"{language}{number}{suffix}", language, drawn.rstrip("\n") + "\n"))
    return rows


def row_of(name: str, file: str, language: str, drawn: str) -> EditRow:
    """`⟦a→b⟧` is the edit that the user makes, `⟪a→b⟫` one that is due after it."""
    before, text, at, edit, due = "", "", 0, None, []
    for mark in MARK.finditer(drawn):
        before, text = before + drawn[at : mark.start()], text + drawn[at : mark.start()]
        if mark["before"] is not None:
            edit = TextEdit(len(before), len(before) + len(mark["before"]), mark["after"])
            before, text = before + mark["before"], text + mark["after"]
        else:
            due.append(TextEdit(len(text), len(text) + len(mark["old"]), mark["new"]))
            before, text = before + mark["old"], text + mark["old"]
        at = mark.end()
    if edit is None:
        raise ValueError(f"{file}, {name}: no edit is marked by ⟦ ⟧")
    return EditRow(name, file, language, before + drawn[at:], edit, tuple(due))


class Form(Struct, frozen=True):
    """How a model of a format is added, where the region stands in its prompt, and what its answer looks like."""

    protocol: str
    region: Callable[[str], str]
    answer: Callable[[str, str], str]


def between(start: str, end: str, cursor: str) -> Callable[[str], str]:
    """The text between the last two such marks, without the cursor's."""

    def region(prompt: str) -> str:
        return prompt[prompt.rindex(start) + len(start) : prompt.rindex(end)].replace(cursor, "")

    return region


def markers(prompt: str) -> str:
    """Zeta 2.1 marks the beginnings of blocks."""
    first, last = prompt.rindex("<|marker_1|>"), prompt.rindex("<|marker_")
    return re.sub(r"<\|marker_\d+\|>|<\|user_cursor\|>", "", prompt[first:last])


def blocks(new: str, prompt: str) -> str:
    number = re.findall(r"<\|marker_(\d+)\|>", prompt)[-1]
    return f"<|marker_1|>\n{new.rstrip(chr(10))}\n<|marker_{number}|>"


def current(prompt: str) -> str:
    """Of Sweep: the section before the last, below its name."""
    body = prompt[prompt.rindex("<|file_sep|>current/") : prompt.rindex("<|file_sep|>updated/")]
    return body.partition("\n")[2].removesuffix("\n").replace("<|cursor|>", "")


def continued(new: str, prompt: str) -> str:
    """Behind the lines that the prompt already has of it."""
    begun = prompt[prompt.rindex("<|file_sep|>updated/") :].partition("\n")[2]
    return new[len(begun) :] if new.startswith(begun) else new


def fenced(new: str, _prompt: str) -> str:
    return f"```\n{new}\n```"


FORMATS = {
    "zeta": Form(
        "openai",
        between("<|editable_region_start|>\n", "\n<|editable_region_end|>", "<|user_cursor_is_here|>"),
        lambda new, _: f"<|editable_region_start|>\n{new}\n<|editable_region_end|>",
    ),
    "zeta-2": Form(
        "openai",
        between("<<<<<<< CURRENT\n", "=======\n", "<|user_cursor|>"),
        lambda new, _: f"{new.rstrip(chr(10))}\n>>>>>>> UPDATED\n",
    ),
    "zeta-2.1": Form("openai", markers, blocks),
    "sweep": Form("openai", current, continued),
    "sweep-2": Form("openai", current, continued),
    "mercury-edit": Form("inception-edit", between("<|code_to_edit|>\n", "\n<|/code_to_edit|>", "<|cursor|>"), fenced),
    "chat": Form("chat", between("<|edit_this|>\n", "\n<|/edit_this|>", "<|cursor|>"), fenced),
}


class EditsOracle:
    """A server that knows the row it is asked about, and with probability `right` answers with what is due there. It
    notes how long its own part of each answer took."""

    def __init__(self, form: Form, *, right: float = 1.0, first_ms: float = 0.0, per_second: float = 1000.0) -> None:
        self.form, self.right, self.first_ms, self.per_second = form, right, first_ms, per_second
        self.address = ""
        self.rows: Sequence[EditRow] = ()
        """Those that may be asked about by now."""
        self.asked = 0
        self.took_ms = 0.0
        """For the last answer, until the client had enough."""

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while (request := await received(reader)) is not None:
                if "completions" in request.path:
                    began = asyncio.get_running_loop().time()
                    await self._answer(request.body, reader, writer)
                    self.took_ms = (asyncio.get_running_loop().time() - began) * 1000
                    break
                data = json.dumps({"object": "list", "data": [{"id": "oracle", "max_model_len": 16384}]}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        writer.close()

    async def _answer(self, body: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_chat = "messages" in body
        text = self._said(body["messages"][-1]["content"] if is_chat else body.get("prompt", ""))
        hanging = asyncio.create_task(reader.read(1))
        try:
            if await left(hanging, self.first_ms / 1000 if self.rows else 0.0):
                return
            if not body.get("stream"):
                await left(hanging, len(text) / 4 / self.per_second)
                data = json.dumps({"choices": [choice(text, is_chat, whole=True)]}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
                await writer.drain()
                return
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            for piece in [*re.findall(r".{1,4}", text, re.DOTALL), ""]:
                writer.write(f"data: {json.dumps({'choices': [choice(piece, is_chat, whole=not piece)]})}\n\n".encode())
                await writer.drain()
                if await left(hanging, 1 / self.per_second):
                    return
        finally:
            hanging.cancel()
            with suppress(asyncio.CancelledError):
                await hanging

    def _said(self, prompt: str) -> str:
        """The region again where it is of no row, as when its model is examined."""
        self.asked += 1
        try:
            region = self.form.region(prompt)
        except ValueError:  # it is asked in another format
            return ""
        row = next((row for row in self.rows if region.rstrip("\n") in row.text), None)
        if row is None:
            return self.form.answer(region, prompt)
        start = row.text.index(region.rstrip("\n"))
        end, due = start + len(region.rstrip("\n")), row.due
        if random.Random(f"{row.file} {self.right}").random() >= self.right:
            due = tuple(TextEdit(edit.start, edit.end, f"{edit.text}_") for edit in due)
        inside = [
            TextEdit(edit.start - start, edit.end - start, edit.text) for edit in due if start <= edit.start <= end
        ]
        return self.form.answer(applied(row.text[start:end], [e for e in inside if e.end <= end - start]), prompt)


def choice(text: str, is_chat: bool, *, whole: bool) -> dict[str, Any]:
    part = {"message" if whole and text else "delta": {"content": text}} if is_chat else {"text": text}
    return {"index": 0, "finish_reason": "stop" if whole else None, **part}


@asynccontextmanager
async def answering(oracle: EditsOracle) -> AsyncIterator[EditsOracle]:
    server = await asyncio.start_server(oracle.connected, "127.0.0.1", 0)
    oracle.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield oracle
    finally:
        server.close()


class Offered(Struct, frozen=True):
    """What became of a row: whether anything was offered, and whether it is all that was due; milliseconds over the
    server's own."""

    row: EditRow
    shown: bool
    exact: bool
    over_ms: float
    silence: str = ""


async def edits_asked(
    name: str, rows: Sequence[EditRow], *, right: float = 1.0, first_ms: float = 0.0
) -> list[Offered]:
    """In one format, while the user edits; each row in a file of its own."""
    form = FORMATS[name]
    async with answering(EditsOracle(form, right=right, first_ms=first_ms)) as oracle:
        options = ("--protocol", form.protocol, "--model", "oracle")
        options += () if form.protocol == "inception-edit" else ("--prompt", name)
        async with desk(oracle, *options) as at:
            oracle.rows = rows
            return [await offered(at, oracle, row) for row in progress(f"{name}, {first_ms:.0f} ms", rows)]


async def offered(at: Desk, oracle: EditsOracle, row: EditRow) -> Offered:
    oracle.took_ms = 0.0
    buffer = at.open(row.file, row.language, row.before)
    buffer.replace(row.edit.start, row.edit.end, row.edit.text)
    clock = asyncio.get_running_loop().time
    here, began = buffer.snapshot(), clock()
    line, character = here.position(row.cursor, buffer.unit)
    place = {"textDocument": {"uri": buffer.uri}, "position": {"line": line, "character": character}}
    try:
        _, answer = at.client.ask("mercury/nextEdit", {**place, "context": {"triggerKind": 2}})
        offer = await asyncio.wait_for(answer, PATIENCE_SECONDS)
    except RequestError:
        offer = None
    over_ms = (clock() - began) * 1000 - oracle.took_ms
    edits = [*changes(offer, here, buffer.unit)] if offer else []
    buffer.close()
    exact = bool(edits) and applied(row.text, sorted(edits, key=lambda edit: edit.start)) == row.final
    return Offered(row, bool(edits), exact, over_ms)


def changes(offer: dict[str, Any], here: Any, unit: Any) -> Iterator[TextEdit]:
    for edit in offer["edits"]:
        start, end = (
            here.offset(edit["range"][end]["line"], edit["range"][end]["character"], unit) for end in ("start", "end")
        )
        yield TextEdit(start, end, edit["newText"])
