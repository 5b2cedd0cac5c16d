"""The `mercury-ls` command: the language server, the engine server, and what a person asks of them."""

import argparse
import asyncio
import gc
import json
import logging
import math
import os
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mercury_ls import __version__

__all__ = ["EXIT_CODES", "main", "parser"]

LEVELS = ("debug", "info", "warning", "error")

EXIT_CODES = {
    0: "done",
    1: "it failed, it found nothing, or there is something to mend",
    2: "wrong arguments; nothing was done",
    3: "nothing was changed: no server runs, one runs already, or what was tuned is no better",
}
"""The same for every command."""


class UsageError(Exception):
    """The arguments are wrong. The message says which, and what is right."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    options = parser().parse_args(arguments)
    if os.path.expanduser("~") == "~":
        from mercury_ls.link.local import settle_home

        settle_home()
    try:
        if options.run is not speak_lsp:  # an editor gets what works, and shows the rest to its user
            check_settings(options)
        code = options.run(options)
    except UsageError as error:
        sys.stderr.write(f"{options.name}: {error}\n")
        code = 2
    except KeyboardInterrupt:
        code = 130
    with suppress(OSError):  # a log on a full disk
        sys.stderr.flush()
    raise SystemExit(code)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="mercury-ls",
        description="Code completion and next edits from a small model on your own machine, for any LSP editor.",
        epilog=f"`mercury-ls COMMAND --help` says more, with an example.\n\n{exit_codes(EXIT_CODES)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"mercury-ls {__version__}")
    speak = top.add_mutually_exclusive_group()
    speak.add_argument("--stdio", action="store_true", help="speak LSP on standard input and output")
    speak.add_argument("--tcp", metavar="HOST:PORT", help="speak LSP to any number of TCP clients")
    speak.add_argument("--ws", metavar="HOST:PORT", help="speak LSP to any number of WebSocket clients")
    common(top)
    top.set_defaults(run=speak_lsp, name="mercury-ls", usage=top.print_usage)
    commands = top.add_subparsers(metavar="COMMAND")
    add_serve(commands)
    add_complete(commands)
    add_doctor(commands)
    add_config(commands)
    add_stats(commands)
    add_record(commands)
    add_tune(commands)
    return top


def exit_codes(codes: Mapping[int, str]) -> str:
    return "\n".join(["exit codes:", *(f"  {code}  {meaning}" for code, meaning in codes.items())])


def add(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], about: str, example: str, **codes: str
) -> argparse.ArgumentParser:
    """A command. The first line of what it is about stands in the list of commands; `codes` is what its exit codes
    mean where that is more than is said of all."""
    first, _, rest = about.partition("\n")
    meanings = {**{code: EXIT_CODES[code] for code in (0, 1, 2)}, **{int(c[1:]): text for c, text in codes.items()}}
    command = commands.add_parser(
        name,
        help=first[0].lower() + first[1:].rstrip("."),
        description=f"{first}\n\n{textwrap.dedent(rest).strip()}".strip(),
        epilog=f"example:\n  {example}\n\n{exit_codes(dict(sorted(meanings.items())))}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    common(command)
    command.set_defaults(run=run, name=command.prog)
    return command


def common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--config", metavar="FILE", help="user settings from FILE instead of the usual place")
    command.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="one setting; repeatable")
    command.add_argument("--log-file", metavar="FILE", help="log to FILE instead of standard error")
    command.add_argument("--log-level", choices=LEVELS, help="how much to log (default: log.level, else warning)")


def add_serve(commands: Any) -> None:
    serve = add(
        commands,
        "serve",
        run_serve,
        """Run the engine server.
        It loads the model and answers for all editors of yours. Editors start it by themselves, and it leaves when
        none has needed it for `engine.idle_exit_minutes`. With --http, other programs can ask it too.""",
        "mercury-ls serve --status",
        _1="it could not listen or load what it needs, or the running one does not answer",
        _3="another engine server of yours runs already; with --status: none runs",
    )
    serve.add_argument("--http", metavar="HOST:PORT", nargs="?", const="127.0.0.1:8391", help="listen there too")
    serve.add_argument(
        "--host-name", metavar="NAME", action="append", help="a name that --http is asked by; repeatable"
    )
    serve.add_argument("--certificate", metavar="FILE", help="TLS certificate for --http")
    serve.add_argument("--key", metavar="FILE", help="TLS key for --http")
    serve.add_argument("--stop", action="store_true", help="stop the running engine server")
    serve.add_argument("--status", action="store_true", help="say whether one runs, and how it is")


def add_complete(commands: Any) -> None:
    complete = add(
        commands,
        "complete",
        run_complete,
        """Print one suggestion for one place.
        It asks as an editor does where you ask by hand, so there is an answer even where typing alone would get
        none.""",
        "mercury-ls complete src/app.py:12:5",
        _0="a suggestion was printed",
        _1="there is nothing to suggest, or the engine failed",
        _2="wrong arguments, or there is no such place",
    )
    complete.add_argument("place", metavar="FILE:LINE:COL", help="1-based line and column, as editors count")
    complete.add_argument("--json", action="store_true", help="the whole answer as JSON")


def add_doctor(commands: Any) -> None:
    add(
        commands,
        "doctor",
        run_doctor,
        """Check installation, settings, model, engine and permissions.
        Each finding has a mark, and a line that says what to do where something is wrong.""",
        "mercury-ls doctor",
        _0="all is well",
        _1="there is something to mend",
    )


def add_config(commands: Any) -> None:
    config = add(
        commands,
        "config",
        run_config,
        """Show the settings in force and where each comes from.
        Settings that could not be applied come first, on standard error.""",
        "mercury-ls config --set engine.effort=high",
        _0="all settings apply",
        _1="there is something to mend",
    )
    config.add_argument("--json", action="store_true", help="as JSON")


def add_stats(commands: Any) -> None:
    stats = add(
        commands,
        "stats",
        run_stats,
        """Show what became of suggestions, per day and language.
        Shown, typed through, accepted, rejected, and characters saved. The counts are kept on this machine;
        `record.counts` switches them off.""",
        "mercury-ls stats --days 30",
        _1="nothing has been counted",
    )
    stats.add_argument("--days", metavar="N", type=whole_number, help="only the last N days, today among them")
    stats.add_argument("--json", action="store_true", help="as JSON")


def add_record(commands: Any) -> None:
    record = add(
        commands,
        "record",
        run_record,
        """Record edit sessions on this machine, or stop doing so.
        Recordings are for replay and tuning. They hold text of yours, with secrets masked, and stay on this
        machine.""",
        "mercury-ls record status",
        _1="the switch could not be written, or `record.enabled` keeps recording on",
    )
    record.add_argument("switch", choices=("on", "off", "status"))


def add_tune(commands: Any) -> None:
    tune = add(
        commands,
        "tune",
        run_tune,
        """Teach the model a project of yours, on this machine.
        It learns from the project's files and commits, and is judged by files and later commits that were kept back,
        before and after. What it learned is used only if it is certainly better. Lower bits per byte are better;
        higher likeness and exactness are better.""",
        "mercury-ls tune ~/work/project --minutes 20",
        _0="installed; with --status or --remove: done",
        _1="nothing could be tuned",
        _3="no better than before, so not installed",
    )
    tune.add_argument("path", metavar="PATH", nargs="?", default=".", help="a folder of the project (default: here)")
    tune.add_argument(
        "--minutes", type=minutes, default=10.0, help="for everything, judging included; more than 0 (default: 10)"
    )
    tune.add_argument("--full", action="store_true", help="train all weights, not only small additions to them")
    tune.add_argument("--status", action="store_true", help="list what has been tuned, and how much better it is")
    tune.add_argument("--remove", action="store_true", help="forget what was learned of the project")


def minutes(text: str) -> float:
    with suppress(ValueError):
        if 0 < (value := float(text)) < math.inf:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is no number of minutes over 0, for example 10")


def whole_number(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text) < 100_000:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1, for example 7")


def speak_lsp(options: argparse.Namespace) -> int:
    """The language server. Nothing but the protocol goes to standard output."""
    if not (options.stdio or options.tcp or options.ws):
        options.usage(sys.stderr)
        raise UsageError("say how to speak: --stdio, --tcp HOST:PORT or --ws HOST:PORT, or name a COMMAND")
    where = None if options.stdio else local_address(options.tcp or options.ws)
    gc.disable()  # a tenth of the start is the collector going over modules: `connector` starts it
    start_log(options)
    tell(missing_file(options))
    try:
        return asyncio.run(speak(options, where))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"mercury-ls: {error}\n")
        return 1


def local_address(text: str) -> tuple[str, int]:
    from mercury_ls.link import local

    host, port = address(text)
    if host not in local.LOOPBACK:
        raise UsageError(f"{host} can be reached from other machines, and all would travel in the clear: use 127.0.0.1")
    return host, port


def address(text: str) -> tuple[str, int]:
    from mercury_ls.serve import daemon

    try:
        return daemon.split_address(text)
    except ValueError as error:
        raise UsageError(str(error)) from error


async def speak(options: argparse.Namespace, where: tuple[str, int] | None) -> int:
    if where is None:
        from mercury_ls.lsp import transport

        stdout = transport.private_stdout()  # before anything is imported that may print
        return await transport.serve_stdio(stdout, connector(options))
    from mercury_ls.link import local
    from mercury_ls.lsp import network

    host, port = where
    token, path = local.standing_token()

    def listening(address: tuple) -> None:
        sys.stderr.write(f"mercury-ls: listening on {address[0]}:{address[1]}, token in {path}\n")
        sys.stderr.flush()

    gc.enable()
    serve = network.serve_tcp if options.tcp else network.serve_websocket
    await serve(host, port, token, server_command(options), listening)
    return 0


def server_command(options: argparse.Namespace) -> list[str]:
    """The server of one client, with the settings of this command; `-P` keeps it from importing the current folder."""
    named = {"--config": options.config, "--log-file": options.log_file, "--log-level": options.log_level}
    told = [f"{name}={value}" for name, value in named.items() if value]
    assigned = [f"--set={item}" for item in options.set]
    return [sys.executable, "-P", "-m", "mercury_ls", "--stdio", *told, *assigned]


def connector(options: argparse.Namespace) -> Any:
    """Makes the server for one client, given where its messages go."""
    from mercury_ls.lsp.app import create_server
    from mercury_ls.session import stats
    from mercury_ls.session.wiring import Wiring

    gc.freeze()
    gc.enable()

    def connect(write: Any) -> Any:
        wiring = Wiring(assigned(options), user_file=chosen_file(options), stats_file=stats.default_file())
        server = create_server(wiring)
        server.protocol.attach(write)
        return server.protocol

    return connect


def run_serve(options: argparse.Namespace) -> int:
    from mercury_ls.link import local
    from mercury_ls.link.wire import WireError
    from mercury_ls.serve import daemon
    from mercury_ls.serve.models import loader

    try:
        if options.stop:
            print("stopped" if daemon.stop() else "no engine server was running")
            return 0
        if options.status:
            return print_engine_status(daemon.status())
    except (local.PlacementError, WireError, OSError) as error:
        sys.stderr.write(f"mercury-ls serve: {error}\n")
        return 1

    if wrong := misplaced(options):
        raise UsageError(wrong)
    if options.http:
        address(options.http)
    start_log(options)
    settings = told_settings(options)
    where = daemon.Options(
        idle_minutes=settings.engine.idle_exit_minutes,
        http=options.http or "",
        certificate=options.certificate or "",
        key=options.key or "",
        hosts=tuple(options.host_name or ()),
    )
    return daemon.run(where, loader(settings.engine))


def misplaced(options: argparse.Namespace) -> str:
    """What was given without what it is for."""
    if (options.certificate or options.key or options.host_name) and not options.http:
        return "--certificate, --key and --host-name are for --http: add --http HOST:PORT"
    if options.key and not options.certificate:
        return f"--key {options.key} is of no use alone: add --certificate FILE"
    return ""


def print_engine_status(status: Any) -> int:
    if status is None:
        print("no engine server is running; editors start one when they need it")
        return 3
    about = f": engine {status.info.engine}, model {status.info.model}, on {status.info.device}" if status.info else ""
    print(f"{status.state}{about} {status.detail}".rstrip())
    return 0


def run_complete(options: argparse.Namespace) -> int:
    from mercury_ls.complete import PlaceError, complete

    start_log(options)
    path, line, column = split_place(options.place)
    wiring_arguments = {"arguments": assigned(options), "user_file": chosen_file(options)}
    try:
        reply = asyncio.run(complete(path, line, column, **wiring_arguments))
    except PlaceError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        sys.stderr.write(f"mercury-ls complete: {error}\n")
        return 1
    tell([*missing_file(options), *reply["problems"]])
    if options.json:
        print(json.dumps(reply, ensure_ascii=False))
    elif reply["items"]:
        print(reply["items"][0]["text"])
    else:
        sys.stderr.write(f"nothing to suggest: {reply['silence']}\n")
    return 0 if reply["items"] else 1


def split_place(place: str) -> tuple[str, int, int]:
    path, line, column = [*place.rsplit(":", 2), "", ""][:3]
    if not (path and line.isdigit() and column.isdigit() and int(line) and int(column)):
        raise UsageError(f"{place!r} is not FILE:LINE:COL, for example src/app.py:12:5")
    return path, int(line), int(column)


def run_doctor(options: argparse.Namespace) -> int:
    from mercury_ls import doctor

    loaded = load_settings(options)
    findings = doctor.examine(loaded, chosen_file(options))
    print(doctor.report(findings))
    return 1 if any(finding.remedy for finding in findings) else 0


def run_config(options: argparse.Namespace) -> int:
    from mercury_ls.settings import load as config
    from mercury_ls.wording import abbreviated, readable

    loaded = load_settings(options)
    rows = [in_force(row, loaded) for row in config.effective(loaded)]
    tell(loaded.problems)
    sys.stderr.flush()
    if options.json:
        print(json.dumps([{"path": r.path, "value": r.value, "origin": r.origin} for r in rows]))
    else:
        print(f"# user file: {readable(chosen_file(options) or config.user_file())}")
        width = max(len(row.path) for row in rows)
        for row in rows:
            print(f"{row.path:{width}}  {json.dumps(row.value, ensure_ascii=False):20}  {abbreviated(row.origin)}")
    return 1 if loaded.problems else 0


def in_force(row: Any, loaded: Any) -> Any:
    """Two defaults give way to what is not a setting."""
    from msgspec.structs import replace

    from mercury_ls.session.wiring import recording_switch

    if row.path == "record.enabled" and not row.value and recording_switch().exists():
        return replace(row, value=True, origin="`mercury-ls record on`")
    if row.path == "log.level" and row.value != log_level(loaded):
        return replace(row, value=log_level(loaded), origin="default without log.file")
    return row


def run_stats(options: argparse.Namespace) -> int:
    import msgspec

    from mercury_ls.session import stats

    start_log(options)
    counted = stats.Stats(stats.default_file())
    counted.enabled = told_settings(options).record.counts
    rows = counted.rows()
    if options.days:
        rows = stats.recent(rows, options.days, counted.today)
    if options.json:
        print(msgspec.json.encode({"days": rows}).decode())
    elif rows:
        print(stats.table(rows))
    else:
        print("nothing has been counted")
    if not options.json:
        print(f"\n{counted.where}")
    return 0 if rows else 1


def run_record(options: argparse.Namespace) -> int:
    from mercury_ls.session.wiring import recording_switch, recordings
    from mercury_ls.wording import readable

    settings = told_settings(options)
    switch = recording_switch()
    try:
        turn(switch, options.switch)
    except OSError as error:
        sys.stderr.write(
            f"mercury-ls record: {switch} cannot be changed ({error.strerror}): make its folder writable to you\n"
        )
        return 1
    on = settings.record.enabled or switch.exists()
    place = readable(recordings(settings))
    print(f"recording is {'on' if on else 'off'} for editors started from now on; files in {place}")
    if options.switch == "off" and settings.record.enabled:
        print("record.enabled is set in your settings and keeps it on: see `mercury-ls config`")
        return 1
    return 0


def turn(switch: Path, wanted: str) -> None:
    if wanted == "on":
        switch.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        switch.touch()
    elif wanted == "off":
        switch.unlink(missing_ok=True)


def run_tune(options: argparse.Namespace) -> int:
    from mercury_engine.api import EngineError
    from mercury_ls.serve import tuned
    from mercury_ls.tuning import TuningError
    from mercury_ls.wording import readable

    place = tuned.home()
    try:
        if options.status:
            return print_tunings(options, place)
        root = folder_of(options)
        if options.remove:
            print(f"{readable(root)}: {'forgotten' if tuned.remove(root, place) else 'nothing was tuned'}")
            return 0
        return tune_project(options, root, place)
    except (TuningError, EngineError, OSError) as error:
        sys.stderr.write(f"mercury-ls tune: {error}\n")
        return 1


def folder_of(options: argparse.Namespace) -> str:
    from mercury_ls.tuning import TuningError, project_of

    try:
        return project_of(options.path, gone=options.remove)
    except TuningError as error:
        raise UsageError(str(error)) from error


def tune_project(options: argparse.Namespace, root: str, place: Path) -> int:
    from mercury_ls.project.privacy import Privacy
    from mercury_ls.settings.models import resolve
    from mercury_ls.tuning import Order, TuningError, described, tune
    from mercury_ls.wording import readable

    settings = told_settings(options, root)
    folder = resolve(settings.engine.model)
    if settings.engine.address or folder is None:
        raise TuningError("there is no model on this machine to tune: see engine.model and engine.address")
    privacy = Privacy(settings.privacy, [root])
    found = tune(root, privacy, Order(folder, options.minutes, options.full), place)
    print(described(found))
    if found.better:
        remedy = f"mercury-ls tune {shlex.quote(options.path)} --remove"
        print(f"installed for files in {readable(root)}; `{remedy}` takes it back")
        return 0
    print(f"not installed: {found.reason}")
    return 3


def print_tunings(options: argparse.Namespace, place: Path) -> int:
    from mercury_ls.serve.tuned import fits, installed
    from mercury_ls.settings.models import resolve
    from mercury_ls.tuning import described

    folder = resolve(told_settings(options).engine.model)
    found = installed(place).values()
    for tuning in found:
        print(described(tuning))
        if folder is None or not fits(tuning, folder):
            print("  not in use: made for another model than engine.model; tune again, or remove it")
    if not found:
        print("nothing has been tuned: `mercury-ls tune PATH` teaches the model a project")
    return 0


# What the commands share


def told_settings(options: argparse.Namespace, root: str = "") -> Any:
    """The settings in force; what could not be applied is said on standard error."""
    loaded = load_settings(options, root)
    tell(loaded.problems)
    return loaded.settings


def load_settings(options: argparse.Namespace, root: str = "") -> Any:
    from msgspec.structs import replace

    from mercury_ls.settings import load as config

    files = config.project_files([root or os.getcwd()])
    user_file = chosen_file(options) or config.user_file()
    loaded = config.load(user_file, files, {}, os.environ, assigned(options))
    return replace(loaded, problems=(*missing_file(options), *loaded.problems))


def missing_file(options: argparse.Namespace) -> list[Any]:
    """Nobody needs a user file, but who names one means it."""
    from mercury_ls.settings.load import Problem

    chosen = chosen_file(options)
    if chosen is None or os.path.exists(chosen):
        return []
    return [Problem("--config", str(chosen), "is not there; write it, or name another file", "command line")]


def check_settings(options: argparse.Namespace) -> None:
    """What the command line itself sets has to be right; any other source gets a word, and the rest applies."""
    if not (options.set or options.config):
        return
    wrong = [problem for problem in load_settings(options).problems if problem.origin == "command line"]
    if wrong:
        raise UsageError("\n".join(f"{problem.path}{problem.assigned}: {problem.remedy}" for problem in wrong))


def tell(problems: Iterable[Any]) -> None:
    for problem in problems:
        sys.stderr.write(f"{problem}\n")


def chosen_file(options: argparse.Namespace) -> Path | None:
    return Path(options.config).expanduser() if options.config else None


def assigned(options: argparse.Namespace) -> dict[str, str]:
    """The settings of the command line, by their dotted paths."""
    found = {}
    for item in options.set:
        name, sign, value = item.partition("=")
        if not sign:
            raise UsageError(f"--set {item!r} is not NAME=VALUE, for example suggest.delay_ms=100")
        found[name.strip()] = value.strip()
    if options.log_file:
        found["log.file"] = options.log_file
    if options.log_level:
        found["log.level"] = options.log_level
    return found


def start_log(options: argparse.Namespace) -> None:
    """Log to the chosen file, else to standard error, where editors show it."""
    loaded = load_settings(options)
    logging.basicConfig(
        handlers=[log_handler(loaded.settings.log.file)],
        level=log_level(loaded).upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("pygls").setLevel(max(logging.getLogger().level, logging.WARNING))
    logging.getLogger("pygls.protocol.json_rpc").addFilter(is_news)


LONGEST_LINE = 500
NO_NEWS = ("Cancel notification", "Unable to deserialize message")
"""A client that types fast cancels what was answered a moment ago; and `lsp.py` says in one line what is wrong with a
message, where pygls prints a page of its own code."""


def is_news(record: logging.LogRecord) -> bool:
    """A request that is answered with an error is one line, too."""
    error = record.exc_info[1] if record.exc_info else None
    if hasattr(error, "to_response_error"):
        record.msg, record.args, record.exc_info = f"{record.getMessage()}: {error}"[:LONGEST_LINE], (), None
    return not str(record.msg).startswith(NO_NEWS)


def log_handler(file: str) -> logging.Handler:
    """Nobody goes without suggestions for want of a log."""
    if not file:
        return logging.StreamHandler()
    try:
        return logging.FileHandler(file, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        sys.stderr.write(
            f"mercury-ls: log.file {file} cannot be written ({error.strerror}): logging to standard error\n"
        )
        return logging.StreamHandler()


def log_level(loaded: Any) -> str:
    """Editors show standard error to people: nobody who asked for nothing gets more than warnings there."""
    log = loaded.settings.log
    return log.level if log.file or "log.level" in loaded.origins else "warning"
