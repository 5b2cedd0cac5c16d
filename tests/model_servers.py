"""What stands before an imitated server, or is wrong in its answers."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from threading import Thread
from typing import Any

from bench.harness.servers import SECONDS, Answer, Asked, Line


def tunnel(port: int, *, login: str = "") -> Answer:
    """A proxy that connects everybody who says the right login to this port, whatever was asked for."""

    def answer(line: Line, asked: Asked) -> None:
        if login and asked.headers.get("proxy-authorization") != login:
            return line.whole("who are you?", 407)
        line.send("HTTP/1.1 200 Connection established\r\n\r\n")
        with socket.create_connection(("127.0.0.1", port)) as there:
            back = Thread(target=_passed_on, args=(there, line.connection), daemon=True)
            back.start()
            _passed_on(line.connection, there)
            back.join(SECONDS)
        raise ConnectionAbortedError

    return answer


def _passed_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


WRONG = (None, True, 5, -1.5, 10**30, "x", [], {}, [[]], [{}], [5], ["x"], {"x": []})


def wrongly_typed(value: Any) -> Iterator[Any]:
    """The JSON value with each of its parts, in turn, replaced by something of another type."""
    yield from WRONG
    if isinstance(value, dict):
        for name, part in value.items():
            yield from ({**value, name: wrong} for wrong in wrongly_typed(part))
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from ([*value[:at], wrong, *value[at + 1 :]] for wrong in wrongly_typed(part))
