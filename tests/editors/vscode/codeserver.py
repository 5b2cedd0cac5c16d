"""A real VS Code: the workbench of code-server in headless Chromium, with our extension, and a driver inside to ask."""

import json
import shutil
import socket
import subprocess
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tests.e2e.environment import COMMAND
from tests.editors.patience import rest, until
from tests.editors.tools import found, prefix
from tests.editors.vscode.package import PACKAGE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

DRIVER = Path(__file__).with_name("driver")
SECONDS = 180
wait = partial(until, seconds=SECONDS, pause=partial(rest, 0.02))
PATIENCE = 5

SETTINGS = {  # one test must not be what the next one's suggestions are made of, nor a model's doubts what is tested
    "chat.disableAIFeatures": True,
    "editor.fontFamily": "DejaVu Sans Mono",
    "editor.inlineSuggest.showToolbar": "never",
    "editor.wordBasedSuggestions": "off",
    "extensions.autoUpdate": False,
    "files.autoSave": "off",
    "files.hotExit": "off",
    "files.simpleDialog.enable": True,
    "security.workspace.trust.enabled": False,
    "telemetry.telemetryLevel": "off",
    "mercury.context.snippets": 0,
    "mercury.context.workspaceDefinitions": False,
    "mercury.suggest.adapt": False,
    "mercury.suggest.minimumProbability": 0,
    "window.commandCenter": False,
    "workbench.editor.enablePreview": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
}


class CodeServer:
    """The server of one VS Code; every page that is opened on it is a window."""

    def __init__(
        self,
        folder: Path,
        environment: dict[str, str],
        *,
        command: Sequence[str] = COMMAND,
        package: bool = True,
        more: Sequence[Path] = (),
        options: Mapping[str, Any] = MappingProxyType({}),
        machine: Mapping[str, Any] = MappingProxyType({}),
        **settings: Any,
    ):
        self.folder = folder
        self.socket = folder / "s"
        self.extensions = folder / "extensions"
        for extension in (DRIVER, *more):
            install(extension, self.extensions)
        if package:
            unpack(PACKAGE, self.extensions)
        write(folder / "data/User/settings.json", {**SETTINGS, **settings})
        write(
            folder / "data/Machine/settings.json",
            {**machine, **({"mercury-ls.server.command": command} if command else {})},
        )
        self.runtime = TemporaryDirectory(prefix="vscode-")
        self.process, self.port = self.started(options, environment)

    def started(self, more: Mapping[str, Any], environment: dict[str, str]) -> tuple[subprocess.Popen, int]:
        port = free_port()
        options = {
            "host": "127.0.0.1",
            "port": port,
            "user-data-dir": self.folder / "data",
            "server-data-dir": self.folder / "server",
            "extensions-dir": self.extensions,
            "telemetry-level": "off",
            **more,
        }
        command = [str(found("code-server")), "--without-connection-token", "--accept-server-license-terms"]
        command += [f"--{name}={value}" for name, value in options.items()]
        sockets = {"TMPDIR": self.runtime.name, "XDG_RUNTIME_DIR": self.runtime.name}
        variables = {**environment, **sockets, "MERCURY_TEST_SOCKET": str(self.socket)}
        with (self.folder / "log").open("wb") as log:
            process = subprocess.Popen(command, env=variables, stdout=log, stderr=subprocess.STDOUT)
        wait(lambda: listens(port), f"code-server to listen on {port}; see {self.folder / 'log'}")
        return process, port

    def window(
        self, browser: "Browser", folder: Path, prepare: Callable[["Page"], None] = lambda _: None, **context: Any
    ) -> "Window":
        self.socket.unlink(missing_ok=True)
        page = browser.new_context(viewport={"width": 1100, "height": 640}, **context).new_page()
        page.set_default_timeout(SECONDS * 1000)
        prepare(page)
        page.goto(f"http://127.0.0.1:{self.port}/?folder={folder}")
        driver = wait(lambda: connected(self.socket), "the window's extensions to start")
        return Window(page, driver, folder)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.runtime.cleanup()


def write(path: Path, settings: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(settings, indent=2), encoding="utf-8")


def install(extension: Path, folder: Path) -> None:
    """An unpacked extension is picked up as it is."""
    shutil.copytree(extension, folder / extension.name, dirs_exist_ok=True)


def unpack(package: Path, folder: Path) -> None:
    """Exactly what the package holds."""
    target = folder / "mercury-ls.mercury-ls"
    with zipfile.ZipFile(package) as archive:
        for name in archive.namelist():
            if name.startswith("extension/"):
                path = target / name.removeprefix("extension/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(name))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def connected(path: Path) -> socket.socket | None:
    """A socket is there before anybody listens at it."""
    found = socket.socket(socket.AF_UNIX)
    if found.connect_ex(str(path)) == 0:
        return found
    found.close()
    return None


class Window:
    """One window: keys go through the browser, the screen is read from its page, the rest from the driver."""

    def __init__(self, page: "Page", driver: socket.socket, folder: Path):
        self.page = page
        self.folder = folder
        self._socket = driver
        self._socket.settimeout(SECONDS)
        self._opened = 0
        self._lines = self._socket.makefile("rw", encoding="utf-8")

    def js(self, body: str, given: Any = None) -> Any:
        """Runs in the extension host, with `vscode` and `given`."""
        self._lines.write(json.dumps({"body": body, "given": given}) + "\n")
        self._lines.flush()
        answer = json.loads(self._lines.readline())
        if "error" in answer:
            raise AssertionError(f"{body}\n{answer['error']}")
        return answer["value"]

    def until(self, holds: Callable[[], Any], what: str) -> Any:
        return wait(holds, what, self.told)

    def told(self) -> str:
        """What a person would look at when nothing comes."""
        self.page.screenshot(path=self.folder / "window.png")
        return f"{self.text}\nghost {self.ghost!r}\nmarks {self.marks}\nstatus {self.status}"

    # Doing

    def open(self, text: str, name: str = "", cursor: str = "") -> Path:
        """A file with this text, of a name that no other had, alone in the window; the cursor is behind the first
        `cursor`, or at the end."""
        self.js("await vscode.workspace.saveAll(false)")
        self.js(CLOSE)
        self._opened += 1
        path = self.folder / (name or f"shop{self._opened}.py")
        path.write_text(text, encoding="utf-8")
        self.show(path, text.index(cursor) + len(cursor) if cursor else len(text))
        return path

    def show(self, path: Path, offset: int = 0) -> None:
        code = """
            const document = await vscode.workspace.openTextDocument(given.path);
            const place = document.positionAt(given.offset);
            await vscode.window.showTextDocument(document, { selection: new vscode.Range(place, place) });
        """
        self.js(code, {"path": str(path), "offset": offset})
        self.until(lambda: self.page.locator(".editor-instance .monaco-editor.focused").count(), "the focus")

    def type(self, text: str) -> None:
        """Types, one key at a time, and waits for each to arrive."""
        for character in text:
            before = self.text
            self.page.keyboard.press("Enter" if character == "\n" else "Space" if character == " " else character)
            self.until(lambda before=before: self.text != before, f"{character!r} to arrive")

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    def answer(self, button: str) -> None:
        """To what the editor asks; a question that has waited for long is in the list of all."""
        self.run("notifications.showList")
        self.page.get_by_role("button", name=button).click()

    def run(self, command: str, *arguments: Any) -> Any:
        code = "return await vscode.commands.executeCommand(given.command, ...given.arguments)"
        return self.js(code, {"command": command, "arguments": arguments})

    def set(self, name: str, value: Any) -> None:
        code = "await vscode.workspace.getConfiguration().update(given.name, given.value ?? undefined, true)"
        self.js(code, {"name": name, "value": value})

    # Seeing

    @property
    def text(self) -> str:
        return self.js("return vscode.window.activeTextEditor?.document.getText() ?? ''")

    @property
    def name(self) -> str:
        return Path(self.js("return vscode.window.activeTextEditor?.document.uri.path ?? ''")).name

    @property
    def cursor(self) -> tuple[int, int]:
        code = "const at = vscode.window.activeTextEditor.selection.active; return [at.line, at.character]"
        return tuple(self.js(code))

    @property
    def ghost(self) -> str:
        """All ghost text on the screen, wherever the editor has put its pieces, line by line."""
        return clean(self.page.evaluate(GHOST))

    @property
    def status(self) -> str:
        item = self.page.locator(".statusbar-item[id='mercury-ls.mercury-ls.mercury-ls']")
        return item.get_attribute("aria-label") or "" if item.count() else ""

    @property
    def marks(self) -> list[str]:
        """What stands behind or between the code without being in it."""
        return [clean(content.strip('"')) for content in self.page.evaluate(MARKS)]

    @property
    def messages(self) -> list[str]:
        return self.page.locator(".notification-list-item-message").all_text_contents()

    @property
    def menu(self) -> "Locator":
        return self.page.locator(".suggest-widget.visible")

    def ready(self) -> None:
        self.until(lambda: "Ready" in self.status, "the engine")

    def first_ghost(self, last: str, part: str = "") -> str:
        """Ghost text with this part behind the last key. An editor that has just been opened wakes up in its own time
        and does not ask for the keys that came before: such a key is pressed once more."""
        again = time.monotonic() + PATIENCE

        def look() -> str:
            nonlocal again
            ghost = self.ghost
            if not ghost and time.monotonic() > again:
                self.press("Backspace")
                self.press(last)
                again = time.monotonic() + PATIENCE
            return ghost if part in ghost else ""

        return self.until(look, "ghost text")

    def first(self, last: str, holds: Callable[[], Any], what: str) -> Any:
        """What holds behind the last key, which is pressed once more as long as nothing does, as for `first_ghost`."""
        again = time.monotonic() + PATIENCE

        def look() -> Any:
            nonlocal again
            found = holds()
            if not found and time.monotonic() > again:
                self.press("Backspace")
                self.press(last)
                again = time.monotonic() + PATIENCE
            return found

        return self.until(look, what)

    def shows(self, ghost: str) -> None:
        self.until(lambda: self.ghost == ghost, f"ghost text {ghost!r}")

    def has(self, text: str) -> None:
        self.until(lambda: self.text == text, f"the text {text!r}")

    def close(self) -> None:
        self._socket.close()
        self.page.context.close()


CLOSE = """
for (let left = 99; left && vscode.window.tabGroups.all.some((group) => group.tabs.length); left--) {
  await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
}
"""
"""Nobody is asked whether to save what has arrived since everything was saved."""

GHOST = Path(__file__).with_name("ghost.js").read_text("utf-8").removesuffix("\n")

MARKS = Path(__file__).with_name("marks.js").read_text("utf-8").removesuffix("\n")


def clean(text: str) -> str:
    return text.replace("\xa0", " ").replace("\u200c", "")


def brought() -> str:
    """What is missing for these tests; empty where nothing is."""
    missing = [name for name in ("node", "code-server", "chromium") if found(name) is None]
    missing += [] if find_spec("playwright") else ["playwright"]
    return f"{', '.join(missing)} not in {prefix()}; `python -m tests.editors.tools` brings them" if missing else ""
