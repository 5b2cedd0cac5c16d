import asyncio
import os
from contextlib import ExitStack, asynccontextmanager, closing, nullcontext, suppress
from pathlib import Path
from threading import Semaphore

import pytest
from msgspec.structs import replace

from bench.harness.in_process import InProcessClient
from mercury_engine.api import (
    ChatRequest,
    Draft,
    EngineError,
    Gap,
    Message,
    Regions,
    RequestError,
    TooLongError,
)
from mercury_engine.fake import FakeEngine
from mercury_ls.link import client as client_module
from mercury_ls.link import local
from mercury_ls.link.claim import LOCK, lock
from mercury_ls.link.client import Backoff, EngineClient, EngineUnavailable, Status
from mercury_ls.link.connection import connect
from mercury_ls.link.wire import Failure, frame
from mercury_ls.serve import daemon
from mercury_ls.settings.schema import EngineSettings

CERTIFICATE = Path(__file__).parent / "certificate"
READY = Status("ready", info=FakeEngine().info())


def gap(text="x", **fields):
    return Gap(session="s", path="a.py", language="python", before=text, **fields)


NOTHING = Regions(session="s", regions=(), cursor=0)


class Statuses(list):
    """Keeps what it is told, and waits for a state to come."""

    def __init__(self):
        super().__init__()
        self.told = asyncio.Event()

    def __call__(self, status):
        self.append(status)
        self.told.set()

    async def until(self, state):
        await self.until_any(lambda status: status.state == state)

    async def until_any(self, wanted):
        while not any(map(wanted, self)):
            self.told.clear()
            await self.told.wait()


class Time:
    """A clock that only `sleep` moves. After `naps` naps the sleeper stays asleep."""

    def __init__(self, naps=1000):
        self.now = 0.0
        self.naps = []
        self.most = naps
        self.exhausted = asyncio.Event()

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        if len(self.naps) >= self.most:
            self.exhausted.set()
            await asyncio.Event().wait()
        self.naps.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@asynccontextmanager
async def serving(engine, directory, options=None, door=None):
    """The real application on a real web server, in this process."""
    options = options or daemon.Options(directory=directory)
    with daemon.endpoints(options, directory) as endpoints:
        task = asyncio.create_task(daemon.serve(options, endpoints, lambda report: engine))
        try:
            yield task
        finally:
            await daemon.ask(directory, "POST", "/engine/v2/stop")
            await task


@asynccontextmanager
async def connected(directory, settings=None, **options):
    statuses = Statuses()
    client = EngineClient(settings or EngineSettings(model="fake"), on_status=statuses, directory=directory, **options)
    await client.start()
    try:
        await statuses.until("ready")
        yield client, statuses
    finally:
        await client.close()


async def why_unavailable(settings=EngineSettings(), **options):  # noqa: B008  frozen
    """What a new client says once it has no engine."""
    statuses = Statuses()
    client = EngineClient(settings, on_status=statuses, **options)
    await client.start()
    await statuses.until("unavailable")
    await client.close()
    return client.status.detail


@asynccontextmanager
async def listening(directory, answer):
    """A server that does not know HTTP; the clients have to be closed before it."""
    tasks = []

    async def tracked(reader, writer):
        tasks.append(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, OSError):
            await answer(reader, writer)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_unix_server(tracked, local.address(directory).path)
    try:
        yield
    finally:
        server.close()
        await asyncio.gather(*tasks)


@asynccontextmanager
async def scripted(directory, *replies):
    """A server whose lease says ready; each further connection gets the next reply and is closed."""
    waiting, leases = list(replies), []

    async def answer(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        if b"/lease " in head:
            leases.append(head)
            writer.write(chunked(frame(READY)))
            await reader.read()
        else:
            writer.write(waiting.pop(0))

    async with listening(directory, answer):
        yield leases


def chunked(*pieces, end=b""):
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + end


async def everything(drafts):
    return [draft async for draft in drafts]


async def test_drafts_come_from_the_server_and_connections_are_used_again(directory):
    engine = FakeEngine({"x": "answer"}, passes=3)
    async with serving(engine, directory), connected(directory) as (client, statuses):
        for _ in range(3):
            drafts = await everything(client.fill(gap()))
            assert [(draft.step, draft.final) for draft in drafts] == [(1, False), (2, False), (3, True)]
        await client.warm(gap())
        both = await asyncio.gather(*(everything(client.fill(gap())) for _ in range(2)))
        assert [drafts[-1].text for drafts in both] == ["answer", "answer"]
        assert len(client._idle) == 2
    assert statuses[-1] == READY


async def test_server_started_with_another_model_is_reported(directory):
    settings = EngineSettings(model="stand-in")
    async with serving(FakeEngine(), directory), connected(directory, settings) as (client, statuses):
        assert statuses[-1].state == "ready"
        assert "not with engine.model = stand-in: run `mercury-ls serve --stop`" in client.status.detail


async def test_closing_the_generator_stops_the_engine_within_one_forward(directory):
    reached, passing = Semaphore(0), Semaphore(0)
    closed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def pause(step):
        reached.release()
        passing.acquire()

    class Watched(FakeEngine):
        def fill(self, gap):
            try:
                yield from super().fill(gap)
            finally:
                loop.call_soon_threadsafe(closed.set)

    engine = Watched(passes=100, pause=pause)
    async with serving(engine, directory), connected(directory) as (client, _):
        drafts = client.fill(gap())
        passing.release()
        await anext(drafts)
        await asyncio.to_thread(reached.acquire)
        await asyncio.to_thread(reached.acquire)
        await drafts.aclose()
        await daemon.ask(directory, "GET", "/engine/v2/info")
        passing.release(100)
        await closed.wait()
    assert (engine.forwards, engine.open) == (2, 0)


async def test_without_unix_sockets_a_loopback_port_and_its_token_are_found(directory, monkeypatch):
    monkeypatch.setattr(local, "has_unix_sockets", lambda: False)
    engine = FakeEngine({"x": "answer"}, passes=1)
    async with serving(engine, directory), connected(directory) as (client, _):
        (draft,) = await everything(client.fill(gap()))
        stranger = await connect(replace(local.address(directory), token="guessed"))
        refused = await stranger.send("GET", "/engine/v2/info", {})
        stranger.close()
    assert draft.text == "answer"
    assert refused.status == 401


async def test_conversation_streams_its_text(directory):
    async with serving(FakeEngine(passes=3), directory), connected(directory) as (client, _):
        said = await everything(client.chat(ChatRequest(session="s", messages=(Message("user", "hello"),))))
        assert [each.final for each in said] == [False, False, True]
        assert said[-1].text == "You said: hello"


async def test_conversation_that_nobody_can_answer_is_told_apart(directory):
    plain = FakeEngine(info=replace(FakeEngine().info(), chats=False))
    async with serving(plain, directory), connected(directory) as (client, _):
        with pytest.raises(RequestError, match="does not chat"):
            await everything(client.chat(ChatRequest(session="s", messages=(Message("user", "hello"),))))
        with pytest.raises(RequestError, match="messages is empty"):
            await everything(client.chat(ChatRequest(session="s", messages=())))


async def test_overlong_conversation_is_told_apart(directory):
    def says(asked):
        raise TooLongError("900 tokens, and 800 fit")

    async with serving(FakeEngine(says=says), directory), connected(directory) as (client, _):
        with pytest.raises(TooLongError, match="900 tokens, and 800 fit"):
            await everything(client.chat(ChatRequest(session="s", messages=(Message("user", "hello"),))))


async def test_failed_request_is_an_error_of_that_request_alone(directory):
    def answer(before):
        if before == "bad":
            raise EngineError("the span is too long: shorten it")
        return "fine"

    async with serving(FakeEngine(answer), directory), connected(directory) as (client, statuses):
        with pytest.raises(EngineError, match="the span is too long: shorten it"):
            await everything(client.fill(gap("bad")))
        with pytest.raises(EngineError, match="about nothing"):
            await everything(client.rewrite(NOTHING))
        assert (await everything(client.fill(gap("good"))))[-1].text == "fine"
    assert [status.state for status in statuses][-1] == "ready"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (
            chunked(frame(Draft()), frame(Failure("unavailable", "stopping")))[:-9],
            "closed",
        ),
        (b"", "closed the connection"),
        (chunked(b"\x00\x00\x00\x02\xff\xff"), "received a malformed frame"),
        (chunked(b"\xff\xff\xff\xff"), "over the limit"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "not HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "instead of a chunk size"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n", "chunk of 68719476735 bytes"),
    ],
)
async def test_engine_lost_in_mid_request_is_unavailable_and_so_is_status(directory, reply, reason):
    time = Time(naps=0)
    async with (
        scripted(directory, reply),
        connected(directory, clock=time, sleep=time.sleep) as (client, _),
    ):
        with pytest.raises(EngineUnavailable, match=reason):
            await everything(client.fill(gap()))
        assert client.status.state == "unavailable"
        assert reason in client.status.detail
        with pytest.raises(EngineUnavailable, match=reason):
            await anext(client.fill(gap()))


@pytest.mark.parametrize("said", [b"", chunked(frame(Draft()))])
async def test_unresponsive_server_is_not_waited_for_much_beyond_deadline(directory, said, monkeypatch):
    monkeypatch.setattr(client_module, "PATIENCE_SECONDS", 0.01)

    async def answer(reader, writer):
        is_lease = b"/lease " in await reader.readuntil(b"\r\n\r\n")
        writer.write(chunked(frame(READY)) if is_lease else said)
        await reader.read()

    async with listening(directory, answer), connected(directory) as (client, _):
        with pytest.raises(EngineUnavailable, match="does not answer"):
            await everything(client.fill(gap(deadline_ms=20.0)))
        assert client.status.detail == "the engine server does not answer: run `mercury-ls doctor`"


async def test_answer_without_final_draft_is_no_answer(directory):
    async with scripted(directory, chunked(end=b"0\r\n\r\n")), connected(directory) as (client, _):
        with pytest.raises(EngineUnavailable, match="without a final draft"):
            await everything(client.fill(gap()))


async def test_after_a_loss_the_lease_is_taken_again(directory):
    time = Time()
    async with (
        scripted(directory, b"") as leases,
        connected(directory, clock=time, sleep=time.sleep) as (client, statuses),
    ):
        with pytest.raises(EngineUnavailable):
            await everything(client.fill(gap()))
        statuses.clear()
        await statuses.until("ready")
        assert (len(leases), time.naps) == (2, [0.0])


async def test_connection_closed_while_idle_is_replaced(directory):
    reply = chunked(frame(Draft(1, final=True)), end=b"0\r\n\r\n")
    heads = []

    async def answer(reader, writer):
        """Answers the first request of a connection and hangs up at the second."""
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        lease = b"/lease " in heads[-1]
        writer.write(chunked(frame(READY)) if lease else reply)
        await reader.readuntil(b"POST")

    async with listening(directory, answer), connected(directory) as (client, _):
        first, second = [await everything(client.fill(gap())) for _ in range(2)]
    assert first == second
    assert len(heads) == 3


async def test_before_the_engine_is_ready_requests_fail_at_once(directory):
    client = EngineClient(EngineSettings(), directory=directory)
    with pytest.raises(EngineUnavailable, match="the engine is starting"):
        await anext(client.fill(gap()))
    with pytest.raises(EngineUnavailable, match="the engine is starting"):
        await client.warm(gap())


async def test_loading_shows_its_progress_and_a_failed_load_its_reason(directory):
    passing = Semaphore(0)

    def load(report):
        report(0.25, "reading weights")
        passing.acquire()
        raise EngineError(reason)

    reason, statuses = "model.safetensors is missing: run mercury-ls doctor", Statuses()
    options = daemon.Options(directory=directory)
    with daemon.endpoints(options, directory) as endpoints:
        server = asyncio.create_task(daemon.serve(options, endpoints, load))
        client = EngineClient(EngineSettings(), on_status=statuses, directory=directory)
        await client.start()
        await statuses.until_any(lambda status: status.progress)
        with pytest.raises(EngineUnavailable, match="reading weights"):
            await anext(client.fill(gap()))
        passing.release()
        await statuses.until_any(lambda status: status.detail == reason and status.state == "unavailable")
        await client.close()
        await daemon.ask(directory, "POST", "/engine/v2/stop")
        assert await server == daemon.FAILED


class Ended:
    def __init__(self, code):
        self.code = code

    def poll(self):
        return self.code


async def test_server_that_dies_at_once_is_restarted_ever_more_slowly(directory):
    starts, time, statuses = [], Time(naps=26), Statuses()
    client = EngineClient(
        EngineSettings(),
        on_status=statuses,
        directory=directory,
        spawn=lambda: starts.append(time.now) or Ended(1),
        clock=time,
        sleep=time.sleep,
    )
    await client.start()
    await time.exhausted.wait()
    await client.close()
    assert time.naps[1::2] == pytest.approx([0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60, 60])
    assert len(starts) == 14
    assert "exited with code 1: see " in statuses[0].detail


async def test_server_that_lost_race_for_lock_is_no_failure(directory):
    time = Time()

    def spawn():
        spawned.set()
        return Ended(local.ALREADY_RUNNING)

    spawned, statuses = asyncio.Event(), Statuses()
    client = EngineClient(
        EngineSettings(), on_status=statuses, directory=directory, spawn=spawn, clock=time, sleep=time.sleep
    )
    await client.start()
    await spawned.wait()
    async with scripted(directory):
        await statuses.until("ready")
        await client.close()
    assert [status.state for status in statuses] == ["ready"]


@asynccontextmanager
async def starting(directory, spawn, **options):
    """A client that may start servers, and whom it ended."""
    ended, statuses = [], Statuses()
    client = EngineClient(EngineSettings(), on_status=statuses, directory=directory, spawn=spawn, **options)

    async def end(holder):
        ended.append(holder)

    client._end = end
    await client.start()
    try:
        yield client, statuses, ended
    finally:
        await client.close()


async def test_lock_holder_without_socket_is_ended_and_another_is_started(directory):
    time, started = Time(), asyncio.Event()
    with ExitStack() as held:
        held.enter_context(lock(directory))

        def spawn():
            started.set()
            return Ended(None)

        async with starting(directory, spawn, clock=time, sleep=time.sleep) as (client, statuses, ended):
            while not ended:
                await asyncio.sleep(0)
            assert ended == [str(os.getpid())]
            assert time.now == pytest.approx(client_module.SILENCE_SECONDS, abs=2 * client_module.CONNECT_SECONDS)
            assert not started.is_set()
            held.close()
            await started.wait()
            async with scripted(directory):
                await statuses.until("ready")
                await client.close()


async def test_lock_holder_with_a_late_socket_is_waited_for(directory):
    time, spawned = Time(), []
    with lock(directory):
        start = starting(directory, lambda: spawned.append(1), clock=time, sleep=time.sleep)
        async with start as (client, statuses, ended), scripted(directory):
            await statuses.until("ready")
            await client.close()
    assert (ended, spawned) == ([], [])


@pytest.mark.parametrize("locked", [True, False])
async def test_silent_server_gives_way_to_another(directory, locked, monkeypatch):
    """It is stopped: the system still takes its connections. Without its lock another simply takes its place."""
    monkeypatch.setattr(client_module, "SILENCE_SECONDS", 0.01)
    time, given_way = Time(), asyncio.Event()

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        if given_way.is_set():
            writer.write(chunked(frame(READY)))
        await reader.read()

    def spawn():
        given_way.set()
        return Ended(None)

    with lock(directory) if locked else nullcontext():
        async with (
            listening(directory, answer),
            starting(directory, spawn, clock=time, sleep=time.sleep) as (_, statuses, ended),
        ):
            await statuses.until("unavailable")
            assert ended == ([str(os.getpid())] if locked else [])
            assert given_way.is_set() is not locked
            given_way.set()
            await statuses.until("ready")
    assert "does not answer" in statuses[0].detail


async def test_silent_remote_server_is_only_unavailable(directory, monkeypatch):
    monkeypatch.setattr(client_module, "SILENCE_SECONDS", 0.01)

    async def answer(reader, writer):
        await reader.read()

    async with listening(directory, answer):
        assert "does not answer" in await why_unavailable(directory=directory)


async def test_lock_that_is_no_file_is_the_reason_given(directory):
    Path(directory, LOCK).mkdir()
    said = await why_unavailable(directory=directory, spawn=lambda: Ended(1))
    assert f"cannot use {directory}/{LOCK} as the lock" in said


async def test_server_that_never_opens_its_socket_is_given_up(directory):
    time = Time()
    said = await why_unavailable(directory=directory, spawn=lambda: Ended(None), clock=time, sleep=time.sleep)
    assert "did not open a socket within 30 s" in said


async def test_without_a_way_to_start_a_server_it_waits_for_one(directory):
    statuses = Statuses()
    client = EngineClient(EngineSettings(), on_status=statuses, directory=directory)
    await client.start()
    await statuses.until("unavailable")
    async with scripted(directory):
        await statuses.until("ready")
        await client.close()


async def test_untrusted_directory_is_the_reason_given(directory):
    os.chmod(directory, 0o755)
    assert "chmod 700" in await why_unavailable(directory=directory)


async def test_another_protocol_version_on_the_other_side_is_named(directory):
    body = b'{"error": "this server speaks engine protocol 2", "remedy": "install the same version"}'
    reply = b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)

    async with listening(directory, answer):
        said = await why_unavailable(directory=directory)
    assert said == "this server speaks engine protocol 2: install the same version"


def remote_settings(directory, options, scheme, token):
    file = directory / "token"
    file.write_text(token + "\n")
    return EngineSettings(address=f"{scheme}://{options.http}", token_file=str(file))


def free_address():
    with closing(daemon.bind_http(daemon.Options(http="127.0.0.1:0"))) as bound:
        return f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_remote_engine_is_asked_with_token(directory, scheme, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE / "localhost.pem"))
    pair = {"certificate": str(CERTIFICATE / "localhost.pem"), "key": str(CERTIFICATE / "key.pem")}
    options = daemon.Options(
        directory=directory, http=free_address(), token="secret", **(pair if scheme == "https" else {})
    )
    engine = FakeEngine({"x": "answer"}, passes=1)
    async with serving(engine, directory, options):
        settings = remote_settings(directory, options, scheme, "secret")
        async with connected(directory, settings) as (client, _):
            (draft,) = await everything(client.fill(gap()))
            assert draft.text == "answer"
        settings = remote_settings(directory, options, scheme, "guessed")
        assert "the bearer token is missing or wrong" in await why_unavailable(settings)


TOKEN = "t0ken-of-the-engine-server"
BAD_FRAME = b"\x82\xa5state\xba" + TOKEN.encode() + b"\xa6detail\xa1x"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (b"HTTP/1.1 403 X\r\ncontent-length: 260\r\n\r\n" + b"no: ".ljust(190) + TOKEN.encode().ljust(70), "no: …"),
        (b"Bearer " + TOKEN.encode() + b" HTTP\r\n\r\n", "sent '… HTTP', which is not HTTP/1.1"),
        (
            b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n" + TOKEN.encode() + b"\r\n",
            "sent '…' instead of a chunk",
        ),
        (
            b"HTTP/1.1 200 X\r\ncontent-length: %d\r\n\r\n" % (4 + len(BAD_FRAME))
            + len(BAD_FRAME).to_bytes(4, "big")
            + BAD_FRAME,
            "Invalid enum value '…'",
        ),
    ],
)
async def test_gateway_that_repeats_token_is_not_quoted(directory, reply, reason):
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        address = "{}:{}".format(*server.sockets[0].getsockname())
        settings = remote_settings(directory, daemon.Options(http=address), "http", TOKEN)
        assert reason in (shown := await why_unavailable(settings))
        assert TOKEN[:8] not in shown


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://models.example.org:8391", "unencrypted: use https://"),
        ("models.example.org:8391", "write it as https://HOST:PORT"),
        ("https://models.example.org/v1", "write it as https://HOST:PORT"),
        ("https://models.example.org:99999", "write it as https://HOST:PORT"),
    ],
)
async def test_unusable_address_is_named_and_nothing_is_sent(address, reason):
    assert reason in await why_unavailable(EngineSettings(address=address))


async def test_unreadable_token_file_is_named(directory):
    settings = EngineSettings(address="http://127.0.0.1:1", token_file=f"{directory}/missing")
    assert "cannot read engine.token_file" in await why_unavailable(settings)


def test_server_that_was_useful_for_a_while_is_restarted_at_once():
    time = Time()
    backoff = Backoff(time)
    assert [backoff.delay() for _ in range(4)] == [0, 0.1, 0.2, 0.4]
    backoff.ready()
    time.now += 9
    backoff.ready()
    assert backoff.delay() == 0.8
    backoff.ready()
    time.now += 5
    backoff.ready()
    time.now += 5
    assert [backoff.delay() for _ in range(2)] == [0, 0.1]


async def test_client_behaves_the_same_in_one_process():
    def answer(before):
        if before == "bad":
            raise EngineError("no")
        return "answer"

    engine = FakeEngine(answer, passes=2)
    statuses = Statuses()
    client = InProcessClient(engine, on_status=statuses)
    with pytest.raises(EngineUnavailable):
        await anext(client.fill(gap()))
    await client.start()
    assert [draft.step for draft in await everything(client.fill(gap()))] == [1, 2]
    await client.warm(gap())
    with pytest.raises(EngineError, match="no"):
        await everything(client.fill(gap("bad")))
    with pytest.raises(EngineError, match="about nothing"):
        await everything(client.rewrite(NOTHING))
    drafts = client.fill(gap())
    await anext(drafts)
    await drafts.aclose()
    await client.close()
    assert [status.state for status in statuses] == ["ready"]
    assert engine.open == 0
