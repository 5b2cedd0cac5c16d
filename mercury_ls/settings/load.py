"""Loads the settings from all sources, later ones winning; bad values are reported, and everything else applies."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct

from mercury_engine.addresses import why_not
from mercury_ls.settings import schema as tree
from mercury_ls.settings.folders import folders
from mercury_ls.settings.schema import Setting, Settings

PROJECT_FILE = ".mercury.toml"
MAX_DEPTH = 8
MAX_PROBLEMS = 16
LONGEST_SHOWN = 80
LONGEST_PATH = 256
"""Of what contains a value: no setting's is a fifth as long."""

COPILOT_KEYS = frozenset(
    {"editorConfiguration", "editorInfo", "editorPluginInfo", "github", "github-enterprise", "http", "telemetry"}
)
"""Sections that clients of the Copilot dialect send along with our settings: ignored without a report."""


class SettingsProblem(Struct, frozen=True):
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
    problems: tuple[SettingsProblem, ...] = ()


class Effective(Struct, frozen=True):
    """One value in effect, for `mercury-ls config`."""

    path: str
    value: Any
    origin: str


class _SettingsSource(Struct, frozen=True, kw_only=True):
    """A source of settings. A typed source, such as the command line, has only strings, which are parsed. `text` is
    what a project's file holds."""

    origin: str
    values: tuple[tuple[str, Any], ...] = ()
    text: str = ""
    problems: tuple[SettingsProblem, ...] = ()
    is_project: bool = False
    is_typed: bool = False


def load(
    user_file: Path | None = None,
    project_files: Sequence[Path] = (),
    options: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Loaded:
    """Read all sources: settings are replaced as a whole, never changed. `project_files` go from outer to inner."""
    sources = [
        *([_file_source(user_file, "user file")] if user_file else []),
        *(_file_source(path, "project file") for path in project_files),
        _editor_source(options or {}),
        *_environment_sources(environ or {}),
        _SettingsSource(origin="command line", values=tuple(_flatten(arguments or {})), is_typed=True),
    ]
    loading = _Loading()
    for source in sources:
        loading.read(source)
    loading.forbid_network()
    return loading.loaded()


def effective(loaded: Loaded) -> list[Effective]:
    """Every value in effect and where it came from, with the entries of tables one by one."""
    rows = []
    for path in tree.settings():
        group, name = path.split(".")
        value = getattr(getattr(loaded.settings, group), name)
        entries = {f"{path}.{key}": entry for key, entry in value.items()} if isinstance(value, dict) else {}
        for leaf, entry in (entries or {path: value}).items():
            rows.append(Effective(leaf, entry, loaded.origins.get(leaf, "default")))
    return rows


def user_file() -> Path:
    return folders().user_config_path / "config.toml"


def project_files(roots: Iterable[str | Path]) -> list[Path]:
    """The project files of workspace folders: inner folders come later, so they win over outer ones."""
    paths = {Path(root) / PROJECT_FILE for root in roots}
    return sorted((path for path in paths if os.path.lexists(path)), key=lambda path: (len(path.parts), path))


# Sources


def _file_source(path: Path, kind: str) -> _SettingsSource:
    from mercury_ls.settings import toml

    origin, is_project = f"{kind} {path}", kind == "project file"
    if is_project and not _is_inside(path):
        remedy = "is a link that leads out of the project, so it is not read; write the settings there"
        return _SettingsSource(origin=origin, problems=(SettingsProblem(str(path), "", remedy, kind),))
    try:
        table = toml.read(path)
    except FileNotFoundError:
        return _SettingsSource(origin=origin)
    except toml.UnreadableError as error:
        return _SettingsSource(origin=origin, problems=(SettingsProblem(error.where, "", error.remedy, kind),))
    values = tuple(_flatten(table.values))
    return _SettingsSource(origin=origin, values=values, text=table.text, is_project=is_project)


def _is_inside(path: Path) -> bool:
    """Whether a project file is one of its project's own: what a link leads to may be a secret of the user's."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(path.parent))


def _editor_source(options: Mapping[str, Any]) -> _SettingsSource:
    """`{"mercury": {"engine": …}}`, `{"engine": …}` or `{"mercury.engine.model": …}`, in snake_case or camelCase.

    Next to a `mercury` key there may be sections of other servers: only our own groups are read from those.
    """
    origin = "editor settings"
    if not isinstance(options, Mapping):
        problem = SettingsProblem("settings", _shorten(options), "must be a table", origin)
        return _SettingsSource(origin=origin, problems=(problem,))
    leaves = list(_flatten(options))
    if any(key.split(".")[0] == "mercury" for key in options):
        bare = [(path, raw) for path, raw in leaves if path.split(".")[0] in Settings.__struct_fields__]
        own = [(path, raw) for path, raw in leaves if path.startswith("mercury.")]
        leaves = bare + [(path.removeprefix("mercury."), raw) for path, raw in own]
    ours = ((path, raw) for path, raw in leaves if path.split(".")[0] not in COPILOT_KEYS)
    return _SettingsSource(origin=origin, values=tuple((_snake_case(path), raw) for path, raw in ours))


def _snake_case(path: str) -> str:
    """Of the setting alone: the entries of a table have names of their own."""
    group, *names = path.split(".", 2)
    names[:1] = [re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), name) for name in names[:1]]
    return ".".join([group, *names])


def _environment_sources(environ: Mapping[str, str]) -> Iterator[_SettingsSource]:
    """`MERCURY_ENGINE_MODEL` is `engine.model`. Other programs use the prefix too, so only likely names count as
    ours."""
    for name in sorted(environ):
        group, _, setting = name.removeprefix("MERCURY_").lower().partition("_")
        path = f"{group}.{setting}"
        is_set = name.startswith("MERCURY_") and environ[name]
        if is_set and (group in Settings.__struct_fields__ or "." in (_nearest_setting(path, 0.85) or "")):
            yield _SettingsSource(origin=f"environment {name}", values=((path, environ[name]),), is_typed=True)


def _flatten(table: Mapping[str, Any], prefix: str = "", depth: int = MAX_DEPTH) -> Iterator[tuple[str, Any]]:
    """Dotted paths with their values, without nulls. Tables deeper than any setting count as values."""
    for key, value in table.items():
        if isinstance(value, Mapping) and depth:
            yield from _flatten(value, f"{prefix}{key}."[:LONGEST_PATH], depth - 1)
        elif value is not None:
            yield f"{prefix}{key}", value


def _lines(text: str) -> dict[str, int]:
    """The line that sets a value, by its dotted path."""
    from mercury_ls.settings import toml

    lines: dict[str, int] = {}
    for line, values in toml.statements(text):
        for path, _ in _flatten(values):
            lines.setdefault(path, line)
    return lines


# Values


class _Loading:
    """The values read so far. A later source replaces a value; lists of patterns are combined."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.origins: dict[str, str] = {}
        self.problems: list[SettingsProblem] = []
        self._refused = 0
        self._lines: dict[str, int] = {}

    def read(self, source: _SettingsSource) -> None:
        """Report each problem with its remedy, up to as many as anyone would read."""
        self.problems += source.problems
        self._refused = 0
        self._lines = {}
        for path, raw in source.values:
            self._take(source, path, raw)
        if (unlisted := self._refused - MAX_PROBLEMS) > 0:
            remedy = f"{unlisted} more values were not applied; fix those above first"
            self.problems.append(SettingsProblem("…", "", remedy, source.origin))

    def _take(self, source: _SettingsSource, path: str, raw: Any) -> None:
        setting = tree.find(path)
        if setting is None:
            return self._refuse(source, path, _unknown_remedy(path) if self._refused < MAX_PROBLEMS else "")
        if source.is_project and setting.personal:
            remedy = "is not allowed in a project file; set it in your user file or your editor's settings"
            return self._refuse(source, path, remedy, raw)
        if setting.kind is dict and source.is_typed:
            return self._take_table(source, path, raw)
        try:
            value = _convert(setting, raw, source.is_typed)
        except msgspec.ValidationError:
            return self._refuse(source, path, _mismatch_remedy(setting, raw), raw)
        except (ValueError, OSError) as error:
            return self._refuse(source, path, str(error), raw)
        if setting.kind is tuple:
            return self._add(source, path, value)
        self.values[path], self.origins[path] = value, source.origin
        return None

    def _take_table(self, source: _SettingsSource, path: str, raw: Any) -> None:
        """Parse `markdown=false,python=true`."""
        for entry in _split_list(raw):
            name, _, value = entry.partition("=")
            self._take(source, f"{path}.{name.strip()}", value.strip())

    def _add(self, source: _SettingsSource, path: str, patterns: tuple[str, ...]) -> None:
        added = dict.fromkeys(patterns)
        for pattern in [*added]:
            if source.is_project and pattern.startswith("!"):
                remedy = "is not allowed in a project file, which cannot exempt files; remove it"
                self._refuse(source, path, remedy, pattern)
                del added[pattern]
        before = self.values.get(path, ())
        self.values[path] = (*(pattern for pattern in before if pattern not in added), *added)
        self.origins[path] = f"{self.origins[path]}, {source.origin}" if before else source.origin

    def _refuse(self, source: _SettingsSource, path: str, remedy: str, *values: Any) -> None:
        """Without a value, for what is no setting of ours and may be somebody's secret."""
        self._refused += 1
        if self._refused <= MAX_PROBLEMS:
            shown = "".join(map(_shorten, values))
            self.problems.append(SettingsProblem(self._named(source, path), shown, remedy, source.origin))

    def _named(self, source: _SettingsSource, path: str) -> str:
        """A name that a project made up is told by its line alone: whoever opens the project has not written it."""
        if not source.is_project or path in tree.settings():
            return _truncate(path)
        self._lines = self._lines or _lines(source.text)
        table = ".".join(path.split(".")[:2])
        line = f"line {self._lines[path]}"
        return f"{table} in {line}" if table in tree.settings() else line

    def forbid_network(self) -> None:
        address = self.values.get("engine.address", "")
        remedy = address and why_not(address, self.values.get("privacy.allow_network", False))
        if not remedy:
            return
        del self.values["engine.address"]
        self.problems.append(
            SettingsProblem("engine.address", repr(address), remedy, self.origins.pop("engine.address"))
        )

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


def _convert(setting: Setting, raw: Any, is_typed: bool) -> Any:
    if is_typed and setting.kind is tuple and isinstance(raw, str):
        raw = _split_list(raw)
    value = msgspec.convert(raw, setting.annotation, strict=not is_typed)
    if setting.path == "engine.model":
        return _checked_model(os.path.expanduser(value))
    if setting.path == "engine.address":
        return _checked_address(value)
    return _absolute_path(value, is_typed) if setting.file and value else value


def _shorten(value: Any) -> str:
    """The value's `repr`, cut short: an untrusted value may be of any size and depth."""
    import reprlib

    short = reprlib.Repr()
    short.maxlevel = 3
    short.maxstring = short.maxother = LONGEST_SHOWN
    try:
        return _truncate(short.repr(value))
    except ValueError:
        return "a number too long to show"


def _truncate(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def _split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _absolute_path(path: str, is_typed: bool) -> str:
    """A relative path makes sense on the command line only: an editor's current folder is unknown."""
    path = os.path.expanduser(path)
    if is_typed:
        return os.path.abspath(path)
    if not os.path.isabs(path):
        raise ValueError("must be an absolute path, or start with ~")
    return path


def _checked_model(value: str) -> str:
    """Refuse a model that does not exist: all of the user's editors share one engine and would be left without it."""
    from mercury_engine.api import EngineError
    from mercury_engine.model_folders import AUTO, resolve

    try:
        if value != AUTO:
            resolve(value)
    except EngineError as error:
        raise ValueError(str(error).partition(" is ")[2]) from error
    return value


def _checked_address(value: str) -> str:
    from urllib.parse import urlsplit

    remedy = "must be a URL such as http://127.0.0.1:8391 or https://engine.example:443"
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError as error:
        raise ValueError(f"{remedy} ({error})") from error
    if value and not usable:
        raise ValueError(remedy)
    return value


def _mismatch_remedy(setting: Setting, raw: Any) -> str:
    import difflib

    remedy = f"must be {tree.expected(setting)}"
    choices = get_args(setting.annotation.__origin__) if setting.kind is Literal else ()
    close = difflib.get_close_matches(_truncate(raw) if isinstance(raw, str) else "", choices, 1)
    return f"{remedy}; did you mean {close[0]}?" if close else remedy


def _unknown_remedy(path: str) -> str:
    if path in Settings.__struct_fields__:
        return "is a group; set one of the settings in it, see docs/SETTINGS.md"
    near = _nearest_setting(path)
    return f"is not a setting; did you mean {near}?" if near else "is not a setting; see docs/SETTINGS.md"


def _nearest_setting(path: str, cutoff: float = 0.6) -> str | None:
    """The table with the most similar name, and within it the setting; or a setting of this name in another table."""
    table, _, name = path.partition(".")
    near = _most_similar(table, Settings.__struct_fields__, cutoff)
    within = [setting.partition(".")[2] for setting in tree.settings() if near and setting.startswith(f"{near}.")]
    if close := _most_similar(name, within, cutoff):
        return f"{near}.{close}"
    last = path.rpartition(".")[2]
    elsewhere = next((setting for setting in tree.settings() if setting.endswith(f".{last}")), None)
    return elsewhere or (None if near == table else near)


def _most_similar(name: str, names: Iterable[str], cutoff: float) -> str | None:
    import difflib

    return next(iter(difflib.get_close_matches(_truncate(name), names, 1, cutoff)), None)
