"""The `mercury-ls` command: the language server, the engine server, and the commands that people run."""

import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code. Only the modules that the command needs are imported."""
    from mercury_ls.cli.parser import parser

    options = parser().parse_args(arguments)
    from mercury_ls.cli.given import UsageError, check_settings
    from mercury_ls.wording import harmless

    if os.path.expanduser("~") == "~":
        from mercury_ls.link.local import settle_home

        settle_home()
    try:
        if options.run != "speak.lsp":  # an editor gets what works, and reports the rest to its user
            check_settings(options)
        module, _, function = options.run.partition(".")
        code = getattr(importlib.import_module(f"mercury_ls.cli.{module}"), function)(options)
    except UsageError as error:
        sys.stderr.write(f"{options.command}: {harmless(str(error))}\n")
        code = 2
    except KeyboardInterrupt:
        code = 130
    with suppress(OSError):  # the disk of a redirected log may be full
        sys.stderr.flush()
    raise SystemExit(code)
