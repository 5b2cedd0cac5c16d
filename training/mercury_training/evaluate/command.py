"""Scores a model as it ships: `python -m mercury_training.evaluate [--model NAME|FOLDER|fake] --set DIR …`.

Every row goes through the engine, and through its rivals in turn (A B A B). With `--results FILE` an interrupted
evaluation continues where it stopped. After the table the last line is JSON; docs/EVALUATION.md describes it.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import msgspec

from mercury_engine.decode.costs import Costs
from mercury_training.errors import reported
from mercury_training.evaluate.contestants import DECODES
from mercury_training.evaluate.programs import check
from mercury_training.evaluate.run import Run, evaluate, read_sets
from mercury_training.evaluate.scores import figures, table
from mercury_training.rows.fim_rows import HUMANEVAL


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    run = _run(options)
    with reported("mercury_training.evaluate"):
        if options.check:
            print(check(read_sets(run)))
            return
        evaluated = evaluate(run)
    print(table(evaluated))
    print(msgspec.json.encode(figures(evaluated)).decode())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mercury_training.evaluate", description=(__doc__ or "").split(":")[0])
    parser.add_argument("--model", default="auto", metavar="NAME|FOLDER|fake", help="default: the model that ships")
    parser.add_argument("--decode", choices=DECODES, default="policy", help="what is evaluated (default: policy)")
    parser.add_argument(
        "--costs", type=_cost, nargs="+", metavar="ROWS=MS", help="milliseconds of forwards, instead of measured ones"
    )
    parser.add_argument("--set", type=Path, action="append", default=[], metavar="DIR", help="a folder of fim*.jsonl")
    parser.add_argument("--humaneval", type=Path, metavar="PATH", help="HumanEval-Infilling: its file, folder or clone")
    parser.add_argument("--humaneval-kind", choices=HUMANEVAL, action="append", help="default: single-line")
    parser.add_argument("--held-out", type=Path, metavar="CORPUS", help="a corpus folder, for bits per byte")
    parser.add_argument("--documents", type=int, default=24, help="held-out documents of each language (default: 24)")
    parser.add_argument("--limit", type=int, metavar="N", help="N rows of each set, drawn at random, always the same")
    parser.add_argument("--check", action="store_true", help="run true, empty and `pass` middles, and no model")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep finished rows here and go on from them")
    return parser


def _cost(text: str) -> tuple[int, float]:
    rows, _, milliseconds = text.partition("=")
    try:
        cost = int(rows), float(milliseconds)
    except ValueError:
        cost = 0, 0.0
    if min(cost) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r}: write a number of rows and its milliseconds, such as 8=117")
    return cost


def _run(options: argparse.Namespace) -> Run:
    return Run(
        model=options.model,
        decode=options.decode,
        costs=Costs(*zip(*sorted(options.costs), strict=True)) if options.costs else None,
        sets=tuple(options.set),
        humaneval=options.humaneval,
        humaneval_kinds=tuple(options.humaneval_kind or ("single-line",)),
        corpus=options.held_out,
        documents=options.documents,
        limit=options.limit,
        results=options.results,
    )
