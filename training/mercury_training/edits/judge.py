"""How well a model edits at a place that is given: `python -m mercury_training.edits.judge --model … --data …`.

Of commits that nobody trained on: in how many questions the likeliest answer, token by token, is exactly the author's;
in how many the likeliest change is, whether or not the model would rather leave the old lines as they are; and how well
the probability of the old lines tells places where a change was due from places that stayed (the area under the curve).

One forward pass a commit tells all of it. An answer is what greedy decoding writes if each of its tokens is the
likeliest behind those before it. The likeliest change leaves the old lines where another token is likeliest, all old
ones before it included, and goes on greedily.
"""

import argparse
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import torch
from msgspec import Struct
from torch import Tensor

from mercury_engine.model.config import TOKENIZER_FILE
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_training import jsonl
from mercury_training.edits import checkpoint, rows
from mercury_training.edits.commits import Commit
from mercury_training.edits.rows import AnswerSpan
from mercury_training.edits.teacher import Teacher
from mercury_training.errors import reported

COMMAND = "mercury_training.edits.judge"
LIMIT = rows.SHAPES[-1].clean


class AnswerVerdict(Struct, frozen=True):
    """What the model makes of one answer: its log probability, and whether each token is the likeliest."""

    answer: AnswerSpan
    log_probability: float
    exact: bool
    inferable: bool
    """Whether every name of it stands somewhere before it."""
    is_likeliest_change: bool = False
    """Whether it is the likeliest that changes something."""


class Score(Struct, frozen=True):
    due: int
    exact: int
    inferable: int
    inferable_exact: int
    changes: int
    area: float

    def __str__(self) -> str:
        inferable = f"{self.inferable_exact} of {self.inferable} that can be inferred"
        return (
            f"{self.exact} of {self.due} due answers exact, {inferable}; "
            f"{self.changes} are the likeliest change; area under the curve {self.area:.3f}"
        )


def judge(teacher: Teacher, tokenizer: Tokenizer, commits: Iterable[Commit]) -> Iterator[AnswerVerdict]:
    for commit in commits:
        row = rows.edit_row(tokenizer, commit, random.Random(commit.change.commit), LIMIT, judged=True)
        if row is not None:
            yield from _verdicts(teacher, row)


def score(verdicts: Sequence[AnswerVerdict]) -> Score:
    due = [verdict for verdict in verdicts if not verdict.answer.repeats]
    inferable = [verdict for verdict in due if verdict.inferable]
    changed = [verdict.log_probability for verdict in verdicts if verdict.answer.repeats and verdict.answer.due]
    stayed = [verdict.log_probability for verdict in verdicts if not verdict.answer.due]
    return Score(
        len(due),
        sum(verdict.exact for verdict in due),
        len(inferable),
        sum(verdict.exact for verdict in inferable),
        sum(verdict.is_likeliest_change for verdict in due),
        _area(changed, stayed),
    )


def _area(lower: Sequence[float], higher: Sequence[float]) -> float:
    """How often one of the first is below one of the second; NaN if there are none."""
    if not lower or not higher:
        return float("nan")
    below = sum((a < b) + (a == b) / 2 for a in lower for b in higher)
    return below / (len(lower) * len(higher))


@torch.no_grad()
def _verdicts(teacher: Teacher, row: rows.RevisionRow) -> Iterator[AnswerVerdict]:
    shape = rows.shape_of(row)
    hidden_TD = teacher.hidden(rows.packed(row, shape), shape)

    def logs_of(answer: AnswerSpan) -> Tensor:
        return teacher.logits(hidden_TD[answer.start - 1 : answer.stop - 1]).log_softmax(-1)

    olds = {answer.behind: answer for answer in row.answers if answer.due and answer.repeats}
    for answer in row.answers:
        ids, logs_RV = torch.tensor(row.ids[answer.start : answer.stop]), logs_of(answer)
        old = None if answer.repeats else olds.get(answer.behind)
        change = old is not None and likeliest_change(
            ids, logs_RV, torch.tensor(row.ids[old.start : old.stop]), logs_of(old)
        )
        inferable = all(row.weights[answer.start : answer.stop])
        log_probability = float(logs_RV.gather(1, ids[:, None]).sum())
        yield AnswerVerdict(answer, log_probability, bool((logs_RV.argmax(-1) == ids).all()), inferable, change)


def likeliest_change(ids_R: Tensor, logs_RV: Tensor, old_S: Tensor, old_logs_SV: Tensor) -> bool:
    """Whether an answer is the likeliest that differs from the old one, from the logarithms behind the rows of both."""
    others_SV = old_logs_SV.scatter(1, old_S[:, None], -torch.inf)
    old_log_S = old_logs_SV.gather(1, old_S[:, None])[:, 0]
    parting = int((old_log_S.cumsum(0) - old_log_S + others_SV.amax(-1)).argmax())
    if parting >= len(ids_R):
        return False
    written_R = logs_RV.argmax(-1)
    written_R[:parting] = old_S[:parting]
    written_R[parting] = others_SV[parting].argmax()
    return torch.equal(written_R, ids_R)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").split(":")[0])
    parser.add_argument("--model", type=Path, required=True, help="a model folder, as it ships")
    parser.add_argument("--factors", type=Path, help="what a run has learned; without it, the model as it is")
    parser.add_argument("--data", type=Path, required=True, help="a file that mercury_training.edits.commits wrote")
    parser.add_argument("--every", type=int, default=1, help="judge each so many commits")
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    with reported(COMMAND):
        torch.set_num_threads(options.threads)
        teacher = Teacher(options.model, options.rank)
        if options.factors is not None:
            checkpoint.attach(teacher, options.factors)
        commits = jsonl.JsonTable(options.data, Commit)
        chosen = (commits[number] for number in range(0, len(commits), options.every))
        tokenizer = Tokenizer((options.model / TOKENIZER_FILE).read_bytes())
        print(score([*judge(teacher, tokenizer, chosen)]))


if __name__ == "__main__":
    main()
