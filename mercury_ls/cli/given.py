"""Command-line arguments common to all commands: settings, the user file, and the log."""

import argparse
import logging
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mercury_ls.settings.load import Loaded, SettingsProblem, load, project_files, user_file
from mercury_ls.settings.schema import Settings
from mercury_ls.wording import harmless, one_line

LONGEST_LINE = 500
NOISE = ("Cancel notification", "Unable to deserialize message")
"""Clients cancel requests that were answered a moment ago whenever the user types fast; and `protocol.py` reports a
malformed message in one line, where pygls prints a page of traceback."""


class UsageError(Exception):
    """The arguments are wrong. The message says which, and what is right."""


def settings_in_effect(options: argparse.Namespace) -> Settings:
    """The settings in effect; those that could not be applied are reported on standard error."""
    loaded = load_settings(options)
    report(loaded.problems)
    return loaded.settings


def load_settings(options: argparse.Namespace) -> Loaded:
    files = project_files([os.getcwd()])
    loaded = load(chosen_file(options) or user_file(), files, {}, os.environ, assigned(options))
    return replace(loaded, problems=(*missing_file(options), *loaded.problems))


def check_settings(options: argparse.Namespace) -> None:
    """Problems on the command line itself are fatal; those of other sources are reported, and the rest applies."""
    if not (options.set or options.config):
        return
    fatal = [problem for problem in load_settings(options).problems if problem.origin == "command line"]
    lines = [f"{problem.path}{problem.assigned}: {problem.remedy}" for problem in fatal]
    if lines:
        raise UsageError("\n".join(lines))


def missing_file(options: argparse.Namespace) -> list[SettingsProblem]:
    """The user file is optional, unless --config names one."""
    chosen = chosen_file(options)
    if chosen is None or os.path.exists(chosen):
        return []
    return [SettingsProblem("--config", str(chosen), "does not exist; create it, or name another file", "command line")]


def report(problems: Iterable[Any]) -> None:
    for problem in problems:
        sys.stderr.write(f"{harmless(str(problem))}\n")


def failed(options: argparse.Namespace, error: Exception | str) -> int:
    """Report the error; return its exit code."""
    sys.stderr.write(f"{options.command}: {one_line(str(error))}\n")
    return 1


def chosen_file(options: argparse.Namespace) -> Path | None:
    return Path(options.config).expanduser() if options.config else None


def assigned(options: argparse.Namespace) -> dict[str, str]:
    """The settings on the command line, by dotted path."""
    values = {}
    for item in options.set:
        name, sign, value = item.partition("=")
        if not sign:
            raise UsageError(f"--set {item!r} is not NAME=VALUE, for example suggest.delay_ms=100")
        values[name.strip()] = value.strip()
    if options.log_file:
        values["log.file"] = options.log_file
    if options.log_level:
        values["log.level"] = options.log_level
    return values


def start_log(options: argparse.Namespace) -> None:
    """Log to the chosen file, else to standard error, where editors show it."""
    loaded = load_settings(options)
    handler = log_handler(loaded.settings.log.file)
    handler.setFormatter(LogFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=log_level(loaded).upper())
    logging.getLogger("pygls").setLevel(max(logging.getLogger().level, logging.WARNING))
    logging.getLogger("pygls.protocol.json_rpc").addFilter(_is_worth_logging)


class LogFormatter(logging.Formatter):
    """Formats each record as one line, with the traceback behind it: a message from a server or hub cannot forge
    another."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's own name
        return one_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return harmless(super().format(record))


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """True unless the record is noise; shortens a request that was answered with an error to one line."""
    error = record.exc_info[1] if record.exc_info else None
    if hasattr(error, "to_response_error"):
        record.msg, record.args, record.exc_info = f"{record.getMessage()}: {error}"[:LONGEST_LINE], (), None
    return not str(record.msg).startswith(NOISE)


def log_handler(file: str) -> logging.Handler:
    """The log handler; a log that cannot be written must not disable suggestions."""
    if not file:
        return logging.StreamHandler()
    try:
        return logging.FileHandler(file, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        instead = f"cannot write log.file {file} ({error.strerror}): logging to standard error"
        sys.stderr.write(f"mercury-ls: {one_line(instead)}\n")
        return logging.StreamHandler()


def log_level(loaded: Loaded) -> str:
    """Editors show standard error to their users: without a log file or a chosen level, only warnings go there."""
    log = loaded.settings.log
    return log.level if log.file or "log.level" in loaded.origins else "warning"
