"""What a source has of a model: all that describes it, before the user agrees, and the weights afterwards."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine import model_folders
from mercury_engine.api import EngineError
from mercury_ls.models import hub, places
from mercury_ls.models.hub import megabytes
from mercury_ls.models.sources import Hub
from mercury_ls.serve import added
from mercury_ls.serve.models import Report

SPARE_DISK = 200_000_000
GGUF_HEAD = 16 << 20
"""Bytes in which a GGUF file says what it holds, with the largest vocabularies in use."""
GGUF_KINDS = (
    *("q8_0", "bf16", "f16", "q6_k", "q5_k_m", "q5_k_s", "q5_1", "q5_0"),
    *("q4_k_m", "q4_k_s", "q4_1", "q4_0", "f32"),
)
"""In the order in which they are chosen: as good as the original, then as small as possible."""


class Supply(Struct, frozen=True):
    """A source whose config and tokenizer are in `folder`; `gather` brings all of it together, in the folder that it
    returns, and writes only into the one that it is given. `loads` are bytes of the network, `writes` all bytes that it
    adds to the disk."""

    folder: Path
    source: str
    gather: Callable[[Path, Report], Path]
    parameters: int
    revision: str = ""
    licence: str = ""
    files: int = 0
    loads: int = 0
    writes: int = 0
    notes: tuple[str, ...] = ()


def supplied(
    source: Hub | Path, draft: Path, previous: Path | None, report: Report, *, revision: str = "", file: str = ""
) -> Supply:
    """`previous` has what an earlier attempt loaded; `file` is one of the GGUF files of a repository."""
    if isinstance(source, Hub):
        return _from_hub(source, revision, file, draft, previous, report)
    return _from_folder(source, draft) if source.is_dir() else _from_gguf(source, draft, report)


def _from_hub(source: Hub, revision: str, gguf: str, draft: Path, previous: Path | None, report: Report) -> Supply:
    repository = _looked(source.id, revision)
    before = previous and places.inside(previous, repository.revision)
    notes = [] if repository.id.lower() == source.id.lower() else [f"{source.id} is now called {repository.id}"]
    if repository.gated:
        notes.append("its makers ask for your agreement to their terms")
    if gguf or not repository.weights:
        file = _chosen_gguf(repository, gguf)
        others = ", ".join(other.name for other in repository.ggufs if other != file)
        notes.append(f"{file.name}; --file chooses another: {others}" if others else file.name)
        here = repository.folder and repository.folder / file.name
        supply = _from_gguf(here, draft, report) if here else _from_hub_gguf(repository, file, draft, before)
    else:
        here = repository.folder
        supply = _from_folder(here, draft) if here else _from_hub_weights(repository, draft, before, report)
    return replace(
        supply,
        source=repository.id,
        revision=repository.revision,
        licence=repository.licence,
        notes=tuple(notes),
    )


def _from_hub_weights(repository: hub.Repository, draft: Path, before: Path | None, report: Report) -> Supply:
    for file in repository.small:
        hub.fetch(repository, file, draft, report, before and places.inside(before, file.name))
    added.complete_tokenizer(draft)
    missing = [file for file in repository.weights if not before or not places.inside(before, file.name).exists()]
    present = sum(hub.present(places.inside(before, f"{file.name}.part")) for file in missing) if before else 0
    loads = sum(file.size for file in missing) - present

    def gather(place: Path, report: Report) -> Path:
        folder = _copied(draft, places.folder(place, repository.revision))
        for file in repository.weights:
            hub.fetch(repository, file, folder, report)
        return folder

    parameters = _counted_parameters(repository)
    return Supply(draft, repository.id, gather, parameters, files=len(missing), loads=loads, writes=loads)


def _from_hub_gguf(repository: hub.Repository, file: hub.RepositoryFile, draft: Path, before: Path | None) -> Supply:
    """What a GGUF file holds is at its beginning; as much of it is loaded, and goes on where it ended."""
    if file.size > (free := free_disk()):
        raise EngineError(
            f"{file.name} has {megabytes(file.size)}, and {megabytes(free)} of disk are free: choose another"
        )
    head = hub.head(repository, file, GGUF_HEAD)
    parameters = _parameters_of_gguf(draft, file, head)
    part = before and places.inside(before, f"{file.name}.part")
    is_here = bool(before) and places.inside(before, file.name).exists()
    loads = 0 if is_here else file.size - max(hub.present(part) if part else 0, len(head))

    def gather(place: Path, report: Report) -> Path:
        loaded = places.folder(place, repository.revision)
        part = places.inside(loaded, f"{file.name}.part")
        if not part.exists() and not places.inside(loaded, file.name).exists():
            part.write_bytes(head)
        folder = _copied(draft, places.empty(place, "gguf"))
        added.write_gguf(hub.fetch(repository, file, loaded, report), folder, report)
        return folder

    writes = loads + 2 * parameters
    return Supply(draft, repository.id, gather, parameters, files=int(not is_here), loads=loads, writes=writes)


def _parameters_of_gguf(draft: Path, file: hub.RepositoryFile, head: bytes) -> int:
    """Writes config and tokenizer, from the beginning of a file that is as long as the whole one."""
    path = places.inside(draft, file.name)
    with path.open("wb") as begun:
        begun.write(head)
        begun.truncate(file.size)
    try:
        return added.describe_gguf(path, draft)
    finally:
        path.unlink()


def _chosen_gguf(repository: hub.Repository, name: str) -> hub.RepositoryFile:
    """The file of that name; if none is named, the best kind of file for which there is room."""
    names = [file.name for file in repository.ggufs]
    if not names:
        raise EngineError(
            f"{repository.id} has neither .safetensors nor whole .gguf files, and others are not read: look for "
            "another version of the model"
        )
    if name:
        if name not in names:
            raise EngineError(f"{repository.id} has no {name}: --file chooses one of {', '.join(names)}")
        return repository.ggufs[names.index(name)]
    latest = sorted(repository.ggufs, key=lambda file: file.name, reverse=True)
    ranked = sorted(filter(_kind_of, latest), key=lambda file: GGUF_KINDS.index(_kind_of(file)))
    if not ranked and len(names) == 1:
        return repository.ggufs[0]
    if not ranked:
        raise EngineError(f"{repository.id} has several files: choose one with --file, of {', '.join(names)}")
    free = free_disk() - SPARE_DISK
    return next((file for file in ranked if file.size < free), ranked[0])


def _kind_of(file: hub.RepositoryFile) -> str:
    """How its weights are stored, as far as its name says so."""
    match = re.search(rf"(?<![a-z0-9])(?:{'|'.join(GGUF_KINDS)})(?![a-z0-9_])", file.name.lower())
    return match[0] if match else ""


def _counted_parameters(repository: hub.Repository) -> int:
    """As the hub says, if its files can hold as many, in one to four bytes; else as many as they hold in two."""
    size = sum(file.size for file in repository.weights)
    return repository.parameters if size / 4 <= repository.parameters <= size else size // 2


def _copied(draft: Path, folder: Path) -> Path:
    for path in draft.iterdir():
        shutil.copyfile(path, places.inside(folder, path.name))
    return folder


def _looked(id: str, revision: str) -> hub.Repository:
    try:
        return hub.look(id, revision)
    except EngineError as error:
        if not Path(id).is_dir():
            raise
        raise EngineError(f"{error}; for the folder that is here write ./{id}") from error


def _from_folder(folder: Path, draft: Path) -> Supply:
    files = [path for path in sorted(folder.glob("*.safetensors")) if path.is_file()]
    if not files:
        raise EngineError(f"{folder} has no .safetensors file, and no others are read: convert or download them")
    parameters = added.weigh(files)
    if not (folder / "tokenizer.json").exists() and (folder / "merges.txt").exists():
        for path in folder.iterdir():  # into a folder of our own, to which a file can be added
            (draft / path.name).symlink_to(path)
        folder = draft
        added.complete_tokenizer(folder)
    return Supply(folder, str(files[0].parent), lambda place, report: folder, parameters)


def _from_gguf(file: Path, draft: Path, report: Report) -> Supply:
    report(0.0, f"opening {file.name}")
    parameters = added.describe_gguf(file, draft)

    def gather(place: Path, report: Report) -> Path:
        folder = _copied(draft, places.empty(place, "gguf"))
        added.write_gguf(file, folder, report)
        return folder

    return Supply(draft, str(file), gather, parameters, writes=2 * parameters)


def free_disk() -> int:
    home = model_folders.added_home()
    return shutil.disk_usage(next(folder for folder in (home, *home.parents) if folder.exists())).free
