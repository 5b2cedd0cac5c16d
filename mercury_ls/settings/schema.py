"""All settings: names, types, defaults, bounds and descriptions."""

import functools
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

PERSONAL = Meta(extra={"personal": True})
"""Not allowed in a project file: opening an untrusted folder must be safe."""

FILE = Meta(extra={"file": True})
"""A file or folder: `~` is the home folder, and relative paths are allowed on the command line only."""


class EngineSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model and where it runs. One engine server answers for all of a user's projects, so no project chooses it."""

    model: Annotated[
        str,
        Meta(description="`auto` for quicksilver, the name of another installed model, or the path of a model folder."),
        PERSONAL,
    ] = "auto"
    address: Annotated[
        str,
        Meta(
            description="Use the engine server at this address instead of starting one: `http://127.0.0.1:8391`. "
            "A server on another machine needs `https` and `privacy.allow_network`."
        ),
        PERSONAL,
    ] = ""
    token_file: Annotated[str, Meta(description="File with the token for `engine.address`."), PERSONAL, FILE] = ""
    effort: Annotated[
        Literal["instant", "low", "medium", "high"],
        Meta(description="How much the model checks and revises its drafts: better suggestions take more time."),
    ] = "low"
    deadline_ms: Annotated[
        int,
        Meta(
            description="Time limit in milliseconds, after which the best draft so far is used; 0 adapts it to "
            "the engine: a second for a small model, five or more for others.",
            ge=0,
            le=60_000,
        ),
    ] = 0
    device: Annotated[
        Literal["auto", "cpu", "gpu"],
        Meta(description="The device to run the model on. `mercury-ls doctor` says which one `auto` chooses, and why."),
        PERSONAL,
    ] = "auto"
    threads: Annotated[
        int,
        Meta(
            description="Number of engine threads; 0 means two. One saves power, but answers take about twice as long.",
            ge=0,
            le=256,
        ),
        PERSONAL,
    ] = 0
    memory_mb: Annotated[
        int, Meta(description="Memory limit for the model and its caches, in MiB.", ge=128, le=1_048_576), PERSONAL
    ] = 1024
    idle_exit_minutes: Annotated[
        int,
        Meta(
            description="The engine server exits after this many minutes without an editor; 0 means never.",
            ge=0,
            le=10_080,
        ),
        PERSONAL,
    ] = 30


Switch = bool | Literal["request"]


class SuggestSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to suggest, and when."""

    enabled: Annotated[bool, Meta(description="Suggest at all, while you type or on request.")] = True
    trigger: Annotated[
        Literal["typing", "request"],
        Meta(description="Suggest while you type, or only on request: then no model runs while you type."),
    ] = "typing"
    delay_ms: Annotated[
        int,
        Meta(
            description="Delay after a keystroke in milliseconds, in addition to the editor's own; -1 means none, or "
            "150 if a server may charge for each answer.",
            ge=-1,
            le=5000,
        ),
    ] = -1
    max_tokens: Annotated[
        int,
        Meta(
            description="Maximum number of tokens in a suggestion; 0 means as many as the engine "
            "generates within 2.5 seconds, from 64 to 256.",
            ge=0,
            le=1024,
        ),
        PERSONAL,
    ] = 0
    ahead: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description="Prefetch what follows a suggestion: unless a server may charge for each answer, "
            "always, or never."
        ),
        PERSONAL,
    ] = "auto"
    minimum_probability: Annotated[
        float,
        Meta(
            description="Show only suggestions that are at least this likely to be accepted; -1 means 0.25, or for "
            "completions by a model that tells the probabilities of its tokens 0.74, or what suits one that was "
            "measured, such as those that come along.",
            ge=-1.0,
            le=1.0,
        ),
    ] = -1.0
    adapt: Annotated[bool, Meta(description="Learn how likely suggestions are from what you keep.")] = True
    in_comments: Annotated[bool, Meta(description="Suggest inside comments.")] = True
    in_strings: Annotated[bool, Meta(description="Suggest inside strings.")] = True
    multi_line: Annotated[
        Literal["auto", "always", "never"],
        Meta(description="Suggest several lines where a block is expected, always, or never."),
    ] = "auto"
    alternatives: Annotated[
        int, Meta(description="Number of alternatives to cycle through when you request a suggestion.", ge=1, le=8)
    ] = 3
    languages: Annotated[
        dict[str, Switch],
        Meta(
            description="Turn languages on or off by LSP language id, or on for explicit requests only: "
            '`markdown = "request"`. The name `"*"` stands for all others.'
        ),
    ] = {}
    completion_fallback: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description="Offer suggestions in the ordinary completion list: only to editors without inline completion, "
            "always, or never."
        ),
    ] = "auto"

    def suggests_in(self, language: str) -> bool:
        return bool(self._switch(language))

    def waits_in(self, language: str) -> str:
        """The setting that withholds suggestions there until the user asks; empty if there is none."""
        return "trigger" if self.trigger == "request" else "languages" if self._switch(language) == "request" else ""

    def _switch(self, language: str) -> Switch:
        return self.languages.get(language, self.languages.get("*", True))


class ContextSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the model reads besides the text around the cursor. Hidden files are never read."""

    budget_tokens: Annotated[
        int,
        Meta(
            description="Total number of tokens given to the model; 0 for 2048, up to 8192 for a server that reads "
            "them quickly. A model on this machine reads up to 1024 of them: fewer if that would take more than five "
            "seconds, more if it can read more within 0.4. At a new place it answers from what it reads in 0.4 "
            "seconds, from 256 tokens at least, and reads the rest while nobody types.",
            ge=0,
            le=131_072,
        ),
    ] = 0
    snippets: Annotated[
        int,
        Meta(description="Maximum number of snippets from other files, most similar first; 0 for none.", ge=0, le=64),
    ] = 24
    recent_edits: Annotated[
        int, Meta(description="Maximum number of your recent edits to include; 0 for none.", ge=0, le=64)
    ] = 16
    workspace_definitions: Annotated[
        bool, Meta(description="Look up names and similar code in the other files of the workspace.")
    ] = True
    analysed_names: Annotated[
        bool,
        Meta(
            description="Look up which members exist near the cursor, so that no suggestion uses another: from the "
            "editor's other language servers if its plugin can ask them, and for Python, if the extra `names` is "
            "installed, from jedi in a process of its own. Jedi reads the packages of `.venv`, `venv`, `env`, "
            "`.env` or `.conda` in a workspace folder, else of the environment that is active where the editor was "
            "started."
        ),
    ] = True
    max_files: Annotated[
        int, Meta(description="Maximum number of files to index, most recently changed first.", ge=0, le=100_000)
    ] = 2000


class PrivacySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which files are never read, and whether anything may leave the machine."""

    respect_ignore_files: Annotated[
        bool,
        Meta(description="Hide files that .gitignore and .mercuryignore list. Secret files are always hidden."),
        PERSONAL,
    ] = True
    ignore: Annotated[
        tuple[str, ...],
        Meta(
            description="More files to hide, as gitignore patterns, relative to each workspace folder and to the root "
            "of the file system."
        ),
    ] = ()
    secret_patterns: Annotated[
        tuple[str, ...],
        Meta(
            description="More patterns for secret files, in addition to the built-in ones; `!pattern` exempts files, "
            "but not in a project file."
        ),
    ] = ()
    allow_network: Annotated[
        bool,
        Meta(description="Allow a server on another machine: an engine server, or a model server that you added."),
        PERSONAL,
    ] = False


class RecordSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is recorded of your work, on this machine only: edit sessions for replay, and statistics."""

    enabled: Annotated[bool, Meta(description="Record edit sessions."), PERSONAL] = False
    directory: Annotated[
        str, Meta(description="Folder for recordings; empty for the default data folder."), PERSONAL, FILE
    ] = ""
    max_mb: Annotated[
        int,
        Meta(description="Disk space limit for recordings, in MiB; the oldest are deleted first.", ge=1, le=65_536),
        PERSONAL,
    ] = 256
    counts: Annotated[
        bool,
        Meta(
            description="Count suggestions by day, language and model for `mercury-ls stats`: shown, accepted and "
            "rejected, and the characters saved; for each answer of a model, how likely and how long it was and "
            "whether you kept it, to judge the next ones. No text and no paths are stored."
        ),
        PERSONAL,
    ] = True


class LogSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Logging."""

    level: Annotated[
        Literal["error", "warning", "info", "debug"],
        Meta(description="Least severe level to log. If it is not set, only warnings go to standard error."),
    ] = "info"
    file: Annotated[str, Meta(description="Log file; empty for standard error."), PERSONAL, FILE] = ""


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of mercury-ls."""

    engine: EngineSettings = EngineSettings()
    suggest: SuggestSettings = SuggestSettings()
    context: ContextSettings = ContextSettings()
    privacy: PrivacySettings = PrivacySettings()
    record: RecordSettings = RecordSettings()
    log: LogSettings = LogSettings()


class Setting(Struct, frozen=True):
    """One setting, described for those that parse and document it."""

    path: str
    annotation: Any
    default: Any
    description: str
    personal: bool
    file: bool

    @property
    def kind(self) -> type:
        bare = self.annotation.__origin__
        return get_origin(bare) or bare


@functools.cache
def settings() -> Mapping[str, Setting]:
    """Every setting by its path, in the order of declaration."""
    return {
        setting.path: setting
        for group in msgspec.structs.fields(Settings)
        for setting in map(functools.partial(_setting_of, group.name), msgspec.structs.fields(group.type))
    }


def _setting_of(group: str, field: msgspec.structs.FieldInfo) -> Setting:
    notes = {key: value for meta in field.type.__metadata__ for key, value in (meta.extra or {}).items()}
    return Setting(
        path=f"{group}.{field.name}",
        annotation=field.type,
        default=field.default_factory() if field.default is msgspec.NODEFAULT else field.default,
        description=next(meta.description for meta in field.type.__metadata__ if meta.description),
        personal=notes.get("personal", False),
        file=notes.get("file", False),
    )


def find(path: str) -> Setting | None:
    """The setting at this path, which may name an entry of a table: `suggest.languages.python`."""
    if setting := settings().get(path):
        return setting
    table = settings().get(".".join(path.split(".")[:2]))
    if table is None or table.kind is not dict:
        return None
    return msgspec.structs.replace(table, path=path, annotation=Annotated[Switch, Meta()], default=None)


TYPE_NAMES: dict[object, str] = {
    bool: "true or false",
    Union: 'true, false or "request"',
    dict: 'a table of names with true, false or "request"',
    float: "a number",
    int: "a whole number",
    str: "a string",
    tuple: "a list of strings",
}


def expected(setting: Setting) -> str:
    """What a value must be, in words: "a whole number from 0 to 256"."""
    if setting.kind is Literal:
        return "one of " + ", ".join(get_args(setting.annotation.__origin__))
    bounds = next(((m.ge, m.le) for m in setting.annotation.__metadata__ if m.ge is not None), None)
    return TYPE_NAMES[setting.kind] + (" from {} to {}".format(*bounds) if bounds else "")
