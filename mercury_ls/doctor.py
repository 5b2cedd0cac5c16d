"""Is everything in place? One finding for each part, with what to do where something is not."""

import importlib.metadata
import importlib.util
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from mercury_engine.api import EngineError
from mercury_ls import __version__, config, languages
from mercury_ls.config import Loaded
from mercury_ls.languages import Language
from mercury_ls.serve import daemon, local, models, tuned

__all__ = ["Finding", "examine", "report"]


class Finding(Struct, frozen=True):
    """What was looked at and what was found; `remedy` is empty where all is well."""

    part: str
    found: str
    remedy: str = ""


def examine(loaded: Loaded, user_file: Path | None = None) -> list[Finding]:
    return [
        *installation(),
        *configuration(loaded, user_file or config.user_file()),
        *grammars(),
        *permissions(),
        *model(loaded),
        *tunings(loaded),
        *engine_server(),
    ]


def report(findings: list[Finding]) -> str:
    width = max(len(finding.part) for finding in findings)
    lines = []
    for finding in findings:
        mark = "✗" if finding.remedy else "✓"
        lines.append(f"{mark} {finding.part:{width}}  {finding.found}")
        if finding.remedy:
            lines.append(f"  {'':{width}}  → {finding.remedy}")
    wrong = sum(bool(finding.remedy) for finding in findings)
    lines.append(f"\n{wrong} to mend" if wrong else "\nall is well")
    return "\n".join(lines)


def installation() -> Iterator[Finding]:
    yield Finding("mercury-ls", f"{__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}")
    too_old = sys.version_info < (3, 11)
    yield Finding("python", sys.executable, "install Python 3.11 or newer" if too_old else "")
    missing = [name for name in required() if importlib.util.find_spec(module_of(name)) is None]
    remedy = "pip install --force-reinstall mercury-ls" if missing else ""
    yield Finding("packages", f"missing: {', '.join(missing)}" if missing else "all present", remedy)


def required() -> list[str]:
    try:
        wanted = importlib.metadata.requires("mercury-ls") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [w.split(">")[0].split("<")[0].split("=")[0].strip() for w in wanted if "extra ==" not in w]


def module_of(distribution: str) -> str:
    return distribution.replace("-", "_")


def configuration(loaded: Loaded, user_file: Path) -> Iterator[Finding]:
    present = "" if user_file.exists() else " (not there: defaults apply)"
    yield Finding("user file", f"{user_file}{present}")
    for problem in loaded.problems:
        yield Finding("setting", f"{problem.path} = {problem.value} from {problem.origin}", problem.remedy)


def grammars() -> Iterator[Finding]:
    broken = [language.id for language in languages.LANGUAGES if not loads(language)]
    remedy = "pip install --force-reinstall mercury-ls" if broken else ""
    found = f"not loadable: {', '.join(broken)}" if broken else f"{len(languages.LANGUAGES)} languages"
    yield Finding("grammars", found, remedy)


def loads(language: Language) -> bool:
    try:
        languages.parser(language)
    except (ImportError, OSError, ValueError, AttributeError):
        return False
    return True


def permissions() -> Iterator[Finding]:
    try:
        directory = local.runtime_directory()
    except (local.PlacementError, OSError) as error:
        yield Finding("runtime directory", "not usable", str(error))
        return
    yield Finding("runtime directory", f"{directory}, for you alone")
    folder = nearest(local.log_file().parent)
    writable = os.access(folder, os.W_OK)
    yield Finding("engine log", str(local.log_file()), "" if writable else f"make {folder} writable")


def nearest(folder: Path) -> Path:
    return next((parent for parent in [folder, *folder.parents] if parent.exists()), folder)


def model(loaded: Loaded) -> Iterator[Finding]:
    name = loaded.settings.engine.model
    if loaded.settings.engine.address:
        yield Finding("model", f"chosen by the engine at {loaded.settings.engine.address}")
        return
    try:
        folder = models.resolve(name)
    except EngineError as error:
        yield Finding("model", name, str(error))
        return
    if folder is None and name == models.FAKE:
        yield Finding("model", "fake: copies from the context, as you asked")
    elif folder is None:
        yield Finding("model", "none is installed, so the fake engine answers: it copies from the context")
    else:
        yield Finding("model", f"{folder.name} in {folder}")


def tunings(loaded: Loaded) -> Iterator[Finding]:
    try:
        folder = models.resolve(loaded.settings.engine.model)
    except EngineError:
        return
    for tuning in tuned.installed(tuned.home()).values():
        stale = folder is None or not tuned.fits(tuning, folder)
        remedy = f"mercury-ls tune {tuning.root}, or the same with --remove" if stale else ""
        yield Finding("tuned", tuning.root + (": for another model, so not in use" if stale else ""), remedy)


def engine_server() -> Iterator[Finding]:
    try:
        status = daemon.status()
    except Exception as error:  # whatever is wrong with it is the finding
        yield Finding("engine server", f"does not answer: {error}", "mercury-ls serve --stop, then open an editor")
        return
    if status is None:
        yield Finding("engine server", "not running; the next editor starts it")
    elif status.state == "unavailable":
        yield Finding("engine server", "could not load its engine", status.detail)
    else:
        about = f", {status.info.model} on {status.info.device}" if status.info else ""
        yield Finding("engine server", f"{status.state}{about}")
