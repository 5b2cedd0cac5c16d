"""What reading more brings: exact lines by the number of tokens that a model of this project reads around them.

    python -m mercury_training.evaluate.context MODEL --set FILE … [--tokens 128,256,512,2048] [--limit N]

The rows' files are all that there is: neither snippets nor edits. The last line is JSON.
"""

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from mercury_engine import model_folders
from mercury_engine.decode.costs import Costs, measure_costs
from mercury_engine.decode.reading import ReadingPace
from mercury_engine.engine import MercuryEngine, open_runtime
from mercury_engine.model.config import TOKENIZER_FILE
from mercury_engine.model.runtime import Runtime
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_training.errors import TrainingError, reported
from mercury_training.evaluate.metrics import exact, wilson
from mercury_training.progress import shown
from mercury_training.rows.fim_rows import FimRow, gap, read_rows, sample

TOKENS = (128, 256, 512, 1024, 2048)


class FixedLength(ReadingPace):
    """Reads prompts of one length, however quickly."""

    def __init__(self, costs: Costs, tokens: int) -> None:
        super().__init__(costs)
        self._tokens = tokens

    def prompts(self, most: int) -> tuple[int, ...]:
        return (min(most, self._tokens),)


class LengthAnswer(Struct, frozen=True):
    """Whether the answer from so many `tokens` at most was exact, and how many it `read`."""

    tokens: int
    read: int
    exact: bool


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a model's folder, or `auto` for the one that ships")
    parser.add_argument("--set", type=Path, nargs="+", required=True, metavar="FILE", dest="sets")
    parser.add_argument("--tokens", type=_lengths, default=TOKENS, help="the lengths to compare")
    parser.add_argument("--limit", type=int, help="rows of each file")
    given = parser.parse_args(arguments)
    with reported("mercury_training.evaluate.context"):
        rows = [row for path in given.sets for row in _lines(path, given.limit)]
        answers = list(evaluate(given.model, rows, given.tokens))
    found = [figures([answer for answer in answers if answer.tokens == tokens]) for tokens in given.tokens]
    for figure in found:
        read, interval = f"{figure['read']:.0f} read", figure["interval"]
        print(f"{figure['tokens']:6} tokens at most, {read:>10}: {figure['exact']:6.1%} exact {interval}")
    print(json.dumps({"rows": len(rows), "lengths": found}))


def evaluate(model: str, rows: Sequence[FimRow], lengths: Sequence[int]) -> Iterator[LengthAnswer]:
    folder = model_folders.resolve(model)
    if folder is None:
        raise TrainingError(f"{model} has no weights; name a model's folder")
    runtime, tokenizer = open_runtime(folder), Tokenizer.load(folder / TOKENIZER_FILE)
    yield from answered(runtime, tokenizer, measure_costs(runtime), rows, lengths)


def answered(
    runtime: Runtime, tokenizer: Tokenizer, costs: Costs, rows: Sequence[FimRow], lengths: Sequence[int]
) -> Iterator[LengthAnswer]:
    """The answers to all rows, each length with an engine of its own."""
    engines = {
        tokens: MercuryEngine(runtime, tokenizer, costs=costs, pace=FixedLength(costs, tokens), bar=0)
        for tokens in lengths
    }
    for row in shown("rows", rows):
        for tokens, engine in engines.items():
            before = engine.report.prompts["awaited"]
            *_, last = engine.fill(gap(row, row.id, "medium"))
            read = engine.report.prompts["awaited"] - before
            yield LengthAnswer(tokens, read, exact(last.text, row.middle))


def figures(answers: Sequence[LengthAnswer]) -> dict:
    share = wilson(sum(answer.exact for answer in answers), len(answers))
    return {
        "tokens": answers[0].tokens,
        "read": statistics.fmean(answer.read for answer in answers),
        "exact": share.value,
        "interval": [round(share.low, 3), round(share.high, 3)],
    }


def _lines(path: Path, limit: int | None) -> list[FimRow]:
    rows = [row for row in read_rows(path) if row.kind == "single_line"]
    if not rows:
        raise TrainingError(f"{path}: no rows of single lines in it; name another set")
    return sample(rows, limit)


def _lengths(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


if __name__ == "__main__":
    main()
