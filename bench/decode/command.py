"""The cost of an answer: forwards of our engine against llama.cpp token by token, a keystroke, and how cost grows.

    python -m bench.decode [--preset quicksilver] [--rounds 9] [--plot docs/benchmarks]
    python -m bench.decode --model FOLDER --set FIM.jsonl [--limit 60]     also the answers of a trained model

Without a model the weights are random: times are real, answers are not. Both sides alternate in one process, with the
same shape, threads and context; the peer needs the extra `peers`, without which it is left out, with a message.
"""

import argparse
import json
import tempfile
from pathlib import Path

import msgspec

from bench.decode.agreement import ROWS, SHIPPED, agreement
from bench.decode.forwards import CONTEXT, answers
from bench.decode.growth import growth
from bench.decode.keystroke import keystrokes, moved_tokens, resident_mb
from bench.decode.random_model import random_model, started
from bench.decode.trained import compare, read
from bench.harness.measures import machine
from mercury_engine.model.config import PRESETS, TOKENIZER_FILE
from mercury_engine.model.openvino_runtime import load
from mercury_engine.tokens.tokenizer import Tokenizer

EDITS = ROWS.with_name("next_edit.jsonl")
"""Prompts answered besides the rows of the set."""


def main() -> None:
    options = _arguments()
    with tempfile.TemporaryDirectory() as directory:
        folder = options.model or random_model(options.preset, Path(directory))
        start = started(folder)
        runtime = load(folder)
        print(
            f"{runtime.config.name}, {runtime.precision}, {machine()}, "
            f"{runtime.threads} threads, context {CONTEXT}, medians of {options.rounds} turns [p10 p90], milliseconds"
        )
        figures = {
            **answers(runtime, Path(directory), options.rounds),
            **keystrokes(runtime, options.rounds),
            "engine_rss_mb": resident_mb(folder),
            "cold_start_s": round(start, 2),
        }
        if options.plot:
            figures["growth"] = growth(runtime, options.plot, options.rounds)
        figures["line_move_tokens"] = moved_tokens(Tokenizer.load(SHIPPED / TOKENIZER_FILE), runtime.config.context)
        if options.set:
            figures["matched"] = compare(folder, options.set, EDITS, options.limit)
            figures["agreement"] = agreement(folder, read(options.set, options.limit))
    about = {
        "machine": machine(),
        "threads": runtime.threads,
        "shape": msgspec.to_builtins(runtime.config),
        "precision": runtime.precision,
    }
    print(json.dumps({"model": runtime.config.name, **about, "context": CONTEXT, **figures}))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=sorted(PRESETS), default="quicksilver")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--set", type=Path)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--plot", type=Path, help="draw how cost grows into this folder")
    return parser.parse_args()
