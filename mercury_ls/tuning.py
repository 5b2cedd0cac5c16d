"""Tuning to a project: gives its readable files to the trainer, and installs the result if it is better."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from msgspec import Struct

from mercury_engine.installation import with_extra
from mercury_engine.record import read_record
from mercury_engine.redaction import mask_secrets
from mercury_engine.tuning_data import File, Material, Tuning, send
from mercury_ls import wording
from mercury_ls.code import languages
from mercury_ls.code.files import read_small
from mercury_ls.link.local import lock_file
from mercury_ls.project.privacy import Privacy
from mercury_ls.project.repository import top_of
from mercury_ls.project.workspace import SKIPPED_FOLDERS
from mercury_ls.serve import tuned

LARGEST_FILE = 1 << 18
LARGEST_PROJECT = 48 << 20
"""In characters; the most recently changed files come first."""

PREFIX, LOCK = "making-", "lock"

Train = Callable[["TuneOrder", "Material", Path], int]


class TuningError(Exception):
    """Nothing was tuned. The message says why, and what to do."""


class TuneOrder(Struct, frozen=True):
    """Which model to tune, for how long, and whether to train all of its weights."""

    model: Path
    minutes: float
    full: bool = False


def project_of(path: str, *, is_deleted: bool = False) -> str:
    """The repository around a path, else the folder itself, with links resolved. One that `is_deleted` need not exist
    any more."""
    folder = os.path.realpath(path)
    if is_deleted and not os.path.exists(folder):
        return folder
    if not os.path.isdir(folder):
        raise TuningError(f"{path} is not a folder: give a project's folder")
    return top_of(folder) or folder


def tune(root: str, privacy: Privacy, order: TuneOrder, place: Path, train: Train | None = None) -> Tuning:
    """Train in a process of its own, and install the result in `place` if it is better."""
    if record := read_record(order.model):
        raise TuningError(f"{record.name} was added, and only models that ship can be tuned: set engine.model to auto")
    if train is None:
        if importlib.util.find_spec("torch") is None:
            raise TuningError(f"tuning needs torch, which is not installed: {with_extra('train')}")
        train = run
    texts = material(root, privacy)
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _training_folder(place) as folder:
        adapter = folder / "adapter"
        code = train(order, texts, adapter)
        tuning = tuned.read(adapter) if code == 0 else None
        if tuning is None:
            raise TuningError("the trainer ended without a result: see its last messages above")
        if tuning.better:
            tuned.install(adapter, root, place)
    return tuning


@contextmanager
def _training_folder(place: Path) -> Iterator[Path]:
    """A folder to train in. A running training holds a lock in its folder, which the system releases however the
    process ends: folders without one are left from trainings that were killed, and are deleted."""
    for folder in filter(_is_abandoned, place.glob(f"{PREFIX}*")):
        shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=place, prefix=PREFIX) as name, open(Path(name, LOCK), "w") as file:
        lock_file(file)
        yield Path(name)


def _is_abandoned(folder: Path) -> bool:
    try:
        with open(folder / LOCK, "r+") as file:
            lock_file(file)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def run(order: TuneOrder, texts: Material, out: Path) -> int:
    """Run the trainer in its output folder, so that `-m` cannot import from a project. It ends when this process does,
    however that ends, because its standard input closes then."""
    options = ["--model", str(order.model.resolve()), "--out", str(out), "--minutes", str(order.minutes)]
    command = [sys.executable, "-m", "mercury_training.tune", *options, *(["--full"] if order.full else [])]
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=out.parent) as trainer:
            with suppress(BrokenPipeError):  # the trainer has already ended
                send(texts, cast("BinaryIO", trainer.stdin))
            return trainer.wait()
    finally:
        signal.signal(signal.SIGTERM, before)


def material(root: str, privacy: Privacy) -> Material:
    files, size = [], 0
    for path in sorted(_readable(root, privacy), key=lambda path: (-os.stat(path).st_mtime_ns, path)):
        text = _text_of(path)
        if text is not None and size + len(text) <= LARGEST_PROJECT:
            size += len(text)
            files.append(File(os.path.relpath(path, root).replace(os.sep, "/"), mask_secrets(text)))
    return Material(root, files)


def _readable(root: str, privacy: Privacy) -> Iterator[str]:
    """Source files that no rule hides. Links are not followed: their targets are found anyway, or lie outside."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if _is_ours(os.path.join(folder, name), privacy)]
        for name in names:
            path = os.path.join(folder, name)
            is_wanted = _is_text(name) and languages.find("", path) and not os.path.islink(path)
            if is_wanted and not privacy.why_hidden(path):
                yield path


def _is_ours(folder: str, privacy: Privacy) -> bool:
    name = os.path.basename(folder)
    skipped = name.startswith(".") or name in SKIPPED_FOLDERS or os.path.islink(folder)
    return not skipped and _is_text(name) and not privacy.why_hidden(folder, is_folder=True)


def _is_text(name: str) -> bool:
    """Whether the name can be sent to the trainer: one that is not in the file system's encoding cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text_of(path: str) -> str | None:
    try:
        return read_small(path, LARGEST_FILE).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None


def described(tuning: Tuning) -> str:
    """The result as a table."""
    lines = [
        f"{wording.readable(tuning.root)}: {tuning.model}, {tuning.method}, {tuning.minutes:.1f} min, {tuning.made}",
        f"  {'on held-out files and commits':34} {'n':>4} {'before':>8} {'after':>8}  difference (95 % CI)",
    ]
    lines += [
        f"  {figure.name:34} {figure.count:4} {figure.before:8.4f} {figure.after:8.4f}"
        f"  {figure.low:+.4f} … {figure.high:+.4f}"
        f"  {'lower' if figure.name.startswith('bits') else 'higher'} is better"
        for figure in tuning.figures
    ]
    return "\n".join(lines)
