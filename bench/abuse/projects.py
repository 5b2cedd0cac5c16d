"""Projects that nobody should write: dense imports, bases and types, deep nesting, equal names, in all languages.

python -m bench.abuse.projects                        500 projects
python -m bench.abuse.projects --projects 5000 --seed 2
python -m bench.abuse.projects --project 1-17         one of them again

Each is indexed, and asked for what follows from a rename and for the names behind a dot, all in this process. What is
measured is how long the event loop waits at worst, and how long an answer takes, in seconds of the processor.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.harness.measures import machine
from mercury_ls.code.documents import CLOSED, Document, Snapshot
from mercury_ls.code.edits import difference
from mercury_ls.code.history import History
from mercury_ls.code.modules import Project
from mercury_ls.completion.context import ContextBudget, Related
from mercury_ls.completion.target import Target
from mercury_ls.next_edit.pipeline import next_edits
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.project.privacy import Privacy
from mercury_ls.project.workspace import Workspace
from mercury_ls.settings.schema import ContextSettings, PrivacySettings, SuggestSettings

LONGEST_WAIT, LONGEST_ANSWER = 1.0, 10.0
OLD, NEW = "Thing", "Matter"
MOST_OTHERS = 48


class Manner(Struct, frozen=True):
    """How a language writes what projects are made of: `m` and `n` stand for a module and a name."""

    suffix: str
    imports: tuple[str, ...]
    head: str
    heading: str
    base: str
    member: str
    end: str
    nested: tuple[tuple[str, str, str], ...]
    """What repeats, what is in the middle, and what closes it."""
    types: tuple[tuple[str, str], ...] = (("List<", ">"),)


MANNERS = {
    "python": Manner(
        "py",
        ("from m import *\n", "from m import n\n", "import m\n", "from .m import n as n\n", "from m import (n,\n n)\n"),
        "",
        "class n(",
        "n, ",
        "object):\n    def run(self, other: T) -> T:\n        self.other = other\n        return self.other.run(n())\n",
        "\n",
        (
            ("(", "x", ")"),
            ("[", "", "]"),
            ("not ", "x", ""),
            ("lambda: ", "x", ""),
            ("x.", "x", ""),
            ("x + ", "x", ""),
            ("import (#", "\n", ""),
            ("from ", "\n", ""),
            ("\\\n", "x\n", ""),
            ('f"{', "x", '}"'),
            ("{1: ", "x", "}"),
        ),
        (("Optional[", "]"), ("list[", "]"), ("'", " '"), ("A | ", ""), ("dict[str, ", "]"), (" ", "")),
    ),
    "typescript": Manner(
        "ts",
        (
            "export * from './m';\n",
            "import { n } from './m';\n",
            "import * as m from './m';\n",
            "export { n } from './m'\n",
        ),
        "",
        "export class n extends Base<",
        "n, ",
        "any> {\n  other: T;\n  run(other: T): T { this.other = other; return this.other.run(new n()); }\n",
        "}\n",
        (
            ("(", "x", ")"),
            ("{", "", "}"),
            ("[", "", "]"),
            ("x => ", "x", ""),
            ("if (x) {} else ", "{}", ""),
            ("a?.", "b", ""),
            ("`${", "x", "}`"),
            ("import  ", "\n", ""),
            ("<", "", ">"),
            ("f(() => {", "", "})"),
        ),
        (("Promise<", ">"), ("A | ", ""), ("(", ")"), ("", "[]"), ("{a: ", "}")),
    ),
    "go": Manner(
        "go",
        ('import "example.com/p/m"\n', 'import . "example.com/p/m"\n', 'import n "example.com/p/m"\n'),
        "package p\n",
        "type n struct {\n",
        "\tn\n",
        "\tother T\n",
        "}\n\nfunc (x *n) run(other T) T { return x.other.run(n{}) }\n",
        (
            ("(", "x", ")"),
            ("{", "", "}"),
            ("func() {", "", "}()"),
            ("if x {", "", "}"),
            ("*", "x", ""),
            ("[]", "x", ""),
        ),
        (("[]", ""), ("map[string]", ""), ("*", ""), ("chan ", "")),
    ),
    "rust": Manner(
        "rs",
        ("use crate::m::*;\n", "use crate::m::n;\n", "pub use crate::m::n;\n", "mod m;\n"),
        "",
        "pub struct n {\n",
        "    n: n,\n",
        "    other: T,\n",
        "}\nimpl n { pub fn run(&self, other: T) -> T { self.other.run(n {}) } }\n",
        (("(", "x", ")"), ("{", "", "}"), ("|a| ", "a", ""), ("&", "x", ""), ("mod a {", "", "}"), ("if x {", "", "}")),
        (("Vec<", ">"), ("Option<Box<", ">>"), ("&", ""), ("dyn A + ", "")),
    ),
    "java": Manner(
        "java",
        ("import p.m.*;\n", "import p.n;\n", "import static p.m.n;\n"),
        "package p;\n",
        "public class n extends Base<",
        "n, ",
        "Object> {\n  T other;\n  T run(T other) { return this.other.run(new n()); }\n",
        "}\n",
        (("(", "x", ")"), ("{", "", "}"), ("() -> ", "x", ""), ("if (x) {} else ", "{}", ""), ("class A {", "", "}")),
        (("List<", ">"), ("Map<String, ", ">"), ("", "[]")),
    ),
    "kotlin": Manner(
        "kt",
        ("import p.*\n", "import p.n\n", "import p.n as n\n"),
        "package p\n",
        "open class n : ",
        "n, ",
        "Any() {\n  lateinit var other: T\n  fun run(other: T): T = this.other.run(n())\n",
        "}\n",
        (("{a->", "a", "}"), ("(", "x", ")"), ("if (x) ", "x", ""), ('"${', "x", '}"'), ("x.let { ", "it", "}")),
        (("List<", ">"), ("", "?"), ("() -> ", "")),
    ),
    "cpp": Manner(
        "cpp",
        ('#include "m.h"\n', '#include "m.cpp"\n', "using namespace m;\n"),
        "",
        "struct n : ",
        "n, ",
        "Base { T other; T run(T other) { return this->other.run(n()); }\n",
        "};\n",
        (("(", "x", ")"), ("{", "", "}"), ("namespace a {", "", "}"), ("if (x) {} else ", "{}", ""), ("A<", "x", ">")),
        (("std::vector<", ">"), ("const ", ""), ("", "*")),
    ),
}
"""The languages whose names are followed, and C++ for all others."""


class Made(Struct, frozen=True):
    """A project: its files, and the one in which `OLD` became `NEW`."""

    seed: str
    language: str
    files: dict[str, str]
    home: str


class Measured(Struct):
    """What came of one project."""

    seed: str
    language: str
    files: int = 0
    step_s: float = 0.0
    """The longest step of the index."""
    wait_s: float = 0.0
    """The longest that a question kept the event loop."""
    answer_s: float = 0.0
    unread: int = 0
    failed: str = ""

    @property
    def worst(self) -> float:
        return max(self.step_s, self.wait_s)

    @property
    def wrong(self) -> str:
        if self.failed:
            return self.failed
        if self.worst > LONGEST_WAIT:
            return f"the event loop waited {self.worst:.2f} s"
        return f"an answer took {self.answer_s:.2f} s" if self.answer_s > LONGEST_ANSWER else ""


def made(seed: str, largest: int = 60, longest: int = 60_000) -> Made:
    """The project of this seed, of at most so many files and so many characters in the longest."""
    rng = random.Random(seed)
    language = rng.choice([*MANNERS])
    manner = MANNERS[language]
    count = rng.choice((1, 3, 8, 20, largest))
    folders = rng.choice(("", "", "p/", "{}/"))
    same = rng.random() < 0.3
    stems = [
        f"m{number}" if not same or not folders else rng.choice(("models", f"m{number}")) for number in range(count)
    ]
    paths = [f"{folders.format(f'p{number}')}{stem}.{manner.suffix}" for number, stem in enumerate(stems)]
    names = [OLD if rng.random() < 0.2 else f"Thing{number}" for number in range(count)]
    names[0] = OLD
    density = rng.choice((1, 2, 6, count))
    files = {path: _text(rng, manner, number, stems, names, density, longest) for number, path in enumerate(paths)}
    return Made(seed, language, files, paths[0])


def _text(
    rng: random.Random,
    manner: Manner,
    number: int,
    stems: Sequence[str],
    names: Sequence[str],
    density: int,
    longest: int,
) -> str:
    others = rng.sample(range(len(stems)), min(density, len(stems)))
    kinds = rng.choices(manner.imports, k=len(others))
    imports = [_named(kind, names[other], stems[other]) for kind, other in zip(kinds, others, strict=True)]
    bases = [
        _named(manner.base, names[other], "") for other in rng.sample(range(len(stems)), min(density, len(stems), 6))
    ]
    opening, closing = rng.choice(manner.types)
    levels = rng.choice((1, 1, 3, 40, min(1500, longest // 20)))
    kind = opening * levels + rng.choice(names) + closing * levels
    parts = [manner.head, *imports, _named(manner.heading, names[number], ""), *bases]
    parts += [_named(manner.member.replace("T", kind), names[number], ""), _named(manner.end, names[number], "")]
    if rng.random() < 0.3:
        parts.append(_nest(rng, manner, longest))
    if rng.random() < 0.3:
        parts.append(f"{names[number]} {OLD} {OLD}.run {OLD.lower()}\n" * rng.choice((1, 20, 300)))
    return "".join(parts)[:longest] + "\n"


def _nest(rng: random.Random, manner: Manner, longest: int) -> str:
    repeated, middle, closing = rng.choice(manner.nested)
    length = rng.choice((100, 2_000, longest))
    levels = length // max(1, len(repeated) + len(closing))
    lines = rng.choice((1, 1, 10, 100))
    one = repeated * (levels // lines) + middle + closing * rng.choice((0, 1)) * (levels // lines)
    return "".join(f"x = {one}\n" for _ in range(lines)) if rng.random() < 0.5 else f"{one}\n" * lines


def _named(text: str, name: str, module: str) -> str:
    """Where a name stands alone in a pattern, or a module does."""
    words = {"n": name, "m": module}
    letters = [*text]
    for at, letter in enumerate(text):
        around = text[at - 1 : at] + text[at + 1 : at + 2]
        if letter in words and not any(other.isalnum() for other in around):
            letters[at] = words[letter]
    return "".join(letters)


def measured(project: Made) -> Measured:
    outcome = Measured(project.seed, project.language, len(project.files))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for path, text in project.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        try:
            workspace = _indexed(root, outcome)
            asyncio.run(_asked(root, project, workspace, outcome))
        except Exception as error:  # whatever it is
            outcome.failed = f"{type(error).__name__}: {error}"
    return outcome


def _indexed(root: Path, outcome: Measured) -> Workspace:
    workspace = Workspace([root], Privacy(PrivacySettings(), [root]), ContextSettings())
    outcome.step_s = max(_lasting(iter(lambda: workspace.step(0.0), False)))
    outcome.unread = len(workspace.index.unread)
    return workspace


def _lasting(steps: Iterator[object]) -> Iterator[float]:
    """How long each step took."""
    yield 0.0
    while True:
        began = time.thread_time()
        if next(steps, steps) is steps:
            return
        yield time.thread_time() - began


async def _asked(root: Path, project: Made, workspace: Workspace, outcome: Measured) -> None:
    path, before = str(root / project.home), project.files[project.home]
    now = before.replace(OLD, NEW, 1)
    history = History()
    history.record(path, before, difference(before, now), 0.0)
    opened = Document(f"file://{path}", path, "", 1, now, tried=workspace.tried)
    others = [_closed(str(root / other), workspace) for other in [*project.files][1:MOST_OTHERS]]
    snapshot = await _parsed(opened, outcome)
    offset = max(now.find(NEW), 0) + len(NEW)
    question = NextQuestion(
        snapshot=snapshot,
        offset=offset,
        target=Target(offset, offset),
        history=history,
        neighbours=tuple(filter(None, others)),
        related=Related(snapshot.uri, 0, 0.0),
        settings=SuggestSettings(),
        budget=ContextBudget(),
        session="abuse",
        bar=0.25,
        project=Project(
            read=workspace.text,
            exists=workspace.exists,
            mentioning=lambda name, near: workspace.index.mentioning([frozenset({name})], near),
            importers=lambda: workspace.importers,
            tried=workspace.tried,
        ),
    )
    answering = asyncio.ensure_future(_answered(question))
    began = last = time.thread_time()
    while not answering.done():
        await asyncio.sleep(0)
        current = time.thread_time()
        outcome.wait_s, last = max(outcome.wait_s, current - last), current
    await answering
    outcome.answer_s = time.thread_time() - began


async def _answered(question: NextQuestion) -> None:
    async for _ in next_edits(question, None):
        pass


async def _parsed(document: Document, outcome: Measured) -> Snapshot:
    outcome.wait_s = max(outcome.wait_s, *_lasting(document.parsing()))
    return document.snapshot()


def _closed(path: str, workspace: Workspace) -> Snapshot | None:
    text = workspace.text(path)
    return text and Document(f"file://{path}", path, "", CLOSED, text, tried=workspace.tried).snapshot()


def run(seeds: Iterable[str], tell: Callable[[Measured], None]) -> list[Measured]:
    outcomes = []
    for seed in seeds:
        outcomes.append(measured(made(seed)))
        tell(outcomes[-1])
    return outcomes


def _tell(outcome: Measured) -> None:
    if outcome.wrong:
        print(f"{outcome.seed} ({outcome.language}, {outcome.files} files): {outcome.wrong}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.abuse.projects", description=__doc__.partition("\n")[0])
    parser.add_argument("--projects", type=int, default=500)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--project", help="the seed of a single one")
    given = parser.parse_args()
    outcomes: list[Measured] = []
    with suppress(KeyboardInterrupt):
        seeds = [given.project] if given.project else [f"{given.seed}-{number}" for number in range(given.projects)]
        outcomes = run(seeds, _tell)
    slowest = max(outcomes, key=lambda outcome: outcome.worst)
    longest = max(outcomes, key=lambda outcome: outcome.answer_s)
    wrong = sum(bool(outcome.wrong) for outcome in outcomes)
    print(f"{len(outcomes)} projects, {wrong} wrong")
    print(f"the event loop waited {slowest.worst:.2f} s at worst ({slowest.seed})")
    print(f"the longest answer took {longest.answer_s:.2f} s ({longest.seed})")
    print(f"{sum(outcome.unread for outcome in outcomes)} files were left out of an index")
    shown = {"slowest": msgspec.to_builtins(slowest), "longest": msgspec.to_builtins(longest)}
    print(json.dumps({"projects": len(outcomes), "wrong": wrong, **shown, "machine": machine()}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
