"""Contenders: our engine, its other ways of decoding, other runtimes with its weights, no model at all, services.

| name | |
|---|---|
| `fake`, `local`, a folder | an engine of this process: without a model, with the configured one, with this one |
| `http://…`, `https://…` | an engine server of ours (`mercury-ls serve --http`); without its times |
| `peer:ar`, `peer:ar+copy` | the same model, token by token, without and with copies as drafts |
| `peer:nameless` | our engine, which is not told the names that exist |
| `peer:shapeless` | our engine, to which no shapes are proposed |
| `peer:copy`, `peer:ngram` | without a model: the longest match, or n-grams |
| `peer:llama` | llama.cpp with the same weights as q8_0, no hints, no copy bias, with its prompt cache |
| `peer:transformers` | the same weights in plain `generate`, bfloat16, no hints, no copy bias |
| `peer:` and the name or folder of an added model | that model; a server gets the code of the rows |
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from bench.decode.peers import LlamaPeer, write_gguf
from bench.quality.editor import NO_FILE, Contender, Metered
from bench.quality.left_to_right import Generate, Layout, LeftToRight, dense_weights, qwen3
from mercury_engine.api import Draft, Engine, EngineError, EngineInfo, InfillRequest
from mercury_engine.engine import MercuryEngine, open_engine
from mercury_ls.link.client import EngineClient
from mercury_ls.serve.in_process import InProcessClient
from mercury_ls.serve.models import open_model
from mercury_ls.session.wiring import Wiring
from mercury_ls.settings import models
from mercury_ls.settings.schema import EngineSettings
from mercury_training.evaluate.baselines import BASELINES

__all__ = ["model_folder", "opened"]

PRECISION = "q8_0"
LOADING_SECONDS = 60.0


def model_folder(engine: str) -> Path | None:
    """The folder of the model that `local` or a path names; None if none is installed or no model is wanted."""
    if engine == "local":
        return models.resolve(Wiring(user_file=NO_FILE).load().engine.model)
    return models.resolve(engine) if engine != models.FAKE and not is_address(engine) else None


@asynccontextmanager
async def opened(name: str, engine: str = "local") -> AsyncIterator[Contender]:
    """`engine` has the weights that some peers decode in other ways."""
    if is_address(name):
        changed = asyncio.Event()
        client = EngineClient(EngineSettings(address=name), on_status=lambda status: changed.set())
        try:
            await client.start()
            await until_ready(client, changed)
            yield Contender(name, client)
        finally:
            await client.close()
        return
    with ExitStack() as stack:
        meter = Metered(engine_of(stack, name, engine))
        client = InProcessClient(meter)
        try:
            await client.start()
            yield Contender(short(name), client, meter)
        finally:
            await client.close()


async def until_ready(client: EngineClient, changed: asyncio.Event) -> None:
    async with asyncio.timeout(LOADING_SECONDS):
        while client.status.state in ("starting", "loading"):
            changed.clear()
            await changed.wait()
    if client.status.state != "ready":
        raise EngineError(f"the engine server is {client.status.state}: {client.status.detail}; is it running there?")


def short(name: str) -> str:
    return Path(name.removeprefix("peer:")).name


def is_address(name: str) -> bool:
    return urlsplit(name).scheme in ("http", "https")


def engine_of(stack: ExitStack, name: str, engine: str) -> Engine:
    if not name.startswith("peer:"):
        return added(model_folder(name), network=name != "local")
    peer = name.removeprefix("peer:")
    if peer in BASELINES:
        return BASELINES[peer]()
    if peer in WITH_OUR_WEIGHTS:
        if (folder := model_folder(engine)) is None:
            raise EngineError(f"{name} decodes our weights, and no model is installed; name its folder with --engine")
        return stack.enter_context(WITH_OUR_WEIGHTS[peer](folder))
    try:
        folder = models.resolve(peer)
    except EngineError as error:
        known = ", ".join([*WITH_OUR_WEIGHTS, *BASELINES])
        raise EngineError(f"{name}: no such peer beside {known}: {error}") from error
    return added(folder, network=True)


def added(folder: Path | None, *, network: bool) -> Engine:
    return open_model(folder, EngineSettings(), lambda share, what: None, network=network)


@contextmanager
def autoregressive(folder: Path) -> Iterator[Engine]:
    yield open_engine(folder, decode="ar")


@contextmanager
def copying(folder: Path) -> Iterator[Engine]:
    yield open_engine(folder, decode="ar+copy")


@contextmanager
def nameless(folder: Path) -> Iterator[Engine]:
    yield Nameless(open_engine(folder))


class Nameless:
    """An engine that is not told which names exist."""

    def __init__(self, engine: MercuryEngine) -> None:
        self.told = engine

    def infill(self, request: InfillRequest) -> Iterator[Draft]:
        return self.told.infill(replace(request, members=()))

    def warm(self, request: InfillRequest) -> Iterator[None]:
        return self.told.warm(request)

    def info(self) -> EngineInfo:
        return self.told.info()


@contextmanager
def shapeless(folder: Path) -> Iterator[Engine]:
    yield Shapeless(open_engine(folder))


class Shapeless(Nameless):
    """An engine to which nothing is proposed."""

    def infill(self, request: InfillRequest) -> Iterator[Draft]:
        return self.told.infill(replace(request, proposals=()))


@contextmanager
def llama(folder: Path) -> Iterator[Engine]:
    config, weights = dense_weights(folder)
    with tempfile.TemporaryDirectory() as directory:
        path = write_gguf(config, Path(directory) / f"{PRECISION}.gguf", PRECISION, weights.items())
        peer = LlamaPeer(path, min(2, os.cpu_count() or 1))
        try:
            yield LeftToRight(Layout(folder), peer, "llama.cpp", PRECISION)
        finally:
            peer.close()


@contextmanager
def transformers(folder: Path) -> Iterator[Engine]:
    yield Generate(Layout(folder), qwen3(folder), "bfloat16")


WITH_OUR_WEIGHTS: dict[str, Callable[[Path], AbstractContextManager[Engine]]] = {
    "ar": autoregressive,
    "ar+copy": copying,
    "nameless": nameless,
    "shapeless": shapeless,
    "llama": llama,
    "transformers": transformers,
}
"""Each opens a model's folder, and closes what it opened."""
