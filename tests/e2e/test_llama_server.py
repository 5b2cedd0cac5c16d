"""A real server of somebody else behind the real language server: llama.cpp's, with the weights that we ship."""

import asyncio
import re
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from msgspec.structs import replace

from mercury_engine.api import Gap
from mercury_engine.model.export import dequantized, read
from mercury_engine.model.openvino_runtime import OpenvinoRuntime
from mercury_engine.model.runtime import Rows
from mercury_engine.model.silent_openvino import ov
from mercury_engine.prompts.dialects import dialect_named
from mercury_engine.record import ModelRecord, write_record
from mercury_engine.remote import asking
from mercury_engine.remote.engine import PROMPT_TOKENS, RemoteEngine
from mercury_engine.remote.heard import StreamedText
from mercury_engine.remote.http import HttpClient
from mercury_engine.remote.probe import probe
from mercury_engine.remote.protocols import Event, protocol_named
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_training.models import save
from tests import tiny_model
from tests.e2e.environment import home, stop_engine
from tests.e2e.llama_server import MODEL, LlamaServer, completions, python, write_model
from tests.e2e.raw import Raw
from tests.engine.tiny import learnt_runtime

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

TOKENS = 24
PATIENT_MS = 20_000
HEAD = """\
import json


def load(path):
    with open(path) as file:
        return json.load(file)


def store(path, value):
    with open(path, "w") as file:
        json.dump(value, file)


"""
DOCUMENTS = {
    "return.py": (
        HEAD + "def reload(path):\n    with open(path) as file:\n        return",
        "\n\n\nprint(reload(1))\n",
        False,
    ),
    "word.py": (HEAD + "def reload(path):\n    with open(path) as file:\n        return js", "\n", False),
    "open.py": (HEAD + "def reload(path):\n    with op", "\n", False),
    "call.py": (HEAD + "def reload(path):\n    with open(", "\n", False),
    "body.py": (HEAD + "def reload(path):\n    ", "\n\n\nprint(reload(1))\n", True),
    "start.py": ("import os\nimport sys\n\n\ndef main(arguments):\n    for", "\n", False),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A model of ours that knows a few lines by heart, where a llama.cpp is here to serve it."""
    python()
    made = tmp_path_factory.mktemp("model")
    save(learnt_runtime().model, made)
    (made / "tokenizer.json").write_bytes(tiny_model.TOKENIZER.read_bytes())
    return made


@pytest.fixture(scope="module")
def weights(folder, tmp_path_factory) -> Path:
    return write_model(folder, tmp_path_factory.mktemp("gguf") / "learnt.gguf")


@pytest.fixture(scope="module")
def llama(weights, tmp_path_factory):
    server = LlamaServer(weights, tmp_path_factory.mktemp("log") / "llama.log")
    server.start()
    yield server
    server.kill()


def record(llama: LlamaServer) -> ModelRecord:
    return ModelRecord(
        name="theirs",
        kind="server",
        prompt="codestral",
        protocol="openai",
        address=llama.address,
        model=MODEL,
        context=1024,
    )


def asked(name: str, most_tokens: int = TOKENS) -> Gap:
    before, after, block = DOCUMENTS[name]
    place = {"path": name, "language": "python", "before": before, "after": after}
    return Gap(session="s", **place, block=block, most_tokens=most_tokens)


def in_process(weights: Path, gap: Gap) -> str:
    """What the same prompts give without any server, read as the answers of one."""
    budget = min(1024, PROMPT_TOKENS)
    spoken, dialect = protocol_named("openai"), dialect_named("codestral")
    for attempt in asking.filling(spoken, dialect, gap, hides=False, address="", budget=budget):
        (said,) = completions(weights, [attempt.ask.prompt], attempt.ask.tokens)
        heard = StreamedText(attempt.forced)
        is_whole = len(said["tokens"]) < attempt.ask.tokens or (not gap.block and "\n" in said["text"])
        heard.add(Event(said["text"], end="stop" if is_whole else "length"))
        if not heard.departs:
            return attempt.show(heard).text
    raise AssertionError("the last attempt asks from the cursor itself")


async def test_llama_server_is_recognised(llama):
    found = probe(replace(record(llama), protocol="", prompt="", model=""))
    assert found.protocol == "openai"
    assert [(each.name, each.prompt) for each in found.models] == [(MODEL, "codestral")]
    assert found.completes, found.note


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_greedy_answers_are_the_same_as_in_process(llama, weights, name):
    client = HttpClient(llama.address)
    try:
        *_, last = RemoteEngine(record(llama), client).fill(asked(name))
    finally:
        client.close()
    assert last.text == in_process(weights, asked(name))
    assert last.confidence, "the server gives log probabilities"


async def test_closing_ends_the_work_on_the_server(llama):
    client = HttpClient(llama.address)
    try:
        drafts = RemoteEngine(record(llama), client).fill(replace(asked("start.py", 800), block=True))
        while not next(drafts).step:
            pass
        drafts.close()
        async with asyncio.timeout(60):
            while not llama.says("Disconnected from client"):
                await asyncio.sleep(0.05)
    finally:
        client.close()


@pytest.fixture(scope="module")
def environment(llama, tmp_path_factory):
    folder = tmp_path_factory.mktemp("h")
    added = folder / "theirs"
    added.mkdir()
    write_record(record(llama), added)
    variables = home(
        folder,
        MERCURY_ENGINE_MODEL=str(added),
        MERCURY_SUGGEST_MINIMUM_PROBABILITY="0",
    )
    yield variables
    stop_engine(variables)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def editor(environment, tmp_path_factory) -> AsyncIterator[Raw]:
    async with Raw(environment, tmp_path_factory.mktemp("project").resolve()) as server:
        await server.until("ready")
        set_deadline(server, PATIENT_MS)
        yield server


def set_deadline(editor: Raw, milliseconds: int) -> None:
    params = {"settings": {"mercury": {"engine": {"deadline_ms": milliseconds}}}}
    editor.send({"jsonrpc": "2.0", "method": "workspace/didChangeConfiguration", "params": params})


async def suggested(editor: Raw, name: str, copy: str) -> str:
    """What is suggested at the cursor of a new file with this document; "" for nothing."""
    before, after, _ = DOCUMENTS[name]
    uri = editor.open(f"{copy}_{name}", before + after)
    items = await editor.inline(uri, *place(before))
    return items[0]["insertText"] if items else ""


async def told(editor: Raw, name: str, copy: str) -> str:
    return await editor.why((editor.root / f"{copy}_{name}").as_uri(), *place(DOCUMENTS[name][0]))


def place(before: str) -> tuple[int, int]:
    return before.count("\n"), len(before) - before.rfind("\n") - 1


async def until_suggested(editor: Raw, name: str, copy: str) -> str:
    text = ""
    async with asyncio.timeout(60):
        for number in count():
            if text := await suggested(editor, name, f"{copy}{number}"):
                break
            await asyncio.sleep(0.05)  # the server is left alone for a while after a failure
    return text


async def until_told(editor: Raw, wanted: str, copy: str) -> str:
    """The reason for a silence in which this is said."""
    reason = ""
    async with asyncio.timeout(60):
        for number in count():
            assert await suggested(editor, "return.py", f"{copy}{number}") == ""
            if wanted in (reason := await told(editor, "return.py", f"{copy}{number}")):
                break
            await asyncio.sleep(0.05)
    return reason


async def test_editor_gets_the_answers_of_the_server(editor, weights):
    for name in ("return.py", "call.py"):
        assert await suggested(editor, name, "plain") == in_process(weights, asked(name)).rstrip()


async def test_server_dies_and_comes_back(editor, llama):
    before = await suggested(editor, "return.py", "alive")
    llama.kill()
    assert "mercury-ls model use auto" in await until_told(editor, f"{llama.address} does not answer", "dead")
    llama.start()
    assert await until_suggested(editor, "return.py", "back") == before


async def test_hanging_server_delays_nothing_beyond_deadline(editor, llama):
    llama.suspend()
    set_deadline(editor, 500)
    try:
        for number in range(2):
            assert await asyncio.wait_for(suggested(editor, "return.py", f"hung{number}"), 10) == ""
            assert "slower than engine.deadline_ms allows" in await told(editor, "return.py", f"hung{number}")
    finally:
        llama.resume()
        set_deadline(editor, PATIENT_MS)
    assert await until_suggested(editor, "return.py", "resumed")


async def test_another_model_at_the_same_address_is_not_taken_for_the_right_one(editor, llama):
    llama.kill()
    assert await suggested(editor, "return.py", "between") == ""
    llama.start(alias="phi-4")
    await until_told(editor, f"has no model '{MODEL}'; it has phi-4", "other")
    llama.kill()
    llama.start()
    assert await until_suggested(editor, "return.py", "right")


@pytest.fixture(scope="module")
def ours(folder):
    config, weights = read(folder)
    return OpenvinoRuntime(config, dequantized(weights), threads=2, precision=ov.Type.f32), Tokenizer.load(
        folder / "tokenizer.json"
    )


def decoded(ours, prompt: str, most: int) -> list[int]:
    """What our own graph says greedily, token by token, to the prompt of a server."""
    runtime, tokenizer = ours
    _, suffix, prefix = re.split(r"\[SUFFIX\]|\[PREFIX\]", prompt)
    ids, cache = [0, 4, *tokenizer.encode(suffix), 5, *tokenizer.encode(prefix)], runtime.cache()
    said: list[int] = []
    while len(said) < most:
        rows = Rows(np.array(ids, np.int32), np.arange(cache.length, cache.length + len(ids)), rows=[len(ids) - 1])
        forward = runtime.forward(rows, cache)
        cache.append(forward, range(len(ids)))
        ids = [int(forward.logits_WV[0].argmax())]
        if ids == [3]:
            break
        said += ids
    return said


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_our_own_graph_says_the_same_tokens(ours, weights, name):
    spoken, dialect = protocol_named("openai"), dialect_named("codestral")
    for attempt in asking.filling(spoken, dialect, asked(name), hides=False, address="", budget=1024):
        (said,) = completions(weights, [attempt.ask.prompt], TOKENS)
        assert decoded(ours, attempt.ask.prompt, TOKENS)[: len(said["tokens"])] == said["tokens"]
