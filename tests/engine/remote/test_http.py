import os
import ssl
from contextlib import contextmanager
from pathlib import Path

import pytest

from mercury_engine.api import EngineError
from mercury_engine.remote import http
from mercury_engine.remote.http import Client, LinkError, Site, site_of
from tests.engine.remote.servers import document, free_port, serving

CERTIFICATE = Path(__file__).parents[2] / "mercury_ls/link/certificate"
SECONDS = 5.0


@contextmanager
def client_of(address, **options):
    client = Client(address, **options)
    try:
        yield client
    finally:
        client.close()


def piece(exchange) -> bytes:
    """The next one: the head of an answer comes alone."""
    while not (found := exchange.take(SECONDS)):
        assert not exchange.done
    return found


def everything(exchange) -> bytes:
    pieces = []
    while not exchange.done:
        pieces.append(exchange.take(SECONDS))
    return b"".join(pieces)


@pytest.mark.parametrize(
    ("address", "site"),
    [
        ("http://127.0.0.1:8080", Site("http", "127.0.0.1", 8080)),
        ("https://api.mistral.ai/v1/", Site("https", "api.mistral.ai", 443)),
        ("https://127.0.0.1.mistral.ai", Site("https", "127.0.0.1.mistral.ai", 443)),
        ("http://[::1]:8012", Site("http", "::1", 8012)),
        ("http://localhost/llama/v1", Site("http", "localhost", 80, "/llama")),
    ],
)
def test_addresses(address, site):
    assert site_of(address) == site
    assert site.is_loopback == (not site.host.endswith("mistral.ai"))


@pytest.mark.parametrize(
    "address", ["127.0.0.1:8080", "ftp://x", "http://", "http://me:key@host", "http://h:99999", "https://h/?key=1"]
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(EngineError, match="write it as http://127"):
        site_of(address)


def test_pieces_come_as_they_are_sent():
    def answer(line, asked):
        line.head()
        line.chunk("one")
        assert line.reader.readline() == b"go\n"
        line.chunk("two")
        line.end()

    with serving({"/x": answer}) as server, client_of(server.address) as client:
        exchange = client.open("POST", "/x", b"{}")
        assert piece(exchange) == b"one"
        assert exchange.status == 200
        assert exchange.take() == b""
        exchange._socket.sendall(b"go\n")
        assert everything(exchange) == b"two"


def test_a_connection_is_used_again_and_replaced_if_the_server_has_closed_it():
    answers = {"/x": document([1]), "/last": lambda line, asked: (line.whole("{}"), line.connection.shutdown(2))}
    with serving(answers) as server, client_of(server.address) as client:
        for path in ("/x", "/x", "/last", "/x"):
            assert client.fetch("GET", path, seconds=SECONDS).status == 200
        assert server.connections == 2


def test_closing_is_seen_by_the_server():
    def answer(line, asked):
        line.head()
        line.chunk("begun")
        server.hold(line)

    with serving({"/x": answer}) as server, client_of(server.address) as client:
        exchange = client.open("POST", "/x", b"{}")
        assert piece(exchange) == b"begun"
        exchange.close()
        assert server.left.wait(SECONDS)
        exchange.join()
        assert exchange.take() == b""


def test_closing_before_there_is_an_answer():
    with serving({"/x": lambda line, asked: server.hold(line)}) as server, client_of(server.address) as client:
        exchange = client.open("POST", "/x", b"{}")
        while not server.asked:
            exchange.take(0.001)
        exchange.close()
        assert server.left.wait(SECONDS)


def test_an_answer_that_nobody_wants_any_more_keeps_its_connection():
    def answer(line, asked):
        line.head()
        line.chunk("begun")
        assert line.reader.readline() == b"go\n"
        line.chunk("rest")
        line.end()

    with serving({"/x": answer, "/y": document({})}) as server, client_of(server.address) as client:
        exchange = client.open("POST", "/x", b"{}")
        piece(exchange)
        exchange.let_end()
        exchange._socket.sendall(b"go\n")
        exchange.join()
        assert exchange.done
        assert client.fetch("GET", "/y", seconds=SECONDS).body == b"{}"
        assert server.connections == 1


def trouble(answer, **options) -> LinkError:
    with serving({"/x": answer}) as server, client_of(server.address, **options) as client:
        with pytest.raises(LinkError) as raised:
            client.fetch("GET", "/x", seconds=SECONDS)
        return raised.value


def test_troubles(monkeypatch):
    def dies(line, asked):
        line.head()
        line.chunk("half")
        raise ConnectionAbortedError

    def is_cut(line, asked):
        line.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        raise ConnectionAbortedError

    def babbles(line, asked):
        line.send("SSH-2.0-OpenSSH\r\n\r\n")
        raise ConnectionAbortedError

    def hangs_up(line, asked):
        raise ConnectionAbortedError

    def floods(line, asked):
        line.whole("x" * 5000)

    for answer, kind in ((dies, "broken"), (is_cut, "broken"), (babbles, "broken"), (hangs_up, "broken")):
        assert trouble(answer).kind == kind, answer
    monkeypatch.setattr(http, "LARGEST", 4000)
    assert trouble(floods).kind == "large"


def test_silence_is_not_waited_for():
    assert trouble(lambda line, asked: line.is_left(), silence_seconds=0.02).kind == "slow"


def test_a_dribbling_answer_ends_with_the_patience():
    def dribbles(line, asked):
        line.head()
        while True:
            line.chunk("x")
            line.connection.settimeout(0.005)
            try:
                if not line.connection.recv(1):
                    break
            except TimeoutError:
                continue
        server.left.set()

    with serving({"/x": dribbles}) as server, client_of(server.address) as client:
        with pytest.raises(LinkError, match=r"within 0\.05 s") as raised:
            client.fetch("GET", "/x", seconds=0.05)
        assert raised.value.kind == "slow"
        assert server.left.wait(SECONDS)


def test_nobody_there():
    with client_of(f"http://127.0.0.1:{free_port()}") as client:
        with pytest.raises(LinkError, match="refused") as raised:
            client.fetch("GET", "/", seconds=SECONDS)
        assert raised.value.kind == "unreachable"


def test_a_header_that_cannot_be_sent_is_not_shown():
    with serving({}) as server, client_of(server.address, headers={"Authorization": "Bearer a\nb"}) as client:
        with pytest.raises(LinkError) as raised:
            client.fetch("GET", "/", seconds=SECONDS)
        assert "Bearer" not in str(raised.value)


def test_redirects_are_not_followed():
    with serving({"/x": document({}, 302, Location="/y"), "/y": document({})}) as server:
        with client_of(server.address) as client:
            assert client.fetch("GET", "/x", seconds=SECONDS).status == 302
        assert [asked.path for asked in server.asked] == ["/x"]


def test_with_tls_and_only_with_a_trusted_certificate():
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE / "localhost.pem", CERTIFICATE / "key.pem")
    trusting = ssl.create_default_context(cafile=os.fspath(CERTIFICATE / "localhost.pem"))

    def held(line, asked):
        line.head()
        line.chunk("begun")
        server.hold(line)

    wrap = lambda connection: context.wrap_socket(connection, server_side=True)  # noqa: E731
    with serving({"/x": document([1]), "/held": held}, wrap=wrap) as server:
        address = f"https://localhost:{server.port}"
        with client_of(address, context=trusting) as client:
            assert client.fetch("GET", "/x", seconds=SECONDS).body == b"[1]"
            exchange = client.open("POST", "/held", b"{}")
            assert piece(exchange) == b"begun"
            exchange.close()
            assert server.left.wait(SECONDS)
            exchange.join()
            assert client.fetch("GET", "/x", seconds=SECONDS).body == b"[1]"
            assert server.connections == 2, "the next one was opened ahead of time"
        with client_of(address) as client:
            with pytest.raises(LinkError) as raised:
                client.fetch("GET", "/x", seconds=SECONDS)
            assert raised.value.kind == "certificate"
