"""What a user waits for at each step through two files, with a model's real weights and the real processes.

    python -m bench.latency [--model FOLDER|URL|FILE.gguf] [--set FILE] [--files N] [--busy CORES] [--by-hand]

A URL is that of llama.cpp's server, which is asked as llama.vim asks it, and timed up to the end of the first line; for
a GGUF file it is started (`--llama-server PROGRAM`).
Each file is opened and asked in at once; a few keys are typed and asked after; after a rest the cursor jumps by 100
lines; another file is opened, and the first one entered again where it was left. Beside the times stand the tokens
that answers waited for and that were read meanwhile. How long answers take while somebody types as recorded is told by
`python -m bench.replay SESSION … --model FOLDER`. The last line is JSON.
"""

import argparse
import asyncio
import json
import os
import subprocess
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from msgspec import Struct

from bench.harness.client import Client, running
from bench.harness.measures import machine, percentile
from bench.harness.servers import free_port
from bench.harness.usage import Usage, busy
from bench.replay.play import MODELS, SHIPPED, engine_pid, engine_server, is_ready, measured
from mercury_ls.serve import daemon
from mercury_training.progress import shown
from mercury_training.rows.fim_rows import FimRow, read_rows

INLINE = "textDocument/inlineCompletion"
BY_HAND, AUTOMATIC = 1, 2
KEYS, KEY_SECONDS, REST_SECONDS = 5, 0.12, 4.0
JUMP_LINES = 100
STEPS = ("open", "key", "jump", "return")
OWN_SET = Path("bench/sets/fim.jsonl")
LINES_BEFORE, LINES_BEHIND = 256, 64
LOOPBACK, OPENING_SECONDS = "127.0.0.1", 60.0
LLAMA_VIM: dict[str, Any] = {
    "id_slot": 0,
    "cache_prompt": True,
    "n_predict": 128,
    "top_k": 40,
    "top_p": 0.9,
    "samplers": ["top_k", "top_p", "infill"],
    "t_max_prompt_ms": 500,
    "t_max_predict_ms": 1000,
    "input_extra": [],
    "stop": [],
    "stream": True,
}
"""llama.vim's defaults, but for the stream: it waits for the whole answer."""


class Step(Struct, frozen=True):
    """A request: how long its answer took, whether it showed anything, the tokens that it waited for, and those that
    were read ahead since the last one."""

    name: str
    milliseconds: float
    is_shown: bool
    awaited: int
    ahead: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=SHIPPED, help=f"{MODELS}, a URL, or a GGUF file")
    parser.add_argument("--llama-server", metavar="PROGRAM", default="llama-server", help="which serves a GGUF file")
    parser.add_argument("--set", type=Path, default=OWN_SET, help="rows whose files are visited")
    parser.add_argument("--files", type=int, default=12)
    parser.add_argument("--busy", type=int, default=0, help="keep this many cores busy meanwhile")
    parser.add_argument("--by-hand", action="store_true", help="ask as with the key that requests a suggestion")
    given = parser.parse_args()
    files = list(long_files(read_rows(given.set)))[: given.files]
    if len(files) < 2:
        raise SystemExit(f"{given.set}: fewer than two files of more than {JUMP_LINES} lines; name another set")
    with busy(given.busy), ExitStack() as stack:
        trigger = BY_HAND if given.by_hand else AUTOMATIC
        is_file = given.model.endswith(".gguf")
        model = stack.enter_context(llama_server(given.llama_server, given.model)) if is_file else given.model
        steps, usage = asyncio.run(visited(model, files, rest=REST_SECONDS, trigger=trigger))
    found = {name: figures([step for step in steps if step.name == name]) for name in STEPS}
    print(f"{'':8}{'n':>5}{'p50 ms':>9}{'p90 ms':>9}{'shown':>7}{'awaited':>9}{'ahead':>8}  (tokens, mean)")
    for name, row in found.items():
        print(f"{name:8}{row['n']:5}{row['p50_ms']:9.0f}{row['p90_ms']:9.0f}{row['shown']:7.0%}", end="")
        print(f"{row['awaited']:9.0f}{row['ahead']:8.0f}")
    if usage.memory:
        print(f"engine: {usage.most_mb:.0f} MB at most, {usage.last_mb:.0f} MB at the end")
    about = {"model": Path(given.model).name, "files": len(files), "busy": given.busy, "machine": machine()}
    print(json.dumps({**about, "steps": found, "engine_mb": [usage.most_mb, usage.last_mb]}))


def long_files(rows: Sequence[FimRow]) -> Iterator[FimRow]:
    """The first row of each file with room for a jump."""
    seen = set()
    for row in rows:
        text = row.prefix + row.middle + row.suffix
        if (row.repo, row.path) not in seen and text.count("\n") > JUMP_LINES + 1:
            seen.add((row.repo, row.path))
            yield row


@contextmanager
def llama_server(program: str, gguf: str) -> Iterator[str]:
    """The address of llama.cpp's server with this file, on two cores or one."""
    threads, port = str(min(2, os.cpu_count() or 1)), str(free_port())
    command = [program, "-m", gguf, "-t", threads, "-c", "8192", "--host", LOOPBACK, "--port", port]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _until_healthy(process, url := f"http://{LOOPBACK}:{port}")
            yield url
        finally:
            process.terminate()


def _until_healthy(process: subprocess.Popen[bytes], url: str) -> None:
    until = time.monotonic() + OPENING_SECONDS
    while process.poll() is None and time.monotonic() < until:
        with suppress(OSError), urllib.request.urlopen(f"{url}/health"):
            return
        time.sleep(0.2)
    raise SystemExit(f"{process.args[0]} does not serve {process.args[2]}: start it by hand to see why")


class Peer(Protocol):
    """Who is asked. `tokens_read` are all until now: those `awaited` by somebody, and those read `ahead`."""

    def open(self, uri: str, language: str, text: str) -> None: ...

    def insert(self, uri: str, line: int, character: int, text: str) -> None: ...

    def close(self, uri: str) -> None: ...

    async def is_shown(self, uri: str, line: int, character: int) -> bool: ...

    async def tokens_read(self) -> Mapping[str, int]: ...


async def visited(
    model: str, files: Sequence[FimRow], *, rest: float, pause: float = KEY_SECONDS, trigger: int = AUTOMATIC
) -> tuple[list[Step], Usage]:
    """All steps through each file and the one behind it."""
    steps, usage = [], Usage()
    asked = _llama if model.startswith("http://") else partial(_own, trigger=trigger)
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        async with asked(model, root, usage) as peer:
            visitor = Visitor(peer, root, rest, pause)
            for number, row in enumerate(shown("files", files)):
                steps += [step async for step in visitor.visit(row, files[number - 1])]
    return steps, usage


@asynccontextmanager
async def _own(model: str, root: Path, usage: Usage, trigger: int) -> AsyncIterator[Peer]:
    """The language server and its engine, in the folder of a project."""
    (root / ".git").mkdir()
    with engine_server(model) as (runtime, environment):
        async with running(root, **environment) as client:
            await is_ready(client)
            async with measured(engine_pid(runtime), usage):
                yield Own(client, runtime, trigger)


class Own:
    def __init__(self, client: Client, runtime: Path, trigger: int) -> None:
        self._client = client
        self._trigger = trigger
        self._runtime = runtime
        self.open, self.insert = client.open, client.insert

    def close(self, uri: str) -> None:
        self._client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    async def is_shown(self, uri: str, line: int, character: int) -> bool:
        place = {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}
        answer: Any = await self._client.request(INLINE, {**place, "context": {"triggerKind": self._trigger}})
        return bool(answer["items"])

    async def tokens_read(self) -> Mapping[str, int]:
        status = await asyncio.to_thread(daemon.status, str(self._runtime))
        return status.info.prompts if status and status.info else {}


@asynccontextmanager
async def _llama(url: str, root: Path, usage: Usage) -> AsyncIterator[Peer]:
    yield Llama(url)


class Llama:
    """llama.cpp's server; opened files are kept as lines."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._texts: dict[str, list[str]] = {}

    def open(self, uri: str, language: str, text: str) -> None:
        self._texts[uri] = text.split("\n")

    def insert(self, uri: str, line: int, character: int, text: str) -> None:
        lines = self._texts[uri]
        lines[line] = lines[line][:character] + text + lines[line][character:]

    def close(self, uri: str) -> None:
        del self._texts[uri]

    async def is_shown(self, uri: str, line: int, character: int) -> bool:
        lines = self._texts[uri]
        at = lines[line]
        asked = {
            **LLAMA_VIM,
            "input_prefix": "".join(f"{above}\n" for above in lines[max(line - LINES_BEFORE, 0) : line]),
            "prompt": at[:character],
            "input_suffix": "\n".join([at[character:], *lines[line + 1 : line + 1 + LINES_BEHIND]]) + "\n",
            "n_indent": len(at) - len(at.lstrip()),
        }
        first_line = await asyncio.to_thread(self._streamed, asked)
        return bool(first_line.strip())

    def _streamed(self, asked: dict[str, Any]) -> str:
        """The first line of the answer, or all of it if it is shorter."""
        body, text = json.dumps(asked).encode(), ""
        request = urllib.request.Request(f"{self._url}/infill", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as events:
            for event in events:
                if not event.startswith(b"data: {"):
                    continue
                told = json.loads(event[6:])
                text += told["content"]
                if "\n" in text.lstrip("\n"):
                    return text.lstrip("\n").partition("\n")[0]
        return text

    async def tokens_read(self) -> Mapping[str, int]:
        return {}


class Visitor:
    """Moves through files as one editor, and counts what is read. There is a `pause` behind each key, and a `rest`
    before each move."""

    def __init__(self, peer: Peer, root: Path, rest: float, pause: float) -> None:
        self._peer = peer
        self._root = root
        self._rest = rest
        self._pause = pause
        self._texts: dict[str, list[str]] = {}
        self._read: dict[str, int] = {}

    async def visit(self, row: FimRow, other: FimRow):
        uri, line, character = self._opened(row), row.prefix.count("\n"), len(row.prefix.rpartition("\n")[2])
        yield await self._asked("open", uri, line, character)
        for letter in row.middle.partition("\n")[0][:KEYS]:
            self._peer.insert(uri, line, character, letter)
            await asyncio.sleep(self._pause)
            character += 1
            yield await self._asked("key", uri, line, character)
        await asyncio.sleep(self._rest)
        far = line - JUMP_LINES if line >= JUMP_LINES else line + JUMP_LINES
        far = min(far, len(self._texts[uri]) - 1)
        yield await self._asked("jump", uri, far, len(self._texts[uri][far]))
        await asyncio.sleep(self._rest)
        elsewhere = self._opened(other)
        await self._asked("", elsewhere, other.prefix.count("\n"), 0)
        await asyncio.sleep(self._rest)
        yield await self._asked("return", uri, far, len(self._texts[uri][far]))
        for opened in (uri, elsewhere):
            self._peer.close(opened)

    def _opened(self, row: FimRow) -> str:
        path, text = self._root / row.repo / row.path, row.prefix + row.suffix
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self._texts[path.as_uri()] = text.split("\n")
        self._peer.open(path.as_uri(), row.language, text)
        return path.as_uri()

    async def _asked(self, name: str, uri: str, line: int, character: int) -> Step:
        """Columns count code points: the rows are taken as they are, and few of them have others."""
        ahead = await self._news("ahead")
        started = time.perf_counter()
        is_shown = await self._peer.is_shown(uri, line, character)
        milliseconds = (time.perf_counter() - started) * 1000
        return Step(name, milliseconds, is_shown, await self._news("awaited"), ahead)

    async def _news(self, kind: str) -> int:
        """How much more was read since this was asked last."""
        total = (await self._peer.tokens_read()).get(kind, 0)
        before, self._read[kind] = self._read.get(kind, 0), total
        return total - before


def figures(steps: Sequence[Step]) -> dict[str, float]:
    times = sorted(step.milliseconds for step in steps)
    count = len(steps)
    return {
        "n": count,
        "p50_ms": round(percentile(times, 50), 1),
        "p90_ms": round(percentile(times, 90), 1),
        "shown": sum(step.is_shown for step in steps) / count,
        "awaited": sum(step.awaited for step in steps) / count,
        "ahead": sum(step.ahead for step in steps) / count,
    }


if __name__ == "__main__":
    main()
