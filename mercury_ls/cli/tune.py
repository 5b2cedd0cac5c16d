"""`mercury-ls tune`: tune the model to a project, list what was tuned, or remove it."""

import argparse
import shlex
from pathlib import Path

from mercury_engine.api import EngineError
from mercury_ls import tuning
from mercury_ls.cli.given import UsageError, failed, settings_in_effect
from mercury_ls.link import local
from mercury_ls.project.privacy import Privacy
from mercury_ls.serve import tuned
from mercury_ls.serve.models import chosen_folder
from mercury_ls.wording import readable


def tune(options: argparse.Namespace) -> int:
    place = tuned.home()
    try:
        if options.status:
            return _print_tunings(options, place)
        root = _project_root(options)
        if options.remove:
            print(f"{readable(root)}: {'removed' if tuned.remove(root, place) else 'nothing was tuned'}")
            return 0
        return _tune_project(options, root, place)
    except (tuning.TuningError, EngineError, OSError) as error:
        return failed(options, error)


def _project_root(options: argparse.Namespace) -> str:
    try:
        return tuning.project_of(options.path, is_deleted=options.remove)
    except tuning.TuningError as error:
        raise UsageError(str(error)) from error


def _tune_project(options: argparse.Namespace, root: str, place: Path) -> int:
    settings = settings_in_effect(options, root)
    model = chosen_folder(settings.engine)
    if settings.engine.address or model is None:
        raise tuning.TuningError("there is no model on this machine to tune: check engine.model and engine.address")
    order = tuning.TuneOrder(model, options.minutes, options.full)
    result = tuning.tune(root, Privacy(settings.privacy, [root], ignore_case=local.IGNORES_CASE), order, place)
    print(tuning.described(result))
    if not result.better:
        print(f"not installed: {result.reason}")
        return 3
    undo = f"mercury-ls tune {shlex.quote(options.path)} --remove"
    print(f"installed for the files in {readable(root)}; `{undo}` removes it")
    return 0


def _print_tunings(options: argparse.Namespace, place: Path) -> int:
    model = chosen_folder(settings_in_effect(options).engine)
    projects = tuned.installed(place).values()
    for project in projects:
        print(tuning.described(project))
        if model is None or not tuned.fits(project, model):
            print("  not in use: tuned for another model than engine.model; tune again, or remove it")
    if not projects:
        print("nothing has been tuned: `mercury-ls tune PATH` tunes the model to a project")
    return 0
