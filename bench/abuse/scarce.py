"""Scarcity: no disk, no home, no files, no memory, no time; it works all the same, or says what to do."""

import asyncio
import os
import resource
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from shutil import which

from msgspec import Struct

from bench.abuse import hostile
from bench.abuse.client import ANSWER_SECONDS, Conversation, Pipe, ServerProcess, Socket, frame, start
from bench.abuse.fuzz import make_project, touch
from bench.abuse.sandbox import PYTHON, REPOSITORY, Playground, sandbox
from bench.abuse.steps import Touch
from bench.harness.client import free_port
from bench.harness.usage import peak_mb, resident_mb

__all__ = ["CASES", "QUICK", "Observed", "ShortageCase", "Trial", "clear", "scarce"]

CASE_SECONDS = 120.0
SUGGEST_SECONDS, GIVEN_UP_SECONDS = 12.0, 4.0
"""Until a suggestion comes, and from when the status says that none will."""
STRANGER = 12345


class NotHereError(Exception):
    """This case needs what this machine, or this user, does not have."""


class FailedError(Exception):
    """What was observed is neither of what may be."""


class ShortageCase(Struct, frozen=True):
    name: str
    expected: str
    run: Callable[[Playground], Awaitable[str]]


class Observed(Struct, frozen=True):
    name: str
    expected: str
    observed: str
    outcome: str


class Trial(Struct, frozen=True):
    """One editor's luck: `code` is of the process that ended before it was told to."""

    suggests: bool
    detail: str = ""
    code: int | None = None
    said: str = ""
    traces: tuple[str, ...] = ()


async def scarce(
    cases: Sequence[ShortageCase], until: float, tell: Callable[[Observed], None] = lambda found: None
) -> list[Observed]:
    found = []
    for case in cases:
        if time.monotonic() > until:
            break
        found.append(await examine(case))
        tell(found[-1])
    return found


async def examine(case: ShortageCase) -> Observed:
    with sandbox() as place:
        try:
            async with asyncio.timeout(CASE_SECONDS):
                return Observed(case.name, case.expected, await case.run(place), "held")
        except NotHereError as reason:
            return Observed(case.name, case.expected, str(reason), "skipped")
        except TimeoutError as error:
            return Observed(case.name, case.expected, f"did not come to an end: {error}", "failed")
        except (FailedError, OSError) as error:
            return Observed(case.name, case.expected, str(error), "failed")


# What is tried


async def attempt(
    place: Playground,
    environment: dict[str, str],
    prefix: Sequence[str] = (),
    limits: dict[int, int] | None = None,
    root: Path | None = None,
) -> Trial:
    """An editor that wants a suggestion, and how its server ends."""
    server = await start(place, "--stdio", environment=environment, command=(*prefix, *PYTHON), limits=limits)
    talk = Conversation(Pipe.stdio(server))
    try:
        await talk.begin(root or place.root)
        suggests, detail = await suggestion(talk)
        await talk.request("shutdown", None, ANSWER_SECONDS)
        await talk.send({"method": "exit"})
        code = await server.ended(ANSWER_SECONDS)
    except (OSError, TimeoutError) as error:
        code = await server.ended(1.0)
        return Trial(False, str(error), code, server.said[-600:], tuple(server.complaints()))
    finally:
        await talk.end()
    return Trial(suggests, detail, None if code == 0 else code, server.said[-600:], tuple(server.complaints()))


@asynccontextmanager
async def editor(
    place: Playground, limits: dict[int, int] | None = None
) -> AsyncIterator[tuple[ServerProcess, Conversation]]:
    server = await start(place, "--stdio", limits=limits)
    talk = Conversation(Pipe.stdio(server))
    try:
        yield server, talk
    finally:
        await talk.end()
        await server.kill()


async def suggestion(talk: Conversation) -> tuple[bool, str]:
    """Asked until one comes; the last word of the engine's state where none does."""
    until = time.monotonic() + SUGGEST_SECONDS
    detail = ""
    while time.monotonic() < until:
        reply = await talk.ask()
        if reply.get("result", {}).get("items"):
            return True, ""
        status = (await talk.request("mercury/status", {}, ANSWER_SECONDS))["result"]
        detail = f"{status['state']} {status['detail']}" if status["detail"] else detail
        if status["state"] == "unavailable":
            until = min(until, time.monotonic() + GIVEN_UP_SECONDS)
        await asyncio.sleep(0.1)
    return False, detail


def clear(trial: Trial, *words: str) -> str:
    """It works, or whoever reads the status finds these words, the path or value and the remedy. Without words there is
    no reason not to work."""
    if trial.traces:
        raise FailedError(f"a traceback: {trial.traces[0]}")
    if trial.suggests:
        if trial.code is not None:
            raise FailedError(f"works, but ends with {trial.code}")
        return "works"
    told = f"{trial.detail} {trial.said}".strip()
    if not words:
        raise FailedError(f"no suggestion: {told[-300:]!r}")
    if missing := [word for word in words if word not in told]:
        ending = "" if trial.code is None else f" (exit code {trial.code})"
        raise FailedError(f"no suggestion, and nothing about {', '.join(missing)}: {told[-300:]!r}{ending}")
    return f"says: {told[:160]}"


def as_root() -> None:
    if os.geteuid() or not which("unshare") or not which("setpriv"):
        raise NotHereError("needs root, unshare and setpriv")


def mounted(script: str, *arguments: str) -> tuple[str, ...]:
    """Runs what follows in a mount namespace of its own, which goes with it."""
    as_root()
    return ("unshare", "-m", "sh", "-ec", script + '; exec "$@"', "sh", *arguments)


FILL = (
    'mount -t tmpfs -o size=64k none "$1"; mkdir -p "$1/run"; chmod 700 "$1/run"; cat /dev/zero > "$1/full" || :; shift'
)
READ_ONLY = 'mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"; shift'


def homely(place: Playground, home: Path, **more: str) -> dict[str, str]:
    """Everything is looked for below this home."""
    home.mkdir(exist_ok=True)
    environment = place.environment(HOME=str(home), **more)
    return {name: value for name, value in environment.items() if not name.startswith("XDG_")}


async def full_disk(place: Playground) -> str:
    home = place.root / "home"
    return clear(await attempt(place, homely(place, home), mounted(FILL, str(home))))


async def full_runtime(place: Playground) -> str:
    home = place.root / "home"
    environment = homely(place, home, MERCURY_LS_RUNTIME_DIR=str(home / "run"))
    return clear(await attempt(place, environment, mounted(FILL, str(home))), str(home / "run"))


async def read_only_home(place: Playground) -> str:
    home = place.root / "home"
    environment = homely(place, home)
    if os.geteuid():
        home.chmod(0o500)
        return clear(await attempt(place, environment))
    return clear(await attempt(place, environment, mounted(READ_ONLY, str(home))))


async def read_only_runtime(place: Playground) -> str:
    home = place.root / "home"
    (home / "run").mkdir(parents=True, mode=0o700)
    environment = homely(place, home, MERCURY_LS_RUNTIME_DIR=str(home / "run"))
    trial = await attempt(place, environment, mounted(READ_ONLY, str(home)))
    return clear(trial, str(home / "run"), "MERCURY_LS_RUNTIME_DIR")


async def nobody(place: Playground) -> str:
    """A user without a name and a home, who may read everything, as the packages are not his."""
    as_root()
    place.root.chmod(0o755)
    os.chown(place.runtime, STRANGER, STRANGER)
    capabilities = ("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search")
    prefix = ("setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups", *capabilities)
    environment = homely(place, place.root)
    environment.pop("HOME")
    return clear(await attempt(place, environment, prefix))


async def long_path(place: Playground) -> str:
    long = place.root / ("x" * 120)
    environment = place.environment(MERCURY_LS_RUNTIME_DIR=str(long))
    trial = await attempt(place, environment)
    return clear(trial, "x" * 60, "MERCURY_LS_RUNTIME_DIR")


async def lock_is_folder(place: Playground) -> str:
    (place.runtime / "engine.lock").mkdir()
    return clear(await attempt(place, place.environment()), "engine.lock", "remove")


async def lock_is_pipe(place: Playground) -> str:
    os.mkfifo(place.runtime / "engine.lock")
    return clear(await attempt(place, place.environment()), "engine.lock", "remove")


async def socket_is_folder(place: Playground) -> str:
    from mercury_ls.link.local import SOCKET

    (place.runtime / SOCKET).mkdir()
    return clear(await attempt(place, place.environment()), SOCKET, "remove")


async def open_runtime(place: Playground) -> str:
    place.runtime.chmod(0o777)
    return clear(await attempt(place, place.environment()), str(place.runtime), "chmod 700")


async def few_files(place: Playground) -> str:
    """Of the editor's server, and of the engine server that it starts."""
    return clear(await attempt(place, place.environment(), limits={resource.RLIMIT_NOFILE: 32}))


async def little_memory(place: Playground) -> str:
    """A message of 50 MB where there is memory for less: it is refused, or the process says why it ends."""
    async with editor(place, {resource.RLIMIT_AS: 600 << 20}) as (server, talk):
        try:
            await talk.begin(place.root)
            document = {"uri": "file:///large", "languageId": "x", "version": 1, "text": "x" * 50_000_000}
            await talk.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
            suggests, detail = await suggestion(talk)
            return clear(Trial(suggests, detail, None, server.said, tuple(server.complaints())), "memory")
        except (OSError, TimeoutError) as error:
            raise FailedError(f"{error}; exit code {await server.ended(1.0)}; {server.said[-200:]!r}") from error


async def slow_engine(place: Playground) -> str:
    """Two seconds a forward: everything is answered in time, and nothing piles up."""
    command = (PYTHON[0], "-m", "bench.abuse.witness")
    engine = await start(place, "serve", str(place.root / "seen"), "2", command=command, cwd=REPOSITORY)
    try:
        async with editor(place) as (_, talk):
            await talk.begin(place.root)
            longest = await typed(talk, 60)
            await asyncio.sleep(2.0)
            pending = (await talk.request("mercury/status", {}, ANSWER_SECONDS))["result"]["pendingWork"]
            if longest > 8.0 or pending:
                raise FailedError(f"the longest answer took {longest:.1f} s, {pending} are pending")
            return f"60 requests answered, the longest within {longest:.1f} s"
    finally:
        await engine.kill()


async def typed(talk: Conversation, times: int) -> float:
    """The longest that an answer took, while the next request does not wait for it."""

    async def ask(number: int) -> float:
        await talk.change(number + 2)
        began = time.monotonic()
        await talk.ask()
        return time.monotonic() - began

    tasks = []
    for number in range(times):
        tasks.append(asyncio.create_task(ask(number)))
        await asyncio.sleep(0.05)
    return max(await asyncio.gather(*tasks))


# Strangers on TCP


@asynccontextmanager
async def http(place: Playground) -> AsyncIterator[tuple[int, str]]:
    """The port and the token of an engine server."""
    port = free_port()
    engine = await start(place, "serve", "--http", f"127.0.0.1:{port}")
    try:
        await listens(port)
        yield port, next((place.root / "state").rglob("http-token")).read_text(encoding="utf-8").strip()
    finally:
        await engine.kill()


async def idle_http(place: Playground) -> str:
    """300 connections without a token, each kept alive by a question that everybody may ask."""
    strangers = []
    async with http(place) as (port, token):
        try:
            for _ in range(300):
                with suppress(OSError, TimeoutError):
                    strangers.append(await health(port))
            began = time.monotonic()
            while time.monotonic() < began + 20.0:
                with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                    if await info(port, token):
                        return f"a client with the token was answered after {time.monotonic() - began:.1f} s"
                await asyncio.sleep(0.2)
            raise FailedError("a client with the token was not answered for 20 s")
        finally:
            for writer in strangers:
                writer.close()


async def hostile_http(place: Playground) -> str:
    """For ten seconds: heads and bodies that never end, huge ones, guessed tokens, pages of others. A friend asks all
    the while."""
    async with http(place) as (port, token):
        await friend(port, token)
        before, until = weight(place), time.monotonic() + 10.0
        async with asyncio.TaskGroup() as group:
            tried = [group.create_task(stranger(port, token, n, until)) for n in range(40)]
            slowest, answers = 0.0, 0
            while (began := time.monotonic()) < until:
                await friend(port, token)
                slowest, answers = max(slowest, time.monotonic() - began), answers + 1
        statuses = sorted({status for task in tried for status in task.result()})
        if wrong := [status for status in statuses if not 400 <= status < 500]:
            raise FailedError(f"strangers were answered {wrong}")
        sent, grown = sum(len(task.result()) for task in tried), weight(place) - before
        if slowest > 2.0 or grown > 100.0:
            raise FailedError(f"the friend waited {slowest:.1f} s, and {grown:.0f} MB were lost")
        told = f"{answers} answers for the friend in {slowest:.2f} s at most, +{grown:.0f} MB"
        return f"{sent} refused with {statuses}, {told}"


async def stranger(port: int, token: str, number: int, until: float) -> list[int]:
    """The statuses of one who tries the same again and again."""
    post, authorized = "POST /v1/completions HTTP/1.1", f"Authorization: Bearer {token}"
    kinds = (
        ("Host: 127.0.0.1", f"Authorization: Bearer {token[:-1]}", "Content-Length: 2"),
        ("Host: evil.example.com", authorized, "Content-Length: 2"),
        ("Host: 127.0.0.1", authorized, "Origin: https://evil.example.com", "Content-Length: 2"),
        ("Host: 127.0.0.1", authorized, f"Content-Length: {50 << 20}"),
        ("Host: 127.0.0.1", authorized, "Transfer-Encoding: chunked"),
        ("Host: 127.0.0.1", f"X: {'x' * (1 << 20)}"),
        ("Host: 127.0.0.1",),
        ("Host: 127.0.0.1", authorized, "Content-Length: 2"),
    )
    kind, statuses = number % len(kinds), []
    while time.monotonic() < until:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + max(until - time.monotonic(), 0.1)):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                head = "\r\n".join((post, *kinds[kind], "")).encode()
                writer.write(head if kind == 6 else head + b"\r\n" + (b"[]" if kind != 4 else b""))
                while kind == 4 and not reader.at_eof() and not writer.is_closing():
                    writer.write(b"10000\r\n" + b" " * (1 << 16) + b"\r\n")
                    await writer.drain()
                if line := await reader.readline():
                    statuses.append(int(line.split()[1]))
                writer.close()
    return statuses


async def friend(port: int, token: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = b'{"prompt": "total = compute(1)\\nother = 2\\ntotal = "}'
    head = f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    async with asyncio.timeout(ANSWER_SECONDS):
        line = await reader.readline()
    writer.close()
    if b"200" not in line:
        raise FailedError(f"a friend was answered {line!r}")


async def listens(port: int) -> None:
    for _ in range(200):
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.05)
    raise TimeoutError("nobody listens")


async def health(port: int) -> asyncio.StreamWriter:
    async with asyncio.timeout(2.0):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await reader.readline()
    return writer


async def info(port: int, token: str) -> bool:
    from mercury_ls.link.wire import PREFIX

    async with asyncio.timeout(2.0):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"GET {PREFIX}/info HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n"
        writer.write(head.encode())
        line = await reader.readline()
        writer.close()
    return b"200" in line


async def idle_tcp(place: Playground) -> str:
    """Six clients send 50 MB each without a token, and stay."""
    server = await start(place, "--tcp", "127.0.0.1:0")
    port, _ = await server.address()
    before = weight(place)
    writers = [(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(6)]
    most = before
    try:
        for writer in writers:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(3.0):
                    writer.write(b"Content-Length: 52428800\r\n\r\n")
                    for _ in range(49):
                        writer.write(b"x" * (1 << 20))
                        await writer.drain()
            most = max(most, weight(place))
        until = time.monotonic() + 8.0
        while time.monotonic() < until:
            most = max(most, weight(place))
            await asyncio.sleep(0.2)
        kept = weight(place) - before
        if kept > 64 or most - before > 300:
            raise FailedError(f"{most - before:.0f} MB more at most, {kept:.0f} MB after 8 s")
        return f"{most - before:.0f} MB more at most, {kept:.0f} MB after 8 s"
    finally:
        for writer in writers:
            writer.transport.abort()
        await server.kill()


async def large_tcp(place: Playground) -> str:
    """32 MB of brackets in an initialize without a token, while somebody else types."""
    return await disturbed(place, "--tcp", token_first=False)


async def large_friend_tcp(place: Playground) -> str:
    return await disturbed(place, "--tcp", token_first=True)


async def large_friend_ws(place: Playground) -> str:
    return await disturbed(place, "--ws", token_first=True)


async def disturbed(place: Playground, kind: str, *, token_first: bool) -> str:
    """How long the answers of one client take while another one sends what is hard to read."""
    server = await start(place, kind, "127.0.0.1:0")
    port, token = await server.address()

    async def connect() -> Pipe | Socket:
        return await Pipe.tcp(port) if kind == "--tcp" else await Socket.connect(port, token)

    typing, other = Conversation(await connect()), await connect()
    try:
        await typing.begin(place.root, token=token)
        calm = await longest_answer(typing, 1.0)
        if token_first:
            await Conversation(other).begin(place.root, token=token)
        body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":[' + b"[]," * 10_600_000 + b"0]}"
        body = body[: 15 << 20] if kind == "--ws" else body
        sending = asyncio.create_task(send_all(other, frame(body) if kind == "--tcp" else body))
        slow = await longest_answer(typing, 6.0)
        sending.cancel()
        most = max(peak_mb(pid) or 0.0 for pid in place.processes())
        told = f"answers within {slow:.2f} s instead of {calm:.2f} s, {most:.0f} MB at most"
        if slow > max(1.0, 5 * calm) or (most > 500 and not token_first):
            raise FailedError(told)
        return told
    finally:
        await typing.end()
        await server.kill()


async def send_all(wire: Pipe | Socket, data: bytes) -> None:
    with suppress(Exception):
        await wire.write(data)


async def longest_answer(talk: Conversation, seconds: float) -> float:
    longest, until = 0.0, time.monotonic() + seconds
    while (began := time.monotonic()) < until:
        await talk.request("mercury/status", {}, 100.0)
        longest = max(longest, time.monotonic() - began)
        await asyncio.sleep(0.02)
    return longest


def weight(place: Playground) -> float:
    return sum(resident_mb(pid) or 0.0 for pid in place.processes())


# Strangers' projects


async def settings_files(place: Playground) -> str:
    """`mercury-ls config` in a folder with each of them."""
    root = make_project(place)
    for content in hostile.TOML:
        (root / ".mercury.toml").write_bytes(content)
        server = await start(place, "config", cwd=root)
        if (code := await server.ended(ANSWER_SECONDS)) not in (0, 1) or server.complaints():
            problem = (server.complaints() or [server.said[-200:]])[0]
            raise FailedError(f"{content[:30]!r}… ({len(content)} bytes): exit code {code}, {problem}")
    return f"{len(hostile.TOML)} files: reported, or taken"


async def git_files(place: Playground) -> str:
    """Indexing goes on whatever `.git` is: a definition of another file is found."""
    for content in hostile.GIT:
        root = make_project(place)
        touch(root, Touch(".git", "file", content))
        trial = await attempt(place, place.environment(), root=root)
        if trial.traces or not trial.suggests:
            raise FailedError(f".git is {content[:30]!r}: {(*trial.traces, trial.detail)[0]}")
    return f"{len(hostile.GIT)} files: suggestions, and no work ended"


async def tune_killed(place: Playground) -> str:
    """SIGKILL to `tune` leaves no trainer."""
    root = make_project(place)
    for number in range(40):
        (root / f"module{number}.py").write_text("".join(hostile.CODE[:5]) * 20, encoding="utf-8")
    environment = place.environment(MERCURY_ENGINE_MODEL="auto")
    server = await start(place, "tune", str(root), "--minutes", "5", environment=environment)
    until = time.monotonic() + 60.0
    while len(place.processes()) < 2:
        if server.process.returncode is not None or time.monotonic() > until:
            raise NotHereError(f"tune has not started a trainer: {server.said[-160:]!r}")
        await asyncio.sleep(0.1)
    await asyncio.sleep(2.0)
    server.process.send_signal(signal.SIGKILL)
    await server.ended(5.0)
    until = time.monotonic() + 10.0
    while left := place.processes():
        if time.monotonic() > until:
            raise FailedError(f"{len(left)} processes live 10 s after their parent")
        await asyncio.sleep(0.1)
    return "no trainer is left"


WORKS_OR_SAYS = "suggestions, or the path and what to do"
CASES = (
    ShortageCase("a full disk for home, logs and state", "suggestions", full_disk),
    ShortageCase("a full disk for the runtime folder too", WORKS_OR_SAYS, full_runtime),
    ShortageCase("a read-only home", "suggestions", read_only_home),
    ShortageCase("a read-only runtime folder", WORKS_OR_SAYS, read_only_runtime),
    ShortageCase("no HOME and no entry in passwd", "suggestions", nobody),
    ShortageCase("a runtime path too long for a socket", WORKS_OR_SAYS, long_path),
    ShortageCase("the lock is a folder", WORKS_OR_SAYS, lock_is_folder),
    ShortageCase("the lock is a pipe", WORKS_OR_SAYS, lock_is_pipe),
    ShortageCase("the socket is a folder", WORKS_OR_SAYS, socket_is_folder),
    ShortageCase("a runtime folder open to others", WORKS_OR_SAYS, open_runtime),
    ShortageCase("32 open files", "suggestions", few_files),
    ShortageCase("600 MB of memory and a 50 MB document", "suggestions, or the reason", little_memory),
    ShortageCase("an engine that needs 2 s a forward", "answers in time", slow_engine),
    ShortageCase("300 idle HTTP connections without a token", "whoever has it is served", idle_http),
    ShortageCase("40 hostile HTTP clients", "refused, and a friend is served within 2 s", hostile_http),
    ShortageCase("6 TCP clients with 50 MB and no token", "64 MB more, 300 MB at most", idle_tcp),
    ShortageCase("32 MB of brackets before the token (TCP)", "nobody waits, 500 MB at most", large_tcp),
    ShortageCase("32 MB of brackets after it (TCP)", "nobody waits", large_friend_tcp),
    ShortageCase("15 MB of brackets (WebSocket)", "nobody waits", large_friend_ws),
    ShortageCase(".mercury.toml of every malformation, CLI", "reported", settings_files),
    ShortageCase(".git files of every malformation", "suggestions", git_files),
    ShortageCase("tune killed by SIGKILL", "its trainer ends", tune_killed),
)
QUICK = ("32 open files",)
