"""Whether a rename that is offered is right and whole: against the references that jedi finds in Python projects.

python -m bench.renames CHECKOUT... [--symbols 40] [--seed 0]

Of every checkout it takes so many functions, classes, methods, constants and variables at their definitions, gives
each another name there, takes the offer, and asks again. An edit is right if jedi says that what stands there is what
was renamed; all of them have to be. `found` is the share of jedi's references outside the definition that were
offered, `whole` the share of renames that had all of them. `after` counts edits that a second offer would wrongly
make. Every wrong edit is printed. Milliseconds are of one answer, with the project indexed and its other files closed.
"""

import argparse
import ast
import asyncio
import json
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mercury_ls.code.documents import Document
from mercury_ls.completion.offers import Offer
from mercury_ls.project.privacy import Privacy
from mercury_ls.project.workspace import Workspace
from mercury_ls.session import next_edits as proposals
from mercury_ls.session.record import NoRecorder
from mercury_ls.session.session import Session
from mercury_ls.settings.load import Settings

__all__ = ["Definition", "renamed", "symbols"]

KINDS = ("function", "class", "method", "constant", "variable")
PARSED_BY_JEDI = 10_000
LARGEST = 1 << 20

Spot = tuple[str, int, int]
"""A path, a line from one and a column."""


class Definition(Struct, frozen=True):
    """What a file defines at `line`, from one, and `column`."""

    path: str
    name: str
    kind: str
    line: int
    column: int
    anew: str

    @property
    def spot(self) -> Spot:
        return self.path, self.line, self.column


class Renamed(Struct, frozen=True):
    """What was offered, what a second offer would have done, and what jedi says was due."""

    symbol: Definition
    offered: frozenset[Spot]
    after: frozenset[Spot]
    due: frozenset[Spot]
    wrong: frozenset[Spot]
    milliseconds: float
    silence: str


class NoEngine:
    """Rules alone."""

    status = type("Status", (), {"state": "absent", "info": None})()

    async def close(self) -> None:
        """Nothing runs."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("checkouts", type=Path, nargs="+")
    arguments.add_argument("--symbols", type=int, default=40, help="of each kind and checkout")
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    proposals.SETTLING_SECONDS = 0.0
    figures: dict[str, Any] = {}
    for checkout in given.checkouts:
        found = asyncio.run(measured(checkout.resolve(), given))
        figures[checkout.name] = report(checkout.name, found)
    print(json.dumps(figures))


async def measured(checkout: Path, given: argparse.Namespace) -> list[Renamed]:
    workspace = indexed(checkout)
    found = list(symbols(checkout, workspace))
    dice = random.Random(given.seed)
    kinds = ([each for each in found if each.kind == kind] for kind in KINDS)
    wanted = [each for some in kinds for each in dice.sample(some, min(given.symbols, len(some)))]
    truth = Truth(checkout)
    return [await renamed(each, checkout, workspace, truth) for each in wanted]


def indexed(checkout: Path) -> Workspace:
    settings = Settings()
    workspace = Workspace([checkout], Privacy(settings.privacy, [checkout]), settings.context)
    began = time.process_time()
    while workspace.step(0.0):
        pass
    print(f"{checkout.name}: {len(workspace)} files indexed in {time.process_time() - began:.1f} s of processor time")
    return workspace


def symbols(checkout: Path, workspace: Workspace) -> Iterator[Definition]:
    for path in sorted(checkout.rglob("*.py")):
        text = workspace.text(str(path))
        try:
            tree = ast.parse(text or "")
        except SyntaxError:
            continue
        yield from defined(str(path), (text or "").split("\n"), tree.body, "")


def anew(name: str) -> str:
    return name + ("_AGAIN" if name.isupper() else "Again" if name[0].isupper() else "_again")


def defined(path: str, lines: Sequence[str], body: Sequence[ast.stmt], around: str) -> Iterator[Definition]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name, is_class = node.name, isinstance(node, ast.ClassDef)
            match = re.compile(rf"(?:def|class)\s+(?={name}\b)").search(lines[node.lineno - 1])
            kind = "class" if is_class else "method" if around else "function"
            if match and not name.startswith(("__", "test_", "setUp", "tearDown")) and not node.decorator_list:
                yield Definition(path, name, kind, node.lineno, match.end(), anew(name))
            if is_class and not around:
                yield from defined(path, lines, node.body, name)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not around:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and not target.id.startswith("__"):
                kind = "constant" if target.id.isupper() else "variable"
                yield Definition(path, target.id, kind, target.lineno, target.col_offset, anew(target.id))


class Truth:
    """jedi's word on what refers to what."""

    def __init__(self, checkout: Path) -> None:
        import jedi
        from jedi.inference import references

        # It would stop after thirty files.
        references._PARSED_FILE_LIMIT = PARSED_BY_JEDI  # type: ignore[attr-defined]
        self._jedi = jedi
        # A copy of the project that is installed here is another one.
        installed = (path for path in sys.path if path and "site-packages" not in path)
        self._project = jedi.Project(checkout, sys_path=[str(checkout / "src"), str(checkout), *installed])
        self._checkout = str(checkout)

    def references(self, symbol: Definition) -> frozenset[Spot]:
        found = self._script(symbol.path).get_references(symbol.line, symbol.column)
        spots = {(str(each.module_path), each.line, each.column) for each in found if each.name == symbol.name}
        return frozenset(spot for spot in spots if spot[0].startswith(self._checkout) and spot[1] is not None)

    def leads_to(self, spot: Spot, wanted: frozenset[Spot]) -> bool:
        """Whether what stands there was declared at one of these places."""
        script = self._script(spot[0])
        found = [
            *script.goto(*spot[1:], follow_imports=True),
            *script.goto(*spot[1:]),
            *script.infer(*spot[1:]),
        ]
        return any((str(each.module_path), each.line, each.column) in wanted for each in found)

    def _script(self, path: str) -> Any:
        return self._jedi.Script(path=path, project=self._project)


async def renamed(symbol: Definition, checkout: Path, workspace: Workspace, truth: Truth) -> Renamed:
    settings = Settings()
    session = Session(settings, NoEngine(), Privacy(settings.privacy, [checkout]), workspace, NoRecorder())
    uri, text = Path(symbol.path).as_uri(), workspace.text(symbol.path) or ""
    session.open(uri, symbol.path, "python", 1, text)
    snapshot = session.files.documents[uri].snapshot()
    at = snapshot.line_start(symbol.line - 1) + symbol.column
    where = *snapshot.position(at, "utf-16"), *snapshot.position(at + len(symbol.name), "utf-16")
    session.change(uri, 2, [(where, symbol.anew)], "utf-16")
    began = time.perf_counter()
    said = await session.next_edits.ask(uri, at + len(symbol.anew))
    elapsed = (time.perf_counter() - began) * 1000
    references = truth.references(symbol)
    offered = spots_of(said.offer, symbol)
    wrong = {each for each in offered - references if not truth.leads_to(each, references | {symbol.spot})}
    after: frozenset[Spot] = frozenset()
    if said.offer is not None:
        take(session, said.offer)
        again = (await session.next_edits.ask(uri, at + len(symbol.anew), invoked=True)).offer
        after = spots_of(same_name(again, symbol), symbol, raw=True)
    session.next_edits.end()
    await session.end()
    due = references - {symbol.spot}
    return Renamed(symbol, offered, after, due, frozenset(wrong), elapsed, said.silence)


def same_name(offer: Offer | None, symbol: Definition) -> Offer | None:
    """What would still change this name: other names that have it as a part may follow."""
    if offer is None:
        return None
    edits = (each for each in offer.edits if symbol.anew in each.text)
    lines = {each: offer.base[each.uri].text[each.start - 1 : each.end + 1] for each in edits}
    same = tuple(each for each, line in lines.items() if re.search(rf"\b{symbol.name}\b", line))
    return replace(offer, edits=same)


def spots_of(offer: Offer | None, symbol: Definition, *, raw: bool = False) -> frozenset[Spot]:
    """The places of an offer in the texts as they are on the disk."""
    found: set[Spot] = set()
    for edit in offer.edits if offer else ():
        text = offer.base[edit.uri].text if offer else ""
        snapshot = Document("", "", "", 0, text).snapshot()
        path = proposals.path_of(edit.uri)
        line = snapshot.line_of(edit.start)
        column = edit.start - snapshot.line_start(line)
        moved = not raw and path == symbol.path and line + 1 == symbol.line and column > symbol.column
        found.add((path, line + 1, column - (len(symbol.anew) - len(symbol.name)) * moved))
    return frozenset(found)


def take(session: Session, offer: Offer) -> None:
    """As an editor does it: files that are not open are opened for it."""
    for uri in offer.base:
        if uri not in session.files.documents:
            session.open(uri, proposals.path_of(uri), "python", 1, offer.base[uri].text)
        for edit in sorted((each for each in offer.edits if each.uri == uri), key=lambda each: -each.start):
            snapshot = session.files.documents[uri].snapshot()
            where = *snapshot.position(edit.start, "utf-16"), *snapshot.position(edit.end, "utf-16")
            session.change(uri, snapshot.version + 1, [(where, edit.text)], "utf-16")
    session.accepted(offer.id)


def report(name: str, found: Sequence[Renamed]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    print(f"{name:14} {'kind':9} {'renames':>7} {'offered':>8} {'edits':>6} {'wrong':>6} {'after':>6} found  whole")
    for kind in (*KINDS, "all"):
        rows = [each for each in found if kind in (each.symbol.kind, "all")]
        if not rows:
            continue
        used = [each for each in rows if each.due]
        due = sum(len(each.due) for each in used)
        hits = sum(len(each.due & each.offered) for each in used)
        times = sorted(each.milliseconds for each in rows)
        figures[kind] = {
            "renames": len(rows),
            "offered": sum(bool(each.offered) for each in rows),
            "edits": sum(len(each.offered) for each in rows),
            "wrong": sum(len(each.wrong) for each in rows),
            "after": sum(len(each.after) for each in rows),
            "found": round(hits / max(due, 1), 3),
            "whole": round(sum(each.due <= each.offered for each in used) / max(len(used), 1), 3),
            "p50_ms": round(times[len(times) // 2], 1),
            "p90_ms": round(times[len(times) * 9 // 10], 1),
        }
        row = figures[kind]
        head = f"{'':14} {kind:9} {row['renames']:7} {row['offered']:8} {row['edits']:6} {row['wrong']:6}"
        tail = f"{row['found']:.3f}  {row['whole']:.3f}  p50 {row['p50_ms']} p90 {row['p90_ms']} ms"
        print(f"{head} {row['after']:6} {tail}")
    for each in found:
        for label, spots in (("WRONG", each.wrong), ("AFTER", each.after)):
            for path, line, column in sorted(spots):
                text = Path(path).read_text().split("\n")[line - 1].strip() if Path(path).exists() else ""
                what = f"{each.symbol.kind} {each.symbol.name} ({Path(each.symbol.path).name})"
                print(f"{label} {what}: {path}:{line}:{column} {text}")
    return figures


if __name__ == "__main__":
    main()
