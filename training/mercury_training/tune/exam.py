"""What a model is asked before and after it is tuned, and whether it has become better."""

import itertools
import math
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized

import msgspec
import numpy as np
from msgspec import Struct

from mercury_engine.api import Window
from mercury_engine.decode.costs import Costs, measure_costs
from mercury_engine.engine import MercuryEngine
from mercury_engine.model.config import ModelConfig
from mercury_engine.model.runtime import Runtime
from mercury_engine.tokens.layout import budget_for
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tuning_data import Figure
from mercury_training.corpus.shards import EditRow
from mercury_training.errors import TrainingError
from mercury_training.evaluate import held_out
from mercury_training.evaluate.contestants import Contestant, suggest
from mercury_training.evaluate.metrics import bootstrap, exact, similarity
from mercury_training.rows.examples import TrainingExample, next_edit
from mercury_training.rows.fim_rows import FimRow
from mercury_training.tune.project import ProjectFile, ProjectSplit

PIECE = 1500
"""The length of one piece of text in characters, for bits per byte."""

PIECES = 96

ENOUGH, FILES = 8, 2
"""Fewer questions of a kind, or from fewer files, prove nothing."""

TEXT, EDITS, LIKENESS, EXACT = (
    "bits per byte, held-out files",
    "bits per byte, later edits",
    "similarity of completions",
    "exact completions",
)

COSTS = (TEXT, EDITS)
"""Lower is better."""


class ExamMark(Struct, frozen=True):
    """The result of one question about a file: `points` per `size`, such as bits per bytes; an answer has size 1."""

    path: str
    points: float
    size: int = 1


class Marks(Struct, frozen=True):
    """A mark for each held-out piece of text, for each later edit, and two for each answer."""

    text: list[ExamMark]
    edits: list[ExamMark]
    likeness: list[ExamMark]
    exact: list[ExamMark]


class Exam(Struct, frozen=True):
    """The questions, the same before and after. Edits come with the paths of their files."""

    tokenizer: Tokenizer
    costs: Costs
    pieces: list[Window]
    edits: list[tuple[str, TrainingExample]]
    places: list[FimRow]

    @property
    def paths(self) -> dict[str, list[str]]:
        """The files of the questions, by what they measure."""
        filled = [row.path for row in self.places]
        edited = [path for path, _ in self.edits]
        return {TEXT: [piece.path for piece in self.pieces], EDITS: edited, LIKENESS: filled, EXACT: filled}


def outlook(paths: Mapping[str, Sequence[str]]) -> list[str]:
    """The criteria for the result, and the kinds with too few questions, reported before any time is spent. `paths`:
    the file of each question, by what it measures."""
    lacking = {name: places for name, places in paths.items() if len(places) < ENOUGH or len(set(places)) < FILES}
    if TEXT in lacking:
        raise TrainingError(f"{_too_few(TEXT, lacking[TEXT])}: nothing would be installed, so tune a larger project")
    judged = [f"{name} ({_better(name)})" for name in paths if name not in lacking]
    return [
        f"judged by {', '.join(judged)}",
        *(_too_few(name, places) for name, places in lacking.items()),
    ]


def _too_few(name: str, paths: Sequence[str]) -> str:
    held = f"{counted(paths, 'question')} of {counted(set(paths), 'file')}"
    return f"not judged by {name}: {held} held out, at least {ENOUGH} of {FILES} files needed"


def _better(name: str) -> str:
    return "lower is better" if name in COSTS else "higher is better"


def counted(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def make_exam(project: ProjectSplit, tokenizer: Tokenizer, config: ModelConfig, runtime: Runtime) -> Exam:
    pieces = [piece for text in project.held_out for piece in _pieces(text)]
    draw = random.Random(0)
    edits = [(row.path, example) for row in project.later if (example := _edit(tokenizer, row, config.context))]
    chosen = draw.sample(pieces, min(PIECES, len(pieces)))
    return Exam(tokenizer, measure_costs(runtime), chosen, edits, project.places)


def _pieces(text: ProjectFile) -> Iterator[Window]:
    """Pieces of whole lines, about `PIECE` characters each."""
    piece = ""
    for line in text.text.splitlines(keepends=True):
        piece += line
        if len(piece) >= PIECE:
            yield Window(text.path, text.language, piece)
            piece = ""
    if piece:
        yield Window(text.path, text.language, piece)


def _edit(tokenizer: Tokenizer, row: EditRow, context: int) -> TrainingExample | None:
    """The next change, as training lays it out; None if it does not fit or is not one change."""
    alone = msgspec.structs.replace(row, expected=row.expected[row.next : row.next + 1], next=0)
    return next_edit(tokenizer, alone, budget_for(context), np.random.default_rng(0))


def take(exam: Exam, runtime: Runtime, seconds: float = math.inf) -> Marks:
    """The marks of a model. Completions are tested until the time for that is up."""
    engine = Contestant("", MercuryEngine(runtime, exam.tokenizer, costs=exam.costs, bar=0))
    text = [_reading(exam.tokenizer, runtime, piece) for piece in exam.pieces]
    edits = [_edit_bits(exam.tokenizer, runtime, path, example) for path, example in exam.edits]
    began = time.monotonic()
    due = itertools.takewhile(lambda row: time.monotonic() - began < seconds, exam.places)
    answers = [(row, suggest(engine, row).text) for row in due]
    likeness = [ExamMark(row.path, similarity(answer, row.middle)) for row, answer in answers]
    return Marks(text, edits, likeness, [ExamMark(row.path, exact(answer, row.middle)) for row, answer in answers])


def _reading(tokenizer: Tokenizer, runtime: Runtime, piece: Window) -> ExamMark:
    rows = held_out.read(runtime, tokenizer, piece)
    return ExamMark(piece.path, rows.bits, rows.bytes)


def _edit_bits(tokenizer: Tokenizer, runtime: Runtime, path: str, example: TrainingExample) -> ExamMark:
    size = len(tokenizer.decode_bytes(example.answers[0]))
    return ExamMark(path, sum(held_out.bits(runtime, example, example.base)), size)


def figures_of(before: Marks, after: Marks) -> tuple[Figure, ...]:
    figures = [
        _figure(TEXT, before.text, after.text),
        _figure(EDITS, before.edits, after.edits),
        _figure(LIKENESS, before.likeness, after.likeness),
        _figure(EXACT, before.exact, after.exact),
    ]
    return tuple(figure for figure in figures if figure is not None)


def _figure(name: str, before: Sequence[ExamMark], after: Sequence[ExamMark]) -> Figure | None:
    """Points over sizes. The bootstrap resamples whole files: what is learned about a file shows in all of it, so
    its pieces are not independent."""
    pairs = [(first, later) for first, later in zip(before, after, strict=True) if first.size]
    files: dict[str, list[tuple[ExamMark, ExamMark]]] = {}
    for pair in pairs:
        files.setdefault(pair[0].path, []).append(pair)
    if len(files) < FILES:
        return None
    change = bootstrap(list(files.values()), lambda drawn: _change(pair for pairs in drawn for pair in pairs))
    total = sum(first.size for first, _ in pairs)
    old_mean, new_mean = (round(sum(mark.points for mark in marks) / total, 4) for marks in zip(*pairs, strict=True))
    return Figure(name, len(pairs), old_mean, new_mean, round(change.low, 4), round(change.high, 4))


def _change(pairs: Iterable[tuple[ExamMark, ExamMark]]) -> float:
    pairs_of_points = list(pairs)
    return sum(later.points - first.points for first, later in pairs_of_points) / sum(
        first.size for first, _ in pairs_of_points
    )


def verdict(figures: Sequence[Figure]) -> tuple[bool, str]:
    """The verdict: better means that held-out text is predicted significantly better, and nothing else significantly
    worse."""
    by_name = {figure.name: figure for figure in figures if figure.count >= ENOUGH}
    first = by_name.pop(TEXT, None)
    if first is None:
        return False, f"{TEXT}: too few to judge by: it takes {ENOUGH} questions of {FILES} files"
    if first.high >= 0:
        return False, f"{first.name}: not significantly better ({first.low:+.4f} to {first.high:+.4f})"
    for figure in by_name.values():
        if (figure.low > 0) if figure.name in COSTS else (figure.high < 0):
            return False, f"{figure.name}: significantly worse ({figure.low:+.4f} to {figure.high:+.4f})"
    return True, ""
