"""The folder of the models that the user added: built out of sight, visible only when whole, and removed as a whole."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from mercury_engine import model_folders
from mercury_engine.api import EngineError
from mercury_engine.record import ModelRecord, read_record, write_record
from mercury_ls.link import local
from mercury_ls.models import places
from mercury_ls.settings.folders import folders

MADE = "model"
"""Where in its hidden folder a model is made."""
MARK = "source"
"""The file there that says of what."""


class MeasuredSpeed(Struct, frozen=True):
    """What a model cost on this machine, when it was last tested: milliseconds for a suggestion, bytes of memory. For
    warm suggestions also how long the first of a suggestion took, and how quickly the rest came; 0 if unknown."""

    cold_ms: float = 0.0
    warm_ms: float = 0.0
    load_ms: float = 0.0
    memory: int = 0
    first_ms: float = 0.0
    tokens_per_second: float = 0.0


def records() -> dict[str, ModelRecord]:
    """The models that were added. A record that cannot be read costs nobody the others."""
    records = {}
    for name, folder in model_folders.added().items():
        try:
            record = read_record(folder)
        except EngineError as error:
            record = ModelRecord(name=name, kind="fim", prompt="", source=f"damaged: {error}")
        if record:
            records[name] = record
    return records


@contextmanager
def workplace(name: str, source: str) -> Iterator[Path]:
    """The hidden folder in which a model is made, one at a time, once the user has agreed. What an earlier attempt left
    of the same source is there, and what this one leaves stays if weights have begun to arrive."""
    with _locked() as home:
        folder = places.folder(home, _hidden(name)) if left(name, source) else places.empty(home, _hidden(name))
        (folder / MARK).write_text(source, encoding="utf-8")
        try:
            yield folder
        finally:
            if not _has_weights(folder):
                shutil.rmtree(folder, ignore_errors=True)


def left(name: str, source: str) -> Path | None:
    """What an earlier attempt left of the same source, to read from."""
    folder = places.inside(model_folders.added_home(), _hidden(name))
    mark = folder / MARK
    return folder if mark.is_file() and mark.read_text(encoding="utf-8") == source else None


@contextmanager
def _locked() -> Iterator[Path]:
    """The folder of the models, for one process at a time."""
    home = model_folders.added_home()
    home.mkdir(parents=True, exist_ok=True)
    with places.inside(home, ".lock").open("a") as lock:
        try:
            local.lock_file(lock)
        except OSError as error:
            raise EngineError("another process is adding a model: wait for it, or end it") from error
        yield home


def _has_weights(folder: Path) -> bool:
    """That were loaded or read, not linked to where they lie or converted."""
    paths = (path for form in ("*.safetensors*", "*.gguf*") for path in folder.rglob(form))
    return any(not path.is_symlink() and path.parent.name != MADE for path in paths)


def finish(record: ModelRecord, draft: Path, place: Path) -> Path:
    """Give the model that was made its name: from here on it is there."""
    target = places.inside(model_folders.added_home(), record.name)
    if target.exists():
        raise EngineError(f"{record.name} was added meanwhile: give another name with --name")
    write_record(record, draft)
    draft.rename(target)
    shutil.rmtree(place, ignore_errors=True)
    forget(record.name)
    return target


def remove(name: str) -> int:
    """The bytes that this frees. The record goes first: what is half removed is no model. Of a link only the link goes:
    what it leads to is not ours."""
    folder = model_folders.added()[name]
    if folder.is_symlink():
        freed = 0
        folder.unlink()
    else:
        freed = size(folder)
        removed = places.empty(folder.parent, f".{name}.removed") / MADE
        folder.rename(removed)
        shutil.rmtree(removed.parent)
    forget(name)
    return freed


def discard(name: str) -> int:
    """Removes what an interrupted `model add` left; the bytes that this frees, 0 if there is nothing."""
    folder = places.inside(model_folders.added_home(), _hidden(name))
    if not folder.exists():
        return 0
    with _locked():
        freed = size(folder)
        shutil.rmtree(folder, ignore_errors=True)
    return freed


def _hidden(name: str) -> str:
    return f".{name}.adding"


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def measurements() -> dict[str, MeasuredSpeed]:
    try:
        return msgspec.json.decode(state_file().read_bytes(), type=dict[str, MeasuredSpeed])
    except (OSError, msgspec.DecodeError):
        return {}


def note(name: str, measured: MeasuredSpeed) -> None:
    _keep({**measurements(), name: measured})


def forget(name: str) -> None:
    if name in (measured := measurements()):
        _keep({other: measured for other, measured in measured.items() if other != name})


def _keep(measured: dict[str, MeasuredSpeed]) -> None:
    """Or not: a disk that is full or read-only costs a column of `model list`."""
    file = state_file()
    draft = file.with_suffix(".new")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(measured), indent=2) + b"\n")
        draft.replace(file)


def state_file() -> Path:
    return folders().user_state_path / "models.json"
