"""A small HTTP/1.1 client for answers that arrive in pieces: nobody waits for them, and closing cancels them.

Each exchange reads on a thread of its own with `http.client` of the standard library; the engine's thread takes what
has arrived, and ends an exchange by shutting its socket down. A library such as httpx would bring six packages and a
tenth of a second to every start, and its streams cannot be closed while another thread reads them.
"""

import http.client
import socket
import ssl
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from threading import Condition, Lock, Thread
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from mercury_engine.addresses import is_loopback
from mercury_engine.api import EngineError

__all__ = ["Client", "Exchange", "LinkError", "Reply", "Site", "site_of"]

CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 60.0
"""A cold model on a slow machine reads a long prompt for that long before it says anything."""
LARGEST = 4 << 20
PIECE = 1 << 16
IDLE = 4
IDLE_SECONDS = 50.0
"""After a minute, routers forget a connection without a word."""

JOIN_SECONDS = 1.0
LET_END_SECONDS = 0.5
QUICK = getattr(socket, "TCP_QUICKACK", None)

Trouble = Literal["unreachable", "certificate", "slow", "broken", "large"]


class LinkError(Exception):
    """An exchange that ended before its answer did. `detail` never holds what was sent."""

    def __init__(self, kind: Trouble, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


class Site(Struct, frozen=True):
    """Where a server is. `path` goes before every path that is asked for."""

    scheme: str
    host: str
    port: int
    path: str = ""

    @property
    def is_loopback(self) -> bool:
        """Whether what is sent there stays on this machine."""
        return is_loopback(self.host)


def site_of(address: str) -> Site:
    """The address without a `/v1` at its end, which the paths of the protocols have already."""
    try:
        parts = urlsplit(address)
        port = parts.port or {"https": 443, "http": 80}[parts.scheme]
    except (ValueError, KeyError) as error:
        raise EngineError(f"{address!r} is no server's address: write it as http://127.0.0.1:8080") from error
    if not parts.hostname or parts.username or parts.query:
        raise EngineError(f"{address!r} is no server's address: write it as http://127.0.0.1:8080, keys go elsewhere")
    return Site(parts.scheme, parts.hostname, port, parts.path.rstrip("/").removesuffix("/v1"))


class Reply(Struct, frozen=True):
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Client:
    """Exchanges with one server. Connections that were read to their end are used again."""

    def __init__(
        self,
        address: str,
        headers: Mapping[str, str] | None = None,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        silence_seconds: float = SILENCE_SECONDS,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.site = site_of(address)
        self._headers = dict(headers or {})
        self.connect_seconds = connect_seconds
        self.silence_seconds = silence_seconds
        self._context = context
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []
        self._open: set[Exchange] = set()
        self._closed = False
        self._lock = Lock()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown: the values of the headers, also without a word such as Bearer before them."""
        values = {part for value in self._headers.values() for part in (value, value.rpartition(" ")[2])}
        return tuple(sorted((value for value in values if len(value) > 2), key=len, reverse=True))

    def open(self, method: str, path: str, body: bytes = b"") -> "Exchange":
        """Returns at once: connecting is up to the exchange's thread."""
        headers = {**self._headers, **({"Content-Type": "application/json"} if body else {})}
        exchange = Exchange(self, method, self.site.path + path, body, headers)
        with self._lock:
            self._open.add(exchange)
        exchange.start()
        return exchange

    def fetch(self, method: str, path: str, body: bytes = b"", *, seconds: float) -> Reply:
        """Waits for a whole answer, at most this long."""
        until = time.monotonic() + seconds
        exchange, pieces = self.open(method, path, body), []
        try:
            while not exchange.done:
                left = until - time.monotonic()
                if left <= 0:
                    raise LinkError("slow", f"no answer within {seconds:g} s")
                pieces.append(exchange.take(left))
            return Reply(exchange.status, exchange.headers, b"".join(pieces))
        finally:
            exchange.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle, opened = self._idle, [], list(self._open)
        for connection, _ in idle:
            connection.close()
        for exchange in opened:
            exchange.close()
            exchange.join()

    # Called by the exchanges, on their threads.

    def connection(self, *, fresh: bool) -> tuple[http.client.HTTPConnection, bool]:
        """A connection, and whether it was used before: the server may have closed such a one."""
        with self._lock:
            while self._idle and not fresh:
                connection, since = self._idle.pop()
                if time.monotonic() - since < IDLE_SECONDS:
                    return connection, True
                connection.close()
        site, seconds = self.site, self.connect_seconds
        if site.scheme == "http":
            return http.client.HTTPConnection(site.host, site.port, timeout=seconds), False
        with self._lock:
            self._context = self._context or ssl.create_default_context()
        return http.client.HTTPSConnection(site.host, site.port, timeout=seconds, context=self._context), False

    def spare(self) -> http.client.HTTPConnection | None:
        """A connection ahead of time, in the place of one that a cancelled exchange has closed: most are cancelled, and
        agreeing on a key with a server far away takes longer than many answers."""
        with self._lock:
            if self.site.scheme == "http" or self._idle or self._closed:
                return None
        connection, _ = self.connection(fresh=True)
        try:
            connection.connect()
        except OSError:
            connection.close()
            return None
        return connection

    def give_back(self, exchange: "Exchange", connection: http.client.HTTPConnection | None) -> None:
        with self._lock:
            self._open.discard(exchange)
            has_room = len(self._idle) < IDLE and not self._closed
            if connection is not None and connection.sock is not None and has_room:
                self._idle.append((connection, time.monotonic()))
                return
        if connection is not None:
            connection.close()


class Exchange:
    """One request and its answer, as far as it has arrived."""

    def __init__(self, client: Client, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self._client = client
        self._request = (method, path, body or None, headers)
        self._arrived: deque[bytes] = deque()
        self._news = Condition()
        self._ended = False
        self._cancelled = False
        self._unheard = False
        self._error: LinkError | None = None
        self._connection: http.client.HTTPConnection | None = None
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
                taken = b"".join(self._arrived)
                self._arrived.clear()
                return taken
            if self._error is not None:
                raise self._error
            return b""

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
        """Lets it come to its end unheard, so that its connection can be used again; cancels it if that takes long."""
        with self._news:
            self._unheard = True
            self._arrived.clear()
            opened = self._socket
        if opened is not None:
            with suppress(OSError):
                opened.settimeout(LET_END_SECONDS)

    # Everything below runs on the exchange's thread.

    def _run(self) -> None:
        error, reusable = None, False
        try:
            reusable = self._read(self._answered())
        except _CancelledError:
            pass
        except ssl.SSLCertVerificationError as problem:
            error = LinkError("certificate", problem.verify_message)
        except TimeoutError:
            error = self._timed_out()
        except http.client.IncompleteRead:
            error = LinkError("broken", "the connection was closed in the middle of an answer")
        except http.client.HTTPException as problem:
            error = LinkError("broken", f"the answer is not HTTP ({type(problem).__name__})")
        except OSError as problem:
            kind: Trouble = "unreachable" if self._socket is None else "broken"
            error = LinkError(kind, problem.strerror or type(problem).__name__)
        except LinkError as problem:
            error = problem
        except Exception as problem:  # such as a header that http.client refuses, whose value must not be shown
            error = LinkError("broken", type(problem).__name__)
        self._end(error, reusable)

    def _timed_out(self) -> LinkError:
        if self._socket is None:
            return LinkError("unreachable", f"no connection within {self._client.connect_seconds:g} s")
        return LinkError("slow", f"nothing arrived for {self._client.silence_seconds:g} s")

    def _answered(self) -> http.client.HTTPResponse:
        """The head of the answer. A connection that the server closed in the meantime is replaced once."""
        self._connection, used = self._client.connection(fresh=False)
        try:
            return self._sent()
        except (ConnectionError, http.client.BadStatusLine):
            if not used or self._cancelled:
                raise
        self._connection.close()
        self._socket = None
        self._connection, _ = self._client.connection(fresh=True)
        return self._sent()

    def _sent(self) -> http.client.HTTPResponse:
        connection = self._connection
        assert connection is not None, "an exchange has a connection before it sends"
        if connection.sock is None:
            connection.connect()
        with self._news:
            self._socket = connection.sock
            if self._cancelled:
                raise _CancelledError
        connection.sock.settimeout(self._client.silence_seconds)
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
        connection = self._connection
        if connection is not None and not (reusable and error is None and not self._cancelled):
            connection.close()
        with self._news:
            self._ended = True
            self._error = None if self._cancelled else error
            self._news.notify_all()
        self._client.give_back(self, self._client.spare() if self._cancelled else connection)


class _CancelledError(Exception):
    """Nobody wants the answer any more."""
