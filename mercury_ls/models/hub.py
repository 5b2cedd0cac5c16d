"""The model hub: what a repository holds, and its files, which arrive whole and checked or not at all.

A download that was interrupted is resumed. The hub's own library downloads a file again from its start.
"""

import errno
import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from mercury_engine.api import EngineError
from mercury_ls.serve.models import Report

__all__ = ["Repository", "RepositoryFile", "fetch", "look", "megabytes", "present"]

SMALL = (".json", "merges.txt", "chat_template.jinja")
"""What describes a model. Nothing else is loaded but weights: no code, no pickles, no second formats."""
TOKENS_PAGE = "https://huggingface.co/settings/tokens"


class RepositoryFile(Struct, frozen=True):
    """`digest` is the file's SHA-256 or, for a small one, the hash that git gives it; "" if the hub does not say."""

    name: str
    size: int
    digest: str = ""


class Repository(Struct, frozen=True):
    """One revision. `folder` has its files already, where the network may not be used."""

    id: str
    revision: str
    files: tuple[RepositoryFile, ...] = ()
    licence: str = ""
    gated: bool = False
    parameters: int = 0
    folder: Path | None = None

    @property
    def small(self) -> tuple[RepositoryFile, ...]:
        return tuple(file for file in self.files if file.name.endswith(SMALL))

    @property
    def weights(self) -> tuple[RepositoryFile, ...]:
        """`model*.safetensors` if there are any: some repositories have the same weights in two layouts."""
        found = [file for file in self.files if file.name.endswith(".safetensors")]
        return tuple([file for file in found if file.name.startswith("model")] or found)


def library() -> Any:
    """Imported by the commands that download, and nothing else. It reads its variables (HF_HOME, HF_TOKEN,
    HF_ENDPOINT, HF_HUB_OFFLINE) when it is imported."""
    import huggingface_hub.constants
    import huggingface_hub.errors
    import huggingface_hub.utils

    huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY = True
    return huggingface_hub


def look(id: str, revision: str = "") -> Repository:
    """What the repository holds, pinned to the full hash of its revision."""
    hub = library()
    if hub.is_offline_mode():
        return cached(id, revision)
    with explained(id, revision):
        info = hub.HfApi().model_info(id, revision=revision or None, files_metadata=True)
    card = info.card_data.to_dict() if info.card_data else {}
    return Repository(
        id=info.id,
        revision=info.sha,
        files=tuple(file_of(found) for found in info.siblings or () if is_wanted(found.rfilename)),
        licence=licence_of(card, info.tags or ()),
        gated=bool(info.gated),
        parameters=info.safetensors.total if info.safetensors else 0,
    )


def is_wanted(name: str) -> bool:
    """Folders hold other formats; and a name of the hub's must not lead out of our folder."""
    return name.endswith((*SMALL, ".safetensors")) and not name.startswith(".") and Path(name).name == name


def file_of(found: Any) -> RepositoryFile:
    return RepositoryFile(found.rfilename, found.size or 0, found.lfs.sha256 if found.lfs else found.blob_id or "")


def licence_of(card: dict[str, Any], tags: Any) -> str:
    """As the model's card states it, or "" if it does not."""
    licence = card.get("license_name") if card.get("license") in (None, "other") else card.get("license")
    tagged = next((tag.removeprefix("license:") for tag in tags if tag.startswith("license:")), "")
    return str(licence or card.get("license") or tagged)


def cached(id: str, revision: str) -> Repository:
    """What an earlier program loaded, because HF_HUB_OFFLINE forbids to ask."""
    hub = library()
    try:
        folder = Path(hub.snapshot_download(id, revision=revision or None, local_files_only=True))
    except OSError as error:
        raise EngineError(
            f"HF_HUB_OFFLINE is set, and {id} is not in the cache ({hub.constants.HF_HUB_CACHE}): unset it, or give "
            "the folder of a model"
        ) from error
    wanted = [path for path in sorted(folder.iterdir()) if path.is_file() and is_wanted(path.name)]
    files = tuple(RepositoryFile(path.name, path.stat().st_size) for path in wanted)
    return Repository(id, folder.name, files, folder=folder)


def fetch(repository: Repository, file: RepositoryFile, folder: Path, report: Report) -> Path:
    """The file in the folder. It has its name only once it is whole and its checksum is right."""
    target = folder / file.name
    if target.exists():
        return target
    part = target.with_name(f"{file.name}.part")
    if not part.exists() and (known := in_cache(repository, file)):
        shutil.copyfile(known, part)
    with explained(repository.id, repository.revision):
        while present(part) < file.size and transfer(repository, file, part, report):
            pass
    if present(part) != file.size or (file.digest and digest(part, len(file.digest)) != file.digest):
        part.unlink(missing_ok=True)
        raise EngineError(
            f"{file.name} of {repository.id} arrived damaged: it is not {file.digest[:12]}…, as the hub says, so it "
            "was removed: run the command again"
        )
    return part.replace(target)


def in_cache(repository: Repository, file: RepositoryFile) -> str | None:
    known = library().try_to_load_from_cache(repository.id, file.name, revision=repository.revision)
    return known if isinstance(known, str) else None


def transfer(repository: Repository, file: RepositoryFile, part: Path, report: Report) -> bool:
    """Adds to the part until the connection ends; whether it has become longer."""
    hub = library()
    url = f"{hub.constants.ENDPOINT}/{repository.id}/resolve/{repository.revision}/{quote(file.name)}"
    headers = {**hub.utils.build_hf_headers(), "Accept-Encoding": "identity"}
    with part.open("ab") as written:
        start = done = written.tell()
        if done:
            headers["Range"] = f"bytes={done}-"
        try:
            timeout = hub.constants.HF_HUB_DOWNLOAD_TIMEOUT
            with hub.get_session().stream("GET", url, headers=headers, timeout=timeout) as response:
                if response.status_code == 416:  # all that the hub has is here
                    return False
                if response.status_code >= 400:
                    response.read()
                hub.utils.hf_raise_for_status(response)
                if done and response.status_code != 206:
                    done = written.truncate(0)
                for piece in response.iter_bytes():
                    written.write(piece)
                    done += len(piece)
                    report(done / max(file.size, 1), file.name)
        except hub.errors.HfHubHTTPError:
            raise
        except OSError as error:
            raise full_disk(error, part, file.size - done) from error
        except hub.errors.HTTPError as error:
            if done <= start:
                raise EngineError(
                    f"{repository.id}: {file.name} was interrupted after {megabytes(done)} of {megabytes(file.size)} "
                    f"({error}): run the command again, it resumes there"
                ) from error
    return done > start


def present(part: Path) -> int:
    """The bytes that have arrived."""
    return part.stat().st_size if part.exists() else 0


def full_disk(error: OSError, part: Path, missing: int) -> Exception:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return error
    return EngineError(
        f"{part.parent}: the disk is full, {megabytes(missing)} short: free as much and run the command again"
    )


def digest(path: Path, length: int) -> str:
    """SHA-256 if that long, else git's hash of a file."""
    with path.open("rb") as file:
        if length == 64:
            return hashlib.file_digest(file, "sha256").hexdigest()
        return hashlib.sha1(b"blob %d\0" % path.stat().st_size + file.read(), usedforsecurity=False).hexdigest()


@contextmanager
def explained(id: str, revision: str) -> Iterator[None]:
    """The hub's refusals in sentences, with what to do about them."""
    errors = library().errors
    try:
        yield
    except errors.GatedRepoError as error:
        raise EngineError(
            f"{id} asks you to accept its terms first: do so at https://huggingface.co/{id}, create a token at "
            f"{TOKENS_PAGE}, set HF_TOKEN to it, and run the command again"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise EngineError(f"{id} has no revision {revision}: leave out --revision for its newest") from error
    except errors.RepositoryNotFoundError as error:
        raise EngineError(
            f"the hub has no {id}, or it is private: look at https://huggingface.co/models, or set HF_TOKEN"
        ) from error
    except errors.HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else "no status"
        raise EngineError(f"the hub refuses {id} (HTTP {status}): try again later") from error
    except ValueError as error:
        raise EngineError(f"{id} cannot be asked for: {str(error).splitlines()[0]}") from error
    except errors.HTTPError as error:
        raise EngineError(
            f"the hub cannot be reached ({error}): check the connection, or give a folder that has the model"
        ) from error


def megabytes(size: float) -> str:
    """
    >>> megabytes(987_654_321), megabytes(12_345_678_900), megabytes(2345)
    ('988 MB', '12.3 GB', '0 MB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 9.95e9 else f"{size / 1e6:,.0f} MB"
