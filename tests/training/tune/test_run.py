"""Tuning: what is kept back is never learned from, no project acts, and only what is better counts as better."""

import json
import os
import time

import msgspec
import pytest
import torch

from mercury_engine.engine import open_engine
from mercury_engine.model.adapter import read_adapter
from mercury_engine.model.config import TINY
from mercury_engine.model.export import export
from mercury_engine.model.network import create, save
from mercury_engine.tuning_data import Figure, File, Material, Tuning
from mercury_training.errors import TrainingError
from mercury_training.tune import exam
from mercury_training.tune import project as projects
from mercury_training.tune import run as tuning
from mercury_training.tune.exam import ExamMark
from mercury_training.tune.project import history_of, split
from mercury_training.tune.run import TuningPlan, tune
from tests.repositories import committed, git
from tests.training.small import GOLDEN, TOKENIZER, source

CONFIG = msgspec.structs.replace(TINY, vocabulary=TOKENIZER.vocabulary)


def text_of(seed):
    """Like no other seed's: names and numbers of its own."""
    return source(seed, 12).replace("math", f"math{seed}").replace("total", f"total_{seed}")


def commit(folder, **files):
    committed(folder, {f"{name}.py": text for name, text in files.items()})


@pytest.fixture
def project(tmp_path):
    """Twenty files, each changed once after it was written, one by one."""
    folder = tmp_path / "project"
    commit(folder, **{f"part{seed}": text_of(seed) for seed in range(20)})
    for seed in range(20):
        changed = text_of(seed).replace("count", f"tally_{seed}").replace("width", f"breadth_{seed}")
        commit(folder, **{f"part{seed}": changed})
    return folder


def files_of(folder):
    return [File(path.name, path.read_text()) for path in sorted(folder.glob("*.py"))]


def divided(folder, files=None):
    with history_of(folder) as found:
        return split(files or files_of(folder), found)


def test_files_of_latest_commits_are_held_out_in_every_state(project):
    found = divided(project)
    held_out = {text.path for text in found.held_out}
    assert held_out > {"part19.py", "part18.py"}
    assert len(held_out) == 3
    assert held_out.isdisjoint(text.path for text in found.train)
    assert held_out.isdisjoint(row.path for row in found.edits)
    assert held_out.isdisjoint(edit.path for row in found.edits for edit in row.edits)
    assert found.edits
    assert {row.path for row in found.later} == {"part19.py", "part18.py"}
    assert {row.path for row in found.places} <= held_out


def test_exam_places_are_not_in_what_is_learned(project):
    shared = text_of(19).replace("count", "tally_19").replace("width", "breadth_19")
    lines = shared.splitlines(keepends=True)
    files = [*files_of(project), File("copy.py", text_of(40) + "".join(lines[10:40]))]
    found = divided(project, files)
    assert "copy.py" in {text.path for text in found.train}
    assert inside(divided(project).places)
    assert not inside(found.places)


def inside(places):
    """Those well within the lines that are copied."""
    return [row for row in places if row.path == "part19.py" and 16 <= row.prefix.count("\n") < 30]


def test_copies_of_what_is_kept_back_are_not_learned_from(project):
    files = [*files_of(project), File("again.py", "# once more\n" + (project / "part19.py").read_text())]
    assert "again.py" not in {text.path for text in divided(project, files).train}


@pytest.mark.parametrize(
    "secret",
    [
        'password = "hunter2hunter2"\n',
        'url = "postgres://admin:hunter2hunter2@host/db"\n',
        "# export DB_PASSWORD=hunter2hunter2\n",
        'header = "Bearer hunter2hunter2hunter2"\n',
    ],
)
def test_old_states_with_secrets_are_neither_learned_from_nor_judged_by(project, secret):
    commit(project, part3=secret + text_of(3))
    commit(project, part3=secret + text_of(3).replace("area", "surface"))
    commit(project, part3=text_of(3))
    for seed in (19, 18, 17, 16):
        commit(project, **{f"part{seed}": secret + text_of(seed).replace("area", "surface")})
        commit(project, **{f"part{seed}": text_of(seed)})
    found = divided(project)
    assert found.edits
    assert not any("hunter2" in msgspec.json.encode(row).decode() for row in [*found.edits, *found.later])


def test_history_of_other_object_names_is_read(tmp_path):
    git(tmp_path, "init", "--quiet", "--object-format=sha256")
    commit(tmp_path, **{f"part{seed}": text_of(seed) for seed in range(20)})
    commit(tmp_path, part3=text_of(3).replace("count", "tally"))
    with history_of(tmp_path) as found:
        assert len(found.revision) == 64


def test_incomplete_history_is_left_out(project, tmp_path, capsys):
    tree = git(project, "rev-parse", "HEAD~3^{tree}").strip()
    (project / ".git/objects" / tree[:2] / tree[2:]).unlink()
    with history_of(project) as found:
        assert found is None
    assert "the history cannot be read and is left out: " in capsys.readouterr().err
    assert divided(project).train


def test_without_a_history_files_alone_are_kept_back(tmp_path):
    files = [File(f"part{seed}.py", text_of(seed)) for seed in range(20)]
    with history_of(tmp_path) as found:
        assert found is None
        divided = split(files, found)
    assert len(divided.held_out) == 3
    assert (divided.edits, divided.later) == ([], [])


def test_too_small_project_is_refused():
    with pytest.raises(TrainingError, match="3 of 4 readable files"):
        split([File(f"part{seed}.py", text_of(seed)) for seed in range(3)] + [File("notes.txt", "x" * 200)], None)


def test_copies_do_not_make_a_project_large():
    with pytest.raises(TrainingError, match="1 of 20 readable files"):
        split([File(f"part{number}.py", text_of(0)) for number in range(20)], None)


def test_project_configuration_names_no_program(project, tmp_path):
    """`git log` runs `gpg.program` where the repository's configuration asks for signatures."""
    ran, program = tmp_path / "ran", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    plain = git(project, "cat-file", "commit", "HEAD")
    head, _, message = plain.partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    (tmp_path / "signed").write_text(f"{head}\n{signature}\n\n{message}")
    signed = git(project, "hash-object", "-t", "commit", "-w", str(tmp_path / "signed")).strip()
    git(project, "update-ref", "HEAD", signed)
    git(project, "config", "log.showSignature", "true")
    git(project, "config", "gpg.program", str(program))
    git(project, "log", "-1")
    assert ran.exists(), "the trap works"
    ran.unlink()
    assert divided(project).later
    assert not ran.exists()


def test_time_over_before_the_first_update_leaves_no_update(project):
    weights = {name: weight.numpy() for name, weight in create(CONFIG, 0).state_dict().items()}
    plan = TuningPlan(model=project, out=project)
    _, steps = tuning._learn(divided(project), TOKENIZER, CONFIG, weights, plan, time.monotonic(), lambda line: None)
    assert steps == 0


def figure(name, before, after, reach, count=9):
    return Figure(name, count, before, after, round(after - before - reach, 4), round(after - before + reach, 4))


@pytest.mark.parametrize(
    ("figures", "better"),
    [
        ([(exam.TEXT, 2.0, 1.9, 0.05)], True),
        ([(exam.TEXT, 2.0, 1.9, 0.15)], False),
        ([(exam.TEXT, 2.0, 2.1, 0.05)], False),
        ([(exam.TEXT, 2.0, 1.9, 0.05), (exam.EDITS, 1.0, 1.1, 0.2)], True),
        ([(exam.TEXT, 2.0, 1.9, 0.05), (exam.EDITS, 1.0, 1.1, 0.05)], False),
        ([(exam.TEXT, 2.0, 1.9, 0.05), (exam.LIKENESS, 0.5, 0.48, 0.05)], True),
        ([(exam.TEXT, 2.0, 1.9, 0.05), (exam.LIKENESS, 0.5, 0.4, 0.05)], False),
        ([(exam.TEXT, 2.0, 1.9, 0.05), (exam.LIKENESS, 0.5, 0.4, 0.05, 4)], True),
        ([(exam.TEXT, 2.0, 1.9, 0.05, 4)], False),
        ([(exam.EDITS, 2.0, 1.9, 0.05)], False),
        ([], False),
    ],
)
def test_better_is_certainly_better_and_nothing_certainly_worse(figures, better):
    found, reason = exam.verdict([figure(*each) for each in figures])
    assert found == better
    assert bool(reason) != better


def marks(*files):
    """For each file so many pieces of ten bytes, all with the same bits."""
    return [
        ExamMark(f"part{number}.py", bits, 10) for number, (bits, pieces) in enumerate(files) for _ in range(pieces)
    ]


def test_many_pieces_of_few_files_are_as_few_witnesses():
    """Three files, of which one got worse: thirty-two pieces taken one by one would be certain."""
    before, after = marks((20, 20), (20, 6), (20, 6)), marks((18, 20), (18, 6), (21, 6))
    found = exam._figure(exam.TEXT, before, after)
    assert (found.count, found.before, found.after) == (32, 2.0, 1.8562)
    assert found.low == -0.2
    assert found.high > 0


def test_files_that_all_get_better_are_certain():
    found = exam._figure(exam.TEXT, marks((20, 4), (20, 4), (20, 4)), marks((18, 4), (19, 4), (17, 4)))
    assert (found.before, found.after) == (2.0, 1.8)
    assert (found.low, found.high) == (-0.3, -0.1)


def test_missing_measures_are_announced_before():
    enough, few = ["a.py", "b.py"] * 4, ["a.py"] * 9
    least = "held out, at least 8 of 2 files needed"
    paths = {exam.TEXT: enough, exam.EDITS: [], exam.LIKENESS: few, exam.EXACT: enough}
    assert exam.outlook(paths) == [
        "judged by bits per byte, held-out files (lower is better), exact completions (higher is better)",
        f"not judged by bits per byte, later edits: 0 questions of 0 files {least}",
        f"not judged by similarity of completions: 9 questions of 1 file {least}",
    ]


def test_model_that_could_not_be_installed_is_not_begun():
    with pytest.raises(TrainingError, match="7 questions of 2 files held out, at least 8 of 2 files needed: nothing"):
        exam.outlook({exam.TEXT: ["a.py"] * 6 + ["b.py"]})


def test_single_file_proves_nothing():
    assert exam._figure(exam.TEXT, marks((20, 40)), marks((10, 40))) is None
    assert exam._figure(exam.TEXT, [], []) is None


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    save(create(CONFIG, 0), folder / "float")
    (folder / "float/tokenizer.json").write_bytes(GOLDEN.read_bytes())
    export(folder / "float", folder / "int8")
    return folder / "int8"


@pytest.mark.slow
@pytest.mark.parametrize("rank", [4, 0])
def test_project_is_learned_judged_and_answered_with(rank, project, model, tmp_path, monkeypatch):
    monkeypatch.setattr(tuning, "LOW_RANK", msgspec.structs.replace(tuning.LOW_RANK, adam=0.02))
    monkeypatch.setattr(projects, "PLACES", 3)
    monkeypatch.setattr(exam, "FILES", 1)
    monkeypatch.setattr(exam, "ENOUGH", 1)
    threads = torch.get_num_threads()
    plan = TuningPlan(model=model, out=tmp_path / "made", rank=rank, steps=6)
    report = tune(Material(str(project), files_of(project)), plan)
    torch.set_num_threads(threads)
    written = json.loads((tmp_path / "made/adapter.json").read_text())
    assert msgspec.convert(written, Tuning) == report
    by_name = {figure.name: figure for figure in report.figures}
    assert by_name[exam.TEXT].after < by_name[exam.TEXT].before - 0.1
    assert by_name[exam.EDITS].count
    assert by_name[exam.LIKENESS].count
    assert report.steps == 6
    assert set(read_adapter(tmp_path / "made", model))
    assert open_engine(model, adapter=tmp_path / "made").info().model == CONFIG.name


def test_trainer_reads_nothing_of_project_but_its_history(project, tmp_path):
    """Files that are on the disk and not in the material are not looked for."""
    files = [file for file in files_of(project) if file.path != "part19.py"]
    os.chmod(project / "part19.py", 0)
    found = divided(project, files)
    paths = {text.path for text in (*found.train, *found.held_out)} | {row.path for row in (*found.edits, *found.later)}
    assert "part19.py" not in paths
