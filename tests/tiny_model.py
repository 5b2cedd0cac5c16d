"""A random model of our layout in a folder, for tests that open one: what it says is worth nothing."""

from pathlib import Path

import numpy as np
from msgspec.structs import replace
from safetensors.numpy import save_file

from mercury_engine.model.config import TINY, write_config
from mercury_engine.model.export import export, shapes

TOKENIZER = Path(__file__).parent / "engine/golden/tokenizer.json"
CONFIG = replace(TINY, name="stand-in")
NAME = CONFIG.name
WEIGHTS = "model.safetensors"
METADATA = "Metadata-Version: 2.1\nName: stand-in\nVersion: 1.0\n"
ENTRY_POINTS = "[mercury_ls.models]\nstand-in = a_stand_in.stand-in\n"


def write(folder: Path) -> Path:
    """The model as an engine opens it, in `folder/stand-in`."""
    source, draw = folder / "float", np.random.default_rng(0)
    source.mkdir(parents=True)
    write_config(CONFIG, source / "config.json")
    (source / "tokenizer.json").write_bytes(TOKENIZER.read_bytes())
    weights = {name: draw.normal(0, 0.02, shape).astype(np.float32) for name, shape in shapes(CONFIG).items()}
    save_file(weights, source / WEIGHTS)
    export(source, folder / NAME)
    return folder / NAME


def package(site: Path) -> Path:
    """A folder for PYTHONPATH with the package of this model, which `auto` means even beside quicksilver."""
    write(site / "a_stand_in")
    (site / "stand_in-1.0.dist-info").mkdir()
    (site / "stand_in-1.0.dist-info/METADATA").write_text(METADATA)
    (site / "stand_in-1.0.dist-info/entry_points.txt").write_text(ENTRY_POINTS)
    return site
