"""Models of other people in process: our graph beside llama.cpp and openvino-genai, with the same weights and prompts.

    python -m bench.models [--shape qwen2.5-coder-0.5b] [--peers PYTHON] [--folder DIR] [--rounds 5] [--threads 2]

Weights are random in the shape of a real model: times are real, answers are not. PYTHON is one with llama-cpp-python,
gguf and openvino-genai; those that are missing are left out, with a message. Every contestant is a process of its own;
one that dies is reported and ends nothing. They take turns in alternating order. DIR keeps the files for the next time.

cold      a prompt of 1024 tokens that was never seen
warm      one token more
suffix    one token more before the last 128: what a prompt with the prefix first costs at every key
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np
from msgspec import Struct

from bench.harness.measures import machine
from bench.models.shapes import SHAPES, write_checkpoint
from mercury_engine.model.convert import convert

__all__ = ["main"]

PROMPT, SUFFIX = 1024, 128
TOKENS = 16
VOCABULARY = 32_000
"""Prompts are of the first tokens, which every vocabulary has."""

QUESTIONS = ("cold", "warm", "suffix")
RUN = "import sys; sys.path += sys.argv.pop(1).split({sep!r}); from {module} import main; main()"


class Contestant(Struct, frozen=True):
    name: str
    kind: str
    path: str
    python: str


class Worker:
    """The process of a contestant; `died` says how, once it has."""

    def __init__(self, contestant: Contestant, threads: int) -> None:
        self.name = contestant.name
        self.died = ""
        command = launched(contestant.python, "bench.models.worker", contestant.kind, contestant.path, str(threads))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def ask(self, prompt: np.ndarray) -> dict[str, object]:
        try:
            self._process.stdin.write(json.dumps({"prompt": prompt.tolist(), "tokens": TOKENS}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        return self.read()

    def read(self) -> dict[str, object]:
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        told = self._process.stderr.read().strip().splitlines()
        self.died = f"exit status {self._process.wait()}: {told[-1] if told else 'no message'}"
        return {}

    def close(self) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.stderr.close()
        self._process.wait()


def main() -> None:
    options = arguments()
    with tempfile.TemporaryDirectory() as directory:
        folder = options.folder or Path(directory)
        found = measured(prepared(options.shape, folder, options.peers), options.threads, options.rounds)
    told = f"{options.threads} threads, {PROMPT} tokens + {TOKENS}, {options.rounds} rounds"
    print(f"\n{options.shape}, {machine()}, {told}")
    print(table(found))
    print(json.dumps({"shape": options.shape, "machine": machine(), "threads": options.threads, "contestants": found}))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="qwen2.5-coder-0.5b")
    parser.add_argument("--peers", metavar="PYTHON", help="a Python that has the peers")
    parser.add_argument("--folder", type=Path, help="where the models are kept")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def prepared(shape: str, folder: Path, peers: str | None) -> list[Contestant]:
    """The files of each contestant, written unless they are there."""
    checkpoint, here = folder / shape / "checkpoint", sys.executable
    if not (checkpoint / "model.safetensors").exists():
        write_checkpoint(SHAPES[shape], checkpoint)
    found = []
    for precision in ("int8", "int4"):
        target = folder / shape / precision
        if not (target / "weights.safetensors").exists():
            convert(checkpoint, target, precision)
        found.append(Contestant(f"ours {precision}", "ours", str(target), here))
    if not peers:
        return found
    for quantisation in ("q8_0", "q4_0"):
        path = folder / shape / f"{quantisation}.gguf"
        if path.exists() or written(peers, path, "gguf", shape, str(checkpoint), quantisation):
            found.append(Contestant(f"llama.cpp {quantisation}", "llama.cpp", str(path), peers))
    path = folder / shape / "genai"
    if (path / "openvino_model.bin").exists() or written(here, path, "genai", shape, str(folder / shape / "int8"), ""):
        found.append(Contestant("genai int8", "genai", str(path), peers))
    return found


def written(python: str, path: Path, *told: str) -> bool:
    command = launched(python, "bench.models.writer", str(path), *told)
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        print(f"{path.name}: left out: {answer.stderr.strip().splitlines()[-1]}", file=sys.stderr)
    return answer.returncode == 0


def launched(python: str, module: str, *told: str) -> list[str]:
    """A peer's own packages come first, and ours behind them."""
    return [python, "-c", RUN.format(sep=os.pathsep, module=module), os.pathsep.join(filter(None, sys.path)), *told]


def measured(contestants: Sequence[Contestant], threads: int, rounds: int) -> dict[str, dict[str, object]]:
    workers = [Worker(one, threads) for one in contestants]
    found: dict[str, dict[str, object]] = {}
    for worker in workers:
        found[worker.name] = dict(worker.read())
    for number in range(rounds):
        for worker in workers if number % 2 else workers[::-1]:
            for question, prompt in zip(QUESTIONS, prompts(number), strict=True):
                answer = {} if worker.died else worker.ask(prompt)
                if answer:
                    kept = found[worker.name].setdefault(question, [])
                    kept.append({name: answer[name] for name in ("first", "whole", "cpu_first", "cpu", "tokens")})
                    found[worker.name] |= {name: answer[name] for name in ("resident", "peak") if name in answer}
    for worker in workers:
        if worker.died:
            found[worker.name]["died"] = worker.died
        worker.close()
    return found


def prompts(number: int) -> tuple[np.ndarray, ...]:
    """Cold, one token more at the end, and one more before the suffix."""
    drawn = np.random.default_rng(number).integers(1000, VOCABULARY, PROMPT + 2)
    cold, (end, inner) = drawn[:PROMPT], drawn[PROMPT:]
    return cold, np.append(cold, end), np.insert(cold, PROMPT - SUFFIX, inner)


def table(found: dict[str, dict[str, object]]) -> str:
    lines = [f"{'':<16}{'load s':>8}{'MiB':>7}{'peak':>7}" + "".join(f"{name + ' ms':>28}" for name in QUESTIONS)]
    for name, figures in found.items():
        if "died" in figures and not any(question in figures for question in QUESTIONS):
            lines.append(f"{name:<16}died: {figures['died']}")
            continue
        cells = "".join(f"{summary(figures.get(question, [])):>28}" for question in QUESTIONS)
        sizes = f"{figures['load']:>8.1f}{figures.get('resident', 0):>7}{figures.get('peak', 0):>7}"
        lines.append(f"{name:<16}{sizes}{cells}" + (f"  died: {figures['died']}" if "died" in figures else ""))
    return "\n".join([*lines, "median (least-most) for 16 tokens · to the first"])


def summary(answers: Sequence[dict[str, float]]) -> str:
    if not answers:
        return "-"
    whole, first = ([1000 * answer[name] for answer in answers] for name in ("whole", "first"))
    return f"{median(whole):.0f} ({min(whole):.0f}-{max(whole):.0f}) · {median(first):.0f}"
