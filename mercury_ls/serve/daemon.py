"""The engine server's process, one per user, for as long as it is needed: run it, stop it, ask for its status."""

import asyncio
import logging
import re
import signal
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from mercury_engine.addresses import is_loopback
from mercury_ls.link import local
from mercury_ls.link.claim import Claim, claimed, end, has_gone, owner
from mercury_ls.link.connection import Connection, connect
from mercury_ls.link.wire import PREFIX, Status, WireError
from mercury_ls.serve.openings import Openings
from mercury_ls.serve.race import first_of
from mercury_ls.wording import harmless

if TYPE_CHECKING:
    from uvicorn import Server

    from mercury_ls.serve.app import Activity
    from mercury_ls.serve.asgi import Handler, Receive, Scope, Send
    from mercury_ls.serve.worker import LoadEngine, Worker

FAILED = 1
LINGER_SECONDS = 10.0
"""How long a server whose engine failed to load stays to report that, before another one may be started."""
HTTP_PORT = 8391
PORT, MOST_PORT = re.compile("[0-9]{1,5}"), 65535
KEEP_ALIVE_SECONDS = 300
GRACE_SECONDS = 3
ANSWER_SECONDS = 3.0
"""A server answers at once, even while its engine is busy: one that takes this long is hanging."""
POLL_SECONDS = 0.05
STOP_POLLS = 200
WATCH_SECONDS = 1.0

log = logging.getLogger(__name__)


class Options(Struct, frozen=True):
    """With `idle_minutes` 0 the server never exits. It listens on `http`, "HOST:PORT", besides the local socket;
    clients reach it by its address, or by one of the names in `hosts`. With `open`, programs on this machine need no
    token there. `model` says which one is opened, and how."""

    directory: str = ""
    model: str = ""
    idle_minutes: float = 10.0
    http: str = ""
    token: str = ""
    certificate: str = ""
    key: str = ""
    hosts: tuple[str, ...] = ()
    open: bool = False


class ListeningEndpoint(Struct, frozen=True):
    """A socket to serve; without a token, file permissions protect it. The local one comes first and has the claim."""

    socket: socket.socket
    token: str = ""
    certificate: str = ""
    key: str = ""
    claim: Claim | None = None


Face = Callable[["Worker", Options, ListeningEndpoint], "AbstractContextManager[Handler]"]
"""What handles requests outside the engine protocol at this endpoint, if `http` is set. It authenticates them itself.
"""


def run(options: Options, load_engine: "LoadEngine", face: Face | None = None) -> int:
    """Serve until stopped or idle; return the exit code of the process."""
    try:
        directory = local.runtime_directory(options.directory)
        with endpoints(options, directory) as open_endpoints, closing(Openings(directory, options.model)) as openings:
            return asyncio.run(serve(options, open_endpoints, openings.noted(load_engine), face))
    except local.AlreadyRunningError as error:
        return reported(error, local.ALREADY_RUNNING)
    except (local.PlacementError, OSError, ValueError) as error:
        return reported(error, FAILED)


def reported(error: Exception, code: int) -> int:
    """Report the error: the exit code matters even if the log is on a full disk."""
    with suppress(OSError):
        sys.stderr.write(f"mercury-ls serve: {harmless(str(error))}\n")
    return code


def status(directory: str = "") -> Status | None:
    """The status of the user's server; None if there is none."""
    body = asyncio.run(ask(directory, "GET", f"{PREFIX}/info"))
    return None if body is None else msgspec.json.decode(body, type=Status)


def stop(directory: str = "") -> bool:
    """End the user's server, by force if it hangs, and wait until it has exited; False if there is none."""
    place = local.runtime_directory(directory)
    holder = owner(place)
    try:
        if asyncio.run(ask(directory, "POST", f"{PREFIX}/stop")) is None:
            return False
    except TimeoutError:
        end(place, holder)
        return True
    if not has_gone(place, holder, STOP_POLLS):
        raise TimeoutError(f"the engine server did not exit within 10 s: see its log, then end process {holder}")
    return True


async def ask(directory: str, method: str, path: str) -> bytes | None:
    """The body of the response, or None if no server is running. TimeoutError names a process that hangs."""
    place = local.runtime_directory(directory)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            connection = await _reach(place)
            return None if connection is None else await _exchange(connection, method, path)
    except TimeoutError as error:
        holder = owner(place)
        if not holder:
            return None
        wrong = "does not answer" if local.is_listed(place) else "has lost its socket file, which something deleted"
        raise TimeoutError(
            f"the engine server is running (process {holder}), but {wrong}: stop it with `mercury-ls serve --stop`"
        ) from error


async def _reach(place: Path) -> Connection | None:
    """Connect: the process that holds the lock opens its socket soon, after a start or after the socket was deleted."""
    while True:
        try:
            return await connect(local.address(place))
        except (FileNotFoundError, ConnectionError):
            if not owner(place):
                return None
        await asyncio.sleep(POLL_SECONDS)


async def _exchange(connection: Connection, method: str, path: str) -> bytes:
    try:
        response = await connection.send(method, path, {})
        body = await connection.read(response)
    finally:
        connection.close()
    if response.status >= 400:
        raise WireError(f"the engine server refused {path}: {body.decode(errors='replace')}")
    return body


@contextmanager
def endpoints(options: Options, directory: Path) -> Iterator[list[ListeningEndpoint]]:
    with claimed(directory) as claim:
        open_endpoints = [ListeningEndpoint(claim.listener.socket, claim.listener.token, claim=claim)]
        if not options.http:
            yield open_endpoints
            return
        check_certificate(options)
        with bind_http(options) as bound:
            yield [*open_endpoints, ListeningEndpoint(bound, _http_token(options), options.certificate, options.key)]


def bind_http(options: Options) -> socket.socket:
    host, port = split_address(options.http)
    if options.open and not is_loopback(host):
        raise ValueError(f"{options.http} can be reached from other machines: --without-token is for 127.0.0.1 only")
    if not options.certificate and not is_loopback(host):
        raise ValueError(
            f"{options.http} can be reached from other machines, and the token would be sent unencrypted:"
            " give --certificate and --key, or listen on 127.0.0.1 behind a proxy that has them"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        why = str(error.strerror).partition(" (while ")[0]  # which repeats the address
        raise OSError(f"cannot listen on {options.http} ({why}): choose another port or address") from error


def site(options: Options, bound: socket.socket) -> str:
    """The address for clients; the system chooses the port if 0 was requested."""
    host, _ = split_address(options.http)
    name = next(iter(options.hosts), f"[{host}]" if ":" in host else host)
    return f"{'https' if options.certificate else 'http'}://{name}:{bound.getsockname()[1]}"


def _tls_context(certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key or None)
    return context


def check_certificate(options: Options) -> None:
    if not options.certificate:
        return
    try:
        _tls_context(options.certificate, options.key)
    except OSError as error:
        raise ValueError(
            f"cannot use certificate {options.certificate!r} and key {options.key!r} ({error}): give two PEM files"
        ) from error


def split_address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not PORT.fullmatch(port) or int(port) > MOST_PORT:
        raise ValueError(f"{text!r} is not HOST:PORT with a port up to {MOST_PORT}, for example 127.0.0.1:{HTTP_PORT}")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def _http_token(options: Options) -> str:
    if options.token:
        return options.token
    token, path = local.standing_token()
    log.info("clients of %s must send the bearer token in %s", options.http, path)
    return token


async def serve(
    options: Options, open_endpoints: list[ListeningEndpoint], load_engine: "LoadEngine", face: Face | None = None
) -> int:
    from mercury_ls.serve.access import Access
    from mercury_ls.serve.app import Activity, App
    from mercury_ls.serve.worker import Worker

    stopped, activity = asyncio.Event(), Activity()
    with stopping_signals(stopped), ExitStack() as stack:
        worker = Worker(load_engine)
        servers: list[Server] = []
        for endpoint in open_endpoints:
            access = Access(endpoint.token, options.hosts) if endpoint.token else None
            handler: Handler = App(worker, activity, stopped.set, access)
            if face is not None and endpoint.claim is None:
                face_handler = stack.enter_context(face(worker, options, endpoint))
                handler = _with_face(handler, face_handler, activity)
            servers.append(web_server(endpoint, handler))
        async with asyncio.TaskGroup() as group:
            for server, endpoint in zip(servers, open_endpoints, strict=True):
                group.create_task(server.serve(sockets=[endpoint.socket]))
            watching = group.create_task(watch(open_endpoints[0].claim, servers[0], stopped))
            await until_done(options, worker, activity, stopped)
            watching.cancel()
            await worker.close()
            for server in servers:
                server.should_exit = True
    return FAILED if worker.board.status.state == "unavailable" else 0


def _with_face(engine: "Handler", face: "Handler", activity: "Activity") -> "Handler":
    """Route the engine protocol's paths to it and all others to the face, whose requests keep the server alive."""

    async def application(scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["path"].startswith("/engine/"):
            await engine(scope, receive, send)
            return
        with activity.active():
            await face(scope, receive, send)

    return application


def web_server(endpoint: ListeningEndpoint, handler: "Handler") -> "Server":
    import uvicorn

    from mercury_ls.serve.limits import HEAD_BYTES, LimitedConnection, secured

    is_encrypted = bool(endpoint.certificate)
    connection = secured(_tls_context(endpoint.certificate, endpoint.key)) if is_encrypted else LimitedConnection
    server = uvicorn.Server(
        uvicorn.Config(
            handler,
            http=connection,  # pyright: ignore[reportArgumentType]  it is called, like a class
            h11_max_incomplete_event_size=HEAD_BYTES,
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )
    server.capture_signals = nullcontext  # pyright: ignore[reportAttributeAccessIssue]  `stopping_signals` handles them, for both servers
    return server


async def watch(
    claim: Claim | None,
    server: "Server",
    stopped: asyncio.Event,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Restore files of the claim that something deleted, and stop if another server has taken it over."""
    failed = ""
    while True:
        await sleep(WATCH_SECONDS)
        try:
            listener = claim.renew() if claim is not None and server.started else None
            if listener is not None:
                log.warning("%s was deleted and has been restored", listener.path)
                await _listen_at(server, listener.socket)
            failed = ""
        except local.AlreadyRunningError as error:
            log.warning("the lock file was deleted, and another server has it now: %s", error)
            stopped.set()
            return
        except (local.PlacementError, OSError) as error:
            if str(error) != failed:
                log.warning("no new client can find this server: %s", error)
            failed = str(error)


async def _listen_at(server: "Server", bound: socket.socket) -> None:
    """Listen on another socket, because the file of the first is gone. Open connections stay open."""
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


async def until_done(
    options: Options,
    worker: "Worker",
    activity: "Activity",
    stopped: asyncio.Event,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Wait until the server is told to stop, has been idle for long enough, or its engine has failed to load."""
    idle = [until_idle(activity, options.idle_minutes * 60, sleep)] if options.idle_minutes else []
    await first_of(stopped.wait(), _until_failed(worker, sleep), *idle)


async def _until_failed(worker: "Worker", sleep: Callable[[float], Awaitable[None]]) -> None:
    async for status in worker.board.statuses():
        if status.state == "unavailable":
            await sleep(LINGER_SECONDS)
            return


async def until_idle(activity: "Activity", seconds: float, sleep: Callable[[float], Awaitable[None]]) -> None:
    while (remaining := seconds - activity.idle_seconds()) > 0:
        await sleep(remaining)
