"""Renames and parameter changes in projects, judged by another language server.

    python -m bench.judged PROJECT … [--renames N] [--parameters N] [--seed S] [--judge COMMAND --suffix .ts]

Declarations are drawn from the projects (folders), changed through the real server as a user would, and what it offers
is compared: a rename with the other server's (basedpyright's for Python), in Python a changed parameter list with every
call that it finds, whose new arguments Python's parser tells. Both see the ASCII files alone.

`complete`: everything that was due and nothing else. `said`: less, with a note. `silent`: nothing, with a reason.
`unsaid`: less, and neither. `beyond`: all, and more than the other server knows, which somebody has to read. `wrong`: a
call with other arguments than it needs. The last line is JSON.
"""

import argparse
import ast
import asyncio
import json
import random
import re
import shlex
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from msgspec import Struct

from bench.harness.client import Client, RequestError, running
from bench.replay.play import engine_server
from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.code.edits import TextEdit, applied, is_word
from mercury_ls.code.languages import find

JUDGE = (str(Path(sys.executable).with_name("basedpyright-langserver")), "--stdio")
PYTHON = ".py"
IDENTIFIER = re.compile(r"\b[A-Za-z_]\w{2,}\b")
COLUMNS = "utf-16"
PREFIX = "fresh_"
PATIENCE_SECONDS = 30.0
UNREAD = "still being indexed"
NOTHING = "no rule knows what follows from the last edits"
LARGEST = 60_000
VERDICTS = ("complete", "said", "unsaid", "beyond", "wrong", "silent")

T = TypeVar("T")

Texts = dict[str, Snapshot]
"""By the path in the project, before anything was changed."""
Place = tuple[str, int]
"""A path and an offset."""


class Declared(Struct, frozen=True):
    """A name at an offset, and what becomes of what it declares."""

    path: str
    offset: int
    name: str
    kind: str


class Change(Struct, frozen=True):
    """What the user does: `[start, end)` of a file becomes `text`. `moved` says which argument of each call goes where:
    its old index for each that is left; `names` are those of the parameters before."""

    declared: Declared
    start: int
    end: int
    text: str
    names: tuple[str, ...] = ()
    moved: tuple[int, ...] = ()


class Judged(Struct, frozen=True):
    project: str
    kind: str
    name: str
    path: str
    verdict: str
    detail: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("projects", nargs="+", type=Path, metavar="PROJECT")
    parser.add_argument("--renames", type=int, default=100)
    parser.add_argument("--parameters", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--judge", default=shlex.join(JUDGE), metavar="COMMAND")
    parser.add_argument("--suffix", default=PYTHON)
    given = parser.parse_args()
    share = len(given.projects)
    judged: list[Judged] = []
    for project in given.projects:
        counts = given.renames // share, given.parameters // share
        command = shlex.split(given.judge)
        judged += asyncio.run(_judged_project(project, given.suffix, command, *counts, random.Random(given.seed)))
    _report(judged)


def _report(judged: Sequence[Judged]) -> None:
    kinds = sorted({case.kind for case in judged})
    print(f"{'':12}{'n':>5}" + "".join(f"{verdict:>10}" for verdict in VERDICTS))
    for kind in (*kinds, "all"):
        verdicts = Counter(case.verdict for case in judged if kind in (case.kind, "all"))
        print(f"{kind:12}{verdicts.total():5}" + "".join(f"{verdicts[verdict]:10}" for verdict in VERDICTS))
    print(json.dumps({kind: Counter(case.verdict for case in judged if case.kind == kind) for kind in kinds}))


async def _judged_project(
    project: Path, suffix: str, command: Sequence[str], renames: int, parameters: int, draw: random.Random
) -> list[Judged]:
    texts = read_texts(project, suffix)
    declared = [name for file in texts.values() for name in _identifiers(file)]
    in_python = texts.values() if suffix == PYTHON else ()
    changes = [change for file in in_python for change in parameter_changes(file, draw)]
    draw.shuffle(declared)
    draw.shuffle(changes)
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
                judged_project = _JudgedProject(root, texts, judge, environment)
                judged = await _first(renames, declared, judged_project.rename)
                judged += await _first(parameters, changes, judged_project.call_change)
    return judged


class _JudgedProject(Struct, frozen=True):
    """The files of a project, the other server, and the environment of ours."""

    root: Path
    texts: Texts
    judge: Client
    environment: dict[str, str]

    async def rename(self, declared: Declared) -> Judged | None:
        """None where the other tool renames nothing else, or cannot."""
        if not await self._is_declaration(declared):
            return None
        due = await self._renamed(declared)
        if not due:
            return None
        change = Change(declared, declared.offset, declared.offset, PREFIX)
        edits, note = await self._offered(change)
        offered = {(path, _beginning_of_word(self.texts[path], edit.start)) for path, edit in edits}
        missing, more = due - offered, offered - due
        if not offered:
            verdict = "unsaid" if NOTHING in note or not note else "silent"
        elif missing:
            verdict = "said" if note else "unsaid"
        else:
            verdict = "beyond" if more else "complete"
        places = f"missing {self._lines(missing)}; more {self._lines(more)}"
        return self._judged(declared, verdict, f"{len(due & offered)} of {len(due)}; {places}; {note}")

    async def call_change(self, change: Change) -> Judged | None:
        """None where no other call has to change."""
        declared = change.declared
        where = {"context": {"includeDeclaration": False}}
        answer = await self._asked("textDocument/references", declared, where) or ()
        known: set[Place] = set()
        for location in answer:
            if (path := _path_of(self.root, location["uri"])) in self.texts:
                known.add((path, _offset(self.texts[path], location["range"]["start"])))
        due = {}
        for path in {path for path, _ in known}:
            for at, call in calls(self.texts[path].text, declared.name).items():
                if (path, at) in known and (after := arguments_after(call, change)) != _arguments(call):
                    due[path, at] = after
        if not due or declared.path not in self.texts:
            return None
        edits, note = await self._offered(change)
        wrong, missing, beyond = [], [], []
        for path in {path for path, _ in (*due, *edits)}:
            own, text = [edit for edited, edit in edits if edited == path], self.texts[path].text
            after, places = applied(text, own), calls(text, declared.name)
            changed = calls(after, declared.name) if _parsed(after) else {}
            if len(changed) != len(places):
                wrong.append((path, own[0].start))
                continue
            for (at, call), now in zip(places.items(), changed.values(), strict=True):
                expected = due.get((path, at))
                if _arguments(now) == (_arguments(call) if expected is None else expected):
                    continue
                is_unchanged, is_unknown = _arguments(now) == _arguments(call), expected is None
                (missing if is_unchanged else beyond if is_unknown else wrong).append((path, at))
        if wrong:
            verdict = "wrong"
        elif missing:
            unsaid = not note or (not edits and NOTHING in note)
            verdict = "unsaid" if unsaid else "said" if edits else "silent"
        else:
            verdict = "beyond" if beyond else "complete"
        parts = {"wrong": wrong, "missing": missing, "beyond": beyond}
        detail = "; ".join(f"{name} {self._lines(places)}" for name, places in parts.items())
        return self._judged(declared, verdict, f"{len(due)} due; {detail}; {note}")

    def _judged(self, declared: Declared, verdict: str, detail: str) -> Judged:
        return Judged(self.root.name, declared.kind, declared.name, declared.path, verdict, detail)

    def _lines(self, places: Iterable[Place]) -> list[str]:
        return sorted(f"{path}:{self.texts[path].line_of(at) + 1}" for path, at in places)[:4]

    async def _is_declaration(self, declared: Declared) -> bool:
        answer: Any = await self._asked("textDocument/definition", declared, {}) or []
        places = answer if isinstance(answer, list) else [answer]
        own = (self.root / declared.path).as_uri(), _position(self.texts[declared.path], declared.offset)
        return own in [(place["uri"], place["range"]["start"]) for place in places]

    async def _renamed(self, declared: Declared) -> set[Place]:
        """The places, none where any of them is outside."""
        try:
            answer = await self._asked("textDocument/rename", declared, {"newName": PREFIX + declared.name})
        except RequestError:
            return set()
        answer = answer or {}
        changes = dict(answer.get("changes", {}))
        changes |= {change["textDocument"]["uri"]: change["edits"] for change in answer.get("documentChanges", ())}
        places: set[Place] = set()
        for uri, edits in changes.items():
            if (path := _path_of(self.root, uri)) not in self.texts:
                return set()
            file = self.texts[path]
            places |= {(path, _beginning_of_word(file, _offset(file, edit["range"]["start"]))) for edit in edits}
        return places - {(declared.path, declared.offset)}

    async def _asked(self, method: str, declared: Declared, more: dict[str, Any]) -> Any:
        place = _position(self.texts[declared.path], declared.offset)
        document = {"uri": (self.root / declared.path).as_uri()}
        return await self.judge.request(method, {"textDocument": document, "position": place, **more})

    async def _offered(self, change: Change) -> tuple[list[tuple[str, TextEdit]], str]:
        """The edits that the server offers after this change, in the texts before it, and its note or reason."""
        path = change.declared.path
        file, uri, begin = self.texts[path], (self.root / path).as_uri(), change.start + len(change.text)
        after = _snapshot(path, applied(file.text, [TextEdit(change.start, change.end, change.text)]))
        async with running(self.root, **self.environment) as client:
            client.open(uri, file.language, file.text)
            replaced = {"start": _position(file, change.start), "end": _position(file, change.end)}
            client.change(uri, [{"range": replaced, "text": change.text[:1]}])
            for at, letter in enumerate(change.text[1:], change.start + 1):
                client.insert(uri, *after.position(at, COLUMNS), letter)
            offer, silence = await _next_edit(client, uri, _position(after, begin))
        if offer is None:
            return [], silence
        edits = []
        for edit in offer["edits"]:
            where = _path_of(self.root, edit["textDocument"]["uri"])
            now = after if where == path else self.texts[where]
            start, end = (_offset(now, edit["range"][side]) for side in ("start", "end"))
            back = begin - change.end if where == path and start >= begin else 0
            edits.append((where, TextEdit(start - back, end - back, edit["newText"])))
        return edits, offer["note"]


async def _first(wanted: int, cases: Sequence[T], judge: Callable[[T], Awaitable[Judged | None]]) -> list[Judged]:
    """As many verdicts; cases that there is nothing to say about are passed over."""
    judged: list[Judged] = []
    for case in cases:
        if len(judged) == wanted:
            break
        if found := await judge(case):
            judged.append(found)
            print(f"{found.verdict:9}{found.path}: {found.kind} {found.name}: {found.detail}", flush=True)
    return judged


def read_texts(project: Path, suffix: str) -> Texts:
    """Columns of ASCII are the same for every tool."""
    texts: Texts = {}
    for path in sorted(project.rglob(f"*{suffix}")):
        name = path.relative_to(project).as_posix()
        if path.is_symlink() or name.startswith(".") or path.stat().st_size > LARGEST:
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        if "\r" not in text and text.isascii() and (suffix != PYTHON or _parsed(text)):
            texts[name] = _snapshot(name, text)
    return texts


def _snapshot(path: str, text: str) -> Snapshot:
    language = find("", path)
    return Document(path, path, language.id if language else "", 1, text).snapshot()


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _identifiers(file: Snapshot) -> Iterator[Declared]:
    for match in IDENTIFIER.finditer(file.text):
        yield Declared(file.path, match.start(), match[0], "renamed")


def parameter_changes(file: Snapshot, draw: random.Random) -> Iterator[Change]:
    """For each function one parameter is removed, or two that stand beside each other are swapped."""
    for scope in ast.walk(ast.parse(file.text)):
        for node in ast.iter_child_nodes(scope):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("__"):
                continue
            given, without_default = node.args, len(node.args.args) - len(node.args.defaults)
            if given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg or node.decorator_list:
                continue
            names = [parameter.arg for parameter in given.args]
            first = 1 if isinstance(scope, ast.ClassDef) else 0
            if len(names) - first < 2 or (first and names[0] not in ("self", "cls")):
                continue
            spans = _spans(file, given)
            kept = list(range(len(names)))
            if draw.random() < 0.5 and without_default - first >= 2:
                left = draw.randrange(first, without_default - 1)
                kept[left], kept[left + 1] = kept[left + 1], kept[left]
            else:
                del kept[draw.randrange(first, len(names))]
            at = file.text.index(node.name, file.text.index("def ", _span(file, node)[0]))
            declared = Declared(file.path, at, node.name, "swapped" if len(kept) == len(names) else "removed")
            moved = tuple(index - first for index in kept if index >= first)
            text = ", ".join(file.text[slice(*spans[index])] for index in kept)
            yield Change(declared, spans[0][0], spans[-1][1], text, tuple(names[first:]), moved)


def _spans(file: Snapshot, given: ast.arguments) -> list[tuple[int, int]]:
    """Of each parameter with its annotation and its default."""
    spans = [_span(file, parameter) for parameter in given.args]
    defaults = [*[None] * (len(spans) - len(given.defaults)), *given.defaults]
    return [(start, _span(file, node)[1] if node else end) for (start, end), node in zip(spans, defaults, strict=True)]


def _span(file: Snapshot, node: ast.AST) -> tuple[int, int]:
    start = file.line_start(node.lineno - 1) + node.col_offset  # pyright: ignore
    return start, file.line_start(node.end_lineno - 1) + node.end_col_offset  # pyright: ignore


def calls(text: str, name: str) -> dict[int, ast.Call]:
    """By the offset of the name that is called, in the order of the text."""
    file, found = _snapshot("", text), {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == name:
            found[_span(file, node.func)[1] - len(name)] = node
    return dict(sorted(found.items()))


def _arguments(call: ast.Call) -> list[str]:
    return [ast.unparse(argument) for argument in (*call.args, *call.keywords)]


def arguments_after(call: ast.Call, change: Change) -> list[str]:
    """What the call has to pass after the change; as it is where it passes more than can be told."""
    given = _arguments(call)
    is_plain = all(not isinstance(argument, ast.Starred) for argument in call.args)
    if not is_plain or any(keyword.arg is None for keyword in call.keywords) or len(call.args) > len(change.names):
        return given
    positional, keywords = given[: len(call.args)], call.keywords
    dropped = {name for index, name in enumerate(change.names) if index not in change.moved}
    kept = [ast.unparse(keyword) for keyword in keywords if keyword.arg not in dropped]
    moved = [index for index in change.moved if index < len(positional)]
    if len(change.moved) == len(change.names) and sorted(change.moved[: len(moved)]) != list(range(len(moved))):
        return given
    return [positional[index] for index in moved] + kept


async def _next_edit(client: Client, uri: str, place: dict[str, int]) -> tuple[dict[str, Any] | None, str]:
    until, pause = asyncio.get_running_loop().time() + PATIENCE_SECONDS, 0.05
    while True:
        await asyncio.sleep(pause)
        pause = 1.0  # while somebody asks all the time, the project is not read
        document = {"uri": uri, "version": client.versions[uri]}
        context = {"triggerKind": 2, "closedFiles": True}
        asked = {"textDocument": document, "position": place, "context": context, "partialResultToken": "why"}
        offer = await client.request("mercury/nextEdit", asked)
        silence = ""
        while not client.notifications.empty():
            value = client.notifications.get_nowait()["params"].get("value")
            silence = value.get("silence", silence) if isinstance(value, dict) else silence
        told = offer["note"] if offer else silence
        if UNREAD not in told or asyncio.get_running_loop().time() > until:
            return offer, told


def _beginning_of_word(file: Snapshot, at: int) -> int:
    while at and is_word(file.text[at - 1]):
        at -= 1
    return at


def _path_of(root: Path, uri: str) -> str:
    return uri.removeprefix(root.as_uri() + "/")


def _position(file: Snapshot, at: int) -> dict[str, int]:
    return dict(zip(("line", "character"), file.position(at, COLUMNS), strict=True))


def _offset(file: Snapshot, place: Mapping[str, int]) -> int:
    return file.offset(place["line"], place["character"], COLUMNS)


if __name__ == "__main__":
    main()
