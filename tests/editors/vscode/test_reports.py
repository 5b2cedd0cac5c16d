"""What the server hears of a suggestion: taken, taken in part, refused. It offers what the test has written down."""

import json

import pytest

pytestmark = [pytest.mark.editor, pytest.mark.slow]

TEXT = "total = 0\ncount = 0\nto"
COMMAND = {"title": "", "command": "mercury.didAccept", "arguments": ["one"]}


@pytest.fixture
def window(told):
    place = {"line": 2, "character": 3}
    item = {"insertText": "al = total + 1", "range": {"start": place, "end": place}, "command": COMMAND}
    path = told.folder / "inline.json"
    path.write_text(json.dumps({"items": [item]}), encoding="utf-8")
    told.open(TEXT)
    told.past = len(journal(told))
    told.type("t")
    assert told.first_ghost("t") == item["insertText"]
    yield told
    path.unlink()


def journal(window) -> list[dict]:
    path = window.folder / "journal.jsonl"
    window.until(path.exists, "the server to start")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def heard(window, method: str) -> dict:
    def found():
        return [m["params"] for m in journal(window)[window.past :] if m["method"] == method]

    return window.until(found, method)[-1]


def test_taken_whole(window):
    window.press("Tab")
    window.has(TEXT + "tal = total + 1")
    assert heard(window, "workspace/executeCommand") == {"command": "mercury.didAccept", "arguments": ["one"]}


def test_taken_in_part_with_how_much_of_it(window):
    window.press("Control+ArrowRight")
    told = heard(window, "textDocument/didPartiallyAcceptCompletion")
    assert told["item"]["command"]["arguments"] == ["one"]
    assert "al = total + 1"[: told["acceptedLength"]] == window.text.removeprefix(TEXT + "t") != ""


def test_refused(window):
    window.press("Escape")
    assert heard(window, "mercury/didReject") == {"id": "one"}
    assert window.text == TEXT + "t"
