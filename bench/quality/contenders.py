"""Contenders: our engine, its other ways of decoding, other runtimes with its weights, no model at all, services.

| name | |
|---|---|
| `fake`, `local`, a folder | an engine of this process: without a model, with the configured one, with this one |
| `peer:ar`, `peer:ar+copy` | the same model, token by token, without and with copies as drafts |
| `peer:copy`, `peer:ngram` | without a model: the longest match, or n-grams |
| `peer:effort:LEVEL` | the same engine at another effort |
| `peer:` and the name or folder of an added model | that model; a server gets the code of the rows |
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import get_args

from bench.harness.in_process import InProcessClient
from bench.quality.editor import NO_FILE, Contender, Metered
from mercury_engine import model_folders
from mercury_engine.api import Effort, Engine, EngineError
from mercury_engine.decode.policy import Decode
from mercury_engine.engine import open_engine
from mercury_ls.serve.models import open_model
from mercury_ls.session.wiring import Wiring
from mercury_ls.settings.schema import EngineSettings
from mercury_training.evaluate.baselines import BASELINES

WITH_OUR_WEIGHTS: dict[str, Decode] = {"ar": "ar", "ar+copy": "ar+copy"}

EFFORTS: dict[str, Effort] = {f"peer:effort:{effort}": effort for effort in get_args(Effort)}


def model_folder(engine: str) -> Path | None:
    """The folder of the model that `local` or a path names; None if none is installed or no model is wanted."""
    if engine == "local":
        return model_folders.resolve(Wiring(user_file=NO_FILE).load().engine.model)
    return model_folders.resolve(engine) if engine != model_folders.FAKE else None


@asynccontextmanager
async def opened(name: str, engine: str = "local") -> AsyncIterator[Contender]:
    """The contender with this name. `engine` has the weights that some peers decode in other ways."""
    meter = Metered(_engine_of(name, engine))
    client = InProcessClient(meter)
    try:
        await client.start()
        yield Contender(_short(name), client, meter)
    finally:
        await client.close()


def _short(name: str) -> str:
    return Path(name.removeprefix("peer:")).name


def _engine_of(name: str, engine: str) -> Engine:
    if not name.startswith("peer:"):
        return _added(model_folder(name), network=name != "local")
    peer = name.removeprefix("peer:")
    if peer in BASELINES:
        return BASELINES[peer]()
    if decode := WITH_OUR_WEIGHTS.get(peer):
        if (folder := model_folder(engine)) is None:
            raise EngineError(f"{name} decodes our weights, and no model is installed; name its folder with --engine")
        return open_engine(folder, decode=decode)
    try:
        folder = model_folders.resolve(peer)
    except EngineError as error:
        known = ", ".join([*WITH_OUR_WEIGHTS, *BASELINES, *(effort.removeprefix("peer:") for effort in EFFORTS)])
        raise EngineError(f"{name}: not one of the peers {known}: {error}") from error
    return _added(folder, network=True)


def _added(folder: Path | None, *, network: bool) -> Engine:
    return open_model(folder, EngineSettings(), lambda share, what: None, network=network)
