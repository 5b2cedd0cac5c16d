"""Long prompts from end to end: a checkpoint with random weights and a long context, asked over HTTP as programs ask.

    python -m bench.models.long [--lengths 1024,4096,16384,65536,131072] [--kinds chat code] [--layers 1] [--width 128]

For each length a server of its own reads a conversation, then the same with one line more; and another one code before
a cursor. `processor` are seconds of all cores, which other programs lengthen less than `seconds`; `peak` is resident
memory in MiB beside that of the server at rest, `counted` what the engine counts on before it begins. At the longest,
20 others ask while a conversation is read, and then its client leaves.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from bench.harness.client import COMMAND, free_port
from bench.harness.measures import machine
from bench.harness.usage import peak_mb, processor_seconds, resident_mb
from bench.models.shapes import qwen, write_checkpoint
from bench.replay.play import engine_server
from mercury_engine.model.config import TOKENIZER_FILE
from mercury_engine.model.decoder import open_decoder
from mercury_engine.model.room import reading_bytes
from mercury_engine.model.runtime import Resources
from mercury_engine.prompts.dialects import dialect_named
from mercury_engine.record import ModelRecord, write_record
from mercury_ls.link.connection import Address, connect

__all__ = ["main"]

LENGTHS = (1024, 4096, 16_384, 65_536, 131_072)
CONTEXT = 131_072
AROUND = {"chat": 80, "code": 1200}
"""Tokens of the template or dialect, and those that are left for an answer, more or less: longer code is cut."""

YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": CONTEXT // 4}
"""As the documentation of Qwen 2.5 writes it for texts of 131,072 tokens."""

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
RECORD = ModelRecord(name="long", kind="fim", prompt="qwen", context=CONTEXT)
LINE = "print(total_1)\n"
CHAT_SECONDS, CODE_SECONDS = 119.0, 60.0
COLUMNS = ("kind", "tokens", "seconds", "processor", "again", "again_processor", "peak", "counted")
PLACES = {"seconds": 2, "processor": 2, "again": 2, "again_processor": 2}
WIDTH = 16
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", *dialect_named("qwen").tokens)
OTHERS = 20
STARTING_SECONDS = 120.0
WATCHED_SECONDS = 3.0
MEBI = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)), help="tokens")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--memory", type=int, default=2048, help="engine.memory_mb")
    given = parser.parse_args()
    lengths = sorted(int(length) for length in given.lengths.split(","))
    print(f"{machine()}; random weights, {given.layers} layers, width {given.width}")
    print("".join(f"{name:>{WIDTH}}" for name in COLUMNS))
    with tempfile.TemporaryDirectory() as folder:
        model, beside = write(Path(folder) / "long", given.layers, given.width), {}
        found = [measured(model, kind, length, given.memory) for length in lengths for kind in given.kinds]
        if "chat" in given.kinds:
            seconds = max(each["seconds"] for each in found)
            with serving(model, given.memory) as (address, pid):
                beside = asyncio.run(meanwhile(address, pid, lengths[-1], seconds))
    print("; ".join(f"{name} {value:.0f}" for name, value in beside.items()))
    shape = {"machine": machine(), "layers": given.layers, "width": given.width}
    print(json.dumps(shape | {"found": found, "beside": beside}))


def write(folder: Path, layers: int, width: int) -> Path:
    """A checkpoint in the layout of Qwen 2.5 with its settings for long texts, which chats and fills gaps."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: number for number, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    layout = qwen(layers, width, width // 64, max(1, width // 256), 3 * width)
    sizes = {"vocab_size": tokenizer.get_vocab_size(), "max_position_embeddings": CONTEXT}
    write_checkpoint(layout | sizes | {"rope_scaling": YARN}, folder)
    tokenizer.save(str(folder / TOKENIZER_FILE))
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    write_record(RECORD, folder)
    return folder


def measured(model: Path, kind: str, length: int, memory: int) -> dict[str, Any]:
    """Time to read a text of this length, and with one line more, and the memory that it took."""
    found: dict[str, Any] = {"kind": kind, "tokens": length, "counted": counted(model, length) / MEBI}
    with serving(model, memory) as (address, pid):
        asyncio.run(completion(address, code(200)))
        before, spent = resident_mb(pid) or 0.0, processor_seconds(pid) or 0.0
        Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
        text = code(min(length, CONTEXT - AROUND[kind]))
        found["seconds"] = asyncio.run(KINDS[kind](address, text))
        found["processor"] = (processor_seconds(pid) or 0.0) - spent
        found["again"] = asyncio.run(KINDS[kind](address, text + LINE))
        found["again_processor"] = (processor_seconds(pid) or 0.0) - spent - found["processor"]
        found["peak"] = (peak_mb(pid) or 0.0) - before
    print(
        kind.rjust(WIDTH) + "".join(f"{found[name]:{WIDTH}.{PLACES.get(name, 0)}f}" for name in COLUMNS[1:]), flush=True
    )
    return found


async def meanwhile(address: Address, pid: int, length: int, seconds: float) -> dict[str, float]:
    """What 20 small requests take while a long one is read, and what the engine still does once its client has left."""
    alone = [await completion(address, code(300 + number)) for number in range(OTHERS)]
    reading = asyncio.create_task(chat(address, code(length - AROUND["chat"])))
    await asyncio.sleep(seconds / 4)
    asked = [asyncio.create_task(completion(address, code(400 + number))) for number in range(OTHERS)]
    beside = await asyncio.gather(*asked)
    in_time = not reading.done()
    reading.cancel()
    await asyncio.wait([reading])
    left = processor_seconds(pid) or 0.0
    await asyncio.sleep(WATCHED_SECONDS)
    return {
        "alone_ms": statistics.median(alone) * 1000,
        "beside_ms": statistics.median(beside) * 1000,
        "beside_most_ms": max(beside) * 1000,
        "answered_before_the_long_one": in_time * OTHERS,
        "processor_after_leaving_ms": ((processor_seconds(pid) or 0.0) - left) * 1000,
    }


async def chat(address: Address, text: str) -> float:
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": 1}
    return await answered(address, "/v1/chat/completions", body, CHAT_SECONDS)


async def completion(address: Address, text: str) -> float:
    body = {"prompt": text, "path": "long.py", "max_tokens": 1, "invoked": True, "deadline_ms": CODE_SECONDS * 1000}
    return await answered(address, "/v1/completions", body, CODE_SECONDS)


KINDS = {"chat": chat, "code": completion}


async def answered(address: Address, path: str, body: dict[str, Any], most: float) -> float:
    """A prompt that is not read in the time that an answer may take is asked about again: what was read stays."""
    taken = last = await post(address, path, body)
    while last >= most:
        taken += (last := await post(address, path, body))
    return taken


async def post(address: Address, path: str, body: dict[str, Any]) -> float:
    connection, began = await connect(address), time.monotonic()
    try:
        response = await connection.send("POST", path, {"content-type": "application/json"}, json.dumps(body).encode())
        told = json.loads(await connection.read(response))
    finally:
        connection.close()
    if response.status != 200:
        raise SystemExit(f"{path}: {response.status} {told['error']['message']}")
    return time.monotonic() - began


@contextmanager
def serving(model: Path, memory: int) -> Iterator[tuple[Address, int]]:
    settings = (f"engine.memory_mb={memory}", f"context.budget_tokens={CONTEXT}", "context.analysed_names=false")
    address = Address(host="127.0.0.1", port=free_port())
    with engine_server(str(model)) as (_, environment):
        command = [*COMMAND[:3], "serve", "--http", f"{address.host}:{address.port}", "--without-token"]
        command += [word for setting in settings for word in ("--set", setting)]
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
        try:
            asyncio.run(ready(address))
            yield address, process.pid
        finally:
            process.terminate()
            process.wait()


async def ready(address: Address) -> None:
    async with asyncio.timeout(STARTING_SECONDS):
        while True:
            try:
                connection = await connect(address)
                health = json.loads(await connection.read(await connection.send("GET", "/health", {})))
                connection.close()
                if health["status"] == "ok":
                    return
                if health["status"] == "error":
                    raise SystemExit("the engine could not be loaded: its log says why")
            except OSError:
                pass
            await asyncio.sleep(0.05)


def counted(model: Path, length: int) -> int:
    """What the engine counts on before it begins."""
    runtime = open_decoder(model, RECORD, Resources(device="cpu"))
    return reading_bytes(runtime, runtime.cache(), length)


def code(characters: int) -> str:
    """Lines that differ, up to so many characters."""
    text = "".join(f"total_{number} = total_{number // 2} + {number % 97}\n" for number in range(characters // 16))
    return text[-characters:]


if __name__ == "__main__":
    main()
