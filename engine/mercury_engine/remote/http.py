"""A small HTTP/1.1 client for answers that arrive in pieces: nobody waits for them, and closing cancels them.

Each exchange reads on a thread of its own with `http.client` of the standard library; the engine's thread takes what
has arrived, and ends an exchange by shutting its socket down, also before the head of an answer: most are cancelled
while the server reads the prompt, and urllib3 can shut down only what has been answered.
"""

import http.client
import re
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Condition, Lock, Thread
from typing import Literal
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from mercury_engine.addresses import is_loopback
from mercury_engine.api import EngineError
from mercury_engine.redaction import Secrets

CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 60.0
"""A cold model on a slow machine reads a long prompt for that long before it says anything."""
LARGEST = 4 << 20
PIECE = 1 << 16
LONGEST_HEAD = 1 << 14
"""Of a proxy's answer."""
HEAD_END = re.compile(rb"\r?\n\r?\n")
IDLE = 4
IDLE_SECONDS = 50.0
"""After a minute, routers forget a connection without a word."""

JOIN_SECONDS = 1.0
LET_END_SECONDS = 0.5
MOVED = frozenset({301, 302, 307, 308})
MOST_REDIRECTS = 3
QUICK = getattr(socket, "TCP_QUICKACK", None)

Trouble = Literal["unreachable", "proxy", "certificate", "tls", "slow", "broken", "large"]


class LinkError(Exception):
    """An exchange that ended before its answer did. `detail` never holds what was sent."""

    def __init__(self, kind: Trouble, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


class ServerSite(Struct, frozen=True):
    """Where a server is. `path` goes before every path that is asked for."""

    scheme: str
    host: str
    port: int
    path: str = ""

    @property
    def is_loopback(self) -> bool:
        """Whether what is sent there stays on this machine."""
        return is_loopback(self.host)

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Proxy(Struct, frozen=True):
    """A proxy that makes tunnels. `authorization` is what it wants to be told, "" for nothing: a secret."""

    host: str
    port: int
    authorization: str = ""

    @property
    def name(self) -> str:
        return f"the proxy {self.host}:{self.port}"


def site_of(address: str) -> ServerSite:
    """The address without a `/v1` at its end, which the paths of the protocols have already."""
    try:
        parts = urlsplit(address)
        port = parts.port or {"https": 443, "http": 80}[parts.scheme]
    except (ValueError, KeyError) as error:
        raise EngineError(f"{address!r} is no server's address: write it as http://127.0.0.1:8080") from error
    if not parts.hostname or parts.username or parts.query:
        raise EngineError(f"{address!r} is no server's address: write it as http://127.0.0.1:8080, keys go elsewhere")
    return ServerSite(parts.scheme, parts.hostname, port, parts.path.rstrip("/").removesuffix("/v1"))


class Reply(Struct, frozen=True):
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpClient:
    """Exchanges with one server. Connections that were read to their end are used again."""

    def __init__(
        self,
        address: str,
        headers: Mapping[str, str] | None = None,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        silence_seconds: float = SILENCE_SECONDS,
        context: ssl.SSLContext | None = None,
        proxy: Proxy | None = None,
    ) -> None:
        self.site = site_of(address)
        self.proxy = proxy
        self._headers = dict(headers or {})
        self.secrets = Secrets([*self._headers.values(), proxy.authorization if proxy else ""])
        self.connect_seconds = connect_seconds
        self.silence_seconds = silence_seconds
        self._context = context
        self._idle: list[tuple[_Connection, float]] = []
        self._open: set[Exchange] = set()
        self._closed = False
        self._lock = Lock()

    @property
    def context(self) -> ssl.SSLContext:
        with self._lock:
            self._context = self._context or ssl.create_default_context()
            return self._context

    def open(self, method: str, path: str, body: bytes = b"") -> "Exchange":
        """Returns at once: connecting is up to the exchange's thread."""
        headers = {**self._headers, **({"Content-Type": "application/json"} if body else {})}
        exchange = Exchange(self, method, self.site.path + path, body, headers)
        with self._lock:
            late = [other for other in self._open if other.is_late]
            self._open.add(exchange)
        for other in late:
            other.close()
        exchange.start()
        return exchange

    def fetch(self, method: str, path: str, body: bytes = b"", *, seconds: float) -> Reply:
        """Waits for a whole answer, at most this long."""
        until = time.monotonic() + seconds
        exchange, pieces = self.open(method, path, body), []
        try:
            while not exchange.done:
                remaining = until - time.monotonic()
                if remaining <= 0:
                    raise LinkError("slow", f"no answer within {seconds:g} s")
                pieces.append(exchange.take(remaining))
            return Reply(exchange.status, exchange.headers, b"".join(pieces))
        finally:
            exchange.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle, connections = self._idle, [], list(self._open)
        for connection, _ in idle:
            connection.close()
        for exchange in connections:
            exchange.close()
            exchange.join()

    # Called by the exchanges, on their threads.

    def connection(self, *, fresh: bool) -> tuple["_Connection", bool]:
        """A connection, and whether it was used before: the server may have closed such a one."""
        with self._lock:
            while self._idle and not fresh:
                connection, since = self._idle.pop()
                if time.monotonic() - since < IDLE_SECONDS:
                    return connection, True
                connection.close()
        return _Connection(self), False

    def spare(self) -> "_Connection | None":
        """A connection ahead of time, in the place of one that a cancelled exchange has closed: most are cancelled, and
        agreeing on a key with a server far away takes longer than many answers."""
        with self._lock:
            if self.site.scheme == "http" or self._idle or self._closed:
                return None
        connection, _ = self.connection(fresh=True)
        try:
            connection.reach(lambda socket: None)
        except (OSError, LinkError):
            connection.close()
            return None
        return connection

    def ended(self, exchange: "Exchange") -> None:
        with self._lock:
            self._open.discard(exchange)

    def keep(self, connection: "_Connection | None") -> None:
        """For the next exchange, if there is room."""
        with self._lock:
            has_room = len(self._idle) < IDLE and not self._closed
            if connection is not None and connection.sock is not None and has_room:
                self._idle.append((connection, time.monotonic()))
                return
        if connection is not None:
            connection.close()


class _Connection(http.client.HTTPConnection):
    """To the client's site, through its proxy and with TLS where there are any."""

    auto_open = 0
    """Nobody else connects: that would be past the proxy, and unencrypted."""

    def __init__(self, client: HttpClient) -> None:
        super().__init__(client.site.host, client.site.port)
        self.default_port = 443 if client.site.scheme == "https" else 80
        self._client = client

    def reach(self, watch: Callable[[socket.socket], None]) -> None:
        """Connects. `watch` is told each socket before anything is waited for on it, and may raise. Whoever calls this
        closes the connection if it fails."""
        site, proxy, seconds = self._client.site, self._client.proxy, self._client.connect_seconds
        try:
            self.sock = socket.create_connection(((proxy or site).host, (proxy or site).port), seconds)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            watch(self.sock)
            if proxy:
                self._ask_for_tunnel(proxy)
        except OSError as error:
            if proxy is None:
                raise
            late = isinstance(error, TimeoutError)
            why = f"within {seconds:g} s" if late else f"({getattr(error, 'strerror', '') or type(error).__name__})"
            raise LinkError("proxy", f"{proxy.name} does not answer {why}") from None
        if site.scheme == "https":
            context = self._client.context
            self.sock = context.wrap_socket(self.sock, server_hostname=site.host, do_handshake_on_connect=False)
            watch(self.sock)
            self.sock.do_handshake()

    def _ask_for_tunnel(self, proxy: Proxy) -> None:
        authority = self._client.site.authority
        secret = f"Proxy-Authorization: {proxy.authorization}\r\n" if proxy.authorization else ""
        self.sock.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{secret}\r\n".encode())
        status = self._status_of_tunnel(proxy)
        if status // 100 != 2:
            why = "wants a user and a password" if status == 407 else "refuses the connection"
            raise LinkError("proxy", f"{proxy.name} {why} ({status})")

    def _status_of_tunnel(self, proxy: Proxy) -> int:
        """Of an answer that is there in time as a whole. What follows it is the server's, and is not read here."""
        head, end, until = b"", None, time.monotonic() + self._client.connect_seconds
        while end is None:
            remaining = until - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            self.sock.settimeout(remaining)
            piece = self.sock.recv(PIECE, socket.MSG_PEEK)
            if not piece or len(head) > LONGEST_HEAD:
                raise LinkError("proxy", f"{proxy.name} does not answer (what it sends has no end)")
            end = HEAD_END.search(head + piece)
            head += self.sock.recv(end.end() - len(head) if end else len(piece))
        self.sock.settimeout(self._client.connect_seconds)
        match = re.match(rb"HTTP/1\.[01] ([0-9]{3})\b", head)
        if match is None:
            raise LinkError("proxy", f"{proxy.name} does not answer (what it sends is not HTTP)")
        return int(match[1])


class Exchange:
    """One request and its answer, as far as it has arrived."""

    def __init__(self, client: HttpClient, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self._client = client
        self._request = (method, path, body or None, headers)
        self._arrived: deque[bytes] = deque()
        self._news = Condition()
        self._ended = False
        self._cancelled = False
        self._unheard = 0.0
        """Since when nobody wants to hear the rest."""
        self._reached = False
        self._error: LinkError | None = None
        self._connection: _Connection | None = None
        self._socket: socket.socket | None = None
        self._thread = Thread(target=self._run, name=f"exchange with {client.site.host}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join(JOIN_SECONDS)

    @property
    def done(self) -> bool:
        """Whether all of the answer has been taken."""
        with self._news:
            return self._ended and not self._arrived and self._error is None

    def take(self, wait: float = 0.0) -> bytes:
        """What has arrived since the last time; waits for something at most this long. Raises `LinkError`."""
        with self._news:
            if not self._arrived and not self._ended and wait > 0:
                self._news.wait(wait)
            if self._arrived:
                data = b"".join(self._arrived)
                self._arrived.clear()
                return data
            if self._error is not None:
                raise self._error
            return b""

    @property
    def is_late(self) -> bool:
        """Whether nobody wants the rest, and it has not come soon."""
        with self._news:
            return bool(self._unheard) and time.monotonic() - self._unheard > LET_END_SECONDS

    def close(self) -> None:
        """Ends it now. The server sees a closed connection, which for most of them cancels the work."""
        with self._news:
            if self._ended:
                return
            self._cancelled = True
            opened = self._socket
        if opened is not None:
            with suppress(OSError):
                socket.socket.shutdown(opened, socket.SHUT_RDWR)  # of TLS as well: whoever reads is woken

    def let_end(self) -> None:
        """Lets it come to its end unheard, so that its connection can be used again; cancels it if that takes long, or
        at the next request."""
        with self._news:
            self._unheard = time.monotonic()
            self._arrived.clear()
            socket = self._socket
        if socket is not None:
            with suppress(OSError):
                socket.settimeout(LET_END_SECONDS)

    # Everything below runs on the exchange's thread.

    def _run(self) -> None:
        error, reusable = None, False
        try:
            reusable = self._read(self._landed())
        except _CancelledError:
            pass
        except ssl.SSLCertVerificationError as problem:
            error = LinkError("certificate", problem.verify_message)
        except TimeoutError:
            error = self._timed_out()
        except ssl.SSLEOFError:
            error = LinkError("broken", "the connection was closed")
        except ssl.SSLError as problem:
            error = LinkError("tls", (problem.reason or type(problem).__name__).replace("_", " ").lower())
        except http.client.IncompleteRead:
            error = LinkError("broken", "the connection was closed in the middle of an answer")
        except http.client.HTTPException as problem:
            error = LinkError("broken", f"the answer is not HTTP ({type(problem).__name__})")
        except OSError as problem:
            kind: Trouble = "broken" if self._reached else "unreachable"
            error = LinkError(kind, problem.strerror or type(problem).__name__)
        except LinkError as problem:
            error = problem
        except Exception as problem:  # such as a header that http.client refuses, whose value must not be shown
            error = LinkError("broken", type(problem).__name__)
        self._end(error, reusable)

    def _timed_out(self) -> LinkError:
        if not self._reached:
            return LinkError("unreachable", f"no connection within {self._client.connect_seconds:g} s")
        return LinkError("slow", f"nothing arrived for {self._client.silence_seconds:g} s")

    def _landed(self) -> http.client.HTTPResponse:
        """The head of the answer, after redirects within the site: keys, headers and code go nowhere else."""
        response = self._answered()
        for _ in range(MOST_REDIRECTS):
            path = self._moved(response)
            if not path:
                break
            response.read(PIECE)
            connection, self._connection, self._socket = self._connection, None, None
            if connection is not None and not response.isclosed():
                connection.close()
            self._client.keep(connection)
            self._request = (self._request[0], path, *self._request[2:])
            response = self._answered()
        return response

    def _moved(self, response: http.client.HTTPResponse) -> str:
        """The path at the same site to which the answer leads, or ""."""
        site, location = self._client.site, response.headers.get("Location", "")
        if response.status not in MOVED or not location:
            return ""
        try:
            parts = urlsplit(urljoin(f"{site.scheme}://{site.authority}{self._request[1]}", location))
            port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
        except ValueError:
            return ""
        if (parts.scheme, parts.hostname, port) != (site.scheme, site.host, site.port) or parts.username is not None:
            return ""
        return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"

    def _answered(self) -> http.client.HTTPResponse:
        """The head of the answer. A connection that the server closed in the meantime is replaced once."""
        self._connection, used = self._client.connection(fresh=False)
        try:
            return self._sent()
        except (ConnectionError, ssl.SSLEOFError, http.client.BadStatusLine):
            if not used or self._cancelled:
                raise
        self._dropped()
        self._connection, _ = self._client.connection(fresh=True)
        return self._sent()

    def _dropped(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._socket, self._reached = None, None, False

    def _watch(self, opened: socket.socket) -> None:
        """From here on closing shuts this socket down."""
        with self._news:
            self._socket = opened
            if self._cancelled:
                raise _CancelledError

    def _sent(self) -> http.client.HTTPResponse:
        connection = self._connection
        assert connection is not None, "an exchange has a connection before it sends"
        if connection.sock is None:
            connection.reach(self._watch)
        socket = connection.sock
        assert socket is not None, "a connection that was reached has its socket"
        self._watch(socket)
        self._reached = True
        socket.settimeout(self._client.silence_seconds)
        method, path, body, headers = self._request
        connection.request(method, path, body, headers)
        return connection.getresponse()

    def _read(self, response: http.client.HTTPResponse) -> bool:
        """Passes the body on as it arrives; whether the connection can be used again."""
        with self._news:
            self.headers = {name.lower(): value for name, value in response.headers.items()}
            self.status = response.status
            self._news.notify_all()
        size = 0
        with response:
            while piece := self._next_piece(response):
                size += len(piece)
                if size > LARGEST:
                    raise LinkError("large", f"the answer is larger than {LARGEST >> 20} MiB")
                with self._news:
                    if self._cancelled:
                        raise _CancelledError
                    if not self._unheard:
                        self._arrived.append(piece)
                    self._news.notify_all()
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
        return not response.will_close

    def _next_piece(self, response: http.client.HTTPResponse) -> bytes:
        """Confirms what came before at once: many servers hold a token back until then, which else takes 40 ms."""
        if QUICK is not None and self._socket is not None:
            with suppress(OSError):
                self._socket.setsockopt(socket.IPPROTO_TCP, QUICK, 1)
        return response.read1(PIECE)

    def _end(self, error: LinkError | None, reusable: bool) -> None:
        with self._news:
            self._ended = True
            cancelled = self._cancelled  # who closes it from here on changes nothing
            self._error = None if cancelled else error
            self._news.notify_all()
        if not reusable or error is not None or cancelled:
            self._dropped()
        self._client.ended(self)
        self._client.keep(self._client.spare() if cancelled else self._connection)


class _CancelledError(Exception):
    """Nobody wants the answer any more."""
