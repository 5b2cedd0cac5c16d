"""The whole benchmark: every measurement one after the other, then tables and plots of them in docs/benchmarks.

    python -m bench.report [--quick] [--engine local|fake|FOLDER] [--fim FILE …] [--next-edit FILE …] [--out FOLDER]
    python -m bench.report --draw        the tables and plots again, from what was measured before

Each measurement is a command of its own whose last line is JSON; all of it is kept in figures.json. One that fails is
said to have failed, and the report is made without it.
"""

import argparse
import html
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct

from bench.asking.contenders import model_folder
from bench.numbers import PAGE, table, write
from bench.replay import SHIPPED
from bench.server import children_cpu
from mercury_training import plot

__all__ = ["Run", "draw", "page", "runs"]

OUT, QUICK_OUT = Path("docs/benchmarks"), Path("build/benchmarks")
SETS = Path("bench/sets")
SESSIONS = Path("bench/sessions")
CROWD = tuple(str(SESSIONS / f"{name}.jsonl") for name in ("neovim-lua", "mercury-ls-383e163d"))
"""Two of them in which the model is asked often."""

TAIL = 400
READING = "Times are of this machine; shares have a 95 % confidence interval."
PATIENCE_SECONDS = 1200

MODEL = {"local": SHIPPED}
"""What the replay calls an engine that `bench.quality` calls otherwise."""

WITHOUT_MODEL = ("copy", "ngram")
WITH_MODEL = {"ar": (), "ar+copy": (), "llama": ("gguf", "llama_cpp"), "transformers": ("torch", "transformers")}
"""And what has to be installed for each."""

TYPED = {
    "draft": "first draft",
    "inline": "suggestion",
    "model": "or silence",
    "cold": "file just opened",
    "cached": "typed through",
    "next_edit": "next edit",
}

Figures = dict[str, Any]


class Run(Struct, frozen=True):
    """One measurement: its name in figures.json and the arguments to python."""

    name: str
    arguments: tuple[str, ...]

    @property
    def command(self) -> str:
        return " ".join(["python", *self.arguments])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="less of everything, in two minutes, into build/")
    parser.add_argument("--engine", default="local")
    parser.add_argument("--fim", type=Path, nargs="+", default=[SETS / "fim.jsonl"], metavar="FILE")
    parser.add_argument("--next-edit", type=Path, nargs="+", default=[SETS / "next_edit.jsonl"], metavar="FILE")
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


def runs(given: argparse.Namespace) -> Iterator[Run]:
    """In the order in which a failure is noticed soonest. Quick is enough to see that everything runs."""
    quick, engine, model = given.quick, ("--engine", given.engine), ("--model", MODEL.get(given.engine, given.engine))
    small, recorded, every = sessions()
    yield Run("server", ("-m", "bench.server", *(("--keystrokes", "200") if quick else ())))
    yield Run("documents", ("-m", "bench.documents", *(("--edits", "100") if quick else ())))
    yield Run("engine_call", ("-m", "bench.engine_call", "--calls", "300" if quick else "2000"))
    pace = ("--speed", "max" if quick else "2", "--pause-cap", "1")
    yield Run("replay", ("-m", "bench.replay", *(small if quick else every), *pace, *model))
    yield Run("replay_busy", ("-m", "bench.replay", *(small[:3] if quick else recorded), *pace, "--busy", "1", *model))
    crowds = (small[-2], "--clients", "1", "2") if quick else (*CROWD, "--clients", "1", "4", "8")
    yield Run("load", ("-m", "bench.load", *crowds, *model))
    shape = ("--preset", "bootstrap", "--rounds", "3") if quick else ("--plot", str(given.out))
    yield Run("decode", ("-m", "bench.decode", *shape))
    peers = [*WITHOUT_MODEL, *(installed_peers() if model_folder(given.engine) else ())]
    asked = ("-m", "bench.quality", *engine, "--fim", *map(str, given.fim))
    yield Run("peers", (*asked, "--peers", ",".join(peers), "--limit", "4" if quick else "40"))
    next_edit = ("--next-edit", *map(str, given.next_edit))
    yield Run("quality", (*asked, *next_edit, *(("--limit", "8") if quick else ())))


def installed_peers() -> Iterator[str]:
    for name, modules in WITH_MODEL.items():
        if missing := [module for module in modules if find_spec(module) is None]:
            print(
                f"{name} is left out: no {', '.join(missing)}; pip install 'mercury-ls[peers,train]'", file=sys.stderr
            )
        else:
            yield name


def sessions() -> tuple[list[str], list[str], list[str]]:
    """The smallest of the committed sessions, those typed by hand in a real editor, and all of them."""
    found = sorted(SESSIONS.glob("*.jsonl"), key=lambda path: (path.stat().st_size, path.name))
    names = list(map(str, found))
    return names[:4], [name for name in names if "neovim" in name], names


def measured(run: Run) -> Figures:
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


# Plots


def draw(found: Figures, out: Path) -> None:
    """Everything that there are figures for; a plot of an earlier report is not left beside a new one."""
    drawn = []
    for name, (title, x, y, lines_of, logarithmic) in PLOTS.items():
        (out / f"{name}.svg").unlink(missing_ok=True)
        if lines := lines_of(found):
            plot.write(out / f"{name}.svg", title, x, y, lines, logarithmic=logarithmic)
            drawn.append(name)
    (out / "index.html").write_text(page(found, drawn), encoding="utf-8")


def latencies(found: Figures) -> plot.Lines:
    """Of answers to the same rows, context read: the share that is there after so many milliseconds."""
    return {
        name: [(ms, int(percent[1:]) / 100) for percent, ms in contender["milliseconds"].items()]
        for name, contender in contenders(found, "peers")
        if contender["milliseconds"]
    }


def passes(found: Figures) -> plot.Lines:
    return {
        name: list(enumerate(contender["similarity_after_passes"], 1))
        for name, contender in contenders(found, "peers")
        if any(contender["similarity_after_passes"])
    }


def calibration(found: Figures) -> plot.Lines:
    """One line for each set and for next edits, and where they should lie."""
    given = dict(contenders(found, "quality", sets=True)) | {
        f"{name}, next edits": edits for name, edits in found.get("quality", {}).get("next_edit", {}).items()
    }
    lines = {
        name: [(each["confidence"], each["accuracy"]) for each in part["reliability"]]
        for name, part in given.items()
        if len(part["reliability"]) > 1
    }
    return {**lines, "as it should be": [(0, 0), (1, 1)]} if lines else {}


def growth(found: Figures) -> plot.Lines:
    return {name: list(map(tuple, line)) for name, line in found.get("decode", {}).get("growth", {}).items()}


def typing(found: Figures) -> plot.Lines:
    """What the replay of the sessions tells: the milliseconds within which so many of the answers came."""
    levels = found.get("replay", {}).get("levels", {})
    return {what: shares(levels[name]) for name, what in TYPED.items() if levels.get(name)}


def shares(levels: Sequence[float]) -> list[tuple[float, float]]:
    return [(ms, number / (len(levels) - 1)) for number, ms in enumerate(levels)]


def memory(found: Figures) -> plot.Lines:
    crowds = found.get("load", {}).get("crowds", {})
    lines = {
        "engine, sessions replayed": found.get("replay", {}).get("engine_memory_mb", []),
        **{f"engine, {number} editors": crowd["engine_memory_mb"] for number, crowd in list(crowds.items())[-1:]},
        "engine and editor, rows": found.get("quality", {}).get("memory_mb", []),
    }
    return {name: list(map(tuple, line)) for name, line in lines.items() if line}


def crowds(found: Figures) -> plot.Lines:
    given = found.get("load", {}).get("crowds", {})
    return {
        what: [(int(editors), crowd[name]) for editors, crowd in given.items() if crowd[name] is not None]
        for what, name in (("half of them", "p50_ms"), ("nine of ten", "p90_ms"))
        if any(crowd[name] is not None for crowd in given.values())
    }


def contenders(found: Figures, run: str, *, sets: bool = False) -> Iterator[tuple[str, Figures]]:
    """Of the first set each who answered; with `sets`, of each set the first who did."""
    given = found.get(run, {}).get("fim", {})
    if sets:
        yield from ((name, next(iter(part.values()))) for name, part in given.items())
    else:
        yield from next(iter(given.values()), {}).items()


PLOTS = {
    "latency-typing": ("Answered while typing, the committed sessions", "milliseconds", "share", typing, True),
    "latency-peers": ("The same rows answered, context read", "milliseconds", "share of answers", latencies, True),
    "latency-editors": ("Answered to several editors at once", "editors", "milliseconds", crowds, False),
    "decode-growth": ("One forward by context, default shape", "tokens in the cache", "milliseconds", growth, False),
    "quality-passes": ("Likeness of the draft to the true text", "passes", "similarity", passes, False),
    "memory": ("Memory over time", "minutes", "MB", memory, False),
    "calibration": ("P(accept) against what is right", "predicted", "share that is exact", calibration, False),
}


# The page


def page(found: Figures, drawn: Sequence[str]) -> str:
    """All there is to see, in one file beside its pictures."""
    failed = [
        f"<li>{html.escape(name)}: {html.escape(run['error'])}</li>" for name, run in found.items() if "error" in run
    ]
    pictures = [f'<img src="{name}.svg" alt="{html.escape(PLOTS[name][0])}">' for name in drawn]
    commands = [
        f"<li><code>{html.escape(run['command'])}</code> {run.get('seconds', '')} s</li>" for run in found.values()
    ]
    parts = [
        "<h1>mercury-ls, measured</h1>",
        f"<p>{html.escape(about(found))}. {READING}</p>",
        *(["<p><strong>Not measured:</strong></p><ul>", *failed, "</ul>"] if failed else []),
        as_html(table(found)),
        *pictures,
        "<h2>Commands</h2><ul>",
        *commands,
        "</ul>",
    ]
    style = (
        "body{font:15px sans-serif;max-width:60em;margin:2em auto}td,th{padding:2px 10px;text-align:left}img{width:49%}"
    )
    title = "<!doctype html><html lang=en><meta charset=utf-8><title>mercury-ls, measured</title>"
    return f"{title}<style>{style}</style>\n" + "\n".join(parts) + "\n</html>\n"


def about(found: Mapping[str, Any]) -> str:
    quality = found.get("quality", {})
    return f"{quality.get('model', 'no model')}; {quality.get('machine', 'machine not known')}"


def as_html(markdown: str) -> str:
    """A table of Markdown, which is all that `table` writes."""
    rows = [line.strip("|").split("|") for line in markdown.splitlines() if not line.startswith("|--")]
    lines = ["<tr>" + "".join(f"<td>{code(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return "<table>" + "\n".join(lines) + "</table>"


def code(cell: str) -> str:
    parts = html.escape(cell.strip()).split("`")
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))


if __name__ == "__main__":
    main()
