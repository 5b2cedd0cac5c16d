"""Which model the setting `engine.model` names, and which models are here."""

import json
from pathlib import Path

from mercury_engine.api import EngineError, EngineInfo

__all__ = ["FAKE", "answers", "installed", "resolve"]

FAKE = "fake"


def resolve(name: str) -> Path | None:
    """The folder of the model of this name or path; None for the fake engine, which needs none.

    `auto` is the first installed model, and the fake engine as long as none is: it says so wherever it answers. A plain
    name is never a folder: this may run inside of a project that has one of that name.
    """
    known = installed()
    if name == FAKE or (name == "auto" and not known):
        return None
    if name == "auto":
        return next(iter(known.values()))
    if name in known:
        return known[name]
    if Path(name).name != name and (path := Path(name).expanduser()).is_dir():
        return path
    choices = ", ".join(["auto", *known, FAKE])
    raise EngineError(f"engine.model = {name!r} is neither an installed model ({choices}) nor the path of a folder")


def answers(name: str, info: EngineInfo) -> bool:
    """Whether this is the engine that the setting names: a server keeps the model that it was started with."""
    folder = resolve(name)
    if folder is None:
        return info.engine == FAKE
    try:
        return json.loads((folder / "config.json").read_bytes())["name"] == info.model
    except (OSError, ValueError, KeyError, TypeError):
        return True  # the engine will say what is wrong with it


def installed() -> dict[str, Path]:
    """The models that came with this installation, best first."""
    import mercury_engine

    home = Path(mercury_engine.__file__).parent / "models"
    found = {path.parent.name: path.parent for path in sorted(home.glob("*/config.json"))}
    return dict(sorted(found.items(), key=lambda item: item[0] != "quicksilver"))
