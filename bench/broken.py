"""Edits that break something elsewhere, judged by another language server: is the user led there, and how soon?

    python -m bench.broken PROJECT … [--edits N] [--seed S] [--judge COMMAND --suffix .ts]

Edits are drawn from projects (folders): a parameter more, another type of a parameter or of what is returned, a
function removed, an attribute renamed. Another server says what each breaks, also while it is half written
(basedpyright for Python; for TypeScript one that passes requests on to tsserver, `typescript-language-server --stdio`),
and our server is told of it as by a plugin of ours, which asks again 0.1 s after it hears that something is broken.

`led`: to a line that is broken, within a second of the report; `late`: after that. `mended`: by a text that leaves
fewer errors. `wrong`: a text that does not, or a line that is not broken. `repeated`: a text that does not, offered by
rules before anything was reported. `silent`: nothing. `unfinished`: led somewhere while the edit was half written. The
last line is JSON.
"""

import argparse
import asyncio
import json
import random
import re
import shlex
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct
from tree_sitter import Node, QueryCursor

from bench.harness.client import Client, running
from bench.judged import JUDGE, PREFIX, PYTHON, Texts, read_texts
from bench.replay.play import engine_server
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.edits import TextEdit, applied
from mercury_ls.code.languages import query

MOST_FILES = 6
"""That mention the name, beside the edited one."""
PAUSE_SECONDS = 0.1
SOON_SECONDS, PATIENCE_SECONDS = 1.0, 5.0
KINDS = ("parameter", "type", "result", "removed", "attribute")
VERDICTS = ("led", "late", "mended", "repeated", "wrong", "silent", "unfinished")

Errors = dict[str, list[dict[str, Any]]]
"""By the path."""


class Manner(Struct, frozen=True):
    """How a language is changed: a query for its functions and declared attributes, a parameter more, and types that
    nothing else has."""

    query: str
    parameter: str
    type: str
    result: str


MANNERS = {
    PYTHON: Manner(
        query="""
            (function_definition name: (_) @name parameters: (_) @parameters return_type: (type (_) @result)?) @function
            (class_definition body: (block (expression_statement (assignment left: (identifier) @attribute type: (_)))))
        """,
        parameter=f", {PREFIX}flag: int",
        type="bytes",
        result="complex",
    ),
    ".ts": Manner(
        query="""
            (function_declaration name: (_) @name parameters: (_) @parameters
                return_type: (type_annotation (_) @result)?) @function
            (method_definition name: (_) @name parameters: (_) @parameters
                return_type: (type_annotation (_) @result)?) @function
            (property_signature name: (property_identifier) @attribute type: (_))
        """,
        parameter=f", {PREFIX}flag: number",
        type="symbol",
        result="symbol",
    ),
}
UNUSUAL = ("*", "/", "#", "...")
"""How parameters begin that take several arguments, marks among parameters, and comments."""


class Breaking(Struct, frozen=True):
    """`[start, end)` of a file becomes `text`, which changes what `name` declares."""

    kind: str
    path: str
    name: str
    start: int
    end: int
    text: str

    def half(self) -> "Breaking":
        return Breaking(self.kind, self.path, self.name, self.start, self.end, self.text[: len(self.text) // 2])


class BrokenCase(Struct, frozen=True):
    edit: Breaking
    verdict: str
    seconds: float
    is_unfinished: bool
    texts: tuple[str, ...] = ()
    """What was offered, other than to go somewhere."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("projects", nargs="+", type=Path, metavar="PROJECT")
    parser.add_argument("--edits", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--judge", default=shlex.join(JUDGE), metavar="COMMAND")
    parser.add_argument("--suffix", choices=MANNERS, default=PYTHON)
    given = parser.parse_args()
    cases: list[BrokenCase] = []
    for project in given.projects:
        most, command = given.edits // len(given.projects), shlex.split(given.judge)
        cases += asyncio.run(_judged(project, given.suffix, command, most, random.Random(given.seed)))
    _report(cases)


def _report(cases: Sequence[BrokenCase]) -> None:
    table: dict[str, dict[str, float]] = {}
    for kind in (*KINDS, "all"):
        chosen = [case for case in cases if kind in (case.edit.kind, "all")]
        counts = Counter(case.verdict for case in chosen)
        counts["unfinished"] = sum(case.is_unfinished for case in chosen)
        table[kind] = {"edits": len(chosen)} | {verdict: counts[verdict] for verdict in VERDICTS}
    print(f"{'':12}" + "".join(f"{name:>12}" for name in table["all"]))
    for kind, row in table.items():
        print(f"{kind:12}" + "".join(f"{count:12}" for count in row.values()))
    seconds = sorted(case.seconds for case in cases if case.verdict in ("led", "late"))
    if len(seconds) > 1:
        table["all"]["median_seconds"] = round(statistics.median(seconds), 2)
        table["all"]["p90_seconds"] = round(statistics.quantiles(seconds, n=10)[-1], 2)
    print(json.dumps(table))


async def _judged(
    project: Path, suffix: str, command: Sequence[str], most: int, draw: random.Random
) -> list[BrokenCase]:
    texts = read_texts(project, suffix)
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve() / project.name
        (root / ".git").mkdir(parents=True)
        for path, file in texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(file.text, encoding="ascii")
        with engine_server("fake") as (_, environment):
            async with running(root, command=command) as judge:
                for path, file in texts.items():
                    judge.open((root / path).as_uri(), file.language, file.text)
                errors_of = _pulled if suffix == PYTHON else _passed_on
                broken = _BrokenProject(root, texts, judge, errors_of, environment)
                return await _first(most, broken, _drawn(texts, MANNERS[suffix], draw))


async def _first(most: int, project: "_BrokenProject", edits: Iterable[Breaking]) -> list[BrokenCase]:
    cases: list[BrokenCase] = []
    for edit in edits:
        if (case := await project.judged(edit)) is not None:
            line = f"{case.verdict:8} {case.seconds:5.2f} s  {edit.kind:10} {edit.name} in {edit.path}"
            print(" | ".join([line, *case.texts]), flush=True)
            cases.append(case)
        if len(cases) == most:
            break
    return cases


async def _pulled(judge: Client, uri: str) -> list[dict[str, Any]]:
    answer = await judge.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
    return [item for item in answer["items"] if item["severity"] == 1]


async def _passed_on(judge: Client, uri: str) -> list[dict[str, Any]]:
    """By tsserver, whose lines and columns begin with one."""
    errors = []
    for request in ("syntacticDiagnosticsSync", "semanticDiagnosticsSync"):
        arguments = [request, {"file": uri.removeprefix("file://")}]
        asked = {"command": "typescript.tsserverRequest", "arguments": arguments}
        answer = await judge.request("workspace/executeCommand", asked)
        errors += [item for item in answer["body"] if item["category"] == "error"]
    return [{"range": _range(error), "severity": 1, "message": error["text"]} for error in errors]


def _range(error: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    sides = {side: error[side] for side in ("start", "end")}
    return {side: {"line": at["line"] - 1, "character": at["offset"] - 1} for side, at in sides.items()}


class _BrokenProject(Struct, frozen=True):
    """The files of a project, the other server and how it tells the errors of a file, and the environment of ours."""

    root: Path
    texts: Texts
    judge: Client
    errors_of: Callable[[Client, str], Awaitable[list[dict[str, Any]]]]
    environment: dict[str, str]

    async def judged(self, edit: Breaking) -> BrokenCase | None:
        """None where the edit breaks nothing elsewhere, or is wrong itself."""
        files = self._concerned(edit)
        before = await self._errors(files)
        half = await self._errors_after(edit.half(), files) if edit.text else before
        after = await self._errors_after(edit, files)
        broken = {path: _new_lines(after[path], before[path]) for path in files}
        edited = self.texts[edit.path].line_of(edit.start)
        if not any(broken.values()) or edited in broken[edit.path]:
            return None
        async with running(self.root, **self.environment) as ours:
            for path in files:
                ours.open(self._uri(path), self.texts[path].language, self.texts[path].text)
                self._tell(ours, path, before)
            is_unfinished = bool(edit.text) and await self._leads_while_unfinished(ours, edit, half)
            self._write(ours, edit)
            offer, seconds = await self._asked(ours, edit, typing=False), 0.0
            is_early = offer is not None and (offer["kind"] != "diagnostic" or self._is_broken(offer, broken))
            if not is_early:
                offer, seconds = await self._led(ours, edit, after)
        verdict = await self._verdict(edit, offer, broken, after)
        if verdict == "led" and seconds > SOON_SECONDS:
            verdict = "late"
        if verdict == "wrong" and is_early:
            verdict = "repeated"
        texts = () if offer is None or offer["kind"] == "diagnostic" else tuple(map(_told, offer["edits"]))
        return BrokenCase(edit, verdict, seconds, is_unfinished, texts)

    def _concerned(self, edit: Breaking) -> list[str]:
        named = re.compile(rf"\b{re.escape(edit.name)}\b")
        others = [path for path, file in self.texts.items() if path != edit.path and named.search(file.text)]
        return [edit.path, *others[:MOST_FILES]]

    async def _leads_while_unfinished(self, ours: Client, edit: Breaking, errors: Errors) -> bool:
        self._write(ours, edit.half())
        for path in errors:
            self._tell(ours, path, errors)
        offer = await self._asked(ours, edit.half(), typing=True)
        return offer is not None and offer["kind"] == "diagnostic"

    async def _led(self, ours: Client, edit: Breaking, errors: Errors) -> tuple[dict[str, Any] | None, float]:
        began = time.perf_counter()
        for path in errors:
            self._tell(ours, path, errors)
        while (left := began + PATIENCE_SECONDS - time.perf_counter()) > 0:
            try:
                async with asyncio.timeout(left):
                    while (await ours.notifications.get())["method"] != "mercury/didChangePlaces":
                        pass
            except TimeoutError:
                break
            await asyncio.sleep(PAUSE_SECONDS)
            if offer := await self._asked(ours, edit, typing=False):
                return offer, time.perf_counter() - began
        return None, PATIENCE_SECONDS

    async def _asked(self, ours: Client, edit: Breaking, *, typing: bool) -> dict[str, Any] | None:
        file, end = self.texts[edit.path], edit.start + len(edit.text)
        after = applied(file.text, [TextEdit(edit.start, edit.end, edit.text)])
        line = after.count("\n", 0, end)
        position = {"line": line, "character": end - (after.rfind("\n", 0, end) + 1)}
        context = {"triggerKind": 2, "closedFiles": True, "typing": typing, "places": True}
        document = {"uri": self._uri(edit.path), "version": ours.versions[self._uri(edit.path)]}
        params = {"textDocument": document, "position": position, "context": context}
        return await ours.request("mercury/nextEdit", params)

    def _tell(self, ours: Client, path: str, errors: Errors) -> None:
        document = {"uri": self._uri(path), "version": ours.versions[self._uri(path)]}
        ours.notify("mercury/didChangeDiagnostics", {"textDocument": document, "diagnostics": errors[path]})

    def _write(self, client: Client, edit: Breaking) -> None:
        """Whatever was written there before, as in the middle of the same edit."""
        text = applied(self.texts[edit.path].text, [TextEdit(edit.start, edit.end, edit.text)])
        client.change(self._uri(edit.path), [{"text": text}])

    async def _errors_after(self, edit: Breaking, files: Sequence[str]) -> Errors:
        self._write(self.judge, edit)
        errors = await self._errors(files)
        self.judge.change(self._uri(edit.path), [{"text": self.texts[edit.path].text}])
        return errors

    async def _errors(self, files: Sequence[str]) -> Errors:
        return {path: await self.errors_of(self.judge, self._uri(path)) for path in files}

    async def _verdict(
        self, edit: Breaking, offer: dict[str, Any] | None, broken: Mapping[str, set[int]], after: Errors
    ) -> str:
        if offer is None:
            return "silent"
        if offer["kind"] != "diagnostic":
            return "mended" if await self._count_with(edit, offer) < sum(map(len, after.values())) else "wrong"
        return "led" if self._is_broken(offer, broken) else "wrong"

    def _is_broken(self, offer: dict[str, Any], broken: Mapping[str, set[int]]) -> bool:
        place = offer["edits"][0]
        lines = {self._uri(path): lines for path, lines in broken.items()}.get(place["textDocument"]["uri"], ())
        return place["range"]["start"]["line"] in lines

    async def _count_with(self, edit: Breaking, offer: dict[str, Any]) -> int:
        """The number of errors once the offer is accepted as well."""
        self._write(self.judge, edit)
        files = self._concerned(edit)
        for path in files:
            made = [change for change in offer["edits"] if change["textDocument"]["uri"] == self._uri(path)]
            changes = [{"range": change["range"], "text": change["newText"]} for change in made]
            changes.sort(key=lambda change: tuple(change["range"]["start"].values()), reverse=True)
            if changes:
                self.judge.change(self._uri(path), changes)
        count = sum(map(len, (await self._errors(files)).values()))
        for path in files:
            self.judge.change(self._uri(path), [{"text": self.texts[path].text}])
        return count

    def _uri(self, path: str) -> str:
        return (self.root / path).as_uri()


def _told(edit: Mapping[str, Any]) -> str:
    line = edit["range"]["start"]["line"] + 1
    return f"{edit['textDocument']['uri'].rpartition('/')[2]}:{line} {edit['newText']!r}"


def _new_lines(after: Iterable[dict[str, Any]], before: Iterable[dict[str, Any]]) -> set[int]:
    known = {error["message"] for error in before}
    return {error["range"]["start"]["line"] for error in after if error["message"] not in known}


def _drawn(texts: Texts, manner: Manner, draw: random.Random) -> Iterator[Breaking]:
    """Of each kind in turn."""
    edits = [edit for file in texts.values() for edit in _breaking_edits(file, manner)]
    draw.shuffle(edits)
    kinds = ([edit for edit in edits if edit.kind == kind] for kind in KINDS)
    for one_of_each in zip_longest(*kinds):
        yield from filter(None, one_of_each)


def _breaking_edits(file: Snapshot, manner: Manner) -> Iterator[Breaking]:
    if file.tree is None:
        return
    for _, captures in QueryCursor(query(file.written_in, manner.query)).matches(file.tree.root_node):
        nodes = {name: nodes[0] for name, nodes in captures.items()}
        if attribute := nodes.get("attribute"):
            yield _replaced("attribute", file, _text(attribute), attribute, PREFIX + _text(attribute))
        else:
            yield from _of_function(file, manner, **nodes)


def _of_function(
    file: Snapshot, manner: Manner, name: Node, parameters: Node, function: Node, result: Node | None = None
) -> Iterator[Breaking]:
    named, listed = _text(name), parameters.named_children
    is_decorated = function.parent is not None and function.parent.type == "decorated_definition"
    if is_decorated or named.startswith("__") or not listed or any(_text(node).startswith(UNUSUAL) for node in listed):
        return
    if not any(node.type == "optional_parameter" or node.child_by_field_name("value") for node in listed):
        last = listed[-1].end_byte
        yield Breaking("parameter", file.path, named, last, last, manner.parameter)
    for node in listed:
        if declared := node.child_by_field_name("type"):
            yield _replaced("type", file, named, declared.named_children[-1], manner.type)
    if result:
        yield _replaced("result", file, named, result, manner.result)
    lines = function.start_point.row, function.end_point.row
    yield Breaking("removed", file.path, named, file.line_start(lines[0]), file.line_end(lines[1]) + 1, "")


def _replaced(kind: str, file: Snapshot, name: str, node: Node, text: str) -> Breaking:
    """Bytes of ASCII are offsets."""
    return Breaking(kind, file.path, name, node.start_byte, node.end_byte, text)


def _text(node: Node) -> str:
    return (node.text or b"").decode()


if __name__ == "__main__":
    main()
