"""The tree of settings: every name, default, bound and meaning, in one place."""

import functools
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

__all__ = [
    "ContextSettings",
    "EngineSettings",
    "LogSettings",
    "PrivacySettings",
    "RecordSettings",
    "Setting",
    "Settings",
    "SuggestSettings",
    "expected",
    "find",
    "settings",
]

PERSONAL = Meta(extra={"personal": True})
"""Not for a project file: opening a stranger's folder must be safe."""

FILE = Meta(extra={"file": True})
"""Names a file or a folder: `~` is the home folder, and relative paths are only for the command line."""


class EngineSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model and where it runs. One engine server answers for all projects of a user: none of them chooses it."""

    model: Annotated[
        str,
        Meta(
            description="`auto` for the model that comes with mercury-ls, the name of another that does, or the path "
            "of a model folder."
        ),
        PERSONAL,
    ] = "auto"
    address: Annotated[
        str,
        Meta(
            description="Where an engine server listens that mercury-ls shall use instead of starting one: "
            "`http://127.0.0.1:8391`. One on another machine needs `https` and `privacy.allow_network`."
        ),
        PERSONAL,
    ] = ""
    token_file: Annotated[str, Meta(description="File with the bearer token for `engine.address`."), PERSONAL, FILE] = (
        ""
    )
    effort: Annotated[
        Literal["instant", "low", "medium", "high"],
        Meta(description="How much the model checks and revises its draft: more time, better suggestions."),
    ] = "low"
    deadline_ms: Annotated[
        int,
        Meta(description="The best draft after this time is the answer, in milliseconds.", ge=20, le=60_000),
    ] = 1000
    device: Annotated[
        Literal["auto", "cpu", "gpu"],
        Meta(description="What the model runs on. `mercury-ls doctor` says what `auto` chose, and why."),
        PERSONAL,
    ] = "auto"
    threads: Annotated[
        int,
        Meta(
            description="Threads of the engine; 0 chooses: two, or one while other programs need the cores.",
            ge=0,
            le=256,
        ),
        PERSONAL,
    ] = 0
    memory_mb: Annotated[
        int, Meta(description="Most memory for the model and its caches, in MiB.", ge=128, le=1_048_576), PERSONAL
    ] = 1024
    idle_exit_minutes: Annotated[
        int,
        Meta(
            description="The engine server leaves after this long without an editor; 0 keeps it.",
            ge=0,
            le=10_080,
        ),
        PERSONAL,
    ] = 30


class SuggestSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is suggested, and when."""

    enabled: Annotated[bool, Meta(description="Suggest while typing.")] = True
    delay_ms: Annotated[
        int,
        Meta(
            description="Wait after a keystroke, on top of the editor's own delay, in milliseconds.",
            ge=0,
            le=5000,
        ),
    ] = 0
    minimum_probability: Annotated[
        float,
        Meta(description="Show a suggestion only if it is at least this likely to be accepted.", ge=0.0, le=1.0),
    ] = 0.25
    adapt: Annotated[bool, Meta(description="Move `minimum_probability` with what you accept and reject.")] = True
    in_comments: Annotated[bool, Meta(description="Suggest inside comments.")] = False
    in_strings: Annotated[bool, Meta(description="Suggest inside strings.")] = False
    multi_line: Annotated[
        Literal["auto", "always", "never"],
        Meta(description="Suggest several lines: where a block is expected, everywhere, or nowhere."),
    ] = "auto"
    alternatives: Annotated[
        int,
        Meta(description="Most alternatives to cycle through when you ask for a suggestion.", ge=1, le=8),
    ] = 3
    languages: Annotated[
        dict[str, bool],
        Meta(
            description="Languages to suggest in, by LSP language id: `markdown = false`. "
            'The name `"*"` stands for all that are not named.'
        ),
    ] = {}
    completion_fallback: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description="Offer suggestions in the ordinary completion list: to editors without inline "
            "completion, always, or never."
        ),
    ] = "auto"

    def speaks(self, language: str) -> bool:
        return self.languages.get(language, self.languages.get("*", True))


class ContextSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the model reads besides the text around the cursor. Hidden files are never among it."""

    budget_tokens: Annotated[
        int, Meta(description="Tokens of text given to the model, all told.", ge=256, le=131_072)
    ] = 2048
    snippets: Annotated[
        int,
        Meta(
            description="Most pieces of other files that the model is told, the most similar first; 0 for none.",
            ge=0,
            le=64,
        ),
    ] = 24
    recent_edits: Annotated[
        int, Meta(description="Most of your last edits shown to the model; 0 for none.", ge=0, le=64)
    ] = 16
    workspace_definitions: Annotated[
        bool, Meta(description="Look names and similar code up in the other files of the workspace.")
    ] = True
    max_files: Annotated[
        int,
        Meta(
            description="Most files that are searched for definitions, the last changed first.",
            ge=0,
            le=100_000,
        ),
    ] = 2000


class PrivacySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which files are never read, and whether anything may leave the machine."""

    respect_ignore_files: Annotated[
        bool,
        Meta(description="Hide what .gitignore and .mercuryignore files name. Secrets are always hidden."),
        PERSONAL,
    ] = True
    ignore: Annotated[
        tuple[str, ...],
        Meta(
            description="More files to hide, as gitignore patterns. They are read from each workspace folder "
            "and from the root of the file system."
        ),
    ] = ()
    secret_patterns: Annotated[
        tuple[str, ...],
        Meta(
            description="More patterns of secret files, beside the built-in ones; "
            "`!pattern` takes one back, though not in a project file."
        ),
    ] = ()
    allow_network: Annotated[
        bool,
        Meta(description="Allow an engine on another machine."),
        PERSONAL,
    ] = False


class RecordSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept on this machine of your work: edit sessions, for replay and tuning, and numbers of suggestions."""

    enabled: Annotated[bool, Meta(description="Record edit sessions."), PERSONAL] = False
    directory: Annotated[
        str, Meta(description="Where recordings go; empty for the user's data folder."), PERSONAL, FILE
    ] = ""
    max_mb: Annotated[
        int,
        Meta(description="Most space for recordings, in MiB; the oldest go first.", ge=1, le=65_536),
        PERSONAL,
    ] = 256
    counts: Annotated[
        bool,
        Meta(
            description="Count suggestions per day and language, for `mercury-ls stats`: shown, typed through, "
            "accepted, rejected, characters saved. No text and no paths are kept."
        ),
        PERSONAL,
    ] = True


class LogSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the server says about itself."""

    level: Annotated[
        Literal["error", "warning", "info", "debug"],
        Meta(
            description="The least important thing logged. Where nobody sets it, standard error gets warnings only.",
        ),
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
    """One leaf of the tree, for those who read and explain it."""

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
    """Every setting by its path, in the order of the tree."""
    return {
        setting.path: setting
        for group in msgspec.structs.fields(Settings)
        for setting in map(functools.partial(setting_of, group.name), msgspec.structs.fields(group.type))
    }


def setting_of(group: str, field: msgspec.structs.FieldInfo) -> Setting:
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
    """The setting at this path; `suggest.languages.python` is found as the entry of a table."""
    if setting := settings().get(path):
        return setting
    table = settings().get(".".join(path.split(".")[:2]))
    if table is None or table.kind is not dict:
        return None
    return msgspec.structs.replace(table, path=path, annotation=Annotated[bool, Meta()], default=None)


TYPE_NAMES = {
    bool: "true or false",
    dict: "a table of true or false by name",
    float: "a number",
    int: "a whole number",
    str: "text",
    tuple: "a list of texts",
}


def expected(setting: Setting) -> str:
    """What a value has to be, in words: `a whole number from 0 to 256`."""
    if setting.kind is Literal:
        return "one of " + ", ".join(get_args(setting.annotation.__origin__))
    bounds = next(((m.ge, m.le) for m in setting.annotation.__metadata__ if m.ge is not None), None)
    return TYPE_NAMES[setting.kind] + (" from {} to {}".format(*bounds) if bounds else "")
