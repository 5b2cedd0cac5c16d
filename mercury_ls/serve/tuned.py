"""Adapters tuned to projects: where they are stored, and the engine that uses them for a project's files."""

import hashlib
import logging
import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Draft, Engine, EngineError, EngineInfo, InfillRequest
from mercury_engine.tuning_data import Tuning

ADAPTER_FILE = "adapter.json"
OPENING = "loading the model tuned for {}; until then the untuned one is used for its files"

Open = Callable[[Path], Engine]

log = logging.getLogger(__name__)


def home() -> Path:
    """The folder of adapters in the user's data folder, never in a project: a project must not be able to change the
    engine."""
    from platformdirs import user_data_path

    return user_data_path("mercury-ls", appauthor=False) / "tuned"


def folder_of(root: str, place: Path) -> Path:
    return place / hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:16]


def installed(place: Path) -> dict[Path, Tuning]:
    """Every readable adapter, by its folder."""
    adapters = {}
    for path in sorted(place.glob(f"*/{ADAPTER_FILE}")):
        tuning = read(path.parent)
        if tuning and path.parent == folder_of(tuning.root, place):
            adapters[path.parent] = tuning
    return adapters


def read(folder: Path) -> Tuning | None:
    try:
        return msgspec.json.decode((folder / ADAPTER_FILE).read_bytes(), type=Tuning)
    except (OSError, msgspec.DecodeError) as error:
        log.warning("cannot read %s: %s", folder, error)
        return None


def install(draft: Path, root: str, place: Path) -> Path:
    """Replace the project's adapter with a finished one. Running engine servers notice at the next request."""
    folder = folder_of(root, place)
    shutil.rmtree(folder, ignore_errors=True)
    draft.replace(folder)
    return folder


def remove(root: str, place: Path) -> bool:
    folder = folder_of(root, place)
    if not folder.exists():
        return False
    shutil.rmtree(folder)
    return True


def fits(tuning: Tuning, model: Path) -> bool:
    """True if it was tuned for these weights: a newer model has to be tuned again."""
    from mercury_engine.model.adapter import identity

    return tuning.base == identity(model)


class TunedEngine:
    """Answers with the engine tuned to the project of a request's file, else with the plain one.

    `open_tuned` opens an engine with an adapter's folder, on another thread and one at a time: on the first request for
    a project, and again when its adapter is replaced. Until it is open the plain engine answers, and `info` says so. A
    failure is logged once. All engines together keep to `memory` bytes: the least recently used are closed, but never
    the one in use.
    """

    def __init__(
        self,
        plain: Engine,
        open_tuned: Open,
        place: Path,
        memory: int,
        *,
        start: Callable[[Open, Path], "Future[Engine]"] | None = None,
    ) -> None:
        self._plain = plain
        self._open_tuned = open_tuned
        self._place = place
        self._memory = memory
        self._start = start or ThreadPoolExecutor(1, "tuned").submit
        self._opening: dict[_Adapter, Future[Engine]] = {}
        self._stamp: int | None = None
        self._adapters: dict[str, _Adapter] = {}
        self._nearest: dict[str, _Adapter | None] = {}
        self._engines: OrderedDict[_Adapter, Engine] = OrderedDict()

    def infill(self, request: InfillRequest) -> Generator[Draft]:
        return self._engine_for(request).infill(request)

    def warm(self, request: InfillRequest) -> Generator[None]:
        return self._engine_for(request).warm(request)

    def info(self) -> EngineInfo:
        """The plain engine's info, with the notes and the memory of all."""
        infos = [engine.info() for engine in (self._plain, *self._held())]
        opening = [OPENING.format(root) for root, adapter in self._adapters.items() if adapter in self._opening]
        notes = dict.fromkeys([*opening, *(note for info in infos for note in info.notes)])
        return replace(infos[0], notes=tuple(notes), bytes=sum(info.bytes for info in infos))

    def _held(self) -> list[Engine]:
        return [engine for engine in self._engines.values() if engine is not self._plain]

    def _engine_for(self, request: InfillRequest) -> Engine:
        self._refresh()
        if not self._adapters or not request.spans:
            return self._plain
        adapter = self._adapter_for(
            os.path.dirname(os.path.join(request.root, request.windows[request.spans[0].window].path))
        )
        return self._plain if adapter is None else self._engine_of(adapter)

    def _refresh(self) -> None:
        """Look for adapters again: installing or removing one changes the folder's modification time."""
        try:
            stamp = self._place.stat().st_mtime_ns
        except OSError:
            stamp = None
        if stamp != self._stamp:
            self._stamp = stamp
            adapters = installed(self._place).items()
            self._adapters = {tuning.root: _Adapter(folder, tuning.made) for folder, tuning in adapters}
            self._nearest = {}
            for engines in (self._engines, self._opening):
                for adapter in engines.keys() - self._adapters.values():
                    del engines[adapter]

    def _adapter_for(self, folder: str) -> "_Adapter | None":
        """The adapter of the innermost project around a folder."""
        if folder not in self._nearest:
            real = Path(os.path.realpath(folder)) if os.path.isabs(folder) else Path(folder)
            around = (self._adapters.get(str(above)) for above in (real, *real.parents))
            self._nearest[folder] = next((nearest for nearest in around if nearest), None)
        return self._nearest[folder]

    def _engine_of(self, adapter: "_Adapter") -> Engine:
        if adapter not in self._engines:
            if adapter not in self._opening:
                self._opening[adapter] = self._start(self._open_tuned, adapter.folder)
            if not self._opening[adapter].done():
                return self._plain
            self._engines[adapter] = self._opened(self._opening.pop(adapter))
        self._engines.move_to_end(adapter)
        while len(self._held()) > 1 and self.info().bytes > self._memory:
            self._engines.popitem(last=False)
        return self._engines[adapter]

    def _opened(self, opening: "Future[Engine]") -> Engine:
        try:
            return opening.result()
        except EngineError as error:
            log.warning("cannot open a tuned model, using the untuned one instead: %s", error)
        except Exception:
            log.exception("cannot open a tuned model, using the untuned one instead")
        return self._plain


class _Adapter(Struct, frozen=True):
    """One version of a project's adapter."""

    folder: Path
    made: str
