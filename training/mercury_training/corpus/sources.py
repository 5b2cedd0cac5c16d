"""The sources of text: bare git mirrors, installed packages and wheels, read in place without a checkout."""

import os
import subprocess
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from email.parser import HeaderParser
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from msgspec import Struct

from mercury_training.corpus import licences

LANGUAGE_OF_SUFFIX = {
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), "javascript"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hpp", ".hh"), "cpp"),
    **dict.fromkeys((".sh", ".bash", ".zsh"), "bash"),
    **dict.fromkeys((".yaml", ".yml"), "yaml"),
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".kt", ".kts"), "kotlin"),
    ".cs": "csharp",
    ".go": "go",
    ".java": "java",
    ".json": "json",
    ".lua": "lua",
    ".md": "markdown",
    ".rs": "rust",
    ".toml": "toml",
    ".ts": "typescript",
    ".tsx": "tsx",
}

COMMON_WORDS = frozenset(
    {"algorithms", "continue", "go", "javascript", "mesa", "python", "rust", "salt", "sweep", "typescript", "zed"}
)
"""Reserved repositories whose names are ordinary words: a folder of that name elsewhere is not a copy of them."""

NEVER_PERMISSIVE = ("nvidia", "cuda", "certifi")
LARGEST = 300_000
MEMBERS = 40_000


class CorpusSource(Struct, frozen=True):
    """One repository, package or folder. `name` is `owner/name` or `pypi/name`; `revision` a commit or a version."""

    name: str
    kind: Literal["git", "installed", "wheel", "folder"]
    location: str
    revision: str

    @property
    def key(self) -> str:
        return self.name.replace("/", "+")


class SourceFile(Struct, frozen=True):
    """A text file in a known language, with the licence of its folder (None: not permissive)."""

    path: str
    language: str
    licence: str | None
    data: bytes


def language_of(path: str) -> str | None:
    return LANGUAGE_OF_SUFFIX.get(PurePosixPath(path).suffix.lower())


def reserved_names(listing: str) -> frozenset[str]:
    """Lower-case `owner/name` and plain names of a list of repositories; `#` begins a comment."""
    lines = [line.strip().lower() for line in listing.splitlines() if line.strip() and not line.startswith("#")]
    return frozenset(lines) | {line.rpartition("/")[2] for line in lines}


def is_reserved(path: str, reserved: frozenset[str]) -> bool:
    """True if a file lies in a folder, or is a module, named like a reserved repository: a copy inside another."""
    parts = [part.lower() for part in PurePosixPath(path).with_suffix("").parts]
    return not (reserved - COMMON_WORDS).isdisjoint(parts)


def discover(
    mirrors: Iterable[str], site_packages: Iterable[str], wheels: Iterable[str], reserved: frozenset[str]
) -> list[CorpusSource]:
    """Every source below the given folders, repositories before packages, without the reserved ones.

    A package whose repository is there too is left to near-duplicate removal, which drops later sources.
    """
    sources = [source for folder in mirrors for source in _mirrors(Path(folder))]
    sources += [source for folder in wheels for source in _wheels(Path(folder))]
    sources += [source for folder in site_packages for source in _installed(folder)]
    unique: dict[str, CorpusSource] = {}
    for source in sources:
        owner, _, name = source.name.lower().partition("/")
        if name in reserved - COMMON_WORDS or f"{owner}/{name}" in reserved or (owner == "pypi" and name in reserved):
            continue
        if not name.startswith(NEVER_PERMISSIVE):
            unique.setdefault(source.name.lower(), source)
    return list(unique.values())


def files(source: CorpusSource, stated: str | None = None) -> Iterator[SourceFile]:
    """The source's files of known languages and reasonable size; `stated` overrides the licence found at its root."""
    reader: Callable[[CorpusSource, str | None], Iterator[SourceFile]] = {
        "git": _git_files,
        "installed": _installed_files,
        "wheel": _wheel_files,
        "folder": _folder_files,
    }[source.kind]
    return reader(source, stated)


def git(repository: str, *arguments: str) -> bytes:
    command = ["git", "-c", "safe.directory=*", "-C", repository, *arguments]
    return subprocess.run(command, check=True, capture_output=True, env=_plain_environment()).stdout


def _plain_environment() -> dict[str, str]:
    """The environment without variables that redirect git to another repository, as set in hooks."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


@contextmanager
def blobs(repository: str) -> Iterator[Callable[[str], bytes | None]]:
    """A function from object ids to their bytes, None if the mirror lacks the object."""
    command = ["git", "-c", "safe.directory=*", "-C", repository, "cat-file", "--batch"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_plain_environment()
    ) as process:
        request, reply = process.stdin, process.stdout
        assert request
        assert reply
        yield lambda name: _blob(request, reply, name)
        request.close()


def _blob(request: IO[bytes], reply: IO[bytes], name: str) -> bytes | None:
    request.write(name.encode() + b"\n")
    request.flush()
    header = reply.readline().split()
    if len(header) != 3:
        return None
    data = reply.read(int(header[2]))
    reply.read(1)
    return data


def _mirrors(folder: Path) -> Iterator[CorpusSource]:
    """Bare mirrors laid out as `owner+name/repo`."""
    for mirror in sorted(folder.glob("*+*/repo")):
        head = git(str(mirror), "rev-parse", "HEAD").decode().strip()
        yield CorpusSource(mirror.parent.name.replace("+", "/", 1), "git", str(mirror), head)


def _installed(folder: str) -> Iterator[CorpusSource]:
    for distribution in sorted(distributions(path=[folder]), key=lambda distribution: distribution.name.lower()):
        yield CorpusSource(f"pypi/{distribution.name.lower()}", "installed", folder, distribution.version)


def _wheels(folder: Path) -> Iterator[CorpusSource]:
    for wheel in sorted(folder.glob("*.whl")):
        name, version = wheel.name.split("-")[:2]
        yield CorpusSource(f"pypi/{name.lower().replace('_', '-')}", "wheel", str(wheel), version)


def _git_files(source: CorpusSource, stated: str | None) -> Iterator[SourceFile]:
    entries = tree(source.location, source.revision)
    with blobs(source.location) as read:
        texts = {
            path: (read(name) or b"").decode("utf-8", "replace")
            for path, name in entries
            if licences.is_licence_file(PurePosixPath(path).name)
        }
        inherited = licence_of_folder(texts, stated)
        for path, name in entries:
            language = language_of(path)
            data = read(name) if language else None
            if language and data is not None:
                yield SourceFile(path, language, inherited(path), data)


def tree(repository: str, revision: str) -> list[tuple[str, str]]:
    """Paths and object ids of regular files."""
    entries = []
    for line in git(repository, "ls-tree", "-r", "-z", revision).split(b"\0")[:-1]:
        meta, _, path = line.partition(b"\t")
        mode, _, name = meta.decode().split()
        if mode.startswith("100"):
            entries.append((path.decode("utf-8", "replace"), name))
    return entries


def licence_of_folder(texts: dict[str, str], stated: str | None) -> Callable[[str], str | None]:
    """The licence of the nearest parent folder with licence files."""
    by_folder: dict[str, list[str]] = {}
    for path, text in texts.items():
        by_folder.setdefault(str(PurePosixPath(path).parent), []).append(text)
    licence_of = {folder: licences.of_texts(texts) for folder, texts in by_folder.items()}
    if stated:
        licence_of["."] = licences.permitted(stated)

    def inherited(path: str) -> str | None:
        return next(
            (licence_of[str(folder)] for folder in PurePosixPath(path).parents if str(folder) in licence_of), None
        )

    return inherited


def _folder_files(source: CorpusSource, stated: str | None) -> Iterator[SourceFile]:
    root = Path(source.location)
    located = {str(path.relative_to(root)): path for path in sorted(root.rglob("*")) if path.is_file()}
    texts = {
        name: path.read_text("utf-8", "replace")
        for name, path in located.items()
        if licences.is_licence_file(path.name)
    }
    inherited = licence_of_folder(texts, stated)
    for name, path in located.items():
        if (language := language_of(name)) and not path.is_symlink() and path.stat().st_size <= LARGEST:
            yield SourceFile(name, language, inherited(name), path.read_bytes())


def _installed_files(source: CorpusSource, stated: str | None) -> Iterator[SourceFile]:
    distribution = next(iter(Distribution.discover(name=source.name.removeprefix("pypi/"), path=[source.location])))
    members = [member for member in distribution.files or () if not str(member).startswith("..")][:MEMBERS]
    located = {str(member): Path(str(member.locate())) for member in members}
    texts = {
        name: path.read_text("utf-8", "replace")
        for name, path in located.items()
        if licences.is_licence_file(path.name) and path.is_file()
    }
    inherited = _licence_of_package(distribution.read_text("METADATA") or "", texts, stated)
    for name, path in located.items():
        if (language := language_of(name)) and path.is_file() and path.stat().st_size <= LARGEST:
            yield SourceFile(name, language, inherited(name), path.read_bytes())


def _wheel_files(source: CorpusSource, stated: str | None) -> Iterator[SourceFile]:
    with zipfile.ZipFile(source.location) as wheel:
        members = [member for member in wheel.infolist() if member.file_size <= LARGEST][:MEMBERS]
        texts = {
            member.filename: wheel.read(member).decode("utf-8", "replace")
            for member in members
            if licences.is_licence_file(PurePosixPath(member.filename).name)
        }
        metadata = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        inherited = _licence_of_package(wheel.read(metadata).decode("utf-8", "replace"), texts, stated)
        for member in members:
            if language := language_of(member.filename):
                yield SourceFile(member.filename, language, inherited(member.filename), wheel.read(member))


def _licence_of_package(metadata: str, texts: dict[str, str], stated: str | None) -> Callable[[str], str | None]:
    """The licence stated by the package, for folders without their own licence files."""
    licence = stated or licences.of_metadata(HeaderParser().parsestr(metadata), texts)
    inside = {path: text for path, text in texts.items() if ".dist-info/" not in path}
    return licence_of_folder(inside, licence) if licence else lambda path: None
