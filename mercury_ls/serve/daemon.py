"""The engine server as a process: one per user, here while somebody needs it. Run, stop and ask how it is."""

import asyncio
import logging
import signal
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from mercury_ls.link import local
from mercury_ls.link.claim import Claim, claimed, end, has_gone, owner
from mercury_ls.link.connection import Connection, connect
from mercury_ls.link.wire import PREFIX, Status, WireError

if TYPE_CHECKING:
    from uvicorn import Server

    from mercury_ls.serve.app import App, Presence
    from mercury_ls.serve.worker import LoadEngine, Worker

__all__ = ["FAILED", "Options", "run", "status", "stop"]

FAILED = 1
LINGER_SECONDS = 10.0
"""How long a server whose engine failed to load stays to say so, before it makes room for the next try."""
HTTP_PORT = 8391
KEEP_ALIVE_SECONDS = 300
GRACE_SECONDS = 3
ANSWER_SECONDS = 3.0
"""A server answers at once, whatever its engine is at: one that is silent for so long hangs."""
POLL_SECONDS = 0.05
STOP_POLLS = 200
WATCH_SECONDS = 1.0

log = logging.getLogger(__name__)


class Options(Struct, frozen=True):
    """`idle_minutes` 0 stays for ever; `http` "HOST:PORT" listens there too, beside the local socket, and is asked by
    its address, or by one of the names `hosts`."""

    directory: str = ""
    idle_minutes: float = 10.0
    http: str = ""
    token: str = ""
    certificate: str = ""
    key: str = ""
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


class Door(Struct, frozen=True):
    """A socket to serve; without a token the file system guards it. The local one, which comes first, has the claim."""

    socket: socket.socket
    token: str = ""
    certificate: str = ""
    key: str = ""
    claim: Claim | None = None


def run(options: Options, load_engine: "LoadEngine") -> int:
    """Serves until it is stopped or idle; the exit code of the process."""
    try:
        directory = local.runtime_directory(options.directory)
        with doors(options, directory) as opened:
            return asyncio.run(serve(options, opened, load_engine))
    except local.AlreadyRunningError as error:
        return said(error, local.ALREADY_RUNNING)
    except (local.PlacementError, OSError, ValueError) as error:
        return said(error, FAILED)


def said(error: Exception, code: int) -> int:
    """The code counts, also where the log is on a full disk."""
    with suppress(OSError):
        sys.stderr.write(f"mercury-ls serve: {error}\n")
    return code


def status(directory: str = "") -> Status | None:
    """How the server of this user is doing; None when there is none."""
    body = asyncio.run(ask(directory, "GET", f"{PREFIX}/info"))
    return None if body is None else msgspec.json.decode(body, type=Status)


def stop(directory: str = "") -> bool:
    """Ends the server of this user, by force if it hangs, and waits until it has gone; False when there is none."""
    place = local.runtime_directory(directory)
    holder = owner(place)
    try:
        if asyncio.run(ask(directory, "POST", f"{PREFIX}/stop")) is None:
            return False
    except TimeoutError:
        end(place, holder)
        return True
    if not has_gone(place, holder, STOP_POLLS):
        raise TimeoutError(f"the engine server has not ended within 10 s: see its log, then end process {holder}")
    return True


async def ask(directory: str, method: str, path: str) -> bytes | None:
    """The body of the answer, or None when nobody listens. TimeoutError names the process that hangs."""
    place = local.runtime_directory(directory)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            connection = await reached(place)
            return None if connection is None else await answer(connection, method, path)
    except TimeoutError as error:
        holder = owner(place)
        if not holder:
            return None
        wrong = "does not answer" if local.is_listed(place) else "has lost its socket, which something deleted"
        raise TimeoutError(
            f"an engine server runs (process {holder}), but it {wrong}: end it with `mercury-ls serve --stop`"
        ) from error


async def reached(place: Path) -> Connection | None:
    """Who holds the lock opens a socket in a moment: at the start, and where it was deleted."""
    while True:
        try:
            return await connect(local.address(place))
        except (FileNotFoundError, ConnectionError):
            if not owner(place):
                return None
        await asyncio.sleep(POLL_SECONDS)


async def answer(connection: Connection, method: str, path: str) -> bytes:
    try:
        response = await connection.send(method, path, {})
        body = await connection.read(response)
    finally:
        connection.close()
    if response.status >= 400:
        raise WireError(f"the engine server refused {path}: {body.decode(errors='replace')}")
    return body


@contextmanager
def doors(options: Options, directory: Path) -> Iterator[list[Door]]:
    with claimed(directory) as claim:
        opened = [Door(claim.listener.socket, claim.listener.token, claim=claim)]
        if not options.http:
            yield opened
            return
        check_certificate(options)
        with bind_http(options) as bound:
            yield [*opened, Door(bound, http_token(options), options.certificate, options.key)]


def bind_http(options: Options) -> socket.socket:
    host, port = split_address(options.http)
    if not options.certificate and host not in local.LOOPBACK:
        raise ValueError(
            f"{options.http} can be reached from other machines, and the token would travel in the clear:"
            " give a certificate and a key, or listen on 127.0.0.1 behind a proxy that has them"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise OSError(f"cannot listen on {options.http} ({error.strerror}): choose another port or address") from error


def check_certificate(options: Options) -> None:
    if not options.certificate:
        return
    try:
        ssl.create_default_context().load_cert_chain(options.certificate, options.key or None)
    except OSError as error:
        raise ValueError(
            f"certificate {options.certificate!r} and key {options.key!r} cannot be used ({error}): give two PEM files"
        ) from error


def split_address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is no HOST:PORT: write for example 127.0.0.1:{HTTP_PORT}")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def http_token(options: Options) -> str:
    if options.token:
        return options.token
    token, path = local.standing_token()
    log.warning("clients of %s send the bearer token in %s", options.http, path)
    return token


async def serve(options: Options, opened: list[Door], load_engine: "LoadEngine") -> int:
    from mercury_ls.serve.app import App, Presence
    from mercury_ls.serve.worker import Worker

    stopped, presence = asyncio.Event(), Presence()
    with stopping_signals(stopped):
        worker = Worker(load_engine)
        app = App(worker, presence, stopped.set)
        servers = [web_server(door, app, options) for door in opened]
        async with asyncio.TaskGroup() as group:
            for server, door in zip(servers, opened, strict=True):
                group.create_task(server.serve(sockets=[door.socket]))
            watching = group.create_task(watch(opened[0].claim, servers[0], stopped))
            await until_time_to_leave(options, worker, presence, stopped)
            watching.cancel()
            await worker.close()
            for server in servers:
                server.should_exit = True
    return FAILED if worker.status.state == "unavailable" else 0


def web_server(door: Door, app: "App", options: Options) -> "Server":
    import uvicorn

    from mercury_ls.serve.app import guarded
    from mercury_ls.serve.limits import Doorkeeper

    server = uvicorn.Server(
        uvicorn.Config(
            guarded(app, door.token, options.hosts, options.origins) if door.token else app,
            http=Doorkeeper,
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            ssl_certfile=door.certificate or None,
            ssl_keyfile=door.key or None,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )
    server.capture_signals = nullcontext  # two servers in one process: the signals are ours
    return server


async def watch(
    claim: Claim,
    server: "Server",
    stopped: asyncio.Event,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Takes back what something deleted of the claim, and leaves where another server has it."""
    failed = ""
    while True:
        await sleep(WATCH_SECONDS)
        try:
            listener = claim.renew() if server.started else None
            if listener is not None:
                log.warning("%s was deleted; it is there again", listener.path)
                await listen_at(server, listener.socket)
            failed = ""
        except local.AlreadyRunningError as error:
            log.warning("the lock was deleted, and taken by another: %s", error)
            stopped.set()
            return
        except (local.PlacementError, OSError) as error:
            if str(error) != failed:
                log.warning("no further client finds this server: %s", error)
            failed = str(error)


async def listen_at(server: "Server", bound: socket.socket) -> None:
    """In place of a socket that lost its name. Whoever is connected stays so."""
    nameless = server.servers
    await server.startup(sockets=[bound])
    for listener in nameless:
        listener.close()


@contextmanager
def stopping_signals(stopped: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    chosen = [signal.SIGINT, signal.SIGTERM]
    before = {number: signal.signal(number, lambda *_: loop.call_soon_threadsafe(stopped.set)) for number in chosen}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def until_time_to_leave(
    options: Options,
    worker: "Worker",
    presence: "Presence",
    stopped: asyncio.Event,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Until somebody says so, nobody has been here for long enough, or there is no engine to stay for."""
    reasons = [asyncio.create_task(stopped.wait()), asyncio.create_task(until_failed(worker, sleep))]
    if options.idle_minutes:
        reasons.append(asyncio.create_task(until_idle(presence, options.idle_minutes * 60, sleep)))
    try:
        done, _ = await asyncio.wait(reasons, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for reason in reasons:
            reason.cancel()
    for reason in done:
        reason.result()


async def until_failed(worker: "Worker", sleep: Callable[[float], Awaitable[None]]) -> None:
    async for status in worker.statuses():
        if status.state == "unavailable":
            await sleep(LINGER_SECONDS)
            return


async def until_idle(presence: "Presence", seconds: float, sleep: Callable[[float], Awaitable[None]]) -> None:
    while (left := seconds - presence.absent_seconds()) > 0:
        await sleep(left)
