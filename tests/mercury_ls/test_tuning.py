"""What the trainer is given, and what becomes of its result."""

import importlib.util
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from mercury_engine.record import ModelRecord, write_record
from mercury_engine.tuning_data import Figure, File, Material, Tuning, send
from mercury_ls.cli import main
from mercury_ls.link.local import lock_file
from mercury_ls.project.privacy import Privacy
from mercury_ls.serve import tuned
from mercury_ls.settings.schema import PrivacySettings
from mercury_ls.tuning import TuneOrder, TuningError, material, project_of, run, tune

FIGURE = Figure("bits per byte, held-out files", 12, 1.5, 1.4, -0.12, -0.08)


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def written(root, **files):
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("DOT", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def given(root):
    return {file.path: file.text for file in material(str(root), Privacy(PrivacySettings(), [root])).files}


def test_hidden_files_links_and_foreign_code_are_not_handed_over(root, tmp_path):
    written(
        root,
        src__appDOTpy="x = 1\n",
        src__secretDOTpy="x = 2\n",
        credentialsDOTpy="x = 3\n",
        node_modules__aDOTjs="x = 4\n",
        DOTcache__bDOTpy="x = 5\n",
        DOTenv="KEY=6\n",
        notesDOTbin="x = 7\n",
    )
    (root / ".mercuryignore").write_text("secret.py\n")
    (tmp_path / "outside.py").write_text("x = 8\n")
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    assert given(root) == {"src/app.py": "x = 1\n"}


def test_file_with_undecodable_name_is_left_out(root):
    written(root, appDOTpy="x = 1\n")
    (root / os.fsdecode(b"\xff.py")).write_text("x = 2\n")
    (root / os.fsdecode(b"\xff")).mkdir()
    (root / os.fsdecode(b"\xff/b.py")).write_text("x = 3\n")
    assert given(root) == {"app.py": "x = 1\n"}


def test_secrets_in_files_are_masked(root):
    written(root, appDOTpy='password = "correct-horse-9"\nname = "mercury"\n')
    (root / "binary.py").write_bytes(b"\xff\xfe")
    assert given(root) == {"app.py": 'password = "***************"\nname = "mercury"\n'}


def test_any_folder_of_a_repository_names_it(root):
    (root / "src/deep").mkdir(parents=True)
    assert project_of(str(root / "src/deep")) == project_of(str(root)) == os.path.realpath(root)
    assert project_of(str(root.parent)) == os.path.realpath(root.parent)
    with pytest.raises(TuningError, match="not a folder"):
        project_of(str(root / "nowhere"))
    assert project_of(str(root / "nowhere"), is_deleted=True) == os.path.realpath(root / "nowhere")


def trainer(root, better, code=0):
    """Leaves what the trainer leaves, without learning anything."""

    def train(order, found, out):
        assert found.root == str(root)
        if code == 0:
            out.mkdir()
            fields = {"model": order.model.name, "base": "b", "made": "now", "method": "rank 4", "minutes": 1.0}
            fields |= {"files": 9, "edits": 0, "steps": 1}
            report = Tuning(root=found.root, figures=(FIGURE,), better=better, reason="no better", **fields)
            (out / "adapter.json").write_bytes(msgspec.json.encode(report))
        return code

    return train


def order(tmp_path):
    return TuneOrder(tmp_path / "model", 1.0)


@pytest.mark.parametrize("better", [True, False])
def test_better_model_alone_is_installed(better, root, tmp_path):
    place = tmp_path / "tuned"
    found = tune(str(root), Privacy(PrivacySettings(), [root]), order(tmp_path), place, trainer(root, better))
    assert found.better == better
    assert len(tuned.installed(place)) == better
    assert len(list(place.iterdir())) == better, "nothing else is left behind"


def test_installed_model_stays_if_training_fails(root, tmp_path):
    place, privacy = tmp_path / "tuned", Privacy(PrivacySettings(), [root])
    tune(str(root), privacy, order(tmp_path), place, trainer(root, True))
    with pytest.raises(TuningError, match="ended without a result"):
        tune(str(root), privacy, order(tmp_path), place, trainer(root, True, code=1))
    tune(str(root), privacy, order(tmp_path), place, trainer(root, False))
    assert len(tuned.installed(place)) == 1


def test_added_model_cannot_be_tuned(root, tmp_path):
    (tmp_path / "model").mkdir()
    write_record(ModelRecord(name="coder", kind="fim", prompt="qwen"), tmp_path / "model")
    refused = r"coder was added, and only models that ship can be tuned: set engine\.model"
    with pytest.raises(TuningError, match=refused):
        tune(str(root), Privacy(PrivacySettings(), [root]), order(tmp_path), tmp_path / "tuned")


def test_leftovers_of_killed_trainings_go_and_living_ones_stay(root, tmp_path):
    place = tmp_path / "tuned"
    for name in ("making-killed", "making-living", "making-begun"):
        (place / name).mkdir(parents=True)
    (place / "making-killed/lock").touch()
    with open(place / "making-living/lock", "w") as file:
        lock_file(file)
        tune(str(root), Privacy(PrivacySettings(), [root]), order(tmp_path), place, trainer(root, False))
        assert [path.name for path in place.iterdir()] == ["making-living"]


def test_without_torch_the_remedy_is_named(root, tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find(name))
    with pytest.raises(TuningError, match=r"run `.*'\.\[train\]'` in a clone"):
        tune(str(root), Privacy(PrivacySettings(), [root]), order(tmp_path), tmp_path / "tuned")


TRAINER = """
import os, sys, time
from pathlib import Path
from mercury_engine.tuning_data import receive

receive(sys.stdin.buffer)
Path({started!r}).write_text(str(os.getpid()))
time.sleep(60)
"""

TUNE = """
import subprocess, sys
from pathlib import Path
from mercury_ls import tuning

popen = subprocess.Popen
subprocess.Popen = lambda command, **more: popen([sys.executable, "-c", {trainer!r}], **more)
tuning.run(tuning.TuneOrder(Path("."), 1.0), tuning.Material("", []), Path({out!r}))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 128 + 15), ("SIGKILL", -9), ("SIGINT", -2)])
def test_ended_process_ends_the_trainer(tmp_path, number, code):
    started = tmp_path / "started"
    script = TUNE.format(trainer=TRAINER.format(started=str(started)), out=str(tmp_path / "out"))
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as parent:
        while not (started.exists() and started.read_text()):
            assert parent.poll() is None
            select.select([], [], [], 0.02)
        parent.send_signal(signal.Signals[number])
    assert parent.returncode == code
    trainer = int(started.read_text())
    while is_running(trainer):
        select.select([], [], [], 0.02)


def is_running(process):
    try:
        os.kill(process, 0)
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_trainer_gets_what_is_sent_to_it():
    found = Material("/p", [File("a.py", "x = 1\n")])
    code = "import sys; from mercury_engine.tuning_data import receive; print(receive(sys.stdin.buffer), flush=True)"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as trainer:
        send(found, trainer.stdin)
        assert trainer.stdout.read().decode().strip() == repr(found)


@pytest.mark.slow
def test_trainer_says_why_project_is_too_small(root, tmp_path, capfd):
    written(root, appDOTpy="def f():\n    return 1\n" * 9)
    found = material(str(root), Privacy(PrivacySettings(), [root]))
    assert run(order(tmp_path), found, tmp_path / "out") == 1
    assert "1 of 1 readable files" in capfd.readouterr().err


def test_command_lists_and_removes(root, tmp_path, monkeypatch, capsys):
    place = tmp_path / "tuned"
    monkeypatch.setattr(tuned, "home", lambda: place)
    monkeypatch.setenv("MERCURY_ENGINE_MODEL", "fake")
    tune(str(root), Privacy(PrivacySettings(), [root]), order(tmp_path), place, trainer(root, True))
    assert said(capsys, "--status").startswith(f"{root}: model, rank 4, 1.0 min, now")
    assert "removed" in said(capsys, str(root), "--remove")
    assert "nothing was tuned" in said(capsys, str(root), "--remove")
    assert "nothing has been tuned" in said(capsys, "--status")
    assert "no model on this machine" in said(capsys, str(root), code=1)


def said(capsys, *arguments, code=0):
    with pytest.raises(SystemExit) as ended:
        main(["tune", *arguments])
    assert ended.value.code == code
    found = capsys.readouterr()
    return found.out + found.err
