"""Slow, huge, broken and hostile requests on a real socket, and clients that leave."""

import asyncio
import json
from threading import Semaphore

import pytest

from mercury_engine.fake import FakeEngine
from mercury_ls.serve import limits
from mercury_ls.serve.asgi import RefusedError, read_body
from mercury_ls.web import endpoints
from mercury_ls.web.errors import ApiError
from tests.mercury_ls.web.listening import listening
from tests.mercury_ls.web.serving import TOKEN, client, served

BODY = json.dumps({"prompt": "def area(w, h):\n    ", "path": "a.py"}).encode()
DEEP = b'{"messages": [{"role": "user"}], "tools": [{"function": {"name": "a", "parameters": '
DEEP += b'{"a": ' * 5000 + b"1" + b"}" * 5000 + b"}}]}"
AUTHORIZED = f"Authorization: Bearer {TOKEN}"


def post(body=BODY, *headers, length=None, path="/v1/completions"):
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", AUTHORIZED, f"Content-Length: {length or len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def answered(port, sent):
    """The status and the body of the answer, and whether the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        return await answer_from(reader)
    finally:
        writer.close()


async def answer_from(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.split("content-length: ")[1].split("\r\n")[0])
    return int(head.split()[1]), json.loads(await reader.readexactly(length)), "connection: close" in head


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (post(), 200, None),
        (post(length=endpoints.MOST_BODY + 1), 413, "too_large"),
        (post(b"[" * 100_000), 400, "invalid_body"),
        (post(b'{"prompt": "\xff"}'), 400, "invalid_body"),
        (post(b'{"prompt": "", "more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"), 400, "invalid_body"),
        (post(DEEP, path="/v1/chat/completions"), 400, "invalid_body"),
        (post(b'{"prompt": "\\ud800"}'), 400, "invalid_body"),
        (post(BODY, "Origin: https://evil.example.com"), 403, "forbidden"),
        (post().replace(b"Host: 127.0.0.1", b"Host: rebound.example.com"), 403, "forbidden"),
        (post().replace(TOKEN.encode(), b"guess"), 401, "invalid_api_key"),
        (post(path="/v1/nothing"), 404, "unknown_url"),
        (post().replace(b"POST", b"DELETE"), 405, None),
    ],
)
async def test_refusal_says_why(sent, status, code):
    async with listening(FakeEngine({"def area": "return w * h"})) as (_, port):
        got, said, _ = await answered(port, sent)
    assert got == status
    if code:
        assert said["error"]["code"] == code


async def test_preflight_of_web_page_is_refused_without_permission():
    sent = post().replace(b"POST", b"OPTIONS").replace(AUTHORIZED.encode(), b"Origin: https://evil.example.com")
    async with listening() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        writer.close()
    assert head.startswith(b"http/1.1 403")
    assert b"access-control" not in head


async def test_guessing_client_loses_the_connection():
    async with listening() as (_, port):
        _, _, is_closed = await answered(port, post().replace(TOKEN.encode(), b"guess"))
    assert is_closed


async def test_slow_head_is_cut_off(monkeypatch):
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.05)
    async with listening() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /v1/completions HTTP/1.1\r\n")
        assert await reader.read() == b""
        writer.close()


def with_head_of(size):
    """A request whose head has so many bytes."""
    missing = size - len(post(b"", "X-Padding: ", length=len(BODY)))
    return post(BODY, "X-Padding: " + "x" * missing)


ALLOWED, LONGER = with_head_of(limits.HEAD_BYTES), with_head_of(100_000)


@pytest.mark.parametrize(
    ("pieces", "status"),
    [
        ([ALLOWED], b"200"),
        ([ALLOWED[:9000], ALLOWED[9000:]], b"200"),
        ([LONGER], b"431"),
        ([LONGER[:9000], LONGER[9000 : limits.HEAD_BYTES + 2]], b"431"),
    ],
)
async def test_head_has_one_limit_however_it_arrives(pieces, status):
    async with listening() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0)
        assert (await reader.readline()).split()[1] == status
        writer.close()


async def test_slow_body_is_refused(monkeypatch):
    monkeypatch.setattr(endpoints, "BODY_SECONDS", 0.05)
    async with listening() as (_, port):
        status, said, is_closed = await answered(port, post(b"{", length=100))
    assert (status, said["error"]["code"], is_closed) == (408, "slow", True)


async def test_refused_body_is_forgotten():
    """Its body stayed in the traceback of an error that was raised again and again: 85 MB a second."""
    refused = []
    for _ in range(2):
        with pytest.raises(RefusedError) as error:
            await read_body({"type": "http", "headers": [(b"content-length", b"999999999")]}, None, 1000)
        refused.append(len(error.traceback))
    assert refused[0] == refused[1]


async def test_body_that_grows_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(endpoints, "MOST_BODY", 1000)
    chunk = b"400\r\n" + b"x" * 1024 + b"\r\n"
    head = f"POST /infill HTTP/1.1\r\nHost: 127.0.0.1\r\n{AUTHORIZED}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    async with listening() as (_, port):
        status, _, _ = await answered(port, head + chunk * 3)
    assert status == 413


class Held:
    """An engine that stops before each forward until it may go on."""

    def __init__(self):
        self.reached = Semaphore(0)
        self.passing = Semaphore(0)
        self.engine = FakeEngine({"def area": "return w * h"}, passes=50, pause=self.pause)

    def pause(self, step):
        self.reached.release()
        self.passing.acquire()

    async def holds(self):
        await asyncio.to_thread(self.reached.acquire)

    def let_go(self):
        self.passing.release(1000)


async def none_running(service):
    while service.metrics.registry.get_sample_value("mercury_http_running"):
        await asyncio.sleep(0)


@pytest.mark.parametrize("stream", [False, True])
async def test_engine_stops_for_leaving_client(stream):
    held = Held()
    async with listening(held.engine) as (service, port):
        body = json.dumps({"prompt": "def area(w, h):\n    ", "stream": stream, "diffusing": True}).encode()
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(post(body))
        await held.holds()
        writer.close()
        await none_running(service)
        held.let_go()
    assert held.engine.open == 0
    assert held.engine.forwards <= 2


async def test_too_many_at_once_are_told_to_come_back(monkeypatch):
    monkeypatch.setattr(endpoints, "MOST_AT_ONCE", 1)
    held = Held()
    async with listening(held.engine) as (_, port):
        first = asyncio.create_task(answered(port, post()))
        await held.holds()
        status, said, _ = await answered(port, post())
        held.let_go()
        assert (status, said["error"]["type"]) == (429, "rate_limit_error")
        assert (await first)[0] == 200


async def test_conversations_leave_places_to_completions():
    crowd = endpoints.Crowd(4)
    with crowd.one_more("", converses=True), crowd.one_more("", converses=True):
        with pytest.raises(ApiError, match="2 conversations are being answered"), crowd.one_more("", converses=True):
            pass
        full = pytest.raises(ApiError, match="4 requests are being answered")
        with crowd.one_more(""), crowd.one_more(""), full, crowd.one_more(""):
            pass
    with crowd.one_more("", converses=True):
        pass


async def test_refused_request_takes_no_place_of_a_slow_one():
    async def silence():
        await asyncio.Event().wait()

    crowd = endpoints.Crowd(limit=2, per_user=1)
    with crowd.one_more("bob") as slow, crowd.one_more("ann"):
        body = asyncio.create_task(slow.read({"type": "http", "headers": []}, silence))
        await asyncio.sleep(0)
        assert slow.is_waiting
        with pytest.raises(ApiError, match="1 requests of ann"), crowd.one_more("ann"):
            pass
        await asyncio.sleep(0)
        assert slow.is_waiting
        body.cancel()


async def begun(service, port, count):
    """Requests whose bodies are not sent to their end."""
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
    for number, (_, writer) in enumerate(opened, 1):
        writer.write(post(length=1000))
        while service.metrics.registry.get_sample_value("mercury_http_running") < min(number, endpoints.MOST_AT_ONCE):
            await asyncio.sleep(0)
    return opened


async def test_body_still_being_sent_gives_its_place_to_newer_requests(monkeypatch):
    """300 bodies of 2 MB, sent but for their end, took 600 MB; when they took the 64 places, everybody was shut out."""
    monkeypatch.setattr(endpoints, "MOST_AT_ONCE", 3)
    async with listening(FakeEngine({"def area": "return w * h"})) as (service, port):
        slow = await begun(service, port, 9)
        for reader, _ in slow[:6]:
            status, said, is_closed = await asyncio.wait_for(answer_from(reader), 10)
            assert (status, said["error"]["code"], is_closed) == (408, "slow", True)
            assert "was not complete when others came" in said["error"]["message"]
        assert (await answered(port, post()))[0] == 200
        assert (await asyncio.wait_for(answer_from(slow[6][0]), 10))[0] == 408
        for reader, writer in slow[7:]:
            writer.write(b" " * (1000 - len(BODY)))
            assert (await answer_from(reader))[0] == 200
        for _, writer in slow:
            writer.close()


async def test_request_that_is_answered_keeps_its_place(monkeypatch):
    monkeypatch.setattr(endpoints, "MOST_AT_ONCE", 2)
    held = Held()
    async with listening(held.engine) as (service, port):
        first = asyncio.create_task(answered(port, post()))
        await held.holds()
        ((reader, writer),) = await begun(service, port, 1)
        second = asyncio.create_task(answered(port, post()))
        assert (await answer_from(reader))[0] == 408
        writer.close()
        assert (await answered(port, post()))[0] == 429
        held.let_go()
        assert [(await first)[0], (await second)[0]] == [200, 200]


async def test_named_user_has_places_of_their_own():
    crowd = endpoints.Crowd(limit=3, per_user=1)
    with crowd.one_more("ann"), crowd.one_more("bob"):
        for user, message in (("ann", "1 requests of ann"), ("bob", "1 requests of bob")):
            with pytest.raises(RefusedError, match=message), crowd.one_more(user):
                pass
        with crowd.one_more(""), pytest.raises(RefusedError, match="3 requests are"), crowd.one_more("cid"):
            pass
    with crowd.one_more("ann"):
        pass


async def test_health_and_figures_are_answered_while_all_places_are_taken(monkeypatch):
    monkeypatch.setattr(endpoints, "MOST_AT_ONCE", 0)
    async with served() as (_, app), client(app) as asking:
        assert (await asking.get("/health")).status_code == 200
        assert (await asking.get("/metrics")).status_code == 200
        assert (await asking.post("/v1/completions", json={"prompt": ""})).status_code == 429


async def test_missing_engine_is_503():
    async with served() as (service, app), client(app) as asking:
        await service.engine._worker.close()
        answer = await asking.post("/v1/completions", json={"prompt": "def area(w, h):\n    "})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "engine_unavailable")
    assert answer.headers["retry-after"] == "3"
