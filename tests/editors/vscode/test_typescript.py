"""Beside TypeScript's own server, in an editor that has it: what it alone knows counts, and renames are left to it."""

from contextlib import closing

import pytest

from mercury_engine.model_folders import FAKE
from tests.e2e.environment import COMMAND
from tests.editors.nvim.test_names import Journal
from tests.editors.tools import found
from tests.editors.vscode.codeserver import CodeServer

pytestmark = [pytest.mark.editor, pytest.mark.slow, pytest.mark.parametrize("model", [FAKE], indirect=True)]

TEXT = """\
class Basket {
  weigh() { return 1; }
}
function first<T>(items: T[]): T {
  return items[0];
}
first([new Basket()])"""

SHAPES = """\
function area(width: number, height: number) {
  return width * height;
}

function volume(width: number, height: number, depth: number) {
  return area(width, height) * depth;
}
console.log(area(1, 2));
"""

KNOWS = """
    const uri = vscode.window.activeTextEditor.document.uri;
    const symbols = await vscode.commands.executeCommand('vscode.executeDocumentSymbolProvider', uri);
    return symbols?.length ?? 0;
"""


@pytest.fixture(scope="module")
def journal(tmp_path_factory) -> Journal:
    return Journal(tmp_path_factory.mktemp("journal") / "ours.jsonl")


@pytest.fixture(scope="module")
def window(package, browser, environment, journal, tmp_path_factory):
    tsc = found("typescript")
    if tsc is None:
        pytest.skip("TypeScript is not here; `python -m tests.editors.tools` brings it")
    folder = tmp_path_factory.mktemp("vs")
    (folder / "project/.git").mkdir(parents=True)
    settings = {
        "editor.suggestOnTriggerCharacters": False,
        "js/ts.tsdk.path": str(tsc.with_name("node_modules") / "typescript/lib"),
        "mercury.suggest.minimumProbability": 0,
    }
    with (
        closing(CodeServer(folder / "vs", environment, command=[*journal.command, *COMMAND], **settings)) as server,
        closing(server.window(browser, folder / "project")) as window,
    ):
        window.ready()
        yield window


def opened(window, text: str, name: str, cursor: str = "") -> None:
    window.open(text, name, cursor)
    window.until(lambda: window.js(KNOWS), "TypeScript's server")


def again(window) -> None:
    window.press("Backspace")
    window.until(lambda: not window.text.endswith("."), "the dot to go")
    window.type(".")


def test_typescripts_own_name_is_suggested_without_a_menu(window, journal):
    opened(window, TEXT, "basket.ts")
    window.type(".")
    known = window.first(".", lambda: journal.known(lambda: again(window)), "an answer")
    assert known["items"] == [{"name": ".weigh", "kind": 2}]
    assert not window.menu.count()
    window.run("mercury-ls.suggest")
    window.shows("weigh")
    asked = len(journal.asked())
    window.type("we")
    window.shows("igh")
    assert len(journal.asked()) == asked


def test_typescript_is_known_to_rename(window, journal):
    """As soon as it has answered, which a busy one may do after the first edit."""
    opened(window, SHAPES, "shapes.ts", cursor="function area")
    window.run("deleteWordLeft")

    def renamer() -> str:
        before = len(journal.of("mercury/nextEdit"))
        window.type("s")
        asked = window.until(lambda: journal.of("mercury/nextEdit")[before:], "the question")
        return asked[-1]["params"]["context"]["renameProvider"]

    assert window.until(renamer, "TypeScript to be known") == "another extension"


def test_hanging_extension_delays_nothing(window, journal):
    provider = "{ provideCompletionItems: () => new Promise(() => undefined) }"
    window.js(f"globalThis.hanging = vscode.languages.registerCompletionItemProvider('lua', {provider})")
    window.open("x = box.lid()\nbox", "box.lua")
    before = len(journal.answers())
    window.type(".")
    window.first_ghost(".", "lid()")
    (answer,) = window.until(lambda: journal.answers()[before:], "the question to be given up")
    assert "error" in answer
    assert journal.order()[-2:] == ["suggested", "answered"]
    window.js("globalThis.hanging.dispose()")


def test_extensions_that_would_ask_us_are_not_asked(window, journal):
    window.set("mercury.suggest.completionFallback", "on")
    window.run("mercury-ls.restart")
    window.ready()
    before = len(journal.answers())
    opened(window, TEXT, "menu.ts")
    window.type(".")
    (answer,) = window.first(".", lambda: journal.answers()[before:], "an answer")
    assert answer["result"]["items"] == []
    window.set("mercury.suggest.completionFallback", None)
