"""Models that this machine can run: their time for a token is predicted from what it measures of its memory."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from mercury_ls.link import local
from mercury_ls.models.add import SMALL_MODEL, WORKING_MEMORY, Precision, bytes_of
from mercury_ls.models.hub import megabytes

__all__ = ["Choice", "Known", "Machine", "Recommendation", "choices", "described", "known", "machine", "recommend"]

LINE_TOKENS = 16
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


class Known(Struct, frozen=True):
    """A model that is known to be of use. The licence is as it was when this list was written: its page decides."""

    id: str
    parameters: int
    licence: str
    kind: str
    use: str


class Machine(Struct, frozen=True):
    """`bandwidth` in bytes a second, over as many threads as an engine uses."""

    memory: int
    bandwidth: float
    threads: int


class Choice(Struct, frozen=True):
    """`fit` is `smooth`, `on request` or `too slow`, from the predicted time for a line."""

    known: Known
    precision: Precision
    memory: int
    token_ms: float
    line_ms: float
    fit: Fit
    command: str


class Recommendation(Struct, frozen=True):
    machine: Machine
    choices: tuple[Choice, ...]
    too_large: tuple[Known, ...]
    not_predicted: tuple[Known, ...] = ()


def known() -> tuple[Known, ...]:
    return msgspec.json.decode((Path(__file__).parent / "known.json").read_bytes(), type=tuple[Known, ...])


def recommend(threads: int = 0) -> Recommendation:
    return choices(machine(threads or 2), known())


def choices(machine: Machine, models: Sequence[Known]) -> Recommendation:
    """What fits into memory, fastest first, at eight bits where a model is small and four where it is not.

    A diffusion model reads all of its text in every pass, so that memory does not tell its time.
    """
    room = SHARE_OF_MEMORY * machine.memory if machine.memory else float("inf")
    fitting, too_large, others = [], [], []
    for model in models:
        precision: Precision = "int8" if model.parameters < SMALL_MODEL else "int4"
        memory = bytes_of(model.parameters, precision) + WORKING_MEMORY
        if memory > room:
            too_large.append(model)
        elif model.kind == "diffusion":
            others.append(model)
        else:
            fitting.append(choice(model, precision, memory, machine))
    return Recommendation(
        machine, tuple(sorted(fitting, key=lambda each: each.line_ms)), tuple(too_large), tuple(others)
    )


def choice(model: Known, precision: Precision, memory: int, machine: Machine) -> Choice:
    token_ms = 1000 * bytes_of(model.parameters, precision) / (EFFICIENCY * machine.bandwidth)
    line_ms = LINE_TOKENS * token_ms
    fit: Fit = "smooth" if line_ms <= SMOOTH_MS else "on request" if line_ms <= BEARABLE_MS else "too slow"
    return Choice(model, precision, memory, token_ms, line_ms, fit, f"mercury-ls model add {model.id}")


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


def described(found: Recommendation) -> Iterator[str]:
    here = found.machine
    memory = megabytes(here.memory) if here.memory else "unknown memory"
    yield f"this machine: {memory}; {here.threads} threads read {here.bandwidth / 1e9:.0f} GB/s (measured just now)"
    yield f"predicted, not measured, for a line of {LINE_TOKENS} tokens whose context is cached:"
    for each in (usable := [each for each in found.choices if each.fit != "too slow"][:SHOWN]):
        yield ""
        yield f"  {each.known.id}  ({each.known.kind}, {each.known.licence})"
        yield f"    {each.known.use}"
        yield (
            f"    {each.precision}: {each.token_ms:,.0f} ms a token, {each.line_ms:,.0f} ms a line ({each.fit}), "
            f"{megabytes(each.memory)} of memory"
        )
        yield f"    {each.command}"
    if any(each.fit == "on request" for each in usable):
        yield ""
        yield "(on request): too slow to follow your typing, fast enough when you ask for a suggestion by its key"
    slow = [each.known.id for each in found.choices if each not in usable]
    yield ""
    if slow or found.too_large:
        yield f"too slow or too large here: {', '.join([*slow, *(model.id for model in found.too_large)])}"
    if found.not_predicted:
        yield f"diffusion models, for a GPU, and not predicted: {', '.join(model.id for model in found.not_predicted)}"
    yield "`mercury-ls model test NAME` measures a model that was added. On a GPU, or behind a server, larger ones are"
    yield "fast: `mercury-ls model add ADDRESS`. Licences may have changed: `model add` shows what a model's page says."
