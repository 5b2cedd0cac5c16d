import asyncio

import msgspec
import pytest

from mercury_engine.api import PROTOCOL_VERSION, ChatRequest, Gap, Message, Regions
from mercury_engine.fake import FakeEngine
from mercury_ls import __version__
from mercury_ls.link.wire import BODY_LIMIT, Frame, FrameReader, Status, encode
from mercury_ls.serve.access import Access
from mercury_ls.serve.app import Activity, App
from mercury_ls.serve.worker import Worker

GAP = Gap(session="s", path="a.py", language="python", before="x")
TOKEN = "the-token"
LOCAL = {"host": "127.0.0.1:8391", "authorization": f"Bearer {TOKEN}"}


class Call:
    """One request as an ASGI server would make it, whose client can go away."""

    def __init__(self, method, path, body=b"", headers=()):
        self.scope = {
            "type": "http",
            "scheme": "http",
            "method": method,
            "path": path,
            "headers": [(name.encode(), value.encode()) for name, value in dict(headers).items()],
        }
        self.waiting = [{"type": "http.request", "body": body, "more_body": False}]
        self.gone = asyncio.Event()
        self.sent = asyncio.Queue()
        self.status = None
        self.body = b""

    async def receive(self):
        if self.waiting:
            return self.waiting.pop()
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")
        self.sent.put_nowait(message)

    async def to(self, app):
        await app(self.scope, self.receive, self.send)
        return self


@pytest.fixture
async def worker():
    worker = Worker(lambda report: FakeEngine({"x": "answer"}))
    async for status in worker.board.statuses():
        if status.state == "ready":
            break
    yield worker
    await worker.close()


@pytest.fixture
def stopped():
    return asyncio.Event()


@pytest.fixture
def app(worker, stopped):
    return App(worker, Activity(), stopped.set)


async def refused(app, status, match, *arguments, **fields):
    call = await Call(*arguments, **fields).to(app)
    said = msgspec.json.decode(call.body)
    assert call.status == status
    assert match in said["error"]
    assert said["remedy"]


async def test_health_tells_state_and_protocol(app):
    call = await Call("GET", "/health").to(app)
    assert msgspec.json.decode(call.body) == {"state": "ready", "protocol": PROTOCOL_VERSION, "version": __version__}


async def test_info_names_the_engine(app):
    call = await Call("GET", "/engine/v2/info").to(app)
    status = msgspec.json.decode(call.body, type=Status)
    assert (status.state, status.info.engine) == ("ready", "fake")


async def test_gap_streams_drafts_until_the_final_one(app):
    call = await Call("POST", "/engine/v2/ask", encode(GAP)).to(app)
    answers = list(FrameReader(Frame).feed(call.body))
    assert [answer.final for answer in answers] == [False, False, True]
    assert answers[-1].text == "answer"


async def test_chat_streams_what_is_said_until_the_final_one(app):
    asked = ChatRequest(session="s", messages=(Message("user", "hello"),))
    call = await Call("POST", "/engine/v2/ask", encode(asked)).to(app)
    answers = list(FrameReader(Frame).feed(call.body))
    assert [answer.final for answer in answers] == [False, False, False, True]
    assert answers[-1].text == "You said: hello"


async def test_engine_failure_is_a_frame(worker, stopped):
    app = App(worker, Activity(), stopped.set)
    await worker.close()
    call = await Call("POST", "/engine/v2/ask", encode(GAP)).to(app)
    (answer,) = FrameReader(Frame).feed(call.body)
    assert answer.kind == "unavailable"


async def test_warm_is_accepted_at_once(app, worker):
    call = await Call("POST", "/engine/v2/warm", encode(GAP)).to(app)
    assert call.status == 202


async def test_conversations_are_not_read_ahead(app):
    asked = ChatRequest(session="s", messages=(Message("user", "hello"),))
    await refused(app, 400, "nothing to read ahead for ChatRequest", "POST", "/engine/v2/warm", encode(asked))


async def test_lease_reports_status_and_keeps_server_until_its_client_goes(worker, stopped):
    now = [0.0]
    activity = Activity(lambda: now[0])
    call = Call("GET", "/engine/v2/lease")
    lease = asyncio.create_task(call.to(App(worker, activity, stopped.set)))
    while not call.body:
        await call.sent.get()
    now[0] = 1000.0
    assert activity.idle_seconds() == 0
    call.gone.set()
    await lease
    now[0] = 1007.0
    assert activity.idle_seconds() == 7
    (status,) = FrameReader(Status).feed(call.body)
    assert status.state == "ready"


async def test_lease_ends_with_worker(app, worker):
    call = Call("GET", "/engine/v2/lease")
    lease = asyncio.create_task(call.to(app))
    await call.sent.get()
    await worker.close()
    async with asyncio.timeout(10):
        await lease
    assert call.status == 200


async def test_stop_stops(app, stopped):
    call = await Call("POST", "/engine/v2/stop").to(app)
    assert (call.status, stopped.is_set()) == (202, True)


async def test_another_protocol_version_is_named(app):
    await refused(app, 404, "speaks engine protocol 2, but the request uses 7", "POST", "/engine/v7/ask")


async def test_unknown_paths_and_methods_are_named(app):
    await refused(app, 404, "/v1/chat does not exist", "POST", "/v1/chat")
    await refused(app, 405, "does not support GET", "GET", "/engine/v2/ask")


async def test_malformed_request_is_refused(app):
    await refused(app, 400, "the body is no request of protocol", "POST", "/engine/v2/ask", b"garbage")
    nothing = Regions(session="s", regions=(), cursor=0)
    await refused(app, 400, "about nothing", "POST", "/engine/v2/ask", encode(nothing))
    await refused(
        app, 400, "messages is empty", "POST", "/engine/v2/ask", encode(ChatRequest(session="s", messages=()))
    )


async def test_oversized_body_is_refused_by_its_announcement_and_its_size(app):
    huge = {"content-length": str(BODY_LIMIT + 1)}
    await refused(app, 413, "is larger than", "POST", "/engine/v2/ask", headers=huge)
    await refused(app, 413, "is larger than", "POST", "/engine/v2/warm", b"x" * (BODY_LIMIT + 1))


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, 200),
        ({"host": "localhost"}, 200),
        ({"host": "[::1]:8391"}, 200),
        ({"host": "models.example.org"}, 200),
        ({"host": "attacker.example.com:8391"}, 403),
        ({"host": ""}, 403),
        ({"origin": "https://attacker.example.com"}, 403),
        ({"origin": "null"}, 403),
        ({"authorization": ""}, 401),
        ({"authorization": "Bearer other"}, 401),
        ({"authorization": f"Basic {TOKEN}"}, 401),
        ({"authorization": "Bearer \xe9"}, 401),
    ],
)
async def test_guard_admits_token_holders_that_come_from_no_foreign_page(worker, stopped, changed, status):
    access = Access(TOKEN, ("models.example.org",))
    app = App(worker, Activity(), stopped.set, access)
    call = await Call("GET", "/engine/v2/info", headers=LOCAL | changed).to(app)
    assert call.status == status


async def test_health_needs_no_token_but_a_host_that_is_ours(worker, stopped):
    app = App(worker, Activity(), stopped.set, Access(TOKEN))
    assert (await Call("GET", "/health", headers={"host": "127.0.0.1"}).to(app)).status == 200
    assert (await Call("GET", "/health", headers={"host": "attacker.example.com"}).to(app)).status == 403
