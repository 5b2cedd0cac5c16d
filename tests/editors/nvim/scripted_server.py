"""A language server that says only what a test has written down: one next edit, one inline completion.

`scripted_server.py FOLDER` answers `mercury/nextEdit` once with `FOLDER/answer.json`, made to fit the document's
version, as soon as there is no `FOLDER/hold`, and `textDocument/inlineCompletion` with `FOLDER/inline.json`, or with
the first of the list in `FOLDER/growing.json`, whose next one it announces by `mercury/didGrow`. An edit of a file that
is not open has no version. With the next message it tells the status in `FOLDER/status.json`, once. Other requests are
answered by `FOLDER/replies.json`, which has results by method. Every message that it gets goes into
`FOLDER/journal.jsonl`.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

CAPABILITIES = {
    "textDocumentSync": {"openClose": True, "change": 2},
    "inlineCompletionProvider": True,
    "executeCommandProvider": {"commands": ["mercury.didAccept"]},
}


def main(folder: Path) -> None:
    versions: dict[str, int] = {}
    with (folder / "journal.jsonl").open("a", encoding="utf-8") as journal:
        while message := read():
            journal.write(json.dumps(message) + "\n")
            journal.flush()
            document = message.get("params", {}).get("textDocument", {}) if message.get("params") else {}
            if message["method"] in ("textDocument/didOpen", "textDocument/didChange"):
                versions[document["uri"]] = document["version"]
            if message["method"] == "exit":
                return
            if "id" in message:
                send({"id": message["id"], "result": answer(folder, message, versions)})
            if message["method"] == "textDocument/inlineCompletion" and grow(folder):
                send({"method": "mercury/didGrow", "params": {"uri": document["uri"]}})
            if (status := folder / "status.json").exists():
                send({"method": "mercury/didChangeStatus", "params": json.loads(status.read_text(encoding="utf-8"))})
                status.unlink()


def answer(folder: Path, message: dict[str, Any], versions: dict[str, int]) -> Any:
    if message["method"] == "initialize":
        return {"capabilities": CAPABILITIES}
    if message["method"] == "mercury/nextEdit" and (folder / "answer.json").exists():
        return next_edit(folder, versions)
    if message["method"] == "textDocument/inlineCompletion" and (folder / "growing.json").exists():
        return json.loads((folder / "growing.json").read_text(encoding="utf-8"))[0]
    if message["method"] == "textDocument/inlineCompletion" and (folder / "inline.json").exists():
        return json.loads((folder / "inline.json").read_text(encoding="utf-8"))
    replies = folder / "replies.json"
    return json.loads(replies.read_text(encoding="utf-8")).get(message["method"]) if replies.exists() else None


def grow(folder: Path) -> bool:
    """Whether there is more than what was just answered, which is answered from now on."""
    script = folder / "growing.json"
    _, *longer = json.loads(script.read_text(encoding="utf-8")) if script.exists() else [None]
    if longer:
        script.write_text(json.dumps(longer), encoding="utf-8")
    return bool(longer)


def next_edit(folder: Path, versions: dict[str, int]) -> dict[str, Any]:
    script = folder / "answer.json"
    given = json.loads(script.read_text(encoding="utf-8"))
    script.unlink()
    while (folder / "hold").exists():
        time.sleep(0.005)
    for edit in given["edits"]:
        uri = (folder / edit.pop("file")).as_uri()
        version = versions[uri] + edit.pop("ahead", 0) if uri in versions else None
        edit["textDocument"] = {"uri": uri, "version": version}
    command = {"title": "", "command": "mercury.didAccept", "arguments": [given["id"]]}
    return {"label": "rename", "command": command, **given}


def read() -> dict[str, Any] | None:
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        length = int(line.split(b":")[1]) if line.lower().startswith(b"content-length") else length
    return json.loads(sys.stdin.buffer.read(length)) if length else None


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
