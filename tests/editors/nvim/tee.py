"""Stands between an editor and its language server, and writes down what both say and when.

`tee.py JOURNAL COMMAND...` is used in place of COMMAND.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from mercury_ls.lsp.transport import MessageReader

Note = Callable[[str, dict[str, Any]], None]
"""Who said it, and what."""


def main(journal: str, command: list[str]) -> int:
    began = time.perf_counter()
    lock = threading.Lock()
    with open(journal, "w", encoding="utf-8") as file:

        def note(sender: str, message: dict[str, Any]) -> None:
            line = {"ms": round((time.perf_counter() - began) * 1000, 1), "from": sender, "message": message}
            with lock:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                file.flush()

        return between(command, note)


def between(command: list[str], note: Note) -> int:
    """Run a server whose editor is at this process' own ends, and have every message noted."""
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    down = threading.Thread(target=pump, args=(server.stdout, sys.stdout.buffer, "server", note))
    down.start()
    pump(sys.stdin.buffer, server.stdin, "client", note)
    server.stdin.close()
    down.join()
    return server.wait()


def pump(source: BinaryIO, sink: BinaryIO, sender: str, note: Note) -> None:
    frames = MessageReader()
    while data := os.read(source.fileno(), 1 << 16):
        for body in frames.feed(data):
            note(sender, json.loads(body))
        sink.write(data)
        sink.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
