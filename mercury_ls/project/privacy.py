"""Privacy: which files are never read."""

import os
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.redaction import ForeignText
from mercury_ls.code.files import read_small
from mercury_ls.project.ignore import IgnoreRule, Rules
from mercury_ls.project.repository import exclude_file, git_directory, personal_exclude_file, top_of
from mercury_ls.settings.schema import PrivacySettings
from mercury_ls.wording import quoted

SECRET_FILES = (
    ".env*",
    "*.env",
    "!.env.example",
    "!.env.sample",
    "!.env.template",
    "!.env.dist",
    "!example.env",
    "!sample.env",
    "*.pem",
    "*.key",
    "*.p8",
    "*.p12",
    "*.pfx",
    "*.pkcs12",
    "*.ppk",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ovpn",
    "*.asc",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "credentials",
    "credentials.*",
    "*[-_]credentials",
    "*credentials*.json",
    "*credentials*.toml",
    "*credentials*.y*ml",
    "*credentials*.ini",
    "*credentials*.csv",
    ".credentials*",
    ".git-credentials",
    "client_secret*.json",
    "secret.*",
    "secrets.*",
    ".secret*",
    "*service[-_]account*.json",
    "serviceaccount*.json",
    "*firebase-adminsdk*.json",
    "local.settings.json",
    "appsettings.*.json",
    "key.properties",
    "keystore.properties",
    "passwords.txt",
    "token.json",
    "auth.json",
    "!**/locales/**/auth.json",
    "**/secrets/**/*.json",
    "**/secrets/**/*.y*ml",
    "**/secrets/**/*.toml",
    "**/secrets/**/*.ini",
    "**/secrets/**/*.conf",
    "**/secrets/**/*.properties",
    "**/secrets/**/*.xml",
    "**/secrets/**/*.csv",
    "**/secrets/**/*.txt",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".yarnrc*",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    ".htpasswd",
    "*htpasswd",
    ".dockercfg",
    ".dockerconfigjson",
    "**/.docker/config.json",
    "**/.kube/config",
    "kubeconfig",
    "*.kubeconfig",
    "**/gh/hosts.yml",
    "rclone.conf",
    "pip.conf",
    "pip.ini",
    ".vault[-_]*",
    "*vault[-_]pass*",
    "*.tfvars",
    "*.tfvars.json",
    "*.tfstate*",
    ".terraformrc",
    "terraform.rc",
    ".*_history",
)
"""Code *about* credentials (`CredentialsService.ts`, `secrets/manager.py`) stays readable, but `credentials.py` does
not."""

IGNORE_FILES = (".gitignore", ".mercuryignore")

SECRET_FOLDERS = (".aws/", ".azure/", ".envs/", ".git/", ".gnupg/", ".ssh/", "**/.config/gcloud/")
"""Folders whose files are never read."""

NO_RULES = Rules(())

LARGEST_IGNORE_FILE = 1 << 18
LARGEST_CACHE = 8192
RACY_NS = 2_000_000_000
"""A change this soon after the last check may not change the timestamp: FAT has a resolution of two seconds."""


class _IgnoreFile(Struct, frozen=True):
    """An ignore file as it was at the last check; `error` says why its rules are unknown."""

    path: str
    rules: Rules
    stamp: tuple[int, ...] = ()
    looked: int = 0
    error: str = ""


class _Folder(Struct, frozen=True):
    """A folder as it was at the last check. `files` are .gitignore, .mercuryignore, then git's other ignore files."""

    path: str
    real: str
    files: tuple[_IgnoreFile, ...]
    stamp: tuple[int, ...]
    looked: int


class Privacy:
    """Judges paths by the current rules: each call checks whether the ignore files have changed.

    With `ignore_case`, patterns match in any case, as git does where the file system ignores case.
    """

    def __init__(
        self,
        settings: PrivacySettings,
        roots: Sequence[str | Path] = (),
        clock_ns: Callable[[], int] = time.time_ns,
        ignore_case: bool = False,
    ) -> None:
        self._ignore_case = ignore_case
        self._respects_ignore_files = settings.respect_ignore_files
        self._roots = sorted({os.path.abspath(root) for root in roots}, key=lambda root: (len(root), root))
        self._clock_ns = clock_ns
        patterns = settings.secret_patterns
        self._secret_files = Rules((*SECRET_FILES, *(p for p in patterns if not p.endswith("/"))), ignore_case=True)
        self._secret_folders = Rules((*SECRET_FOLDERS, *(p for p in patterns if p.endswith("/"))), ignore_case=True)
        self._ignore = Rules(settings.ignore, ignore_case=ignore_case)
        self._personal = personal_exclude_file()
        self._tops: dict[str, str | None] = {}
        self._folders: dict[str, _Folder] = {}
        self._names: dict[tuple[str, bool], str | None] = {}
        self._verdicts: dict[str, tuple[list[Rules], str | None]] = {}

    def why_hidden(self, path: str | Path, is_folder: bool = False) -> str | None:
        """The rule that hides this file, in words; None if it may be read. For a link, its target is judged too.

        A relative path is the name of a buffer without a file; only its name is judged.
        """
        path = os.fspath(path)
        try:
            return self._why_hidden(path, is_folder)
        except (OSError, ValueError, RecursionError) as error:
            return f"its privacy cannot be determined ({error})"

    def _why_hidden(self, path: str, is_folder: bool) -> str | None:
        if not os.path.isabs(path):
            return self._by_name(path, is_folder)
        path = os.path.normpath(path)
        if reason := self._judge(path, is_folder):
            return reason
        target = self._target(path)
        if target == path or not (reason := self._judge(target, is_folder)):
            return None
        return f"{reason} (it is a link to {target})"

    def _judge(self, path: str, is_folder: bool) -> str | None:
        return self._by_name(path, is_folder) or self._by_ignore_file(path, is_folder)

    def _target(self, path: str) -> str:
        parent, name = os.path.split(path)
        if os.path.islink(path):
            return os.path.realpath(path)
        return os.path.join(self._folder(parent).real, name)

    def _by_name(self, path: str, is_folder: bool) -> str | None:
        """Why the settings or the secret patterns hide the path or a folder above it."""
        key = path, is_folder
        if key not in self._names:
            parent = os.path.dirname(path)
            above = self._by_name(parent, True) if parent != path else None
            _remember(self._names, key, above or self._own_name(path, is_folder))
        return self._names[key]

    def _own_name(self, path: str, is_folder: bool) -> str | None:
        secret = self._last(self._secret_folders if is_folder else self._secret_files, path, is_folder)
        if secret and secret.hides:
            return f"secret pattern {quoted(ForeignText(secret.text))}"
        rule = self._last(self._ignore, path, is_folder)
        return f"privacy.ignore {quoted(ForeignText(rule.text))}" if rule and rule.hides else None

    def _last(self, rules: Rules, path: str, is_folder: bool) -> IgnoreRule | None:
        """The last rule that matches the path relative to a root, or to the root of the file system."""
        places = [_relative_to(root, path) for root in self._roots if _contains(root, path)]
        candidates = [
            *places,
            _relative_to(os.path.splitdrive(path)[0] + os.sep, path) if os.path.isabs(path) else path,
        ]
        matching = [rule for place in candidates if (rule := rules.find(place, is_folder))]
        return max(matching, key=lambda rule: rule.line, default=None)

    def _by_ignore_file(self, path: str, is_folder: bool) -> str | None:
        parent = os.path.dirname(path)
        top = self._top(parent)
        if not self._respects_ignore_files or top is None or path == top:
            return None
        return self._verdict(path, is_folder, [self._folder(folder) for folder in _folders_between(top, parent)])

    def _top(self, folder: str) -> str | None:
        """The outermost folder whose ignore files count: the top of the repository around the root or the folder."""
        if folder not in self._tops:
            root = next((root for root in self._roots if _contains(root, folder)), None)
            _remember(self._tops, folder, top_of(root or folder) or root)
        return self._tops[folder]

    def _verdict(self, path: str, is_folder: bool, folders: list[_Folder]) -> str | None:
        """The verdict, cached for as long as the rules of all folders above stay the same."""
        rules = [file.rules for folder in folders for file in folder.files]
        verdict = self._verdicts.get(path)
        if verdict is None or verdict[0] != rules:
            above = self._verdict(folders[-1].path, True, folders[:-1]) if len(folders) > 1 else None
            verdict = rules, above or _decide(path, is_folder, folders)
            _remember(self._verdicts, path, verdict)
        return verdict[1]

    def _folder(self, path: str) -> _Folder:
        stamp = _stamp_of(path)
        cached = self._folders.get(path)
        if cached is None or _has_changed(cached, stamp):
            folder = self._look(path, stamp, cached.files if cached else ())
        else:
            folder = self._refreshed(cached)
        if folder is not cached:
            _remember(self._folders, path, folder)
        return folder

    def _look(self, path: str, stamp: tuple[int, ...], before: tuple[_IgnoreFile, ...]) -> _Folder:
        looked = self._clock_ns()
        directory = git_directory(path)
        shared = (exclude_file(directory), self._personal) if directory else ()
        by_path = {file.path: file for file in before}
        names = (*(os.path.join(path, name) for name in IGNORE_FILES), *shared)
        files = tuple(self._fresh(by_path.get(name) or _IgnoreFile(name, NO_RULES)) for name in names)
        return _Folder(path, os.path.realpath(path), files, stamp, looked)

    def _refreshed(self, folder: _Folder) -> _Folder:
        """The folder with its changed ignore files read again; none was added or removed."""
        own = (file if not file.stamp else self._fresh(file) for file in folder.files[:2])
        files = (*own, *map(self._fresh, folder.files[2:]))
        return folder if files == folder.files else replace(folder, files=files)

    def _fresh(self, file: _IgnoreFile) -> _IgnoreFile:
        stamp = _stamp_of(file.path)
        if not _has_changed(file, stamp):
            return file
        looked = self._clock_ns()
        try:
            lines, error = _read_lines(file.path), ""
        except OSError as problem:
            lines, error = (
                ("*",),
                f"cannot be read ({problem.strerror or problem}), so everything in its folder is hidden",
            )
        is_unchanged = lines == file.rules.lines and error == file.error
        rules = file.rules if is_unchanged else Rules(lines, ignore_case=self._ignore_case)
        return _IgnoreFile(file.path, rules, stamp, looked, error)


def _has_changed(previous: _Folder | _IgnoreFile, stamp: tuple[int, ...]) -> bool:
    """True if the file has changed, or may have changed, since the last check."""
    return stamp != previous.stamp or bool(stamp and previous.looked - stamp[0] < RACY_NS)


def _stamp_of(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # an untrusted file may name an impossible path
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev


def _read_lines(path: str) -> tuple[str, ...]:
    try:
        content = read_small(path, LARGEST_IGNORE_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n"))


def _decide(path: str, is_folder: bool, folders: list[_Folder]) -> str | None:
    """What git's and our ignore files say about this one path. For each kind, the nearest file with a match decides."""
    near = [(folder.path, folder.files) for folder in reversed(folders)]
    git = [(base, files[0]) for base, files in near] + [(base, file) for base, files in near for file in files[2:]]
    mercury = [(base, files[1]) for base, files in near]
    return _first_match(git, path, is_folder) or _first_match(mercury, path, is_folder)


def _first_match(files: list[tuple[str, _IgnoreFile]], path: str, is_folder: bool) -> str | None:
    for base, file in files:
        rule = file.rules.find(_relative_to(base, path), is_folder)
        if rule is not None:
            why = file.error or f"line {rule.line}: {quoted(ForeignText(rule.text))}"
            return f"{file.path} {why}" if rule.hides else None
    return None


def _contains(root: str, path: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def _relative_to(base: str, path: str) -> str:
    return path[len(base) :].replace(os.sep, "/").lstrip("/")


def _folders_between(top: str, folder: str) -> list[str]:
    """The folders from `top` down to `folder`, both included."""
    line = [folder]
    while line[-1] != top:
        line.append(os.path.dirname(line[-1]))
    return line[::-1]


def _remember(cache: dict, key: Hashable, value: Any) -> None:
    if len(cache) >= LARGEST_CACHE:
        cache.clear()
    cache[key] = value
