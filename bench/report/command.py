"""The whole benchmark: every measurement one after the other, then tables and plots of them in docs/benchmarks.

    python -m bench.report [--quick] [--engine local|fake|FOLDER] [--fim FILE …] [--next-edit FILE …] [--out FOLDER]
                           [--llama FOLDER] [--base GGUF] [--peers NAME,…]
    python -m bench.report --draw        only the tables and plots, from earlier measurements

Peers are measured in the same run: llama.cpp's programs read and write with our layers and bits, and answer keys with
the file of the base, as llama.vim asks; added models are asked for the same rows.
Each measurement is a command whose last line is JSON; all results are kept in figures.json. The report is made without
measurements that failed, and names them.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from bench.harness.usage import children_cpu
from bench.quality.contenders import model_folder
from bench.replay.play import SHIPPED
from bench.report.numbers import PAGE, table, write
from bench.report.plots import draw

OUT, QUICK_OUT = Path("docs/benchmarks"), Path("build/benchmarks")

SETS = Path("bench/sets")

SESSIONS = Path("bench/sessions")

CROWD = tuple(str(SESSIONS / f"{name}.jsonl") for name in ("neovim-lua", "mercury-ls-383e163d"))
"""Two sessions in which the model is asked often."""

JUDGED = ("mercury_ls/code", "mercury_ls/session", "engine/mercury_engine/decode")
"""Folders whose names are renamed, for another language server to judge."""

TAIL = 400

PATIENCE_SECONDS = 2400

MODEL = {"local": SHIPPED}
"""Names of an engine that differ between `bench.quality` and the replay."""

WITHOUT_MODEL, WITH_MODEL = ("copy", "ngram"), ("ar",)

Figures = dict[str, Any]


class Measurement(Struct, frozen=True):
    """One measurement: its name in figures.json and the arguments to python."""

    name: str
    arguments: tuple[str, ...]

    @property
    def command(self) -> str:
        return " ".join(["python", *self.arguments])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="less of everything, in five minutes, into build/")
    parser.add_argument("--engine", default="local")
    parser.add_argument("--fim", type=Path, nargs="+", default=[SETS / "fim.jsonl"], metavar="FILE")
    parser.add_argument("--next-edit", type=Path, nargs="+", default=[SETS / "next_edit.jsonl"], metavar="FILE")
    parser.add_argument("--llama", type=Path, metavar="FOLDER", help="where llama-bench and llama-server are")
    parser.add_argument("--base", metavar="GGUF", help="what llama-server answers with")
    parser.add_argument("--peers", metavar="NAME,…", default="", help="added models")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    given = parser.parse_args()
    given.out = given.out or (QUICK_OUT if given.quick else OUT)
    kept = given.out / "figures.json"
    if given.draw:
        found = json.loads(kept.read_bytes())
    else:
        found = {run.name: measured(run) for run in runs(given)}
        given.out.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    draw(found, given.out)
    if given.out == OUT:
        write(PAGE, found)
    print(table(found))
    failed = {name: run["error"] for name, run in found.items() if "error" in run}
    for name, error in failed.items():
        print(f"{name} failed: {error}", file=sys.stderr)
    sys.exit(bool(failed))


def runs(given: argparse.Namespace) -> Iterator[Measurement]:
    """All measurements, in the order in which failures are noticed soonest. Quick only checks that everything runs."""
    quick, name = given.quick, str(given.engine)
    engine, model = ("--engine", name), ("--model", MODEL.get(name, name))
    small, recorded = _sessions()
    yield Measurement("server", ("-m", "bench.server", *(("--keystrokes", "200") if quick else ())))
    yield Measurement("latency", ("-m", "bench.latency", "--files", "2" if quick else "8", *model))
    if given.llama and given.base:
        served = ("--model", given.base, "--llama-server", str(given.llama / "llama-server"))
        yield Measurement("latency_llama", ("-m", "bench.latency", "--files", "2" if quick else "4", *served))
    if folder := model_folder(name):
        program = ("--llama-bench", str(given.llama / "llama-bench")) if given.llama else ()
        named = str(folder) if Path(name).exists() else folder.name
        yield Measurement("pace", ("-m", "bench.pace", named, "--rounds", "1" if quick else "5", *program))
    pace = ("--speed", "max" if quick else "1", "--pause-cap", "2", "--client", "vscode")
    sessions = small[:3] if quick else recorded
    yield Measurement("replay", ("-m", "bench.replay", *sessions, *pace, *model))
    yield Measurement("replay_busy", ("-m", "bench.replay", *sessions, *pace, "--busy", "1", *model))
    crowds = (small[-2], "--clients", "1", "2") if quick else (*CROWD, "--pause-cap", "2", "--clients", "1", "8")
    yield Measurement("load", ("-m", "bench.load", *crowds, *model))
    changes = ("3", "3") if quick else ("36", "18")
    yield Measurement("judged", ("-m", "bench.judged", *JUDGED, "--renames", changes[0], "--parameters", changes[1]))
    peers = [*WITHOUT_MODEL, *(WITH_MODEL if folder else ()), *filter(None, given.peers.split(","))]
    asked = ("-m", "bench.quality", *engine, "--fim", *map(str, given.fim))
    yield Measurement("peers", (*asked, "--peers", ",".join(peers), "--limit", "4" if quick else "40"))
    next_edit = ("--next-edit", *map(str, given.next_edit))
    yield Measurement("quality", (*asked, *next_edit, *(("--limit", "8") if quick else ())))


def _sessions() -> tuple[list[str], list[str]]:
    """The smallest of the committed sessions, and those typed by hand in a real editor."""
    found = sorted(SESSIONS.glob("*.jsonl"), key=lambda path: (path.stat().st_size, path.name))
    names = list(map(str, found))
    return names[:4], [name for name in names if "neovim" in name]


def measured(run: Measurement) -> Figures:
    print(f"{run.name}: {run.command}", file=sys.stderr, flush=True)
    began, used = time.monotonic(), children_cpu()
    command = [sys.executable, *run.arguments]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        return {"command": run.command, "error": f"not done within {PATIENCE_SECONDS} s"}
    seconds, cpu_s = time.monotonic() - began, children_cpu() - used
    about = {"command": run.command, "seconds": round(seconds, 1), "cpu_s": round(cpu_s, 1)}
    if ended.returncode:
        return {**about, "error": ended.stderr[-TAIL:].strip() or f"code {ended.returncode}"}
    try:
        return {**about, **json.loads(ended.stdout.splitlines()[-1])}
    except (IndexError, ValueError):
        return {**about, "error": f"its last line is no JSON: {ended.stdout[-TAIL:].strip()}"}
