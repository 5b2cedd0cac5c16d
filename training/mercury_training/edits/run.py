"""Teaches a model to edit, on a CPU, in the background, for as long as it is left running.

    nice -n 19 python -m mercury_training.edits.run --model runs/quicksilver --data corpus/edits --out runs/edits

It continues by itself: from OUT if that holds an earlier run, else from the factors of `--start` with new moments. A
file OUT/PAUSE pauses it, SIGTERM ends it after the update, and everything is saved every few minutes.

`OUT/log.jsonl` has a line for each update and the held-out losses, `OUT/curve.svg` shows them, and
`OUT/factors.safetensors`, at most 9 MB, is what to keep.
"""

import argparse
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import torch

from mercury_engine.model.config import TOKENIZER_FILE
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_training import jsonl, plot
from mercury_training.edits import checkpoint
from mercury_training.edits.commits import Commit
from mercury_training.edits.examples import Examples
from mercury_training.edits.teacher import Teacher
from mercury_training.errors import reported

COMMAND = "mercury_training.edits.run"
ROWS = 8
"""Rows of an update."""
HELD_OUT = 16
"""Held-out rows."""
EVALUATE_UPDATES = 60
SAVE_SECONDS = 240
PAUSE_FILE, LOG_FILE, CURVE_FILE = "PAUSE", "log.jsonl", "curve.svg"


class _Ending:
    """Whether a signal has asked the run to end."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, number: int, frame: object) -> None:
        self.asked = True


def run(options: argparse.Namespace) -> None:
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    tokenizer = Tokenizer((options.model / TOKENIZER_FILE).read_bytes())
    taught = Examples(jsonl.JsonTable(options.data / "train.jsonl", Commit), tokenizer, seed=options.seed)
    held_out_rows = Examples(jsonl.JsonTable(options.data / "held_out.jsonl", Commit), tokenizer, seed=1)
    held_out = [held_out_rows.numbered(number) for number in range(HELD_OUT)]
    teacher = Teacher(options.model, options.rank)
    progress, ending = checkpoint.restore(teacher, out, options.start), _Ending()
    saved = time.monotonic()
    while not ending.asked and progress.updates < options.updates:
        began = time.monotonic()
        if progress.updates % EVALUATE_UPDATES == 0:
            with teacher.averaged():
                loss = teacher.held_out(held_out)
            _log(out, {"update": progress.updates, "tokens": progress.tokens, "answer": loss})
            _draw(out)
        examples = [taught.numbered(progress.updates * ROWS + number) for number in range(ROWS)]
        loss, norm = teacher.update(examples, options.rate)
        seconds, tokens = time.monotonic() - began, sum(example.tokens for example in examples)
        progress.updates += 1
        progress.steps = teacher.optimizer.steps
        progress.tokens += tokens
        progress.seconds += seconds
        figures = {"loss": round(loss, 4), "norm": round(norm, 4), "speed": round(tokens / seconds, 1)}
        _log(out, msgspec.to_builtins(progress) | figures)
        if time.monotonic() - saved > SAVE_SECONDS:
            checkpoint.save(teacher, progress, out)
            saved = time.monotonic()
        while (out / PAUSE_FILE).exists() and not ending.asked:
            time.sleep(1)
    checkpoint.save(teacher, progress, out)


def _log(out: Path, entry: dict[str, float]) -> None:
    with (out / LOG_FILE).open("ab") as file:
        file.write(msgspec.json.encode(entry) + b"\n")


def _draw(out: Path) -> None:
    entries = [entry for entry in jsonl.read(out / LOG_FILE, dict) if "answer" in entry]
    points = [(entry["tokens"] / 1e6, entry["answer"]) for entry in entries]
    plot.write(out / CURVE_FILE, "Held-out loss", "million tokens", "nats", {"answer": points}, zoomed=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").split(",")[0])
    parser.add_argument("--model", type=Path, required=True, help="a model folder, as it ships")
    parser.add_argument("--data", type=Path, required=True, help="what mercury_training.edits.commits wrote")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the run")
    parser.add_argument("--start", type=Path, help="factors of an earlier run, where OUT is new")
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--rate", type=float, default=1.0, help="a factor of the learning rate")
    parser.add_argument("--updates", type=int, default=1 << 30, help="end after so many in all")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0, help="another one draws the rows in another order")
    options = parser.parse_args(arguments)
    with reported(COMMAND):
        run(options)


if __name__ == "__main__":
    main()
