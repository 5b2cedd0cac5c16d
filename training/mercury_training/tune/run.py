"""Fine-tunes a model as it ships on one project: `mercury-ls tune PATH` runs `python -m mercury_training.tune`.

What may be read comes in on standard input (`Material`, msgpack); once that is closed nobody waits for the result. No
file of the project is opened here, only its history. What was learned is written to `--out` as an adapter, with the
figures by which it is kept or not.
"""

import argparse
import datetime
import itertools
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path

import msgspec
import numpy as np
import torch
from msgspec import Struct
from safetensors.numpy import save_file

from mercury_engine.api import Window
from mercury_engine.decode.costs import Costs, measure_costs
from mercury_engine.engine import MercuryEngine
from mercury_engine.model.adapter import ADAPTER_FILE, DELTA, WEIGHTS_FILE, adapted, dequantized, identity
from mercury_engine.model.config import TOKENIZER_FILE, ModelConfig
from mercury_engine.model.export import Weights, read
from mercury_engine.model.network import assemble
from mercury_engine.model.openvino_runtime import OpenvinoRuntime, native_precision
from mercury_engine.model.runtime import Runtime
from mercury_engine.tokens.layout import budget_for
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tuning_data import Figure, Material, Tuning, receive
from mercury_training import jsonl
from mercury_training.corpus.shards import CorpusFile, EditRow, Split
from mercury_training.errors import TrainingError, reported
from mercury_training.evaluate import held_out
from mercury_training.evaluate.contestants import Contestant, suggest
from mercury_training.evaluate.metrics import bootstrap, exact, similarity
from mercury_training.rows.examples import Example, next_edit
from mercury_training.rows.fim_rows import FimRow
from mercury_training.rows.packing import EditTable, PackedRows, Shape, stack
from mercury_training.train import lora
from mercury_training.train.optimizer import Rates
from mercury_training.train.schedule import Phase, rate_factor
from mercury_training.train.trainer import Trainer
from mercury_training.tune.project import ProjectFile, ProjectSplit, history_of, split

__all__ = ["EDITS", "EXACT", "LIKENESS", "TEXT", "TuningPlan", "main", "tune", "verdict"]

RANK = 16
LOW_RANK = Rates(adam=3e-3)
WHOLE = Rates(muon=2e-3, adam=5e-4)

UPDATE = 2048
"""Clean tokens."""

PASSES = 4
"""Over the project at most: a small one would be learned by heart."""

PIECE = 1500
"""Characters read at a time, for bits per byte."""

PIECES = 96

ENOUGH, FILES = 8, 2
"""Fewer of a kind, or of fewer files, prove nothing, neither for nor against."""

PAUSE = 20.0
"""Seconds between two states of progress."""

FILLING, LEARNING = 0.12, 0.5
"""Shares of the time: at most so much for filling in places before, and at least so much for learning."""

TEXT, EDITS, LIKENESS, EXACT = (
    "bits per byte, held-out files",
    "bits per byte, later edits",
    "likeness of what is filled in",
    "filled in exactly",
)
COSTS = (TEXT, EDITS)
"""Less is better."""


class TuningPlan(Struct, frozen=True, kw_only=True):
    """`rank` 0 trains all weights. `minutes` are for everything, reading and judging included."""

    model: Path
    out: Path
    minutes: float = 10.0
    rank: int = RANK
    threads: int = 1
    seed: int = 0
    steps: int | None = None


class Mark(Struct, frozen=True):
    """What one question about a file came to: `points` of `size`, as bits of bytes; an answer has size 1."""

    path: str
    points: float
    size: int = 1


class Marks(Struct, frozen=True):
    """A mark for each held-out piece of text, for each later edit, and two for each answer."""

    text: list[Mark]
    edits: list[Mark]
    likeness: list[Mark]
    exact: list[Mark]


class Exam(Struct, frozen=True):
    """What a model is asked; the same before and after. Edits come with the paths of their files."""

    tokenizer: Tokenizer
    costs: Costs
    pieces: list[Window]
    edits: list[tuple[str, Example]]
    places: list[FimRow]

    @property
    def paths(self) -> dict[str, list[str]]:
        """The files of the questions, by what they measure."""
        filled = [row.path for row in self.places]
        edited = [path for path, _ in self.edits]
        return {TEXT: [piece.path for piece in self.pieces], EDITS: edited, LIKENESS: filled, EXACT: filled}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="mercury_training.tune", description=__doc__.split(":")[0])
    option = parser.add_argument
    option("--model", type=Path, required=True, metavar="DIR", help="the model's folder, as it ships")
    option("--out", type=Path, required=True, metavar="DIR", help="where the adapter goes")
    option("--minutes", type=float, default=10.0)
    option("--full", action="store_true", help="all weights, not products of low rank beside them")
    option("--threads", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    options = parser.parse_args(arguments)
    if hasattr(os, "nice"):
        os.nice(19)
    material = receive(sys.stdin.buffer)
    rank = 0 if options.full else RANK
    plan = TuningPlan(model=options.model, out=options.out, minutes=options.minutes, rank=rank, threads=options.threads)
    with reported("mercury-ls tune"):
        tune(material, plan, say=lambda line: print(line, file=sys.stderr, flush=True))


def tune(material: Material, plan: TuningPlan, say: Callable[[str], None] = lambda line: None) -> Tuning:
    """Learn, judge, and write the adapter and its report to `plan.out`."""
    began = time.monotonic()
    torch.set_num_threads(plan.threads)
    with history_of(Path(material.root)) as source:
        project = split(material.files, source, plan.seed)
    say(_described(project))
    config, base = read(plan.model)
    tokenizer = Tokenizer.load(plan.model / TOKENIZER_FILE)
    runtime = _runtime(config, base, plan)
    exam = _exam(project, tokenizer, config, runtime)
    for line in outlook(exam.paths):
        say(line)
    read_in, seconds = time.monotonic(), 60 * plan.minutes
    before = _judged(exam, runtime, FILLING * seconds)
    now = time.monotonic()
    say(f"read in {read_in - began:.0f} s, judged as it is in {now - read_in:.0f} s; now it learns")
    deadline = max(began + seconds - 1.1 * (now - read_in), now + LEARNING * seconds)
    added, steps = _learn(project, tokenizer, config, dequantized(base), plan, deadline, say)
    same = msgspec.structs.replace(exam, places=exam.places[: len(before.likeness)])
    after = _judged(same, _runtime(config, adapted(base, added), plan))
    figures = _figures(before, after)
    better, reason = verdict(figures) if steps else (False, "no time was left to learn: give it more --minutes")
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


def _described(project: ProjectSplit) -> str:
    return (
        f"{_counted(project.train, 'file')} and {_counted(project.edits, 'edit')} to learn from; kept back: "
        f"{_counted(project.held_out, 'file')} with {_counted(project.places, 'place')} to fill, "
        f"{_counted(project.later, 'later edit')}"
    )


def outlook(paths: Mapping[str, Sequence[str]]) -> list[str]:
    """What the result will be judged by, and what there is too little of, said before the time is spent. `paths`: the
    file of each question, by what it measures."""
    lacking = {name: of for name, of in paths.items() if len(of) < ENOUGH or len(set(of)) < FILES}
    if TEXT in lacking:
        raise TrainingError(f"{_too_few(TEXT, lacking[TEXT])}: nothing would be installed, so tune a larger project")
    judged = [f"{name} ({_better(name)})" for name in paths if name not in lacking]
    return [f"it is judged by {', '.join(judged)}", *(_too_few(name, of) for name, of in lacking.items())]


def _too_few(name: str, paths: Sequence[str]) -> str:
    there = f"{_counted(paths, 'question')} of {_counted(set(paths), 'file')}"
    return f"it cannot be judged by {name}: {there} kept back, and it takes {ENOUGH} of {FILES} files"


def _better(name: str) -> str:
    return "lower is better" if name in COSTS else "higher is better"


def _counted(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def _learn(
    project: ProjectSplit,
    tokenizer: Tokenizer,
    config: ModelConfig,
    weights: Weights,
    plan: TuningPlan,
    deadline: float,
    say: Callable[[str], None],
) -> tuple[Weights, int]:
    """What is to be added to the weights, after how many updates."""
    model = assemble(config, weights)
    if plan.rank:
        lora.attach(model, plan.rank, plan.seed)
    rates = LOW_RANK if plan.rank else WHOLE
    precision = torch.bfloat16 if native_precision().get_type_name() == "bf16" else torch.float32
    trainer = Trainer(config, rates, seed=plan.seed, precision=precision, model=model)
    shape = Shape(config.context // 2, 3 * config.context // 16)
    with tempfile.TemporaryDirectory() as scratch:
        rows, size = _rows(project, tokenizer, Path(scratch), plan.seed)
        count = max(1, UPDATE // shape.clean)
        most = plan.steps or max(1, PASSES * size // (count * shape.clean))
        steps = _steps(trainer, rows, shape, (count, most), deadline if plan.steps is None else math.inf, say)
    return _added(trainer, weights), steps


def _steps(
    trainer: Trainer,
    rows: PackedRows,
    shape: Shape,
    size: tuple[int, int],
    deadline: float,
    say: Callable[[str], None],
) -> int:
    """Updates of so many rows until there have been enough, or the time is up."""
    count, most = size
    began = told = time.monotonic()
    step = 0
    while (progress := max(step / most, _elapsed(began, deadline))) < 1:
        batches = [stack([rows.packed(step * count + number, shape)]) for number in range(count)]
        losses, _ = trainer.step(batches, Phase(shape, rate_factor(progress, "whole")))
        step += 1
        if time.monotonic() - told > PAUSE:
            told = time.monotonic()
            say(f"{progress:4.0%}  update {step}, loss {losses.clean:.3f} reading, {losses.canvas:.3f} drafting")
    return step


def _elapsed(began: float, deadline: float) -> float:
    """The share of the time that is over: all of it where preparing took longer than there was."""
    now = time.monotonic()
    return 1.0 if now >= deadline else (now - began) / (deadline - began)


def _rows(project: ProjectSplit, tokenizer: Tokenizer, scratch: Path, seed: int) -> tuple[PackedRows, int]:
    """Training rows, and how many tokens the project has."""
    documents, parts, start = [], [], 0
    for text in project.train:
        tokens = np.array(tokenizer.encode(text.text), np.int32)
        documents.append(CorpusFile("", text.path, text.language, "", start, start + len(tokens)))
        parts.append(tokens)
        start += len(tokens)
    path = scratch / "edits.jsonl"
    jsonl.write(path, project.edits)
    return PackedRows(Split(np.concatenate(parts), documents), EditTable(path), tokenizer, seed), start


def _added(trainer: Trainer, before: Weights) -> Weights:
    """Thin matrices as they are, whole differences where all weights learned."""
    thin = lora.factors(trainer.model)
    if thin:
        return {name: factor.numpy() for name, factor in thin.items()}
    after = {name: weight.detach().numpy() for name, weight in trainer.weights.items()}
    return {name + DELTA: (weight - before[name]).astype(np.float16) for name, weight in after.items()}


# The exam


def _runtime(config: ModelConfig, weights: Weights, plan: TuningPlan) -> Runtime:
    return OpenvinoRuntime(config, weights, threads=plan.threads, precision=native_precision())


def _exam(project: ProjectSplit, tokenizer: Tokenizer, config: ModelConfig, runtime: Runtime) -> Exam:
    pieces = [piece for text in project.held_out for piece in _pieces(text)]
    draw = random.Random(0)
    edits = [(row.path, example) for row in project.later if (example := _edit(tokenizer, row, config.context))]
    chosen = draw.sample(pieces, min(PIECES, len(pieces)))
    return Exam(tokenizer, measure_costs(runtime), chosen, edits, project.places)


def _pieces(text: ProjectFile) -> Iterator[Window]:
    """Whole lines, about `PIECE` characters at a time."""
    piece = ""
    for line in text.text.splitlines(keepends=True):
        piece += line
        if len(piece) >= PIECE:
            yield Window(text.path, text.language, piece)
            piece = ""
    if piece:
        yield Window(text.path, text.language, piece)


def _edit(tokenizer: Tokenizer, row: EditRow, context: int) -> Example | None:
    """The next change of a moment, as training lays it out; None where it does not fit or is not one change."""
    alone = msgspec.structs.replace(row, expected=row.expected[row.next : row.next + 1], next=0)
    return next_edit(tokenizer, alone, budget_for(context), np.random.default_rng(0))


def _judged(exam: Exam, runtime: Runtime, seconds: float = math.inf) -> Marks:
    """Places are filled until the time for that is up."""
    engine = Contestant("", MercuryEngine(runtime, exam.tokenizer, costs=exam.costs, bar=0))
    text = [_reading(exam.tokenizer, runtime, piece) for piece in exam.pieces]
    edits = [_edit_bits(exam.tokenizer, runtime, path, example) for path, example in exam.edits]
    began = time.monotonic()
    due = itertools.takewhile(lambda row: time.monotonic() - began < seconds, exam.places)
    answers = [(row, suggest(engine, row).text) for row in due]
    likeness = [Mark(row.path, similarity(answer, row.middle)) for row, answer in answers]
    return Marks(text, edits, likeness, [Mark(row.path, exact(answer, row.middle)) for row, answer in answers])


def _reading(tokenizer: Tokenizer, runtime: Runtime, piece: Window) -> Mark:
    found = held_out.read(runtime, tokenizer, piece)
    return Mark(piece.path, found.bits, found.bytes)


def _edit_bits(tokenizer: Tokenizer, runtime: Runtime, path: str, example: Example) -> Mark:
    size = len(tokenizer.decode_bytes(example.answers[0]))
    return Mark(path, sum(held_out.bits(runtime, example, example.base)), size)


def _figures(before: Marks, after: Marks) -> tuple[Figure, ...]:
    figures = [
        _figure(TEXT, before.text, after.text),
        _figure(EDITS, before.edits, after.edits),
        _figure(LIKENESS, before.likeness, after.likeness),
        _figure(EXACT, before.exact, after.exact),
    ]
    return tuple(figure for figure in figures if figure is not None)


def _figure(name: str, before: Sequence[Mark], after: Sequence[Mark]) -> Figure | None:
    """Points over sizes. For the interval whole files are drawn anew: what is learned of a file shows in all of it, so
    that its pieces are no independent witnesses."""
    pairs = [(first, then) for first, then in zip(before, after, strict=True) if first.size]
    files: dict[str, list[tuple[Mark, Mark]]] = {}
    for pair in pairs:
        files.setdefault(pair[0].path, []).append(pair)
    if len(files) < FILES:
        return None
    found = bootstrap(list(files.values()), lambda drawn: _change(pair for pairs in drawn for pair in pairs))
    total = sum(first.size for first, _ in pairs)
    means = (round(sum(mark.points for mark in marks) / total, 4) for marks in zip(*pairs, strict=True))
    return Figure(name, len(pairs), *means, round(found.low, 4), round(found.high, 4))


def _change(pairs: Iterable[tuple[Mark, Mark]]) -> float:
    found = list(pairs)
    return sum(then.points - first.points for first, then in found) / sum(first.size for first, _ in found)


def verdict(figures: Sequence[Figure]) -> tuple[bool, str]:
    """Better is whose held-out text is certainly better predicted, and nothing else certainly worse."""
    known = {figure.name: figure for figure in figures if figure.count >= ENOUGH}
    first = known.pop(TEXT, None)
    if first is None:
        return False, f"{TEXT}: too few to judge by, it takes {ENOUGH} questions of {FILES} files"
    if first.high >= 0:
        return False, f"{first.name}: not certainly better ({first.low:+.4f} to {first.high:+.4f})"
    for figure in known.values():
        if (figure.low > 0) if figure.name in COSTS else (figure.high < 0):
            return False, f"{figure.name}: worse ({figure.low:+.4f} to {figure.high:+.4f})"
    return True, ""
