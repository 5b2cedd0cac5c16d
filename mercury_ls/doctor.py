"""`mercury-ls doctor`: checks every part of an installation, and says how to fix what is wrong."""

import asyncio
import importlib.metadata
import importlib.util
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from mercury_engine import model_folders
from mercury_engine.api import WITHOUT_OPENVINO, EngineError
from mercury_engine.installation import with_extra
from mercury_engine.record import read_record
from mercury_ls import __version__
from mercury_ls.code import languages
from mercury_ls.code.languages import Language
from mercury_ls.link import local
from mercury_ls.link.client import EngineClient, Status
from mercury_ls.project.unended import FOLDER, Unended
from mercury_ls.serve import daemon
from mercury_ls.serve.models import verify
from mercury_ls.session.stats import default_file
from mercury_ls.settings import load as config
from mercury_ls.settings.load import Loaded
from mercury_ls.settings.schema import EngineSettings
from mercury_ls.wording import (
    BY_RULES_ALONE,
    QUICKER,
    SLOWNESS,
    abbreviated,
    counted,
    first_line,
    one_line,
    reading_pace,
    remarks,
)

ANSWER_SECONDS = 5.0
OPENVINO = "openvino"
WITHOUT_TRITON = "by torch alone, because triton is not"
REINSTALL = "install it again: `pip install --force-reinstall .` in a clone of mercury-ls"


class Finding(Struct, frozen=True):
    """The state of one part; `remedy` is empty if nothing is wrong."""

    part: str
    found: str
    remedy: str = ""


class Problem(Struct, frozen=True):
    """What may be wrong with a part. The texts name in braces what varies; a symptom is what a user notices of it, and
    the usual remedies are for the page, where `remedy` is the message of an error."""

    part: str
    symptom: str
    found: str
    remedy: str
    usually: str = ""

    def finding(self, **varying: object) -> Finding:
        return Finding(*(text.format(**varying) for text in (self.part, self.found, self.remedy)))


OWN_FOLDER = "`chmod 700` the folder, remove what is in its place, or set MERCURY_LS_RUNTIME_DIR to another"
PACKAGES = Problem("packages", "the server does not start", "missing: {names}", REINSTALL)
SETTING = Problem(
    "setting", "a setting has no effect", "{setting}", "{remedy}", "correct its name or its value, or set it elsewhere"
)
GRAMMARS = Problem("grammars", "nothing is suggested in some languages", "cannot be loaded: {languages}", REINSTALL)
PLACEMENT = Problem("runtime directory", "no editor reaches an engine", "unusable", "{remedy}", OWN_FOLDER)
UNWRITABLE = {
    part: Problem(part, symptom, "{state}: cannot be written ({reason})", "make {folder} writable, or free disk space")
    for part, symptom in {
        "runtime directory": "no editor reaches an engine",
        "engine log": "the engine's log stays empty",
        "statistics": "`mercury-ls stats` counts nothing",
    }.items()
}
MODEL = Problem(
    "model",
    "the engine is unavailable: its model is missing or damaged",
    "{model}",
    "{remedy}",
    "choose one of `mercury-ls model list` with `model use`, or remove the damaged one and add it again",
)
NO_MODEL = Problem(
    "model",
    "next edits come, but no completions",
    "none is installed: there are next edits by rules, and no completions",
    model_folders.NO_MODEL.partition(": ")[2],
)
GPU = Problem(
    "device",
    "the engine is unavailable, or does not use the GPU",
    "gpu, as engine.device says, but {missing}",
    "fix that, or set engine.device = auto",
)
OPENVINO_MISSING = Problem(
    "device",
    "next edits come, but no completions",
    "{device}, but OpenVINO is not installed",
    WITHOUT_OPENVINO.partition(": ")[2],
)
STARTING = Problem("engine server", "no editor gets a suggestion", "cannot run", "{remedy}", OWN_FOLDER)
HANGING = Problem(
    "engine server",
    "no editor gets a suggestion, or all wait",
    "{error}",
    "run `mercury-ls serve --stop`, then open an editor",
)
LOADING = Problem(
    "engine server",
    "the engine is unavailable",
    "could not load its engine",
    "{remedy}",
    "choose another model, or set engine.device = cpu",
)
SLOW = Problem(
    "engine server",
    "nothing is suggested while you type, only by hand",
    f"{{state}}; {SLOWNESS}",
    QUICKER,
)
REMOTE = Problem(
    "engine server",
    "`engine.address` is set, and nothing is suggested",
    "{address}: {detail}",
    "check engine.address, engine.token_file, and that `mercury-ls serve --http` runs there",
)
UNENDED = Problem(
    "project file",
    "the language server ended twice while it read a project",
    "{path}: left out of completions and next edits, since the language server did not come back from it, twice",
    "report it with the file, or exclude it with .mercuryignore; a change of the file gives it another chance",
)
PROBLEMS = (
    *(PACKAGES, SETTING, GRAMMARS, PLACEMENT),
    *UNWRITABLE.values(),
    *(NO_MODEL, MODEL, GPU, OPENVINO_MISSING, UNENDED, STARTING, HANGING, LOADING, SLOW, REMOTE),
)
"""All of them, in the order in which they are looked for; docs/TROUBLESHOOTING.md is made of it."""


def examine(loaded: Loaded, user_file: Path | None = None) -> list[Finding]:
    return [
        *_installation(),
        *settings_files(loaded, user_file or config.user_file()),
        *_grammars(),
        *permissions(),
        *model(loaded),
        *project_files(),
        engine_server(loaded.settings.engine),
    ]


def report(findings: list[Finding]) -> str:
    width = max(len(finding.part) for finding in findings)
    lines = []
    for finding in findings:
        mark = "✗" if finding.remedy else "✓"
        lines.append(f"{mark} {finding.part:{width}}  {one_line(abbreviated(finding.found))}")
        if finding.remedy:
            lines.append(f"  {'':{width}}  → {one_line(finding.remedy)}")
    wrong = sum(bool(finding.remedy) for finding in findings)
    more = "docs/TROUBLESHOOTING.md has all that may be wrong"
    lines.append(f"\n{counted(wrong, 'problem')} found; {more}" if wrong else "\nno problems found")
    return "\n".join(lines)


def _installation() -> Iterator[Finding]:
    yield Finding("mercury-ls", f"{__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}")
    yield Finding("python", sys.executable)
    missing = [name for name in _required() if importlib.util.find_spec(name.replace("-", "_")) is None]
    yield PACKAGES.finding(names=", ".join(missing)) if missing else Finding("packages", "all installed")


def _required() -> list[str]:
    """Without OpenVINO, which not every system has: it belongs to the device."""
    try:
        requirements = importlib.metadata.requires("mercury-ls") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    names = [w.split(">")[0].split("<")[0].split("=")[0].strip() for w in requirements if "extra ==" not in w]
    return [name for name in names if name != OPENVINO]


def settings_files(loaded: Loaded, user_file: Path) -> Iterator[Finding]:
    present = "" if user_file.exists() else " (does not exist: the defaults apply)"
    yield Finding("user file", f"{user_file}{present}")
    for problem in loaded.problems:
        setting = f"{problem.path}{problem.assigned} from {problem.origin}"
        yield SETTING.finding(setting=setting, remedy=problem.remedy)


def _grammars() -> Iterator[Finding]:
    broken = [language.id for language in languages.LANGUAGES if not _loads(language)]
    well = Finding("grammars", f"{len(languages.LANGUAGES)} languages")
    yield GRAMMARS.finding(languages=", ".join(broken)) if broken else well


def _loads(language: Language) -> bool:
    try:
        languages.parser(language)
    except (ImportError, OSError, ValueError, AttributeError):
        return False
    return True


def permissions() -> Iterator[Finding]:
    try:
        directory = local.runtime_directory()
    except (local.PlacementError, OSError) as error:
        yield PLACEMENT.finding(remedy=error)
        return
    yield writable("runtime directory", f"{directory}, private to you", directory)
    log = local.log_file()
    yield writable("engine log", str(log), log.parent)
    if counts := default_file():
        yield writable("statistics", str(counts), next(folder for folder in counts.parents if folder.exists()))


def writable(part: str, state: str, folder: Path) -> Finding:
    """Writes a small file: permissions alone do not reveal a full or read-only disk."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
    except OSError as error:
        return UNWRITABLE[part].finding(state=state, reason=error.strerror, folder=folder)
    return Finding(part, state)


def model(loaded: Loaded) -> Iterator[Finding]:
    name = loaded.settings.engine.model
    if loaded.settings.engine.address:
        yield Finding("model", f"chosen by the engine at {loaded.settings.engine.address}")
        return
    if name == model_folders.AUTO and not model_folders.shipped():
        yield NO_MODEL.finding()
        return
    try:
        folder = model_folders.resolve(name)
    except EngineError as error:
        yield MODEL.finding(model=name, remedy=error)
        return
    if folder is None:
        yield Finding("model", "fake, as engine.model says: it only copies from the context")
    else:
        record, damage = None, ""
        try:
            record = read_record(folder)
            verify(folder)
        except EngineError as error:
            damage = str(error)
        notes = [f"next edits: {BY_RULES_ALONE}"] if record and not record.proposes_next_edits else []
        yield MODEL.finding(model="; ".join([f"{folder.name} in {folder}", *([] if damage else notes)]), remedy=damage)
        if record is None or record.kind != "server":
            yield device(loaded.settings.engine.device)


def device(chosen: str) -> Finding:
    """The device that an engine would choose, as far as can be told without loading torch."""
    missing = _missing_for_gpu()
    if missing and chosen == "gpu":
        return GPU.finding(missing=missing)
    state = f"auto: cpu, because {missing}" if chosen == "auto" else f"{chosen}, as engine.device says"
    if importlib.util.find_spec(OPENVINO) is None and (missing or chosen == "cpu"):
        return OPENVINO_MISSING.finding(device=state)
    if missing or chosen != "auto":
        return Finding("device", state)
    computed_by = (
        "by our kernels or torch, whichever is faster" if importlib.util.find_spec("triton") else WITHOUT_TRITON
    )
    return Finding(
        "device", f"auto: gpu, because nvidia-smi and torch are installed, {computed_by}; cpu if torch cannot use it"
    )


def _missing_for_gpu() -> str:
    if not shutil.which("nvidia-smi"):
        return "nvidia-smi is missing, so there is no NVIDIA driver"
    if importlib.util.find_spec("torch") is None:
        return f"torch is missing: {with_extra('train')}"
    return ""


def project_files() -> Iterator[Finding]:
    """Those that no server reads any more."""
    if counts := default_file():
        yield from (UNENDED.finding(path=path) for path in Unended(counts.parent / FOLDER).paths)


def engine_server(settings: EngineSettings) -> Finding:
    return _remote_server(settings) if settings.address else _own_server()


def _own_server() -> Finding:
    try:
        status = daemon.status()
    except local.PlacementError as error:
        return STARTING.finding(remedy=error)
    except Exception as error:  # whatever is wrong with it is the finding
        return HANGING.finding(error=error)
    if status is None:
        return Finding("engine server", "not running; the next editor will start it")
    if status.state == "unavailable":
        return LOADING.finding(remedy=status.detail)
    if status.info is not None and not status.info.follows_typing:
        return SLOW.finding(state=_model_of(status), takes=first_line(status.info))
    return Finding("engine server", _described(status))


def _remote_server(settings: EngineSettings) -> Finding:
    status = asyncio.run(_first_status(settings))
    if status.state in ("ready", "loading"):
        return Finding("engine server", f"{settings.address}: {_described(status)}")
    detail = " ".join(status.detail.split()) or f"no answer within {ANSWER_SECONDS:.0f} s"
    return REMOTE.finding(address=settings.address, detail=detail)


async def _first_status(settings: EngineSettings) -> Status:
    """The status that an editor would get from `engine.address`."""
    received = asyncio.Event()
    client = EngineClient(settings, on_status=lambda status: received.set())
    await client.start()
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_SECONDS):
                await received.wait()
        return client.status
    finally:
        await client.close()


def _described(status: Status) -> str:
    if status.info is None:
        return status.state
    pace = [reading_pace(status.info)] if status.info.reads_per_second else []
    return "; ".join([_model_of(status), *dict.fromkeys([*pace, *remarks(status.info)])])


def _model_of(status: Status) -> str:
    return f"{status.state}, {status.info.model} on {status.info.device}" if status.info else status.state
