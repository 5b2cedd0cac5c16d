"""Beside other language servers, real ones and bad ones: what they alone know counts, and nothing waits for them."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mercury_engine.model_folders import FAKE
from tests.e2e.environment import COMMAND

pytestmark = [pytest.mark.editor, pytest.mark.slow, pytest.mark.any_version]
copying = pytest.mark.parametrize("model", [FAKE], indirect=True)

HERE = Path(__file__).parent
NEWEST = """\
class Basket:
    def weigh(self): ...


def first[T](items: list[T]) -> T:
    return items[0]


first([Basket()])"""
"""What this has for members is known only to who reads the newest Python."""

SERVERS = {"ty": ["ty", "server"], "basedpyright": ["basedpyright-langserver", "--stdio"]}

WRITTEN = "café = [1]; café.extend([])\ncafé"
"""An engine that copies goes on with `.extend([])`."""

NONSENSE = [None, 1, "x", [], {"label": 5}, {"label": "w\nx", "textEdit": 3}, {"label": "real", "kind": "m"}]

READY = """
local client = vim.lsp.get_clients({ bufnr = 0, name = "other" })[1]
local params = { textDocument = vim.lsp.util.make_text_document_params(0), position = { line = 0, character = 7 } }
return client:request_sync("textDocument/hover", params, 20000) ~= nil
"""


class Journal:
    """What our server and its client have said to each other so far."""

    def __init__(self, path: Path):
        self.path = path
        self.command = [sys.executable, str(HERE / "tee.py"), str(path)]

    def said(self) -> list[dict[str, Any]]:
        whole, _, _ = (self.path.read_text(encoding="utf-8") if self.path.exists() else "").rpartition("\n")
        return [json.loads(line)["message"] for line in whole.splitlines()]

    def of(self, method: str) -> list[dict[str, Any]]:
        return [message for message in self.said() if message.get("method") == method]

    def asked(self) -> list[dict[str, Any]]:
        return self.of("mercury/names")

    def answers(self) -> list[dict[str, Any]]:
        ids = [message["id"] for message in self.asked()]
        return [message for message in self.said() if message.get("id") in ids and "method" not in message]

    def known(self, again: Callable[[], object]) -> dict[str, Any] | None:
        """What was said of a place; asked `again` where a busy server was too late."""
        answers = self.answers()
        if answers and len(answers) == len(self.asked()) and not answers[-1].get("result"):
            again()
        return next((answer["result"] for answer in answers if answer.get("result")), None)

    def order(self) -> list[str]:
        """The questions about names, the answers to them, and the suggestions made, as they came."""
        ids = [message["id"] for message in self.asked()]
        names = {"mercury/names": "asked"}
        events = [
            names.get(message.get("method"))
            or ("answered" if message.get("id") in ids else "suggested" if has_items(message) else "")
            for message in self.said()
        ]
        return [event for event in events if event]


def other(folder: Path, **answers: Any) -> list[str]:
    """A server that gives these answers, by the last word of the method."""
    methods = {f"textDocument/{method}": answer for method, answer in answers.items()}
    (folder / "other.json").write_text(json.dumps(methods), encoding="utf-8")
    return [sys.executable, str(HERE / "other_server.py"), str(folder)]


def has_items(message: dict[str, Any]) -> bool:
    result = message.get("result")
    return isinstance(result, dict) and bool(result.get("items"))


@pytest.fixture
def beside(served):
    """Starts our server and another one; gives the editor and the journal of ours."""

    def start(text: str, command: list[str]):
        journal = Journal(served.folder / "ours.jsonl")
        served.start([*journal.command, *COMMAND, "--stdio"], ghost="own")
        config = {"cmd": command, "filetypes": ["python"], "root_markers": [".git"]}
        served.lua("vim.lsp.config('other', ...); vim.lsp.enable('other')", config)
        served.open(text)
        served.ready()
        served.attached("other")
        return served, journal

    return start


def command(name: str) -> list[str]:
    program, *rest = SERVERS[name]
    path = Path(sys.executable).with_name(program)
    if not path.exists():
        pytest.skip(f"{program} is not here; `pip install -e '.[editors]'` brings it")
    return [str(path), *rest]


def write_behind(editor, key: str = ".") -> None:
    editor.keys("G")
    editor.press("A", "i")
    editor.type(key)


def again(editor, key: str = ".") -> None:
    editor.keys("<BS>")
    editor.until(lambda: not editor.text.endswith(key), f"{key} to go")
    editor.type(key)


@copying
@pytest.mark.parametrize("name", SERVERS)
def test_name_that_only_another_server_knows_is_told_once(beside, name):
    editor, journal = beside(NEWEST, command(name))
    editor.until(lambda: editor.lua(READY), f"{name} to answer")
    write_behind(editor)
    known = editor.until(lambda: journal.known(lambda: again(editor)), "an answer")
    assert "weigh" in [item["name"] for item in known["items"]]
    asked = len(journal.asked())
    editor.type("we")
    editor.until(lambda: editor.lua("return _G.settled()"), "an answer")
    assert len(journal.asked()) == asked


@copying
@pytest.mark.parametrize("answer", ["hang", "die", 5, {"items": 5}, NONSENSE, {"items": NONSENSE}])
def test_hanging_dying_or_talking_nonsense_server_is_not_waited_for(beside, served, answer):
    editor, journal = beside(WRITTEN, other(served.folder, completion=answer))
    write_behind(editor)
    editor.shows("extend([])")
    editor.type("ex")
    editor.shows("tend([])")
    editor.until(journal.answers, "the question to be settled")
    order = journal.order()
    if answer in ("hang", "die"):
        assert order.index("suggested") < order.index("answered")
        assert "error" in journal.answers()[0]
    write_behind(editor)
    editor.shows("")


@copying
def test_servers_are_not_asked_if_the_setting_is_off(beside, served):
    served.lua("vim.lsp.config('mercury', { init_options = { context = { analysed_names = false } } })")
    editor, journal = beside(WRITTEN, other(served.folder, completion=[{"label": "append"}]))
    write_behind(editor)
    editor.shows("extend([])")
    assert journal.asked() == []
    assert "textDocument/completion" not in (served.folder / "other.jsonl").read_text(encoding="utf-8")


ASK = Path(__file__).with_name("ask.lua").read_text("utf-8")


def asked(editor, behind: int = 0, **more: Any) -> Any:
    """What the handler of our server's question says, about a place behind an emoji."""
    params = {"position": {"line": 0, "character": 8}, "timeoutMs": 20000, "behind": behind, **more}
    editor.lua(ASK, params)
    return editor.until(lambda: editor.lua("return _G.answer"), "an answer")


@pytest.fixture
def scripted(bare):
    """Starts a server of ours that says nothing, and another one that gives these answers."""

    def start(**answers: Any):
        bare.start([sys.executable, str(HERE / "scripted_server.py"), str(bare.folder)], ghost="own")
        config = {"cmd": other(bare.folder, **answers), "filetypes": ["python"], "root_markers": [".git"]}
        bare.lua("vim.lsp.config('other', ...); vim.lsp.enable('other')", config)
        bare.open("'🦀'; a.b")
        for name in ("mercury", "other"):
            bare.attached(name)
        return bare

    return start


ITEMS = [
    {"label": "plain", "kind": 5, "detail": "int"},
    {"label": "shown()", "filterText": "found", "insertText": "inserted($0)", "insertTextFormat": 2, "kind": 2},
    {"label": "a", "textEdit": {"newText": "edited"}, "insertText": "b", "labelDetails": {"detail": "(x)"}},
    {"label": "for", "kind": 14},
    {"label": "main", "kind": 15},
    {"label": "l" * 200, "kind": 5},
]
NAMES = [
    {"name": "plain", "kind": 5},
    {"name": "inserted($0)", "kind": 2},
    {"name": "edited"},
]


@pytest.mark.parametrize(
    ("result", "items", "is_incomplete"),
    [
        (ITEMS, NAMES, False),
        ({"items": ITEMS, "isIncomplete": True}, NAMES, True),
        ([{"label": "word", "kind": 1}], [], True),
        ([{"label": "far", "additionalTextEdits": [{}]}], [], True),
        ([{"label": f"n{number}"} for number in range(2000)], [{"name": f"n{number}"} for number in range(1024)], True),
        (None, [], False),
    ],
)
def test_inserted_names_are_reported_but_not_texts_keywords_and_snippets(scripted, result, items, is_incomplete):
    editor = scripted(completion=result)
    assert asked(editor) == {"result": {"items": items, "isIncomplete": is_incomplete}}
    sent = [json.loads(line) for line in (editor.folder / "other.jsonl").read_text(encoding="utf-8").splitlines()]
    (question,) = [message["params"] for message in sent if message["method"] == "textDocument/completion"]
    assert question["position"] == {"line": 0, "character": 10}
    assert question["context"]["triggerKind"] == 1


def test_outdated_version_is_answered_with_nothing(scripted):
    editor = scripted(completion=ITEMS)
    assert asked(editor, behind=1) == {"result": None}


@pytest.mark.parametrize("answer", ["hang", "die", 5])
def test_error_is_returned_where_every_server_fails(scripted, answer):
    editor = scripted(completion=answer)
    assert asked(editor, timeoutMs=50)["err"]["code"] == -32800


def test_list_is_incomplete_where_there_is_no_other_server(bare):
    bare.start([sys.executable, str(HERE / "scripted_server.py"), str(bare.folder)], ghost="own")
    bare.open("'🦀'; a.b")
    bare.attached()
    assert asked(bare)["result"]["isIncomplete"]
