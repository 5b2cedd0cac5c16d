"""What is known of the names at places in real projects, and what knowing it costs.

    python -m bench.names_cost PROJECT … [--files 12] [--each 4] [--held] [--jedi] [--misses]

From each project's files, places are drawn where a name of some role follows: a member, a name in scope, a keyword of a
call, an import. The rest of the line is taken away, as if it had not been typed yet. The table says for each language
and role how often the true name is known, how long the lists are, how often a list that says that it is complete lacks
it, and what `about` costs once what can be learned is learned: median and 90th percentile of the CPU time. With
`--jedi` jedi is asked, too: its answer times and the memory of its process are printed. A third of the files is left
out unless `--held` is given, which takes only these.
"""

import argparse
import asyncio
import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median, quantiles
from zlib import crc32

from msgspec import Struct
from tree_sitter import Node

from bench.harness.usage import resident_mb
from mercury_engine.api import Members, NameRole
from mercury_ls.code import languages, scopes, syntax
from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.names.analyser import AnalyserProcess, installed_packages
from mercury_ls.names.known import NameList, NamesRequest
from mercury_ls.names.known import NamesProject as Around
from mercury_ls.names.members import NameSources
from mercury_ls.names.written import WrittenNames
from mercury_ls.project.privacy import Privacy
from mercury_ls.project.workspace import Workspace
from mercury_ls.settings.schema import ContextSettings, PrivacySettings

__all__ = ["places"]

LANGUAGES = ("python", "typescript", "tsx", "javascript", "go", "rust", "java", "csharp", "c", "cpp", "ruby", "php")
LARGEST_FILE = 60_000
PATIENCE_SECONDS = 60.0
MEMBERS = frozenset({"field_identifier", "property_identifier", "private_property_identifier"})
NAMES = frozenset({"identifier", "type_identifier", *MEMBERS})
ROLES: tuple[NameRole, ...] = ("member", "scope", "keyword", "import")


class Place(Struct, frozen=True):
    """Where the name `name` of this role begins in a text."""

    at: int
    name: str
    role: NameRole


class Result(Struct, frozen=True):
    """`listed` are the names that were known, `lacks` says that the list called itself complete and lacks the name."""

    language: str
    role: NameRole
    is_known: bool
    listed: int
    lacks: bool
    seconds: float


class Timed:
    """An analyser whose answers are timed."""

    def __init__(self, analyser: AnalyserProcess) -> None:
        self.languages, self.only_cursor = analyser.languages, analyser.only_cursor
        self.seconds: list[float] = []
        self.memory_mb = 0.0
        self._analyser = analyser

    async def ask(self, ask: NamesRequest) -> NameList:
        began = time.perf_counter()
        known = await self._analyser.ask(ask)
        self.seconds.append(time.perf_counter() - began)
        return known

    async def close(self) -> None:
        process = self._analyser._process
        self.memory_mb = (process and resident_mb(process.pid)) or 0.0
        await self._analyser.close()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("projects", type=Path, nargs="+", metavar="PROJECT")
    options.add_argument("--files", type=int, default=12, help="of each project and language")
    options.add_argument("--each", type=int, default=4, help="places of each role in a file")
    options.add_argument("--held", action="store_true", help="the third of the files that is otherwise left out")
    options.add_argument("--jedi", action="store_true", help="ask jedi, too")
    options.add_argument("--misses", action="store_true", help="print the places whose name is unknown")
    given = options.parse_args()
    found = [each for project in given.projects for each in asyncio.run(measured(project.resolve(), given))]
    print(table(found))


async def measured(root: Path, given: argparse.Namespace) -> list[Result]:
    workspace, began = Workspace([root], Privacy(PrivacySettings(), [root]), ContextSettings()), time.process_time()
    longest, steps = 0.0, True
    while steps:
        before = time.process_time()
        steps = workspace.step(0.0)
        longest = max(longest, time.process_time() - before)
    print(
        f"{root}: {len(workspace)} files indexed in {time.process_time() - began:.2f} s of processor time, the longest"
        f" step {longest * 1000:.0f} ms; {resident_mb(os.getpid()) or 0:.0f} MiB"
    )
    packages = installed_packages([str(root)], {})
    jedi = [Timed(AnalyserProcess(Around((str(root),), packages)))] if given.jedi else []
    names = NameSources(jedi, patience=PATIENCE_SECONDS, reader=WrittenNames(workspace))
    results = []
    for path, language in chosen(root, workspace, given.files, held=given.held):
        text = path.read_text(encoding="utf-8")
        for place in drawn(text, str(path), given.each):
            results.append(await asked(names, text, str(path), language, place, misses=given.misses))
        names.forget()
    await names.close()
    for analyser in jedi:
        if analyser.seconds:
            print(f"jedi: {len(analyser.seconds)} answers, {spread(analyser.seconds)}; {analyser.memory_mb:.0f} MiB")
    return results


def chosen(root: Path, workspace: Workspace, count: int, *, held: bool) -> Iterator[tuple[Path, str]]:
    by_language: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(root.rglob("*")):
        language = languages.find("", str(path))
        if language is None or language.id not in LANGUAGES or workspace.text(str(path)) is None:
            continue
        is_held = crc32(str(path.relative_to(root)).encode()) % 3 == 0
        if is_held == held and path.stat().st_size <= LARGEST_FILE:
            by_language[language.id].append(path)
    for language, paths in by_language.items():
        for path in random.Random(0).sample(paths, min(count, len(paths))):
            yield path, language


def drawn(text: str, path: str, each: int) -> list[Place]:
    found = defaultdict(list)
    for place in places(Document("", path, "", 0, text).snapshot()):
        found[place.role].append(place)
    draw = random.Random(path)
    return [place for role in ROLES for place in draw.sample(found[role], min(each, len(found[role])))]


def places(snapshot: Snapshot) -> Iterator[Place]:
    """All names that are used, and not declared, where they stand."""
    nodes = [snapshot.tree.root_node] if snapshot.tree else []
    while nodes:
        node = nodes.pop()
        nodes += [child for child in node.named_children if child.type != "attribute_item"]
        if node.type in NAMES and not node.named_child_count and (role := role_of(node)):
            at = snapshot.offset_of_byte(node.start_byte)
            if syntax.inside(snapshot, at) is None:
                yield Place(at, (node.text or b"").decode(), role)


def role_of(node: Node) -> NameRole | None:
    parent = node.parent
    if parent is None or parent.has_error:
        return None
    if parent.type.startswith("jsx_") or parent.type in ("import_clause", "namespace_import"):
        return None
    if is_key(node):
        return "keyword"
    if around := import_around(node):
        is_module = any(named(around, field, node) for field in ("module_name", "path", "source"))
        return None if is_module else "import"
    if parent.type == "keyword_argument" and parent.child_by_field_name("name") == node:
        return "keyword"
    before = node.prev_sibling
    if before is not None and before.type in (".", "?."):
        return "member"
    if scopes.declares(node) or scopes.is_member(node) or (before is not None and before.type == "::"):
        return None
    return None if node.type in MEMBERS else "scope"


def is_key(node: Node) -> bool:
    """Whether it is the field of a struct that is being made."""
    element = node.parent
    if element is not None and element.type == "field_initializer":
        return element.child_by_field_name("field") == node or element.named_children[0] == node
    keyed = element.parent if element is not None and element.type == "literal_element" else None
    return keyed is not None and keyed.child_by_field_name("key") == element


def import_around(node: Node) -> Node | None:
    around = node.parent
    while around is not None and around.type not in ("import_from_statement", "import_statement", "use_declaration"):
        around = around.parent
    return around


def named(around: Node, field: str, node: Node) -> bool:
    found = around.child_by_field_name(field)
    return found is not None and found.start_byte <= node.start_byte and node.end_byte <= found.end_byte


async def asked(names: NameSources, text: str, path: str, language: str, place: Place, *, misses: bool) -> Result:
    end = text.find("\n", place.at)
    # In an import what follows stays: it says which module it is.
    rest = text[place.at + len(place.name) :] if place.role == "import" else text[end if end >= 0 else len(text) :]
    snapshot = Document(f"file://{path}", path, language, 1, text[: place.at] + rest).snapshot()
    _ = snapshot.tree  # made while the user types, before any request
    names.look_ahead(snapshot, place.at)
    await names.settled()
    snapshot.memory.clear()
    began = time.thread_time()
    about = names.about(snapshot, place.at)
    seconds = time.thread_time() - began
    fitting = [each for each in about if each.receiver == "" and each.role == place.role]
    is_known = any(place.name in each.names for each in fitting)
    if misses and not is_known:
        start = text.rfind("\n", 0, place.at) + 1
        sys.stdout.write(f"{language} {place.role} {path}:{text.count(chr(10), 0, place.at) + 1}: ")
        sys.stdout.write(f"{text[start : place.at].strip()}|{place.name} of {sum(len(e.names) for e in fitting)}\n")
    return Result(language, place.role, is_known, length(fitting), lacks(fitting, place.name), seconds)


def length(members: Sequence[Members]) -> int:
    return sum(len(each.names) for each in members)


def lacks(members: Sequence[Members], name: str) -> bool:
    return any(each.complete and name not in each.names for each in members)


def table(results: Sequence[Result]) -> str:
    by_place: dict[tuple[str, NameRole], list[Result]] = defaultdict(list)
    for each in results:
        by_place[each.language, each.role].append(each)
    lines = ["| language | role | places | known | names | wrongly complete | cost |", "|---|---|---|---|---|---|---|"]
    for (language, role), found in sorted(by_place.items()):
        known, lacking = sum(each.is_known for each in found), sum(each.lacks for each in found)
        size = median(each.listed for each in found)
        cells = (language, role, len(found), f"{known / len(found):.0%}", f"{size:.0f}", lacking)
        lines.append(f"| {' | '.join(map(str, cells))} | {spread([each.seconds for each in found])} |")
    return "\n".join(lines)


def spread(seconds: Sequence[float]) -> str:
    most = quantiles(seconds, n=10)[8] if len(seconds) > 1 else seconds[0]
    return f"{median(seconds) * 1000:.1f} ms, p90 {most * 1000:.1f}"


if __name__ == "__main__":
    main()
