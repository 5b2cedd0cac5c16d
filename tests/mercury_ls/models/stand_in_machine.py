"""The commands of mercury-ls, the language server among them, on a machine that runs the only known model smoothly, but
none that ships: it is offered after the first suggestion. Run as a program."""

import sys
from datetime import date

from mercury_engine import model_folders, trials
from mercury_ls import cli
from mercury_ls.lsp import stronger_model
from mercury_ls.models import recommended

TINY = recommended.RecommendedModel("org/Tiny-Coder", 60_000, "Apache-2.0", "fim", "tests")


def main() -> None:
    recommended.known = lambda: (TINY,)
    recommended.machine = lambda threads: recommended.Machine(16 << 30, 100e9, threads)
    stronger_model.COMMAND = (sys.executable, __file__)
    stronger_model.FEW_SHOWN = 1
    for name, folder in model_folders.shipped().items():
        slow = trials.SpeedTrial(trials.conditions(folder, "auto", 0), 2 * trials.LIMIT_MS, date.today())
        trials.keep(name, slow)
    cli.main()


if __name__ == "__main__":
    main()
