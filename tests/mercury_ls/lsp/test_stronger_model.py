"""A stronger model is offered once, to whom it is of use, and installed after a yes."""

import asyncio
import json
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from bench.harness.stand_in_hub import StandIn, serving
from bench.harness.tiny import checkpoint
from mercury_engine.fake import FakeEngine
from mercury_ls.lsp import stronger_model
from mercury_ls.lsp.app import create_server
from mercury_ls.lsp.stronger_model import INSTALL, NEVER, NOT_NOW, strongest
from mercury_ls.models import recommended
from mercury_ls.models.recommended import Machine, RecommendedModel
from mercury_ls.session.wiring import Wiring
from mercury_ls.wording import MISSING
from tests.mercury_ls.lsp.test_server import INLINE, TEXT, Client, place
from tests.mercury_ls.models import stand_in_machine  # it acts only as a program

ASKING = {**INLINE, "window": {"showMessage": {}, "workDoneProgress": True}}
SMALL = replace(FakeEngine().info(), small=True)
TINY = RecommendedModel("org/Tiny-Coder", 500_000_000, "Apache-2.0", "fim", "tests")
FAST = Machine(16 << 30, 100e9, 2)

SCRIPT = """\
import sys
arguments = sys.argv[3:]
with open(sys.argv[1], "a") as log:
    log.write(" ".join(arguments) + chr(10))
if "recommend" in arguments:
    print(sys.argv[2])
elif "add" in arguments:
    sys.stderr.write({progress!r})
    sys.stderr.flush()
    if {waits!r}:
        import time
        time.sleep(600)
    sys.exit({code})
"""


class UsingClient(Client):
    """A client with a folder for what is remembered."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        wiring = Wiring(
            user_file=folder / "none", environ={}, make_engine=self.make_engine, stats_file=folder / "state/stats.jsonl"
        )
        self.server = create_server(wiring)
        self.server.protocol.attach(lambda body: self.sent.append(json.loads(body)))
        self.model = FakeEngine(info=SMALL)

    async def use(self, capabilities=ASKING, options=None) -> None:
        """Until the first suggestion has been shown and the typing pauses."""
        await self.initialize(capabilities, options)
        uri = self.open("a.py", TEXT)
        assert (await self.request("textDocument/inlineCompletion", place(uri, 2, 8)))["result"]["items"]
        self.server.started.idle.active.clear()
        await self.server.started.idle.chores["offering a stronger model"].run()

    def asked(self, method: str = "window/showMessageRequest") -> list[dict]:
        return [message for message in self.sent if message.get("method") == method]

    async def answered(self, title: str | None) -> None:
        await self.until(self.asked)
        (question,) = self.asked()
        self.send({"id": question["id"], "result": title and {"title": title}})

    async def agrees_to_progress(self) -> None:
        await self.until(lambda: self.asked("window/workDoneProgress/create"))
        (created,) = self.asked("window/workDoneProgress/create")
        self.send({"id": created["id"], "result": None})

    def messages(self) -> list[str]:
        return [message["params"]["message"] for message in self.asked("window/showMessage")]


@pytest.fixture
def new_client(tmp_path, monkeypatch):
    """Makes clients of one user."""
    monkeypatch.setattr(stronger_model, "FEW_SHOWN", 1)
    monkeypatch.setattr("mercury_engine.model_folders.added_home", lambda: tmp_path / "data/models")
    return lambda: UsingClient(tmp_path)


@pytest.fixture
async def client(new_client):
    made = new_client()
    yield made
    await made.server.close()


@pytest.fixture
def scripted(tmp_path, monkeypatch):
    """Stands in for the commands; gives the lines that it was called with."""

    def script(*models: RecommendedModel, progress: str = "", code: int = 0, waits: bool = False):
        log, found = tmp_path / "calls", recommended.choices(FAST, models)
        program = SCRIPT.format(progress=progress, code=code, waits=waits)
        command = (sys.executable, "-c", program, str(log), msgspec.json.encode(found).decode())
        monkeypatch.setattr(stronger_model, "COMMAND", command)
        return lambda: log.read_text().replace(str(tmp_path), "").splitlines() if log.exists() else []

    return script


async def test_question_names_size_and_licence_and_runs_nothing_before_a_yes(client, scripted):
    calls = scripted(TINY)
    await client.use()
    await client.until(client.asked)
    (question,) = [message["params"] for message in client.asked()]
    assert question["message"] == (
        "mercury: this machine can run a stronger model: org/Tiny-Coder "
        "(1,000 MB to download, 806 MB of memory, licence Apache-2.0)"
    )
    assert [action["title"] for action in question["actions"]] == [INSTALL, NOT_NOW, NEVER]
    assert calls() == ["model recommend --json --for completions --config /none"]


@pytest.mark.parametrize(
    ("title", "hint"),
    [(NOT_NOW, ["mercury: `mercury-ls model recommend` names stronger models at any time"]), (NEVER, [])],
)
async def test_refusal_is_remembered_by_every_server(client, new_client, scripted, tmp_path, title, hint):
    calls = scripted(TINY)
    await client.use()
    await client.answered(title)
    await client.until(lambda: (tmp_path / "state/stronger-model").read_text() == f"{title}\n")
    await client.until(lambda: client.messages() == hint)
    other = new_client()
    await other.use()
    await other.server.close()
    assert not other.asked()
    assert len(calls()) == 1


async def test_installation_that_the_editor_interrupts_is_offered_again(client, new_client, scripted):
    calls = scripted(TINY, waits=True)
    await client.use()
    await client.answered(INSTALL)
    await client.agrees_to_progress()
    await client.until(lambda: any("model add" in call for call in calls()))
    await client.server.close()
    other = new_client()
    await other.use()
    await other.until(other.asked)
    await other.server.close()


async def test_refused_progress_does_not_stop_the_installation(client, scripted):
    calls = scripted(TINY)
    await client.use()
    await client.answered(INSTALL)
    await client.until(lambda: client.asked("window/workDoneProgress/create"))
    (created,) = client.asked("window/workDoneProgress/create")
    client.send({"id": created["id"], "error": {"code": -32603, "message": "no"}})
    await client.until(lambda: any("model use" in call for call in calls()))


async def test_two_servers_ask_once(client, new_client, scripted):
    scripted(TINY)
    other = new_client()
    await asyncio.gather(client.use(), other.use())
    await client.until(lambda: client.asked() or other.asked())
    await other.server.close()
    assert len([*client.asked(), *other.asked()]) == 1


async def test_closed_question_means_no(client, scripted, tmp_path):
    calls = scripted(TINY)
    await client.use()
    await client.answered(None)
    await client.until(client.messages)
    assert (tmp_path / "state/stronger-model").read_text() == f"{NOT_NOW}\n"
    assert len(calls()) == 1


async def test_after_a_yes_it_is_installed_and_used_with_progress(client, scripted):
    calls = scripted(TINY, progress="loading weights  25%\nloading weights 100%\n")
    await client.use()
    await client.answered(INSTALL)
    await client.agrees_to_progress()
    await client.until(client.messages)
    assert client.messages() == ["mercury: org/Tiny-Coder suggests from now on; `mercury-ls model use auto` goes back"]
    assert calls()[1:] == [
        "model add --yes --name tiny-coder org/Tiny-Coder --config /none",
        "model use tiny-coder --config /none",
    ]
    values = [message["params"]["value"] for message in client.asked("$/progress")]
    assert [value["kind"] for value in values] == ["begin", "report", "report", "end"]
    assert values[0]["title"] == "mercury: installing org/Tiny-Coder"
    assert values[1]["message"] == "loading weights  25%"


async def test_error_is_reported_with_its_remedy(client, scripted):
    calls = scripted(TINY, progress="loading 25%\nmodel: the disk is full: free 3 MB\n", code=1)
    await client.use()
    await client.answered(INSTALL)
    await client.agrees_to_progress()
    await client.until(client.messages)
    again = "`mercury-ls model add --yes --name tiny-coder org/Tiny-Coder` tries again"
    assert client.messages() == [f"mercury: model: the disk is full: free 3 MB; {again}"]
    assert len(calls()) == 2


@pytest.mark.parametrize(
    ("capabilities", "options", "info"),
    [
        (INLINE, None, SMALL),
        (ASKING, {"mercury": {"engine": {"offerStronger": False}}}, SMALL),
        (ASKING, {"mercury": {"engine": {"model": "fake"}}}, SMALL),
        (ASKING, {"mercury": {"engine": {"address": "http://127.0.0.1:9"}}}, SMALL),
        (ASKING, None, replace(SMALL, small=False)),
    ],
    ids=["cannot be asked", "switched off", "another model", "an engine elsewhere", "a strong one"],
)
async def test_stronger_model_is_not_looked_for_where_it_is_of_no_use(client, scripted, capabilities, options, info):
    calls = scripted(TINY)
    client.model = FakeEngine(info=info)
    await client.use(capabilities, options)
    assert not calls()
    assert not client.asked()


async def test_model_of_ours_that_is_not_installed_is_named_once_and_no_other(client, new_client, scripted):
    calls = scripted(TINY)
    other = new_client()
    for each in (client, other):
        each.model = FakeEngine(info=replace(SMALL, choice=MISSING))
        await each.use()
    await client.until(client.messages)
    await other.server.close()
    assert (client.messages(), other.messages()) == ([f"mercury: {MISSING}"], [])
    assert not calls()
    assert not client.asked()


async def test_question_is_not_asked_at_the_start(client, scripted, monkeypatch):
    monkeypatch.setattr(stronger_model, "FEW_SHOWN", 2)
    calls = scripted(TINY)
    await client.use()
    assert not calls()
    monkeypatch.setattr(stronger_model, "USED_SECONDS", 0.0)
    await client.server.started.idle.chores["offering a stronger model"].run()
    await client.until(client.asked)


async def test_question_is_not_asked_while_typing(client, scripted):
    scripted(TINY)
    await client.initialize(ASKING)
    client.server.started.tally.counts["shown"] = 1
    client.server.started.idle.active.set()
    await client.server.started.idle.chores["offering a stronger model"].run()
    assert not client.asked()
    client.server.started.idle.active.clear()
    await client.server.started.idle.chores["offering a stronger model"].run()
    await client.until(client.asked)


def check(expected: str | None, *known: RecommendedModel, machine: Machine = FAST) -> None:
    choice = strongest(recommended.choices(machine, known))
    assert (choice and choice.known.id) == expected


def test_largest_model_that_keeps_up_with_typing_is_offered():
    larger = replace(TINY, id="org/Larger", parameters=1_500_000_000)
    check("org/Larger", TINY, larger)
    check("org/Tiny-Coder", TINY, replace(larger, parameters=9_000_000_000))
    check(None, TINY, machine=replace(FAST, bandwidth=10e9))


def test_models_needing_a_server_or_another_licence_are_not_offered():
    check(None, replace(TINY, prompt="mellum"), replace(TINY, licence="Qwen Research (non-commercial)"))


def test_fast_enough_machines_are_all_offered_something_free():
    fim = [model for model in recommended.known() if model.job == "completions"]
    choice = strongest(recommended.choices(replace(FAST, bandwidth=1e12), fim))
    assert choice
    assert choice.known.licence == "Apache-2.0"


@pytest.mark.slow
async def test_commands_install_and_choose_the_offered_model(client, tmp_path, monkeypatch):
    for kind in ("DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind.lower()))
    monkeypatch.setattr(stronger_model, "COMMAND", (sys.executable, stand_in_machine.__file__))
    (settings := tmp_path / "none").touch()
    folder = checkpoint(tmp_path / "made")
    with serving(StandIn({path.name: path.read_bytes() for path in folder.iterdir()}, "org/Tiny-Coder")) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        await client.use()
        await client.until(client.asked)
        assert not hub.asked
        await client.answered(INSTALL)
        await client.agrees_to_progress()
        async with asyncio.timeout(120):
            while not client.messages():
                await asyncio.sleep(0.05)
    assert client.messages() == ["mercury: org/Tiny-Coder suggests from now on; `mercury-ls model use auto` goes back"]
    assert settings.read_text() == '[engine]\nmodel = "tiny-coder"\n'
    assert (tmp_path / "data/mercury-ls/models/tiny-coder/model.json").exists()
