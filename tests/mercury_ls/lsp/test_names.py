"""What the editor's other language servers know: asked once for a place, made names of, and never waited for."""

import re
from pathlib import Path
from typing import Any

import pytest

from mercury_engine.fake import FakeEngine
from mercury_ls.lsp.names import MOST_ITEMS, known
from mercury_ls.lsp.protocol import NamedItem, NamesAnswer
from mercury_ls.names.known import NameList
from tests.mercury_ls.lsp.test_server import INLINE, Client, place

METHOD, FIELD, KEYWORD, TEXT, SNIPPET = 2, 5, 14, 1, 15
ANSWER = "join(parts)"
ABLE = {**INLINE, "experimental": {"mercury": {"names": True}}}


def check(item: NamedItem, *expected: str) -> None:
    assert known(NamesAnswer((item,))).names == expected


INSERTED = re.findall("(.*) →(?: (.*))?", Path(__file__).with_name("inserted.txt").read_text("utf-8"))


@pytest.mark.parametrize(("inserted", "name"), [*INSERTED, ("", "")])
def test_entry_is_the_name_that_it_inserts(inserted, name):
    check(NamedItem(inserted, METHOD), *filter(None, [name]))


def test_beginning_of_a_very_long_list_is_read():
    answer = NamesAnswer(tuple(NamedItem(f"name{number}", METHOD) for number in range(MOST_ITEMS + 1)))
    names = known(answer)
    assert (len(names.names), names.complete) == (MOST_ITEMS, False)


@pytest.mark.parametrize("kind", [TEXT, KEYWORD, SNIPPET, 17, 99, -1])
def test_texts_keywords_snippets_and_files_are_no_names(kind):
    check(NamedItem("word", kind))


def test_argument_of_a_call_is_no_member():
    check(NamedItem("timeout=", 6))


def test_name_counts_once_and_truncated_list_is_incomplete():
    answer = NamesAnswer((NamedItem("run", METHOD), NamedItem("run", FIELD)), is_incomplete=True)
    assert known(answer) == NameList(("run",), complete=False)


class Listening(FakeEngine):
    """A fake engine that keeps what it was told of names where the user is, not where its answer leads."""

    def fill(self, gap):
        if ANSWER not in gap.before + gap.after:
            self.members = gap.members
        return super().fill(gap)


@pytest.fixture
async def client(tmp_path, monkeypatch):
    """Nobody but the editor knows any names."""
    monkeypatch.setattr("mercury_ls.session.wiring.jedi_is_installed", lambda: False)
    made = Client(tmp_path)
    made.model = Listening({".": ANSWER})
    yield made
    await made.server.close()


def asked(client: Client) -> list[dict[str, Any]]:
    return [message for message in client.sent if message.get("method") == "mercury/names"]


async def opened(client: Client, capabilities: Any = ABLE, options: Any = None) -> str:
    await client.initialize(capabilities, options)
    return client.open("a.py", "x = path.")


async def invoke(client: Client, uri: str, column: int) -> None:
    await client.request("textDocument/inlineCompletion", {**place(uri, 0, column), "context": {"triggerKind": 1}})


async def answered(client: Client, **reply: Any) -> None:
    """The client's reply to the only question, when it has been dealt with."""
    (question,) = asked(client)
    client.send({"id": question["id"], **reply})
    await client.server.started.questions.names.settled()


def told(client: Client) -> list[str]:
    """The names at the cursor that the engine has heard of."""
    return [name for members in client.model.members if members.receiver == "" for name in members.names]


JOIN = {"result": {"items": [{"name": "join(…)", "kind": METHOD}, {"name": "stem", "kind": FIELD}]}}


async def test_place_is_asked_about_during_request_and_serves_the_next_key(client):
    uri = await opened(client)
    await invoke(client, uri, 9)
    (question,) = asked(client)
    assert question["params"] == {
        "textDocument": {"uri": uri, "version": 1},
        "position": {"line": 0, "character": 9},
        "timeoutMs": 2000,
    }
    assert told(client) == []
    await answered(client, **JOIN)
    client.change(uri, 2, {"text": "x = path.s"})
    await invoke(client, uri, 10)
    assert told(client) == ["stem"]
    assert len(asked(client)) == 1


async def test_positions_are_counted_as_the_client_counts(client):
    await client.initialize(ABLE)
    uri = client.open("a.py", "'🦀'; path.")
    await invoke(client, uri, 11)
    (question,) = asked(client)
    assert question["params"]["position"] == {"line": 0, "character": 11}


@pytest.mark.parametrize(
    ("capabilities", "options"),
    [
        (INLINE, None),
        ({**INLINE, "experimental": {"mercury": {}}}, None),
        ({**INLINE, "experimental": {"mercury": {"names": "yes"}}}, None),
        ({**INLINE, "experimental": {"mercury": 1}}, None),
        (ABLE, {"mercury": {"context": {"analysedNames": False}}}),
    ],
)
async def test_names_are_not_asked_without_capability_or_if_switched_off(client, capabilities, options):
    uri = await opened(client, capabilities, options)
    await invoke(client, uri, 9)
    assert asked(client) == []


async def test_hidden_file_is_not_asked_about(client):
    await client.initialize(ABLE)
    await invoke(client, client.open(".env", "x = path."), 9)
    assert asked(client) == []


@pytest.mark.parametrize(
    "reply",
    [
        {"result": 5},
        {"result": {"items": [{"kind": 2}]}},
        {"result": {"items": "join"}},
        {"error": {"code": -32601, "message": "no such method"}},
        {"error": "nope"},
    ],
)
async def test_nonsense_is_no_knowledge_and_the_editor_is_left_alone_for_a_while(client, reply):
    uri = await opened(client)
    await invoke(client, uri, 9)
    await answered(client, **reply)
    client.change(uri, 2, {"text": "y = other."})
    await invoke(client, uri, 10)
    assert told(client) == []
    assert len(asked(client)) == 1


async def test_answer_about_outdated_version_is_asked_for_again(client):
    uri = await opened(client)
    await invoke(client, uri, 9)
    await answered(client, result=None)
    client.change(uri, 2, {"text": "x = path.s"})
    await invoke(client, uri, 10)
    await client.until(lambda: len(asked(client)) == 2)
    again = asked(client)[-1]
    assert again["params"]["textDocument"]["version"] == 2
    assert again["params"]["position"]["character"] == 9


async def test_unanswered_question_delays_nothing_and_is_cancelled(client, caplog):
    uri = await opened(client)
    await invoke(client, uri, 9)
    (question,) = asked(client)
    await client.server.started.questions.names.close()
    assert client.sent[-1] == {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": question["id"]}}
    client.send({"id": question["id"], **JOIN})
    assert (await client.request("mercury/status", {}))["result"]["version"]
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []
