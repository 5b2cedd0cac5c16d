"""Servers of other people, imitated: each answers a connection as a script says, and sees when nobody wants it."""

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any

from msgspec import Struct

SECONDS = 5.0


class Asked(Struct, frozen=True):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Line:
    """One connection, from the server's side."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.reader = connection.makefile("rb")

    def asked(self) -> Asked | None:
        first = self.reader.readline().decode()
        if not first:
            return None
        method, path, _ = first.split(" ", 2)
        headers = {}
        while (line := self.reader.readline().decode().strip()) != "":
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        return Asked(method, path, headers, self.reader.read(int(headers.get("content-length", 0))))

    def send(self, data: bytes | str) -> None:
        self.connection.sendall(data.encode() if isinstance(data, str) else data)

    def head(self, status: int = 200, kind: str = "text/event-stream", **headers: str) -> None:
        """Of an answer in chunks."""
        named = {"Content-Type": kind, "Transfer-Encoding": "chunked"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        self.send(f"HTTP/1.1 {status} X\r\n" + "".join(f"{n}: {v}\r\n" for n, v in named.items()) + "\r\n")

    def chunk(self, text: str) -> None:
        data = text.encode()
        self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def end(self) -> None:
        self.send("0\r\n\r\n")

    def whole(self, text: str, status: int = 200, kind: str = "application/json", **headers: str) -> None:
        data = text.encode()
        named = {"Content-Type": kind, "Content-Length": str(len(data))} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        self.send(f"HTTP/1.1 {status} X\r\n" + "".join(f"{n}: {v}\r\n" for n, v in named.items()) + "\r\n" + text)

    def is_left(self) -> bool:
        """Waits until the other side closes."""
        self.connection.settimeout(SECONDS)
        try:
            return self.connection.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True


Answer = Callable[[Line, Asked], None]


class FakeServer:
    """Answers each request by its path; notes what it was asked and how many connections it saw."""

    def __init__(self, answers: dict[str, Answer], listener: socket.socket, wrap: Callable | None = None) -> None:
        self.answers = answers
        self.asked: list[Asked] = []
        self.connections = 0
        self.left = Event()
        self._listener = listener
        self._wrap = wrap or (lambda connection: connection)
        self._threads: list[Thread] = []
        self._served: list[socket.socket] = []
        self._accepting = Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def port(self) -> int:
        return self._listener.getsockname()[1]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def bodies(self) -> list[Any]:
        return [each.json for each in self.asked if each.body]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = Thread(target=self._serve, args=(connection,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _serve(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(SECONDS)
            with self._wrap(connection) as connection:
                self._served.append(connection)
                line = Line(connection)
                with line.reader:
                    while (asked := line.asked()) is not None:
                        self.asked.append(asked)
                        answer = self.answers.get(asked.path, _not_found)
                        answer(line, asked)
        except (OSError, ValueError):
            pass
        finally:
            connection.close()

    def hold(self, line: Line) -> None:
        """Says nothing more until the other side has closed, and notes that it has."""
        if line.is_left():
            self.left.set()
        raise ConnectionAbortedError

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(SECONDS)
        for connection in self._served:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(SECONDS)


def _not_found(line: Line, asked: Asked) -> None:
    line.whole('{"error":{"message":"File Not Found","code":404}}', 404)


@contextmanager
def serving(answers: dict[str, Answer], *, port: int = 0, wrap: Callable | None = None) -> Iterator[FakeServer]:
    server = FakeServer(answers, socket.create_server(("127.0.0.1", port)), wrap)
    try:
        yield server
    finally:
        server.close()


def streamed(messages: Sequence[Any], *, kind: str = "text/event-stream", done: bool = True) -> Answer:
    """Each message as one server-sent event in a chunk of its own, `[DONE]` at the end."""

    def answer(line: Line, asked: Asked) -> None:
        line.head(kind=kind)
        for message in messages:
            text = json.dumps(message)
            line.chunk(f"{text}\n" if "ndjson" in kind else f"data: {text}\n\n")
        if done and "ndjson" not in kind:
            line.chunk("data: [DONE]\n\n")
        line.end()

    return answer


def lines_of(messages: Sequence[Any]) -> Answer:
    return streamed(messages, kind="application/x-ndjson")


def document(value: Any, status: int = 200, **headers: str) -> Answer:
    return lambda line, asked: line.whole(json.dumps(value), status, **headers)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
