"""A session of the fuzzer: valid LSP mixed with everything that is not, from a seed."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.abuse import hostile
from bench.abuse.oracle import Oracle
from bench.abuse.steps import Accept, Check, End, Flood, Plan, Raw, Say, Step, Wait

MOST_TEXT = 20_000
OVER_LIMIT = 70_000_000
BETWEEN_CHECKS = 120
COMMANDS = ("mercury.didAccept", "mercury.snooze", "mercury.why", "mercury.status", "no.such", "")
UNKNOWN = (
    "no/such",
    "",
    "$/unknown",
    "textDocument/hover",
    "\0",
    "workspace/",
    "initialized2",
    "textDocument/didOpen2",
)


def plan(seed: str) -> Plan:
    rng = random.Random(seed)
    return Plan(
        seed=seed,
        encoding=rng.choice(("utf-16", "utf-16", "utf-8", "utf-32")),
        strict=rng.random() < 0.6,
    )


class ScriptedSession:
    """The steps of one plan for a project at `root`, with the oracle that knows what must come of them."""

    def __init__(self, plan: Plan, root: Path) -> None:
        self.plan = plan
        self.root = root
        self.rng = random.Random(plan.seed + " steps")
        self.oracle = Oracle(plan.encoding)
        self._versions: dict[str, int] = {}
        self._id = 0
        self._asked: list[int | str] = []
        self._cells = 0
        names = ("a.py", "b.py", "deep/c.py", "d.rs", "e.ts", "f.md", "g", "sp ace é.py", "new.py")
        self.uris = [(root / name).as_uri() for name in names] + ["untitled:Untitled-1", "git:/a.py?x", "weird"]
        self.hidden = tuple((root / name).as_uri() for name in hostile.HIDDEN)
        self.notebook = (root / "nb.ipynb").as_uri()

    def steps(self, messages: int) -> Iterator[Step]:
        yield from self.before()
        yield from self.begin()
        sent = 0
        while sent < messages:
            for _ in range(min(BETWEEN_CHECKS, messages - sent)):
                yield from self.anything()
            sent += BETWEEN_CHECKS
            yield from self.check()
        yield self.end()

    def before(self) -> Iterator[Step]:
        """What comes before initialize is refused."""
        for _ in range(self.rng.randrange(6)):
            damaged = {"id": self.next_id(), "method": "initialize", "params": self.rng.choice((5, "x", [], {}, None))}
            early = self.rng.choice((damaged, self.request("mercury/status", {}), self.opening(self.uris[0], "early")))
            yield self.say(early)

    def begin(self) -> Iterator[Step]:
        params = {
            "processId": None,
            "rootUri": self.root.as_uri(),
            "capabilities": {
                "general": {"positionEncodings": [self.plan.encoding]},
                "textDocument": {"inlineCompletion": {}},
                "workspace": {"configuration": self.rng.random() < 0.5},
                "window": {"workDoneProgress": self.rng.random() < 0.5},
                "experimental": {"mercury": {}},
            },
            "workspaceFolders": [{"uri": self.root.as_uri(), "name": "project"}],
            "initializationOptions": self.settings(),
        }
        if self.rng.random() < 0.1:
            params["initializationOptions"]["editorPluginInfo"] = {"name": "x", "version": "1"}
        yield self.say({"id": "initialize", "method": "initialize", "params": params})
        yield Wait()
        self.oracle.initialized = True
        yield self.say({"method": "initialized", "params": {}})
        for uri in self.uris[:4]:
            yield self.say(self.opening(uri, "".join(hostile.CODE[:5])))

    def anything(self) -> Iterator[Step]:
        """The step of the moment."""
        chosen = self.rng.choices(list(KINDS), list(KINDS.values()))[0]
        yield from chosen(self)

    def check(self) -> Iterator[Step]:
        """First whatever became doubtful is closed, as an editor would in despair."""
        for uri in self.oracle.doubtful:
            yield self.say({"method": "textDocument/didClose", "params": {"textDocument": {"uri": uri}}})
        yield Check({u: d for u, d in self.oracle.digests().items() if u not in self.hidden}, self.hidden)

    def end(self) -> Step:
        return End(self.rng.choices(("exit", "exit at once", "end of input", "end within a message"), (6, 1, 2, 2))[0])

    # What there is to say

    def changes(self) -> Iterator[Step]:
        yield self.say(self.changing(self.some()))

    def requests(self) -> Iterator[Step]:
        yield self.say(self.asking())

    def openings(self) -> Iterator[Step]:
        """Twice without a word between, and close before open, too."""
        uri = self.rng.choice((*self.uris, *self.hidden))
        if self.rng.random() < 0.3:
            yield self.say({"method": "textDocument/didClose", "params": {"textDocument": {"uri": uri}}})
        else:
            yield self.say(self.opening(uri, self.text_for(uri)))

    def damages(self) -> Iterator[Step]:
        """Never what opens a hidden file: its text would be another file's."""
        uri = self.rng.choice(self.uris)
        opened, changed = (lambda: self.opening(uri, self.text_for(uri))), (lambda: self.changing(uri))
        message = self.rng.choice((opened, changed, changed, self.asking, self.notebook_message, self.telling))()
        yield self.say(hostile.damaged(self.rng, {"jsonrpc": "2.0", **message}))

    def rubbish(self) -> Iterator[Step]:
        yield self.say_bytes(hostile.rubbish(self.rng))

    def unknown(self) -> Iterator[Step]:
        method = self.rng.choice(UNKNOWN)
        yield self.say(self.request(method, hostile.value(self.rng)))

    def cancels(self) -> Iterator[Step]:
        """Of what runs, what was answered long ago, and what never was."""
        known = self._asked[-3:] or [1]
        id = self.rng.choice((*known, 10**9, "never", -1))
        yield self.say({"method": "$/cancelRequest", "params": {"id": id}})

    def notebooks(self) -> Iterator[Step]:
        yield self.say(self.notebook_message())

    def tellings(self) -> Iterator[Step]:
        yield self.say(self.telling())

    def files(self) -> Iterator[Step]:
        touched = hostile.file(self.rng, strict=self.plan.strict)
        yield touched
        change = {"uri": (self.root / touched.path).as_uri(), "type": self.rng.choice((1, 2, 3))}
        yield self.say({"method": "workspace/didChangeWatchedFiles", "params": {"changes": [change]}})

    def bad_headers(self) -> Iterator[Step]:
        huge = self.rng.random() < 0.1
        yield Raw(b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n" if huge else hostile.bad_headers(self.rng))

    def floods(self) -> Iterator[Step]:
        if self.rng.random() < 0.02:
            yield Flood(OVER_LIMIT)

    def accepts(self) -> Iterator[Step]:
        yield Accept()

    # Messages

    def opening(self, uri: str, text: str) -> dict[str, Any]:
        return {"method": "textDocument/didOpen", "params": {"textDocument": self.item(uri, text)}}

    def item(self, uri: str, text: str) -> dict[str, Any]:
        language = self.rng.choice(("python", "python", "rust", "markdown", "", "no such language"))
        return {"uri": uri, "languageId": language, "version": self.version(uri), "text": text}

    def changing(self, uri: str) -> dict[str, Any]:
        document = {"uri": uri, "version": self.version(uri)}
        changes = self.some_changes(uri)
        return {"method": "textDocument/didChange", "params": {"textDocument": document, "contentChanges": changes}}

    def some_changes(self, uri: str) -> list[dict[str, Any]]:
        if len(self.oracle.texts.get(uri) or "") > MOST_TEXT:
            return [{"text": self.text_for(uri)}]
        return [self.one_change() for _ in range(self.rng.choices((0, 1, 2, 5), (2, 80, 12, 6))[0])]

    def one_change(self) -> dict[str, Any]:
        typed = hostile.text(self.rng, self.rng.choice((1, 1, 2, 8)))
        if self.rng.random() < 0.06:
            return {"text": typed * 5}
        start = self.position()
        end = start if self.rng.random() < 0.5 else self.position()
        if self.rng.random() < 0.6 and end != start:
            end = {"line": start["line"], "character": start["character"] + self.rng.randrange(8)}
        return {"range": {"start": start, "end": end}, "text": typed}

    def position(self) -> dict[str, int]:
        """Mostly near the beginning; past every end, too."""
        line = self.rng.choice((0, 0, 1, 2, 3, 5, 8, 12, 20, 40, 2**31 - 1))
        return {"line": line, "character": self.rng.choice((0, 0, 1, 2, 3, 4, 5, 8, 15, 40, 2**31 - 1))}

    def asking(self) -> dict[str, Any]:
        place = {"textDocument": {"uri": self.some()}, "position": self.position()}
        method = self.rng.choices(tuple(ASKED), tuple(ASKED.values()))[0]
        params: dict[str, Any] = {**place, "context": {"triggerKind": self.rng.choice((1, 2))}}
        if method == "mercury/status":
            params = {"digests": self.rng.random() < 0.1}
        elif method == "mercury/snooze":
            params = {"minutes": self.rng.choice((0, 0, 0.0001, -1, 1e300))}
        elif method == "workspace/executeCommand":
            params = {"command": self.rng.choice(COMMANDS), "arguments": [hostile.value(self.rng)]}
        elif self.rng.random() < 0.2:
            params["partialResultToken"] = self.rng.choice(("drafts", 7))
        return self.request(method, params)

    def telling(self) -> dict[str, Any]:
        """Notifications that change no text."""
        uri = self.some()
        item = {"command": {"command": "", "arguments": [self.rng.choice(("x", "", "offer"))]}}
        diagnostic = {"range": {"start": self.position(), "end": self.position()}, "message": "m", "tags": [1]}
        renamed = {"oldUri": uri, "newUri": self.rng.choice(self.uris)}
        return self.rng.choice(
            (
                {"method": "textDocument/didSave", "params": {"textDocument": {"uri": uri}}},
                {"method": "textDocument/didFocus", "params": {"textDocument": {"uri": uri}}},
                {"method": "textDocument/didShowCompletion", "params": {"item": item}},
                {"method": "textDocument/didPartiallyAcceptCompletion", "params": {"item": item, "acceptedLength": 2}},
                {"method": "textDocument/didShowInlineEdit", "params": {"item": item}},
                {"method": "mercury/didAccept", "params": {"id": "x"}},
                {"method": "mercury/didReject", "params": {"id": "x"}},
                {
                    "method": "mercury/didChangeDiagnostics",
                    "params": {"textDocument": {"uri": uri}, "diagnostics": [diagnostic]},
                },
                {"method": "workspace/didRenameFiles", "params": {"files": [renamed]}},
                {"method": "workspace/didChangeConfiguration", "params": {"settings": self.settings()}},
                {"method": "workspace/didChangeConfiguration", "params": {"settings": hostile.value(self.rng)}},
            )
        )

    def settings(self) -> dict[str, Any]:
        """Never what hides a file, or reads one."""
        valid = {
            "suggest": {"delayMs": self.rng.choice((0, 1, 5)), "adapt": False, "minimumProbability": 0.0},
            "context": {"snippets": self.rng.choice((0, 24)), "workspaceDefinitions": self.rng.random() < 0.9},
        }
        wrong = {"suggest": {"delayMs": hostile.value(self.rng)}, "engine": {"effort": hostile.value(self.rng)}}
        chosen = self.rng.choice(
            (valid, valid, valid, wrong, {"no": {"such": 1}}, {"suggest": hostile.value(self.rng)})
        )
        return self.rng.choice(({"mercury": chosen}, chosen))

    def notebook_message(self) -> dict[str, Any]:
        self._cells += 1
        uri, old = (f"{self.notebook}#cell{number}" for number in (self._cells, self.rng.randint(1, self._cells)))
        version = {"uri": self.notebook, "version": self.version(self.notebook)}
        cell = {"kind": self.rng.choice((1, 2)), "document": uri}
        kind = self.rng.randrange(6)
        if kind == 0:
            notebook = {**version, "notebookType": "jupyter-notebook", "cells": [cell]}
            items = [self.item(uri, hostile.text(self.rng))]
            return self.notebook_of("didOpen", {"notebookDocument": notebook, "cellTextDocuments": items})
        if kind == 1:
            named = [{"uri": old}]
            gone = {"notebookDocument": {"uri": self.notebook}, "cellTextDocuments": named}
            return self.notebook_of("didClose", gone)
        if kind == 2:
            array = {"start": self.rng.choice((0, 1, 99)), "deleteCount": self.rng.choice((0, 1, 99)), "cells": [cell]}
            structure = {
                "array": array,
                "didOpen": [self.item(uri, hostile.text(self.rng))],
                "didClose": [{"uri": old}],
            }
            return self.notebook_of(
                "didChange", {"notebookDocument": version, "change": {"cells": {"structure": structure}}}
            )
        content = [{"document": {"uri": old, "version": self.version(old)}, "changes": self.some_changes(old)}]
        return self.notebook_of(
            "didChange", {"notebookDocument": version, "change": {"cells": {"textContent": content}}}
        )

    def notebook_of(self, event: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"method": f"notebookDocument/{event}", "params": params}

    def request(self, method: str, params: Any) -> dict[str, Any]:
        return {"id": self.next_id(), "method": method, "params": params}

    def next_id(self) -> int | str:
        """Numbers, negative and large ones, texts of any kind; at times one that is still in use."""
        self._id += 1
        if self._asked and self.rng.random() < 0.02:
            return self._asked[-1]
        number = self._id
        ids = (number, number, number, str(number), -number, 2**40 + number, f"\ud800{number}", f"é\0{number}")
        self._asked.append(self.rng.choice(ids))
        return self._asked[-1]

    def version(self, uri: str) -> int:
        """Mostly the next one; the same again, one before, or far away, too."""
        usual = self._versions.get(uri, 0) + 1
        self._versions[uri] = usual
        return self.rng.choices((usual, usual - 1, 0, -5, 2**31 - 1), (95, 2, 1, 1, 1))[0]

    def some(self) -> str:
        known = list(self.oracle.texts)
        return self.rng.choice(known if known and self.rng.random() < 0.85 else [*self.uris, *self.hidden])

    def text_for(self, uri: str) -> str:
        if uri in self.hidden:
            return hostile.hidden_text(uri, strict=self.plan.strict)
        return hostile.text(self.rng, self.rng.choice((3, 20, 60)))

    def say(self, message: dict[str, Any]) -> Say:
        escaped = self.rng.random() < 0.5
        try:
            body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=escaped).encode()
        except UnicodeEncodeError:  # a lone surrogate, which only an escape can carry
            body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        return self.say_bytes(body)

    def say_bytes(self, body: bytes) -> Say:
        self.oracle.receive(body)
        odd = self.rng.random() < 0.05
        return Say(body, hostile.headers(self.rng, len(body)) if odd else b"")


ASKED = {
    "textDocument/inlineCompletion": 40,
    "mercury/nextEdit": 8,
    "textDocument/copilotInlineEdit": 4,
    "mercury/why": 8,
    "mercury/status": 8,
    "mercury/snooze": 2,
    "workspace/executeCommand": 6,
    "signIn": 2,
    "checkStatus": 2,
}
KINDS: dict[Callable[[ScriptedSession], Iterator[Step]], int] = {
    ScriptedSession.changes: 400,
    ScriptedSession.requests: 180,
    ScriptedSession.openings: 40,
    ScriptedSession.damages: 150,
    ScriptedSession.rubbish: 50,
    ScriptedSession.unknown: 15,
    ScriptedSession.cancels: 40,
    ScriptedSession.notebooks: 40,
    ScriptedSession.tellings: 40,
    ScriptedSession.files: 15,
    ScriptedSession.bad_headers: 15,
    ScriptedSession.floods: 8,
    ScriptedSession.accepts: 10,
}
