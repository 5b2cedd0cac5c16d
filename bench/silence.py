"""Whether next edits keep quiet where nothing is due: while a statement is typed, after an undo, a finished rename, …

python -m bench.silence FOLDER [--rows 360] [--seed 0] [--engine fake|none|shipped|FOLDER]

FOLDER holds source files, or is a corpus, of which the held-out documents are taken. Every row is made from one of
them, the same rows for the same seed. The rate is printed for each kind, with its interval, and all as JSON.
"""

import argparse
import asyncio
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice, pairwise
from pathlib import Path

from msgspec import Struct

from bench.harness.measures import machine
from bench.next_edit.cases import PAUSE, Case
from bench.next_edit.measure import Outcome, cost_of, engine_of, measure
from mercury_ls.code import languages, syntax
from mercury_ls.code.documents import Document
from mercury_ls.code.edits import difference
from mercury_ls.code.history import History
from mercury_ls.code.lexemes import KEYWORDS
from mercury_ls.settings.schema import SuggestSettings
from mercury_training.corpus.shards import Corpus
from mercury_training.evaluate.metrics import wilson

__all__ = ["KINDS", "silent_cases", "sources"]

LINES = range(30, 1200)
USES = range(2, 9)
TRIES = 50
NAME = re.compile(r"(?<![\w.\"'$])[a-z_]\w{3,}(?![\w\"'$])")
STATEMENT = re.compile(r"\s*[^\W\d][\w.]*\s*(?:\(|=|:=|\+=|\.).*\S")
SPACED = re.compile(r"(?<=[\w)\]]) (=|\+|-|\*|==|<|>) (?=[\w(\[])")
WORDS = ("entry", "amount", "holder", "source", "record", "marker", "budget", "origin")

States = list[str]
"""A document before anything was done and after each edit, the last with the cursor as `CURSOR`."""
CURSOR = "\0"


class SourceSample(Struct, frozen=True):
    path: str
    language: str
    text: str


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--rows", type=int, default=360)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--engine", default="none")
    arguments.add_argument("--bar", type=float, default=SuggestSettings().minimum_probability)
    given = arguments.parse_args()
    found = silent_cases(sources(given.folder), given.rows, given.seed)
    report(asyncio.run(measure(found, engine_of(given.engine), given.bar)), given.engine)


def sources(folder: Path) -> list[SourceSample]:
    """Source files in a language with a grammar, neither tiny nor huge."""
    found = held_out(folder) if (folder / "held_out.index").exists() else files_under(folder)
    known = (each for each in found if (language := languages.find("", each.path)) and language.definitions)
    return [each for each in known if each.text.count("\n") in LINES]


def held_out(corpus: Path) -> Iterator[SourceSample]:
    opened = Corpus.open(corpus)
    for number, each in enumerate(opened.held_out.documents):
        yield SourceSample(each.path, each.language, opened.held_out.text(number, opened.tokenizer))


def files_under(folder: Path) -> Iterator[SourceSample]:
    for path in sorted(folder.rglob("*")):
        language = languages.find("", str(path))
        hidden = any(part.startswith(".") or part == "node_modules" for part in path.relative_to(folder).parts)
        if language and path.is_file() and not hidden:
            yield SourceSample(str(path.relative_to(folder)), language.id, path.read_text("utf-8", "replace"))


def silent_cases(found: list[SourceSample], count: int, seed: int = 0) -> list[Case]:
    """As many of each kind, each from the next file; the same ones for the same seed."""
    draw = random.Random(seed)
    files = draw.sample(found, len(found))
    made: list[Case] = []
    for file in islice(cycle(files), TRIES * count):
        kind = list(KINDS)[len(made) % len(KINDS)]
        if states := KINDS[kind](file, draw):
            made.append(case_of(file, kind, states))
        if len(made) == count:
            return made
    raise ValueError(f"{len(files)} source files are too few for {count} rows; name a folder with more code")


def case_of(file: SourceSample, kind: str, states: States) -> Case:
    *before, last = states
    offset = last.index(CURSOR)
    now = last.replace(CURSOR, "")
    history = History()
    for number, (old, new) in enumerate(pairwise([*before, now])):
        history.record(file.path, old, difference(old, new), PAUSE * number)
    snapshot = Document("file:///now", file.path, file.language, 1, now).snapshot()
    return Case(kind, snapshot, offset, history, (), ())


def typing(file: SourceSample, draw: random.Random) -> States | None:
    """A statement of the file is being typed: a part of its line stands there."""
    lines = file.text.splitlines(keepends=True)
    number = some_statement(lines, draw)
    if number is None:
        return None
    line = lines[number].rstrip()
    first = len(line) - len(line.lstrip()) + 1
    typed = line[: draw.randint(first, max(len(line) - 1, first))]
    without = "".join([*lines[:number], *lines[number + 1 :]])
    return [without, "".join([*lines[:number], typed + CURSOR, "\n", *lines[number + 1 :]])]


def undone(file: SourceSample, draw: random.Random) -> States | None:
    """A name was changed in one place or two, and changed back."""
    renamed = some_name(file, draw)
    if renamed is None:
        return None
    name, places = renamed
    states = one_by_one(file.text, name, draw.choice(WORDS), places[: draw.randint(1, 2)])
    return [*states, *states[-2:0:-1], with_cursor(file.text, places[0])]


def finished(file: SourceSample, draw: random.Random) -> States | None:
    """A name was changed everywhere, one place after the other."""
    renamed = some_name(file, draw)
    if renamed is None:
        return None
    name, places = renamed
    *states, last = one_by_one(file.text, name, new := draw.choice(WORDS), places)
    return [*states, with_cursor(last, places[-1] + len(places[:-1]) * (len(new) - len(name)) + len(new))]


def redone(file: SourceSample, draw: random.Random) -> States | None:
    """A name was changed everywhere, all of that undone, and done again."""
    states = finished(file, draw)
    if states is None:
        return None
    forth = [state.replace(CURSOR, "") for state in states]
    return [*forth, *forth[-2::-1], *states[1:]]


def reformatted(file: SourceSample, draw: random.Random) -> States | None:
    """Blanks around operators went, or a line was indented further."""
    lines = file.text.splitlines(keepends=True)
    numbers = [n for n, line in enumerate(lines) if SPACED.search(line) and line.strip()[0] not in "#/*"]
    if not numbers:
        return None
    chosen = sorted(draw.sample(numbers, min(len(numbers), draw.randint(1, 3))))
    states = [file.text]
    for number in chosen:
        lines[number] = SPACED.sub(r"\1", lines[number]) if draw.random() < 0.7 else "    " + lines[number]
        states.append("".join(lines))
    return [*states[:-1], with_cursor(states[-1], sum(map(len, lines[: chosen[-1]])))]


def retyped(file: SourceSample, draw: random.Random) -> States | None:
    """Lines were deleted and typed again as they were."""
    lines = file.text.splitlines(keepends=True)
    first = some_statement(lines, draw)
    if first is None:
        return None
    stop = min(first + draw.randint(1, 3), len(lines))
    without = "".join([*lines[:first], *lines[stop:]])
    half = "".join([*lines[:first], lines[first], *lines[stop:]])
    return [file.text, without, half, with_cursor(file.text, sum(map(len, lines[:stop])) - 1)]


KINDS: dict[str, Callable[[SourceSample, random.Random], States | None]] = {
    "typing": typing,
    "undone": undone,
    "finished": finished,
    "redone": redone,
    "reformatted": reformatted,
    "retyped": retyped,
}


def some_statement(lines: Sequence[str], draw: random.Random) -> int | None:
    """The number of its line."""
    numbers = [n for n, line in enumerate(lines) if STATEMENT.fullmatch(line.rstrip())]
    return draw.choice(numbers) if numbers else None


def some_name(file: SourceSample, draw: random.Random) -> tuple[str, list[int]] | None:
    """A name of the code that is used a few times, and where: nowhere in a comment, a string or another name."""
    snapshot = Document("file:///now", file.path, file.language, 1, file.text).snapshot()
    found: dict[str, list[int]] = {}
    for match in NAME.finditer(file.text):
        found.setdefault(match.group(), []).append(match.start())
    names = [n for n, at in found.items() if n not in KEYWORDS and len(at) in USES and len(at) == file.text.count(n)]
    for name in draw.sample(sorted(names), len(names))[:TRIES]:
        if all(syntax.inside(snapshot, at) is None for at in found[name]):
            return name, found[name]
    return None


def one_by_one(text: str, old: str, new: str, places: list[int]) -> States:
    states = [text]
    for number, at in enumerate(places):
        start, last = at + number * (len(new) - len(old)), states[-1]
        states.append(last[:start] + new + last[start + len(old) :])
    return states


def with_cursor(text: str, offset: int) -> str:
    return text[:offset] + CURSOR + text[offset:]


def report(outcomes: list[Outcome], engine: str) -> None:
    rates = {}
    for kind in [*KINDS, "all"]:
        quiet = [not each.shown for each in outcomes if kind in ("all", each.kind)]
        rate = wilson(sum(quiet), len(quiet))
        rates[kind] = round(100 * rate.value, 1)
        print(f"{kind:14}{len(quiet):6} rows, quiet {rate.value:7.1%}  ({rate.low:.1%} to {rate.high:.1%})")
    cost = cost_of([each for each in outcomes if not each.shown])
    print(json.dumps({"quiet": rates, **cost, "n": len(outcomes), "engine": engine, "machine": machine()}))


if __name__ == "__main__":
    main()
