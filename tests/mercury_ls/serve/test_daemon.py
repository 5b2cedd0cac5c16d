import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from mercury_engine.api import Gap
from mercury_engine.fake import FakeEngine
from mercury_ls.link import claim, local
from mercury_ls.link.client import EngineClient, EngineUnavailable
from mercury_ls.link.connection import connect
from mercury_ls.serve import daemon
from mercury_ls.serve.app import Activity, App
from mercury_ls.serve.worker import Worker
from mercury_ls.settings.schema import EngineSettings

GAP = Gap(session="s", path="a.py", language="python", before="x")

SERVER = """
import os, sys
from mercury_engine.fake import FakeEngine
from mercury_ls.serve import daemon

class Announced(FakeEngine):
    def info(self):
        print("ready", flush=True)
        return super().info()

def answer(before):
    if os.path.exists(sys.argv[1] + "/crash"):
        os.remove(sys.argv[1] + "/crash")
        os._exit(9)
    return "answer"

sys.exit(daemon.run(daemon.Options(directory=sys.argv[1]), lambda report: Announced(answer)))
"""

HANGING = """
import signal, sys
from pathlib import Path
from mercury_ls.link.claim import claimed

signal.signal(signal.SIGTERM, signal.SIG_DFL if sys.argv[2] == "mild" else signal.SIG_IGN)
with claimed(Path(sys.argv[1])) as claim:
    claim.listener.socket.listen()
    print("ready", flush=True)
    sys.stdin.read()
"""


def start(directory):
    command = [sys.executable, "-c", SERVER, directory]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def killed(process):
    with process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def server(directory):
    with killed(start(directory)) as process:
        assert process.stdout.readline() == "ready\n"
        yield process


@contextmanager
def hanging(directory, temper="mild"):
    """Holds the lock, and takes connections without a word."""
    command = [sys.executable, "-c", HANGING, directory, temper]
    with killed(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)) as process:
        assert process.stdout.readline() == "ready\n"
        yield process


def listening(directory):
    """The status of a server that is about to open its socket."""
    while (status := daemon.status(directory)) is None:
        pass
    return status


class Time:
    """A clock that only `sleep` moves, and what happens at given times."""

    def __init__(self, **happens):
        self.now = 0.0
        self.happens = {float(at.removeprefix("at_")): what for at, what in happens.items()}

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        end = self.now + seconds
        for at in sorted(self.happens):
            if at <= end:
                self.now = at
                self.happens.pop(at)()
        self.now = end


async def test_server_leaves_when_unused_for_long_enough():
    time = Time()
    await daemon.until_idle(Activity(time), 600, time.sleep)
    assert time.now == 600


async def test_open_lease_keeps_server_however_long_it_lasts():
    time = Time()
    activity = Activity(time)
    lease = activity.active()
    time.happens = {100.0: lease.__enter__, 9000.0: lambda: lease.__exit__(None, None, None)}
    await daemon.until_idle(activity, 600, time.sleep)
    assert time.now == 9600


async def test_request_starts_wait_anew():
    time = Time()
    activity = Activity(time)

    def ask():
        with activity.active():
            pass

    time.happens = {500.0: ask}
    await daemon.until_idle(activity, 600, time.sleep)
    assert time.now == 1100


async def test_server_without_engine_stays_only_to_say_so():
    def load(report):
        raise ValueError("no weights")

    worker, time = Worker(load), Time()
    await daemon.until_done(daemon.Options(idle_minutes=0), worker, Activity(time), asyncio.Event(), time.sleep)
    await worker.close()
    assert time.now == daemon.LINGER_SECONDS


class Rounds:
    """Sleeps until it is told that it is time."""

    def __init__(self):
        self.due = asyncio.Semaphore(0)
        self.asleep = asyncio.Semaphore(0)

    async def __call__(self, seconds):
        self.asleep.release()
        await self.due.acquire()

    async def next(self):
        """One more round, and it is over."""
        await self.asleep.acquire()
        self.due.release()
        await self.asleep.acquire()
        self.asleep.release()


async def health(connection):
    response = await connection.send("GET", "/health", {})
    await connection.read(response)
    return response.status


@asynccontextmanager
async def watched(directory, rounds):
    """A server in this process, which looks at its files once a round."""
    with daemon.endpoints(daemon.Options(directory=directory), directory) as (endpoint,):
        stopped = asyncio.Event()
        worker = Worker(lambda report: FakeEngine())
        server = daemon.web_server(endpoint, App(worker, Activity(), stopped.set))
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[endpoint.socket]))
            while not server.started:
                await asyncio.sleep(0)
            watching = group.create_task(daemon.watch(endpoint.claim, server, stopped, rounds))
            yield stopped
            watching.cancel()
            server.should_exit = True
        await worker.close()


async def test_deleted_socket_is_reopened_and_connected_clients_stay(directory):
    socket_path, rounds = Path(local.address(directory).path), Rounds()
    async with watched(directory, rounds):
        before = await connect(local.address(directory))
        assert await health(before) == 200
        socket_path.unlink()
        await rounds.next()
        after = await connect(local.address(directory))
        assert [await health(before), await health(after)] == [200, 200]
        before.close()
        after.close()


async def test_server_whose_lock_is_another_s_leaves(directory):
    rounds = Rounds()
    async with watched(directory, rounds) as stopped:
        await rounds.next()
        assert not stopped.is_set()
        Path(directory, claim.LOCK).unlink()
        with claim.lock(directory):
            rounds.due.release()
            await stopped.wait()


async def test_untrusted_directory_is_reported_once(directory, caplog):
    rounds = Rounds()
    async with watched(directory, rounds) as stopped:
        os.chmod(directory, 0o755)
        await rounds.next()
        await rounds.next()
        await rounds.next()
        assert [record.message.count("chmod 700") for record in caplog.records] == [1]
        os.chmod(directory, 0o700)
        assert not stopped.is_set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:8391", ("127.0.0.1", 8391)),
        ("[::1]:80", ("::1", 80)),
        (":80", ("127.0.0.1", 80)),
        ("models.example.org:443", ("models.example.org", 443)),
    ],
)
def test_listening_address_is_a_host_and_a_port(text, expected):
    assert daemon.split_address(text) == expected


@pytest.mark.parametrize(
    "text", ["8391", "localhost", "localhost:http", "localhost:99999", "localhost:²", f"localhost:{'1' * 5000}", ""]
)
def test_malformed_host_and_port_is_named_with_an_example(text):
    with pytest.raises(ValueError, match=r"is not HOST:PORT with a port up to 65535, for example 127\.0\.0\.1:8391"):
        daemon.split_address(text)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (daemon.Options(http="127.0.0.1:0"), "http://127.0.0.1:54321"),
        (daemon.Options(http=":0"), "http://127.0.0.1:54321"),
        (daemon.Options(http="[::1]:0"), "http://[::1]:54321"),
        (
            daemon.Options(http="0.0.0.0:0", certificate="c.pem", hosts=("models.example.org", "other")),
            "https://models.example.org:54321",
        ),
    ],
)
def test_address_for_clients_has_the_port_that_system_chose(options, expected):
    bound = SimpleNamespace(getsockname=lambda: ("0.0.0.0", 54321))
    assert daemon.site(options, bound) == expected


def check_refused(capsys, options, *reasons):
    assert daemon.run(options, lambda report: FakeEngine()) == daemon.FAILED
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    for reason in reasons:
        assert reason in said


def test_other_machines_are_served_only_with_a_certificate(directory, capsys):
    check_refused(capsys, daemon.Options(directory=directory, http="0.0.0.0:8391"), "unencrypted", "certificate")


def test_other_machines_always_need_the_token(directory, capsys):
    options = daemon.Options(directory=directory, http="0.0.0.0:8391", open=True)
    check_refused(capsys, options, "other machines", "--without-token is for 127.0.0.1 only")


def test_port_in_use_is_named(directory, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        said = f"cannot listen on {where} ({os.strerror(errno.EADDRINUSE)}): choose another port or address\n"
        check_refused(capsys, daemon.Options(directory=directory, http=where), said)


def test_directory_that_others_can_enter_is_refused(directory, capsys):
    os.chmod(directory, 0o755)
    check_refused(capsys, daemon.Options(directory=directory), "chmod 700")


def test_missing_certificate_is_named(directory, capsys):
    options = daemon.Options(
        directory=directory, http="127.0.0.1:0", token="t", certificate="/missing.pem", key="/k.pem"
    )
    check_refused(capsys, options, "/missing.pem")


def test_without_a_server_there_is_no_status_and_nothing_to_stop(directory):
    assert daemon.status(directory) is None
    assert daemon.stop(directory) is False


def test_hanging_server_is_named_with_its_process(directory, monkeypatch):
    monkeypatch.setattr(daemon, "ANSWER_SECONDS", 0.01)
    with (
        hanging(directory) as process,
        pytest.raises(TimeoutError, match=rf"\(process {process.pid}\), but does not answer: stop it with"),
    ):
        daemon.status(directory)


@pytest.mark.skipif(os.name == "nt", reason="Windows knows no SIGTERM")
@pytest.mark.parametrize(
    ("temper", "number"),
    [("mild", "SIGTERM"), pytest.param("stubborn", "SIGKILL", marks=pytest.mark.slow)],
)
def test_hanging_server_is_ended_by_force(directory, monkeypatch, temper, number):
    monkeypatch.setattr(daemon, "ANSWER_SECONDS", 0.01)
    with hanging(directory, temper) as process:
        assert daemon.stop(directory) is True
        assert process.wait() == -signal.Signals[number]
    assert daemon.status(directory) is None


@pytest.mark.slow
def test_server_reports_its_status_and_stops_when_asked(directory):
    with server(directory) as process:
        status = listening(directory)
        assert (status.state, status.info.engine) == ("ready", "fake")
        assert daemon.stop(directory) is True
        assert process.wait() == 0
    assert [path.name for path in directory.iterdir()] == [claim.LOCK]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows knows no SIGTERM")
def test_sigterm_is_a_clean_end(directory):
    with server(directory) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
        assert process.stderr.read() == ""
    assert [path.name for path in directory.iterdir()] == [claim.LOCK]


@pytest.mark.slow
def test_competing_servers_leave_one_survivor_and_the_other_says_why(directory):
    with killed(start(directory)) as one, killed(start(directory)) as other:
        survivor, loser = (one, other) if one.stdout.readline() else (other, one)
        assert loser.wait() == local.ALREADY_RUNNING
        assert f"process {survivor.pid}" in loser.stderr.read()
        assert listening(directory).state == "ready"
        assert survivor.poll() is None
        daemon.stop(directory)
        assert survivor.wait() == 0


@pytest.mark.slow
async def test_engine_that_crashes_in_mid_request_is_restarted(directory):
    started = []

    def spawn():
        started.append(start(directory))
        return started[-1]

    states, told = [], asyncio.Event()

    def on_status(status):
        states.append(status.state)
        told.set()

    async def until_ready():
        while client.status.state != "ready":
            told.clear()
            await told.wait()

    client = EngineClient(EngineSettings(), on_status=on_status, directory=directory, spawn=spawn)
    await client.start()
    await until_ready()
    Path(directory, "crash").touch()
    with pytest.raises(EngineUnavailable):
        await anext(client.fill(GAP))
    assert client.status.state == "unavailable"
    await until_ready()
    drafts = [draft async for draft in client.fill(GAP)]
    await client.close()
    await asyncio.to_thread(daemon.stop, directory)
    assert drafts[-1].text == "answer"
    assert [process.communicate() and process.returncode for process in started] == [9, 0]
    assert states[-1] == "ready"
    assert states.count("unavailable") == 1
