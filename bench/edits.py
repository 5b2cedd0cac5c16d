"""Next edits in commits that nobody trained on: what is right, wrong and silent, and how long it takes.

    python -m bench.edits COMMITS.jsonl [--engine none|shipped|FOLDER] … [--at-line rest|hand] [--every K] [--from N]

COMMITS is what `python -m mercury_training.edits.commits` wrote. Of each commit some hunks are done, in a plausible
order; the others are due, wherever they are in its files, which are all open. Now and then all are done: then nothing
is due. An answer is right when its edits are some of those that are due, and nothing else. Several engines answer the
same rows, and `none` is the rules alone. `--at-line`: the user has gone to the first line that is due, or, where
nothing is due, to the likeliest line of all, and rests there or asks by hand; who rests there was asked about another
line first, with which a model reads the edits (`first p50`). `--rows OUT` writes what a model makes of this line, to
fit its bar to.
"""

import argparse
import asyncio
import itertools
import json
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from bench.harness.measures import machine, percentile
from bench.next_edit.cases import candidates_after
from bench.next_edit.cases import verdict as case_verdict
from bench.next_edit.measure import Local, engine_of, is_exact, last_of, question_at
from mercury_engine.prompts.lines import lines_of
from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.code.edits import TextEdit, applied, difference
from mercury_ls.code.history import History
from mercury_ls.completion.offers import Answer
from mercury_ls.completion.target import Silence
from mercury_ls.next_edit import cursor_line
from mercury_ls.next_edit.pipeline import next_edits
from mercury_ls.next_edit.question import NextQuestion
from mercury_training import jsonl
from mercury_training.corpus.history import CommitHunk, in_plausible_order, place_after
from mercury_training.edits.commits import Commit
from mercury_training.edits.rows import joined
from mercury_training.edits.spots import REMEMBERED, PastEdit, indexed, spots
from mercury_training.evaluate.metrics import wilson

PAUSE = 60.0
"""Seconds between two edits."""
ON_THE_WAY = 8
"""Lines above the one that the user goes to, or below it."""

Asked = Literal["after an edit", "rest", "hand"]


class Moment(Struct, frozen=True):
    """The files as they are, the user at `offset` of one, what was done, and what is due, by the files' paths."""

    files: Mapping[str, Snapshot]
    path: str
    offset: int
    history: History
    due: Mapping[str, tuple[TextEdit, ...]]
    asked: Asked = "after an edit"

    @property
    def is_due(self) -> bool:
        return any(self.due.values())


class Verdict(Struct, frozen=True):
    """Of what is shown, `right` is all that is due at its places, and `partly` a step towards it; `led` is the user who
    is shown a place alone. `first_seconds` is how long the first question after the edits took, on the way."""

    due: bool
    shown: bool = False
    right: bool = False
    partly: bool = False
    led: bool = False
    seconds: float = 0.0
    first_seconds: float | None = None

    @property
    def wrong(self) -> bool:
        return self.shown and not self.right and not self.partly


def moments(commits: Iterable[Commit]) -> Iterator[Moment]:
    for commit in commits:
        hunks = in_plausible_order([*joined(commit.change.hunks, commit.change.before)])
        if len(hunks) > 1:
            yield _moment(commit, hunks, random.Random(commit.change.commit).randint(1, len(hunks)))


def _moment(commit: Commit, hunks: Sequence[CommitHunk], done: int) -> Moment:
    texts = {path: "".join(lines) for path, lines in commit.change.before.items()}
    history, offset = History(), 0
    for number, hunk in enumerate(hunks[:done]):
        text, edit = texts[hunk.path], _text_edit(texts[hunk.path], place_after(hunk, hunks[:number]), hunk)
        texts[hunk.path] = applied(text, [edit])
        history.record(hunk.path, text, difference(text, texts[hunk.path]), PAUSE * number)
        offset = edit.start + len(edit.text.rstrip("\n"))
    coming: dict[str, list[TextEdit]] = {path: [] for path in texts}
    for hunk in hunks[done:]:
        coming[hunk.path].append(_text_edit(texts[hunk.path], place_after(hunk, hunks[:done]), hunk))
    files = {path: Document(f"file:///{path}", path, "", 1, text).snapshot() for path, text in texts.items()}
    return Moment(files, hunks[done - 1].path, offset, history, {path: tuple(edits) for path, edits in coming.items()})


def _text_edit(text: str, first: int, hunk: CommitHunk) -> TextEdit:
    lines = text.splitlines(keepends=True)
    start = sum(map(len, lines[:first]))
    return TextEdit(start, start + sum(map(len, lines[first : first + len(hunk.old)])), "".join(hunk.new))


def at_line(moment: Moment, asked: Asked) -> Moment:
    """The user has gone to the first line that is due, else to the likeliest of all."""
    lines_due = ((path, edits[0].start) for path, edits in moment.due.items() if edits)
    path, offset = next(lines_due, None) or _likeliest(moment)
    text = moment.files[path].line(moment.files[path].line_of(offset))
    return replace(moment, path=path, offset=offset + len(text) - len(text.lstrip()), asked=asked)


def _likeliest(moment: Moment) -> tuple[str, int]:
    past = [
        PastEdit(edit.path, edit.line, tuple(lines_of(edit.before)), tuple(lines_of(edit.after)))
        for edit in moment.history.edits(REMEMBERED)
    ]
    spot = spots(past, indexed({path: lines_of(file.text) for path, file in moment.files.items()}), 1)[0]
    return spot.path, moment.files[spot.path].line_start(spot.line)


def question_of(moment: Moment, engine: Local | None) -> NextQuestion:
    info = engine.engine.info() if engine else None
    question = question_at(moment.files[moment.path], moment.offset, moment.history, info)
    neighbours = tuple(file for path, file in moment.files.items() if path != moment.path)
    rests, invoked = moment.asked == "rest", moment.asked == "hand"
    return replace(question, neighbours=neighbours, is_typing=False, rests=rests, invoked=invoked)


async def verdict(moment: Moment, engine: Local | None) -> Verdict:
    question = question_of(moment, engine)
    for file in question.files.values():
        _ = file.tree  # it is made while the user types
    first_seconds = None
    if question.rests:
        _, first_seconds = await _timed(question_of(replace(moment, offset=_on_the_way(moment)), engine), engine)
    answer, seconds = await _timed(question, engine)
    return replace(_judged(moment, answer, seconds), first_seconds=first_seconds)


def _on_the_way(moment: Moment) -> int:
    file = moment.files[moment.path]
    line = file.line_of(moment.offset)
    return file.line_start(line - ON_THE_WAY if line >= ON_THE_WAY else min(line + ON_THE_WAY, file.line_count - 1))


async def _timed(question: NextQuestion, engine: Local | None) -> tuple[Answer, float]:
    began = time.perf_counter()
    return await last_of(next_edits(question, engine)), time.perf_counter() - began


def _judged(moment: Moment, answer: Answer, seconds: float) -> Verdict:
    if answer.offer is None:
        return Verdict(moment.is_due, seconds=seconds)
    if answer.offer.is_place:
        return Verdict(moment.is_due, led=True, seconds=seconds)
    changes = [(file, moment.due[path], _edits_in(answer, file)) for path, file in moment.files.items()]
    right = all(is_exact(file.text, edits, expected) for file, expected, edits in changes if edits)
    steps = (case_verdict(file, edit, expected)[0] for file, expected, edits in changes for edit in edits)
    partly = not right and all(steps)
    return Verdict(moment.is_due, True, right, partly, seconds=seconds)


def _edits_in(answer: Answer, file: Snapshot) -> list[TextEdit]:
    return [edit for edit in answer.edits if edit.uri == file.uri]


def _line_row(number: int, moment: Moment, engine: Local) -> dict[str, Any]:
    question = question_of(moment, engine)
    found = candidates_after(question.situation)
    asked_lines = cursor_line.at_cursor(question)
    *_, last = engine.engine.rewrite(cursor_line.regions(question, asked_lines))
    text = last.regions[0]
    rewrite = cursor_line.rewrite_of(question, asked_lines, text, [] if isinstance(found, Silence) else found)
    written = () if isinstance(rewrite, Silence) else rewrite.edits
    edits = [TextEdit(edit.start, edit.end, edit.text or "", edit.uri) for edit in written]
    expected = moment.due[moment.path]
    return {
        "moment": number,
        "due": moment.is_due,
        "kept": text.p_keep,
        "p": text.confidence,
        "edits": len(edits),
        "right": bool(edits) and is_exact(asked_lines.snapshot.text, edits, expected),
        "partly": bool(edits) and all(case_verdict(asked_lines.snapshot, edit, expected)[0] for edit in edits),
    }


def figures(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Of the rows where an edit is due, and the seconds of all."""
    expected = [verdict for verdict in verdicts if verdict.due]
    silent = [verdict for verdict in verdicts if not verdict.due]
    seconds = [verdict.seconds for verdict in verdicts]
    first_seconds = [verdict.first_seconds for verdict in verdicts if verdict.first_seconds is not None]
    right, wrong = sum(verdict.right for verdict in verdicts), sum(verdict.wrong for verdict in verdicts)
    return {
        "due": len(expected),
        "right": right,
        "partly": sum(verdict.partly for verdict in verdicts),
        "wrong": wrong,
        "led": sum(verdict.led for verdict in expected),
        "not due": len(silent),
        "shown there": sum(verdict.shown for verdict in silent),
        "net": round((right - wrong) / max(1, len(expected)), 3),
        **_percentiles("", seconds),
        **_percentiles("first ", first_seconds),
    }


def _percentiles(name: str, seconds: Iterable[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {f"{name}p{percent}": round(percentile(ordered, percent), 2) for percent in (50, 90) if ordered}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", type=Path)
    parser.add_argument("--engine", action="append", help="none (the rules alone), shipped or a folder; repeatable")
    parser.add_argument("--every", type=int, default=1, help="take each K-th commit only")
    parser.add_argument("--from", dest="first", type=int, default=0, help="from this commit on")
    parser.add_argument("--limit", type=int, help="at most so many rows")
    parser.add_argument("--rows", type=Path, metavar="OUT", help="write what the model makes of each line")
    parser.add_argument("--at-line", choices=["rest", "hand"], help="where the next edit is due")
    options = parser.parse_args()
    commits = jsonl.JsonTable(options.commits, Commit)
    numbers = range(options.first, len(commits), options.every)
    rows = [*itertools.islice(moments(commits[number] for number in numbers), options.limit)]
    if options.at_line:
        rows = [at_line(moment, options.at_line) for moment in rows]
    for name in options.engine or ["none"]:
        engine = engine_of(name)
        if options.rows and engine:
            _write_rows(rows, engine, options.rows)
            continue
        verdicts = [asyncio.run(verdict(moment, engine)) for moment in rows]
        told = figures(verdicts)
        quiet = wilson(int(told["not due"] - told["shown there"]), int(told["not due"]))
        print(f"{name}: {told}; quiet where nothing is due: {quiet.value:.1%} ({quiet.low:.1%} to {quiet.high:.1%})")
    print(machine())


def _write_rows(rows: Iterable[Moment], engine: Local, out: Path) -> None:
    with out.open("w", encoding="utf-8") as file:
        for number, moment in enumerate(rows):
            file.write(json.dumps(_line_row(number, moment, engine)) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
