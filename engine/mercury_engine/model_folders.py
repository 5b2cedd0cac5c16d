"""The installed models, from packages or added, and the one that the setting `engine.model` names."""

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from mercury_engine.api import EngineError, EngineInfo
from mercury_engine.record import RECORD_FILE, read_record

AUTO = "auto"
FAKE = "fake"
PACKAGES = "mercury_ls.models"
"""The entry points of packages that bring a model each. They name its folder as a package, which is never imported."""
CONFIG = "config.json"
NO_MODEL = (
    "no model is installed: `pip install ./models/quicksilver` in a clone of mercury-ls installs quicksilver; "
    "`mercury-ls model recommend` names others, and `mercury-ls model add http://127.0.0.1:8080` adds a server"
)


def resolve(name: str) -> Path | None:
    """The folder of the model with this name or path; None for the fake engine, which has none.

    `auto` is the model that comes as a package: an added model is used only by name. A plain name is never taken for a
    folder: the current folder may be a project that has a folder of that name.
    """
    if name == FAKE:
        return None
    if name == AUTO:
        return _packaged_model()
    models = installed()
    if name in models:
        return models[name]
    if Path(name).name != name and (path := Path(name).expanduser()).is_dir():
        return path
    choices = ", ".join([AUTO, *models])
    raise EngineError(
        f"engine.model = {name!r} is neither an installed model ({choices}) nor the path of a model folder: "
        "`mercury-ls model add SOURCE` adds one"
    )


def _packaged_model() -> Path:
    for folder in shipped().values():
        return folder
    raise EngineError(NO_MODEL)


def answers(name: str, info: EngineInfo) -> bool:
    """True if this engine has the model that the setting names: a server keeps the one that it was started with."""
    try:
        folder = resolve(name)
        if folder is None:
            return info.engine == FAKE
        if record := read_record(folder):
            return record.name == info.model
        return json.loads((folder / CONFIG).read_bytes())["name"] == info.model
    except (OSError, ValueError, KeyError, TypeError, EngineError):
        return True  # the engine reports what is wrong


def installed() -> dict[str, Path]:
    """The models of packages, and the added ones, none of which can take the name of such a model."""
    return {**(ours := shipped()), **{name: path for name, path in added().items() if name not in ours}}


def shipped() -> dict[str, Path]:
    """The models of packages, by their names."""
    return {folder.name: folder for folder in _packaged()}


@cache
def _packaged() -> tuple[Path, ...]:
    """Looked up once: reading what is installed takes ten milliseconds."""
    from importlib.metadata import entry_points

    packages = sorted(point.value for point in entry_points(group=PACKAGES))
    return tuple(folder for package in packages for folder in _with_config(_folders(package)))


def _folders(package: str) -> list[Path]:
    from importlib.util import find_spec

    with suppress(ModuleNotFoundError):
        spec = find_spec(package)
        return [Path(folder) for folder in (spec and spec.submodule_search_locations) or ()]
    return []


def _with_config(folders: list[Path]) -> Iterator[Path]:
    return (folder for folder in folders if (folder / CONFIG).is_file())


def added() -> dict[str, Path]:
    """The models that `mercury-ls model add` has finished; it works on the next one in a hidden folder."""
    records = sorted(added_home().glob(f"*/{RECORD_FILE}"))
    return {path.parent.name: path.parent for path in records if not path.parent.name.startswith(".")}


def added_home() -> Path:
    """The user's data folder, never a project: a project must not be able to change the engine."""
    from platformdirs import user_data_path

    return user_data_path("mercury-ls", appauthor=False) / "models"
