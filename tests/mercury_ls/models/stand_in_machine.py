"""The commands of mercury-ls, the language server among them, on a machine that runs the only known model smoothly, and
where that is offered after the first suggestion: run as a program."""

import sys

from mercury_ls import cli
from mercury_ls.lsp import stronger_model
from mercury_ls.models import recommended

TINY = recommended.RecommendedModel("org/Tiny-Coder", 60_000, "Apache-2.0", "fim", "tests")


def main() -> None:
    recommended.known = lambda: (TINY,)
    recommended.machine = lambda threads: recommended.Machine(16 << 30, 100e9, threads)
    stronger_model.COMMAND = (sys.executable, __file__)
    stronger_model.FEW_SHOWN = 1
    cli.main()


if __name__ == "__main__":
    main()
