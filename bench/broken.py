"""Edits that break something elsewhere, judged by another language server: is the user led there, and how soon?

    python -m bench.broken PROJECT … [--edits N] [--seed S]

Edits are drawn from Python projects (folders): a parameter more, another type of a parameter or of what is returned, a
function removed, an attribute renamed. basedpyright says what each breaks, also while it is half written, and our
server is told of it as by a plugin of ours, which asks again 0.1 s after it hears that something is broken.

`led`: to a line that is broken, within a second of the report; `late`: after that. `mended`: by a text that leaves
fewer errors. `wrong`: a text that does not, or a line that is not broken. `repeated`: the same, offered by rules before
anything was reported. `silent`: nothing. `unfinished`: led somewhere while the edit was half written. The last line is
JSON.
"""

import argparse
import ast
import asyncio
import json
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from bench.harness.client import Client, running
from bench.judged import JUDGE, PREFIX, PYTHON, Texts, read_texts
from bench.replay.play import engine_server
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.edits import TextEdit, applied

MOST_FILES = 6
"""That mention the name, beside the edited one."""
PAUSE_SECONDS = 0.1
SOON_SECONDS, PATIENCE_SECONDS = 1.0, 5.0
KINDS = ("parameter", "type", "result", "removed", "attribute")
VERDICTS = ("led", "late", "mended", "repeated", "wrong", "silent", "unfinished")

Errors = dict[str, list[dict[str, Any]]]
"""By the path."""


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("projects", nargs="+", type=Path, metavar="PROJECT")
    parser.add_argument("--edits", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    cases: list[BrokenCase] = []
    for project in given.projects:
        most = given.edits // len(given.projects)
        cases += asyncio.run(_judged(project, most, random.Random(given.seed)))
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


async def _judged(project: Path, most: int, draw: random.Random) -> list[BrokenCase]:
    texts = read_texts(project, PYTHON)
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve() / project.name
        (root / ".git").mkdir(parents=True)
        for path, file in texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(file.text, encoding="ascii")
        with engine_server("fake") as (_, environment):
            async with running(root, command=JUDGE) as judge:
                for path, file in texts.items():
                    judge.open((root / path).as_uri(), file.language, file.text)
                return await _first(most, _BrokenProject(root, texts, judge, environment), _drawn(texts, draw))


async def _first(most: int, project: "_BrokenProject", edits: Iterable[Breaking]) -> list[BrokenCase]:
    cases: list[BrokenCase] = []
    for edit in edits:
        if (case := await project.judged(edit)) is not None:
            print(f"{case.verdict:8} {case.seconds:5.2f} s  {edit.kind:10} {edit.name} in {edit.path}", flush=True)
            cases.append(case)
        if len(cases) == most:
            break
    return cases


class _BrokenProject(Struct, frozen=True):
    """The files of a project, the other server, and the environment of ours."""

    root: Path
    texts: Texts
    judge: Client
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
            is_early = offer is not None
            if offer is None:
                offer, seconds = await self._led(ours, edit, after)
        verdict = await self._verdict(edit, offer, broken, after)
        if verdict == "led" and seconds > SOON_SECONDS:
            verdict = "late"
        if verdict == "wrong" and is_early:
            verdict = "repeated"
        return BrokenCase(edit, verdict, seconds, is_unfinished)

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
        return {path: await self._errors_of(path) for path in files}

    async def _errors_of(self, path: str) -> list[dict[str, Any]]:
        answer = await self.judge.request("textDocument/diagnostic", {"textDocument": {"uri": self._uri(path)}})
        return [item for item in answer["items"] if item["severity"] == 1]

    async def _verdict(
        self, edit: Breaking, offer: dict[str, Any] | None, broken: Mapping[str, set[int]], after: Errors
    ) -> str:
        if offer is None:
            return "silent"
        if offer["kind"] != "diagnostic":
            return "mended" if await self._count_with(edit, offer) < sum(map(len, after.values())) else "wrong"
        place = offer["edits"][0]
        lines = {self._uri(path): lines for path, lines in broken.items()}[place["textDocument"]["uri"]]
        return "led" if place["range"]["start"]["line"] in lines else "wrong"

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


def _new_lines(after: Iterable[dict[str, Any]], before: Iterable[dict[str, Any]]) -> set[int]:
    known = {error["message"] for error in before}
    return {error["range"]["start"]["line"] for error in after if error["message"] not in known}


def _drawn(texts: Texts, draw: random.Random) -> Iterator[Breaking]:
    """Of each kind in turn."""
    edits = [edit for file in texts.values() for edit in _breaking_edits(file)]
    draw.shuffle(edits)
    kinds = ([edit for edit in edits if edit.kind == kind] for kind in KINDS)
    for one_of_each in zip_longest(*kinds):
        yield from filter(None, one_of_each)


def _breaking_edits(file: Snapshot) -> Iterator[Breaking]:
    tree = ast.parse(file.text)
    for scope in ast.walk(tree):
        for node in ast.iter_child_nodes(scope):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list:
                yield from _of_function(file, node)
            elif isinstance(node, ast.AnnAssign) and isinstance(scope, ast.ClassDef):
                yield from _of_attribute(file, node.target)


def _of_attribute(file: Snapshot, target: ast.expr) -> Iterator[Breaking]:
    if isinstance(target, ast.Name):
        yield Breaking("attribute", file.path, target.id, *_span(file, target), PREFIX + target.id)


def _of_function(file: Snapshot, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Breaking]:
    given = node.args
    if node.name.startswith("__") or given.vararg or given.kwarg or given.kwonlyargs or not given.args:
        return
    last = max(_span(file, part)[1] for part in (*given.args, *given.defaults))
    if not given.defaults:
        yield Breaking("parameter", file.path, node.name, last, last, f", {PREFIX}flag: int")
    for parameter in given.args:
        if parameter.annotation:
            yield Breaking("type", file.path, node.name, *_span(file, parameter.annotation), "bytes")
    if node.returns:
        yield Breaking("result", file.path, node.name, *_span(file, node.returns), "complex")
    first, stop = node.lineno - 1, node.end_lineno or node.lineno
    yield Breaking("removed", file.path, node.name, file.line_start(first), file.line_end(stop - 1) + 1, "")


def _span(file: Snapshot, node: ast.expr | ast.arg) -> tuple[int, int]:
    """Columns of ASCII are offsets."""
    end_line, end_column = (node.end_lineno or node.lineno) - 1, node.end_col_offset or 0
    return file.line_start(node.lineno - 1) + node.col_offset, file.line_start(end_line) + end_column


if __name__ == "__main__":
    main()
