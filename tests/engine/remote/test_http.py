import os
import ssl
from contextlib import contextmanager, suppress

import pytest

from bench.harness.servers import document, serving
from mercury_engine.api import EngineError
from mercury_engine.redaction import ForeignText
from mercury_engine.remote import http
from mercury_engine.remote.http import HttpClient, LinkError, Proxy, ServerSite, site_of
from tests.engine.remote.tls import CERTIFICATES, with_tls
from tests.model_servers import tunnel

SECONDS = 5.0


@contextmanager
def client_of(address, **options):
    client = HttpClient(address, **options)
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
        ("http://127.0.0.1:8080", ServerSite("http", "127.0.0.1", 8080)),
        ("https://api.mistral.ai/v1/", ServerSite("https", "api.mistral.ai", 443)),
        ("https://127.0.0.1.mistral.ai", ServerSite("https", "127.0.0.1.mistral.ai", 443)),
        ("http://[::1]:8012", ServerSite("http", "::1", 8012)),
        ("http://localhost/llama/v1", ServerSite("http", "localhost", 80, "/llama")),
    ],
)
def test_addresses(address, site):
    assert site_of(address) == site
    assert site.is_loopback == (not site.host.endswith("mistral.ai"))


@pytest.mark.parametrize(
    "address", ["127.0.0.1:8080", "ftp://x", "http://", "http://me:key@host", "http://h:99999", "https://h/?key=1"]
)
def test_malformed_address_is_refused(address):
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


def test_connection_is_used_again_and_replaced_if_server_has_closed_it():
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


def test_closing_at_the_very_end_leaves_no_socket_open(monkeypatch):
    def end(exchange, ended):
        if ended:
            exchange.close()
        vars(exchange)["_ended"] = ended

    ended = property(lambda exchange: vars(exchange)["_ended"], end)
    monkeypatch.setattr(http.Exchange, "_ended", ended, raising=False)
    with serving({"/props": document({})}) as server, client_of(server.address) as client:
        exchange = client.open("GET", "/props")
        exchange.join()
    del exchange  # warns of a socket that is still open


def test_unwanted_answer_keeps_its_connection():
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

    def heads(line, asked):
        line.send("HTTP/1.1 200 OK\r\n" + "X-Name: value\r\n" * 200 + "\r\n")

    def one_long_header(line, asked):
        line.send("HTTP/1.1 200 OK\r\nX: " + "y" * 100_000 + "\r\n\r\n")

    assert (trouble(heads).kind, trouble(one_long_header).kind) == ("broken", "broken")
    for answer, kind in ((dies, "broken"), (is_cut, "broken"), (babbles, "broken"), (hangs_up, "broken")):
        assert trouble(answer).kind == kind, answer
    monkeypatch.setattr(http, "LARGEST", 4000)
    assert trouble(floods).kind == "large"


def test_silence_is_not_waited_for():
    assert trouble(lambda line, asked: line.is_left(), silence_seconds=0.02).kind == "slow"


def dribbling(server):
    """Says a little, again and again, until the other side has closed."""

    def answer(line, asked):
        line.head()
        line.connection.settimeout(0.005)
        with suppress(ConnectionError):
            while True:
                line.chunk("x")
                try:
                    if not line.connection.recv(1):
                        break
                except TimeoutError:
                    continue
        server().left.set()

    return answer


def test_dribbling_answer_ends_with_patience():
    with serving({"/x": dribbling(lambda: server)}) as server, client_of(server.address) as client:
        with pytest.raises(LinkError, match=r"within 0\.05 s") as raised:
            client.fetch("GET", "/x", seconds=0.05)
        assert raised.value.kind == "slow"
        assert server.left.wait(SECONDS)


def test_unsendable_header_is_not_shown():
    with serving({}) as server, client_of(server.address, headers={"Authorization": "Bearer a\nb"}) as client:
        with pytest.raises(LinkError) as raised:
            client.fetch("GET", "/", seconds=SECONDS)
        assert "Bearer" not in str(raised.value)


def test_redirects_within_the_site_are_followed():
    answers = {
        "/v1/x": document({}, 307, Location="/moved/x?a=1"),
        "/moved/x?a=1": document([1]),
        "/round": document({}, 302, Location="round"),
        "/other": document({}, 303, Location="/v1/x"),
    }
    with serving(answers) as server, client_of(server.address, headers={"api-key": "k3y"}) as client:
        assert client.fetch("POST", "/v1/x", b"{}", seconds=SECONDS).body == b"[1]"
        assert [(asked.path, asked.body, asked.headers["api-key"]) for asked in server.asked] == [
            ("/v1/x", b"{}", "k3y"),
            ("/moved/x?a=1", b"{}", "k3y"),
        ]
        assert client.fetch("GET", "/round", seconds=SECONDS).status == 302
        assert client.fetch("POST", "/other", b"{}", seconds=SECONDS).status == 303
        assert len(server.asked) == 2 + 4 + 1
        assert server.connections == 1


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:{other}/y",
        "//127.0.0.1:{other}/y",
        "http://localhost:{other}/y",
        "http://localhost:{port}/y",
        "https://127.0.0.1:{port}/y",
        "http://me@127.0.0.1:{port}/y",
        "http://127.0.0.1:99999/y",
        "ftp:/y",
        "",
    ],
)
def test_redirect_elsewhere_is_sent_nothing(location):
    with serving({"/y": document({})}) as other:
        moved = lambda line, asked: document(  # noqa: E731
            {}, 307, Location=location.format(other=other.port, port=server.port)
        )(line, asked)
        with serving({"/x": moved}) as server, client_of(server.address, headers={"api-key": "k3y"}) as client:
            status = client.fetch("POST", "/x", b"{}", seconds=SECONDS).status
            assert status == 307
            assert {asked.path for asked in server.asked} == {"/x"}
        assert other.connections == 0


def test_with_tls_and_only_with_a_trusted_certificate():
    trusting = ssl.create_default_context(cafile=os.fspath(CERTIFICATES / "localhost.pem"))

    def held(line, asked):
        line.head()
        line.chunk("begun")
        server.hold(line)

    with serving({"/x": document([1]), "/held": held}, wrap=with_tls()) as server:
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


MODELS = ssl.create_default_context(cafile=os.fspath(CERTIFICATES / "models.pem"))


def through(server, **options):
    options = {"context": MODELS, "proxy": Proxy("127.0.0.1", server.port)} | options
    return client_of("https://models.example/v1", headers={"api-key": "k3y"}, **options)


def test_server_behind_proxy_does_not_see_proxy_headers():
    def held(line, asked):
        line.head()
        line.chunk("begun")
        server.hold(line)

    with (
        serving({"/v1/x": document([1]), "/held": held}, wrap=with_tls("models")) as server,
        serving({"models.example:443": tunnel(server.port)}) as proxy,
        through(proxy) as client,
    ):
        assert client.fetch("GET", "/v1/x", seconds=SECONDS).body == b"[1]"
        assert client.fetch("GET", "/v1/x", seconds=SECONDS).body == b"[1]"
        assert server.connections == 1
        assert server.asked[0].headers["host"] == "models.example"
        assert server.asked[0].headers["api-key"] == "k3y"
        exchange = client.open("POST", "/held", b"{}")
        assert piece(exchange) == b"begun"
        exchange.close()
        assert server.left.wait(SECONDS)
        assert {(asked.method, *asked.headers) for asked in proxy.asked} == {("CONNECT", "host")}


def test_proxy_gets_its_password():
    login = "Basic bWU6c2VjcmV0"
    with (
        serving({"/x": document([1])}, wrap=with_tls("models")) as server,
        serving({"models.example:443": tunnel(server.port, login=login)}) as proxy,
    ):
        with through(proxy, proxy=Proxy("127.0.0.1", proxy.port, login)) as client:
            assert client.fetch("GET", "/x", seconds=SECONDS).body == b"[1]"
        with through(proxy) as client, pytest.raises(LinkError) as raised:
            client.fetch("GET", "/x", seconds=SECONDS)
        assert (raised.value.kind, raised.value.detail) == (
            "proxy",
            f"the proxy 127.0.0.1:{proxy.port} wants a user and a password (407)",
        )
        assert [asked.headers.get("proxy-authorization") for asked in server.asked] == [None]


def going_on(first, part):
    def answer(line, asked):
        line.send(first)
        while True:
            line.send(part)

    return answer


def cut_off(line, asked):
    line.send("HTTP/1.1 200 OK\r\n")
    raise ConnectionAbortedError


def slow(line, asked):
    """Each line is soon enough, and their end is not."""
    line.send("HTTP/1.1 200 OK\r\n")
    line.connection.settimeout(0.01)
    while True:
        line.send("A: b\r\n")
        with suppress(TimeoutError):
            line.connection.recv(1)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda line, asked: line.whole("", 502), "refuses the connection (502)"),
        (lambda line, asked: line.send("SSH-2.0-OpenSSH\r\n\r\n"), "does not answer (what it sends is not HTTP)"),
        (lambda line, asked: line.whole("", 100), "refuses the connection (100)"),
        (going_on("HTTP/1.1 200 OK\r\n", "A: b\r\n" * 200), "does not answer"),
        (going_on("HTTP/1.1 200 OK\r\n", "a" * 60_000), "does not answer"),
        (going_on("", "\0\n"), "does not answer"),
        (cut_off, "does not answer (what it sends has no end)"),
        (slow, "does not answer within 0.05 s"),
        (lambda line, asked: line.is_left(), "does not answer within 0.05 s"),
    ],
)
def test_proxy_without_tunnel_is_reported(answer, said):
    with serving({"models.example:443": answer}) as proxy:
        with through(proxy, connect_seconds=0.05) as client, pytest.raises(LinkError) as raised:
            client.fetch("GET", "/x", seconds=SECONDS)
        assert raised.value.kind == "proxy"
        assert said in raised.value.detail


def test_closing_is_seen_by_a_proxy_that_is_still_thinking():
    with serving({"models.example:443": lambda line, asked: proxy.hold(line)}) as proxy, through(proxy) as client:
        exchange = client.open("POST", "/x", b"{}")
        while not proxy.asked:
            exchange.take(0.001)
        exchange.close()
        assert proxy.left.wait(SECONDS)


def test_unheard_answer_is_ended_by_next_request(monkeypatch):
    monkeypatch.setattr(http, "LET_END_SECONDS", 0.05)
    with serving({"/x": dribbling(lambda: server), "/y": document({})}) as server, client_of(server.address) as client:
        exchange = client.open("POST", "/x", b"{}")
        piece(exchange)
        exchange.let_end()
        while not exchange.is_late:
            assert not exchange.take(0.005)
        assert not server.left.is_set()
        assert client.fetch("GET", "/y", seconds=SECONDS).body == b"{}"
        assert server.left.wait(SECONDS)


def test_secrets_are_never_shown():
    with client_of("http://127.0.0.1:1", headers={"Authorization": "Bearer s3cret", "X-Team": "blue"}) as client:
        assert client.secrets.shown(ForeignText("no s3cret for blue")) == "no … for …"
