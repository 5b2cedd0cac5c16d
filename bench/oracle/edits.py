"""Next edits of a server that knows them, asked in every format: what of a right answer reaches the user."""

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from itertools import combinations
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bench.harness.client import RequestError
from bench.oracle.desk import AUTOMATIC, Buffer, Desk, desk
from bench.oracle.server import left, received, reply
from mercury_ls.code.edits import TextEdit, applied
from mercury_training.progress import shown as progress

ROWS = Path(__file__).parent / "edits"
LANGUAGES = {".py": "python", ".ts": "typescript", ".go": "go", ".rs": "rust", ".java": "java", ".cpp": "cpp"}
MARK = re.compile(r"⟦(?P<before>.*?)→(?P<after>.*?)⟧|⟪(?P<old>.*?)→(?P<new>.*?)⟫", re.DOTALL)
PATIENCE_SECONDS = 30.0
LINES_AROUND = 110
"""Of other code, above and below a row in a long file."""
NEAR, FAR = 12, 400
"""Lines between the edit and what is due after it: within the window, in lines that only Zeta's formats rewrite; and
outside of it, where no format can know."""


class EditRow(Struct, frozen=True):
    """A text in which the user makes `edit`. From `text`, which it leaves, `due` lead to what comes next; none of them
    where nothing is due. `by_keys`: the edit is typed. With `elsewhere`, the edit was made in another file, and the
    user has gone to the line where something is due."""

    name: str
    file: str
    language: str
    before: str
    edit: TextEdit
    due: tuple[TextEdit, ...]
    kind: str = "short"
    by_keys: bool = False
    elsewhere: "EditRow | None" = None

    @property
    def text(self) -> str:
        return self.before if self.elsewhere else applied(self.before, [self.edit])

    @property
    def cursor(self) -> int:
        if self.elsewhere:
            return self.text.rfind("\n", 0, self.due[0].start) + 1 if self.due else 0
        return self.edit.start + len(self.edit.text)

    def is_due(self, edits: Sequence[TextEdit], reached: frozenset[TextEdit]) -> bool:
        """Whether these edits are some of those that are due, and all of them that a model was shown."""
        result = applied(self.text, sorted(edits, key=lambda edit: edit.start))
        others = [edit for edit in self.due if edit not in reached]
        for count in range(len(others) + 1):
            for more in combinations(others, count):
                if applied(self.text, sorted([*reached, *more], key=lambda edit: edit.start)) == result:
                    return True
        return False


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


def all_rows(*, unseen: bool = False, most: int = 0) -> list[EditRow]:
    """The drawn rows, as they are, in long files, with what is due far away, and typed key by key; and those that an
    edit of another file leads to. `most`: of each kind."""
    short = edit_rows(unseen=unseen)
    far = [row for row in short if row.due and "\n" in row.text[row.cursor : row.due[-1].start]]
    kinds = [
        short,
        [_in_long_file(row, 0, "long") for row in short],
        [_in_long_file(row, NEAR, "distant") for row in far],
        [_in_long_file(row, FAR, "beyond") for row in far],
        [replace(row, kind="keys", by_keys=True) for row in short],
        [] if unseen else _elsewhere_rows(),
    ]
    return [row for rows in kinds for row in rows[:: max(len(rows) // most, 1) if most else 1][: most or None]]


def _elsewhere_rows() -> list[EditRow]:
    rows = []
    text = (ROWS / "elsewhere.txt").read_text(encoding="utf-8")
    for part in text.removeprefix("== ").split("\n== "):
        name, _, drawn = part.partition("\n")
        first, _, second = drawn.partition("\n-- ")
        (edited, before), (file, after) = (piece.split("\n", 1) for piece in (first, second))
        language = LANGUAGES[Path(file).suffix]
        row = row_of(name, edited, language, before + "\n")
        here = _drawn_row(name, file, language, after.rstrip("\n") + "\n")
        rows.append(replace(here, kind="elsewhere", elsewhere=row))
    return rows


COMMENT = {"python": "#"}
OTHER_CODE = {
    "python": "def {name}(value, scale={n}):\n    shifted = value + {n}\n    return shifted * scale - {n}\n\n",
    "typescript": "function {name}(value: number) {{\n  const shifted = value + {n};\n  return shifted * {n};\n}}\n\n",
    "go": "func {name}(value int) int {{\n\tshifted := value + {n}\n\treturn shifted * {n}\n}}\n\n",
    "rust": "fn {name}(value: i64) -> i64 {{\n    let shifted = value + {n};\n    shifted * {n}\n}}\n\n",
    "java": "// {name}: a part of another class, which has {n} lines\n// and stands somewhere else.\n\n",
    "cpp": "int {name}(int value) {{\n    int shifted = value + {n};\n    return shifted * {n};\n}}\n\n",
}


def _in_long_file(row: EditRow, distance: int, kind: str) -> EditRow:
    """The same between other code, and `distance` lines of comments between the edit and the first that is due."""
    stem = Path(row.file).stem
    code = OTHER_CODE[row.language]
    parts = range(LINES_AROUND // code.count("\n"))
    above, below = (
        "".join(code.format(name=f"{side}_{stem}_{n}", n=n + 2) for n in parts) for side in ("above", "below")
    )
    head = row.before.startswith("package ") and row.before.index("\n") + 1
    start, sign = head or 0, COMMENT.get(row.language, "//")
    notes = "".join(f"{sign} note {n} on {stem}: nothing here\n" for n in range(distance))
    gap = row.before.find("\n", row.edit.end) + 1
    grown = len(row.edit.text) - (row.edit.end - row.edit.start)
    edit = _shifted(row.edit, len(above))
    due = [_shifted(each, len(above) + (len(notes) if each.start >= gap + grown else 0)) for each in row.due]
    before = row.before[:start] + above + row.before[start:gap] + notes + row.before[gap:] + "\n\n" + below
    return replace(row, file=f"{kind}_{row.file}", before=before, edit=edit, due=tuple(due), kind=kind)


def _shifted(edit: TextEdit, distance: int) -> TextEdit:
    return TextEdit(edit.start + distance, edit.end + distance, edit.text)


def row_of(name: str, file: str, language: str, drawn: str) -> EditRow:
    """`⟦a→b⟧` is the edit that the user makes, `⟪a→b⟫` one that is due after it."""
    if "⟦" not in drawn:
        raise ValueError(f"{file}, {name}: no edit is marked by ⟦ ⟧")
    return _drawn_row(name, file, language, drawn)


def _drawn_row(name: str, file: str, language: str, drawn: str) -> EditRow:
    before, text, at, edit, due = "", "", 0, TextEdit(0, 0, ""), []
    for mark in MARK.finditer(drawn):
        before, text = before + drawn[at : mark.start()], text + drawn[at : mark.start()]
        if mark["before"] is not None:
            edit = TextEdit(len(before), len(before) + len(mark["before"]), mark["after"])
            before, text = before + mark["before"], text + mark["after"]
        else:
            due.append(TextEdit(len(text), len(text) + len(mark["old"]), mark["new"]))
            before, text = before + mark["old"], text + mark["old"]
        at = mark.end()
    return EditRow(name, file, language, before + drawn[at:], edit, tuple(due))


class _Form(Struct, frozen=True):
    """How a model of a format is added, where the region stands in its prompt, and what its answer looks like."""

    protocol: str
    region: Callable[[str], str]
    answer: Callable[[str, str], str]


def _between(start: str, end: str, cursor: str) -> Callable[[str], str]:
    """The text between the last two such marks, without the cursor's."""

    def region(prompt: str) -> str:
        return prompt[prompt.rindex(start) + len(start) : prompt.rindex(end)].replace(cursor, "")

    return region


def _markers(prompt: str) -> str:
    """Zeta 2.1 marks the beginnings of blocks."""
    first, last = prompt.rindex("<|marker_1|>"), prompt.rindex("<|marker_")
    return re.sub(r"<\|marker_\d+\|>|<\|user_cursor\|>", "", prompt[first:last])


def _blocks(new: str, prompt: str) -> str:
    number = re.findall(r"<\|marker_(\d+)\|>", prompt)[-1]
    return f"<|marker_1|>\n{new.rstrip(chr(10))}\n<|marker_{number}|>"


def _current(prompt: str) -> str:
    """Of Sweep: the section before the last, below its name."""
    body = prompt[prompt.rindex("<|file_sep|>current/") : prompt.rindex("<|file_sep|>updated/")]
    return body.partition("\n")[2].removesuffix("\n").replace("<|cursor|>", "")


def _continued(new: str, prompt: str) -> str:
    """Behind the lines that the prompt already has of it."""
    begun = prompt[prompt.rindex("<|file_sep|>updated/") :].partition("\n")[2]
    return new[len(begun) :] if new.startswith(begun) else new


def _fenced(new: str, _prompt: str) -> str:
    return f"```\n{new}\n```"


FORMATS = {
    "zeta": _Form(
        "openai",
        _between("<|editable_region_start|>\n", "\n<|editable_region_end|>", "<|user_cursor_is_here|>"),
        lambda new, _: f"<|editable_region_start|>\n{new}\n<|editable_region_end|>",
    ),
    "zeta-2": _Form(
        "openai",
        _between("<<<<<<< CURRENT\n", "=======\n", "<|user_cursor|>"),
        lambda new, _: f"{new.rstrip(chr(10))}\n>>>>>>> UPDATED\n",
    ),
    "zeta-2.1": _Form("openai", _markers, _blocks),
    "sweep": _Form("openai", _current, _continued),
    "sweep-2": _Form("openai", _current, _continued),
    "mercury-edit": _Form(
        "inception-edit", _between("<|code_to_edit|>\n", "\n<|/code_to_edit|>", "<|cursor|>"), _fenced
    ),
    "chat": _Form("chat", _between("<|edit_this|>\n", "\n<|/edit_this|>", "<|cursor|>"), _fenced),
}


class EditsOracle:
    """A server that knows the row it is asked about, and with probability `right` answers with what is due there. It
    notes how long its own part of each answer took."""

    def __init__(self, form: _Form, *, right: float = 1.0, first_ms: float = 0.0, per_second: float = 1000.0) -> None:
        self.form, self.right, self.first_ms, self.per_second = form, right, first_ms, per_second
        self.address = ""
        self.rows: Sequence[EditRow] = ()
        """Those that may be asked about by now."""
        self.reached: frozenset[TextEdit] = frozenset()
        """What is due in the lines that were to be rewritten."""
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
                await reply(writer, {"object": "list", "data": [{"id": "oracle", "max_model_len": 16384}]})
        writer.close()

    async def _answer(self, body: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_chat = "messages" in body
        text = self._said(body["messages"][-1]["content"] if is_chat else body.get("prompt", ""))
        hanging = asyncio.create_task(reader.read(1))
        try:
            if await left(hanging, self.first_ms / 1000 if self.rows else 0.0):
                return None
            if not body.get("stream"):
                await left(hanging, len(text) / 4 / self.per_second)
                return await reply(writer, {"choices": [_choice(text, is_chat, whole=True)]})
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            for piece in [*re.findall(r".{1,4}", text, re.DOTALL), ""]:
                writer.write(
                    f"data: {json.dumps({'choices': [_choice(piece, is_chat, whole=not piece)]})}\n\n".encode()
                )
                await writer.drain()
                if await left(hanging, 1 / self.per_second):
                    return None
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
        inside = [number for number, edit in enumerate(due) if start <= edit.start and edit.end <= end]
        self.reached |= {row.due[number] for number in inside}
        return self.form.answer(applied(row.text[start:end], [_shifted(due[at], -start) for at in inside]), prompt)


def _choice(text: str, is_chat: bool, *, whole: bool) -> dict[str, Any]:
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
    """What became of a row: whether anything was offered, and whether it is all that was due where the model could
    know it, and nothing else; milliseconds over the server's own. `reached`: whether the model was shown a line where
    something is due."""

    row: EditRow
    shown: bool
    exact: bool
    over_ms: float
    reached: bool = True


async def edits_asked(
    name: str, rows: Sequence[EditRow], *, right: float = 1.0, first_ms: float = 0.0
) -> list[Offered]:
    """In one format, while the user edits; each row in a file of its own."""
    oracle = EditsOracle(FORMATS[name], right=right, first_ms=first_ms)
    async with answering(oracle), server_of(oracle, name) as at:
        return [await _offered(at, oracle, row) for row in progress(f"{name}, {first_ms:.0f} ms", rows)]


def server_of(oracle: EditsOracle, name: str) -> AbstractAsyncContextManager[Desk]:
    """A language server that asks the oracle in this format."""
    protocol = FORMATS[name].protocol
    prompt = () if protocol == "inception-edit" else ("--prompt", name)
    return desk(oracle, "--protocol", protocol, "--model", "oracle", *prompt)


async def _offered(at: Desk, oracle: EditsOracle, row: EditRow) -> Offered:
    oracle.took_ms, oracle.reached, oracle.rows = 0.0, frozenset(), [row]
    other = row.elsewhere and at.open(row.elsewhere.file, row.language, row.elsewhere.before)
    if other and row.elsewhere:
        edit = row.elsewhere.edit
        other.replace(edit.start, edit.end, edit.text)
    buffer = at.open(row.file, row.language, row.before)
    if not other:
        await _make(at, buffer, row)
    clock = asyncio.get_running_loop().time
    here, began = buffer.snapshot(), clock()
    try:
        offer = await asyncio.wait_for(asked(at, buffer, row.cursor), PATIENCE_SECONDS)
    except RequestError:
        offer = None
    over_ms = (clock() - began) * 1000 - oracle.took_ms
    edits = [*changes(offer, buffer.uri, here, buffer.unit)] if offer else []
    for each in (buffer, *([other] if other else [])):
        each.close()
    return Offered(row, bool(offer), row.is_due(edits, oracle.reached), over_ms, bool(oracle.reached))


async def _make(at: Desk, buffer: Buffer, row: EditRow) -> None:
    """The edit, at once or key by key, with a question after each."""
    start, end, text = row.edit.start, row.edit.end, row.edit.text
    if not row.by_keys:
        buffer.replace(start, end, text)
        return
    pending = []
    for last in range(end, start, -1):
        buffer.replace(last - 1, last, "")
        pending.append(asked(at, buffer, last - 1))
    for number, key in enumerate(text, start):
        buffer.replace(number, number, key)
        pending.append(asked(at, buffer, number + 1))
    await asyncio.gather(*pending[:-1], return_exceptions=True)


def asked(at: Desk, buffer: Buffer, offset: int, kind: int = AUTOMATIC) -> asyncio.Future:
    line, character = buffer.snapshot().position(offset, buffer.unit)
    place = {"textDocument": {"uri": buffer.uri}, "position": {"line": line, "character": character}}
    return at.client.ask("mercury/nextEdit", {**place, "context": {"triggerKind": kind}})[1]


def changes(offer: dict[str, Any], uri: str, here: Any, unit: Any) -> Iterator[TextEdit]:
    for edit in offer["edits"]:
        if edit.get("textDocument", {}).get("uri", uri) != uri:
            continue
        start, end = (
            here.offset(edit["range"][end]["line"], edit["range"][end]["character"], unit) for end in ("start", "end")
        )
        yield TextEdit(start, end, edit["newText"])
