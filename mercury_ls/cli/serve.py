"""`mercury-ls serve`: run, stop or inspect the engine server."""

import argparse
import asyncio
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mercury_ls.cli.given import UsageError, failed, settings_in_effect, start_log
from mercury_ls.link import local
from mercury_ls.link.wire import Status, WireError
from mercury_ls.serve import daemon
from mercury_ls.serve.models import loader
from mercury_ls.settings.schema import Settings
from mercury_ls.wording import one_line, readable

if TYPE_CHECKING:
    from mercury_ls.serve.asgi import Handler
    from mercury_ls.serve.worker import Worker

TEAM = "a team's server answers at its own address (/health), and ends by Ctrl+C or SIGTERM"


def serve(options: argparse.Namespace) -> int:
    try:
        if options.stop:
            print("stopped" if daemon.stop() else f"no engine server was running; {TEAM}")
            return 0
        if options.status:
            return print_engine_status(daemon.status())
    except (local.PlacementError, WireError, OSError) as error:
        return failed(options, error)

    if options.new_token is not None:
        return print_new_token(options.new_token)
    if wrong := _misplaced(options):
        raise UsageError(wrong)
    if options.team:
        from mercury_ls.team.run import run

        start_log(options)
        return run(Path(options.team), settings_in_effect(options))
    if options.http:
        _check_address(options.http)
    start_log(options)
    settings = settings_in_effect(options)
    listening = daemon.Options(
        model=repr(settings.engine),
        idle_minutes=0 if options.http else settings.engine.idle_exit_minutes,
        http=options.http or "",
        certificate=options.certificate or "",
        key=options.key or "",
        hosts=tuple(options.host_name or ()),
        open=options.without_token,
    )
    return daemon.run(listening, loader(settings), _face(settings, options.project or []) if options.http else None)


def _check_address(text: str) -> None:
    try:
        daemon.split_address(text)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _face(settings: Settings, projects: Sequence[str]) -> daemon.Face:
    """The requests that are answered besides the engine protocol."""

    @contextmanager
    def opened(worker: "Worker", listening: daemon.Options, endpoint: daemon.ListeningEndpoint) -> "Iterator[Handler]":
        from mercury_ls.serve.access import Access
        from mercury_ls.serve.in_process import WorkerClient
        from mercury_ls.session.outcomes import Outcomes
        from mercury_ls.session.stats import Stats, default_file
        from mercury_ls.web.app import application
        from mercury_ls.web.service import Service

        file = default_file()
        site, token = daemon.site(listening, endpoint.socket), endpoint.token
        print(own_greeting(listening, site, token if sys.stdout.isatty() else ""), flush=True)
        roots = tuple(map(os.path.abspath, projects))
        storage = {"stats": Stats(file), "outcomes": Outcomes(file and file.parent)}
        service = Service(WorkerClient(worker, roots=roots), settings, roots=roots, **storage)
        reading = asyncio.get_running_loop().create_task(service.read_projects())
        access = Access("" if listening.open else token, listening.hosts)
        try:
            yield application(service, access)
        finally:
            reading.cancel()
            service.close()

    return opened


def own_greeting(listening: daemon.Options, site: str, token: str) -> str:
    """Lines to paste: programs read the token from its file where they can, else the token itself is shown."""
    from mercury_ls.web.greeting import greeting

    file = str(local.token_file())
    about = "not needed by programs on this machine" if listening.open else f"in {readable(file)}"
    return greeting(
        site,
        about,
        shell=f'"$(cat {shlex.quote(file)})"',
        vim=f"readfile({file!r})[0]",
        plain=token or "the token",
        fragment=f"#token={token}" if token else "",
    )


def _misplaced(options: argparse.Namespace) -> str:
    """Options that lack the option they belong to."""
    of_http = (options.certificate, options.key, options.host_name, options.without_token, options.project)
    if any(of_http) and not options.http:
        return "--certificate, --key, --host-name, --without-token and --project belong to --http: add --http HOST:PORT"
    for project in options.project or []:
        if not Path(project).is_dir():
            return f"--project {project} is not a folder: name the folder of a project"
    if options.team and options.http:
        return "--team FILE says where to listen: leave --http out"
    if options.key and not options.certificate:
        return f"--key {options.key} has no effect alone: add --certificate FILE"
    return ""


def print_new_token(name: str) -> int:
    from mercury_ls.team.config import misnamed, new_token

    if wrong := misnamed(name):
        raise UsageError(f"--new-token: {wrong}")
    token, digest = new_token()
    print(
        f"The token of {name}, which is stored nowhere:\n\n  {token}\n\nIts line under `users:`\n\n  {name}: {digest}"
    )
    return 0


def print_engine_status(status: Status | None) -> int:
    if status is None:
        print(f"no engine server is running; editors start one when they need it; {TEAM}")
        return 3
    about = f": engine {status.info.engine}, model {status.info.model}, on {status.info.device}" if status.info else ""
    print(one_line(f"{status.state}{about} {status.detail}".rstrip()))
    return 0
