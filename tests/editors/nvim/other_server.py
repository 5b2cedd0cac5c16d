"""A language server beside ours, good or bad: `other_server.py FOLDER` answers with `FOLDER/other.json`, by method.

It offers completion, counts in UTF-8, and writes what it is asked into `FOLDER/other.jsonl`. Where
the answer is "hang" it never answers anything again, and where it is "die" it ends.
"""

import json
import sys
from pathlib import Path

from tests.editors.nvim.scripted_server import read, send

CAPABILITIES = {
    "positionEncoding": "utf-8",
    "textDocumentSync": {"openClose": True, "change": 2},
    "completionProvider": {"triggerCharacters": ["."]},
}


def main(folder: Path) -> None:
    answers = {"initialize": {"capabilities": CAPABILITIES}, **json.loads((folder / "other.json").read_bytes())}
    with (folder / "other.jsonl").open("a", encoding="utf-8") as journal:
        while message := read():
            journal.write(json.dumps(message) + "\n")
            journal.flush()
            answer = answers.get(message["method"])
            if "id" in message and answer == "hang":
                answers = {}
                while read():
                    pass
            if answer == "die":
                return
            if "id" in message:
                send({"id": message["id"], "result": answer})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
