"""`mercury-ls serve`: run, stop or inspect the engine server."""

import argparse

from mercury_ls.cli.given import UsageError, failed, settings_in_effect, start_log
from mercury_ls.cli.speak import split_address
from mercury_ls.link import local
from mercury_ls.link.wire import Status, WireError
from mercury_ls.serve import daemon
from mercury_ls.serve.models import loader

__all__ = ["serve"]


def serve(options: argparse.Namespace) -> int:
    try:
        if options.stop:
            print("stopped" if daemon.stop() else "no engine server was running")
            return 0
        if options.status:
            return print_engine_status(daemon.status())
    except (local.PlacementError, WireError, OSError) as error:
        return failed(options, error)

    if wrong := misplaced(options):
        raise UsageError(wrong)
    if options.http:
        split_address(options.http)
    start_log(options)
    settings = settings_in_effect(options)
    listening = daemon.Options(
        idle_minutes=settings.engine.idle_exit_minutes,
        http=options.http or "",
        certificate=options.certificate or "",
        key=options.key or "",
        hosts=tuple(options.host_name or ()),
    )
    return daemon.run(listening, loader(settings))


def misplaced(options: argparse.Namespace) -> str:
    """Options without the option that they belong to."""
    if (options.certificate or options.key or options.host_name) and not options.http:
        return "--certificate, --key and --host-name belong to --http: add --http HOST:PORT"
    if options.key and not options.certificate:
        return f"--key {options.key} has no effect alone: add --certificate FILE"
    return ""


def print_engine_status(status: Status | None) -> int:
    if status is None:
        print("no engine server is running; editors start one when they need it")
        return 3
    about = f": engine {status.info.engine}, model {status.info.model}, on {status.info.device}" if status.info else ""
    print(f"{status.state}{about} {status.detail}".rstrip())
    return 0
