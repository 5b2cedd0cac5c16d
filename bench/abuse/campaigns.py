"""The campaigns: hostile hubs, model folders, templates, schemas and model servers, and programs that send secrets."""

import asyncio
import json
import random
import shutil
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import Any

from bench.abuse import hostile, hostile_models
from bench.abuse.canaries import CANARY, HIDDEN, REQUESTS
from bench.abuse.canaries import hostile as with_canaries
from bench.abuse.ground import Campaigned, Ground
from bench.abuse.sandbox import sandbox
from bench.harness import servers, stand_in_hub
from bench.harness.random_schemas import random_schema
from bench.harness.servers import Answer, Asked, FakeServer, Line, document, streamed

REPOSITORY = "org/Tiny-Coder"
COMPLETION_SECONDS = 4.0
"""Less than a template or a schema may take."""
CHAT_SECONDS = 45.0
RECOVERY_SECONDS = 90.0
ATTACKS_AT_ONCE = 5


async def campaign(name: str, seed: str, seconds: float, only: int | None = None) -> Campaigned:
    with sandbox() as place:
        ground = Ground(place, name, seed, seconds, only)
        try:
            await CAMPAIGNS[name](ground)
        except (TimeoutError, OSError) as problem:
            ground.complain(f"the campaign ended: {problem}")
        return ground.result


# Models that are added


async def hub(ground: Ground) -> None:
    """A hub that lies, sends too much or breaks off, while a server answers."""
    folder = hostile_models.chatting(ground.made / "tiny")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    async with ground.served("fake") as served:
        for rng in ground.cases():
            with stand_in_hub.serving(stand_in_hub.StandIn(dict(files), REPOSITORY)) as stand_in:
                _lie(rng, stand_in)
                await _added(ground, REPOSITORY, HF_ENDPOINT=stand_in.address)
            await served.completes(COMPLETION_SECONDS)


def _lie(rng: random.Random, stand_in: stand_in_hub.StandIn) -> None:
    kind = rng.randrange(8)
    name = rng.choice(("", *stand_in.files))
    if kind <= 1:
        stand_in.says = hostile.damaged(rng, stand_in.info())
    elif kind == 2:
        paths = ("../../others/settings", "/tmp/x", "..", "\0", "C:\\a", "\x1b[31m", "a\u202eb", "x" * 5000, "\ud800")
        path = rng.choice(paths)
        siblings = [{**each, "rfilename": f"{path}.safetensors"} for each in stand_in.info()["siblings"]]
        stand_in.says = rng.choice(({"sha": path}, {"id": path}, {"siblings": siblings}, {"tags": [f"license:{path}"]}))
    elif kind == 3:
        sizes = (None, -1, 0, 1, 10**15, 10**30, "8", 1 << 50)
        siblings = [{**each, "size": rng.choice(sizes)} for each in stand_in.info()["siblings"]]
        stand_in.says = {"siblings": siblings * rng.choice((1, 1, 2000))}
    elif kind == 4:
        packed = {"Content-Encoding": "gzip"}, [zlib.compress(bytes(1 << 26), wbits=31)]
        endless = {}, repeat(bytes(1 << 16))
        deep = {}, [b"[" * 100_000]
        odd = {"Content-Length": rng.choice(("-5", "9" * 99, "x"))}, [b"{}"]
        stand_in.sends[name] = rng.choice((packed, endless, deep, odd))
    elif kind == 5:
        locations = ("file:///etc/passwd", "http://169.254.169.254/", "//", f"/{REPOSITORY}", "http://[::1", "x" * 9000)
        location, status = rng.choice(locations), rng.choice((301, 302, 307, 308))
        stand_in.answer = lambda path, start, stop: (status, {"Location": location}, b"")
    elif kind == 6:
        status, body = rng.choice((401, 403, 404, 416, 429, 500, 503, 600)), rng.choice((b"", b"\x1b[31m" * 999, b"{"))
        stand_in.answer = lambda path, start, stop: (status, {"Retry-After": "1e300", "X-Error-Code": "\x1b[31m"}, body)
    else:
        for damaged in rng.sample([*stand_in.files], 2):
            content = bytearray(stand_in.files[damaged])
            content[rng.randrange(len(content))] ^= 1 + rng.randrange(255)
            (stand_in.wrong if rng.random() < 0.5 else stand_in.files)[damaged] = bytes(content)
        if rng.random() < 0.5:
            stand_in.cut["model.safetensors"], stand_in.stays = rng.randrange(5000), True


async def _folders(ground: Ground) -> None:
    """Folders and files of models, while a server answers."""
    sound = hostile_models.chatting(ground.made / "sound")
    async with ground.served("fake") as served:
        for rng in ground.cases():
            folder = ground.made / "tiny"
            shutil.copytree(sound, folder)
            done = hostile_models.damage(rng, folder)
            only = folder / "model.gguf"
            count = len(ground.result.wrong)
            await _added(ground, str(only if only.exists() else folder))
            ground.result.wrong[count:] = [f"{problem} ({done})" for problem in ground.result.wrong[count:]]
            await served.completes(COMPLETION_SECONDS)
            shutil.rmtree(folder)


async def _added(ground: Ground, source: str, **environment: str) -> bool:
    """Whether there is a model now; it is gone again after that, and so is what was left of it."""
    models = ground.home / "data/mercury-ls/models"
    finished = await ground.command("model", "add", source, "--yes", "--name", "tiny", **environment)
    visible = [path.name for path in models.glob("[!.]*")]
    if visible not in ([], ["tiny"]):
        ground.complain(f"a model has another name: {visible}")
    if finished.code == 1 and visible and "cannot be asked" not in finished.printed:
        ground.complain(f"what could not be added is visible: {finished.printed[-300:]!r}")
    if left := [*(ground.home / "tmp").iterdir()]:
        ground.complain(f"drafts are left: {[path.name for path in left]}")
    shutil.rmtree(models, ignore_errors=True)
    return bool(visible)


# Conversations


async def _templates(ground: Ground) -> None:
    """A model whose template is hostile to some conversations; completions are answered beside them."""
    for rng in ground.cases():
        attacks = rng.sample(hostile_models.TEMPLATES, ATTACKS_AT_ONCE)
        if not await _chatting(ground, hostile_models.with_attacks(attacks)):
            ground.complain("the model cannot be added")
            continue
        async with ground.served("chatting") as served:
            await served.completes(COMPLETION_SECONDS * 2)
            for number in range(len(attacks)):
                body = _conversation(f"attack {number}", stream=rng.random() < 0.3)
                await _beside(served, served.post("/v1/chat/completions", body, CHAT_SECONDS))
            await _understood(ground, served)


async def _schemas(ground: Ground) -> None:
    """Schemas and tools that a compiler dies of, or takes long for."""
    await _chatting(ground, hostile_models.CHATML)
    async with ground.served("chatting") as served:
        for rng in ground.cases():
            schema = _a_schema(rng)
            body = _conversation("x", stream=rng.random() < 0.2)
            if rng.random() < 0.3:
                function = {"name": rng.choice(("add", "add", "", "\x1b", "x" * 999)), "parameters": schema}
                body |= {"tools": [{"type": "function", "function": function}], "tool_choice": "required"}
            else:
                form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
                body |= {"response_format": form}
            try:
                content = json.dumps(body).encode()
            except (ValueError, RecursionError):
                continue
            await _beside(served, served.post("/v1/chat/completions", content, CHAT_SECONDS))
            if rng.random() < 0.1:
                await _understood(ground, served)
        await _understood(ground, served)


def _a_schema(rng: random.Random) -> Any:
    size = rng.choice((10, 100, 1000, 1900, 2400, 5000, 20_000))
    few = min(size, 900)
    nested: Any = {"type": "integer"}
    for _ in range(few):
        nested = {"type": "array", "items": nested} if rng.random() < 0.5 else {"anyOf": [nested, {"type": "null"}]}
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(size)} | {f"d{size}": {"type": "integer"}}
    branches = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(few)}
    kinds: tuple[Any, ...] = (
        {"$ref": "#/$defs/d0", "$defs": chain},
        {"$ref": "#/$defs/d0", "$defs": branches | {f"d{few}": {"type": "integer"}}},
        nested,
        {"type": "object", "properties": {f"p{n}": {"type": "integer"} for n in range(size)}},
        {"type": "object", "properties": {f"p{n}": {"type": "string", "pattern": "^(a|b)*c$"} for n in range(few)}},
        {"enum": [f"{n}" * 9 for n in range(size)]},
        {"const": "x" * size * 10},
        {"type": "string", "pattern": rng.choice(("(a+)+$", "(?=a)", "[", "\\p{L}{1,999}", "(" * few, "a{99999}"))},
        {"type": "string", "pattern": "a?" * few + "a" * few},
        {"type": "string", "minLength": size * 100},
        {"type": "array", "items": {"type": "integer"}, "minItems": size * 10},
        {"type": "integer", "minimum": -(10**size), "maximum": 10**size},
        {"type": "number", "multipleOf": 1e-300},
        {"allOf": [random_schema(rng.randrange(10**6)) for _ in range(rng.choice((2, 50)))]},
        {"oneOf": [random_schema(rng.randrange(10**6)) for _ in range(20)]},
        {"not": {}}, {"$ref": "#"}, {"$ref": "file:///etc/passwd"}, {"$ref": "http://127.0.0.1:9/"}, True, False,
        {"type": ["object", "array"], "properties": {"": {"$ref": "#"}}, "required": [""], "items": {"$ref": "#"}},
        {"type": "string", "format": rng.choice(("regex", "\0", "date-time", "uri-template", "no-such"))},
        hostile.damaged(rng, random_schema(rng.randrange(10**6))),
        hostile.damaged(rng, random_schema(rng.randrange(10**6))),
        random_schema(rng.randrange(10**6)),
    )  # fmt: skip
    return rng.choice(kinds)


def _conversation(text: str, *, stream: bool = False) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 16, "stream": stream}


async def _chatting(ground: Ground, template: str) -> bool:
    """Adds a model with this template."""
    shutil.rmtree(ground.home / "data/mercury-ls/models", ignore_errors=True)
    folder = hostile_models.chatting(ground.made / "chatting", template)
    finished = await ground.command("model", "add", str(folder), "--yes", "--name", "chatting")
    return finished.code == 0


async def _beside(served: Any, work: Awaitable[Any]) -> None:
    """Completions of somebody else are answered while this goes on."""
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0.05)
    while True:
        await served.completes(COMPLETION_SECONDS)
        if task.done():
            return await task
        await asyncio.wait([task], timeout=0.2)


async def _understood(ground: Ground, served: Any) -> None:
    status, text = await served.post("/v1/chat/completions", _conversation("stay"), CHAT_SECONDS)
    if status not in (0, 200):
        ground.complain(f"a harmless conversation: {status}, {text[:200]}")


# Model servers


async def _model_server(ground: Ground) -> None:
    """A model server that lies, sends too much, or nothing; and answers again at last."""
    answers = dict(SOUND)
    with servers.serving(answers) as server:
        await ground.command("model", "add", server.address, "--yes", "--name", "theirs")
        async with ground.served("theirs") as served:
            for rng in ground.cases():
                answers |= SOUND
                await _recovered(ground, served, server)
                for path in SOUND:
                    answers[path] = (
                        _an_answer(rng, path) if path == "/completion" or rng.random() < 0.2 else SOUND[path]
                    )
                await served.post("/v1/completions", _asked_of_server(f"v{rng.randrange(10**9)}"), CHAT_SECONDS)
            answers |= SOUND
            await _recovered(ground, served, server)


async def _recovered(ground: Ground, served: Any, server: FakeServer) -> None:
    """A server that had failed is left alone for a while, and asked again then."""
    asked, until = len(server.asked), time.monotonic() + RECOVERY_SECONDS
    while time.monotonic() < until:
        status, text = await served.post("/v1/completions", _asked_of_server(f"area_{asked}"))
        if status == 200 and "item.price" in text:
            return
        await asyncio.sleep(0.2)
    ground.complain(f"the model server answers again, and nobody asks it: {len(server.asked) - asked} requests")


def _asked_of_server(name: str) -> dict[str, Any]:
    return {"prompt": f"def {name}(w, h):\n    return ", "path": "a.py", "invoked": True, "deadline_ms": 4000}


MODEL = "/models/Qwen2.5-Coder-1.5B-Q8_0.gguf"
PROPS = {"default_generation_settings": {"n_ctx": 8192}, "model_path": MODEL, "build_info": "b7919"}
EVENTS = [{"content": "item.price", "stop": False}, {"content": "", "stop": True, "stop_type": "eos"}]
SOUND: dict[str, Answer] = {
    "/props": document(PROPS),
    "/v1/models": document({"object": "list", "data": [{"id": MODEL}]}),
    "/completion": streamed(EVENTS, done=False),
}


def _an_answer(rng: random.Random, path: str) -> Answer:
    sound: Any = EVENTS if path == "/completion" else [PROPS if path == "/props" else {"data": [{"id": MODEL}]}]
    statuses = (100, 204, 301, 302, 400, 401, 404, 413, 429, 500, 503, 600, 999)
    waits = ("1e300", "-5", "nan", "9" * 99, "\x1b[31m", "0")
    kinds: tuple[Answer, ...] = (
        lambda line, asked: line.whole(_deep(rng), 200),
        lambda line, asked: line.whole("\x1b[31m\u202e" * 999, rng.choice(statuses), Retry_After=rng.choice(waits)),
        lambda line, asked: line.whole("", rng.choice(statuses), Location=f"http://127.0.0.1:9/{'x' * 999}"),
        lambda line, asked: line.whole(json.dumps(hostile.damaged(rng, {"a": sound}).get("a") if sound else {})),
        streamed([hostile.damaged(rng, event) for event in sound] * rng.choice((1, 99)), done=rng.random() < 0.5),
        streamed([hostile.value(rng)] * 3),
        streamed([{"content": "x" * (1 << 20), "stop": False}] * 9, done=False),
        streamed([{"content": rng.choice(("\x1b[31m", "\ud800", "\0", "\u202e", "\r")), "stop": True}]),
        _endless, _raw(b"HTTP/1.1 200 X\r\n" + b"A: b\r\n" * 100_000), _raw(b"\0" * 5000), _raw(b""),
        _raw(b"HTTP/1.1 200"),
        _raw(b"HTTP/1.1 200 X\r\nContent-Length: 99999999999999\r\n\r\n{}"),
        _raw(b"HTTP/1.1 200 X\r\nContent-Length: -1\r\n\r\n{}"),
        _raw(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFF\r\n"),
        _raw(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        _raw(b"HTTP/1.1 200 X\r\nContent-Encoding: gzip\r\n\r\n" + zlib.compress(bytes(1 << 24), wbits=31)),
        _raw(b"HTTP/9.9 200 X\r\n\r\n"), _raw(b"HTTP/1.1 " + b"9" * 5000 + b" X\r\n\r\n"),
        _silent,
    )  # fmt: skip
    return rng.choice(kinds)


def _deep(rng: random.Random) -> str:
    levels = rng.choice((500, 100_000))
    return rng.choice(("[" * levels + "]" * levels, '{"content":' * levels, "9" * 9000, "data: " * 9000))


def _raw(data: bytes) -> Answer:
    """These bytes, and the end."""

    def answer(line: Line, asked: Asked) -> None:
        line.send(data)
        raise ConnectionAbortedError

    return answer


def _endless(line: Line, asked: Asked) -> None:
    line.head()
    with suppress(OSError):
        while True:
            line.chunk(f"data: {json.dumps({'content': 'x ', 'stop': False})}\n\n" * 500)


def _silent(line: Line, asked: Asked) -> None:
    line.is_left()
    raise ConnectionAbortedError


# Secrets


async def _canaries(ground: Ground) -> None:
    """Programs of every dialect send what hidden files hold; the model server is told none of it."""
    with servers.serving(dict(SOUND)) as server:
        await ground.command("model", "add", server.address, "--yes", "--name", "theirs")
        ground.home.joinpath("config/mercury-ls").mkdir(parents=True, exist_ok=True)
        settings = ground.home / "config/mercury-ls/config.toml"
        settings.write_text('[privacy]\nignore = ["ignored/"]\n', encoding="utf-8")
        async with ground.served("theirs") as served:
            asked = 0
            for rng in ground.cases():
                path, hidden = rng.choice(REQUESTS), rng.choice(HIDDEN)
                sent = json.loads(path.read_text(encoding="utf-8"))
                sound = body = with_canaries(sent["body"], hidden)
                if rng.random() < 0.3:
                    body = hostile.damaged(rng, body)
                await served.post(sent["path"], body)
                asked += len(server.asked)
                found = [*leaks(server, Path(hidden).name)]
                is_named = json.dumps(body).count(hidden) >= json.dumps(sound).count(hidden)
                for leak in found if is_named else ():  # of what was cut off from its name nobody knows whose it is
                    ground.complain(f"{path.stem}, {hidden}: {leak}")
            if not asked:
                ground.complain("the model server was never asked, so that nothing was tried")


def leaks(server: FakeServer, name: str) -> Iterator[str]:
    """What the server was told of hidden files, each once."""
    while server.asked:
        told = server.asked.pop().body.decode("utf-8", "replace")
        if (at := told.find(CANARY)) >= 0:
            yield f"a canary arrived: {told[max(at - 80, 0) :][:160]!r}"
        elif name in told:
            yield f"the name of a hidden file arrived: {name}"


CAMPAIGNS: dict[str, Callable[[Ground], Awaitable[None]]] = {
    "hub": hub,
    "folders": _folders,
    "templates": _templates,
    "schemas": _schemas,
    "server": _model_server,
    "canaries": _canaries,
}
