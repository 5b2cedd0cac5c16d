"""An evaluation: the model and its rivals answer every row in turn, and each answer is scored."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from mercury_engine.decode.costs import Costs
from mercury_training.corpus.shards import Corpus
from mercury_training.errors import TrainingError
from mercury_training.evaluate import held_out
from mercury_training.evaluate.contestants import BASELINES, Contestant, Subject, open_subject, suggest
from mercury_training.evaluate.held_out import Reading
from mercury_training.evaluate.ledger import HeldOut, Identity, Ledger
from mercury_training.evaluate.programs import Execute, executor
from mercury_training.evaluate.scores import Evaluated, Result, score
from mercury_training.progress import shown
from mercury_training.rows.fim_rows import FimRow, read_humaneval, read_rows, sample

FILES = ("fim.jsonl", "fim_exec.jsonl")
RIVALS = ("ar", "unverified")
RIVAL_KINDS = ("single_line", "multi_line")

NOT_GIVEN = "{} was not given"


class Run(Struct, frozen=True, kw_only=True):
    """One evaluation. Drafts are chosen by the `costs` of forwards, measured unless given; `documents` of each held-out
    language are read for bits per byte."""

    model: str
    decode: str = "policy"
    costs: Costs | None = None
    sets: tuple[Path, ...] = ()
    humaneval: Path | None = None
    humaneval_kinds: tuple[str, ...] = ("single-line",)
    corpus: Path | None = None
    documents: int = 24
    limit: int | None = None
    results: Path | None = None


def evaluate(run: Run) -> Evaluated:
    sets = read_sets(run)
    subject = open_subject(run.model, run.costs)
    if run.decode not in subject.contestants:
        raise TrainingError(f"{run.model} decodes in only one way; leave out --decode {run.decode}")
    reasons = _reasons(run, subject)
    ledger = Ledger(run.results, Identity(subject.info.model, subject.weights))
    with executor(row for rows in sets.values() for row in rows) as (execute, reason):
        reasons |= {"humaneval_infilling_single_line": reason} if reason else {}
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


def read_sets(run: Run) -> dict[str, list[FimRow]]:
    """Rows by the name of their set, shuffled, so that a limit samples all of them."""
    sets = {}
    for folder in run.sets:
        files = [folder / name for name in FILES if (folder / name).exists()]
        if not files:
            raise TrainingError(f"{folder}: neither {' nor '.join(FILES)} in it; name a folder with one")
        sets |= {f"{folder.resolve().name}/{path.stem}": read_rows(path) for path in files}
    if run.humaneval is not None:
        sets |= {f"humaneval/{name}": read_humaneval(run.humaneval, name) for name in run.humaneval_kinds}
    return {name: sample(rows, run.limit) for name, rows in sets.items()}


def _answers(
    run: Run,
    subject: Subject,
    sets: dict[str, list[FimRow]],
    ledger: Ledger,
    execute: Execute,
) -> Iterator[Result]:
    for name, rows in sets.items():
        for number, row in enumerate(shown(name, rows)):
            contestants = _contestants(run, subject, name, row)
            for contestant in contestants if number % 2 else reversed(contestants):
                key = (name, row.id, contestant.name)
                if key not in ledger.results:
                    answer = suggest(contestant, row)
                    ledger.add(score(name, contestant.name, row, answer, execute(row, answer.text)))
                yield ledger.results[key]


def _contestants(run: Run, subject: Subject, name: str, row: FimRow) -> list[Contestant]:
    """The subject, its rivals on rows where decoding is compared, and the baselines."""
    is_compared = row.kind in RIVAL_KINDS and not name.startswith("humaneval/")
    rivals = RIVALS if is_compared else ()
    names = dict.fromkeys([run.decode, *rivals, *BASELINES])
    return [subject.contestants[name] for name in names if name in subject.contestants]


def _readings(run: Run, subject: Subject, ledger: Ledger) -> Iterator[Reading]:
    if run.corpus is None or subject.runtime is None or subject.tokenizer is None:
        return
    documents = held_out.sample(Corpus.open(run.corpus), run.documents)
    for name in shown("held-out text", list(documents)):
        if name not in ledger.readings:
            ledger.add(HeldOut(name, held_out.read(subject.runtime, subject.tokenizer, documents[name])))
        yield ledger.readings[name]


def _reasons(run: Run, subject: Subject) -> dict[str, str]:
    reasons = {}
    if run.corpus is None:
        reasons["bits_per_byte"] = NOT_GIVEN.format("--held-out")
    if run.humaneval is None or "single-line" not in run.humaneval_kinds:
        reasons["humaneval_infilling_single_line"] = NOT_GIVEN.format("--humaneval for single lines")
    if subject.runtime is None:
        unknown = "without weights there are neither probabilities nor other ways to decode"
        names = ("params", "bits_per_byte", "accepted_per_forward", "speedup_over_ar", "ms_per_suggestion_ar")
        names += ("multi_line_speedup_over_ar", "multi_line_ms_per_suggestion", "multi_line_ms_per_suggestion_ar")
        names += tuple(f"{rival}_{kind}_em" for rival in RIVALS for kind in RIVAL_KINDS)
        reasons |= dict.fromkeys(names, unknown)
    return reasons
