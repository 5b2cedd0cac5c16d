"""A perfect model behind a server: imitates llama-server or vLLM, and streams what really belongs into the gap."""

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

from msgspec import Struct

from bench.oracle.truth import Place, Truths, Wisdom, chance_of_right, log_probs, tokens, wrong

MODEL = "qwen2.5-coder-7b"
CONTEXT = 32_768
FIM = re.compile(r"<\|fim_prefix\|>(.*)<\|fim_suffix\|>(.*)<\|fim_middle\|>(.*)\Z", re.DOTALL)
CANARY = "def add(a, b):\n    return a + b\n"
"""What somebody may ask to see whether a model fills gaps at all."""
MOST_TOKENS = 512
"""Of an answer to somebody who names no limit."""

Hanging = asyncio.Task[bytes]
"""Done as soon as the client closes the connection."""


class Options(Struct, kw_only=True):
    """`right` is the share of lines whose answers are right; `runs_on` models go on behind the gap until the tokens are
    used up."""

    kind: Literal["llama", "vllm"] = "llama"
    first_ms: float = 0.0
    tokens_per_second: float = 80.0
    right: float = 1.0
    runs_on: bool = False
    wisdom: Wisdom = "absent"
    slots: int = 4
    seed: int = 0


class Counts(Struct):
    """`vain`: requests that their client left before the first token; `stopped`: after it."""

    requests: int = 0
    vain: int = 0
    stopped: int = 0
    tokens: int = 0


class Piece(Struct, frozen=True):
    """One token on its way; `end` says why there is no other."""

    text: str
    log_prob: float | None = None
    end: Literal["", "eos", "word", "limit"] = ""


class _Request(Struct, frozen=True):
    path: str
    body: dict[str, Any]


def gap_of(body: dict[str, Any]) -> tuple[str, str]:
    """The text before and behind the gap, of a prompt with signs for it or of two fields."""
    if "input_prefix" in body:
        return body["input_prefix"] + body.get("prompt", ""), body.get("input_suffix", "")
    prompt = body.get("prompt", "")
    if found := FIM.search(prompt):
        return found[1] + found[3], found[2]
    return prompt, body.get("suffix") or ""


def answered(
    place: Place | None, options: Options, *, most: int, stops: Sequence[str] = (), sampled: int = 0
) -> Iterator[Piece]:
    """The tokens of an answer. The same question gets the same answer, and all of a line are right or wrong."""
    chance = _chance_at(place, options, sampled)
    right = chance.random() < options.right
    if place is None:
        text = ""
    elif right:
        text = place.text[place.start :] if options.runs_on else place.middle
    else:
        text = wrong(place, chance) + (place.text[place.end :] if options.runs_on else "")
    pieces = tokens(text)
    told = log_probs(options.wisdom, right=right, count=len(pieces), chance=chance) or [None] * len(pieces)
    said = ""
    for number, (piece, log_prob) in enumerate(zip(pieces, told, strict=True)):
        if number == most:
            yield Piece("", end="limit")
            return
        stop = min((at for stop in stops if (at := (said + piece).find(stop)) >= 0), default=-1)
        if stop >= 0:
            yield Piece(piece[: max(stop - len(said), 0)], log_prob, end="word")
            return
        said += piece
        yield Piece(piece, log_prob)
    yield Piece("", end="eos")


def _chance_at(place: Place | None, options: Options, sampled: int = 0) -> random.Random:
    """The dice of one line of a text."""
    where = (place.text[:64], place.line) if place else ()
    return random.Random(f"{options.seed} {sampled} {where}")


class OracleServer:
    """Answers on the event loop of whoever measures; `truths` and `options` may change from request to request."""

    def __init__(self, truths: Truths, options: Options | None = None) -> None:
        self.truths = truths
        self.options = options or Options()
        self.counts = Counts()
        self.address = ""
        self.asked: list[tuple[str, str]] = []
        """The gaps of the last requests, for tests."""
        self._slots = asyncio.Semaphore(self.options.slots)
        self._connections: dict[asyncio.Task, asyncio.StreamWriter] = {}

    def is_right(self, before: str, behind: str) -> bool:
        """Whether its first answer at this place is the right one."""
        return _chance_at(self.truths.place(before, behind), self.options).random() < self.options.right

    def is_likely(self, before: str, behind: str, rate: float, bar: float) -> bool:
        """Whether somebody who knows that it is right at this rate would say that its answer here is over the bar."""
        pieces = answered(self.truths.place(before, behind), self.options, most=MOST_TOKENS)
        told = [piece.log_prob for piece in pieces if piece.log_prob is not None]
        return chance_of_right(self.options.wisdom, told, rate) >= bar

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        self._connections[task] = writer
        try:
            while (request := await received(reader)) is not None:
                if not await self._serve(request, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has gone
        finally:
            del self._connections[task]
            writer.close()

    async def close(self) -> None:
        for writer in self._connections.values():
            writer.transport.abort()
        await asyncio.gather(*self._connections)

    async def _serve(self, request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the client is still there."""
        paths = ("/completion", "/completions", "/infill") if self.options.kind == "llama" else ()
        if request.path in (*paths, "/v1/completions"):
            hanging = asyncio.create_task(reader.read(1))
            try:
                return await self._complete(request, hanging, writer)
            finally:
                hanging.cancel()
                with suppress(asyncio.CancelledError):
                    await hanging
        told = self._told(request.path)
        missing = {"error": {"message": "File Not Found", "code": 404}}
        await reply(writer, told or missing, "200 OK" if told else "404 Not Found")
        return True

    def _told(self, path: str) -> dict[str, Any]:
        """What it says of itself."""
        model = {"id": MODEL, "object": "model", "max_model_len": CONTEXT}
        settings = {"n_ctx": CONTEXT, "params": {}}
        pages = {"/health": {"status": "ok"}, "/v1/models": {"object": "list", "data": [model]}}
        if self.options.kind == "llama":
            pages["/props"] = {
                "default_generation_settings": settings,
                "total_slots": self.options.slots,
                "model_path": f"/models/{MODEL}-q8_0.gguf",
                "build_info": "b7000-oracle",
            }
        return pages.get(path, {})

    async def _complete(self, request: _Request, hanging: Hanging, writer: asyncio.StreamWriter) -> bool:
        body, options = request.body, self.options
        most = body.get("n_predict", body.get("max_tokens", MOST_TOKENS))
        most = MOST_TOKENS if most < 0 else most
        gap = gap_of(body)
        is_warming = most == 0
        if not is_warming:
            self.counts.requests += 1
            self.asked = [*self.asked[-15:], gap]
        place = self.truths.place(*gap)
        sampled = body.get("seed", 0) if body.get("temperature") else 0
        pieces = answered(place, options, most=most, stops=body.get("stop", ()), sampled=sampled)
        as_openai = request.path == "/v1/completions"
        async with self._slots:
            if await left(hanging, options.first_ms / 1000):
                self.counts.vain += not is_warming
                return False
            if body.get("stream"):
                told = "n_probs" in body or "logprobs" in body
                return await self._stream(pieces, hanging, writer, as_openai=as_openai, told=told)
            whole = [piece async for piece in self._paced(pieces, hanging)]
        message = spoken(Piece("".join(piece.text for piece in whole), end=whole[-1].end), as_openai=as_openai)
        await reply(writer, message)
        return True

    async def _stream(
        self, pieces: Iterator[Piece], hanging: Hanging, writer: asyncio.StreamWriter, *, as_openai: bool, told: bool
    ) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        last = Piece("")
        async for last in self._paced(pieces, hanging):
            event = f"data: {json.dumps(spoken(last, as_openai=as_openai, told=told))}\n\n".encode()
            writer.write(b"%x\r\n%b\r\n" % (len(event), event))
            await writer.drain()
        if not last.end:
            self.counts.stopped += 1
            return False
        done = b"data: [DONE]\n\n"
        writer.write((b"%x\r\n%b\r\n" % (len(done), done) if as_openai else b"") + b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _paced(self, pieces: Iterator[Piece], hanging: Hanging) -> AsyncIterator[Piece]:
        """The first at once, the others at their time; none any more once the client has gone."""
        clock = asyncio.get_running_loop().time
        due = clock()
        for piece in pieces:
            if await left(hanging, due - clock()):
                return
            self.counts.tokens += bool(piece.text)
            yield piece
            due += 1 / self.options.tokens_per_second


async def reply(writer: asyncio.StreamWriter, value: Any, status: str = "200 OK") -> None:
    """A whole answer in JSON."""
    data = json.dumps(value).encode()
    writer.write(f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode())
    writer.write(data)
    await writer.drain()


async def left(hanging: Hanging, seconds: float) -> bool:
    """Whether the client closes the connection within this time."""
    if seconds > 0 and not hanging.done():
        await asyncio.wait({hanging}, timeout=seconds)
    return hanging.done()


def spoken(piece: Piece, *, as_openai: bool, told: bool = False) -> dict[str, Any]:
    """A token as one of the two servers says it."""
    is_told = told and piece.log_prob is not None and bool(piece.text)
    if as_openai:
        reason = {"": None, "limit": "length"}.get(piece.end, "stop")
        logged = {"tokens": [piece.text], "token_logprobs": [piece.log_prob]} if is_told else None
        return {"choices": [{"index": 0, "text": piece.text, "logprobs": logged, "finish_reason": reason}]}
    message: dict[str, Any] = {"index": 0, "content": piece.text, "stop": bool(piece.end)}
    if is_told:
        message["completion_probabilities"] = [{"id": 1, "token": piece.text, "logprob": piece.log_prob}]
    return message | ({"stop_type": piece.end} if piece.end else {})


async def received(reader: asyncio.StreamReader) -> _Request | None:
    """None once the client has closed the connection."""
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    body = await reader.readexactly(int(length[1])) if length else b""
    return _Request(head.split(b" ", 2)[1].decode(), json.loads(body) if body else {})


def oracle_of(truths: Sequence[str], options: Options | None = None) -> OracleServer:
    return OracleServer(Truths([CANARY, *truths]), options)


@asynccontextmanager
async def serving(truths: Sequence[str], options: Options | None = None) -> AsyncIterator[OracleServer]:
    oracle = oracle_of(truths, options)
    server = await asyncio.start_server(oracle.connected, "127.0.0.1", 0)
    oracle.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield oracle
    finally:
        server.close()
        await oracle.close()
        await server.wait_closed()
