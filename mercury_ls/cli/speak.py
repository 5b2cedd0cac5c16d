"""The language server: one client on standard input and output, or any number over TCP or WebSocket."""

import argparse
import asyncio
import gc
import sys
from collections.abc import Callable
from typing import Any

from mercury_ls.cli.given import UsageError, assigned, chosen_file, missing_file, report, start_log

__all__ = ["lsp", "server_command", "split_address"]


def lsp(options: argparse.Namespace) -> int:
    """Nothing but the protocol goes to standard output."""
    if not (options.stdio or options.tcp or options.ws):
        options.usage(sys.stderr)
        raise UsageError("choose --stdio, --tcp HOST:PORT or --ws HOST:PORT to speak LSP, or give a COMMAND")
    address = None if options.stdio else loopback_address(options.tcp or options.ws)
    gc.disable()  # the collector would take a tenth of the start-up time; `connector` turns it on
    start_log(options)
    report(missing_file(options))
    try:
        return asyncio.run(serve(options, address))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"mercury-ls: {error}\n")
        return 1


def loopback_address(text: str) -> tuple[str, int]:
    from mercury_engine.addresses import is_loopback

    host, port = split_address(text)
    if not is_loopback(host):
        raise UsageError(f"{host} can be reached from other machines, and LSP is not encrypted: use 127.0.0.1")
    return host, port


def split_address(text: str) -> tuple[str, int]:
    from mercury_ls.serve import daemon

    try:
        return daemon.split_address(text)
    except ValueError as error:
        raise UsageError(str(error)) from error


async def serve(options: argparse.Namespace, address: tuple[str, int] | None) -> int:
    if address is None:
        from mercury_ls.lsp import transport

        stdout = transport.private_stdout()  # before anything is imported that may print
        return await transport.serve_stdio(stdout, connector(options))
    from mercury_ls.link import local
    from mercury_ls.lsp import network

    host, port = address
    token, path = local.standing_token()

    def listening(address: tuple) -> None:
        sys.stderr.write(f"mercury-ls: listening on {address[0]}:{address[1]}, token in {path}\n")
        sys.stderr.flush()

    gc.enable()
    listen = network.serve_tcp if options.tcp else network.serve_websocket
    await listen(host, port, token, server_command(options), listening)
    return 0


def server_command(options: argparse.Namespace) -> list[str]:
    """Starts the server of one client with this command's settings; `-P` keeps it from importing the current folder."""
    named = {"--config": options.config, "--log-file": options.log_file, "--log-level": options.log_level}
    assignments = [f"{name}={value}" for name, value in named.items() if value]
    settings = [f"--set={item}" for item in options.set]
    return [sys.executable, "-P", "-m", "mercury_ls", "--stdio", *assignments, *settings]


def connector(options: argparse.Namespace) -> Callable[[Any], Any]:
    """Returns a function that makes the server of one client, given how to write to it."""
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
