"""The abuse bench itself: its oracle, its sessions, and that it fails where a server misbehaves."""

import asyncio
import json
import random
import re
import sys
import tempfile
from asyncio.subprocess import PIPE
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from bench.abuse import hostile
from bench.abuse.__main__ import parse, run
from bench.abuse.campaigns import CAMPAIGNS, campaign, leaks
from bench.abuse.client import Conversation, shortened, start
from bench.abuse.fuzz import Driver, Fuzzed, FuzzResult, compare, moved
from bench.abuse.ground import Ground
from bench.abuse.messages import ScriptedSession, plan
from bench.abuse.oracle import DOUBTFUL, INVALID, SHAPES, VALID, Oracle, due, fit, offset, replaced
from bench.abuse.report import complaints, summary, table
from bench.abuse.sandbox import MARK, Playground, sandbox
from bench.abuse.steps import Check, End, Plan, Say, Wait, load, store
from bench.harness.servers import Asked

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="processes are found by /proc")


# The oracle


@pytest.mark.parametrize(
    ("text", "line", "character", "encoding", "expected"),
    [
        ("ab\ncd", 1, 1, "utf-16", 4),
        ("ab\r\ncd", 0, 99, "utf-16", 2),
        ("ab\rcd\u2028e\x0cf", 1, 4, "utf-16", 7),
        ("a😀b", 0, 2, "utf-16", 1),
        ("a😀b", 0, 3, "utf-16", 2),
        ("aéb", 0, 2, "utf-8", 1),
        ("aéb", 0, 3, "utf-8", 2),
        ("a😀b", 0, 2, "utf-32", 2),
        ("ab\n", 1, 5, "utf-16", 3),
        ("ab\n", 2, 0, "utf-16", 3),
        ("", 0, 0, "utf-8", 0),
    ],
)
def test_position_is_a_place(text, line, character, encoding, expected):
    assert offset(text, line, character, encoding) == expected


def test_ends_in_the_wrong_order_are_put_in_order():
    ends = [{"line": 0, "character": n} for n in (3, 1)]
    assert replaced("abcd", {"start": ends[0], "end": ends[1]}, "X", "utf-16") == "aXd"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"textDocument": {"uri": "a", "version": 1}, "contentChanges": [{"text": ""}]}, VALID),
        ({"textDocument": {"uri": "a", "version": 1}, "contentChanges": []}, VALID),
        ({"textDocument": {"uri": "a", "version": "1"}, "contentChanges": []}, DOUBTFUL),
        ({"textDocument": {"uri": "a", "version": 1}, "contentChanges": [{"text": 5}]}, DOUBTFUL),
        ({"textDocument": {"uri": "a", "version": 1}, "contentChanges": [{"text": "", "range": 5}]}, DOUBTFUL),
        ({"textDocument": {"uri": "a", "version": 2**31}, "contentChanges": []}, INVALID),
        ({"textDocument": {"uri": "a", "version": None}, "contentChanges": []}, INVALID),
        ({"textDocument": {"uri": "a", "version": 1}}, INVALID),
        ([], INVALID),
    ],
)
def test_changes_are_applied_refused_or_unknowable(change, expected):
    assert fit(change, SHAPES["textDocument/didChange"]) == expected


def told(oracle: Oracle, method: str, **params: object) -> None:
    oracle.receive(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())


def test_oracle_keeps_the_text_until_it_is_doubtful():
    oracle = Oracle()
    item = {"uri": "a", "languageId": "x", "version": 1, "text": "lone \ud800"}
    told(oracle, "textDocument/didOpen", textDocument=item)
    assert oracle.texts == {}
    oracle.initialized = True
    told(oracle, "textDocument/didOpen", textDocument=item)
    assert oracle.texts == {"a": "lone \ufffd"}
    told(oracle, "textDocument/didChange", textDocument={"uri": "a", "version": 2}, contentChanges=[{}])
    assert oracle.doubtful == []
    told(oracle, "textDocument/didChange", textDocument={"uri": "a", "version": 2.5}, contentChanges=[])
    assert oracle.doubtful == ["a"]
    told(oracle, "textDocument/didClose", textDocument={"uri": "a"})
    assert oracle.texts == {}


@pytest.mark.parametrize(
    ("body", "must", "may"),
    [
        (b'{"id": 5, "method": "x"}', "5", []),
        (b'{"id": "\\ud800", "method": "x"}', '"\\ud800"', []),
        (b'{"id": 1.5, "method": "x"}', "", ["null", "1.5"]),
        (b'{"id": true, "method": "x"}', "", ["null", "true"]),
        (b'{"id": 5, "result": {}}', "", ["null", "5"]),
        (b"[", "", ["null"]),
        (b"[" * 100_000, "", ["null"]),
    ],
)
def test_requests_have_to_be_answered(body, must, may):
    assert due(body) == (must, may)


# Sessions


def test_seed_makes_the_same_session_again(tmp_path):
    first, second = (list(ScriptedSession(plan("7-3"), tmp_path).steps(300)) for _ in range(2))
    assert first == second
    assert first != list(ScriptedSession(plan("7-4"), tmp_path).steps(300))


def test_session_is_kept_and_moved_to_another_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("bench.abuse.fuzz.SANDBOX_TEXT", re.compile(r"/old/mla-\w{8}"))
    monkeypatch.setattr("bench.abuse.fuzz.SANDBOX", re.compile(rb"/old/mla-\w{8}"))
    check = Check({"file:///old/mla-abcdefgh/a": "d", "\ud800": "e"})
    steps = [Say(b"uri file:///old/mla-abcdefgh/a"), Wait(), check, End("exit")]
    store(tmp_path / "kept.jsonl", Plan("1"), steps)
    chosen, found = load(tmp_path / "kept.jsonl")
    assert (chosen, found) == (Plan("1"), steps)
    assert list(moved(found, Path("/new"))) == [
        Say(b"uri file:///new/a"),
        Wait(),
        Check({"file:///new/a": "d", "\ud800": "e"}),
        End("exit"),
    ]


def test_damaged_message_never_ends_the_server():

    rng = random.Random(1)
    message = {"jsonrpc": "2.0", "id": 1, "method": "x", "params": {}}
    methods = [hostile.damaged(rng, message).get("method") for _ in range(500)]
    assert not any(ending in methods for ending in ("exit", "shutdown", "initialize"))


# What must be noticed


class Misbehaving:
    """A server that answers each message as it is told to."""

    def __init__(self, answer):
        self._answer = answer
        self._replies: asyncio.Queue = asyncio.Queue()

    async def write(self, data: bytes) -> None:
        message = json.loads(data.partition(b"\r\n\r\n")[2])
        for reply in self._answer(message):
            self._replies.put_nowait(json.dumps(reply).encode())

    async def message(self) -> bytes | None:
        return await self._replies.get()

    async def close(self) -> None:
        pass


def status(message, digests):
    return {"id": message["id"], "result": {"digests": digests}} if "status" in message["method"] else None


async def checked(answer, check: Check, *said: bytes, strict: bool = True, seconds: float = 0.05) -> list[str]:
    """What the harness says of a server that answers so."""
    outcome = FuzzResult(Plan("1", strict=strict))
    talk = Conversation(Misbehaving(answer))
    server = type("Weightless", (), {"memory_mb": lambda self: (1.0, 1.0)})()
    driver = Driver(server, talk, Path(), outcome, outcome.plan)
    for body in said:
        await driver.take(Say(body))
    try:
        await driver.take(check)
        await talk.settled(seconds)
    except TimeoutError as error:
        outcome.wrong.append(f"{error}: {talk.unanswered()}")
    await talk.end()
    return [*outcome.wrong, *(f"unasked {id}" for id in talk.unasked())]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr("bench.abuse.fuzz.ANSWER_SECONDS", 0.05)


ASKED = b'{"jsonrpc": "2.0", "id": 5, "method": "x"}'


async def test_correct_server_causes_no_complaint():
    def answer(message):
        yield status(message, {"a": "1"}) or {"id": message["id"], "result": None}

    assert await checked(answer, Check({"a": "1"}), ASKED) == []


async def test_lost_request_is_noticed():
    def answer(message):
        if reply := status(message, {}):
            yield reply

    (wrong,) = await checked(answer, Check({}), ASKED)
    assert wrong.endswith("['5']")


async def test_request_answered_twice_is_noticed():
    def answer(message):
        yield status(message, {}) or {"id": message["id"], "result": None}
        if message["method"] == "x":
            yield {"id": message["id"], "result": None}

    assert await checked(answer, Check({}), ASKED) == ["unasked 5"]


async def test_unrequested_answer_is_noticed():
    def answer(message):
        yield status(message, {})
        yield {"id": "who?", "result": None}

    assert await checked(answer, Check({})) == ['unasked "who?"']


async def test_silent_server_is_noticed():
    (wrong,) = await checked(lambda message: [], Check({}))
    assert "is not answered" in wrong


@pytest.mark.parametrize(
    ("digests", "strict", "expected"),
    [
        ({"a": "1"}, True, []),
        ({"a": "2"}, True, ["another text than the editor's: 'a'"]),
        ({"a": "2"}, False, ["another text than the editor's: 'a'"]),
        ({}, True, ["a text is missing: 'a'"]),
        ({}, False, []),
        ({"a": "1", "b": "1"}, True, ["a text that was never opened: 'b'"]),
        ({"a": "1", "file:///.env": "1"}, False, ["a hidden document is kept: 'file:///.env'"]),
    ],
)
def test_texts_are_compared(digests, strict, expected):
    assert compare(Check({"a": "1"}, ("file:///.env",)), digests, strict) == expected


def test_traceback_is_told_by_its_end():
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n  File "b.py", line 2, in g\n'
    assert (
        shortened(trace + "    1/0\nZeroDivisionError: no\nmore") == 'File "b.py", line 2, in g: ZeroDivisionError: no'
    )


@LINUX
async def test_sandbox_ends_only_its_own_processes(tmp_path):
    with sandbox() as other:
        assert other.processes() == []
        place = Playground(Path(tempfile.mkdtemp()))
        ours, theirs = [
            await asyncio.create_subprocess_exec(
                "cat", stdin=PIPE, stdout=PIPE, env={MARK: mark, "PATH": "/usr/bin:/bin"}
            )
            for mark in (place.mark, other.mark)
        ]
        for process in (ours, theirs):
            process.stdin.write(b"\n")
            await process.stdout.readline()  # it runs, and shows its environment
        assert not place.signal(theirs.pid, 9)
        assert place.end() == [ours.pid]
        await ours.wait()
        assert theirs.returncode is None
        assert not place.root.exists()
    await theirs.wait()


# What is told


def test_failure_is_told_with_a_command_that_repeats_it():
    fuzzed = Fuzzed([FuzzResult(Plan("1-0")), FuzzResult(Plan("1-1"), wrong=["lost"])], 2.0, {"1-1": "kept.jsonl"})
    said = "\n".join(complaints(fuzzed))
    for part in ("--session 1-1", "--replay kept.jsonl", "lost"):
        assert part in said
    assert summary(fuzzed)["survived"] == 1
    assert f"fuzzer{2:48}" in table(fuzzed)


@LINUX
@pytest.mark.slow
async def test_quick_form_holds(tmp_path, capsys, monkeypatch):
    """Also on a machine that is busy with something else."""
    for name in ("client", "fuzz"):
        monkeypatch.setattr(f"bench.abuse.{name}.ANSWER_SECONDS", 60.0)
    code = await run(parse(["--quick", "--seed", "quick", "--failures", str(tmp_path)]))
    said = capsys.readouterr().out
    assert code == 0, said
    assert json.loads(said.splitlines()[-1])["survived"] == 1


# Campaigns


@pytest.fixture
def ground(tmp_path):
    return Ground(Playground(tmp_path), "hub", "1", 60.0)


def test_case_can_be_made_again(ground, tmp_path):
    numbers = [rng.random() for rng, _ in zip(ground.cases(), range(3), strict=False)]
    again = Ground(Playground(tmp_path / "again"), "hub", "1", 60.0, only=2)
    assert [rng.random() for rng in again.cases()] == [numbers[2]]


def test_campaign_ends_in_time(tmp_path):
    assert [*Ground(Playground(tmp_path), "hub", "1", -1.0).cases()] == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda root: (root / "home/data").mkdir(), []),
        (lambda root: (root / "made/model").touch(), []),
        (lambda root: (root / "escaped").touch(), ["there is another file, or one is missing: escaped"]),
        (lambda root: (root / "others/.bashrc").unlink(), ["one is missing: others/.bashrc"]),
        (lambda root: (root / "others/settings.json").write_text("{}"), ["was changed: others/settings.json"]),
    ],
)
def test_change_outside_the_home_is_noticed(ground, tmp_path, change, expected):
    for _, _ in zip(ground.cases(), range(2), strict=False):
        change(tmp_path)
        break
    ground._check_outside()
    assert len(ground.result.wrong) == len(expected)
    for wrong, end in zip(ground.result.wrong, expected, strict=True):
        assert wrong.endswith(end)


PRINTS = "import sys; sys.stdout.write({!r}); sys.exit({})"


@LINUX
@pytest.mark.parametrize(
    ("printed", "code", "expected"),
    [
        ("added tiny\n", 0, ""),
        ("a\x1b[31m", 1, "printed '\\x1b'"),
        ("a\u202eb", 1, "printed '\\u202e'"),
        ("x" * 70_000, 1, "printed 70,000 characters"),
        ("", 139, "ended with 139"),
    ],
)
async def test_command_is_judged(ground, monkeypatch, printed, code, expected):
    monkeypatch.setattr("bench.abuse.ground.start", partial(start, command=(sys.executable, "-c")))
    await ground.command(PRINTS.format(printed, code))
    assert [expected in problem for problem in ground.result.wrong] == ([True] if expected else [])


@LINUX
async def test_endless_command_is_ended_and_noticed(ground, monkeypatch):
    monkeypatch.setattr("bench.abuse.ground.start", partial(start, command=(sys.executable, "-c")))
    assert (await ground.command("import time; time.sleep(99)", seconds=0.1)).code is None
    assert "ended with None" in ground.result.wrong[0]


async def test_late_bad_or_missing_health_is_noticed(ground, monkeypatch):
    states, stop = iter(["ready", "unavailable", "gone"]), Event()
    monkeypatch.setattr("bench.abuse.ground.PROBE_SECONDS", 0.0)
    monkeypatch.setattr("bench.abuse.ground.health", lambda port: next(states))
    ground._probe(0, stop)
    assert [problem.split(" after")[0] for problem in ground.result.wrong] == [
        "case 0: /health said 'unavailable'",
        "case 0: /health said 'gone'",
    ]


def test_leak_is_noticed():
    asked = [Asked("POST", "/", {}, body) for body in (b"x = 1", b"y = canary_4711_old", b"from .env import x")]
    server = type("Told", (), {"asked": asked})()
    assert [leak.partition(":")[0] for leak in leaks(server, ".env")] == [
        "the name of a hidden file arrived",
        "a canary arrived",
    ]


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize("name", CAMPAIGNS)
async def test_quick_form_of_each_campaign_holds(name, monkeypatch):
    """A few cases; on a machine that is busy with something else /health may be late."""
    monkeypatch.setattr("bench.abuse.ground.WORST_HEALTH_SECONDS", 30.0)
    monkeypatch.setattr("bench.abuse.campaigns.COMPLETION_SECONDS", 60.0)
    found = await campaign(name, "quick", 2.0)
    assert found.wrong == []
    assert found.cases
    assert found.probes
