"""Whether an added model answers as well as llama.cpp with the same file, asked directly with the same prompts.

    python -m bench.directly MODEL URL --fim FILE … [--limit N]

URL is that of llama.cpp's server with the file that the model was added from. Ours is what a user gets on request;
llama.cpp's is the first line that it writes behind our prompt, which takes the begun word back, as if it knew that one
line is missing. The last line is JSON.
"""

import argparse
import asyncio
import json
import urllib.request
from collections.abc import Generator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.harness.in_process import InProcessClient
from bench.harness.measures import machine
from bench.quality import editor
from bench.quality.editor import Contender, Metered
from mercury_engine import model_folders
from mercury_engine.api import Draft, Gap
from mercury_engine.autoregressive.answer import ContinuationQuestion
from mercury_engine.autoregressive.asking import Asking
from mercury_engine.autoregressive.engine import AutoregressiveEngine
from mercury_engine.model.config import TOKENIZER_FILE
from mercury_engine.record import read_record
from mercury_engine.tokens.pretrained import PretrainedTokenizer
from mercury_ls.serve.models import open_model
from mercury_ls.settings.schema import EngineSettings
from mercury_training.evaluate.metrics import exact, exact_first_line, wilson
from mercury_training.progress import shown
from mercury_training.rows.fim_rows import FimRow, read_rows, sample

SECONDS = 300.0


class Overheard(Metered):
    """An engine that has read the context before it answers, and the last question that it was asked."""

    def __init__(self, engine: AutoregressiveEngine, asking: Asking) -> None:
        super().__init__(engine)
        self.question: ContinuationQuestion | None = None
        self._asking = asking

    def fill(self, gap: Gap) -> Generator[Draft]:
        assert self._asking.dialect, "it is asked about models that complete code"
        self.question = self._asking.about_gap(self._asking.dialect, gap, self.info().context_tokens)
        return super().fill(gap)


class Pair(Struct, frozen=True):
    """The answers to one row."""

    row: FimRow
    ours: str
    theirs: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("url", metavar="URL")
    parser.add_argument("--fim", type=Path, nargs="+", required=True, metavar="FILE", help="rows without their middle")
    parser.add_argument("--limit", type=int, help="rows of each file, drawn at random, always the same")
    given = parser.parse_args()
    rows = [row for path in given.fim for row in sample(read_rows(path), given.limit)]
    print(told(asyncio.run(_answered(given.model, given.url, rows))))


async def _answered(model: str, url: str, rows: Sequence[FimRow]) -> list[Pair]:
    folder = model_folders.resolve(model)
    record = folder and read_record(folder)
    if folder is None or record is None:
        raise SystemExit(f"{model} is not an added model: see `mercury-ls model list`")
    engine = open_model(folder, EngineSettings(), lambda share, what: None)
    tokenizer = PretrainedTokenizer(folder / TOKENIZER_FILE)
    if not isinstance(engine, AutoregressiveEngine):
        raise SystemExit(f"{model} is not one that llama.cpp could run: it needs an autoregressive model")
    meter = Overheard(engine, Asking(record, tokenizer))
    client = InProcessClient(meter)
    await client.start()
    contender = Contender(model, client, meter)
    pairs = []
    for row in shown(model, rows):
        meter.question = None
        asked = await editor.complete(contender, row)
        if meter.question is not None:
            pairs.append(Pair(row, asked.answer, await asyncio.to_thread(_theirs, url, meter.question)))
    await client.close()
    return pairs


def _theirs(url: str, question: ContinuationQuestion) -> str:
    prompt = question.prompt
    body = {
        "prompt": [*map(int, question.ids)],
        "n_predict": prompt.most_tokens,
        "stop": [*prompt.stops, "\n"],
        "temperature": 0,
        "cache_prompt": True,
    }
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url.rstrip('/')}/completion", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=SECONDS) as reply:
        return str(json.load(reply)["content"]).removeprefix(prompt.forced)


def told(pairs: Sequence[Pair]) -> str:
    right = {
        "exact": [(exact(pair.ours, pair.row.middle), exact(pair.theirs, pair.row.middle)) for pair in pairs],
        "first line": [
            (exact_first_line(pair.ours, pair.row.middle), exact_first_line(pair.theirs, pair.row.middle))
            for pair in pairs
        ],
    }
    lines, found = [f"{len(pairs)} rows{'':24}ours   llama.cpp   only ours   only llama.cpp"], {}
    for name, results in right.items():
        ours, theirs = (sum(result[side] for result in results) for side in (0, 1))
        alone = [sum(result == only for result in results) for only in ((True, False), (False, True))]
        lines.append(f"{name:34}{ours / len(pairs):6.1%}{theirs / len(pairs):12.1%}{alone[0]:12}{alone[1]:12}")
        found[name] = {"ours": wilson(ours, len(pairs)), "theirs": wilson(theirs, len(pairs)), "alone": alone}
    return "\n".join([*lines, json.dumps({"machine": machine(), "rows": len(pairs), **msgspec.to_builtins(found)})])


if __name__ == "__main__":
    main()
