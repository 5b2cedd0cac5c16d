"""Contestants: a model's ways to decode, and completers without a model, all run in the same way."""

import hashlib
import math
import time
from pathlib import Path
from typing import Literal

from msgspec import Struct

from mercury_engine import model_folders
from mercury_engine.api import Effort, Engine, EngineInfo
from mercury_engine.autoregressive.engine import AutoregressiveEngine
from mercury_engine.decode import policy
from mercury_engine.decode.confidence import read_calibration
from mercury_engine.decode.costs import Costs, measure_costs
from mercury_engine.engine import MercuryEngine, open_runtime
from mercury_engine.model.config import CONFIG_FILE, TOKENIZER_FILE, read_config
from mercury_engine.model.export import shapes
from mercury_engine.model.runtime import Runtime
from mercury_engine.opening import check_layout, open_model
from mercury_engine.record import read_record
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_training.evaluate.baselines import BASELINES
from mercury_training.rows.fim_rows import FimRow, gap

Decode = Literal["policy", "ar", "ar+copy", "unverified"]

DECODES: dict[Decode, tuple[policy.Decode, Effort]] = {
    "policy": ("policy", "medium"),
    "ar": ("ar", "medium"),
    "ar+copy": ("ar+copy", "medium"),
    "unverified": ("policy", "instant"),
}
"""Ways to decode, and the effort of each; no answer is held back for being unlikely."""


PIECE = 1 << 20


class Contestant(Struct, frozen=True):
    name: str
    engine: Engine
    effort: Effort = "medium"


class Subject(Struct, frozen=True):
    """The evaluated model, and its rivals. `weights` distinguishes models of one name; the fake engine has neither
    weights nor a runtime."""

    info: EngineInfo
    weights: str
    parameters: int | None
    contestants: dict[str, Contestant]
    runtime: Runtime | None = None
    tokenizer: Tokenizer | None = None


class Suggestion(Struct, frozen=True):
    """An answer and its cost once its context was read: `settled` tokens in that many `forwards`, if known."""

    text: str
    p_accept: float
    complete: bool
    milliseconds: float
    reading_milliseconds: float
    forwards: int | None = None
    settled: int | None = None


def open_subject(model: str, costs: Costs | None = None) -> Subject:
    """An installed model, `auto` for the best that ships, or a model's folder. Only ours decode in several ways, and
    measure the costs of their forwards unless they are given."""
    folder = model_folders.resolve(model)
    baselines = {name: Contestant(name, engine()) for name, engine in BASELINES.items()}
    record = read_record(folder) if folder else None
    if folder is None or record:
        engine = open_model(folder)
        weights, parameters = (_digest(folder), record.parameters) if folder and record else ("none", None)
        return Subject(engine.info(), weights, parameters, {"policy": Contestant("policy", engine)} | baselines)
    check_layout(folder)
    runtime, tokenizer = open_runtime(folder), Tokenizer.load(folder / TOKENIZER_FILE)
    calibration, costs = read_calibration(folder), costs or measure_costs(runtime)
    ways = {}
    for name, (decode, effort) in DECODES.items():
        engine = MercuryEngine(runtime, tokenizer, calibration=calibration, costs=costs, decode=decode, bar=0)
        ways[name] = Contestant(name, engine, effort)
    info = ways["policy"].engine.info()
    return Subject(info, _digest(folder), _parameters(folder), ways | baselines, runtime, tokenizer)


def suggest(contestant: Contestant, row: FimRow) -> Suggestion:
    """Suggest as after a pause in typing: the context is read, then the suggestion is timed."""
    asked = gap(row, f"{contestant.name} {row.id}", contestant.effort)
    engine = contestant.engine
    started = time.perf_counter()
    for _ in engine.warm(asked):
        pass
    warmed = time.perf_counter()
    before = _work(engine)
    *_, last = engine.fill(asked)
    ended = time.perf_counter()
    forwards, settled = (
        None if earlier is None or later is None else later - earlier
        for earlier, later in zip(before, _work(engine), strict=True)
    )
    return Suggestion(
        last.text,
        last.p_accept,
        last.complete,
        (ended - warmed) * 1000,
        (warmed - started) * 1000,
        forwards,
        settled,
    )


def _work(engine: Engine) -> tuple[int | None, int | None]:
    if isinstance(engine, MercuryEngine | AutoregressiveEngine):
        return engine.report.forwards, engine.report.settled
    return getattr(engine, "forwards", None), None


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        digest.update(path.name.encode())
        with path.open("rb") as file:
            while piece := file.read(PIECE):
                digest.update(piece)
    return digest.hexdigest()[:16]


def _parameters(folder: Path) -> int:
    return sum(map(math.prod, shapes(read_config(folder / CONFIG_FILE)).values()))
