import asyncio
import os
import re
import socket
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mercury_engine import model_folders
from mercury_engine.api import EngineInfo
from mercury_engine.fake import FakeEngine
from mercury_engine.record import ModelRecord, write_record
from mercury_ls import doctor, wording
from mercury_ls.doctor import Finding
from mercury_ls.link.claim import LOCK, claimed, lock
from mercury_ls.link.wire import Status
from mercury_ls.project.unended import FOLDER, HANGING_SECONDS, Unended
from mercury_ls.serve import daemon
from mercury_ls.settings.load import PROJECT_FILE, Loaded, load
from mercury_ls.settings.schema import EngineSettings, Settings


@pytest.fixture
def directory(directory, monkeypatch):
    monkeypatch.setenv("MERCURY_LS_RUNTIME_DIR", str(directory))
    return directory


@pytest.fixture
def folder(tmp_path):
    """An installed model, to be damaged."""
    (whole,) = list(model_folders.installed().values())[:1]
    for path in whole.iterdir():
        (tmp_path / path.name).symlink_to(path)
    return tmp_path


def check(findings, part, found, remedy=""):
    (finding,) = (finding for finding in findings if finding.part == part)
    assert found in finding.found
    assert remedy in finding.remedy
    assert bool(remedy) == bool(finding.remedy)
    assert not remedy or is_explained(finding)


def is_explained(finding: Finding) -> bool:
    """By one of the problems that docs/TROUBLESHOOTING.md is made of."""
    patterns = [".*".join(map(re.escape, re.split(r"{\w+}", problem.found))) for problem in doctor.PROBLEMS]
    return any(
        problem.part == finding.part and re.fullmatch(pattern, finding.found, re.DOTALL)
        for problem, pattern in zip(doctor.PROBLEMS, patterns, strict=True)
    )


def test_setting_that_is_not_applied_is_named_with_its_value_if_it_is_told(tmp_path):
    for text, found in {
        "suggest.enabled = 1": "suggest.enabled = 1 from project file {file}",
        "suggest.min_probability = 1": "line 1 from project file {file}",
        "= 1": "{file}:1 from project file",
    }.items():
        file = tmp_path / PROJECT_FILE
        file.write_text(text, encoding="utf-8")
        _, finding = doctor.settings_files(load(project_files=[file]), tmp_path / "config.toml")
        assert finding.found == found.format(file=file)
        assert is_explained(finding)


def model(folder):
    return doctor.model(Loaded(Settings(engine=EngineSettings(model=str(folder)))))


def cut(path):
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[: len(content) // 2])


def test_whole_model_is_well(folder):
    check(model(folder), "model", str(folder))


def test_empty_folder_is_no_model(tmp_path):
    check(model(tmp_path), "model", str(tmp_path), "cannot read the model's config")


@pytest.mark.parametrize("sealed", [True, False])
def test_weights_cut_short_are_named(folder, sealed):
    cut(next(folder.glob("*.safetensors")))
    if not sealed:
        (folder / "checksums.sha256").unlink()
    check(model(folder), "model", str(folder), "install the model again")


def test_model_without_its_tokenizer_is_named(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "checksums.sha256").unlink()
    check(model(folder), "model", str(folder), "tokenizer.json: cannot read")


def test_without_a_model_it_is_said_what_still_works_and_what_to_do(monkeypatch):
    check(doctor.model(Loaded(Settings())), "model", "stand-in in ")
    monkeypatch.setattr(model_folders, "shipped", dict)
    found = "none is installed: there are next edits by rules, and no completions"
    check(doctor.model(Loaded(Settings())), "model", found, "pip install ./models/quicksilver")


def test_model_that_is_too_slow_to_follow_typing_is_a_problem(monkeypatch):
    info = EngineInfo("mercury", "quicksilver", "cpu", 2048, first_line_ms=9000.0)
    monkeypatch.setattr(doctor.daemon, "status", lambda: Status("ready", info=info))
    found = "ready, quicksilver on cpu; a first line takes 9.0 s, and 4.0 s is the limit while you type"
    check([doctor.engine_server(EngineSettings())], "engine server", found, "add a quicker model")


def test_model_that_proposes_no_next_edits_says_so(folder, monkeypatch):
    monkeypatch.setattr(doctor, "verify", lambda folder: None)
    for kind, says in (("fim", True), ("next-edit", False)):
        write_record(ModelRecord(name="large", kind=kind, prompt="qwen", parameters=494_000_000), folder)
        (found, *_) = model(folder)
        assert (wording.BY_RULES_ALONE in found.found) is says


def test_folder_is_well_only_if_a_file_can_be_written(tmp_path):
    assert doctor.writable("engine log", "found", tmp_path) == Finding("engine log", "found")
    gone = [doctor.writable("engine log", "found", tmp_path / "gone")]
    check(gone, "engine log", "cannot be written (No such", "gone writable")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def nvidia(tmp_path, monkeypatch):
    """A machine with the driver's program, whatever this one has."""
    program = tmp_path / ("nvidia-smi.exe" if os.name == "nt" else "nvidia-smi")
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return program


def test_state_folder_that_is_a_file_is_named(directory, tmp_path, monkeypatch):
    (tmp_path / "state").write_text("")
    monkeypatch.setattr(doctor, "default_file", lambda: tmp_path / "state/mercury-ls/stats.jsonl")
    found = [finding for finding in doctor.permissions() if finding.part == "statistics"]
    check(found, "statistics", "cannot be written (Not a directory", "state writable")


def test_file_that_ended_servers_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "default_file", lambda: tmp_path / "stats.jsonl")
    assert [*doctor.project_files()] == []
    path = tmp_path / "a.py"
    path.write_text("")
    os.utime(path, (1, 1))
    for _ in range(2):
        Unended(tmp_path / FOLDER).begin(str(path))
    for note in (tmp_path / FOLDER).iterdir():
        moment = note.stat().st_mtime - HANGING_SECONDS - 1
        os.utime(note, (moment, moment))
    check(doctor.project_files(), "project file", f"{path}: left out", ".mercuryignore")


def test_auto_says_what_it_chose_and_why(nvidia, monkeypatch):
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: name)
    check([doctor.device("auto")], "device", "gpu, because nvidia-smi and torch are installed, by our kernels or torch")
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None if name == "triton" else name)
    check([doctor.device("auto")], "device", "by torch alone, because triton is not")
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None if name == "torch" else name)
    check([doctor.device("auto")], "device", "cpu, because torch is missing")
    nvidia.unlink()
    check([doctor.device("auto")], "device", "cpu, because nvidia-smi is missing")
    check([doctor.device("cpu")], "device", "cpu, as engine.device says")
    check([doctor.device("gpu")], "device", "gpu, as engine.device says, but nvidia-smi is missing", "auto")


def test_cpu_is_no_device_without_openvino(nvidia, monkeypatch):
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None if name == "openvino" else name)
    check(
        [doctor.device("cpu")], "device", "cpu, as engine.device says, but OpenVINO is not", "mercury-ls model add http"
    )
    check([doctor.device("auto")], "device", "auto: gpu")
    nvidia.unlink()
    check([doctor.device("auto")], "device", "there is no NVIDIA driver, but OpenVINO is not", "pip install openvino")


def test_foreign_server_needs_no_device_here(tmp_path):
    server = {"kind": "server", "prompt": "qwen", "protocol": "openai", "address": "http://127.0.0.1:1"}
    write_record(ModelRecord(name="theirs", **server), tmp_path)
    assert [finding.part for finding in model(tmp_path)] == ["model"]


@asynccontextmanager
async def serving(directory):
    """A real engine server with a TCP door, in this process; gives its address."""
    options = daemon.Options(directory=directory, http="127.0.0.1:0", token="secret")
    with daemon.endpoints(options, directory) as endpoints:
        task = asyncio.create_task(daemon.serve(options, endpoints, lambda report: FakeEngine()))
        try:
            yield "http://{}:{}".format(*endpoints[1].socket.getsockname())
        finally:
            await daemon.ask(directory, "POST", "/engine/v2/stop")
            await task


async def remote(address, token_file=""):
    settings = EngineSettings(address=address, token_file=str(token_file))
    return [await asyncio.to_thread(doctor.engine_server, settings)]


async def test_engine_elsewhere_is_asked_as_an_editor_would(directory, tmp_path):
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("secret")
    wrong.write_text("guess")
    async with serving(directory) as address:
        check(await remote(address, right), "engine server", f"{address}: ")
        check(await remote(address, wrong), "engine server", "the bearer token is missing or wrong", "token_file")
    check(await remote(address, right), "engine server", f"{address}: [Errno", "check engine.address")


async def test_silent_engine_elsewhere_is_found_out(monkeypatch):
    monkeypatch.setattr(doctor, "ANSWER_SECONDS", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = "http://{}:{}".format(*listener.getsockname())
        check(await remote(address), "engine server", f"{address}: no answer within", "check engine.address")


def test_without_a_server_the_next_editor_starts_it(directory):
    check([doctor.engine_server(EngineSettings())], "engine server", "not running")


def test_hanging_own_server_is_named(directory, monkeypatch):
    monkeypatch.setattr(daemon, "ANSWER_SECONDS", 0.01)
    with claimed(directory) as claim:
        claim.listener.socket.listen()
        said = f"the engine server is running (process {os.getpid()}), but does not answer"
        check([doctor.engine_server(EngineSettings())], "engine server", said, "serve --stop")


def test_own_server_that_lost_its_socket_is_named(directory, monkeypatch):
    monkeypatch.setattr(daemon, "ANSWER_SECONDS", 0.01)
    with lock(directory):
        said = f"the engine server is running (process {os.getpid()}), but has lost its socket"
        check([doctor.engine_server(EngineSettings())], "engine server", said, "serve --stop")


def test_lock_that_is_no_file_is_named(directory):
    Path(directory, LOCK).mkdir()
    check([doctor.engine_server(EngineSettings())], "engine server", "cannot run", f"{directory}/{LOCK}")
