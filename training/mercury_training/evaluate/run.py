"""Scores a model as it ships: `python -m mercury_training.evaluate --model FOLDER|fake --set DIR …`.

Every row is asked through the engine, its rivals beside it in turn (A B A B). With `--results FILE` an interrupted
evaluation goes on where it stopped. After the table the last line is JSON; docs/EVALUATION.md says what is in it.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
from msgspec import Struct

from mercury_training.corpus.shards import Corpus
from mercury_training.errors import TrainingError, reported
from mercury_training.evaluate import held_out
from mercury_training.evaluate.contestants import BASELINES, DECODES, Contestant, Subject, open_subject, suggest
from mercury_training.evaluate.held_out import Reading
from mercury_training.evaluate.sandbox import Limits, Sandbox, SandboxError
from mercury_training.evaluate.scores import Evaluated, Result, figures, score, table
from mercury_training.rows.fim_rows import HUMANEVAL, FimRow, program, read_humaneval, read_rows, sample

__all__ = ["Ledger", "Run", "check", "evaluate", "main"]

FILES = ("fim.jsonl", "fim_exec.jsonl")
RIVALS = ("ar", "unverified", "alone")
RIVAL_KINDS = ("single_line", "multi_line")
PROGRAM_RIVALS = ("alone",)
"""Where answers are run: what the model knows without copying. How it decodes is compared on other rows."""

PAUSE_TERMINAL, PAUSE_FILE = 0.2, 20.0
"""Seconds between two states of the progress line."""

NOT_GIVEN = "{} was not given"


class Identity(Struct, frozen=True, tag="model"):
    """Whose results a ledger holds."""

    model: str
    weights: str


class HeldOut(Struct, frozen=True, tag="held_out"):
    document: str
    reading: Reading


Entry = Identity | Result | HeldOut


class Run(Struct, frozen=True, kw_only=True):
    """What is to be evaluated. `documents` of each held-out language are read for bits per byte."""

    model: str
    decode: str = "policy"
    sets: tuple[Path, ...] = ()
    humaneval: Path | None = None
    humaneval_kinds: tuple[str, ...] = ("single-line",)
    corpus: Path | None = None
    documents: int = 24
    limit: int | None = None
    results: Path | None = None


class Ledger:
    """Owns what is finished; in a file, if there is one, so that nothing is computed twice."""

    def __init__(self, path: Path | None, identity: Identity) -> None:
        self._path = path
        self.results: dict[tuple[str, str, str], Result] = {}
        self.readings: dict[str, Reading] = {}
        if path is None:
            return
        entries = _entries(path)
        found = next(entries, None)
        if found is None:
            self._write(identity)
        elif found != identity:
            raise TrainingError(f"{path}: holds results of {found}, this is {identity}; name another file")
        for entry in entries:
            self._take(entry)

    def add(self, entry: Result | HeldOut) -> None:
        self._take(entry)
        self._write(entry)

    def _take(self, entry: Entry) -> None:
        if isinstance(entry, Result):
            self.results[entry.set, entry.id, entry.by] = entry
        elif isinstance(entry, HeldOut):
            self.readings[entry.document] = entry.reading

    def _write(self, entry: Entry) -> None:
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(entry) + b"\n")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    run = _run(options)
    with reported("mercury_training.evaluate"):
        if options.check:
            print(check(_sets(run)))
            return
        found = evaluate(run)
    print(table(found))
    print(msgspec.json.encode(figures(found)).decode())


def evaluate(run: Run) -> Evaluated:
    subject = open_subject(run.model)
    if run.decode not in subject.contestants:
        raise TrainingError(f"{run.model} decodes in one way; leave --decode {run.decode} out")
    reasons = _reasons(run, subject)
    ledger = Ledger(run.results, Identity(subject.info.model, subject.weights))
    sets = _sets(run)
    with ExitStack() as stack:
        execute = _executor(stack, sets, reasons)
        results = list(_answers(run, subject, sets, ledger, execute))
    return Evaluated(
        model=subject.info.model,
        device=subject.info.device,
        parameters=subject.parameters,
        subject=run.decode,
        results=results,
        readings=list(_readings(run, subject, ledger)),
        reasons=reasons,
    )


def check(sets: dict[str, list[FimRow]]) -> str:
    """How many rows pass with their own middle, which all should, with nothing, and with `pass`."""
    lines = []
    with Sandbox() as sandbox:
        for name, rows in sets.items():
            rows = [row for row in rows if row.exec]
            counts = [
                sum(sandbox.run(program(row, row.middle if middle is None else middle)).passed for row in rows)
                for middle in (None, "", "pass")
            ]
            lines.append(f"{name}: of {len(rows)}, true {counts[0]}, empty {counts[1]}, pass {counts[2]} passed")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mercury_training.evaluate", description=__doc__.split(":")[0])
    parser.add_argument("--model", default="fake", metavar="FOLDER|fake")
    parser.add_argument("--decode", choices=DECODES, default="policy", help="what is evaluated (default: policy)")
    parser.add_argument("--set", type=Path, action="append", default=[], metavar="DIR", help="a folder of fim*.jsonl")
    parser.add_argument("--humaneval", type=Path, metavar="PATH", help="HumanEval-Infilling: its file, folder or clone")
    parser.add_argument("--humaneval-kind", choices=HUMANEVAL, action="append", help="default: single-line")
    parser.add_argument("--held-out", type=Path, metavar="CORPUS", help="a corpus folder, for bits per byte")
    parser.add_argument("--documents", type=int, default=24, help="held-out documents of each language (default: 24)")
    parser.add_argument("--limit", type=int, metavar="N", help="N rows of each set, drawn at random, always the same")
    parser.add_argument("--check", action="store_true", help="run true, empty and `pass` middles, and no model")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep finished rows here and go on from them")
    return parser


def _run(options: argparse.Namespace) -> Run:
    return Run(
        model=options.model,
        decode=options.decode,
        sets=tuple(options.set),
        humaneval=options.humaneval,
        humaneval_kinds=tuple(options.humaneval_kind or ("single-line",)),
        corpus=options.held_out,
        documents=options.documents,
        limit=options.limit,
        results=options.results,
    )


def _sets(run: Run) -> dict[str, list[FimRow]]:
    """Rows by the name of their set, shuffled, so that a limit takes some of everything."""
    sets = {}
    for folder in run.sets:
        files = [folder / name for name in FILES if (folder / name).exists()]
        if not files:
            raise TrainingError(f"{folder}: neither {' nor '.join(FILES)} in it; name a folder with one")
        sets |= {f"{folder.resolve().name}/{path.stem}": read_rows(path) for path in files}
    for name in run.humaneval_kinds if run.humaneval else ():
        sets[f"humaneval/{name}"] = read_humaneval(run.humaneval, name)
    return {name: sample(rows, run.limit) for name, rows in sets.items()}


def _executor(
    stack: ExitStack, sets: dict[str, list[FimRow]], reasons: dict[str, str]
) -> Callable[[FimRow, str], bool | None]:
    """Runs a row with an answer in it. Where nothing can be isolated nothing is run, and the figures are missing."""
    if not any(row.exec for rows in sets.values() for row in rows):
        return lambda row, answer: None
    try:
        sandbox = stack.enter_context(Sandbox(Limits()))
    except SandboxError as error:
        reasons["humaneval_infilling_single_line"] = str(error)
        print(f"not executed: {error}", file=sys.stderr)
        return lambda row, answer: None
    return lambda row, answer: sandbox.run(program(row, answer)).passed if row.exec else None


def _answers(
    run: Run,
    subject: Subject,
    sets: dict[str, list[FimRow]],
    ledger: Ledger,
    execute: Callable[[FimRow, str], bool | None],
) -> Iterator[Result]:
    for name, rows in sets.items():
        with Progress(name, len(rows)) as progress:
            for number, row in enumerate(rows):
                contestants = _contestants(run, subject, name, row)
                for contestant in contestants if number % 2 else reversed(contestants):
                    key = (name, row.id, contestant.name)
                    if key not in ledger.results:
                        answer = suggest(contestant, row)
                        ledger.add(score(name, contestant.name, row, answer, execute(row, answer.text)))
                    yield ledger.results[key]
                progress.advance()


def _contestants(run: Run, subject: Subject, name: str, row: FimRow) -> list[Contestant]:
    """The subject, its rivals where decoding is compared, and the baselines."""
    elsewhere = RIVALS if row.kind in RIVAL_KINDS else ()
    rivals = PROGRAM_RIVALS if name.startswith("humaneval/") else elsewhere
    names = dict.fromkeys([run.decode, *rivals, *BASELINES])
    return [subject.contestants[by] for by in names if by in subject.contestants]


def _readings(run: Run, subject: Subject, ledger: Ledger) -> Iterator[Reading]:
    if run.corpus is None or subject.runtime is None or subject.tokenizer is None:
        return
    documents = held_out.sample(Corpus.open(run.corpus), run.documents)
    with Progress("held-out text", len(documents)) as progress:
        for name, document in documents.items():
            if name not in ledger.readings:
                ledger.add(HeldOut(name, held_out.read(subject.runtime, subject.tokenizer, document)))
            yield ledger.readings[name]
            progress.advance()


def _reasons(run: Run, subject: Subject) -> dict[str, str]:
    reasons = {}
    if run.corpus is None:
        reasons["bits_per_byte"] = NOT_GIVEN.format("--held-out")
    if run.humaneval is None or "single-line" not in run.humaneval_kinds:
        reasons["humaneval_infilling_single_line"] = NOT_GIVEN.format("--humaneval for single lines")
    if subject.runtime is None:
        alone = "without weights there are neither probabilities nor other ways to decode"
        names = ("params", "bits_per_byte", "accepted_per_forward", "speedup_over_ar", "ms_per_suggestion_ar")
        names += ("multi_line_speedup_over_ar", "multi_line_ms_per_suggestion", "multi_line_ms_per_suggestion_ar")
        names += tuple(f"{rival}_{kind}_em".replace(" ", "_") for rival in RIVALS for kind in RIVAL_KINDS)
        reasons |= dict.fromkeys(names, alone)
    return reasons


def _entries(path: Path) -> Iterator[Entry]:
    """A last line that was cut off while it was written is dropped."""
    if not path.exists():
        return
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        path.write_bytes(whole)
    decoder = msgspec.json.Decoder(Entry)
    for line in whole.splitlines():
        yield decoder.decode(line)


class Progress:
    """Owns the line on stderr that says how far a step is and how long it will take."""

    def __init__(self, step: str, total: int) -> None:
        self._step, self._total, self._done = step, total, 0
        self._started = self._shown = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        self._show("\n")

    def advance(self) -> None:
        self._done += 1
        pause = PAUSE_TERMINAL if self._terminal else PAUSE_FILE
        if self._done < self._total and time.monotonic() - self._shown >= pause:
            self._show("" if self._terminal else "\n")

    def _show(self, end: str) -> None:
        self._shown = time.monotonic()
        spent = self._shown - self._started
        left = spent / max(1, self._done) * (self._total - self._done)
        start = "\r\x1b[K" if self._terminal else ""
        text = f"{start}{self._step} {self._done}/{self._total}  {spent:.0f} s, {left:.0f} s left{end}"
        print(text, end="", file=sys.stderr, flush=True)
