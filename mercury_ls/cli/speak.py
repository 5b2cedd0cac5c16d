"""The language server: one client on standard input and output."""

import argparse
import asyncio
import gc
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from mercury_ls.cli.given import UsageError, assigned, chosen_file, failed, missing_file, report, start_log

if TYPE_CHECKING:
    from mercury_ls.lsp.protocol import LspProtocol


def lsp(options: argparse.Namespace) -> int:
    """Nothing but the protocol goes to standard output."""
    if not options.stdio:
        options.usage(sys.stderr)
        raise UsageError("give --stdio to speak LSP, or a COMMAND")
    gc.disable()  # the collector would take a tenth of the start-up time; `_connector` turns it on
    start_log(options)
    report(missing_file(options))
    try:
        return asyncio.run(_serve(options))
    except (OSError, ValueError) as error:
        return failed(options, error)


async def _serve(options: argparse.Namespace) -> int:
    from mercury_ls.lsp import transport
    from mercury_ls.lsp.watchdog import watch

    watch(asyncio.get_running_loop())
    stdout = transport.private_stdout()  # before anything is imported that may print
    return await transport.serve_stdio(stdout, _connector(options))


def _connector(options: argparse.Namespace) -> Callable[[Callable[[bytes], None]], "LspProtocol"]:
    """A function that creates the server of one client, given how to write to it."""
    from mercury_ls.lsp.app import create_server
    from mercury_ls.session import stats
    from mercury_ls.session.wiring import Wiring

    gc.freeze()
    gc.enable()

    def connect(write: Callable[[bytes], None]) -> "LspProtocol":
        wiring = Wiring(assigned(options), user_file=chosen_file(options), stats_file=stats.default_file())
        server = create_server(wiring)
        server.protocol.attach(write)
        return server.protocol

    return connect
