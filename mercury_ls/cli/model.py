"""`mercury-ls model`: list, add, choose, remove and test models, and recommend some."""

import argparse
import json
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path

import msgspec

from mercury_engine import model_folders
from mercury_engine.api import EngineError
from mercury_ls.cli.given import UsageError, chosen_file, failed, load_settings, settings_in_effect
from mercury_ls.link import local
from mercury_ls.link.wire import WireError
from mercury_ls.models import choose, library, measure, overview, recommended
from mercury_ls.models.add import AddOrder, Plan, described
from mercury_ls.models.add import add as add_model
from mercury_ls.models.hub import megabytes
from mercury_ls.serve import added
from mercury_ls.settings import toml
from mercury_ls.settings.assign import assign
from mercury_ls.settings.load import user_file
from mercury_ls.wording import abbreviated, lines, one_line

ERRORS = (EngineError, OSError, WireError, local.PlacementError, toml.UnreadableError)


def list(options: argparse.Namespace) -> int:  # noqa: A001  the verb
    rows = overview.rows(settings_in_effect(options))
    if options.json:
        print(msgspec.json.encode({"models": rows}).decode())
    else:
        print(overview.table(rows))
    return 0


def _explained(verb: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The verb, whose errors are reported in a sentence."""

    @wraps(verb)
    def run(options: argparse.Namespace) -> int:
        try:
            return verb(options)
        except ERRORS as error:
            return failed(options, abbreviated(str(error)))

    return run


@_explained
def add(options: argparse.Namespace) -> int:
    settings = settings_in_effect(options)
    order = AddOrder(**{name: getattr(options, name) for name in AddOrder.__struct_fields__})
    try:
        with _AddProgress() as progress:
            model = add_model(
                order,
                network=settings.privacy.allow_network,
                agreed=_agreement(options.yes, progress),
                report=progress.report,
                open_made=lambda folder, record: added.made(folder, record, settings),
            )
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: run the command again to continue\n")
        return 130
    if model is None:
        sys.stderr.write("nothing was added\n")
        return 3
    name = model.record.name
    if model.problem:
        return failed(options, f"{name} was added, but cannot be asked: {abbreviated(model.problem)}")
    print(f"added {name}; `mercury-ls model use {name}` chooses it")
    if model.note and model.record.kind != "server":  # of a server it was said before
        print(one_line(f"it {model.note}"))
    return 0


def _agreement(yes: bool, progress: "_AddProgress") -> Callable[[Plan], bool]:
    def agreed(plan: Plan) -> bool:
        progress.end()
        print(lines(described(plan)), flush=True)
        if yes:
            return True
        if not sys.stdin.isatty():
            raise EngineError("nobody can be asked here: check the lines above, and run the command again with --yes")
        sys.stderr.write("add it? [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    return agreed


class _AddProgress:
    """One line that is written over on a terminal, and a line now and then anywhere else."""

    def __init__(self) -> None:
        self.shown = ("", 0)
        self.terminal = sys.stderr.isatty()

    def __enter__(self) -> "_AddProgress":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def report(self, share: float, about: str) -> None:
        percent = int(share * 100) if self.terminal else int(share * 4) * 25
        step = (about.partition(" ")[0], percent)
        if step != self.shown:
            self.shown, about = step, one_line(about)
            sys.stderr.write(f"\r\033[K{about} {percent:3}%" if self.terminal else f"{about} {percent:3}%\n")
            sys.stderr.flush()

    def end(self) -> None:
        if self.terminal and self.shown[0]:
            sys.stderr.write("\r\033[K")


@_explained
def use(options: argparse.Namespace) -> int:
    name = options.model
    if Path(name).name != name:
        raise UsageError(f"{name} is a path: `mercury-ls model add {name}` makes a model of it")
    settings = settings_in_effect(options)
    with _AddProgress() as progress:
        info = choose.check(name, settings, progress.report)
    file = chosen_file(options) or user_file()
    assign(file, "engine.model", name)
    print(one_line(f"engine.model = {json.dumps(name)} in {abbreviated(str(file))}: {info.model} on {info.device}"))
    sys.stderr.writelines(f"{one_line(note)}\n" for note in info.notes)
    loaded = load_settings(options)
    if loaded.settings.engine.address:
        return _report_other(
            f"engine.address is set, so the engine at {loaded.settings.engine.address} answers, not this one"
        )
    if loaded.settings.engine.model != name:
        origin = loaded.origins.get("engine.model", "something else")
        return _report_other(f"{origin} sets engine.model = {json.dumps(loaded.settings.engine.model)}, which wins")
    if other := choose.switch(name):
        return _report_other(
            f"an editor has started the engine with {other} again: its own settings name engine.model, and win there"
        )
    return 0


def _report_other(message: str) -> int:
    sys.stderr.write(f"{one_line(message)}\n")
    return 1


@_explained
def remove(options: argparse.Namespace) -> int:
    name = options.model
    if name not in model_folders.added():
        if freed := library.discard(Path(name).name):
            print(f"removed what was downloaded of {name}, which frees {megabytes(freed)}")
            return 0
        shipped = " (it ships with mercury-ls)" if name in model_folders.shipped() else ""
        installed = ", ".join(model_folders.added()) or "none"
        return failed(options, f"{name} is no model that was added{shipped}: there are {installed}")
    in_use = load_settings(options).settings.engine.model == name
    if in_use:
        assign(chosen_file(options) or user_file(), "engine.model", model_folders.AUTO)
    _forget_outcomes(name)
    freed = library.remove(name)
    print(f"removed {name}, which frees {megabytes(freed)}")
    if in_use:
        print("it was in use: the model that ships is chosen instead (engine.model = auto)")
        choose.switch(model_folders.AUTO)
    return 0


def _forget_outcomes(model: str) -> None:
    from mercury_ls.session import stats
    from mercury_ls.session.outcomes import Outcomes

    file = stats.default_file()
    Outcomes(file and file.parent).forget(model)


@_explained
def test(options: argparse.Namespace) -> int:
    settings = settings_in_effect(options)
    with _AddProgress() as progress:
        result = measure.test(options.model or settings.engine.model, settings, progress.report)
    print(lines(measure.described(result)))
    return 0 if any(answer.cold.text.strip() for answer in result.answers) else 1


def recommend(options: argparse.Namespace) -> int:
    jobs = [job.replace("-", " ") for job in options.jobs]
    recommendation = recommended.recommend(settings_in_effect(options).engine.threads, jobs)
    if options.json:
        print(msgspec.json.encode(recommendation).decode())
    else:
        print(lines(recommended.described(recommendation)))
    return 0
