"""The playground in a real browser, before the real server."""

import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.environment import COMMAND, home
from tests.editors.patience import rest, until
from tests.editors.vscode.codeserver import free_port

__all__ = ["Server", "serving"]

SECONDS = 60.0


class Server:
    def __init__(self, port: int, folder: Path) -> None:
        self.port = port
        self.folder = folder

    @property
    def token(self) -> str:
        return (self.folder / "state/mercury-ls/http-token").read_text(encoding="utf-8").strip()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/#token={self.token}"

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as answer:
                return b'"ok"' in answer.read()
        except OSError:
            return False


@contextmanager
def serving(folder: Path, **variables: str) -> Iterator[Server]:
    server = Server(free_port(), folder)
    command = [*COMMAND, "serve", "--http", f"127.0.0.1:{server.port}"]
    with subprocess.Popen(
        command, env=home(folder, **variables), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            until(server.answers, "the server", seconds=SECONDS, pause=lambda: rest(0.1))
            yield server
        finally:
            process.terminate()
            process.communicate()
