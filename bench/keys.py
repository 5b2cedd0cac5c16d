"""Private keys in random layouts, over every path on which text leaves the machine: how many bytes of them are sent.

python -m bench.keys                    10,000 layouts
python -m bench.keys --layouts 300 --first 4711

A layout stands in the edited file, in one beside it and in what a program sends over HTTP; its lines are typed, removed
and quoted by diagnostics. What a model server on another machine would be told is read. What did not hold is printed
with the command that shows it again.
"""

import argparse
import asyncio
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from bench.harness.measures import machine
from bench.harness.random_keys import LaidOut, laid_out, leaks, random_code, random_key, random_names
from mercury_engine.api import (
    ChatReply,
    ChatRequest,
    Draft,
    EngineInfo,
    Gap,
    Opinions,
    Proposals,
    Question,
    Region,
    Regions,
    Rewrites,
    Snippet,
)
from mercury_engine.remote import asking
from mercury_ls.code.diagnostics import FileDiagnostic
from mercury_ls.code.documents import Snapshot
from mercury_ls.completion import suggest
from mercury_ls.completion.target import Target
from mercury_ls.link.wire import Status
from mercury_ls.next_edit import opinion, region
from mercury_ls.next_edit.candidates import Candidate
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.project.privacy import Privacy
from mercury_ls.project.workspace import Workspace
from mercury_ls.session.open_files import OpenFiles
from mercury_ls.session.questions import Questions
from mercury_ls.session.record import NoRecorder
from mercury_ls.settings.schema import Settings
from mercury_ls.web.service import ApiClient, Service, Wish
from mercury_ls.web.text import Text

MARK = re.compile(r"PRIVATE KEY(?: BLOCK)?-----|AGE-SECRET-KEY-1|PuTTY-User-Key-File-3:|Private-(?:Lines|MAC): ")
MOST_SHOWN = 5
PLACES = 2
SETTINGS = Settings()
ELSEWHERE = EngineInfo(
    engine="server",
    model="strong",
    device="http",
    context_tokens=4096,
    rewrites=True,
    judges=True,
    address="https://models.example.org",
    strong=True,
)


class Campaign(Struct):
    """What came of the layouts: how many requests, how many bytes of them, and what of a key was in them."""

    layouts: int = 0
    requests: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    leaked: Counter[str] = field(default_factory=Counter)
    shown: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Sent(Struct, frozen=True):
    """A question that leaves, and the path by which it came about."""

    path: str
    question: Question


class Elsewhere:
    """An engine on another machine, which is never asked."""

    roots: Sequence[str] = ()
    latencies_ms: Sequence[float] = ()
    status = Status("ready", info=ELSEWHERE)

    def for_client(self, name: str) -> "Elsewhere":
        return self

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def warm(self, question: Gap | Regions) -> None: ...

    def fill(self, gap: Gap) -> AsyncGenerator[Draft]:
        raise AssertionError("questions are read before they are sent")

    def rewrite(self, regions: Regions) -> AsyncGenerator[Rewrites]:
        raise AssertionError("questions are read before they are sent")

    def judge(self, proposals: Proposals) -> AsyncGenerator[Opinions]:
        raise AssertionError("questions are read before they are sent")

    def chat(self, request: ChatRequest) -> AsyncGenerator[ChatReply]:
        raise AssertionError("no conversation leaves this machine")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layouts", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=1, help="the number of the first layout")
    given = parser.parse_args()
    campaign = attack(range(given.first, given.first + given.layouts))
    print(f"{campaign.layouts:,} layouts, {sum(campaign.requests.values()):,} requests of {campaign.bytes:,} bytes")
    print("\n".join(campaign.shown) or "nothing of a key was in any of them")
    print(json.dumps({**msgspec.to_builtins(campaign), "machine": machine()}))
    sys.exit(bool(campaign.leaked))


def attack(numbers: Sequence[int]) -> Campaign:
    campaign, began = Campaign(), time.monotonic()
    with TemporaryDirectory() as folder:
        for number in numbers:
            rng = random.Random(number)
            key = laid_out(rng, random_key(rng))
            campaign.layouts += 1
            for sent in (*_sent_by_editor(rng, key, Path(folder)), *asyncio.run(_sent_over_http(rng, key))):
                _read(campaign, number, key, sent)
    campaign.seconds = round(time.monotonic() - began, 1)
    return campaign


def _read(campaign: Campaign, number: int, key: LaidOut, sent: Sent) -> None:
    told = _told(sent.question)
    campaign.requests[sent.path] += 1
    campaign.bytes += len(told)
    leaked = leaks(told, key.secrets) and leaks(_told(_masked(sent.question)), key.secrets)
    if leaked:
        campaign.leaked[sent.path] += sum(map(len, leaked))
        command = f"python -m bench.keys --layouts 1 --first {number}"
        if len(campaign.shown) < MOST_SHOWN and command not in "".join(campaign.shown):
            campaign.shown.append(f"{sent.path}, {key.layout}: {leaked[0]!r} is in the request: {command}")


def _masked(question: Question) -> Question:
    """As a server on another machine would be told."""
    if isinstance(question, Gap):
        return asking.masked_gap(question)
    if isinstance(question, Regions):
        return asking.masked_regions(question)
    proposed = (Region(one.region.path, one.region.language, one.text) for one in question.proposals)
    regions = (*(one.region for one in question.proposals), *proposed)
    return asking.masked_regions(Regions(session="", edits=question.edits, regions=regions, cursor=0))


def _told(question: Question) -> str:
    return msgspec.json.encode(question).decode()


def _sent_by_editor(rng: random.Random, key: LaidOut, folder: Path) -> Iterator[Sent]:
    suffix, language = rng.choice(((".py", "python"), (".ts", "typescript"), (".yaml", "yaml"), (".md", "markdown")))
    names = random_names(rng)
    above, below = (random_code(rng, rng.randrange(80), names) for _ in range(2))
    files, questions = _desk(folder)
    uri, other = f"file:///project/keys{suffix}", "file:///project/other.py"
    files.open(other, "/project/other.py", "python", 1, random_code(rng, 30, names))
    files.open(uri, f"/project/keys{suffix}", language, 1, above + key.text + below)
    for _ in range(rng.randrange(4)):
        text = files.documents[uri].text
        _change(rng, files, uri, (len(above), len(text) - len(below)), key)
    for asked in (uri, other):
        snapshot = files.documents[asked].snapshot()
        for _ in range(PLACES):
            yield from _asked(rng, questions, snapshot, rng.randint(0, len(snapshot.text)), key)


def _desk(folder: Path) -> tuple[OpenFiles, Questions]:
    privacy = Privacy(SETTINGS.privacy, (folder,))
    workspace = Workspace((), privacy, SETTINGS.context)
    files = OpenFiles(privacy, workspace, NoRecorder())
    return files, Questions(SETTINGS, Elsewhere(), files, time.monotonic)


def _change(rng: random.Random, files: OpenFiles, uri: str, place: tuple[int, int], key: LaidOut) -> None:
    """A part of the key is removed, it is pasted again below, or something is typed in it. A mark stays as long as
    there is something of its key: a remnant without one is recognised only if it is long."""
    snapshot = files.documents[uri].snapshot()
    first, last = sorted(rng.randint(*place) for _ in range(2))
    kind = rng.choice(("lines", "all", "paste", "type"))
    lines = snapshot.line_start(snapshot.line_of(first)), min(snapshot.line_stop(snapshot.line_of(last)), place[1])
    (start, end), text = {
        "lines": (lines, ""),
        "all": (place, ""),
        "paste": ((place[1], place[1]), key.text),
        "type": ((first, first), rng.choice(("x", "\n", " ", "AbC1"))),
    }[kind]
    changed = snapshot.text[:start] + text + snapshot.text[end:]
    marks = _marks_in(snapshot.text)
    may_lose_one = kind == "lines" and key.has_both_marks and marks % 2 == 0
    if kind == "all" or _marks_in(changed) >= marks or may_lose_one:
        where = (*snapshot.position(start, "utf-32"), *snapshot.position(end, "utf-32"))
        files.change(uri, snapshot.version + 1, [(where, text)], "utf-32", lambda *_: False)


def _marks_in(text: str) -> int:
    return len(MARK.findall(text))


def _asked(rng: random.Random, questions: Questions, snapshot: Snapshot, offset: int, key: LaidOut) -> Iterator[Sent]:
    quoted = rng.choice([secret for secret in key.secrets if secret in snapshot.text] or [""])
    at = snapshot.text.find(quoted)
    about = (
        FileDiagnostic(at, at + len(quoted), f"{quoted}: Unknown word"),
        FileDiagnostic(offset, offset, f'Cannot find name "{quoted}".'),
    )
    question = questions.completion(snapshot, offset, invoked=True)
    block = replace(question, target=Target(offset, offset, block=True))
    yield Sent("completion", questions.engine.cleared(suggest.gap_at(block)))
    rewrite = region.regions_at(question, snapshot, offset, about)
    yield Sent("rewrite", questions.engine.cleared(rewrite))
    after = Candidate(snapshot.uri, offset, offset, "x", "replace", None, {})
    yield Sent("opinion", questions.engine.cleared(opinion.proposals(NextQuestion.of(question), [(after,)])))


async def _sent_over_http(rng: random.Random, key: LaidOut) -> list[Sent]:
    """By a program that has the file in two parts, or as one beside it."""
    names = random_names(rng)
    text = random_code(rng, rng.randrange(20), names) + key.text + random_code(rng, rng.randrange(20), names)
    cursor = rng.randint(0, len(text))
    beside = Text("a.py", random_code(rng, 10, names), 0, "python", (Snippet("keys.py", text),))
    service, sent = Service(Elsewhere(), SETTINGS), []
    for path, asked in (("HTTP", Text("keys.py", text, cursor, "python")), ("HTTP, beside", beside)):
        if gap := await service.context(asked, Wish(invoked=True), ApiClient()):
            sent.append(Sent(path, gap))
    return sent


if __name__ == "__main__":
    main()
