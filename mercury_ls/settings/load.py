"""Settings from every source, later ones winning; what is wrong is reported, everything else applies."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct

from mercury_ls.settings import schema as tree
from mercury_ls.settings.schema import (
    ContextSettings,
    EngineSettings,
    LogSettings,
    PrivacySettings,
    RecordSettings,
    Setting,
    Settings,
    SuggestSettings,
)

__all__ = [
    "ContextSettings",
    "Effective",
    "EngineSettings",
    "Loaded",
    "LogSettings",
    "PrivacySettings",
    "Problem",
    "RecordSettings",
    "Settings",
    "SuggestSettings",
    "effective",
    "is_local",
    "load",
    "project_files",
    "user_file",
]

PROJECT_FILE = ".mercury.toml"
DEEPEST = 8
MOST_PROBLEMS = 16
LONGEST_SHOWN = 80

COPILOT_KEYS = frozenset(
    {
        "editorConfiguration",
        "editorInfo",
        "editorPluginInfo",
        "github",
        "github-enterprise",
        "http",
        "telemetry",
    }
)
"""What clients of the Copilot dialect put beside our settings: not ours to judge."""


class Problem(Struct, frozen=True):
    """One value that was not applied."""

    path: str
    value: str
    remedy: str
    origin: str

    def __str__(self) -> str:
        return f"{self.origin}: {self.path}{self.assigned}: {self.remedy}"

    @property
    def assigned(self) -> str:
        return f" = {self.value}" if self.value else ""


class Loaded(Struct, frozen=True):
    settings: Settings = Settings()
    origins: dict[str, str] = {}
    problems: tuple[Problem, ...] = ()


class Effective(Struct, frozen=True):
    """One value in force, for `mercury-ls config`."""

    path: str
    value: Any
    origin: str


class Source(Struct, frozen=True, kw_only=True):
    """One place that settings come from. Texts from a `typed` one are parsed: it has nothing else."""

    origin: str
    values: tuple[tuple[str, Any], ...] = ()
    problems: tuple[Problem, ...] = ()
    is_project: bool = False
    is_typed: bool = False


def load(
    user_file: Path | None = None,
    project_files: Sequence[Path] = (),
    options: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Loaded:
    """Read everything, always: settings are replaced, never changed. `project_files` go from far to near."""
    sources = [
        *([file_source(user_file, "user file")] if user_file else []),
        *(file_source(path, "project file") for path in project_files),
        editor_source(options or {}),
        *environment_sources(environ or {}),
        Source(origin="command line", values=tuple(flatten(arguments or {})), is_typed=True),
    ]
    loading = Loading()
    for source in sources:
        loading.read(source)
    loading.forbid_network()
    return loading.loaded()


def effective(loaded: Loaded) -> list[Effective]:
    """Every value in force with where it came from, entries of tables one by one."""
    rows = []
    for path in tree.settings():
        group, name = path.split(".")
        value = getattr(getattr(loaded.settings, group), name)
        entries = {f"{path}.{key}": entry for key, entry in value.items()} if isinstance(value, dict) else {}
        for leaf, entry in (entries or {path: value}).items():
            rows.append(Effective(leaf, entry, loaded.origins.get(leaf, "default")))
    return rows


def user_file() -> Path:
    import platformdirs

    return platformdirs.user_config_path("mercury-ls", appauthor=False) / "config.toml"


def project_files(roots: Iterable[str | Path]) -> list[Path]:
    """The project files of workspace folders; inner folders come later, and so win over outer ones."""
    found = {Path(root) / PROJECT_FILE for root in roots}
    return sorted((path for path in found if os.path.lexists(path)), key=lambda path: (len(path.parts), path))


def is_local(address: str) -> bool:
    """Does this engine address stay on the machine?"""
    import ipaddress
    from urllib.parse import urlsplit

    host = urlsplit(address).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# Sources


def file_source(path: Path, kind: str) -> Source:
    from mercury_ls.settings import toml

    origin = f"{kind} {path}"
    try:
        table = toml.read(path)
    except FileNotFoundError:
        return Source(origin=origin)
    except toml.UnreadableError as error:
        return Source(origin=origin, problems=(Problem(error.where, "", error.remedy, origin),))
    return Source(origin=origin, values=tuple(flatten(table)), is_project=kind == "project file")


def editor_source(options: Mapping[str, Any]) -> Source:
    """`{"mercury": {"engine": …}}`, `{"engine": …}` or `{"mercury.engine.model": …}`; camelCase will do.

    Beside a `mercury` key stand the sections of other servers: of these only our own groups are read.
    """
    origin = "editor settings"
    if not isinstance(options, Mapping):
        problem = Problem("", shorten(options), "must be a table of settings", origin)
        return Source(origin=origin, problems=(problem,))
    leaves = list(flatten(options))
    if any(key.split(".")[0] == "mercury" for key in options):
        bare = [(path, raw) for path, raw in leaves if path.split(".")[0] in Settings.__struct_fields__]
        own = [(path, raw) for path, raw in leaves if path.startswith("mercury.")]
        leaves = bare + [(path.removeprefix("mercury."), raw) for path, raw in own]
    ours = ((path, raw) for path, raw in leaves if path.split(".")[0] not in COPILOT_KEYS)
    return Source(origin=origin, values=tuple((snake_case_path(path), raw) for path, raw in ours))


def snake_case_path(path: str) -> str:
    group, _, rest = path.partition(".")
    name, dot, entry = rest.partition(".")
    return ".".join([group, *([snake_case(name) + dot + entry] if rest else [])])


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), name)


def environment_sources(environ: Mapping[str, str]) -> Iterator[Source]:
    """`MERCURY_ENGINE_MODEL` is `engine.model`. Only likely names are ours, there are other Mercuries."""
    for name in sorted(environ):
        group, _, rest = name.removeprefix("MERCURY_").lower().partition("_")
        path = f"{group}.{rest}"
        is_set = name.startswith("MERCURY_") and environ[name]
        if is_set and (group in Settings.__struct_fields__ or nearest_setting(path, 0.85)):
            yield Source(origin=f"environment {name}", values=((path, environ[name]),), is_typed=True)


def flatten(table: Mapping[str, Any], prefix: str = "", depth: int = DEEPEST) -> Iterator[tuple[str, Any]]:
    """Dotted paths with their values. JSON's null means: not set. What nests deeper than any setting is no setting."""
    for key, value in table.items():
        if isinstance(value, Mapping) and depth:
            yield from flatten(value, f"{prefix}{key}.", depth - 1)
        elif value is not None:
            yield f"{prefix}{key}", value


# Values


class Loading:
    """What has been read so far. A later source replaces a value; lists of patterns add up."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.origins: dict[str, str] = {}
        self.problems: list[Problem] = []
        self._refused = 0

    def read(self, source: Source) -> None:
        """Each mistake is told with its remedy, but nobody reads a thousand of them."""
        self.problems += source.problems
        self._refused = 0
        for path, raw in source.values:
            self._take(source, path, raw)
        if (more := self._refused - MOST_PROBLEMS) > 0:
            remedy = f"{more} more values do not apply either; correct those above first"
            self.problems.append(Problem("…", "", remedy, source.origin))

    def _take(self, source: Source, path: str, raw: Any) -> None:
        setting = tree.find(path)
        if setting is None:
            return self._refuse(source, path, raw, unknown_remedy(path) if self._refused < MOST_PROBLEMS else "")
        if source.is_project and setting.personal:
            remedy = "a project file cannot set this; put it in your user file or your editor's settings"
            return self._refuse(source, path, raw, remedy)
        if setting.kind is dict and source.is_typed:
            return self._take_table(source, path, raw)
        try:
            value = convert(setting, raw, source.is_typed)
        except msgspec.ValidationError:
            return self._refuse(source, path, raw, mismatch_remedy(setting, raw))
        except (ValueError, OSError) as error:
            return self._refuse(source, path, raw, str(error))
        if setting.kind is tuple:
            return self._add(source, path, value)
        self.values[path], self.origins[path] = value, source.origin
        return None

    def _take_table(self, source: Source, path: str, raw: Any) -> None:
        """`markdown=false,python=true`"""
        for entry in split_list(raw):
            name, _, value = entry.partition("=")
            self._take(source, f"{path}.{name.strip()}", value.strip())

    def _add(self, source: Source, path: str, patterns: tuple[str, ...]) -> None:
        refused = {pattern: None for pattern in patterns if source.is_project and pattern.startswith("!")}
        for pattern in refused:
            self._refuse(source, path, pattern, "a project file cannot take patterns back")
        added = {pattern: None for pattern in patterns if pattern not in refused}
        before = self.values.get(path, ())
        self.values[path] = (*(p for p in before if p not in added), *added)
        self.origins[path] = f"{self.origins[path]}, {source.origin}" if before else source.origin

    def _refuse(self, source: Source, path: str, value: Any, remedy: str) -> None:
        self._refused += 1
        if self._refused <= MOST_PROBLEMS:
            self.problems.append(Problem(truncate(path), shorten(value), remedy, source.origin))

    def forbid_network(self) -> None:
        address = self.values.get("engine.address", "")
        if not address or is_local(address):
            return
        if not self.values.get("privacy.allow_network", False):
            remedy = "is on another machine; set privacy.allow_network = true in your own settings to use it"
        elif not address.startswith("https:"):
            remedy = "would send your code in the clear; use https"
        else:
            return
        del self.values["engine.address"]
        self.problems.append(Problem("engine.address", repr(address), remedy, self.origins.pop("engine.address")))

    def loaded(self) -> Loaded:
        groups: dict[str, dict[str, Any]] = {group: {} for group in Settings.__struct_fields__}
        for path, value in self.values.items():
            group, name, *entry = path.split(".", 2)
            if entry:
                groups[group].setdefault(name, {})[entry[0]] = value
            else:
                groups[group][name] = value
        defaults = Settings()
        built = {name: type(getattr(defaults, name))(**values) for name, values in groups.items()}
        return Loaded(Settings(**built), self.origins, tuple(self.problems))


def convert(setting: Setting, raw: Any, is_typed: bool) -> Any:
    if is_typed and setting.kind is tuple and isinstance(raw, str):
        raw = split_list(raw)
    value = msgspec.convert(raw, setting.annotation, strict=not is_typed)
    if setting.path == "engine.model":
        return checked_model(os.path.expanduser(value))
    if setting.path == "engine.address":
        return checked_address(value)
    return absolute_path(value, is_typed) if setting.file and value else value


def shorten(value: Any) -> str:
    """As Python writes it, in short: a stranger's value may be of any size and depth."""
    import reprlib

    short = reprlib.Repr()
    short.maxlevel = 3
    short.maxstring = short.maxother = LONGEST_SHOWN
    try:
        return truncate(short.repr(value))
    except ValueError:
        return "a number too long to show"


def truncate(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def absolute_path(path: str, is_typed: bool) -> str:
    """Only who types a command means the current folder; an editor's is anybody's guess."""
    path = os.path.expanduser(path)
    if is_typed:
        return os.path.abspath(path)
    if not os.path.isabs(path):
        raise ValueError("must be a full path, or begin with ~")
    return path


def checked_model(value: str) -> str:
    """One that is not here would leave every editor of the user without an engine: they share one."""
    from mercury_engine.api import EngineError
    from mercury_ls.settings.models import resolve

    try:
        resolve(value)
    except EngineError as error:
        raise ValueError(str(error).partition(" is ")[2]) from error
    return value


def checked_address(value: str) -> str:
    from urllib.parse import urlsplit

    remedy = "must be an address such as http://127.0.0.1:8391 or https://engine.example:443"
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError as error:
        raise ValueError(f"{remedy} ({error})") from error
    if value and not usable:
        raise ValueError(remedy)
    return value


def mismatch_remedy(setting: Setting, raw: Any) -> str:
    import difflib

    remedy = f"must be {tree.expected(setting)}"
    choices = get_args(setting.annotation.__origin__) if setting.kind is Literal else ()
    close = difflib.get_close_matches(truncate(raw) if isinstance(raw, str) else "", choices, 1)
    return f"{remedy}; did you mean {close[0]}?" if close else remedy


def unknown_remedy(path: str) -> str:
    if path in Settings.__struct_fields__:
        return "is a group of settings; set what is in it, see docs/SETTINGS.md"
    near = nearest_setting(path)
    return f"is no setting; did you mean {near}?" if near else "is no setting; see docs/SETTINGS.md for those there are"


def nearest_setting(path: str, cutoff: float = 0.6) -> str | None:
    """The setting or group whose path, or whose name alone, looks most like this."""
    import difflib

    known = [*(() if "." in path else Settings.__struct_fields__), *tree.settings()]
    name = path.rpartition(".")[2]
    close = difflib.get_close_matches(truncate(path), known, 1, cutoff)
    return close[0] if close else next((one for one in known if one.endswith(f".{name}")), None)
