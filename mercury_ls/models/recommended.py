"""Models that this machine can run: their time for a token is predicted from what it measures of its memory."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mercury_engine import model_folders
from mercury_ls.link import local
from mercury_ls.models.add import LEAST_FOR_FOUR_BITS, WORKING_MEMORY, Precision, bytes_of
from mercury_ls.models.hub import megabytes

TOKENS = {"completions": 16, "next edits": 40}
"""Of a usual line, and of the lines that a next edit rewrites."""
SMOOTH_MS = 400.0
"""Somebody who types waits about that long at the end of a thought."""
BEARABLE_MS = 2000.0
EFFICIENCY = 0.7
"""Of the bandwidth that a plain sum reaches, what weights get beside attention and the cache."""
PROBE_BYTES = 192 << 20
ROUNDS = 4
SHARE_OF_MEMORY = 0.6
"""Editors, browsers and language servers need the rest."""

SHOWN = 6

Clock = Callable[[], float]
Fit = Literal["smooth", "on request", "too slow"]
Job = Literal["completions", "next edits"]
SERVER = "llama-server -hf {gguf} -c 16384 -np 2 --cache-reuse 256 --port 8080"


class RecommendedModel(Struct, frozen=True):
    """A model that is known to be of use. The licence is as it was when this list was written: its page decides.
    `active`: how many parameters a token needs, if not all. `prompt`: its format, if it runs in llama-server only, for
    which there is `gguf`. `download`: bytes, if they are not two for each parameter."""

    id: str
    parameters: int
    licence: str
    kind: str
    use: str
    active: int = 0
    prompt: str = ""
    gguf: str = ""
    download: int = 0

    @property
    def loads(self) -> int:
        return self.download or 2 * self.parameters

    @property
    def job(self) -> Job:
        return "next edits" if self.kind == "next-edit" else "completions"

    @property
    def commands(self) -> tuple[str, ...]:
        if not self.prompt:
            return (f"mercury-ls model add {self.id}",)
        return SERVER.format(gguf=self.gguf), f"mercury-ls model add http://127.0.0.1:8080 --prompt {self.prompt}"


class Machine(Struct, frozen=True):
    """`bandwidth` in bytes a second, over as many threads as an engine uses."""

    memory: int
    bandwidth: float
    threads: int


class Prediction(Struct, frozen=True):
    """`fit` is `smooth`, `on request` or `too slow`, from the predicted time for a usual answer."""

    known: RecommendedModel
    precision: Precision
    memory: int
    token_ms: float
    answer_ms: float
    fit: Fit
    commands: tuple[str, ...]


class Recommendation(Struct, frozen=True):
    """`missing` is a model of ours that is not installed, and how to install it."""

    machine: Machine
    choices: tuple[Prediction, ...]
    too_large: tuple[RecommendedModel, ...]
    not_predicted: tuple[RecommendedModel, ...] = ()
    missing: str = ""


def known() -> tuple[RecommendedModel, ...]:
    return msgspec.json.decode((Path(__file__).parent / "known.json").read_bytes(), type=tuple[RecommendedModel, ...])


def recommend(threads: int = 0, jobs: Sequence[str] = ()) -> Recommendation:
    """For these jobs; for both if none is named."""
    found = choices(machine(threads or 2), [model for model in known() if not jobs or model.job in jobs])
    return replace(found, missing="" if model_folders.shipped() else model_folders.NO_MODEL)


def choices(machine: Machine, models: Sequence[RecommendedModel]) -> Recommendation:
    """What fits into memory, fastest first, at eight bits where a model is small and four where it is not.

    A diffusion model reads all of its text in every pass, so that memory does not tell its time.
    """
    room = SHARE_OF_MEMORY * machine.memory if machine.memory else float("inf")
    fitting, too_large, too_slow = [], [], []
    for model in models:
        precision: Precision = "int8" if model.parameters < LEAST_FOR_FOUR_BITS else "int4"
        memory = bytes_of(model.parameters, precision) + WORKING_MEMORY
        if memory > room:
            too_large.append(model)
        elif model.kind == "diffusion":
            too_slow.append(model)
        else:
            fitting.append(_choice(model, precision, memory, machine))
    return Recommendation(
        machine, tuple(sorted(fitting, key=lambda choice: choice.answer_ms)), tuple(too_large), tuple(too_slow)
    )


def _choice(model: RecommendedModel, precision: Precision, memory: int, machine: Machine) -> Prediction:
    token_ms = 1000 * bytes_of(model.active or model.parameters, precision) / (EFFICIENCY * machine.bandwidth)
    answer_ms = TOKENS[model.job] * token_ms
    fit: Fit = "smooth" if answer_ms <= SMOOTH_MS else "on request" if answer_ms <= BEARABLE_MS else "too slow"
    return Prediction(model, precision, memory, token_ms, answer_ms, fit, model.commands)


def machine(threads: int) -> Machine:
    threads = min(threads, os.cpu_count() or 1)
    return Machine(local.memory(), bandwidth(threads), threads)


def bandwidth(
    threads: int, size: int = PROBE_BYTES, clock: Clock = time.perf_counter, own: Clock = time.thread_time
) -> float:
    """Bytes a second that sums over an array too large for any cache read, in the best of a few rounds. At least what
    one thread reads in its own time, so that other programs do not make the machine look slow."""
    import numpy as np

    def read(part: np.ndarray) -> float:
        started = own()
        np.sum(part)
        return part.nbytes / max(own() - started, 1e-9)

    def together() -> float:
        started = clock()
        alone = max(pool.map(read, parts))
        return max(alone, size / max(clock() - started, 1e-9))

    parts = np.array_split(np.ones(size // 8), threads)
    with ThreadPoolExecutor(threads) as pool:
        return max(together() for _ in range(ROUNDS))


def described(recommendation: Recommendation) -> Iterator[str]:
    if recommendation.missing:
        yield from (recommendation.missing, "")
    machine = recommendation.machine
    memory = megabytes(machine.memory) if machine.memory else "unknown memory"
    reading = f"{machine.threads} threads read {machine.bandwidth / 1e9:.0f} GB/s (measured just now)"
    yield f"this machine: {memory}; {reading}"
    yield "predicted, not measured, with a cached context; *on request*: too slow to follow your typing, fast enough by"
    yield "its key"
    listed: list[Prediction] = []
    for job, tokens in TOKENS.items():
        usable = [choice for choice in recommendation.choices if choice.known.job == job and choice.fit != "too slow"][
            :SHOWN
        ]
        listed += usable
        yield ""
        yield f"{job}, {tokens} tokens:" if usable else f"{job}: none is quick enough here without a GPU"
        for choice in usable:
            yield ""
            yield f"  {choice.known.id}  ({choice.known.licence})"
            yield f"    {choice.known.use}"
            times = f"{choice.token_ms:,.0f} ms a token, {choice.answer_ms:,.0f} ms in all ({choice.fit})"
            sizes = f"{megabytes(choice.memory)} of memory, a download of about {megabytes(choice.known.loads)}"
            yield f"    {choice.precision}: {times}, {sizes}"
            yield from (f"    {command}" for command in choice.commands)
    slow = [choice.known.id for choice in recommendation.choices if choice not in listed]
    yield ""
    if slow or recommendation.too_large:
        yield f"too slow or too large here: {', '.join([*slow, *(model.id for model in recommendation.too_large)])}"
    if recommendation.not_predicted:
        names = ", ".join(model.id for model in recommendation.not_predicted)
        yield f"diffusion models, for a GPU, and not predicted: {names}"
    yield "`mercury-ls model test NAME` measures a model that was added. On a GPU, or behind a server, larger ones are"
    yield "fast: `mercury-ls model add ADDRESS`. Licences may have changed: `model add` shows what a model's page says."
