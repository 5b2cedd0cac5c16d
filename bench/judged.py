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
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from msgspec import Struct

from bench.harness.client import Client, RequestError, running
from bench.replay.play import engine_server

JUDGE = (str(Path(sys.executable).with_name("basedpyright-langserver")), "--stdio")
PYTHON = ".py"
LANGUAGES = {".py": "python", ".rs": "rust", ".ts": "typescript"}
IDENTIFIER = re.compile(r"\b[A-Za-z_]\w{2,}\b")
PREFIX = "fresh_"
PATIENCE_SECONDS = 30.0
UNREAD = "still being indexed"
LINE_FEED = "\n"
NOTHING = "nothing follows from the last edits"
LARGEST = 60_000
VERDICTS = ("complete", "said", "unsaid", "beyond", "wrong", "silent")

T = TypeVar("T")

Texts = dict[str, str]
"""By the path in the project."""
Place = tuple[str, int]
"""A path, and an offset in its text before anything was changed."""


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
    texts = _read(project, suffix)
    declared = [name for path, text in texts.items() for name in _identifiers(path, text)]
    in_python = texts if suffix == PYTHON else {}
    changes = [change for path, text in in_python.items() for change in parameter_changes(path, text, draw)]
    draw.shuffle(declared)
    draw.shuffle(changes)
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve() / project.name
        (root / ".git").mkdir(parents=True)
        for path, text in texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="ascii")
        with engine_server("fake") as (_, environment):
            async with running(root, command=command) as judge:
                for path, text in texts.items():
                    judge.open((root / path).as_uri(), LANGUAGES.get(suffix, suffix[1:]), text)
                project_files = _JudgedProject(root, texts, judge, environment)
                judged = await _first(renames, declared, project_files.rename)
                judged += await _first(parameters, changes, project_files.call_change)
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
        offered = {(path, _beginning_of_word(self.texts[path], start)) for path, start, _, _ in edits}
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
            path, start = _path_of(self.root, location["uri"]), location["range"]["start"]
            if path in self.texts:
                known.add((path, _line_starts(self.texts[path])[start["line"]] + start["character"]))
        due = {}
        for path in {path for path, _ in known}:
            for at, call in calls(self.texts[path], declared.name).items():
                if (path, at) in known and (after := arguments_after(call, change)) != _arguments(call):
                    due[path, at] = after
        if not due or declared.path not in self.texts:
            return None
        edits, note = await self._offered(change)
        wrong, missing, beyond = [], [], []
        for path in {*(path for path, _ in due), *(path for path, *_ in edits)}:
            own = [edit[1:] for edit in edits if edit[0] == path]
            after, places = _applied(self.texts[path], own), calls(self.texts[path], declared.name)
            if _parsed(after) is None or len(calls(after, declared.name)) != len(places):
                wrong.append((path, own[0][0]))
                continue
            for (at, call), now in zip(sorted(places.items()), _in_order(calls(after, declared.name)), strict=True):
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
        return sorted(f"{path}:{self.texts[path].count(LINE_FEED, 0, at) + 1}" for path, at in places)[:4]

    async def _is_declaration(self, declared: Declared) -> bool:
        answer: Any = await self._asked("textDocument/definition", declared, {}) or []
        places = answer if isinstance(answer, list) else [answer]
        own = (self.root / declared.path).as_uri(), position(self.texts[declared.path], declared.offset)
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
            text = self.texts[path]
            places |= {(path, _beginning_of_word(text, offset(text, edit["range"]["start"]))) for edit in edits}
        return places - {(declared.path, declared.offset)}

    async def _asked(self, method: str, declared: Declared, more: dict[str, Any]) -> Any:
        place = position(self.texts[declared.path], declared.offset)
        document = {"uri": (self.root / declared.path).as_uri()}
        return await self.judge.request(method, {"textDocument": document, "position": place, **more})

    async def _offered(self, change: Change) -> tuple[list[tuple[str, int, int, str]], str]:
        """The edits that the server offers after this change, in the texts before it, and its note or reason."""
        path = change.declared.path
        async with running(self.root, **self.environment) as client:
            uri, text = (self.root / path).as_uri(), self.texts[path]
            client.open(uri, LANGUAGES.get(PurePath(path).suffix, PurePath(path).suffix[1:]), text)
            ends = position(text, change.start), position(text, change.end)
            place, spelled = ends[0], change.text
            client.change(uri, [{"range": {"start": ends[0], "end": ends[1]}, "text": spelled[:1]}])
            for number, letter in enumerate(spelled[1:], 1):
                place = {"line": ends[0]["line"], "character": ends[0]["character"] + number}
                client.insert(uri, place["line"], place["character"], letter)
            place = {"line": ends[0]["line"], "character": ends[0]["character"] + len(spelled)}
            offer, silence = await _next_edit(client, uri, place)
            if offer is None:
                return [], silence
            grown = len(change.text) - (change.end - change.start)
            after = text[: change.start] + change.text + text[change.end :]
            edits = []
            for edit in offer["edits"]:
                where = _path_of(self.root, edit["textDocument"]["uri"])
                now = after if where == path else self.texts[where]
                start, end = (offset(now, edit["range"][side]) for side in ("start", "end"))
                back = grown if where == path and start >= change.start + len(change.text) else 0
                edits.append((where, start - back, end - back, edit["newText"]))
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


def _read(project: Path, suffix: str) -> Texts:
    """Columns of ASCII are the same for every tool."""
    texts: Texts = {}
    for path in sorted(project.rglob(f"*{suffix}")):
        name = path.relative_to(project).as_posix()
        if path.is_symlink() or name.startswith(".") or path.stat().st_size > LARGEST:
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        if "\r" not in text and text.isascii() and (suffix != PYTHON or _parsed(text)):
            texts[name] = text
    return texts


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _identifiers(path: str, text: str) -> Iterator[Declared]:
    for match in IDENTIFIER.finditer(text):
        yield Declared(path, match.start(), match[0], "renamed")


def parameter_changes(path: str, text: str, draw: random.Random) -> Iterator[Change]:
    """For each function one parameter is removed, or two that stand beside each other are swapped."""
    starts = _line_starts(text)
    for scope in ast.walk(ast.parse(text)):
        for node in ast.iter_child_nodes(scope):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("__"):
                continue
            given, defaults = node.args, node.args.defaults
            if given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg or node.decorator_list:
                continue
            names = [parameter.arg for parameter in given.args]
            first = 1 if isinstance(scope, ast.ClassDef) else 0
            if len(names) - first < 2 or (first and names[0] not in ("self", "cls")):
                continue
            at = text.index(node.name, text.index("def ", _at(starts, node)))
            begin = _at(starts, given.args[0])
            last = max((*given.args, *defaults), key=lambda part: (part.end_lineno or 0, part.end_col_offset or 0))
            end = starts[(last.end_lineno or 1) - 1] + (last.end_col_offset or 0)
            spelled = _spelled(text, starts, given)
            without_default = len(names) - len(defaults)
            kept = list(range(len(names)))
            if draw.random() < 0.5 and without_default - first >= 2:
                left = draw.randrange(first, without_default - 1)
                kept[left], kept[left + 1] = kept[left + 1], kept[left]
            else:
                del kept[draw.randrange(first, len(names))]
            kind = "swapped" if len(kept) == len(names) else "removed"
            declared = Declared(path, at, node.name, kind)
            moved = tuple(index - first for index in kept if index >= first)
            yield Change(declared, begin, end, ", ".join(spelled[i] for i in kept), tuple(names[first:]), moved)


def _spelled(text: str, starts: Sequence[int], given: ast.arguments) -> list[str]:
    """Each parameter as it stands there, with its annotation and its default."""
    found = []
    for index, parameter in enumerate(given.args):
        default = index - (len(given.args) - len(given.defaults))
        last: Any = given.defaults[default] if default >= 0 else parameter
        end = starts[(last.end_lineno or 1) - 1] + (last.end_col_offset or 0)
        found.append(text[_at(starts, parameter) : end])
    return found


def calls(text: str, name: str) -> dict[int, ast.Call]:
    """By the offset of the name that is called."""
    starts, found = _line_starts(text), {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == name:
            end = starts[(node.func.end_lineno or 1) - 1] + (node.func.end_col_offset or 0)
            found[end - len(name)] = node
    return found


def _in_order(found: Mapping[int, ast.Call]) -> list[ast.Call]:
    return [call for _, call in sorted(found.items())]


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


def _applied(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _beginning_of_word(text: str, at: int) -> int:
    while at and (text[at - 1].isalnum() or text[at - 1] == "_"):
        at -= 1
    return at


def _path_of(root: Path, uri: str) -> str:
    return uri.removeprefix(root.as_uri() + "/")


def _line_starts(text: str) -> list[int]:
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _at(starts: Sequence[int], node: ast.AST) -> int:
    return starts[node.lineno - 1] + node.col_offset  # pyright: ignore


def position(text: str, at: int) -> dict[str, int]:
    return {"line": text.count("\n", 0, at), "character": at - (text.rfind("\n", 0, at) + 1)}


def offset(text: str, place: Mapping[str, int]) -> int:
    return _line_starts(text)[place["line"]] + place["character"]


if __name__ == "__main__":
    main()
