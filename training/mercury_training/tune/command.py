"""Fine-tunes a shipped model on one project: `mercury-ls tune PATH` runs `python -m mercury_training.tune`.

The readable files arrive on standard input (`Material`, msgpack); once that is closed the result is not wanted any
more. No file of the project is opened here, only its history. The result is written to `--out` as an adapter, with
the figures that decide whether it is installed.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mercury_engine.tuning_data import receive
from mercury_training.errors import reported
from mercury_training.tune.run import RANK, TuningPlan, tune


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="mercury_training.tune", description=(__doc__ or "").split(":")[0])
    option = parser.add_argument
    option("--model", type=Path, required=True, metavar="DIR", help="the model's folder, as it ships")
    option("--out", type=Path, required=True, metavar="DIR", help="where the adapter goes")
    option("--minutes", type=float, default=10.0)
    option("--full", action="store_true", help="all weights, not products of low rank beside them")
    option("--threads", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    options = parser.parse_args(arguments)
    if hasattr(os, "nice"):
        os.nice(19)
    material = receive(sys.stdin.buffer)
    rank = 0 if options.full else RANK
    plan = TuningPlan(model=options.model, out=options.out, minutes=options.minutes, rank=rank, threads=options.threads)
    with reported("mercury-ls tune"):
        tune(material, plan, say=lambda line: print(line, file=sys.stderr, flush=True))
