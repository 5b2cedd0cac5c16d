"""The installed models, and the one that the setting `engine.model` names."""

import json
from pathlib import Path

from mercury_engine.api import EngineError, EngineInfo

__all__ = ["FAKE", "answers", "installed", "resolve"]

FAKE = "fake"


def resolve(name: str) -> Path | None:
    """The folder of the model with this name or path; None for the fake engine, which has none.

    `auto` is the best installed model, or the fake engine if there is none. A plain name is never taken for a folder:
    the current folder may be a project that has a folder of that name.
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
    raise EngineError(
        f"engine.model = {name!r} is neither an installed model ({choices}) nor the path of a model folder"
    )


def answers(name: str, info: EngineInfo) -> bool:
    """Whether this engine has the model that the setting names: a server keeps the one that it was started with."""
    folder = resolve(name)
    if folder is None:
        return info.engine == FAKE
    try:
        return json.loads((folder / "config.json").read_bytes())["name"] == info.model
    except (OSError, ValueError, KeyError, TypeError):
        return True  # the engine reports what is wrong with it


def installed() -> dict[str, Path]:
    """The models of this installation, best first."""
    import mercury_engine

    home = Path(mercury_engine.__file__).parent / "models"
    found = {path.parent.name: path.parent for path in sorted(home.glob("*/config.json"))}
    return dict(sorted(found.items(), key=lambda item: item[0] != "quicksilver"))
