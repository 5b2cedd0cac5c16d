"""Tuning on one project: learn, evaluate before and after, and write the adapter with its report."""

import datetime
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec
import numpy as np
import torch
from msgspec import Struct
from safetensors.numpy import save_file

from mercury_engine.model.adapter import ADAPTER_FILE, DELTA, WEIGHTS_FILE, adapted, identity
from mercury_engine.model.config import TOKENIZER_FILE, ModelConfig
from mercury_engine.model.export import Weights, dequantized, read
from mercury_engine.model.network import assemble
from mercury_engine.model.openvino_runtime import OpenvinoRuntime, native_precision
from mercury_engine.model.runtime import Runtime
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tuning_data import Material, Tuning
from mercury_training import jsonl
from mercury_training.corpus.shards import CorpusFile, EditRow, Split
from mercury_training.rows.packing import EditTable, PackedRows, RowShape, stack
from mercury_training.train import lora
from mercury_training.train.optimizer import Rates
from mercury_training.train.schedule import Phase, rate_factor
from mercury_training.train.trainer import Trainer
from mercury_training.tune.exam import counted, figures_of, make_exam, outlook, take, verdict
from mercury_training.tune.project import ProjectSplit, history_of, split

RANK = 16

LOW_RANK = Rates(adam=3e-3)

WHOLE = Rates(muon=2e-3, adam=5e-4)

UPDATE = 2048
"""In clean tokens."""

PASSES = 4
"""The most passes over the project: more would memorise a small one."""

PAUSE = 20.0
"""Seconds between two lines of progress."""

FILLING, LEARNING = 0.12, 0.5
"""Shares of the time: the most for testing completions before learning, and the least for learning."""


class TuningPlan(Struct, frozen=True, kw_only=True):
    """A tuning job. `rank` 0 trains all weights. `minutes` is for everything, including reading and evaluation."""

    model: Path
    out: Path
    minutes: float = 10.0
    rank: int = RANK
    threads: int = 1
    seed: int = 0
    steps: int | None = None


def tune(material: Material, plan: TuningPlan, say: Callable[[str], None] = lambda line: None) -> Tuning:
    """Learn, evaluate, and write the adapter and its report to `plan.out`."""
    began = time.monotonic()
    torch.set_num_threads(plan.threads)
    with history_of(Path(material.root)) as source:
        project = split(material.files, source, plan.seed)
    say(_described(project))
    config, base = read(plan.model)
    tokenizer = Tokenizer.load(plan.model / TOKENIZER_FILE)
    runtime = _runtime(config, base, plan)
    exam = make_exam(project, tokenizer, config, runtime)
    for line in outlook(exam.paths):
        say(line)
    read_in, seconds = time.monotonic(), 60 * plan.minutes
    before = take(exam, runtime, FILLING * seconds)
    time_now = time.monotonic()
    say(f"read in {read_in - began:.0f} s, evaluated in {time_now - read_in:.0f} s; learning now")
    deadline = max(began + seconds - 1.1 * (time_now - read_in), time_now + LEARNING * seconds)
    added, steps = _learn(project, tokenizer, config, dequantized(base), plan, deadline, say)
    same_exam = msgspec.structs.replace(exam, places=exam.places[: len(before.likeness)])
    after = take(same_exam, _runtime(config, adapted(base, added), plan))
    figures = figures_of(before, after)
    better, reason = verdict(figures) if steps else (False, "no time was left for learning: raise --minutes")
    report = Tuning(
        root=material.root,
        model=config.name,
        base=identity(plan.model),
        made=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        method=f"rank {plan.rank}" if plan.rank else "all weights",
        files=len(project.train),
        edits=len(project.edits),
        steps=steps,
        minutes=round((time.monotonic() - began) / 60, 2),
        figures=figures,
        better=better,
        reason=reason,
    )
    plan.out.mkdir(parents=True, exist_ok=True)
    save_file(added, plan.out / WEIGHTS_FILE)
    (plan.out / ADAPTER_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    return report


def _runtime(config: ModelConfig, weights: Weights, plan: TuningPlan) -> Runtime:
    runtime = OpenvinoRuntime(config, weights, threads=plan.threads, precision=native_precision())
    return cast(Runtime, runtime)  # its caches alone count, as for every runtime


def _described(project: ProjectSplit) -> str:
    return (
        f"{counted(project.train, 'file')} and {counted(project.edits, 'edit')} to learn from; held out: "
        f"{counted(project.held_out, 'file')} with {counted(project.places, 'place')} to fill, "
        f"{counted(project.later, 'later edit')}"
    )


def _learn(
    project: ProjectSplit,
    tokenizer: Tokenizer,
    config: ModelConfig,
    weights: Weights,
    plan: TuningPlan,
    deadline: float,
    say: Callable[[str], None],
) -> tuple[Weights, int]:
    """The change to the weights, and the number of updates."""
    model = assemble(config, weights)
    if plan.rank:
        lora.attach(model, plan.rank, plan.seed)
    rates = LOW_RANK if plan.rank else WHOLE
    precision = torch.bfloat16 if native_precision().get_type_name() == "bf16" else torch.float32
    trainer = Trainer(config, rates, seed=plan.seed, precision=precision, model=model)
    shape = RowShape(config.context // 2, 3 * config.context // 16)
    with tempfile.TemporaryDirectory() as scratch:
        rows, size = _rows(project, tokenizer, Path(scratch), plan.seed)
        count = max(1, UPDATE // shape.clean)
        most = plan.steps or max(1, PASSES * size // (count * shape.clean))
        steps = _steps(trainer, rows, shape, (count, most), deadline if plan.steps is None else math.inf, say)
    return _added(trainer, weights), steps


def _steps(
    trainer: Trainer,
    rows: PackedRows,
    shape: RowShape,
    size: tuple[int, int],
    deadline: float,
    say: Callable[[str], None],
) -> int:
    """Update until there have been enough, or time is up; return the number of updates."""
    count, steps = size
    began = last_report = time.monotonic()
    step = 0
    while (progress := max(step / steps, _elapsed(began, deadline))) < 1:
        batches = [stack([rows.packed(step * count + number, shape)]) for number in range(count)]
        losses, _ = trainer.step(batches, Phase(shape, rate_factor(progress, "whole")))
        step += 1
        if time.monotonic() - last_report > PAUSE:
            last_report = time.monotonic()
            say(f"{progress:4.0%}  update {step}, loss {losses.clean:.3f} reading, {losses.canvas:.3f} drafting")
    return step


def _elapsed(began: float, deadline: float) -> float:
    """The share of the time that has passed: all of it if preparation took longer than that."""
    time_now = time.monotonic()
    return 1.0 if time_now >= deadline else (time_now - began) / (deadline - began)


def _rows(project: ProjectSplit, tokenizer: Tokenizer, scratch: Path, seed: int) -> tuple[PackedRows, int]:
    """Training rows, and the number of tokens of the project."""
    documents, parts, start = [], [], 0
    for text in project.train:
        tokens = np.array(tokenizer.encode(text.text), np.int32)
        documents.append(CorpusFile("", text.path, text.language, "", start, start + len(tokens)))
        parts.append(tokens)
        start += len(tokens)
    path = scratch / "edits.jsonl"
    jsonl.write(path, project.edits)
    return PackedRows(Split(np.concatenate(parts), documents), EditTable(path, EditRow), tokenizer, seed), start


def _added(trainer: Trainer, before: Weights) -> Weights:
    """The low-rank factors unchanged, or the differences if all weights learned."""
    thin = lora.factors(trainer.model)
    if thin:
        return {name: factor.numpy() for name, factor in thin.items()}
    after = {name: weight.detach().numpy() for name, weight in trainer.weights.items()}
    return {name + DELTA: (weight - before[name]).astype(np.float16) for name, weight in after.items()}
