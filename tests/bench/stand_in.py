"""A language server of known delays, for tests of whoever measures one: notes by its own clock when it read and wrote.

It is told the milliseconds of each answer in turn, a negative one for never, and says `text` at the cursor every time;
of `a…ab` first the beginning, and that it has grown.
"""

import asyncio
import json
import sys
import time


def main(journal: str, delays: list[float], text: str) -> None:
    with open(journal, "w", encoding="utf-8") as notes:
        asyncio.run(serve(notes, delays, text))


async def serve(notes, delays: list[float], text: str) -> None:
    reader = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    running: dict[int, asyncio.Task] = {}
    asked = 0
    while (message := await received(reader)) is not None:
        method, read, params = message["method"], time.perf_counter(), message.get("params")
        if method == "$/cancelRequest":
            running[params["id"]].cancel()
            send({"id": params["id"], "error": {"code": -32800, "message": "cancelled"}})
        elif method == "textDocument/inlineCompletion":
            said, *more = text.split("…")[asked:] or [text]
            name = "grown" if "…" in text else str(message["id"])
            answer = late(message, read, delays[asked % len(delays)], said, notes, name, grows=bool(more))
            running[message["id"]] = asyncio.create_task(answer)
            asked += 1
        elif method == "exit":
            return
        elif "id" in message:
            send({"id": message["id"], "result": {"capabilities": {}} if method == "initialize" else None})
        else:
            note(notes, method=method, params=params)


async def received(reader: asyncio.StreamReader):
    length = 0
    while line := (await reader.readline()).strip():
        length = int(line.partition(b":")[2])
    return json.loads(await reader.readexactly(length)) if length else None


async def late(message, read: float, milliseconds: float, text: str, notes, name: str, *, grows: bool) -> None:
    await asyncio.sleep(milliseconds / 1000 if milliseconds >= 0 else 3600)
    here = message["params"]["position"]
    command = {"title": "", "command": "accept", "arguments": [name]}
    draft = {"kind": "draft", "step": 1, "tokens": 2, "text": text, "silence": "", "source": "model", "final": True}
    send({"method": "$/progress", "params": {"token": message["params"]["partialResultToken"], "value": draft}})
    item = {"insertText": text, "range": {"start": here, "end": here}, "command": command}
    wrote = time.perf_counter()
    answer = {"id": message["id"], "result": {"items": [item]}}
    grown = {"method": "mercury/didGrow", "params": {"uri": message["params"]["textDocument"]["uri"]}}
    send(answer, grown) if grows else send(answer)
    note(notes, method=message["method"], params=message["params"], ms=(wrote - read) * 1000)


def send(*messages) -> None:
    """Send them so that they arrive together."""
    bodies = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages]
    sys.stdout.buffer.write(b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(body), body) for body in bodies))
    sys.stdout.buffer.flush()


def note(notes, **fields) -> None:
    notes.write(json.dumps(fields) + "\n")
    notes.flush()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3])
