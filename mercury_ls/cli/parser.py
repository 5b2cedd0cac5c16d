"""The commands of `mercury-ls`, their options, and their help."""

import argparse
import textwrap
from collections.abc import Mapping
from typing import Any, NoReturn

from mercury_ls import __version__
from mercury_ls.wording import one_line

LEVELS = ("debug", "info", "warning", "error")

EXIT_CODES = {
    0: "success",
    1: "failure, no result, or something to fix",
    2: "wrong arguments; nothing was done",
    3: "no change: no server is running, one is already running, or you did not agree",
}
"""The exit codes common to every command."""


class _Parser(argparse.ArgumentParser):
    """Repeats no argument so that a terminal obeys it."""

    def error(self, message: str) -> NoReturn:
        super().error(one_line(message))


def parser() -> argparse.ArgumentParser:
    top = _Parser(
        prog="mercury-ls",
        description="Code completion and next edits from a model on your own machine, for any LSP editor.",
        epilog=f"`mercury-ls COMMAND --help` describes a command, with an example.\n\n{_exit_codes(EXIT_CODES)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"mercury-ls {__version__}")
    top.add_argument("--stdio", action="store_true", help="speak LSP on standard input and output")
    _add_common(top)
    top.set_defaults(run="speak.lsp", command="mercury-ls", usage=top.print_usage)
    commands = top.add_subparsers(metavar="COMMAND")
    for add in (
        _add_serve,
        _add_complete,
        _add_doctor,
        _add_config,
        _add_stats,
        _add_record,
        _add_model,
        _add_editor,
    ):
        add(commands)
    return top


def _exit_codes(codes: Mapping[int, str]) -> str:
    return "\n".join(["exit codes:", *(f"  {code}  {meaning}" for code, meaning in codes.items())])


def _add_command(commands: Any, name: str, about: str, example: str, **codes: str) -> argparse.ArgumentParser:
    """Add a command, run by the function of its name in a module of this package. The first line of `about` appears in
    the list of commands; `codes` gives exit codes a more specific meaning: `_1="nothing has been counted"`."""
    first, _, description = about.partition("\n")
    meanings = {**{code: EXIT_CODES[code] for code in (0, 1, 2)}, **{int(c[1:]): text for c, text in codes.items()}}
    command = commands.add_parser(
        name,
        help=first[0].lower() + first[1:].rstrip("."),
        description=f"{first}\n\n{textwrap.dedent(description).strip()}".strip(),
        epilog=f"example:\n  {example}\n\n{_exit_codes(dict(sorted(meanings.items())))}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_common(command)
    module = "serve" if name == "serve" else "commands"
    run = f"model.{name}" if commands.metavar == "VERB" else f"{module}.{name}"
    command.set_defaults(run=run, command=command.prog)
    return command


def _add_model(commands: Any) -> None:
    model = commands.add_parser(
        "model",
        help="add a model, choose one, and see what each costs on this machine",
        description="Models: those that are installed, and others that you add.",
        epilog=f"`mercury-ls model VERB --help` describes a verb, with an example.\n\n{_exit_codes(EXIT_CODES)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = model.add_subparsers(metavar="VERB", required=True)
    listing = _add_command(
        verbs,
        "list",
        """List the models: shipped, added, and servers that run on this machine.
        Times are those that `mercury-ls model test` measured on this machine.""",
        "mercury-ls model list",
    )
    listing.add_argument("--json", action="store_true", help="print JSON")
    _add_added(verbs)
    use = _add_command(
        verbs,
        "use",
        """Choose the model that suggests.
        It is loaded once, to see that it works, and written to your settings file. Running editors switch to it
        without a restart.""",
        "mercury-ls model use qwen2.5-coder-0.5b",
        _1="it could not be loaded, or something else, such as an editor's own settings, names another model and wins",
    )
    use.add_argument("model", metavar="NAME", help="a name that `mercury-ls model list` shows, or auto")
    remove = _add_command(
        verbs,
        "remove",
        """Remove a model that was added, and free its disk space.
        If it is in use, `auto` takes over. The remains of an interrupted download are deleted, too.""",
        "mercury-ls model remove qwen2.5-coder-0.5b",
        _1="there is no such model, or it could not be removed",
    )
    remove.add_argument("model", metavar="NAME", help="a model that was added")
    test = _add_command(
        verbs,
        "test",
        """Ask a model for three suggestions, and measure time and memory.
        It runs in this process, beside a running engine server. `mercury-ls model list` shows the result.""",
        "mercury-ls model test qwen2.5-coder-0.5b",
        _1="it could not be loaded, or did not answer",
    )
    test.add_argument("model", metavar="NAME", nargs="?", default="", help="default: the model in use")
    recommend = _add_command(
        verbs,
        "recommend",
        """Recommend models that this machine can run.
        Memory and its speed are measured, and the time for a token is predicted from them. Nothing is downloaded.""",
        "mercury-ls model recommend --for next-edits",
    )
    recommend.add_argument(
        "--for", dest="jobs", choices=["completions", "next-edits"], action="append", default=[], help="default: both"
    )
    recommend.add_argument("--json", action="store_true", help="print JSON")


def _add_added(verbs: Any) -> None:
    add = _add_command(
        verbs,
        "add",
        """Add a model from the hub, a folder, a GGUF file or a server.
        SOURCE is a hub id (Qwen/Qwen2.5-Coder-0.5B), a folder (./model), a .gguf file, the address of a server
        (http://127.0.0.1:8080, ollama:MODEL), or mistral, deepseek or inception. Size, licence and kind are shown, and
        nothing is loaded until you agree. Only this command downloads, and only models. An interrupted download
        continues when the command is run again. HF_HOME, HF_TOKEN, HF_ENDPOINT and HF_HUB_OFFLINE are honoured.""",
        "mercury-ls model add Qwen/Qwen2.5-Coder-0.5B",
        _1="it could not be added; what was downloaded is kept, and completed when the command is run again",
        _3="you did not agree, so nothing was added",
    )
    add.add_argument("source", metavar="SOURCE", help="where the model comes from")
    for option, metavar, about in (
        ("--name", "NAME", "name it gets here (default: made from SOURCE)"),
        ("--revision", "REVISION", "branch, tag or commit on the hub"),
        ("--file", "NAME", "of a hub repository: its .gguf file (default: q8_0 where it fits)"),
        ("--prompt", "FORMAT", "format of its prompts, if it is not recognised"),
        ("--model", "NAME", "of a server: its name for the model"),
        ("--key", "PLACE", "of a server: where to find its key: env:NAME or keyring:SERVICE/NAME"),
        ("--protocol", "NAME", "of a server: its protocol, if it is not recognised"),
        ("--ca", "FILE", "of a server: the signer of its certificate (PEM)"),
        ("--cert", "FILE", "of a server: the client certificate to send (PEM)"),
        ("--cert-key", "FILE", "of a server: the key of --cert, not encrypted"),
    ):
        add.add_argument(option, metavar=metavar, default="", help=about)
    add.add_argument(
        "--header",
        metavar="'NAME: VALUE'",
        action="append",
        default=[],
        help="of a server: a header of every request; VALUE may be env:NAME or keyring:SERVICE/NAME; repeatable",
    )
    precision = add.add_mutually_exclusive_group()
    for bits in ("int8", "int4"):
        about = f"store weights in {bits[3:]} bits (default: 8 below a billion parameters, else 4)"
        precision.add_argument(f"--{bits}", dest="precision", action="store_const", const=bits, help=about)
    add.add_argument("--yes", action="store_true", help="agree without being asked")


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--config", metavar="FILE", help="read user settings from FILE instead of the usual place")
    command.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="set one setting; repeatable")
    command.add_argument("--log-file", metavar="FILE", help="log to FILE instead of standard error")
    command.add_argument(
        "--log-level", choices=LEVELS, help="least severe level to log (default: log.level, or warning)"
    )


def _add_serve(commands: Any) -> None:
    serve = _add_command(
        commands,
        "serve",
        """Run the engine server.
        It loads the model and answers all of your editors. Editors start it on demand, and it exits when no editor
        has needed it for `engine.idle_exit_minutes`. With --http, other programs can use it too.""",
        "mercury-ls serve --status",
        _1="it could not listen or load the engine, or the running server does not answer",
        _3="your engine server is already running; with --status: none is running",
    )
    serve.add_argument(
        "--http",
        metavar="HOST:PORT",
        nargs="?",
        const="127.0.0.1:8391",
        help="also listen for HTTP (default address: 127.0.0.1:8391)",
    )
    serve.add_argument(
        "--host-name", metavar="NAME", action="append", help="a host name by which clients reach --http; repeatable"
    )
    serve.add_argument(
        "--project",
        metavar="FOLDER",
        action="append",
        help="use the code of this folder as context for requests over --http; repeatable",
    )
    serve.add_argument(
        "--without-token", action="store_true", help="let every program on this machine use --http, without its token"
    )
    serve.add_argument("--team", metavar="FILE", help="serve a team: users, engines and address are in this YAML file")
    serve.add_argument("--new-token", metavar="NAME", help="make a token for a user of --team, and end")
    serve.add_argument("--certificate", metavar="FILE", help="TLS certificate for --http, in PEM format")
    serve.add_argument("--key", metavar="FILE", help="TLS private key for --http, in PEM format")
    serve.add_argument("--stop", action="store_true", help="stop the running engine server")
    serve.add_argument(
        "--status", action="store_true", help="report whether an engine server is running, and its state"
    )


def _add_complete(commands: Any) -> None:
    complete = _add_command(
        commands,
        "complete",
        """Print the suggestion for one position in a file.
        It asks as an editor does when you request a suggestion by hand, so it answers even where typing would not
        trigger one.""",
        "mercury-ls complete src/app.py:12:5",
        _0="a suggestion was printed",
        _1="there is no suggestion, or the engine failed",
        _2="wrong arguments, or there is no such position",
    )
    complete.add_argument("place", metavar="FILE:LINE:COL", help="line and column are counted from 1, as in editors")
    complete.add_argument("--json", action="store_true", help="print the whole answer as JSON")


def _add_doctor(commands: Any) -> None:
    _add_command(
        commands,
        "doctor",
        """Check the installation, settings, model, engine and permissions.
        Each problem is followed by a line that says how to fix it.""",
        "mercury-ls doctor",
        _0="no problems found",
        _1="problems found",
    )


def _add_config(commands: Any) -> None:
    config = _add_command(
        commands,
        "config",
        """Show the settings in effect and where each value comes from.
        Settings that could not be applied are listed first, on standard error.""",
        "mercury-ls config --set engine.effort=high",
        _0="every setting applies",
        _1="some settings could not be applied",
    )
    config.add_argument("--json", action="store_true", help="print JSON")


def _add_stats(commands: Any) -> None:
    stats = _add_command(
        commands,
        "stats",
        """Show what happened to suggestions, by day and language.
        Counts suggestions shown, typed through, accepted and rejected, and characters saved. The counts never leave
        this machine; `record.counts = false` turns them off.""",
        "mercury-ls stats --days 30",
        _1="nothing has been counted",
    )
    stats.add_argument("--days", metavar="N", type=_whole_number, help="only the last N days, including today")
    stats.add_argument("--json", action="store_true", help="print JSON")


def _add_record(commands: Any) -> None:
    record = _add_command(
        commands,
        "record",
        """Turn the recording of edit sessions on this machine on or off.
        Recordings are for replay. They contain your text, with secrets masked, and never leave this machine.""",
        "mercury-ls record status",
        _1="recording could not be switched, or `record.enabled` keeps it on",
    )
    record.add_argument("switch", choices=("on", "off", "status"), help="turn it on or off, or say whether it is on")


def _add_editor(commands: Any) -> None:
    editor = _add_command(
        commands,
        "editor",
        """Show how to set up an editor: where its plugin is, and the lines to paste.
        The plugin comes with the server, so their versions match.""",
        "mercury-ls editor nvim",
        _2="there are no files for such an editor",
    )
    editor.add_argument("editor", metavar="EDITOR", nargs="?", help="its name (default: list the names)")


def _whole_number(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text) < 100_000:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more: give for example 7")
