"""Puts what a run has learned beside the model that it was learned on: `python -m mercury_training.edits.ship`.

    python -m mercury_training.edits.ship MODEL FACTORS OUT

OUT is a copy of MODEL, a folder as it ships, with an adapter. Its weights stay as they are, and so do its completions.
"""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from mercury_engine.model import provenance
from mercury_engine.model.adapter import read_adapter
from mercury_engine.model.config import CONFIG_FILE, read_config
from mercury_engine.model.export import ADAPTER_FILE, seal
from mercury_training.errors import TrainingError, reported

COMMAND = "mercury_training.edits.ship"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").split(":")[0])
    parser.add_argument("model", type=Path, metavar="MODEL", help="a model folder, as it ships")
    parser.add_argument("factors", type=Path, metavar="FACTORS", help="the factors.safetensors of a run on it")
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to write")
    options = parser.parse_args(arguments)
    with reported(COMMAND):
        ship(options.model, options.factors, options.out)


def ship(model: Path, factors: Path, out: Path) -> None:
    if out.exists():
        raise TrainingError(f"{out}: exists already; name a new folder")
    read_adapter(factors, read_config(model / CONFIG_FILE))
    shutil.copytree(model, out)
    shutil.copyfile(factors, out / ADAPTER_FILE)
    provenance.note(COMMAND, out, {"model": model, "factors": factors})
    seal(out)


if __name__ == "__main__":
    main()
