"""What the engine worked on in a replay: the log of its work, and which of it anybody saw."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from bench.replay.player import INLINE, Exchange
from mercury_engine.decode.work import Work, log

LOGGER = f" {log.name}: "
AHEAD = "ahead"


class Share:
    """The work for all questions of one kind and one fate."""

    def __init__(self) -> None:
        self.questions = 0
        self.read = Counter[str]()
        self.passes = Counter[str]()
        self.seconds = Counter[str]()

    def add(self, questions: int, work: "Work | Share") -> None:
        self.questions += questions
        self.read.update(work.read)
        self.passes.update(work.passes)
        self.seconds.update(work.seconds)


def environment(file: Path) -> dict[str, str]:
    """Makes the servers write what `read_log` reads."""
    return {"MERCURY_LOG_FILE": str(file), "MERCURY_LOG_LEVEL": "debug"}


def read_log(file: Path) -> list[Work]:
    """The questions to the engine in the order in which they began."""
    lines = file.read_text(encoding="utf-8").splitlines()
    records = (line.partition(LOGGER)[2] for line in lines if LOGGER in line)
    return sorted((msgspec.json.decode(record, type=Work) for record in records), key=lambda work: work.began)


def shares(works: Sequence[Work], asked: Iterable[Exchange]) -> dict[str, Share]:
    """The questions by kind and fate. Nobody looks at what is read ahead."""
    displayed, totals = set(_displayed(works, asked)), dict[str, Share]()
    for number, work in enumerate(works):
        fate = "" if work.kind == AHEAD else ", shown" if number in displayed else ", not shown"
        totals.setdefault(work.kind + fate, Share()).add(1, work)
    return totals


def _displayed(works: Sequence[Work], asked: Iterable[Exchange]) -> Iterator[int]:
    """The questions with whose answers requests were: the latest one that had begun by then, on the same clock."""
    for exchange in asked:
        if not exchange.is_shown or exchange.is_repeated:
            continue
        kind = "completion" if exchange.method == INLINE else "opinion"
        answered = exchange.sent + exchange.final_ms / 1000
        before = [number for number, work in enumerate(works) if work.kind == kind and work.began <= answered]
        yield from before[-1:]


def profile_table(totals: dict[str, Share]) -> str:
    """A column for each kind and fate, and one for all."""
    columns = dict(sorted(totals.items()))
    columns["all"] = Share()
    for share in totals.values():
        columns["all"].add(share.questions, share)
    lines = [f"{'the engine':30}" + "".join(f"{name:>23}" for name in columns)]
    lines.append(f"{'questions':30}" + "".join(f"{share.questions:23}" for share in columns.values()))
    lines += _section("tokens read", [share.read for share in columns.values()], 0)
    lines += _section("passes", [share.passes for share in columns.values()], 0)
    lines += _section("seconds", [share.seconds for share in columns.values()], 2)
    return "\n".join(lines)


def _section(title: str, counters: Sequence[Counter[str]], digits: int) -> Iterator[str]:
    yield f"{title:30}" + "".join(f"{counter.total():23.{digits}f}" for counter in counters)
    for name in sorted(counters[-1]):
        yield f"  {name:28}" + "".join(f"{counter[name]:23.{digits}f}" for counter in counters)
