"""`mercury-ls model` as people run it: what is printed, what is asked, and how it exits."""

import json
import logging
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from bench.harness.servers import document, free_port, streamed
from bench.harness.servers import serving as serving_answers
from bench.harness.stand_in_hub import SHA, StandIn, serving
from bench.harness.tiny import checkpoint
from mercury_engine import model_folders
from mercury_engine.api import EngineInfo
from mercury_engine.record import ModelRecord, write_record
from mercury_ls.cli import main, model
from mercury_ls.cli.given import LogFormatter
from mercury_ls.cli.serve import print_engine_status
from mercury_ls.completion.judge import Evidence
from mercury_ls.link.wire import Status
from mercury_ls.models import canary, library
from mercury_ls.models import measure as measuring
from mercury_ls.serve import added, daemon
from mercury_ls.session.outcomes import Outcomes
from tests.engine.remote.tls import CERTIFICATES, with_tls
from tests.model_servers import tunnel


@pytest.fixture
def home(home, monkeypatch):
    """Where no server runs, and a random model is not tried in every format."""
    monkeypatch.setattr(model_folders, "added_home", lambda: home / "data/models")
    monkeypatch.setattr(library, "state_file", lambda: home / "state/models.json")
    monkeypatch.setattr(added, "running", list)
    monkeypatch.setattr(daemon, "stop", lambda: False)
    monkeypatch.setattr("mercury_ls.models.choose.switch", lambda name: "")
    monkeypatch.setattr(canary, "SECONDS", 0)
    return home


def check(capsys, command, code, *said):
    """The exit code, and what standard error says; gives what was printed."""
    with pytest.raises(SystemExit) as ended:
        main(["model", *command.split()])
    output, errors = capsys.readouterr()
    assert ended.value.code == code, errors
    assert "Traceback" not in errors
    for text in said:
        assert text in errors
    return output


def test_model_is_added_listed_chosen_and_removed(home, capsys):
    checkpoint(home / "Tiny-Coder")
    printed = check(capsys, "add ./Tiny-Coder --yes --int4", 0)
    assert "added tiny-coder; `mercury-ls model use tiny-coder` chooses it" in printed
    rows = json.loads(check(capsys, "list --json", 0))["models"]
    assert [(row["name"], row["in_use"]) for row in rows] == [("stand-in", True), ("tiny-coder", False)]
    (home / "config/mercury-ls").mkdir(parents=True)
    (home / "config/mercury-ls/config.toml").write_text("[engine]\nmodel = 'tiny-coder' # mine\n")
    assert "* " in next(line for line in check(capsys, "list", 0).splitlines() if "tiny-coder" in line)
    printed = check(capsys, "remove tiny-coder", 0)
    assert "removed tiny-coder, which frees 0 MB" in printed
    assert "it was in use: the model that ships is chosen instead" in printed
    assert (home / "config/mercury-ls/config.toml").read_text() == '[engine]\nmodel = "auto" # mine\n'


def test_removed_model_takes_along_what_was_learned_of_it(home, capsys):
    checkpoint(home / "tiny")
    check(capsys, "add ./tiny --yes --int4", 0)
    outcomes = Outcomes(home / "state/mercury-ls")
    outcomes.settled("tiny", "inline", Evidence(0.5), True, True)
    outcomes.write()
    check(capsys, "remove tiny", 0)
    assert (home / "state/mercury-ls/outcomes.jsonl").read_text() == ""


def test_without_a_terminal_progress_is_a_line_now_and_then(home, capsys):
    checkpoint(home / "tiny")
    with pytest.raises(SystemExit):
        main(["model", "add", "./tiny", "--yes"])
    lines = capsys.readouterr().err.splitlines()
    assert {line.split()[0] for line in lines} == {"converting", "asking"}
    assert len(lines) <= 8


def test_interrupted_download_is_removed(home, capsys):
    (home / "data/models/.tiny.adding").mkdir(parents=True)
    (home / "data/models/.tiny.adding/model.safetensors.part").write_bytes(bytes(2_000_000))
    assert "removed what was downloaded of tiny, which frees 2 MB" in check(capsys, "remove tiny", 0)
    check(capsys, "remove tiny", 1, "is no model that was added")


def test_model_being_added_is_not_removed(home, capsys):
    with library.workplace("tiny", "x") as place:
        check(capsys, "remove tiny", 1, "another process is adding a model")
        assert place.exists()


def test_use_writes_the_settings_file(home, capsys):
    printed = check(capsys, "use fake", 0)
    assert 'engine.model = "fake" in ~/config/mercury-ls/config.toml' in printed
    (home / "mine.toml").touch()
    check(capsys, "use fake --config mine.toml", 0)
    for file in ("config/mercury-ls/config.toml", "mine.toml"):
        assert (home / file).read_text() == '[engine]\nmodel = "fake"\n'


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("", 2, "VERB"),
        ("add nowhere", 1, "mercury-ls model add: 'nowhere' is no source of a model"),
        ("add ./tiny --int8 --int4", 2, "not allowed with"),
        ("add ./tiny --key env:A", 1, "--key: only for servers, and ./tiny is none: leave it out"),
        ("add ./tiny --revision x", 1, "--revision is for models on the hub"),
        ("use ./tiny", 2, "`mercury-ls model add ./tiny` makes a model of it"),
        ("use nothing", 1, "'nothing' is neither an installed model (auto, stand-in) nor the path of a model folder"),
        ("use nothing", 1, "`mercury-ls model add SOURCE` adds one"),
        ("add ./absent.gguf", 1, "./absent.gguf does not exist: give a hub id"),
        ("use fake --set engine.model=stand-in", 1, 'command line sets engine.model = "stand-in", which wins'),
        ("use fake --set engine.address=http://127.0.0.1:1", 1, "engine.address is set"),
        ("remove nothing", 1, "nothing is no model that was added: there are none"),
        ("remove stand-in", 1, "it ships with mercury-ls"),
        ("test ./tiny", 1, "./tiny is a checkpoint as it was published: `mercury-ls model add ./tiny` makes a model"),
        ("add ./tiny --prompt x", 1, "use one of qwen, "),
        ("add ./tiny --prompt x", 1, ", zeta-2.1, "),
        ("add ./tiny --prompt x", 1, ", dream, "),
        ("test nothing", 1, "'nothing' is neither an installed model"),
        ("add https://example.com", 1, "set privacy.allow_network = true"),
    ],
)
def test_mistakes_are_explained(home, capsys, command, code, said):
    checkpoint(home / "tiny")
    check(capsys, command, code, said)


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("YES\n", 0), ("n\n", 3), ("\n", 3), ("", 3)])
def test_model_is_not_added_unless_the_user_agrees(home, capsys, monkeypatch, answer, code):
    class Terminal:
        def isatty(self):
            return True

        def readline(self):
            return answer

    checkpoint(home / "tiny")
    monkeypatch.setattr(model.sys, "stdin", Terminal())
    printed = check(capsys, "add ./tiny", code, "add it? [y/N]")
    assert "licence      not stated" in printed
    assert bool(model_folders.added()) == (code == 0)


def test_without_a_terminal_nobody_agrees(home, capsys):
    checkpoint(home / "tiny")
    check(capsys, "add ./tiny", 1, "run the command again with --yes")
    assert model_folders.added() == {}


@pytest.mark.slow
def test_test_prints_three_suggestions(home, capsys):
    printed = check(capsys, "test", 0)
    for gap in canary.GAPS[: measuring.SAMPLES]:
        assert gap.path in printed
    assert "a suggestion takes" in printed
    (row,) = json.loads(check(capsys, "list --json", 0))["models"]
    assert (row["name"], row["warm_ms"] > 0, row["memory"] > 10**6) == ("stand-in", True, True)


def test_model_that_suggests_nothing_fails_test(home, capsys, monkeypatch):
    """The engine that only copies finds nothing to copy."""
    monkeypatch.setattr(canary, "GAPS", [canary.KnownGap("a.py", "python", "x = ‸\n", ("1",))])
    assert "  nothing\n" in check(capsys, "test fake", 1)


@pytest.mark.slow
def test_added_model_suggests(home, capsys):
    """Through its real engine, though what random weights say is nothing to show."""
    checkpoint(home / "tiny")
    check(capsys, "add ./tiny --yes", 0)
    with pytest.raises(SystemExit) as ended:
        main(["model", "test", "tiny"])
    printed = capsys.readouterr().out
    assert ended.value.code in (0, 1)
    assert "tiny on cpu" in printed
    assert "is known from other models until some answers have been compared" in printed


def test_server_output_does_not_reach_the_terminal_as_commands(home, capsys):
    answer = streamed(
        [{"content": "item\x1b]0;x\x07\x9b31m", "stop": False}, {"content": "", "stop": True}], done=False
    )
    with serving_answers({**LLAMA, "/completion": answer}) as server:
        check(capsys, f"add {server.address} --name llama --yes", 0)
        with pytest.raises(SystemExit):
            main(["model", "test", "llama"])
    said = "".join(capsys.readouterr())
    assert not {"\x1b", "\x07", "\x9b"} & set(said)


def test_recommend_names_commands(home, capsys, monkeypatch):
    monkeypatch.setattr("mercury_ls.models.recommended.bandwidth", lambda threads: 30e9)
    assert "mercury-ls model add Qwen/Qwen2.5-Coder-0.5B" in check(capsys, "recommend", 0)
    found = json.loads(check(capsys, "recommend --json", 0))
    assert found["choices"][0]["fit"] == "smooth"


@pytest.mark.slow
def test_hub_library_variables_are_honoured(home, tmp_path):
    """The command itself, in a process of its own, from a hub at HF_ENDPOINT, with a token and no telemetry."""
    folder = checkpoint(tmp_path / "made")
    hub = StandIn({path.name: path.read_bytes() for path in folder.iterdir()}, "org/Tiny")
    with serving(hub):
        variables = {**os.environ, "HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "hf"), "HF_TOKEN": "hf_secret"}
        command = [sys.executable, "-m", "mercury_ls", "model", "add", "org/Tiny", "--yes"]
        ran = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, "hf_secret" in ran.stdout + ran.stderr) == (0, False), ran.stderr
    assert f"org/Tiny at {SHA[:12]}" in ran.stdout
    assert all(path.startswith(("/api/models/org/Tiny", "/org/Tiny/resolve/")) for path, _ in hub.asked)
    assert hub.tokens == {"Bearer hf_secret"}
    record = json.loads((tmp_path / "data/mercury-ls/models/tiny/model.json").read_bytes())
    assert (record["revision"], record["licence"]) == (SHA, "apache-2.0")


QWEN = "qwen2.5-coder-1.5b-q8_0.gguf"
LLAMA = {
    "/props": document({"default_generation_settings": {"n_ctx": 8192}, "model_path": QWEN, "build_info": "b7919"}),
    "/v1/models": document({"object": "list", "data": [{"id": QWEN}]}),
    "/completion": streamed([{"content": "item.price", "stop": False}, {"content": "", "stop": True}], done=False),
}


def test_server_is_added_and_tested_and_chosen_while_it_answers(home, capsys):
    with serving_answers(LLAMA) as server:
        address = server.address
        printed = check(capsys, f"add {server.address} --name llama --yes", 0)
        assert f"{server.address}, spoken to as llama, model {QWEN}" in printed
        assert "privacy" not in printed
        printed = check(capsys, "test llama", 0)
        assert "item.price" in printed
        assert f"to {server.address}" in printed
        check(capsys, "use llama", 0)
    check(capsys, "use llama", 1, f"{address} does not answer", "start the server")
    (row,) = [row for row in json.loads(check(capsys, "list --json", 0))["models"] if row["name"] == "llama"]
    assert (row["in_use"], row["kind"]) == (True, "server")


def test_missing_server_is_not_added(home, capsys):
    check(capsys, f"add http://127.0.0.1:{free_port()} --yes", 1, "nothing that can complete answers at", "start")
    assert model_folders.added() == {}


def test_server_behind_proxy_is_added_with_headers_and_certificates(home, capsys, monkeypatch):
    """A gateway that speaks as Inception does, far away: nothing reaches it but through the proxy."""
    answers = {
        "/gateway/v1/models": document({"data": [{"id": "mercury-edit-2"}]}),
        "/gateway/v1/fim/completions": document({"choices": [{"text": "item.price", "finish_reason": "stop"}]}),
    }
    pem = {name: str(CERTIFICATES / f"{name}.pem") for name in ("models", "localhost", "key")}
    monkeypatch.setenv("GATEWAY_KEY", "s3cret-k3y")
    with (
        serving_answers(answers, wrap=with_tls("models", wants="localhost")) as server,
        serving_answers({"models.example:443": tunnel(server.port)}) as proxy,
    ):
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "")
        command = (
            "add https://models.example/gateway/v1 --name theirs --protocol inception --yes"
            f" --header api-key:env:GATEWAY_KEY --header X-Team:blue --ca {pem['models']} --cert {pem['localhost']}"
        )
        check(capsys, command, 1, "set privacy.allow_network = true")
        monkeypatch.setenv("MERCURY_PRIVACY_ALLOW_NETWORK", "true")
        assert proxy.asked == []
        check(capsys, command, 1, "localhost.pem cannot be used (not that in PEM)")
        printed = check(capsys, f"{command} --cert-key {pem['key']}", 0)
        assert "header       api-key, from env:GATEWAY_KEY" in printed
        assert "header       X-Team, kept for you alone" in printed
        assert "blue" not in printed
        assert "item.price" in check(capsys, "test theirs", 0)
        assert {(asked.headers["api-key"], asked.headers["x-team"]) for asked in server.asked} == {
            ("s3cret-k3y", "blue")
        }
        assert not any("authorization" in asked.headers for asked in server.asked)
    file = home / "data/models/theirs/model.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_bytes())["headers"] == {"api-key": "env:GATEWAY_KEY", "X-Team": "blue"}
    assert "s3cret" not in file.read_text()
    listed = check(capsys, "list", 0) + check(capsys, "list --json", 0)
    assert "blue" not in listed
    check(capsys, "test theirs", 1, "is not reached: the proxy 127.0.0.1:", "check HTTPS_PROXY")


def test_another_engine_server_of_ours_is_set_as_the_address(home, capsys):
    with serving_answers({"/engine/v2/info": document({"state": "ready"})}) as server:
        check(capsys, f"add {server.address} --yes", 1, f"set engine.address = '{server.address}' instead")


class Gateway(dict):
    """Answers everything with what it was asked."""

    def get(self, path, other=None):
        return lambda line, asked: document({"status": "ok", "data": [{"id": asked.headers}], **asked.headers})(
            line, asked
        )


def test_key_is_not_printed_by_command_whose_server_repeats_it(home, capsys, monkeypatch):
    key = "sk-proj-nothing-of-this-is-printed"
    monkeypatch.setenv("KEY", key)
    with serving_answers(Gateway()) as server:
        written = ModelRecord(
            name="theirs", kind="server", prompt="qwen", protocol="openai", address=server.address, key="env:KEY"
        )
        (home / "data/models/theirs").mkdir(parents=True)
        write_record(written, home / "data/models/theirs")
        for command in ("test theirs", "use theirs", f"add {server.address} --key env:KEY --name other --yes"):
            with pytest.raises(SystemExit):
                main(["model", *command.split()])
            assert key[:16] not in "".join(capsys.readouterr())
        assert server.asked[-1].headers["authorization"] == f"Bearer {key}"


EVIL = "a\x1b[2J\x9b\u202e\n  licence      mit"


def test_model_names_of_a_server_do_nothing_to_a_terminal(home, capsys, monkeypatch):
    found = SimpleNamespace(models=(SimpleNamespace(name=EVIL),), server=EVIL, address="http://127.0.0.1:1")
    monkeypatch.setattr(added, "running", lambda: [found])
    printed = check(capsys, "list", 0)
    assert not {"\x1b", "\x9b", "\u202e"} & {*printed}
    assert "(a\\x1b[2J\\x9b\\u202e\\n  licence      mit)" in printed


def test_model_names_of_a_source_do_nothing_to_a_terminal(home, capsys):
    checkpoint(home / "tiny")
    (home / "tiny/config.json").write_text((home / "tiny/config.json").read_text().replace("Qwen2For", "\\u001b[2J\\n"))
    check(capsys, "add ./tiny --yes", 1, "\\x1b[2J\\n")


def test_log_has_a_line_for_record_whatever_is_in_it():
    record = logging.LogRecord("mercury", logging.ERROR, "", 0, "model %s", (EVIL,), None)
    assert LogFormatter("%(message)s").format(record) == "model a\\x1b[2J\\x9b\\u202e\\n  licence      mit"


def test_status_of_server_does_nothing_to_terminal(capsys):
    print_engine_status(
        Status("ready", EVIL, info=EngineInfo(engine="server", model=EVIL, device="", context_tokens=1))
    )
    assert capsys.readouterr().out.count("a\\x1b[2J\\x9b\\u202e\\n") == 2
