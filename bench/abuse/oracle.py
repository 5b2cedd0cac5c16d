"""What the texts have to be after these messages: the editor's side of document synchronization, on its own."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
SURROGATE = re.compile(r"[\ud800-\udfff]")
WIDEST = 2**31 - 1
NESTED = 300
"""Brackets. Who nests deeper cannot count on being understood, only on an answer to everybody else."""
VALID, DOUBTFUL, INVALID = range(3)
"""A valid notification is applied and an invalid one is not. In between are values that a lenient reader may convert,
`"1"` or `1.0` for 1: after one of those nobody can say what the text is."""

WHOLE, NATURAL, TEXT, KIND, MAYBE = "whole", "natural", "text", "kind", "maybe"
POSITION = {"line": NATURAL, "character": NATURAL}
RANGE = {"start": POSITION, "end": POSITION}
CHANGE = {"text": TEXT, "range": (MAYBE, RANGE), "rangeLength": (MAYBE, NATURAL)}
ITEM = {"uri": TEXT, "languageId": TEXT, "version": WHOLE, "text": TEXT}
VERSIONED, NAMED = {"uri": TEXT, "version": WHOLE}, {"uri": TEXT}
CELL = {"kind": KIND, "document": TEXT}
STRUCTURE = {
    "array": {"start": NATURAL, "deleteCount": NATURAL, "cells": (MAYBE, [CELL])},
    "didOpen": (MAYBE, [ITEM]),
    "didClose": (MAYBE, [NAMED]),
}
CELLS = {"structure": (MAYBE, STRUCTURE), "textContent": (MAYBE, [{"document": VERSIONED, "changes": [CHANGE]}])}
NOTEBOOK = {**VERSIONED, "notebookType": TEXT, "cells": [CELL]}
SHAPES: dict[str, Any] = {
    "textDocument/didOpen": {"textDocument": ITEM},
    "textDocument/didChange": {"textDocument": VERSIONED, "contentChanges": [CHANGE]},
    "textDocument/didClose": {"textDocument": NAMED},
    "notebookDocument/didOpen": {"notebookDocument": NOTEBOOK, "cellTextDocuments": [ITEM]},
    "notebookDocument/didChange": {"notebookDocument": VERSIONED, "change": {"cells": (MAYBE, CELLS)}},
    "notebookDocument/didClose": {"notebookDocument": NAMED, "cellTextDocuments": [NAMED]},
}


class Oracle:
    """The open documents; None is a text that nobody can know until the document is opened or closed again."""

    def __init__(self, encoding: str = "utf-16") -> None:
        self.encoding = encoding
        self.texts: dict[str, str | None] = {}
        self.initialized = False

    def receive(self, body: bytes) -> None:
        message = _parsed(body)
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or "id" in message:
            return
        if self.initialized and isinstance(message.get("method"), str):
            self.notice(message["method"], message.get("params"))

    def notice(self, method: str, params: Any) -> None:
        shape = SHAPES.get(method)
        verdict = INVALID if shape is None else fit(params, shape)
        if verdict == DOUBTFUL or (verdict == INVALID and method.startswith("notebook")):
            self.texts.update(dict.fromkeys({str(uri) for uri in _named(params)}, None))
        elif verdict == VALID and method.startswith("notebook"):
            self.notice_notebook(params)
        elif verdict == VALID:
            self.notice_document(method, params)

    def notice_document(self, method: str, params: dict[str, Any]) -> None:
        document = params["textDocument"]
        if method.endswith("didOpen"):
            self.open([document])
        elif method.endswith("didClose"):
            self.close([document])
        else:
            self.change(document["uri"], params["contentChanges"])

    def notice_notebook(self, params: dict[str, Any]) -> None:
        cells = params.get("change", {}).get("cells", {})
        structure = cells.get("structure", {})
        listed = params.get("cellTextDocuments", [])
        opened = [each for each in listed if "text" in each]
        self.close([*structure.get("didClose", []), *(each for each in listed if "text" not in each)])
        self.open([*structure.get("didOpen", []), *opened])
        for content in cells.get("textContent", []):
            self.change(content["document"]["uri"], content["changes"])

    def open(self, documents: Iterable[dict[str, Any]]) -> None:
        self.texts.update({each["uri"]: _encodable(each["text"]) for each in documents})

    def close(self, documents: Iterable[dict[str, Any]]) -> None:
        for each in documents:
            self.texts.pop(each["uri"], None)

    def change(self, uri: str, changes: Iterable[dict[str, Any]]) -> None:
        if (text := self.texts.get(uri)) is not None:
            self.texts[uri] = _changed(text, changes, self.encoding)

    @property
    def doubtful(self) -> list[str]:
        return [uri for uri, text in self.texts.items() if text is None]

    def digests(self) -> dict[str, str]:
        return {uri: _digest(text) for uri, text in self.texts.items() if text is not None}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _encodable(text: str) -> str:
    return SURROGATE.sub("\ufffd", text)


def _changed(text: str, changes: Iterable[dict[str, Any]], encoding: str) -> str:
    for change in changes:
        text = replaced(text, change.get("range"), _encodable(change["text"]), encoding)
    return text


def replaced(text: str, given: dict[str, Any] | None, new: str, encoding: str) -> str:
    if given is None:
        return new
    ends = (given["start"], given["end"])
    start, end = sorted(offset(text, end["line"], end["character"], encoding) for end in ends)
    return text[:start] + new + text[end:]


def offset(text: str, line: int, character: int, encoding: str) -> int:
    """Past the end of a line is its end, past the last line the end of the text, inside a character its start."""
    start = 0
    for number, found in enumerate(LINE.finditer(text)):
        if number == line:
            return start + _column(found[0].rstrip("\r\n"), character, encoding)
        start = found.end()
        if not found[0].endswith(("\r", "\n")):
            break
    return len(text)


def _column(line: str, units: int, encoding: str) -> int:
    if line.isascii() or encoding == "utf-32":
        return min(units, len(line))
    for number, character in enumerate(line):
        units -= len(character.encode("utf-8")) if encoding == "utf-8" else 1 + (character > "\uffff")
        if units < 0:
            return number
    return len(line)


def due(body: bytes) -> tuple[str, list[str]]:
    """The id that has to be answered exactly once, "" for none, and those that may be: ids in the spelling of JSON."""
    message = _parsed(body)
    if not isinstance(message, dict):
        return "", ["null"]
    id = message.get("id")
    if "method" in message and type(id) in (int, str) and body.count(b"[") + body.count(b"{") < NESTED:
        return json.dumps(id), []
    try:
        return "", ["null", json.dumps(id)]
    except RecursionError:
        return "", ["null"]


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def fit(value: Any, shape: Any) -> int:
    """Whether a value has this shape; fields that the shape does not name are anybody's."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return INVALID
        return max((_fit_field(value, name, kind) for name, kind in shape.items()), default=VALID)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return DOUBTFUL if value in ("", {}) else INVALID
        return max((fit(each, shape[0]) for each in value), default=VALID)
    if shape == KIND:
        return VALID if type(value) is int and value in (1, 2) else DOUBTFUL
    if shape == TEXT:
        return VALID if isinstance(value, str) else DOUBTFUL
    if type(value) is not int:
        return DOUBTFUL if isinstance(value, bool | float | str) else INVALID
    return VALID if (0 if shape == NATURAL else -WIDEST - 1) <= value <= WIDEST else INVALID


def _fit_field(value: dict[str, Any], name: str, kind: Any) -> int:
    if isinstance(kind, tuple):  # optional: an unusable one may be refused or left out
        return VALID if name not in value or fit(value[name], kind[1]) == VALID else DOUBTFUL
    return fit(value[name], kind) if name in value else INVALID


def _named(params: Any) -> Iterator[Any]:
    """Whatever stands where a uri belongs."""
    waiting = [params]
    while waiting:
        match waiting.pop():
            case dict() as table:
                waiting += table.values()
                yield from (table[name] for name in ("uri", "document") if name in table)
            case list() as entries:
                waiting += entries
