"""The model hub: what a repository holds, and its files, which arrive whole and checked or not at all.

A download that was interrupted is resumed. The hub's own library downloads a file again from its start. The hub, or who
answers in its place, may be hostile: what it says is checked in form before it is used or shown, and what it sends is
no longer than it announced.
"""

import errno
import hashlib
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import msgspec
from msgspec import Meta, Struct

from mercury_engine.addresses import is_here
from mercury_engine.api import EngineError
from mercury_engine.bounds import LARGEST
from mercury_engine.redaction import ForeignText, Secrets
from mercury_ls.models import places
from mercury_ls.serve.models import Report

if TYPE_CHECKING:
    from httpx2 import Request, Response

WEIGHTS = ".safetensors"
GGUF = re.compile(r"[A-Za-z0-9][\w.-]*(?<!-of-[0-9]{5})\.gguf", re.ASCII | re.IGNORECASE)
"""A whole model: one in several files is not read."""
TOKENS_PAGE = "https://huggingface.co/settings/tokens"
LONGEST_ANSWER = 16 << 20
MOST_FILES = 1000
MOST_REDIRECTS = 5
WINDOW_SECONDS = 60.0
SLOWEST_BYTES = 1 << 16
"""That must arrive within such a window."""
SHOWN = 80
AGAIN = "try again later, or choose another model"

HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
LICENCE = re.compile(r"[\w .,;:+()/-]{1,100}", re.ASCII)

Clock = Callable[[], float]
Size = Annotated[int, Meta(ge=0, le=1 << 50)]


class RepositoryFile(Struct, frozen=True):
    """`_digest` is the file's SHA-256 or, for a small one, the hash that git gives it; "" if the hub does not say."""

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
        return tuple(file for file in self.files if file.name in LARGEST)

    @property
    def weights(self) -> tuple[RepositoryFile, ...]:
        """`model*.safetensors` if there are any: some repositories have the same weights in two layouts."""
        weights = [file for file in self.files if file.name.endswith(WEIGHTS)]
        return tuple([file for file in weights if file.name.startswith("model")] or weights)

    @property
    def ggufs(self) -> tuple[RepositoryFile, ...]:
        return tuple(file for file in self.files if GGUF.fullmatch(file.name))


class _Large(Struct, frozen=True):
    sha256: str


class _Sibling(Struct, frozen=True, rename="camel"):
    rfilename: str
    size: Size | None = None
    blob_id: str | None = None
    lfs: _Large | None = None


class _Totals(Struct, frozen=True):
    total: Size


class _HubAnswer(Struct, frozen=True, rename="camel"):
    """What the hub says of a repository, as far as it is used. Its card is what the model's makers wrote."""

    id: str
    sha: str
    siblings: tuple[_Sibling, ...] | None = None
    tags: tuple[str, ...] | None = None
    card_data: object = None
    gated: bool | str | None = None
    safetensors: _Totals | None = None


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
        return _cached(id, revision)
    with _explained(id):
        hub.utils.validate_repo_id(id)
        path = f"api/models/{id}" + (f"/revision/{quote(revision, safe='')}" if revision else "")
        with _opened(f"{path}?blobs=true", id, revision) as response:
            pace = _DownloadPace(f"{id}: its description")
            data = _first_bytes(response, id, pace, LONGEST_ANSWER + 1)
        if len(data) > LONGEST_ANSWER:
            raise EngineError(f"{id}: the hub's description of it has more than {LONGEST_ANSWER:,} bytes; {AGAIN}")
        return described(data, id, revision)


def described(data: bytes, id: str, revision: str) -> Repository:
    """The hub's answer, if every word of it that will be used has its form."""
    try:
        answer = msgspec.json.decode(data, type=_HubAnswer)
    except (ValueError, RecursionError) as error:
        raise EngineError(f"{id}: the hub's description of it is none ({_shown(error)}); {AGAIN}") from error
    _formed(HASH, answer.sha, id, "its revision")
    _formed(ID, answer.id, id, "its name")
    library().utils.validate_repo_id(answer.id)
    if HASH.fullmatch(revision) and answer.sha != revision:
        raise EngineError(f"{id}: revision {revision} was asked for, and the hub has {answer.sha} for it; {AGAIN}")
    files = tuple(_file_of(sibling, id) for sibling in answer.siblings or () if is_wanted(sibling.rfilename))
    places.check(file.name for file in files)
    if len(files) > MOST_FILES:
        raise EngineError(f"{id}: has {len(files):,} files, and {MOST_FILES:,} are the most; choose another model")
    secrets = _secrets()
    if wrong := next((file.name for file in files if not secrets.is_harmless(ForeignText(file.name))), ""):
        raise EngineError(f"{id}: the hub says that it has {_shown(wrong)}, which cannot be a file; {AGAIN}")
    return Repository(
        id=answer.id,
        revision=answer.sha,
        files=files,
        licence=_licence_of(answer.card_data if isinstance(answer.card_data, dict) else {}, answer.tags or ()),
        gated=bool(answer.gated),
        parameters=answer.safetensors.total if answer.safetensors else 0,
    )


def _formed(form: re.Pattern[str], text: str, id: str, field: str) -> str:
    if not form.fullmatch(text) or not _secrets().is_harmless(ForeignText(text)):
        raise EngineError(f"{id}: the hub says that {field} is {_shown(text)}, which cannot be one; {AGAIN}")
    return text


def _shown(foreign: object) -> str:
    """A stranger's words in a message: on one line, not many, and without the user's token."""
    text = repr(foreign) if isinstance(foreign, str) else str(foreign)
    shown = _secrets().shown(ForeignText(text), SHOWN + 1)
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"


def _secrets() -> Secrets:
    """What the hub is told of the user."""
    return Secrets([library().utils.build_hf_headers().get("authorization", "")])


def is_wanted(name: str) -> bool:
    """What is read of a model: no code, no pickles, and no folders, which hold other formats."""
    is_weights = name.endswith(WEIGHTS) and "/" not in name and not name.startswith(".")
    return name in LARGEST or is_weights or bool(GGUF.fullmatch(name))


def _file_of(sibling: _Sibling, id: str) -> RepositoryFile:
    name, size = sibling.rfilename, sibling.size
    if size is None:
        raise EngineError(f"{id}: the hub does not say how large {_shown(name)} is, so it is not loaded; {AGAIN}")
    if size > (limit := LARGEST.get(name, size)):
        raise EngineError(f"{id}: {name} has {size:,} bytes, and {limit:,} are read at most; choose another model")
    digest = sibling.lfs.sha256 if sibling.lfs else sibling.blob_id or ""
    return RepositoryFile(name, size, digest and _formed(HASH, digest, id, f"the checksum of {_shown(name)}"))


def _licence_of(card: Mapping[object, object], tags: Iterable[str]) -> str:
    """As the model's card states it, or "" if it does not, or not in the words of a licence's name."""
    licence = card.get("license")
    if licence in (None, "other"):
        licence = card.get("license_name") or licence
    tagged = (tag.removeprefix("license:") for tag in tags if tag.startswith("license:"))
    stated = licence or next(tagged, "")
    if not isinstance(stated, str) or not LICENCE.fullmatch(stated):
        return ""
    return stated if _secrets().is_harmless(ForeignText(stated)) else ""


def _cached(id: str, revision: str) -> Repository:
    """What an earlier program loaded, because HF_HUB_OFFLINE forbids to ask."""
    hub = library()
    try:
        folder = Path(hub.snapshot_download(id, revision=revision or None, local_files_only=True))
    except OSError as error:
        raise EngineError(
            f"HF_HUB_OFFLINE is set, and {id} is not in the cache ({hub.constants.HF_HUB_CACHE}): unset it, or give "
            "the folder of a model"
        ) from error
    paths = [path for path in sorted(folder.iterdir()) if path.is_file() and is_wanted(path.name)]
    files = tuple(RepositoryFile(path.name, path.stat().st_size) for path in paths)
    return Repository(id, folder.name, files, folder=folder)


def fetch(
    repository: Repository,
    file: RepositoryFile,
    folder: Path,
    report: Report,
    copy: Path | None = None,
    clock: Clock = time.monotonic,
) -> Path:
    """The file in the folder. It has its name only once it is whole and its checksum is right. `copy` is one that
    may be on this machine, and is checked like what is loaded."""
    target, part = places.inside(folder, file.name), places.inside(folder, f"{file.name}.part")
    if target.exists():
        return target
    if not part.exists() and (copy := _near(repository, file, copy)):
        shutil.copyfile(copy, part)
    with _explained(repository.id):
        pace = _DownloadPace(f"{repository.id}: {file.name}", clock)
        while present(part) < file.size and _transfer(repository, file, part, pace, report):
            pass
    if present(part) != file.size or (file.digest and _digest(part, len(file.digest)) != file.digest):
        part.unlink(missing_ok=True)
        raise EngineError(
            f"{file.name} of {repository.id} arrived damaged: it is not the {file.size:,} bytes ({file.digest[:12]}…) "
            "that the hub announced, so it was removed: run the command again"
        )
    part.touch()  # an empty file
    return part.replace(target)


def head(repository: Repository, file: RepositoryFile, size: int) -> bytes:
    """The first bytes of a file, at most as many as it has."""
    size, id = min(size, file.size), repository.id
    path = f"{id}/resolve/{repository.revision}/{quote(file.name)}"
    with _explained(id), _opened(path, id, repository.revision, stop=size) as response:
        data = _first_bytes(response, id, _DownloadPace(f"{id}: {file.name}"), size)
    if len(data) < size:
        raise EngineError(f"{id}: of {file.name} arrived {len(data):,} bytes, and no more; {AGAIN}")
    return data


def _near(repository: Repository, file: RepositoryFile, copy: Path | None) -> Path | None:
    cached = library().try_to_load_from_cache(repository.id, file.name, revision=repository.revision)
    candidates = (copy, Path(cached) if isinstance(cached, str) else None)
    return next((path for path in candidates if path and path.is_file() and path.stat().st_size == file.size), None)


class _DownloadPace:
    """Ends a transfer that hardly moves, over however many connections."""

    def __init__(self, about: str, clock: Clock = time.monotonic) -> None:
        self._about = about
        self._clock = clock
        self._since = clock()
        self._bytes = 0

    def add(self, count: int) -> None:
        self._bytes += count
        if (time := self._clock()) - self._since < WINDOW_SECONDS:
            return
        if self._bytes < SLOWEST_BYTES:
            raise EngineError(
                f"{self._about} hardly arrives: {self._bytes:,} bytes in {time - self._since:.0f} s: check the "
                "connection, and run the command again"
            )
        self._since, self._bytes = time, 0


def _transfer(repository: Repository, file: RepositoryFile, part: Path, pace: _DownloadPace, report: Report) -> bool:
    """Adds to the part until the connection ends or has brought too much; whether it has become longer."""
    path = f"{repository.id}/resolve/{repository.revision}/{quote(file.name)}"
    with part.open("ab") as output:
        start = size = output.tell()
        try:
            with _opened(path, repository.id, repository.revision, size) as response:
                if response.status_code == 416:  # all that the hub has is here
                    return False
                if size and response.status_code != 206:
                    size = output.truncate(0)
                for piece in _pieces(response, repository.id, pace):
                    output.write(piece)
                    size += len(piece)
                    report(min(size / max(file.size, 1), 1.0), file.name)
                    if size > file.size:
                        break
        except OSError as error:
            raise _full_disk(error, part, file.size - size) from error
        except library().errors.HTTPError as error:
            if size <= start:
                raise EngineError(
                    f"{repository.id}: {file.name} was interrupted after {megabytes(size)} of {megabytes(file.size)} "
                    f"({_shown(error)}): run the command again, it resumes there"
                ) from error
    return size > start


@contextmanager
def _opened(path: str, id: str, revision: str, resume: int = 0, stop: int = 0) -> "Iterator[Response]":
    """The hub's answer from the byte `resume` on, up to `stop` if that is not 0, wherever it leads for it, before its
    body is read."""
    hub = library()
    ranged = {"Range": f"bytes={resume}-{stop - 1 if stop else ''}"} if resume or stop else {}
    client = hub.get_session()
    request = client.build_request(
        "GET",
        f"{hub.constants.ENDPOINT}/{path}",
        headers={**hub.utils.build_hf_headers(), **ranged, "Accept-Encoding": "identity"},
        timeout=hub.constants.HF_HUB_DOWNLOAD_TIMEOUT,
    )
    for _ in range(MOST_REDIRECTS):
        response = client.send(request, stream=True, follow_redirects=False)
        try:
            if response.next_request is None:
                _check_status(response, id, revision)
                yield response
                return
            request = response.next_request
            check_target(request, id)
        finally:
            response.close()
    raise EngineError(f"{id}: the hub leads from address to address, more than {MOST_REDIRECTS} times; {AGAIN}")


def check_target(request: "Request", id: str) -> None:
    """A hub may keep its files elsewhere, but not on this machine, nor where others can change them on their way."""
    hub, target = str(library().constants.ENDPOINT), str(request.url)
    place = f"{request.url.scheme}://{request.url.host}"
    if not target.startswith("https:") and hub.startswith("https:"):
        raise EngineError(f"{id}: the hub leads to {_shown(place)}, which is not encrypted; {AGAIN}")
    if is_here(target) and not is_here(hub):
        raise EngineError(f"{id}: the hub leads to this machine ({_shown(place)}); {AGAIN}")


def _check_status(response: "Response", id: str, revision: str) -> None:
    """The hub's refusals in sentences, with what to do about them. What else it writes about them is not read."""
    status, code = response.status_code, response.headers.get("X-Error-Code", "")
    if status < 400 or status == 416:
        return
    if code == "GatedRepo":
        raise EngineError(
            f"{id} asks you to accept its terms first: do so at https://huggingface.co/{id}, create a token at "
            f"{TOKENS_PAGE}, set HF_TOKEN to it, and run the command again"
        )
    if code == "RevisionNotFound":
        raise EngineError(f"{id} has no revision {revision}: leave out --revision for its newest")
    if code == "RepoNotFound" or status == 401:
        raise EngineError(
            f"the hub has no {id}, or it is private: look at https://huggingface.co/models, or set HF_TOKEN"
        )
    raise EngineError(f"the hub refuses {id} (HTTP {status}): try again later")


def _pieces(response: "Response", id: str, pace: _DownloadPace) -> Iterator[bytes]:
    """The body as it is sent: what is packed could be a thousand times as long."""
    if (coding := response.headers.get("Content-Encoding", "identity")) != "identity":
        raise EngineError(f"{id}: the hub sends it packed ({_shown(coding)}), which was not asked for; {AGAIN}")
    for piece in response.iter_raw():
        yield piece
        pace.add(len(piece))


def _first_bytes(response: "Response", id: str, pace: _DownloadPace, most: int) -> bytes:
    data = bytearray()
    for piece in _pieces(response, id, pace):
        data += piece
        if len(data) >= most:
            break
    return bytes(data[:most])


def present(part: Path) -> int:
    """The bytes that have arrived."""
    return part.stat().st_size if part.exists() else 0


def _full_disk(error: OSError, part: Path, missing: int) -> Exception:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return error
    return EngineError(
        f"{part.parent}: the disk is full, {megabytes(missing)} short: free as much and run the command again"
    )


def _digest(path: Path, length: int) -> str:
    """SHA-256 if that long, else git's hash of a file."""
    header = b"blob %d\0" % path.stat().st_size
    begun = hashlib.sha256 if length == 64 else lambda: hashlib.sha1(header, usedforsecurity=False)
    with path.open("rb") as file:
        return hashlib.file_digest(file, begun).hexdigest()


@contextmanager
def _explained(id: str) -> Iterator[None]:
    """What prevents to ask the hub, in sentences."""
    errors = library().errors
    try:
        yield
    except ValueError as error:
        raise EngineError(f"{id} cannot be asked for: {str(error).splitlines()[0]}") from error
    except errors.HTTPError as error:
        raise EngineError(
            f"the hub cannot be reached ({_shown(error)}): check the connection, or give a folder that has the model"
        ) from error


def megabytes(size: float) -> str:
    """
    >>> megabytes(987_654_321), megabytes(12_345_678_900), megabytes(2345)
    ('988 MB', '12.3 GB', '0 MB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 9.95e9 else f"{size / 1e6:,.0f} MB"
